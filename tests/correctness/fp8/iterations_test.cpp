// Every way out of a loop: unrolled 1 to 12 times, each copy of the body has a last trip of its own behind it, and the
// prologue brings loads forward. Sequences of 0 to more than two rounds of the copies give the bits of the placement
// whose loop is one plain body.
#include <gmock/gmock.h>

#include "runtime/sim/sim_device.h"
#include "schedules/attention/fp8.h"
#include "schedules/dsl/plan.h"
#include "schedules/select/placements.h"
#include "schedules/tune/moves.h"
#include "tests/correctness/fp8/harness.h"
#include "tests/correctness/schedules/wide_shapes.h"

namespace zyfa::tests {
namespace {

using schedules::Placement;

constexpr std::int64_t kIterationKeys = 128;
constexpr std::uint32_t kMostUnrolled = 12;

// Two groups of waves, loads three iterations ahead.
constexpr const char* kPingpong =
    "name=pingpong;waves=8;groups=2;buffers=k_a:3,k_b:3,v_a:3,v_b:3;"
    "loop={pv_a/read_v_b:4},sum_a,{pv_b/sum_b,read_k_a@1:4},{qk_a@1/load_k_a@3,read_k_b@1:4},"
    "{load_v_b@2,load_k_b@3:3/qk_b@1}|"
    "load_v_a@3,mask_a@1,mask_b@1,add_sums,max@1,rescale@1,exponents@1,{prob_a@1:2/read_v_a@1/prob_b@1};"
    "prio=1,0;math=scalar";

struct Loop {
  std::string name;
  Placement placement;
  std::uint32_t unroll;  // least common multiple of trip and copies, by hand
};

Placement with_copies(Placement placement, std::uint32_t k_a, std::uint32_t k_b, std::uint32_t v) {
  placement.buffers["k_a"] = k_a;
  placement.buffers["k_b"] = k_b;
  placement.buffers["v_a"] = placement.buffers["v_b"] = v;
  return placement;
}

// Loads come a trip before the iteration's other stages, so that the last trip reads what an earlier one has loaded.
Placement loading_ahead(Placement placement) {
  for (schedules::Phase& phase : placement.loop) {
    for (schedules::PhaseItem& item : phase.items) {
      for (schedules::Stream& stream : item.streams) {
        for (schedules::StageRef& ref : stream.stages) ref.lead += ref.stage.starts_with("load_") ? placement.trip : 0;
      }
    }
  }
  return placement;
}

std::vector<Loop> loops() {
  const Placement pingpong = schedules::parse_placement(kPingpong).value();
  const Placement wide = schedules::parse_placement(kFp8WideNaive).value();
  const Placement paced = schedules::parse_placement(kFp8WidePaced).value();
  const Placement pairs =
      schedules::with_two_iterations(schedules::parse_placement(schedules::kFp8NaivePlacement).value());
  return {
      {"wide", wide, 1},
      {"wide_ahead_2", with_copies(loading_ahead(wide), 2, 2, 2), 2},
      {"wide_ahead_6", with_copies(loading_ahead(wide), 2, 3, 2), 6},
      {"wide_3", paced, 3},
      {"wide_4", with_copies(paced, 4, 4, 4), 4},
      {"pingpong_3", with_copies(pingpong, 3, 3, 3), 3},
      {"pingpong_4", with_copies(pingpong, 4, 4, 4), 4},
      {"pingpong_12", with_copies(pingpong, 4, 3, 4), 12},
      {"pairs_2", with_copies(pairs, 2, 2, 2), 2},
      {"pairs_4", with_copies(pairs, 4, 2, 4), 4},
      {"pairs_ahead_4", with_copies(loading_ahead(pairs), 4, 4, 4), 4},
      {"pairs_6", with_copies(pairs, 2, 6, 2), 6},
  };
}

class Fp8Iterations : public testing::TestWithParam<Loop> {};

TEST_P(Fp8Iterations, LeaveTheLoopFromEveryCopy) {
  static const auto device = sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 2}).value();
  Fp8Case c{.query_length = 40, .spec = fp8_spec(), .placement = "fp8_naive", .spread = 3.0};
  const auto algorithm = schedules::attention_forward_fp8(c.spec, GetParam().placement);
  ASSERT_TRUE(algorithm) << to_string(algorithm.error());
  const auto plan = schedules::make_plan(*algorithm, GetParam().placement);
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->unroll, GetParam().unroll);
  ASSERT_LE(plan->unroll, kMostUnrolled);
  const std::int64_t most = 2 * GetParam().unroll + 2;
  for (std::int64_t iterations = 0; iterations <= most; ++iterations) {
    // The last iteration in full, or one key of it.
    c.key_length = iterations * kIterationKeys - (iterations % 2 == 1 ? kIterationKeys - 1 : 0);
    c.placement = "fp8_naive";
    const Fp8Inputs in = make_fp8_inputs(c);
    const Expected<Fp8Output> expected = launch_fp8_case(c, in, *device);
    ASSERT_TRUE(expected) << to_string(expected.error());
    c.placement = schedules::unparse(GetParam().placement);
    const Expected<Fp8Output> output = launch_fp8_case(c, in, *device);
    ASSERT_TRUE(output) << iterations << " iterations\n" << to_string(output.error());
    EXPECT_EQ(output->o, expected->o) << iterations << " iterations";
    EXPECT_EQ(lse_bits(*output), lse_bits(*expected)) << iterations << " iterations";
    EXPECT_TRUE(output->outside_untouched) << iterations << " iterations";
  }
}

INSTANTIATE_TEST_SUITE_P(Loops, Fp8Iterations, testing::ValuesIn(loops()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zyfa::tests
