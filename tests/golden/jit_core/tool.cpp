// Temporary input file, popen, cleanup.
#include "tests/golden/jit_core/tool.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace zyfa::test {

std::optional<ToolResult> run_tool(const std::string& tool, const std::string& arguments, const std::string& input,
                                   const std::string& suffix) {
  if (tool.empty() || tool.ends_with("NOTFOUND")) return std::nullopt;
  static int counter = 0;
  const auto path = std::filesystem::temp_directory_path() /
                    ("zyfa-jit-core-" + std::to_string(getpid()) + "-" + std::to_string(counter++) + suffix);
  std::ofstream(path) << input;
  ToolResult result;
  const std::string command = tool + " " + arguments + " " + path.string() + " 2>&1";
  if (FILE* pipe = popen(command.c_str(), "r"); pipe != nullptr) {
    std::array<char, 65536> buffer;
    for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
      result.output.append(buffer.data(), n);
    }
    result.status = pclose(pipe);
  }
  std::filesystem::remove(path);
  return result;
}

}  // namespace zyfa::test
