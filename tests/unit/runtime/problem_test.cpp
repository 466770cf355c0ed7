// The text form of a problem, support, selection and the kernel table.
#include "zyfa/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/kernel_choice.h"
#include "schedules/select/placement.h"
#include "schedules/select/select.h"

namespace zyfa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<AttentionProblem> all_problems() {
  std::vector<AttentionProblem> problems;
  for (DType dtype : {DType::kBf16, DType::kFp16, DType::kFp8E4M3}) {
    for (std::uint32_t qk : {64u, 128u, 192u}) {
      for (std::uint32_t v : {64u, 128u}) {
        for (Mask mask : {Mask::kFull, Mask::kCausal, Mask::kWindow}) {
          for (Lse lse : {Lse::kNone, Lse::kWritten}) problems.push_back({dtype, qk, v, mask, lse});
        }
      }
    }
  }
  return problems;
}

TEST(ProblemText, has_the_documented_form) {
  EXPECT_EQ(to_string(AttentionProblem{}), "bf16,d=128,full");
  EXPECT_EQ(to_string(AttentionProblem{.mask = Mask::kCausal, .lse = Lse::kWritten}), "bf16,d=128,causal,lse");
  EXPECT_EQ(to_string(AttentionProblem{.dtype = DType::kFp8E4M3, .head_dim_qk = 192, .mask = Mask::kWindow}),
            "fp8e4m3,d=192/128,window");
}

TEST(ProblemText, parse_undoes_print) {
  std::set<std::string> texts;
  for (const AttentionProblem& problem : all_problems()) {
    const std::string text = to_string(problem);
    EXPECT_TRUE(texts.insert(text).second) << text << " stands for two problems";
    const Expected<AttentionProblem> parsed = parse_problem(text);
    ASSERT_TRUE(parsed) << to_string(parsed.error());
    EXPECT_EQ(*parsed, problem) << text;
  }
}

TEST(ProblemText, words_come_in_any_order_with_spaces_and_defaults) {
  const AttentionProblem expected{.mask = Mask::kCausal, .lse = Lse::kWritten};
  EXPECT_EQ(parse_problem(" lse , d=128/128,causal ,bf16").value(), expected);
  EXPECT_EQ(parse_problem("bf16,d=128").value(), AttentionProblem{});
}

struct BadText {
  const char* text;
  const char* says;
};

class BadProblemText : public ::testing::TestWithParam<BadText> {};

TEST_P(BadProblemText, is_an_invalid_argument_that_names_the_word) {
  const Expected<AttentionProblem> parsed = parse_problem(GetParam().text);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(parsed.error().message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadProblemText,
    ::testing::Values(BadText{"", "unknown word ''"}, BadText{"d=128", "element type is missing"},
                      BadText{"bf16", "head dim is missing"}, BadText{"bf16,d=128,", "unknown word ''"},
                      BadText{"bf16,d=", "'d=' is no head dim"}, BadText{"bf16,d=0", "'d=0' is no head dim"},
                      BadText{"bf16,d=-1", "'d=-1' is no head dim"}, BadText{"bf16,d=128/", "'d=128/' is no head dim"},
                      BadText{"bf16,d=99999999999", "is no head dim"},
                      BadText{"bf16,fp16,d=128", "'fp16' repeats or contradicts"},
                      BadText{"bf16,d=128,full,causal", "'causal' repeats or contradicts"},
                      BadText{"bf16,d=128,lse,lse", "'lse' repeats or contradicts"},
                      BadText{"bf16,d=128,casual", "unknown word 'casual'"}));

TEST(Supports, takes_exactly_bf16_head_dim_128_full_and_causal) {
  for (const AttentionProblem& problem : all_problems()) {
    const bool expected = problem.dtype == DType::kBf16 && problem.head_dim_qk == 128 && problem.head_dim_v == 128 &&
                          problem.mask != Mask::kWindow;
    EXPECT_EQ(static_cast<bool>(supports(problem)), expected) << to_string(problem);
    EXPECT_EQ(select(problem).has_value(), expected) << to_string(problem);
  }
}

TEST(Supports, gives_every_reason_at_once) {
  const AttentionProblem problem{.dtype = DType::kFp8E4M3, .head_dim_qk = 64, .head_dim_v = 96, .mask = Mask::kWindow};
  EXPECT_THAT(supports(problem).reasons, ElementsAre("dtype fp8e4m3 is not supported; supported: bf16",
                                                     "head_dim_qk 64 is not supported; supported: 128",
                                                     "head_dim_v 96 is not supported; supported: 128",
                                                     "mask window is not supported; supported: full, causal"));
  const Expected<Selection> selection = select(problem);
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(selection.error().details, supports(problem).reasons);
  EXPECT_THAT(explain(problem), HasSubstr("head_dim_v 96 is not supported"));
}

TEST(Select, is_pure) {
  for (const AttentionProblem& problem : all_problems()) {
    const Expected<Selection> first = select(problem), second = select(problem);
    ASSERT_EQ(first.has_value(), second.has_value());
    if (first) {
      EXPECT_EQ(first->row, second->row);
      EXPECT_EQ(first->schedule, second->schedule);
    }
  }
}

TEST(Select, chooses_pingpong_and_explains_it) {
  const Expected<Selection> selection = select({.mask = Mask::kCausal});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->row, "pingpong");
  const std::string text = explain({.mask = Mask::kCausal});
  EXPECT_THAT(text, HasSubstr("problem: bf16,d=128,causal\n"));
  EXPECT_THAT(text, HasSubstr("pingpong: chosen\n"));
  EXPECT_THAT(text, HasSubstr("naive: matches, used only when asked for by name\n"));
  EXPECT_THAT(text, HasSubstr("schedule: " + selection->schedule + "\n"));
}

TEST(KernelTable, is_sorted_most_specific_first_with_unique_names) {
  const std::span<const schedules::Row> table = schedules::kernel_table();
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (i > 0) {
      EXPECT_GE(table[i - 1].specificity(), table[i].specificity()) << table[i].name;
    }
    EXPECT_TRUE(names.insert(table[i].name).second) << table[i].name;
  }
}

TEST(KernelTable, placements_parse_and_bear_their_rows_names) {
  for (const schedules::Row& row : schedules::kernel_table()) {
    const Expected<schedules::Placement> placement = schedules::parse_placement(row.placement);
    ASSERT_TRUE(placement) << row.name << ": " << to_string(placement.error());
    EXPECT_EQ(placement->name, row.name);
    EXPECT_EQ(schedules::resolve_placement(row.name).value(), schedules::unparse(*placement));
  }
}

TEST(KernelTable, the_first_matching_row_that_may_be_selected_wins) {
  using schedules::MaskKind, schedules::Row, schedules::RowUse;
  const std::vector<Row> table{
      {.name = "by name", .use = RowUse::kByName, .head_dim_qk = 128, .mask = MaskKind::kCausal},
      {.name = "causal 64", .head_dim_qk = 64, .mask = MaskKind::kCausal},
      {.name = "causal", .mask = MaskKind::kCausal},
      {.name = "any"},
  };
  const auto selected = [&](std::uint32_t dim, MaskKind mask) {
    return schedules::select_row(table, {.head_dim_qk = dim, .mask = mask})->name;
  };
  EXPECT_EQ(selected(64, MaskKind::kCausal), "causal 64");
  EXPECT_EQ(selected(128, MaskKind::kCausal), "causal");
  EXPECT_EQ(selected(64, MaskKind::kFull), "any");
  EXPECT_EQ(schedules::select_row(std::span(table).first(1), {.mask = MaskKind::kCausal}), nullptr);
  EXPECT_EQ(table[1].mismatch({.head_dim_qk = 96}), "head_dim_qk is 96, the row takes 64");
  EXPECT_EQ(table[1].mismatch({.head_dim_qk = 64}), "mask is full, the row takes causal");
}

TEST(ChooseKernel, takes_a_placement_by_name_or_text) {
  const AttentionProblem problem{.mask = Mask::kCausal, .lse = Lse::kWritten};
  const Expected<KernelChoice> named = choose_kernel(problem, "naive");
  ASSERT_TRUE(named) << to_string(named.error());
  EXPECT_EQ(named->row, "naive");
  const Expected<KernelChoice> text = choose_kernel(problem, " " + named->spec.placement + " # a comment");
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(text->row, "custom");
  EXPECT_EQ(text->spec, named->spec);
  EXPECT_EQ(problem_of(text->spec), problem);
}

TEST(ChooseKernel, refuses_an_unknown_name_and_a_broken_text) {
  const Expected<KernelChoice> unknown = choose_kernel({}, "fastest");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kScheduleError);
  EXPECT_THAT(unknown.error().message, HasSubstr("no schedule is named 'fastest'; give one of pingpong, naive"));
  const Expected<KernelChoice> broken = choose_kernel({}, "name=x;waves=");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kScheduleError);
}

}  // namespace
}  // namespace zyfa
