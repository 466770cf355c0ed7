// Runs an LLVM command-line tool on a text.
#pragma once

#include <optional>
#include <string>

namespace zyfa::test {

struct ToolResult {
  int status = -1;
  std::string output;  // stdout and stderr
};

// `arguments` is a shell fragment; the input file's name is appended. Empty when the tool is not installed.
std::optional<ToolResult> run_tool(const std::string& tool, const std::string& arguments, const std::string& input,
                                   const std::string& suffix);

}  // namespace zyfa::test
