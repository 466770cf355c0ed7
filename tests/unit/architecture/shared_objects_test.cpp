// What the shared objects of this build export and need: only zyfa symbols; LLVM in libzyfa_jit alone.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/unit/architecture/rules.h"

namespace zyfa::architecture {
namespace {

std::string lines_of(const Findings& findings) {
  std::string text;
  for (const std::string& finding : findings) {
    text += "\n  " + finding;
  }
  return text;
}

std::string run(const std::string& command) {
  std::string output;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << command;
    return output;
  }
  std::array<char, 4096> buffer{};
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), count);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

TEST(SharedObjects, export_only_zyfa_symbols) {
  for (const char* library : {ZYFA_LIBRARY, ZYFA_JIT_LIBRARY}) {
    const std::string symbols = run("nm -D --defined-only -C '" + std::string(library) + "'");
    EXPECT_NE(symbols.find("zyfa"), std::string::npos) << library << " exports nothing";
    const Findings findings = check_exports(library, symbols);
    EXPECT_TRUE(findings.empty()) << lines_of(findings);
  }
}

TEST(SharedObjects, libzyfa_is_linked_with_no_compiler_and_no_device_runtime) {
  const std::string needed = run("readelf -d '" + std::string(ZYFA_LIBRARY) + "'");
  EXPECT_NE(needed.find("libstdc++"), std::string::npos) << needed;
  const Findings findings = check_needed(ZYFA_LIBRARY, needed);
  EXPECT_TRUE(findings.empty()) << lines_of(findings);
}

TEST(SharedObjects, libzyfa_jit_needs_no_device_runtime) {
  const std::string needed = run("readelf -d '" + std::string(ZYFA_JIT_LIBRARY) + "'");
  EXPECT_NE(needed.find("libLLVM"), std::string::npos) << needed;
  EXPECT_EQ(needed.find("libamdhip"), std::string::npos) << needed;
  EXPECT_EQ(needed.find("libamd_comgr"), std::string::npos) << needed;
}

}  // namespace
}  // namespace zyfa::architecture
