// 8-bit kernels in strict mode under every landing and interleaving policy, and under every reading of every rule on
// which sources disagree: no finding, the same bits whatever the policy, right against fp64 whatever the rule; and the
// same bits in every launch, with any number of simulator threads, packed or strided, alone or in a batch.
#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/io/sim_text.h"
#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/harness.h"

namespace zyfa::tests {
namespace {

using schedules::BlockExponents;
using schedules::ElementType;
using schedules::KernelSpec;
using schedules::MaskKind;
using schedules::ProbabilityRule;
using schedules::ScoreForm;

SimOptions strict() { return {.checks = SimChecks::kStrict, .threads = 2}; }

Expected<Fp8Outcome> run(const Fp8Case& c, const SimOptions& options) {
  const auto device = sim::make_sim_device(options);
  if (!device) return tl::unexpected<Error>(device.error());
  return run_fp8_case(c, **device);
}

KernelSpec spec_of(std::uint32_t dim, MaskKind mask, ElementType element, ProbabilityRule rule,
                   BlockExponents exponents, ScoreForm form) {
  KernelSpec spec = fp8_spec();
  spec.head_dim_qk = dim;
  spec.mask = mask;
  spec.element = element;
  spec.probability = rule;
  spec.block_exponents = exponents;
  spec.form = form;
  return spec;
}

// Ragged against the query and key tiles, more than one of each, and GQA; every loop that differs in its instructions.
std::vector<Fp8Case> cases() {
  using enum MaskKind;
  using enum ElementType;
  using enum ProbabilityRule;
  using enum BlockExponents;
  using enum ScoreForm;
  return {
      {.query_length = 257,
       .key_length = 300,
       .heads = 2,
       .key_heads = 1,
       .spec = spec_of(128, kCausal, kFp8E4M3, kLean, kUsed, kFolded),
       .spread = 3.0,
       .seed = 1},
      {.query_length = 130,
       .key_length = 450,
       .heads = 2,
       .key_heads = 2,
       .spec = spec_of(192, kFull, kFp8E4M3, kLean, kUsed, kMultiplyAdd),
       .seed = 2},
      {.query_length = 33,
       .key_length = 65,
       .heads = 8,
       .key_heads = 1,
       .spec = spec_of(192, kCausal, kInt8, kExact, kUsed, kMultiplyAdd),
       .seed = 3},
      {.query_length = 65,
       .key_length = 257,
       .heads = 3,
       .key_heads = 1,
       .spec = spec_of(128, kCausal, kInt8, kLean, BlockExponents::kNone, kMultiplyAdd),
       .seed = 4},
      {.query_length = 70,
       .key_length = 200,
       .heads = 2,
       .key_heads = 1,
       .spec = spec_of(192, kFull, kFp8E4M3, kLean, BlockExponents::kNone, kFolded),
       .seed = 5},
  };
}

class Fp8Policies : public testing::TestWithParam<std::string> {
 protected:
  // Two blocks of queries have a row for each head dim.
  static std::string placement_of(const Fp8Case& c) {
    return GetParam() == "fp8_wide" && c.spec.head_dim_qk == 192 ? "fp8_wide_192" : GetParam();
  }
};

TEST_P(Fp8Policies, GiveTheSameBits) {
  const std::vector<std::string> landings{"late", "latest", "early", "random:1", "random:2", "random:3"};
  const std::vector<std::string> interleaves{"round-robin", "to-barrier", "random:4", "random:5"};
  for (Fp8Case c : cases()) {
    c.placement = placement_of(c);
    const Expected<Fp8Outcome> expected = run(c, strict());
    ASSERT_TRUE(expected) << describe(c) << "\n" << to_string(expected.error());
    for (const std::string& landing : landings) {
      for (const std::string& interleave : interleaves) {
        SimOptions options = strict();
        ASSERT_TRUE(io::set_landing(landing, options).has_value());
        ASSERT_TRUE(io::set_interleave(interleave, options).has_value());
        const Expected<Fp8Outcome> outcome = run(c, options);
        ASSERT_TRUE(outcome) << describe(c) << " " << landing << " " << interleave << "\n"
                             << to_string(outcome.error());
        EXPECT_EQ(outcome->o, expected->o) << describe(c) << " " << landing << " " << interleave;
        EXPECT_EQ(lse_bits(*outcome), lse_bits(*expected)) << describe(c) << " " << landing << " " << interleave;
      }
    }
  }
}

// The accumulation model, and for Lean codes the rounding of bytes, may change bits; the others must not.
TEST_P(Fp8Policies, RightUnderEveryReadingOfEveryRule) {
  for (Fp8Case c : cases()) {
    c.placement = placement_of(c);
    const Expected<Fp8Outcome> expected = run(c, strict());
    ASSERT_TRUE(expected) << describe(c) << "\n" << to_string(expected.error());
    for (const io::OtherRule& other : io::other_rules({})) {
      SimOptions options = strict();
      options.rules = other.rules;
      const Expected<Fp8Outcome> outcome = run(c, options);
      ASSERT_TRUE(outcome) << describe(c) << " " << other.text << "\n" << to_string(outcome.error());
      EXPECT_LE(outcome->figures.relative_rms_percent, 2.5) << describe(c) << " " << other.text;
      EXPECT_EQ(outcome->figures.mismatched_nan, 0) << describe(c) << " " << other.text;
      const bool bytes = other.text.starts_with("cvt-pk-u8=") && c.spec.probability == ProbabilityRule::kLean;
      EXPECT_LE(outcome->figures.lse_max_abs, bytes ? 0.14 : 0.09) << describe(c) << " " << other.text;
      const bool may_differ = other.text.starts_with("accumulation=") || bytes;
      EXPECT_TRUE(may_differ || outcome->o == expected->o) << describe(c) << " " << other.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, Fp8Policies,
                         testing::Values("fp8_naive", "fp8_pingpong", "fp8_pingpong_packed", "fp8_wide"),
                         [](const auto& info) { return info.param; });

TEST(Fp8Launches, RepeatedAndOnAnyNumberOfThreadsGiveTheSameBits) {
  const auto device = sim::make_sim_device({.threads = 2}).value();
  const auto single = sim::make_sim_device({.threads = 1}).value();
  for (const std::uint32_t dim : {128U, 192U}) {
    for (const KernelSpec& spec : fp8_variants(dim, MaskKind::kCausal)) {
      const Fp8Case c{.batch = 2,
                      .query_length = 270,
                      .key_length = 330,
                      .heads = 2,
                      .key_heads = 1,
                      .spec = spec,
                      .placement = "fp8_pingpong"};
      const Fp8Inputs in = make_fp8_inputs(c);
      const Fp8Output first = launch_fp8_case(c, in, *single).value();
      for (int launch = 0; launch < 3; ++launch) {
        const Fp8Output again = launch_fp8_case(c, in, *device).value();
        EXPECT_EQ(again.o, first.o) << describe(c);
        EXPECT_EQ(lse_bits(again), lse_bits(first)) << describe(c);
      }
    }
  }
}

TEST(Fp8Launches, StridesDoNotChangeBits) {
  const auto device = sim::make_sim_device(strict()).value();
  for (const KernelSpec& spec : fp8_variants(192, MaskKind::kCausal)) {
    Fp8Case c{.batch = 2,
              .query_length = 100,
              .key_length = 150,
              .heads = 2,
              .key_heads = 1,
              .spec = spec,
              .placement = "fp8_pingpong"};
    const Fp8Inputs in = make_fp8_inputs(c);
    const Fp8Output strided = launch_fp8_case(c, in, *device).value();
    c.layout = Layout::kPacked;
    EXPECT_EQ(launch_fp8_case(c, in, *device).value().o, strided.o) << describe(c);
  }
}

TEST(Fp8Launches, BatchDoesNotChangeBits) {
  const auto device = sim::make_sim_device(strict()).value();
  for (const KernelSpec& spec : fp8_variants(128, MaskKind::kCausal)) {
    Fp8Case c{
        .query_length = 100, .key_length = 150, .heads = 2, .key_heads = 1, .spec = spec, .placement = "fp8_pingpong"};
    const Fp8Inputs alone = make_fp8_inputs(c);
    const Fp8Output one = launch_fp8_case(c, alone, *device).value();
    c.batch = 3;
    Fp8Inputs repeated = alone;
    repeated.batch = 3;
    const auto three_times = [](auto& data) {
      const auto once = data;
      for (int n = 0; n < 2; ++n) data.insert(data.end(), once.begin(), once.end());
    };
    three_times(repeated.q), three_times(repeated.k), three_times(repeated.v);
    three_times(repeated.q_descale), three_times(repeated.k_descale), three_times(repeated.v_descale);
    const Fp8Output three = launch_fp8_case(c, repeated, *device).value();
    for (std::ptrdiff_t b = 0; b < 3; ++b) {
      const auto size = static_cast<std::ptrdiff_t>(one.o.size());
      EXPECT_TRUE(std::equal(one.o.begin(), one.o.end(), three.o.begin() + b * size)) << describe(c);
    }
  }
}

}  // namespace
}  // namespace zyfa::tests
