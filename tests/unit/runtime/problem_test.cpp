// The text form of a problem, support, selection and the kernel table.
#include "zyfa/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
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

// Every combination of the FP8 options, whether or not one applies; the row sums go round over them.
std::vector<AttentionProblem> fp8_problems() {
  std::vector<AttentionProblem> problems;
  for (unsigned bits = 0; bits < 3u << 14; ++bits) {
    const auto flag = [&](unsigned at) { return (bits >> at & 1) != 0; };
    const ScoreForm forms[] = {ScoreForm::kAuto, ScoreForm::kFolded, ScoreForm::kMultiplyAdd};
    const RowSum sums[] = {RowSum::kAuto, RowSum::kSparse, RowSum::kDense};
    problems.push_back({.dtype = flag(0) ? DType::kFp8E4M3 : DType::kBf16,
                        .head_dim_qk = flag(1) ? 192u : 128u,
                        .mask = flag(2) ? Mask::kCausal : Mask::kFull,
                        .lse = flag(3) ? Lse::kWritten : Lse::kNone,
                        .compute = flag(4) ? Compute::kFp8 : Compute::kInput,
                        .fp8 = {.probability = flag(5) ? Probability::kExact : Probability::kLean,
                                .scaling = flag(6) ? BlockScaling::kNone : BlockScaling::kBlocks,
                                .form = forms[bits >> 14],
                                .scores = flag(7) ? ScoreType::kInt8 : ScoreType::kFp8,
                                .near_keys = flag(8) ? NearKeys::kBf16 : NearKeys::kFp8,
                                .row_sum = sums[std::popcount(bits) % 3],
                                .rotation = flag(9) ? Rotation::kNone : Rotation::kHadamard,
                                .smoothing = flag(10) ? KeySmoothing::kMean : KeySmoothing::kNone,
                                .scales = flag(11) ? ScaleGranularity::kTensor : ScaleGranularity::kHead,
                                .byte_rounding = flag(12) ? ByteRounding::kTruncate : ByteRounding::kNearest},
                        .length = flag(13) ? SequenceLength::kShort : SequenceLength::kLong});
  }
  return problems;
}

TEST(ProblemText, parse_undoes_print_with_every_option) {
  std::set<std::string> texts;
  for (const AttentionProblem& problem : fp8_problems()) {
    const std::string text = to_string(problem);
    EXPECT_TRUE(texts.insert(text).second) << text << " stands for two problems";
    const Expected<AttentionProblem> parsed = parse_problem(text);
    ASSERT_TRUE(parsed) << to_string(parsed.error());
    EXPECT_EQ(*parsed, problem) << text;
  }
}

TEST(ProblemText, options_stand_in_the_documented_order_and_only_when_not_default) {
  EXPECT_EQ(to_string(AttentionProblem{.compute = Compute::kFp8}), "bf16,d=128,full,compute=fp8");
  EXPECT_EQ(
      to_string(AttentionProblem{.mask = Mask::kCausal,
                                 .lse = Lse::kWritten,
                                 .compute = Compute::kFp8,
                                 .fp8 = {.probability = Probability::kExact,
                                         .scaling = BlockScaling::kNone,
                                         .form = ScoreForm::kMultiplyAdd,
                                         .scores = ScoreType::kInt8,
                                         .near_keys = NearKeys::kBf16,
                                         .row_sum = RowSum::kDense,
                                         .rotation = Rotation::kNone,
                                         .smoothing = KeySmoothing::kMean,
                                         .scales = ScaleGranularity::kTensor,
                                         .byte_rounding = ByteRounding::kTruncate},
                                 .length = SequenceLength::kShort}),
      "bf16,d=128,causal,lse,compute=fp8,length=short,p=exact,unscaled,form=fma,qk=int8,near=bf16,sum=dense,no-rotate,"
      "smooth-k,scales=tensor,u8=truncate");
  EXPECT_EQ(
      parse_problem(
          "bf16,d=128,compute=fp8,p=lean,blocks,qk=fp8,near=fp8,sum=auto,rotate,scales=head,u8=nearest,length=long")
          .value(),
      AttentionProblem{.compute = Compute::kFp8});
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
                      BadText{"bf16,d=128,casual", "unknown word 'casual'"},
                      BadText{"bf16,d=128,length=any", "unknown word 'length=any'; allowed: "},
                      BadText{"bf16,d=128,length=", "unknown word 'length='"},
                      BadText{"bf16,d=128,length=1024", "compute=fp8, length=long, length=short, and"},
                      BadText{"bf16,d=128,length=long,length=short", "'length=short' repeats or contradicts"},
                      BadText{"bf16,d=128,compute=fp8,compute=fp8", "'compute=fp8' repeats or contradicts"},
                      BadText{"bf16,d=128,compute=bf16", "unknown word 'compute=bf16'"},
                      BadText{"fp8e4m3,d=128,p=lean,p=exact", "'p=exact' repeats or contradicts"},
                      BadText{"fp8e4m3,d=128,blocks,unscaled", "'unscaled' repeats or contradicts"},
                      BadText{"fp8e4m3,d=128,form=fma,form=folded", "'form=folded' repeats or contradicts"},
                      BadText{"fp8e4m3,d=128,form=auto", "unknown word 'form=auto'"},
                      BadText{"bf16,d=128,compute=fp8,qk=int8,qk=fp8", "'qk=fp8' repeats or contradicts"},
                      BadText{"bf16,d=128,compute=fp8,near=bf16,near=bf16", "'near=bf16' repeats or contradicts"},
                      BadText{"fp8e4m3,d=128,sum=dense,sum=sparse", "'sum=sparse' repeats or contradicts"},
                      BadText{"fp8e4m3,d=128,sum=valu", "unknown word 'sum=valu'; allowed: "},
                      BadText{"bf16,d=128,compute=fp8,rotate,no-rotate", "'no-rotate' repeats or contradicts"},
                      BadText{"bf16,d=128,compute=fp8,smooth-k,smooth-k", "'smooth-k' repeats or contradicts"},
                      BadText{"bf16,d=128,compute=fp8,scales=head,scales=tensor", "'scales=tensor' repeats or"},
                      BadText{"fp8e4m3,d=128,u8=truncate,u8=nearest", "'u8=nearest' repeats or contradicts"}));

// The same mistake has one code, whether or not the word is a default and leaves a trace in the problem.
TEST(ProblemText, words_of_fp8_without_it_are_not_supported) {
  for (const BadText& bad :
       {BadText{"bf16,d=128,sum=auto", "the word 'sum=auto' is for FP8"},
        BadText{"bf16,d=128,p=lean", "the word 'p=lean' is for FP8; use it with fp8e4m3, or with bf16"},
        BadText{"blocks,rotate,bf16,d=128", "the word 'blocks' is for FP8"}}) {
    const Expected<AttentionProblem> parsed = parse_problem(bad.text);
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupported) << bad.text;
    EXPECT_THAT(parsed.error().message, HasSubstr(bad.says));
  }
  for (const char* text :
       {"bf16,d=128,sum=dense", "bf16,d=128,p=exact", "bf16,d=128,unscaled", "bf16,d=128,no-rotate"}) {
    const Expected<Selection> chosen = select(parse_problem(text).value());
    ASSERT_FALSE(chosen) << text;
    EXPECT_EQ(chosen.error().code, ErrorCode::kUnsupported) << text;
  }
}

using schedules::Family, schedules::Row, schedules::RowUse;

// A table with everything that interface and options allow; the shipped table's rows come and go with the kernels.
const std::vector<Row>& full_table() {
  using schedules::ElementType;
  static const std::vector<Row> table{
      {.name = "bf16", .element = ElementType::kBf16, .head_dim_qk = 128, .head_dim_v = 128},
      {.name = "fp8",
       .element = {ElementType::kFp8E4M3, ElementType::kInt8},
       .head_dim_qk = {128, 192},
       .head_dim_v = 128},
      {.name = "named", .use = RowUse::kByName, .element = ElementType::kBf16, .head_dim_qk = 64},
      {.name = "statistics", .family = Family::kQuantiseStatistics},
      {.name = "quantise", .family = Family::kQuantise},
  };
  return table;
}

TEST(Supports, takes_bf16_of_head_dim_128_full_and_causal) {
  for (const AttentionProblem& problem : all_problems()) {
    if (problem.dtype == DType::kFp8E4M3) continue;
    const bool expected = problem.dtype == DType::kBf16 && problem.head_dim_qk == 128 && problem.head_dim_v == 128 &&
                          problem.mask != Mask::kWindow;
    EXPECT_EQ(static_cast<bool>(supports(problem)), expected) << to_string(problem);
    EXPECT_EQ(static_cast<bool>(supports(problem, full_table())), expected) << to_string(problem);
    EXPECT_EQ(select(problem).has_value(), expected) << to_string(problem);
  }
}

// The rules of problem.h, written as one condition.
bool allowed(const AttentionProblem& p) {
  const Fp8Options& o = p.fp8;
  const bool quantised = p.compute == Compute::kFp8;
  if (!quantised && p.dtype == DType::kBf16) return p.head_dim_qk == 128 && o == Fp8Options{};
  if (quantised && p.dtype != DType::kBf16) return false;
  const bool exact = o.probability == Probability::kExact, int8 = o.scores == ScoreType::kInt8;
  const bool mixed = o.near_keys == NearKeys::kBf16, smooth = o.smoothing == KeySmoothing::kMean;
  if (o.form == ScoreForm::kFolded && (exact || int8)) return false;
  if (exact && o.byte_rounding == ByteRounding::kTruncate) return false;
  if (smooth && (mixed || p.lse == Lse::kWritten)) return false;
  const bool of_quantiser =
      int8 || mixed || smooth || o.rotation == Rotation::kNone || o.scales == ScaleGranularity::kTensor;
  return quantised || !of_quantiser;
}

TEST(Supports, fp8_options_where_they_apply_and_nowhere_else) {
  std::size_t supported = 0;
  for (const AttentionProblem& problem : fp8_problems()) {
    const Support support = supports(problem, full_table());
    EXPECT_EQ(static_cast<bool>(support), allowed(problem)) << to_string(problem);
    supported += support ? 1 : 0;
  }
  EXPECT_GT(supported, 500u);
}

TEST(Supports, takes_only_what_the_table_has_rows_for) {
  const std::span<const Row> table = full_table();
  const AttentionProblem fp8{.dtype = DType::kFp8E4M3}, quantised{.compute = Compute::kFp8};
  EXPECT_THAT(supports(fp8, table.first(1)).reasons, ElementsAre("dtype fp8e4m3 is not supported; supported: bf16"));
  EXPECT_TRUE(supports(fp8, table.first(2)));
  EXPECT_THAT(supports(quantised, table.first(2)).reasons, ElementsAre("compute=fp8 is not supported by this version"));
  std::vector<Row> poor(table.begin(), table.end());
  poor[1].element = schedules::ElementType::kFp8E4M3;
  poor[1].form = schedules::ScoreForm::kMultiplyAdd;
  poor[1].near_keys = schedules::NearKeys::kSame;
  poor[1].block_exponents = schedules::BlockExponents::kUsed;
  poor[1].probability = schedules::ProbabilityRule::kLean;
  EXPECT_TRUE(supports(fp8, poor));
  AttentionProblem problem = quantised;
  problem.fp8.scores = ScoreType::kInt8;
  EXPECT_THAT(supports(problem, poor).reasons, ElementsAre("qk=int8 is not supported; supported: qk=fp8"));
  EXPECT_THAT(supports(quantised, poor).reasons, ElementsAre("form folded is not supported; supported: fma"));
  problem = fp8;
  problem.fp8.scaling = BlockScaling::kNone;
  EXPECT_THAT(supports(problem, poor).reasons,
              ElementsAre("block exponents unscaled is not supported; supported: blocks"));
  problem = quantised;
  problem.fp8.near_keys = NearKeys::kBf16;
  problem.fp8.probability = Probability::kExact;
  EXPECT_THAT(supports(problem, poor).reasons, ElementsAre("p exact is not supported; supported: lean",
                                                           "near keys bf16 is not supported; supported: fp8"));
}

TEST(Supports, gives_every_reason_at_once) {
  const AttentionProblem problem{.dtype = DType::kFp16, .head_dim_qk = 64, .head_dim_v = 96, .mask = Mask::kWindow};
  EXPECT_THAT(
      supports(problem, std::span(full_table()).first(1)).reasons,
      ElementsAre("dtype fp16 is not supported; supported: bf16", "head_dim_qk 64 is not supported; supported: 128",
                  "head_dim_v 96 is not supported; supported: 128",
                  "mask window is not supported; supported: full, causal"));
  EXPECT_THAT(supports(problem, full_table()).reasons,
              ElementsAre("dtype fp16 is not supported; supported: bf16, fp8e4m3",
                          "head_dim_qk 64 is not supported; supported: 128, 192",
                          "head_dim_v 96 is not supported; supported: 128",
                          "mask window is not supported; supported: full, causal"));
  const Expected<Selection> selection = select(problem);
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(selection.error().details, supports(problem).reasons);
  EXPECT_THAT(explain(problem), HasSubstr("head_dim_v 96 is not supported"));
}

TEST(Supports, names_options_without_fp8_and_without_the_quantiser) {
  constexpr const char* kFp8 = " needs FP8: fp8e4m3 inputs, or bf16 inputs and compute=fp8";
  constexpr const char* kQuantiser = " needs compute=fp8: it is an option of the quantiser and its inputs";
  AttentionProblem problem{.fp8 = {.probability = Probability::kExact,
                                   .scaling = BlockScaling::kNone,
                                   .form = ScoreForm::kMultiplyAdd,
                                   .scores = ScoreType::kInt8,
                                   .near_keys = NearKeys::kBf16,
                                   .row_sum = RowSum::kSparse,
                                   .rotation = Rotation::kNone,
                                   .smoothing = KeySmoothing::kMean,
                                   .scales = ScaleGranularity::kTensor}};
  const auto quantiser = [&](const std::string& option) { return option + kQuantiser; };
  const std::string shift = "smooth-k does not go with near=bf16: it shifts every score of a row by a constant";
  EXPECT_THAT(supports(problem, full_table()).reasons,
              ElementsAre(std::string("p=exact") + kFp8, std::string("unscaled") + kFp8, std::string("form=fma") + kFp8,
                          std::string("sum=sparse") + kFp8, quantiser("qk=int8"), quantiser("near=bf16"),
                          quantiser("no-rotate"), quantiser("smooth-k"), quantiser("scales=tensor"), shift));
  EXPECT_THAT(supports({.fp8 = {.row_sum = RowSum::kDense}}, full_table()).reasons,
              ElementsAre(std::string("sum=dense") + kFp8));
  problem.dtype = DType::kFp8E4M3;
  EXPECT_THAT(supports(problem, full_table()).reasons,
              ElementsAre(quantiser("qk=int8"), quantiser("near=bf16"), quantiser("no-rotate"), quantiser("smooth-k"),
                          quantiser("scales=tensor"), shift));
}

TEST(Supports, names_options_that_exclude_each_other) {
  AttentionProblem problem{.lse = Lse::kWritten,
                           .compute = Compute::kFp8,
                           .fp8 = {.probability = Probability::kExact,
                                   .form = ScoreForm::kFolded,
                                   .scores = ScoreType::kInt8,
                                   .smoothing = KeySmoothing::kMean,
                                   .byte_rounding = ByteRounding::kTruncate}};
  EXPECT_THAT(supports(problem, full_table()).reasons,
              ElementsAre("form=folded does not go with p=exact: it is a form of lean probabilities",
                          "form=folded does not go with qk=int8: the integer matrix product has no scale operand",
                          "u8=truncate does not go with p=exact: exact probabilities use no v_cvt_pk_u8_f32",
                          "smooth-k does not go with lse: it shifts every score of a row by a constant"));
  problem = {.dtype = DType::kFp8E4M3, .compute = Compute::kFp8};
  EXPECT_THAT(supports(problem, full_table()).reasons,
              ElementsAre("compute=fp8 quantises bf16 inputs; it does not take dtype fp8e4m3"));
}

// problem_of() gives some problem with the same kernel; problems with FP8 inputs come back as they are, but for a form
// or row sum that is the default, and the length.
TEST(SpecOf, problem_of_undoes_it) {
  for (AttentionProblem problem : fp8_problems()) {
    if (!supports(problem, full_table())) continue;
    const schedules::KernelSpec spec = spec_of(problem);
    const AttentionProblem back = problem_of(spec);
    EXPECT_EQ(spec_of(back), spec) << to_string(problem) << " gives " << to_string(back);
    EXPECT_TRUE(supports(back, full_table())) << to_string(back);
    if (problem.compute == Compute::kFp8) continue;
    problem.length = SequenceLength::kLong;  // no part of a kernel
    if (problem.fp8.form == ScoreForm::kMultiplyAdd) problem.fp8.form = ScoreForm::kAuto;
    const bool by_block = problem.fp8.scaling == BlockScaling::kBlocks && problem.fp8.form != ScoreForm::kFolded;
    if (problem.fp8.row_sum == (by_block ? RowSum::kDense : RowSum::kSparse)) problem.fp8.row_sum = RowSum::kAuto;
    EXPECT_EQ(back, problem);
  }
}

// Both row sums are of one problem, and what is usual anyway makes no second kernel.
TEST(SpecOf, the_row_sum_that_is_usual_is_the_automatic_one) {
  using schedules::RowSum;
  const auto sum = [](const char* text) { return spec_of(parse_problem(text).value()).row_sum; };
  EXPECT_EQ(sum("fp8e4m3,d=128"), RowSum::kAuto);
  EXPECT_EQ(sum("fp8e4m3,d=128,sum=dense"), RowSum::kAuto);
  EXPECT_EQ(sum("fp8e4m3,d=128,sum=sparse"), RowSum::kSparse);
  EXPECT_EQ(sum("fp8e4m3,d=128,unscaled,sum=sparse"), RowSum::kAuto);
  EXPECT_EQ(sum("fp8e4m3,d=128,unscaled,sum=dense"), RowSum::kDense);
  EXPECT_EQ(sum("bf16,d=128,compute=fp8,sum=sparse"), RowSum::kAuto);
  EXPECT_EQ(sum("bf16,d=128,compute=fp8,sum=dense"), RowSum::kDense);
  EXPECT_EQ(sum("bf16,d=128,compute=fp8,form=fma,sum=dense"), RowSum::kAuto);
}

TEST(SpecOf, the_automatic_form_folds_where_the_quantiser_chooses_the_scale) {
  using Form = schedules::ScoreForm;
  EXPECT_EQ(spec_of({.dtype = DType::kFp8E4M3}).form, Form::kMultiplyAdd);
  EXPECT_EQ(spec_of({.dtype = DType::kFp8E4M3, .fp8 = {.form = ScoreForm::kFolded}}).form, Form::kFolded);
  EXPECT_EQ(spec_of({.compute = Compute::kFp8}).form, Form::kFolded);
  EXPECT_EQ(spec_of({.compute = Compute::kFp8, .fp8 = {.form = ScoreForm::kMultiplyAdd}}).form, Form::kMultiplyAdd);
  EXPECT_EQ(spec_of({.compute = Compute::kFp8, .fp8 = {.probability = Probability::kExact}}).form, Form::kMultiplyAdd);
  EXPECT_EQ(spec_of({.compute = Compute::kFp8, .fp8 = {.scores = ScoreType::kInt8}}).form, Form::kMultiplyAdd);
}

TEST(Describe, tells_attention_by_its_problem_and_quantisation_by_operand_and_options) {
  using schedules::ElementType, schedules::KernelSpec, schedules::Operand;
  EXPECT_EQ(describe(spec_of({.mask = Mask::kCausal})), "bf16,d=128,causal");
  EXPECT_EQ(describe(spec_of({.compute = Compute::kFp8})), "fp8e4m3,d=128,full,form=folded");
  KernelSpec spec{.family = Family::kQuantise,
                  .element = ElementType::kFp8E4M3,
                  .head_dim_qk = 192,
                  .operand = Operand::kQuery,
                  .rotation = schedules::Rotation::kHadamard,
                  .feeds = schedules::ScoreForm::kFolded};
  EXPECT_EQ(describe(spec), "quantise q fp8e4m3,d=192,rotate,form=folded");
  spec = {.family = Family::kQuantiseStatistics,
          .element = ElementType::kInt8,
          .operand = Operand::kKey,
          .smoothing = schedules::Smoothing::kMean,
          .scales = schedules::ScaleScope::kTensor};
  EXPECT_EQ(describe(spec), "quantise_statistics k int8,d=128,smooth-k,scales=tensor");
  EXPECT_EQ(to_string(problem_of(spec)), "bf16,d=128,full,compute=fp8,qk=int8,no-rotate,smooth-k,scales=tensor");
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

// Rows may share a placement, which then bears the name of one of them.
TEST(KernelTable, placements_parse_and_bear_a_name_of_their_rows) {
  for (const schedules::Row& row : schedules::kernel_table()) {
    const Expected<schedules::Placement> placement = schedules::parse_placement(row.placement);
    ASSERT_TRUE(placement) << row.name << ": " << to_string(placement.error());
    const schedules::Row* owner = schedules::find_row(schedules::kernel_table(), placement->name);
    ASSERT_NE(owner, nullptr) << row.name;
    EXPECT_EQ(owner->placement, row.placement) << row.name;
    EXPECT_EQ(schedules::resolve_placement(row.name).value(), schedules::unparse(*placement));
  }
}

TEST(KernelTable, the_first_matching_row_that_may_be_selected_wins) {
  using schedules::MaskKind;
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
  const Row two{.name = "two", .head_dim_qk = {128, 192}};
  EXPECT_EQ(two.mismatch({.head_dim_qk = 64}), "head_dim_qk is 64, the row takes 128 or 192");
  EXPECT_EQ(two.mismatch({.head_dim_qk = 192}), "");
  EXPECT_EQ(two.mismatch({.family = Family::kQuantise}), "family is quantise, the row takes attention_forward");
}

TEST(KernelTable, block_exponents_may_have_rows_of_their_own) {
  using schedules::BlockExponents;
  const std::vector<Row> table{{.name = "unscaled", .block_exponents = BlockExponents::kNone}, {.name = "any"}};
  EXPECT_EQ(schedules::select_row(table, {.block_exponents = BlockExponents::kNone})->name, "unscaled");
  EXPECT_EQ(schedules::select_row(table, {.block_exponents = BlockExponents::kUsed})->name, "any");
  EXPECT_EQ(table[0].mismatch({.block_exponents = BlockExponents::kUsed}),
            "block_exponents is blocks, the row takes unscaled");
  EXPECT_EQ(table[0].specificity(), 1U);
}

TEST(KernelTable, a_row_for_one_length_is_chosen_for_it_alone_and_serves_any_by_name) {
  using schedules::SequenceLength;
  const std::vector<Row> table{{.name = "short", .length = SequenceLength::kShort}, {.name = "any"}};
  EXPECT_EQ(schedules::select_row(table, {}, SequenceLength::kShort)->name, "short");
  EXPECT_EQ(schedules::select_row(table, {}, SequenceLength::kLong)->name, "any");
  EXPECT_EQ(schedules::select_row(table, {})->name, "any");
  EXPECT_EQ(table[0].mismatch({}), "");
  EXPECT_EQ(table[0].mismatch({}, SequenceLength::kLong), "length is long, the row takes short");
  EXPECT_EQ(table[0].specificity(), 1U);
  // A table with one of the two lengths alone supports that alone.
  const std::span<const Row> one = std::span(table).first(1);
  EXPECT_TRUE(supports({.length = zyfa::SequenceLength::kShort}, one));
  EXPECT_THAT(supports({}, one).reasons, ElementsAre("each value is supported, but not this combination of them"));
}

// Every problem with a kernel for long sequences has one for short ones; the specification is the same.
TEST(Select, serves_short_sequences_wherever_long_ones_are) {
  for (const std::vector<AttentionProblem>& problems : {all_problems(), fp8_problems()}) {
    for (AttentionProblem problem : problems) {
      problem.length = SequenceLength::kShort;
      const schedules::KernelSpec spec = spec_of(problem);
      const bool supported = supports(problem).reasons.empty();
      problem.length = SequenceLength::kLong;
      EXPECT_EQ(supports(problem).reasons.empty(), supported) << to_string(problem);
      EXPECT_EQ(spec_of(problem), spec);
    }
  }
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
  EXPECT_THAT(unknown.error().message, HasSubstr("no schedule is named 'fastest'; give one of "));
  // Some of them; in which order is the table's affair.
  for (const char* row : {" pingpong, ", " fp8_near_pingpong, ", " fp8_wide, ", " naive, ", " quantise, "}) {
    EXPECT_THAT(unknown.error().message, HasSubstr(row));
  }
  EXPECT_THAT(unknown.error().message, HasSubstr("or a placement in text form"));
  const Expected<KernelChoice> broken = choose_kernel({}, "name=x;waves=");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kScheduleError);
}

}  // namespace
}  // namespace zyfa
