// Rules that hold for the source tree as a whole, each a pure function from text to findings so that it can be tested
// on planted violations. A finding is one line "path:line: what is wrong and what is allowed"; no findings means it
// holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zyfa::architecture {

using Findings = std::vector<std::string>;

// One row of a table of docs/architecture.md: for include directions folder -> allowed prefixes, for third-party
// headers header prefix -> folders.
struct Row {
  std::string name;
  std::vector<std::string> entries;
};

struct Rules {
  std::vector<Row> directions;
  std::vector<Row> third_party;
};

// Reads both tables from the markdown text, each found by the comment above it. An absent or empty table gives no rows.
Rules parse_rules(std::string_view markdown);

// `path` is relative to the source root, with forward slashes, in every function below.
Findings check_includes(std::string_view path, std::string_view text, const Rules& rules);

// Public headers: `#pragma once` or a guard, and no name of LLVM, lld or HIP in code (comments may explain them).
Findings check_public_header(std::string_view path, std::string_view text);

// Markers of unfinished work, absolute machine paths, and `using namespace` in headers.
Findings check_words(std::string_view path, std::string_view text);

inline constexpr std::size_t kMaxLines = 700;
Findings check_length(std::string_view path, std::string_view text);

// The file comment of the house style: the first line that is not blank is a comment.
Findings check_file_comment(std::string_view path, std::string_view text);

// Top-level entries of the tree: only the fixed folders.
Findings check_top_level(const std::vector<std::string>& folders);

// Output of `nm -D --defined-only -C` of a shared object of ours: only zyfa symbols.
Findings check_exports(std::string_view library, std::string_view nm_output);

// Output of `readelf -d` of libzyfa: no LLVM, comgr or HIP among the needed libraries.
Findings check_needed(std::string_view library, std::string_view readelf_output);

// `text` with comments and string literals blanked, line structure kept.
std::string strip_comments(std::string_view text);

}  // namespace zyfa::architecture
