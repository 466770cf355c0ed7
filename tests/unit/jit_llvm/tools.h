// Runs the stock LLVM tools that some tests compare with. Tests skip when a tool is not installed.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

namespace zyfa::jit {

// A directory of its own, removed at the end.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = "/tmp/zyfa-test-XXXXXX";
    if (const char* root = std::getenv("TMPDIR")) name = std::string(root) + "/zyfa-test-XXXXXX";
    path_ = ::mkdtemp(name.data()) != nullptr ? name : std::string();
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    if (!path_.empty()) run("rm -rf '" + path_ + "'");
  }

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  static bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
inline void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  write_file(path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}
inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline std::vector<std::byte> read_bytes(const std::string& path) {
  const std::string text = read_text(path);
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline bool have(const char* tool) { return *tool != '\0'; }

}  // namespace zyfa::jit
