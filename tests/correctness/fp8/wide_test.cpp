// Waves of 64 queries in 8 bits give the bits of waves of 32: every variant on shapes in which the two blocks of a wave
// fare differently, and random legal placements, also behind a loop of BF16 keys.
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "runtime/sim/sim_device.h"
#include "schedules/attention/fp8.h"
#include "schedules/dsl/plan.h"
#include "tests/correctness/fp8/harness.h"
#include "tests/correctness/schedules/random_placement.h"
#include "tests/correctness/schedules/wide_shapes.h"

namespace zyfa::tests {
namespace {

using schedules::BlockExponents;
using schedules::ElementType;
using schedules::MaskKind;
using schedules::NearKeys;
using schedules::ProbabilityRule;
using schedules::RowSum;
using schedules::ScoreForm;

NamedSpec folded() {
  NamedSpec v{"folded", fp8_spec()};
  v.spec.form = ScoreForm::kFolded;
  return v;
}

NamedSpec multiply_add() { return {"fma", fp8_spec()}; }

NamedSpec behind_near() {
  NamedSpec v{"near", fp8_spec()};
  v.spec.near_keys = NearKeys::kBf16;
  return v;
}

std::vector<NamedSpec> variants() {
  NamedSpec unscaled{"folded_unscaled_dense", folded().spec}, near_folded{"near_folded", behind_near().spec};
  unscaled.spec.block_exponents = BlockExponents::kNone;
  unscaled.spec.row_sum = RowSum::kDense;
  near_folded.spec.form = ScoreForm::kFolded;
  NamedSpec int8{"int8_exact_unscaled", fp8_spec()}, larger{"fma_192", fp8_spec()};
  int8.spec.element = ElementType::kInt8;
  int8.spec.probability = ProbabilityRule::kExact;
  int8.spec.block_exponents = BlockExponents::kNone;
  larger.spec.head_dim_qk = 192;
  return {folded(), multiply_add(), behind_near(), unscaled, near_folded, int8, larger};
}

std::string placed(const NamedSpec& v, const char* placement) {
  return v.spec.near_keys == NearKeys::kBf16 ? behind_near_keys(placement) : placement;
}

Fp8Case case_of(const NamedSpec& v, const WideShape& shape) {
  Fp8Case c{.query_length = shape.queries,
            .key_length = shape.keys,
            .heads = shape.heads,
            .key_heads = shape.key_heads,
            .spec = v.spec,
            .placement = v.spec.near_keys == NearKeys::kBf16 ? "fp8_near_naive" : "fp8_naive",
            .spread = 3.0};  // the reference moves, in one block or in both
  c.spec.mask = shape.causal ? MaskKind::kCausal : MaskKind::kFull;
  return c;
}

SimDevice& device() {
  static const auto made = sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 2}).value();
  return *made;
}

// The case as it is, with another placement.
void expect_same(Fp8Case c, const Fp8Inputs& in, const Fp8Output& expected, const std::string& placement) {
  c.placement = placement;
  const Expected<Fp8Output> output = launch_fp8_case(c, in, device());
  ASSERT_TRUE(output) << describe(c) << "\n" << placement << "\n" << to_string(output.error());
  EXPECT_EQ(output->o, expected.o) << describe(c) << "\n" << placement;
  EXPECT_EQ(lse_bits(*output), lse_bits(expected)) << describe(c) << "\n" << placement;
  EXPECT_TRUE(output->outside_untouched) << describe(c) << "\n" << placement;
}

class Fp8Wide : public testing::TestWithParam<NamedSpec> {};

TEST_P(Fp8Wide, BitsOfWavesOf32Queries) {
  ASSERT_TRUE(complete(reach_of_all())) << "the shapes must reach what two blocks can meet";
  for (const WideShape& shape : kWideShapes) {
    for (const schedules::LseOutput lse : {schedules::LseOutput::kWritten, schedules::LseOutput::kNone}) {
      // Without LSE the rows are the same; one shape tells.
      if (lse == schedules::LseOutput::kNone && shape.queries != 70) continue;
      Fp8Case c = case_of(GetParam(), shape);
      c.spec.lse = lse;
      const Fp8Inputs in = make_fp8_inputs(c);
      const Expected<Fp8Output> expected = launch_fp8_case(c, in, device());
      ASSERT_TRUE(expected) << describe(c) << "\n" << to_string(expected.error());
      std::vector<const char*> placements{kFp8WideNaive, kFp8WideEach};
      if (GetParam().spec.head_dim_qk == 128) placements.push_back(kFp8WidePaced);  // 192: too many AGPRs
      for (const char* placement : placements) expect_same(c, in, *expected, placed(GetParam(), placement));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Fp8Wide, testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

class Fp8WideWalks : public testing::TestWithParam<NamedSpec> {};

// Of a shape whose iterations end between the blocks of a wave.
TEST_P(Fp8WideWalks, KeepTheBits) {
  constexpr std::size_t kPlacements = 12;
  constexpr WideShape kShape{243, 331, 1, 1, true};
  ASSERT_TRUE(reach_of(kShape).block_masked_earlier);
  const Fp8Case c = case_of(GetParam(), kShape);
  const Fp8Inputs in = make_fp8_inputs(c);
  const Expected<Fp8Output> expected = launch_fp8_case(c, in, device());
  ASSERT_TRUE(expected) << to_string(expected.error());
  std::vector<schedules::Algorithm> algorithms;
  std::vector<schedules::Placement> starts;
  for (const char* text : {kFp8WideNaive, kFp8WidePaced, kFp8WideEach}) {
    starts.push_back(schedules::parse_placement(placed(GetParam(), text)).value());
    algorithms.push_back(schedules::attention_forward_fp8(c.spec, starts.back()).value());
  }
  std::vector<PlacementWalk> walks;
  for (std::size_t i = 0; i < starts.size(); ++i) walks.emplace_back(algorithms[i], starts[i]);
  std::mt19937 random(20260103);
  std::set<std::string> seen;
  int refused = 0, paced = 0;
  for (int draws = 0; seen.size() < kPlacements; ++draws) {
    ASSERT_LT(draws, 500) << "only " << seen.size() << " legal placements found";
    PlacementWalk& walk = walks[seen.size() % walks.size()];
    const std::optional<schedules::Plan> plan = walk.next(random);
    if (!plan) {
      walk.start_again();
      continue;
    }
    ASSERT_EQ(plan->placement.queries, 64U);
    const std::string text = schedules::unparse(plan->placement);
    if (seen.contains(text)) continue;
    Fp8Case drawn = c;
    drawn.placement = text;
    const Expected<const schedules::CompiledKernel*> kernel = fp8_kernel(drawn);
    if (!kernel && kernel.error().code == ErrorCode::kScheduleError) {
      ++refused;  // does not fit the registers
      walk.start_again();
      continue;
    }
    ASSERT_TRUE(kernel) << text << "\n" << to_string(kernel.error());
    expect_same(c, in, *expected, text);
    if (HasFailure()) return;
    seen.insert(text);
    paced += text.find("{=") != std::string::npos ? 1 : 0;
  }
  std::printf("%zu placements, %d paced; %d refused for registers\n", seen.size(), paced, refused);
  EXPECT_GE(paced, 3);
}

INSTANTIATE_TEST_SUITE_P(Variants, Fp8WideWalks, testing::Values(folded(), multiply_add(), behind_near()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zyfa::tests
