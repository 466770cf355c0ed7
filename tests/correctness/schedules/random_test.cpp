// The schedule cannot change values: 250 random legal placements of attention and 60 of a GEMM compile, pass strict
// mode and give the bits of the reference placement.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "schedules/attention/forward.h"
#include "schedules/compile.h"
#include "schedules/dsl/lower.h"
#include "schedules/select/placements.h"
#include "schedules/select/select.h"
#include "schedules/tune/moves.h"
#include "tests/correctness/schedules/attention_probe.h"
#include "tests/correctness/schedules/gemm_tile.h"
#include "tests/correctness/schedules/random_placement.h"
#include "tests/reference/attention.h"

namespace zyfa::tests {
namespace {

using schedules::Plan;

// How many of the placements use each feature of the grammar.
struct Features {
  int two_groups = 0, eight_waves = 0, wide = 0, paced = 0, interleaved = 0, several_stages = 0, led = 0,
      lds_copies = 0, register_copies = 0, one_phase = 0, priorities = 0, pairs = 0;

  void count(const Plan& plan) {
    const schedules::Placement& p = plan.placement;
    bool mixed = false, by_time = false, several = false, led_any = false, lds = false, registers = false;
    for (const auto& phase : p.loop) {
      for (const auto& item : phase.items) {
        mixed |= item.streams.size() > 1;
        by_time |= item.paced;
        for (const auto& stream : item.streams) {
          several |= stream.stages.size() > 1;
          for (const auto& stage : stream.stages) led_any |= stage.lead > 0;
        }
      }
    }
    for (const auto& [tile, copies] : p.buffers) {
      (plan.algorithm->find_tile(tile)->space == schedules::TileSpace::kLds ? lds : registers) = true;
    }
    two_groups += p.groups == 2 ? 1 : 0;
    eight_waves += p.waves == 8 ? 1 : 0;
    wide += p.queries == 64 ? 1 : 0;
    interleaved += mixed ? 1 : 0;
    paced += by_time ? 1 : 0;
    several_stages += several ? 1 : 0;
    led += led_any ? 1 : 0;
    lds_copies += lds ? 1 : 0;
    register_copies += registers ? 1 : 0;
    one_phase += p.loop.size() == 1 ? 1 : 0;
    priorities += p.priorities.empty() ? 0 : 1;
    pairs += p.trip == 2 ? 1 : 0;
  }
};

TEST(RandomPlacements, AttentionKeepsItsBits) {
  AttentionProbe probe;
  std::mt19937 random(20260101);
  const auto reference = schedules::compile_kernel(probe_spec(std::string(schedules::kNaivePlacement)));
  ASSERT_TRUE(reference) << to_string(reference.error());
  const auto expected =
      probe.run(reference->object, reference->info.symbol, reference->info.waves, reference->info.query_tile);
  ASSERT_TRUE(expected) << to_string(expected.error());

  const auto algorithm = schedules::attention_forward(probe_spec({}), {});
  const auto wide =
      schedules::parse_placement(schedules::find_row(schedules::kernel_table(), "wide")->placement).value();
  const auto of_wide = schedules::attention_forward(probe_spec({}), wide);
  const auto naive = schedules::parse_placement(schedules::kNaivePlacement).value();
  const auto pingpong =
      schedules::parse_placement(schedules::find_row(schedules::kernel_table(), "pingpong")->placement).value();
  std::vector<PlacementWalk> walks;
  for (const schedules::Placement& from : {pingpong, naive, pingpong, schedules::with_two_iterations(pingpong)}) {
    walks.emplace_back(*algorithm, from);
  }
  walks.emplace_back(*of_wide, wide);
  std::set<std::string> seen;
  std::uint64_t draws = 0, too_big = 0;
  Features features;
  while (seen.size() < 250) {
    ASSERT_LT(++draws, 2000U) << "only " << seen.size() << " legal placements found";
    PlacementWalk& walk = walks[seen.size() % walks.size()];
    const std::optional<Plan> plan = walk.next(random);
    if (!plan) continue;
    const std::string text = schedules::unparse(plan->placement);
    const auto again = schedules::parse_placement(text);
    ASSERT_TRUE(again && *again == plan->placement) << text;
    if (seen.contains(text)) continue;
    const auto kernel = schedules::compile_kernel(probe_spec(text));
    if (!kernel && kernel.error().code == ErrorCode::kScheduleError) {
      ++too_big;  // does not fit the registers: refused, as a user would see it
      walk.start_again();
      continue;
    }
    ASSERT_TRUE(kernel) << text << "\n" << to_string(kernel.error());
    const auto words = probe.run(kernel->object, kernel->info.symbol, kernel->info.waves, kernel->info.query_tile);
    ASSERT_TRUE(words) << text << "\n" << to_string(words.error());
    ASSERT_EQ(*words, *expected) << text;
    seen.insert(text);
    features.count(*plan);
  }
  std::printf(
      "%d with two groups, %d with 8 waves, %d of 64 queries, %d interleaved (%d paced, %d with several stages in a "
      "stream), %d with leads, %d "
      "with LDS copies, "
      "%d with register copies, %d of one phase, %d with priorities, %d with trips of two; %lu refused for registers\n",
      features.two_groups, features.eight_waves, features.wide, features.interleaved, features.paced,
      features.several_stages, features.led, features.lds_copies, features.register_copies, features.one_phase,
      features.priorities, features.pairs, too_big);
  // The set must exercise the grammar, not only its plain corner.
  EXPECT_GE(features.two_groups, 40);
  EXPECT_GE(features.eight_waves, 60);
  EXPECT_GE(features.wide, 30);
  EXPECT_GE(features.interleaved, 40);
  EXPECT_GE(features.paced, 30);
  EXPECT_GE(features.several_stages, 10);
  EXPECT_GE(features.led, 150);
  EXPECT_GE(features.lds_copies, 100);
  EXPECT_GE(features.register_copies, 30);
  EXPECT_GE(features.priorities, 60);
  EXPECT_GE(features.pairs, 50);
}

// fp64 product of the same inputs, and all placements with the same bits.
TEST(RandomPlacements, GemmIsRightAndKeepsItsBits) {
  constexpr std::int32_t kM = 150, kN = 100, kK = 200;
  const auto device = strict_device();
  const std::vector<std::uint16_t> a = gaussian(std::size_t{kM} * kK, 1.0, 1),
                                   b = gaussian(std::size_t{kN} * kK, 1.0, 2);
  const DeviceAddress da = upload(*device, a).value(), db = upload(*device, b).value();
  std::mt19937 random(7);
  std::vector<float> first;
  std::set<std::string> seen;
  for (std::uint64_t draws = 0; seen.size() < 60; ++draws) {
    ASSERT_LT(draws, 20000U);
    const std::uint32_t waves = draws % 2 == 0 ? 4 : 8;
    const schedules::Algorithm algorithm = gemm_tile(waves);
    const std::optional<Plan> plan = draw_placement(algorithm, seen.size() % 2 == 1 ? 2 : 1, random);
    if (!plan || !seen.insert(schedules::unparse(plan->placement)).second) continue;
    const auto kernel =
        schedules::lower(*plan, {.symbol = "gemm", .kernarg_bytes = sizeof(GemmArgs), .arguments = gemm_arguments()});
    ASSERT_TRUE(kernel) << schedules::unparse(plan->placement) << "\n" << to_string(kernel.error());
    std::vector<float> c(std::size_t{kM} * kN, NAN);
    const GemmArgs args{da, db, upload(*device, c).value(), 2 * kK, 2 * kK, 4 * kN, kM, kN, kK};
    const auto loaded = device->load(kernel->object, "gemm");
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    const Status ran =
        device->launch(**loaded, {.grid = {(kM + 32 * waves - 1) / (32 * waves), 2, 1}, .block = {64 * waves, 1, 1}},
                       std::as_bytes(std::span(&args, 1)), nullptr);
    ASSERT_TRUE(ran) << schedules::unparse(plan->placement) << "\n" << to_string(ran.error());
    ASSERT_TRUE(device->read(std::as_writable_bytes(std::span(c)), args.c));
    device->release(args.c);
    if (first.empty()) {
      for (std::int32_t m = 0; m < kM; ++m) {
        for (std::int32_t n = 0; n < kN; ++n) {
          double sum = 0;
          for (std::int32_t k = 0; k < kK; ++k) {
            sum += reference::bf16_to_double(a[static_cast<std::size_t>(m * kK + k)]) *
                   reference::bf16_to_double(b[static_cast<std::size_t>(n * kK + k)]);
          }
          // fp32 accumulation over 200 terms of size about 1.
          ASSERT_NEAR(c[static_cast<std::size_t>(m * kN + n)], sum, 2e-4) << m << "," << n;
        }
      }
      first = c;
    }
    ASSERT_EQ(c, first) << schedules::unparse(plan->placement);
  }
}

}  // namespace
}  // namespace zyfa::tests
