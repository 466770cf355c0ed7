// The rules of rules.h on the real source tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/architecture/rules.h"

namespace zyfa::architecture {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct SourceFile {
  std::string path;  // relative to the root
  std::string text;
};

bool has_extension(const fs::path& path, std::initializer_list<std::string_view> extensions) {
  const std::string extension = path.extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

// Every C++ source and header below the fixed folders.
const std::vector<SourceFile>& sources() {
  static const std::vector<SourceFile> files = [] {
    std::vector<SourceFile> found;
    const fs::path root(ZYFA_SOURCE_DIR);
    for (const std::string_view folder : {"cache", "jit", "runtime", "schedules", "tests", "tools"}) {
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
        if (entry.is_regular_file() && has_extension(entry.path(), {".cpp", ".h", ".hpp", ".def"})) {
          found.push_back({entry.path().lexically_relative(root).generic_string(), read_text(entry.path())});
        }
      }
    }
    return found;
  }();
  return files;
}

// foo.cpp whose foo.h speaks for both.
bool has_header_beside(const std::string& path) {
  return path.ends_with(".cpp") &&
         std::any_of(sources().begin(), sources().end(),
                     [header = path.substr(0, path.size() - 4) + ".h"](const SourceFile& file) {
                       return file.path == header ||
                              file.path.ends_with("include/zyfa/" + fs::path(header).filename().string());
                     });
}

std::string lines_of(const Findings& findings) {
  std::string text;
  for (const std::string& finding : findings) {
    text += "\n  " + finding;
  }
  return text;
}

void append(Findings& to, Findings from) { to.insert(to.end(), from.begin(), from.end()); }

TEST(Tree, has_the_sources_it_should) {
  // Guards the other tests against walking an empty tree.
  EXPECT_GT(sources().size(), 20u);
  EXPECT_TRUE(std::any_of(sources().begin(), sources().end(),
                          [](const SourceFile& file) { return file.path == "runtime/include/zyfa/error.h"; }));
}

TEST(Tree, top_level_folders_are_the_fixed_ones) {
  std::vector<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(ZYFA_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    // Build trees and hidden folders (.git, .ci, editor caches) are ignored by git or not part of the product.
    if (entry.is_directory() && !name.starts_with(".") && !name.starts_with("build")) {
      folders.push_back(name);
    }
  }
  const Findings findings = check_top_level(folders);
  EXPECT_TRUE(findings.empty()) << lines_of(findings);
}

TEST(Tree, includes_follow_the_table_of_the_architecture_page) {
  const Rules rules = parse_rules(read_text(fs::path(ZYFA_SOURCE_DIR) / "docs" / "architecture.md"));
  ASSERT_GE(rules.directions.size(), 8u) << "the include-directions table of docs/architecture.md is missing";
  ASSERT_GE(rules.third_party.size(), 5u) << "the third-party table of docs/architecture.md is missing";
  Findings findings;
  for (const SourceFile& file : sources()) {
    append(findings, check_includes(file.path, file.text, rules));
  }
  EXPECT_TRUE(findings.empty()) << lines_of(findings);
}

TEST(Tree, public_headers_name_no_foreign_type) {
  Findings findings;
  for (const SourceFile& file : sources()) {
    if (file.path.starts_with("runtime/include/")) {
      append(findings, check_public_header(file.path, file.text));
    }
  }
  EXPECT_TRUE(findings.empty()) << lines_of(findings);
}

TEST(Tree, no_unfinished_work_or_machine_paths) {
  Findings findings;
  for (const SourceFile& file : sources()) {
    if (!file.path.starts_with("tests/unit/architecture/")) {
      append(findings, check_words(file.path, file.text));
    }
  }
  EXPECT_TRUE(findings.empty()) << lines_of(findings);
}

TEST(Tree, files_are_short_and_say_what_they_are) {
  Findings findings;
  for (const SourceFile& file : sources()) {
    if (!file.path.ends_with(".def")) {  // a table is as long as what it lists
      append(findings, check_length(file.path, file.text));
    }
    if (!has_header_beside(file.path)) {
      append(findings, check_file_comment(file.path, file.text));
    }
  }
  EXPECT_TRUE(findings.empty()) << lines_of(findings);
}

TEST(Tree, program_of_the_readme_is_the_one_that_is_built_and_run) {
  const fs::path root(ZYFA_SOURCE_DIR);
  std::string program = read_text(root / "tests" / "correctness" / "install" / "consumer" / "example.cpp");
  program.erase(0, program.find('\n') + 1);  // the file comment
  EXPECT_NE(read_text(root / "README.md").find("```cpp\n" + program + "```"), std::string::npos);
}

}  // namespace
}  // namespace zyfa::architecture
