// Shape files: lists of problems for `zyfa-jit prewarm --shapes` and the bench driver.
//
// Text: one problem per line in the text form of zyfa/problem.h ("bf16,d=128,causal,lse"); blank lines and everything
// after '#' are ignored. JSON (first character '[' or '{'): an array of such strings, or {"problems": [...]}.
// A problem may stand more than once; order is kept.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/error.h"

namespace zyfa::io {

struct ShapeEntry {
  std::string text;      // one problem, surrounding blanks removed
  std::string location;  // "shapes.txt:3" or "shapes.json: problem 2", for messages
};

// The texts are not parsed further here. kCorruptData for bytes that are not text (NUL) or JSON of another form.
[[nodiscard]] Expected<std::vector<ShapeEntry>> parse_shapes(std::string_view text, const std::string& name);
[[nodiscard]] Expected<std::vector<ShapeEntry>> read_shapes(const std::filesystem::path& path);

}  // namespace zyfa::io
