// Placements never change bits: every row of the kernel table, whatever length it is tuned for, gives the output of the
// naive placement, in strict mode.
#include <gtest/gtest.h>

#include "runtime/kernel_choice.h"
#include "runtime/tune/sample.h"

namespace zyfa {
namespace {

using tune_detail::Sample;

// Ragged, more than one workgroup, a pair of heads; fewer keys than a block, and more than two trips have.
constexpr tune_detail::SampleShape kShapes[] = {{.queries = 70, .keys = 33, .heads = 2},
                                                {.queries = 300, .keys = 461, .heads = 2}};

std::vector<std::byte> output(Sample& sample, const AttentionProblem& problem, std::string_view placement) {
  const auto attention = sample.compile(problem, placement);
  EXPECT_TRUE(attention) << to_string(attention.error());
  if (!attention) return {};
  const auto result = sample.launch(**attention);
  EXPECT_TRUE(result) << to_string(result.error());
  return result.value_or(std::vector<std::byte>{});
}

class TableRows : public ::testing::TestWithParam<const char*> {};

TEST_P(TableRows, GiveTheNaivePlacementsBits) {
  AttentionProblem problem = parse_problem(GetParam()).value();
  const schedules::KernelSpec spec = spec_of(problem);
  for (const tune_detail::SampleShape& shape : kShapes) {
    const auto sample = Sample::create(problem, shape, {.checks = SimChecks::kStrict});
    ASSERT_TRUE(sample) << to_string(sample.error());
    const auto expected = output(**sample, problem, reference_row(spec)->name);
    ASSERT_FALSE(expected.empty());
    for (const schedules::Row& row : schedules::kernel_table()) {
      if (row.mismatch(spec).empty()) {
        EXPECT_EQ(output(**sample, problem, row.name), expected) << row.name;
      }
    }
    for (const SequenceLength length : {SequenceLength::kLong, SequenceLength::kShort}) {
      problem.length = length;
      EXPECT_EQ(output(**sample, problem, ""), expected) << to_string(problem);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, TableRows,
                         ::testing::Values("bf16,d=128,causal,lse", "bf16,d=128,full",
                                           "fp8e4m3,d=128,causal,form=folded", "fp8e4m3,d=128,full,lse",
                                           "fp8e4m3,d=192/128,causal,form=folded,unscaled",
                                           "bf16,d=128,causal,compute=fp8,qk=int8",
                                           "bf16,d=128,causal,compute=fp8,near=bf16"));

// Lengths that select one placement are one kernel.
TEST(Lengths, ShareTheKernelOfASharedPlacement) {
  for (const char* text : {"bf16,d=128,causal", "fp8e4m3,d=128,full", "bf16,d=192/128,causal,compute=fp8"}) {
    AttentionProblem problem = parse_problem(text).value();
    const auto key = [&](SequenceLength length) {
      problem.length = length;
      return Attention::compile(problem, {.cache = {.mode = CacheMode::kOff}}).value()->info();
    };
    const AttentionInfo longer = key(SequenceLength::kLong), shorter = key(SequenceLength::kShort);
    EXPECT_EQ(longer.key == shorter.key, longer.schedule == shorter.schedule) << text;
    EXPECT_EQ(shorter.problem.length, SequenceLength::kShort);
  }
}

}  // namespace
}  // namespace zyfa
