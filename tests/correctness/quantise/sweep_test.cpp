// Shapes and options: every small shape, every combination of options, shapes that spread over many workgroups.
#include <gmock/gmock.h>

#include "tests/correctness/quantise/harness.h"

namespace zyfa::tests {
namespace {

void expect_right(Machine& machine, const AttentionProblem& problem, const Shape& shape, std::uint32_t seed,
                  Layout layout = Layout::kStrided) {
  SCOPED_TRACE(describe(problem, shape));
  const Inputs inputs = gaussian_inputs(problem, shape, seed);
  const auto outputs = run(machine, problem, inputs, layout);
  ASSERT_TRUE(outputs) << to_string(outputs.error());
  std::uint64_t near_ties = 0;
  EXPECT_EQ(check(problem, inputs, *outputs, &near_ties), "");
  const std::size_t codes = outputs->q.codes.size() + outputs->k.codes.size() + outputs->v.codes.size();
  EXPECT_LE(near_ties, 2 + codes / 2000) << "of " << codes;
}

// A head dim, heads and key heads for each row count, so that all meet within a few.
TEST(QuantiseSweep, SmallShapes) {
  Machine machine = strict_machine();
  const std::pair<int, int> heads[] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}, {3, 3}, {4, 1}, {4, 2}, {4, 4}};
  for (int tokens = 1; tokens <= 70; ++tokens) {
    for (const auto& [h, hk] : heads) {
      const bool wide = (tokens + h + hk) % 4 == 0;
      expect_right(machine, wide ? fp8_problem(192) : fp8_problem(),
                   {.queries = tokens, .keys = 71 - tokens, .heads = h, .key_heads = hk},
                   static_cast<std::uint32_t>(100 * tokens + 10 * h + hk),
                   tokens % 3 == 0 ? Layout::kPacked : Layout::kStrided);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(QuantiseSweep, AllOptions) {
  Machine machine = strict_machine();
  std::uint32_t seed = 1;
  for (const std::uint32_t dim : {128U, 192U}) {
    for (const ScoreType type : {ScoreType::kFp8, ScoreType::kInt8}) {
      for (const Rotation rotation : {Rotation::kHadamard, Rotation::kNone}) {
        for (const KeySmoothing smoothing : {KeySmoothing::kNone, KeySmoothing::kMean}) {
          for (const ScaleGranularity scales : {ScaleGranularity::kHead, ScaleGranularity::kTensor}) {
            for (const ScoreForm form : {ScoreForm::kAuto, ScoreForm::kMultiplyAdd}) {
              AttentionProblem problem = fp8_problem(dim);
              problem.fp8 = {
                  .form = form, .scores = type, .rotation = rotation, .smoothing = smoothing, .scales = scales};
              expect_right(machine, problem, {.batch = 2, .queries = 37, .keys = 83, .heads = 6, .key_heads = 2},
                           ++seed);
              if (testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// More blocks than workgroups, more partials than one load, more entries than one.
TEST(QuantiseSweep, ManyWorkgroups) {
  Machine machine = strict_machine();
  expect_right(machine, fp8_problem(), {.queries = 4500, .keys = 5003}, 7);
  AttentionProblem tensor = fp8_problem();
  tensor.fp8.scales = ScaleGranularity::kTensor;
  expect_right(machine, tensor, {.batch = 3, .queries = 400, .keys = 410, .heads = 4, .key_heads = 4}, 8);
  tensor.fp8.smoothing = KeySmoothing::kMean;
  expect_right(machine, tensor, {.batch = 2, .queries = 20, .keys = 700, .heads = 6, .key_heads = 3}, 9);
  AttentionProblem smooth = fp8_problem(192);
  smooth.fp8.smoothing = KeySmoothing::kMean;
  expect_right(machine, smooth, {.queries = 33, .keys = 1100}, 10);
}

TEST(QuantiseSweep, LaunchesAreBitwiseEqual) {
  AttentionProblem problem = fp8_problem();
  problem.fp8.smoothing = KeySmoothing::kMean;
  const Inputs inputs =
      gaussian_inputs(problem, {.batch = 2, .queries = 50, .keys = 600, .heads = 4, .key_heads = 2}, 3);
  Machine reference = strict_machine();
  const auto first = run(reference, problem, inputs);
  ASSERT_TRUE(first) << to_string(first.error());
  for (const unsigned threads : {1U, 2U}) {
    Machine machine = strict_machine();
    SimOptions options = machine.device->options();
    options.threads = threads;
    options.landing = SimLanding::kRandom;
    options.landing_seed = threads;
    options.interleave = SimInterleave::kRandom;
    ASSERT_TRUE(machine.device->set_options(options));
    const auto again = run(machine, problem, inputs, Layout::kPacked);
    ASSERT_TRUE(again) << to_string(again.error());
    for (const auto part : {&Outputs::q, &Outputs::k, &Outputs::v}) {
      EXPECT_EQ(((*again).*part).codes, ((*first).*part).codes);
      EXPECT_EQ(((*again).*part).descales, ((*first).*part).descales);
    }
  }
}

// A batch element alone gives what it gives among others.
TEST(QuantiseSweep, ABatchDoesNotMatter) {
  Machine machine = strict_machine();
  for (const KeySmoothing smoothing : {KeySmoothing::kNone, KeySmoothing::kMean}) {
    AttentionProblem problem = fp8_problem();
    problem.fp8.smoothing = smoothing;
    const Inputs all =
        gaussian_inputs(problem, {.batch = 3, .queries = 45, .keys = 730, .heads = 2, .key_heads = 2}, 4);
    Inputs one = all;
    for (HostTensor* t : {&one.q, &one.k, &one.v}) {
      const auto size = static_cast<std::ptrdiff_t>(t->bits.size() / 3);
      t->bits = std::vector(t->bits.begin() + size, t->bits.begin() + 2 * size);
      t->batch = 1;
    }
    const auto together = run(machine, problem, all), alone = run(machine, problem, one);
    ASSERT_TRUE(together && alone);
    for (const auto part : {&Outputs::q, &Outputs::k, &Outputs::v}) {
      const auto& a = ((*alone).*part).codes;
      const auto& t = ((*together).*part).codes;
      EXPECT_TRUE(std::equal(a.begin(), a.end(), t.begin() + static_cast<std::ptrdiff_t>(a.size())));
      EXPECT_EQ(((*alone).*part).descales[1], ((*together).*part).descales[3]);
    }
  }
}

// Two bytes an element for the statistics, two and one for the codes. What comes on top does not grow with the work of
// a wave: loads of two blocks past its last, whose rows do not exist (three ahead, none in
// the last iteration's own trip), and the partials.
TEST(QuantiseSweep, BytesMoved) {
  Machine machine = strict_machine();
  SimOptions options = machine.device->options();
  options.counts = SimCounts::kByInstruction;
  ASSERT_TRUE(machine.device->set_options(options));
  AttentionProblem problem = fp8_problem();
  problem.fp8.form = ScoreForm::kMultiplyAdd;  // the folded form reads k's descale too
  const Inputs inputs = gaussian_inputs(problem, {.queries = 2048, .keys = 2048, .heads = 2, .key_heads = 1}, 5);
  const auto outputs = run(machine, problem, inputs, Layout::kPacked);
  ASSERT_TRUE(outputs) << to_string(outputs.error());
  ASSERT_EQ(outputs->launches.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const SimStatistics& launch = outputs->launches[i];
    const std::uint64_t elements = (i % 3 == 2 ? 2U : 1U) * 2048 * 128, ahead = launch.waves * 2 * 16 * 128 * 2;
    const std::uint64_t partials = i < 3 ? 0 : launch.waves * 1024, lane_stores = launch.waves * 64 * 4;
    EXPECT_EQ(launch.bytes.global_read, 2 * elements + ahead + partials);
    EXPECT_EQ(launch.bytes.global_written, (i < 3 ? 0 : elements) + lane_stores);
    EXPECT_EQ(launch.bytes.lds_read + launch.bytes.lds_written + launch.bytes.atomics, 0U);
  }
}

}  // namespace
}  // namespace zyfa::tests
