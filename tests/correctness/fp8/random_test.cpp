// The schedule cannot change values: random legal placements of 8-bit attention compile, pass strict mode and give the
// bits of the reference placement.
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "runtime/sim/sim_device.h"
#include "schedules/attention/fp8.h"
#include "schedules/dsl/plan.h"
#include "schedules/select/select.h"
#include "schedules/tune/moves.h"
#include "tests/correctness/fp8/model.h"
#include "tests/correctness/fp8/path_check.h"
#include "tests/correctness/schedules/random_placement.h"

namespace zyfa::tests {
namespace {

using schedules::BlockExponents;
using schedules::ElementType;
using schedules::KernelSpec;
using schedules::ProbabilityRule;
using schedules::RowSum;
using schedules::ScoreForm;

class Fp8RandomPlacements : public testing::TestWithParam<NamedSpec> {};

TEST_P(Fp8RandomPlacements, KeepTheBits) {
  constexpr std::size_t kPlacements = 40;
  KernelSpec spec = GetParam().spec;
  spec.mask = schedules::MaskKind::kCausal;
  // Queries for both groups of an 8-wave workgroup, the last tile ragged; a reference that moves, and both paths.
  Fp8Case c{.query_length = 243, .key_length = 331, .spec = spec, .placement = "fp8_naive"};
  c.spread = 3.0;
  const Fp8Inputs in = make_fp8_inputs(c);
  const ModelledAttention model = modelled_attention(c, in);
  EXPECT_GT(model.moves, 0);
  const auto device =
      sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 2, .counts = SimCounts::kByInstruction}).value();
  const Expected<Fp8Output> expected = launch_fp8_case(c, in, *device);
  ASSERT_TRUE(expected) << to_string(expected.error());
  expect_row_sum(schedules::row_sum_of(spec), *device);
  const bool two_paths = spec.form == ScoreForm::kFolded && spec.block_exponents == BlockExponents::kUsed;
  if (two_paths) expect_both_paths(model, *device);

  const auto algorithm = schedules::attention_forward_fp8(spec, {});
  ASSERT_TRUE(algorithm) << to_string(algorithm.error());
  std::mt19937 random(20260102);
  std::set<std::string> seen;
  std::uint64_t draws = 0, too_big = 0;
  int two_groups = 0, interleaved = 0, scalar = 0, of_64_queries = 0;
  std::vector<PlacementWalk> walks;
  for (const char* row : {"fp8_pingpong", "fp8_naive"}) {
    const auto from =
        schedules::parse_placement(schedules::find_row(schedules::kernel_table(), row)->placement).value();
    for (const auto& start : {from, schedules::with_two_iterations(from)}) walks.emplace_back(*algorithm, start);
  }
  const auto wide =
      schedules::parse_placement(
          schedules::find_row(schedules::kernel_table(), spec.head_dim_qk == 128 ? "fp8_wide" : "fp8_wide_192")
              ->placement)
          .value();
  const auto of_wide = schedules::attention_forward_fp8(spec, wide);
  ASSERT_TRUE(of_wide) << to_string(of_wide.error());
  walks.emplace_back(*of_wide, wide);
  while (seen.size() < kPlacements) {
    ASSERT_LT(++draws, 2000U) << "only " << seen.size() << " legal placements found";
    PlacementWalk& walk = walks[seen.size() % walks.size()];
    std::optional<schedules::Plan> plan = walk.next(random);
    if (!plan) {
      walk.start_again();
      continue;
    }
    if (seen.size() % 2 == 1) plan->placement.math = schedules::VectorMath::kScalar;
    const std::string text = schedules::unparse(plan->placement);
    if (seen.contains(text)) continue;
    c.placement = text;
    const Expected<const schedules::CompiledKernel*> kernel = fp8_kernel(c);
    if (!kernel && kernel.error().code == ErrorCode::kScheduleError) {
      ++too_big;  // does not fit the registers: refused, as a user would see it
      walk.start_again();
      continue;
    }
    ASSERT_TRUE(kernel) << text << "\n" << to_string(kernel.error());
    const Expected<Fp8Output> output = launch_fp8_case(c, in, *device);
    ASSERT_TRUE(output) << text << "\n" << to_string(output.error());
    ASSERT_EQ(output->o, expected->o) << text;
    ASSERT_EQ(lse_bits(*output), lse_bits(*expected)) << text;
    ASSERT_TRUE(output->outside_untouched) << text;
    if (two_paths) expect_both_paths(model, *device);
    ASSERT_FALSE(HasFailure()) << text;
    seen.insert(text);
    two_groups += plan->placement.groups == 2 ? 1 : 0;
    scalar += plan->placement.math == schedules::VectorMath::kScalar ? 1 : 0;
    of_64_queries += plan->placement.queries == 64 ? 1 : 0;
    interleaved += text.find('{') != std::string::npos ? 1 : 0;
  }
  std::printf(
      "%zu placements of %lu draws: %d with two groups, %d interleaved, %d scalar, %d of 64 queries; %lu refused for "
      "registers\n",
      seen.size(), draws, two_groups, interleaved, scalar, of_64_queries, too_big);
  EXPECT_GE(two_groups, 5);
  EXPECT_GE(interleaved, 5);
  EXPECT_GE(scalar, 10);
  EXPECT_GE(of_64_queries, 5);
}

std::vector<NamedSpec> variants() {
  NamedSpec folded{"folded_blocks", fp8_spec()}, fma{"fma_blocks_192", fp8_spec()},
      int8{"int8_exact_unscaled", fp8_spec()};
  folded.spec.form = ScoreForm::kFolded;
  NamedSpec dense{"folded_blocks_dense", folded.spec};
  dense.spec.row_sum = RowSum::kDense;
  fma.spec.head_dim_qk = 192;
  int8.spec.element = ElementType::kInt8;
  int8.spec.probability = ProbabilityRule::kExact;
  int8.spec.block_exponents = BlockExponents::kNone;
  return {folded, dense, fma, int8};
}

INSTANTIATE_TEST_SUITE_P(Variants, Fp8RandomPlacements, testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zyfa::tests
