// The rules themselves, on planted violations: each rule must accept a good text and name the bad line of a bad one.
#include "tests/unit/architecture/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zyfa::architecture {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kTables = R"(# Page
| folder | may include |
|---|---|
| `decoy/` | `everything/` |

<!-- include-directions -->
| folder | may include |
|---|---|
| `low/` | `low/` `zyfa/error.h` |
| `high/part/` | `high/part/` |
| `high/` | `high/` `low/` |

<!-- third-party -->
| header | only in |
|---|---|
| `llvm/` | `low/llvm/` |
| `hip/` | |
)";

TEST(ParseRules, reads_only_the_marked_tables) {
  const Rules rules = parse_rules(kTables);
  ASSERT_EQ(rules.directions.size(), 3u);
  EXPECT_EQ(rules.directions[0].name, "low/");
  EXPECT_THAT(rules.directions[0].entries, ElementsAre("low/", "zyfa/error.h"));
  EXPECT_THAT(rules.directions[2].entries, ElementsAre("high/", "low/"));
  ASSERT_EQ(rules.third_party.size(), 2u);
  EXPECT_THAT(rules.third_party[0].entries, ElementsAre("low/llvm/"));
  EXPECT_THAT(rules.third_party[1].entries, IsEmpty());
}

TEST(ParseRules, absent_tables_give_no_rows) {
  const Rules rules = parse_rules("# nothing here\n");
  EXPECT_THAT(rules.directions, IsEmpty());
  EXPECT_THAT(rules.third_party, IsEmpty());
}

struct IncludeCase {
  std::string_view path;
  std::string_view text;
  std::string_view expected;  // substring of the single finding; empty = no finding
};

class Includes : public ::testing::TestWithParam<IncludeCase> {};

TEST_P(Includes, follow_the_table) {
  const IncludeCase& example = GetParam();
  const Findings findings = check_includes(example.path, example.text, parse_rules(kTables));
  if (example.expected.empty()) {
    EXPECT_THAT(findings, IsEmpty());
  } else {
    EXPECT_THAT(findings, ElementsAre(HasSubstr(std::string(example.expected))));
  }
}

INSTANTIATE_TEST_SUITE_P(
    planted, Includes,
    ::testing::Values(
        IncludeCase{"low/a.cpp", "#include \"low/a.h\"\n#include \"zyfa/error.h\"\n#include <vector>\n", ""},
        IncludeCase{"low/a.cpp", "#include \"high/b.h\"\n", "low/a.cpp:1: high/b.h is not allowed here"},
        IncludeCase{"low/a.cpp", "\n\n  #  include   \"high/b.h\"\n", "low/a.cpp:3:"},
        IncludeCase{"low/a.cpp", "#include <zyfa/device.h>\n", "low/a.cpp:1: zyfa/device.h"},
        IncludeCase{"low/a.cpp", "#include \"a.h\"\n", "paths are from the source root"},
        IncludeCase{"high/b.cpp", "#include \"low/a.h\"\n", ""},
        IncludeCase{"high/part/c.cpp", "#include \"low/a.h\"\n", "high/part/ may include high/part/"},
        IncludeCase{"high/part/c.cpp", "#include \"high/b.h\"\n", "high/part/c.cpp:1"},
        IncludeCase{"high/b.cpp", "#include <llvm/MC/MCContext.h>\n", "may be included only in low/llvm/"},
        IncludeCase{"low/llvm/m.cpp", "#include <llvm/MC/MCContext.h>\n", ""},
        IncludeCase{"low/llvm/m.cpp", "#include \"llvm/MC/MCContext.h\"\n", ""},
        IncludeCase{"low/llvm/m.cpp", "#include <hip/hip_runtime.h>\n", "may be included only in nothing"},
        IncludeCase{"low/a.cpp", "#include <boost/any.hpp>\n", "in no row of the third-party table"},
        IncludeCase{"low/a.cpp", "#include <boost.hpp>\n", "in no row of the third-party table"},
        IncludeCase{"low/a.cpp", "#include <sys/mman.h>\n#include <unistd.h>\n", ""},
        IncludeCase{"other/a.cpp", "int x;\n", "no row of the include-directions table covers this file"}));

TEST(StripComments, keeps_lines_and_code) {
  EXPECT_EQ(strip_comments("a; // b\nc /* d\n e */ f"), "a;     \nc     \n      f");
  EXPECT_EQ(strip_comments("s = \"x // y\"; t"), "s = \"      \"; t");
  EXPECT_EQ(strip_comments("c = '\"'; d // e"), "c = ' '; d     ");
  EXPECT_EQ(strip_comments("n = 1'000'000; // e"), "n = 1'000'000;     ");
}

TEST(PublicHeader, names_no_foreign_type) {
  EXPECT_THAT(check_public_header("a.h", "#pragma once\n// hipStream_t for HIP, llvm elsewhere\nusing S = void*;\n"),
              IsEmpty());
  EXPECT_THAT(check_public_header("a.h", "#pragma once\nvoid f(llvm::Module&);\n"), ElementsAre(HasSubstr("a.h:2")));
  EXPECT_THAT(check_public_header("a.h", "#pragma once\nvoid f(hipStream_t s);\n"),
              ElementsAre(HasSubstr("hipStream_t")));
  EXPECT_THAT(check_public_header("a.h", "#pragma once\n#include \"llvm/ADT/StringRef.h\"\n"),
              ElementsAre(HasSubstr("a.h:2")));
  EXPECT_THAT(check_public_header("a.h", "int llvm_like_name;\n"), ElementsAre(HasSubstr("#pragma once")));
}

TEST(Words, finds_markers_of_unfinished_work_and_machine_paths) {
  EXPECT_THAT(check_words("a.cpp", "int todo_list; // MASTODON\n"), IsEmpty());
  EXPECT_THAT(check_words("a.cpp",
                          "\n// TO"
                          "DO: later\n"),
              ElementsAre(HasSubstr("a.cpp:2")));
  EXPECT_THAT(check_words("a.cpp",
                          "// FIX"
                          "ME\n"),
              ElementsAre(HasSubstr("finish it")));
  EXPECT_THAT(check_words("a.cpp",
                          "open(\"/wo"
                          "rk/x\");\n"),
              ElementsAre(HasSubstr("one machine")));
  EXPECT_THAT(check_words("a.h", "  using namespace std;\n"), ElementsAre(HasSubstr("a.h:1")));
  EXPECT_THAT(check_words("a.cpp", "using namespace zyfa;\n"), IsEmpty());
}

TEST(Length, limit_is_inclusive) {
  std::string text;
  for (std::size_t i = 0; i < kMaxLines; ++i) {
    text += "x\n";
  }
  EXPECT_THAT(check_length("a.cpp", text), IsEmpty());
  EXPECT_THAT(check_length("a.cpp", text + "x\n"), ElementsAre(HasSubstr("701 lines")));
}

TEST(FileComment, comes_first) {
  EXPECT_THAT(check_file_comment("a.h", "\n// What it is.\n#pragma once\n"), IsEmpty());
  EXPECT_THAT(check_file_comment("a.h", "#pragma once\n// late\n"), ElementsAre(HasSubstr("a.h:1")));
  EXPECT_THAT(check_file_comment("a.h", ""), ElementsAre(HasSubstr("a.h:1")));
}

TEST(TopLevel, only_the_fixed_folders) {
  EXPECT_THAT(check_top_level({"jit", "cache", "docs"}), IsEmpty());
  EXPECT_THAT(check_top_level({"jit", "misc"}), ElementsAre(HasSubstr("misc/")));
}

TEST(Exports, only_zyfa_symbols) {
  EXPECT_THAT(check_exports("lib",
                            "0000000000001119 T zyfa::Attention::compile(int)\n"
                            "0000000000001120 T zyfa_generator_id\n"
                            "0000000000003df8 V typeinfo for zyfa::Device\n"
                            "0000000000003df8 V vtable for zyfa::Device\n"
                            "0000000000000000 A ZYFA_0.1\n"),
              IsEmpty());
  EXPECT_THAT(check_exports("lib", "0000000000001119 T llvm::outs()\n"),
              ElementsAre(HasSubstr("lib exports llvm::outs()")));
  EXPECT_THAT(check_exports("lib", "0000000000001119 W std::vector<zyfa::Error>::push_back(zyfa::Error&&)\n"),
              ElementsAre(HasSubstr("std::vector")));
  EXPECT_THAT(check_exports("lib", "0000000000001119 V typeinfo for lld::Driver\n"),
              ElementsAre(HasSubstr("lld::Driver")));
  EXPECT_THAT(check_exports("lib", "nonsense\n"), ElementsAre(HasSubstr("cannot read nm line")));
}

TEST(Needed, libzyfa_has_no_compiler_in_it) {
  EXPECT_THAT(
      check_needed("libzyfa", " 0x01 (NEEDED)  Shared library: [libstdc++.so.6]\n 0x0e (SONAME) [libLLVM.so]\n"),
      IsEmpty());
  EXPECT_THAT(check_needed("libzyfa", " 0x01 (NEEDED)  Shared library: [libLLVM.so.22.1]\n"),
              ElementsAre(AllOf(HasSubstr("libzyfa"), HasSubstr("libLLVM"))));
}

}  // namespace
}  // namespace zyfa::architecture
