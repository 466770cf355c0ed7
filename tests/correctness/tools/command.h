// Runs the real zyfa-jit (or another program) and keeps what it said.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/io/files.h"

namespace zyfa::tools::testing_support {

using io::testing_support::get_file;
using io::testing_support::put_file;
using io::testing_support::TemporaryFolder;

struct Result {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string out, err;

  // The JSON object on stdout; null, which fails every expectation, when it is none.
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
};

// A folder for files, and a cache of its own inside it: no test sees the user's.
class Session {
 public:
  Session() { environment["ZYFA_CACHE_PATH"] = cache().string(); }

  [[nodiscard]] std::filesystem::path cache() const { return folder_ / "cache"; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return folder_ / name; }

  Result zyfa_jit(std::vector<std::string> arguments) const {
    return command(ZYFA_BUILD_DIR "/bin/zyfa-jit", std::move(arguments));
  }

  Result command(const std::string& program, std::vector<std::string> arguments) const {
    const std::string out = folder_ / ".out", err = folder_ / ".err";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    arguments.insert(arguments.begin(), program);
    std::vector<std::string> variables = inherited();
    for (const auto& [name, value] : environment) {
      variables.push_back(name + "=" + value);
    }
    pid_t child = 0;
    const int failed = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, pointers(arguments).data(),
                                      pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    Result result;
    int status = 0;
    if (failed == 0 && ::waitpid(child, &status, 0) == child) {
      result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    result.out = get_file(out);
    result.err = get_file(err);
    return result;
  }

  std::map<std::string, std::string> environment;  // on top of the test's own, which gives up its ZYFA_ variables

 private:
  static std::vector<std::string> inherited() {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!std::string_view(*variable).starts_with("ZYFA_")) {
        variables.emplace_back(*variable);
      }
    }
    return variables;
  }

  static std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (std::string& string : strings) {
      result.push_back(string.data());
    }
    result.push_back(nullptr);
    return result;
  }

  TemporaryFolder folder_;
};

inline constexpr const char* kSample = ZYFA_TEST_DATA "/gqa_layer2_512.safetensors";

// A safetensors file with random bfloat16 tensors of these shapes; `metadata` is a JSON object's text or empty.
inline void put_inputs(const std::filesystem::path& path, const std::vector<int>& q, const std::vector<int>& k,
                       const std::vector<int>& v, const std::string& metadata = "") {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) {
    header["__metadata__"] = nlohmann::json::parse(metadata);
  }
  std::string data;
  unsigned state = 12345;
  const auto add = [&](const char* name, const std::vector<int>& shape) {
    std::size_t elements = 1;
    for (const int extent : shape) {
      elements *= static_cast<std::size_t>(extent);
    }
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + 2 * elements}}};
    for (std::size_t i = 0; i < elements; ++i) {
      state = state * 1664525U + 1013904223U;
      data += static_cast<char>(state >> 24);                            // mantissa and lowest exponent bit
      data += static_cast<char>((state & 0x80000U) != 0 ? 0xbf : 0x3f);  // 0.5 to 2 in size, either sign
    }
  };
  add("q", q);
  add("k", k);
  add("v", v);
  put_file(path, io::testing_support::safetensors_text(header.dump(), data));
}

}  // namespace zyfa::tools::testing_support
