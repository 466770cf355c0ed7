// LDS and vector memory against microbenchmarks and a tile model (3.1, 3.2; docs/performance-model.md, calibration).
#include <gtest/gtest.h>

#include "tests/correctness/timing/micro.h"
#include "tests/correctness/timing/weave.h"

namespace zyfa::sim_test {
namespace {

// Cycles of one of 400 instructions in each of `waves` waves, one a SIMD.
double rate(std::string_view name, unsigned waves) {
  const auto result = run_waves(std::vector<Steps>(waves, repeat(micro().steps(name), 400)));
  std::uint64_t first = 0, last = 0;
  for (const auto& e : result.events)
    if (e.wave == 0) (first == 0 && e.issue > 1000 ? first : last) = e.issue;
  std::uint64_t count = 0;
  for (const auto& e : result.events) count += e.wave == 0 && e.issue > first;
  return static_cast<double>(last - first) / static_cast<double>(count);
}

// T15
TEST(Lds, ServiceByConflictsAndSimds) {
  EXPECT_NEAR(rate("read128", 1), 8, 0.05);
  EXPECT_NEAR(rate("read128_2way", 1), 8, 0.05);
  EXPECT_NEAR(rate("read128_4way", 1), 16, 0.1);
  EXPECT_NEAR(rate("read128_8way", 1), 32, 0.1);
  EXPECT_NEAR(rate("read128_odd", 1), 64, 0.2);
  EXPECT_NEAR(rate("read128", 4), 16, 0.1);
  EXPECT_NEAR(rate("read128_2way", 4), 32, 0.1);
  EXPECT_NEAR(rate("read128_4way", 4), 64, 0.2);
  EXPECT_NEAR(rate("read128_8way", 4), 128, 0.4);
  EXPECT_NEAR(rate("read128_odd", 4), 256, 0.8);
  EXPECT_NEAR(rate("read64", 4), 8, 0.1);
  EXPECT_NEAR(rate("read_tr16", 4), 8, 0.1);
  EXPECT_NEAR(rate("read_tr8", 4), 8, 0.1);
  EXPECT_NEAR(rate("write64", 4), 16, 0.1);  // 128 bytes a clock
}

// The first reads issue every 4 cycles while the pair's queue has room.
TEST(Lds, QueueTakesEight) {
  const auto result = run_waves({repeat(micro().steps("read128_8way"), 12)});
  ASSERT_EQ(result.events.size(), 13u - 1);
  for (unsigned i = 1; i < 8; ++i) EXPECT_EQ(result.events[i].issue - result.events[i - 1].issue, 4u) << i;
  EXPECT_EQ(result.events[9].issue - result.events[8].issue, 32u);
  EXPECT_EQ(result.events[10].stall, sim::timing::Stall::kLdsQueue);
}

// Data that a direct-to-LDS load brings takes LDS time from reads: 1,024 bytes at 128 a clock.
TEST(Lds, DirectLoadsTakeBandwidth) {
  const Steps reads = repeat(micro().steps("read128"), 4000);
  const Steps loads = repeat(micro().steps("load_lds"), 200);
  const std::vector<Steps> waves(4, reads);
  const auto alone = run_waves(waves);
  std::vector<Steps> with = waves;
  with.push_back(loads);
  const auto both = run_waves(with);
  EXPECT_NEAR(static_cast<double>(both.cycles - alone.cycles), 200 * 8.0, 40);
}

// 3.2: 16 cycles for dwordx4 and dwordx2, 4 for dword, in the path that the CU shares.
TEST(Vmem, PathCycles) {
  for (const auto& [name, cycles] : {std::pair{"load4", 16.0}, {"load2", 16.0}, {"load1", 4.0}, {"store4", 16.0}}) {
    const auto result = run_waves(std::vector<Steps>(4, micro().steps(std::string(name) + "*8")));
    EXPECT_EQ(static_cast<double>(result.busy.l1), 32 * cycles) << name;
  }
  // The path is the limit while less than 44 KB are out: 44 loads.
  const auto result = run_waves({micro().steps("load4*40")});
  EXPECT_EQ(result.events[39].issue - result.events[30].issue, 9u * 16);
}

// T16: in-loop matrix efficiency of bf16 GEMM tiles of BK = 64, 4 waves, loads spread evenly.
TEST(Vmem, TilesOfAGemm) {
  const struct {
    unsigned m, n;
    double percent;  // measured
  } tiles[] = {{256, 256, 96}, {128, 128, 69}, {256, 64, 55}, {64, 256, 57}, {128, 64, 47}, {64, 128, 47}};
  for (const auto& tile : tiles) {
    const unsigned mfmas = tile.m * tile.n * 64 / (16 * 16 * 32 * 4), loads = (tile.m + tile.n) * 64 * 2 / 1024 / 4;
    const Steps body =
        weave({micro().steps("bf16_16*" + std::to_string(mfmas)), micro().steps("load_lds*" + std::to_string(loads))});
    const auto cycles = [&](unsigned times) {
      return static_cast<double>(run_waves(std::vector<Steps>(4, repeat(body, times))).cycles);
    };
    const double percent = 100.0 * 16 * mfmas * 60 / (cycles(80) - cycles(20));
    EXPECT_NEAR(percent, tile.percent, 4) << tile.m << "x" << tile.n;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
