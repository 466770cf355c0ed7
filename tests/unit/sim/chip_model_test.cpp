// The chip step of the cycle model, against calculations by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/sim/timing/chip_model.h"

namespace zyfa::sim::timing {
namespace {

using testing::HasSubstr;

Occupancy fits(unsigned waves, unsigned vgprs, unsigned lds) {
  const auto result = occupancy(waves, vgprs, lds);
  EXPECT_TRUE(result.has_value()) << waves << " " << vgprs << " " << lds;
  return result.value_or(Occupancy{});
}

TEST(ChipOccupancy, IsTheScarcestResource) {
  // 8 waves, 2 a SIMD, of 256 registers: all of the 512.
  EXPECT_EQ(fits(8, 256, 65536).resident(), 1u);
  EXPECT_EQ(fits(8, 256, 65536).limit(), "registers");
  // 128 registers: 4 waves a SIMD, two workgroups of 8; LDS would hold 163,840 / 66,560 = 2.
  EXPECT_EQ(fits(8, 128, 66560).resident(), 2u);
  // The largest LDS of which two fit is 81,920 = 64 granules of 1,280 bytes.
  EXPECT_EQ(fits(8, 64, 81920).resident(), 2u);
  EXPECT_EQ(fits(8, 64, 81921).resident(), 1u);
  EXPECT_EQ(fits(8, 64, 81921).limit(), "LDS");
  // 8 waves a SIMD at most, 32 on the compute unit.
  EXPECT_EQ(fits(4, 32, 0).resident(), 8u);
  EXPECT_EQ(fits(1, 16, 0).resident(), 32u);
  EXPECT_EQ(fits(1, 64, 0).resident(), 32u);
  // 65 registers are 72: 7 waves a SIMD, 28 on the compute unit.
  EXPECT_EQ(fits(1, 65, 0).resident(), 28u);
  EXPECT_EQ(fits(1, 65, 0).limit(), "registers");
}

TEST(ChipOccupancy, RefusesWhatDoesNotFit) {
  const auto registers = occupancy(8, 257, 0);
  ASSERT_FALSE(registers.has_value());
  EXPECT_EQ(registers.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(registers.error().message, HasSubstr("8 waves with 257 VGPRs each and 0 bytes of LDS does not fit"));
  EXPECT_FALSE(occupancy(1, 8, 163841).has_value());
  EXPECT_FALSE(occupancy(0, 8, 0).has_value());
  EXPECT_FALSE(occupancy(33, 8, 0).has_value());
}

TEST(ChipDealing, OneRoundOfEqualWorkgroups) {
  const ChipTime time = deal_workgroups(std::vector<double>(256, 1000), 1);
  EXPECT_EQ(time.cycles, 1000u);
  EXPECT_EQ(time.first_idle, 1000u);
  EXPECT_EQ(time.longest, 1000u);
  EXPECT_DOUBLE_EQ(time.busy, 1);
  EXPECT_DOUBLE_EQ(time.imbalance, 1);
}

TEST(ChipDealing, OneWorkgroupMoreCostsARound) {
  const ChipTime time = deal_workgroups(std::vector<double>(257, 1000), 1);
  EXPECT_EQ(time.cycles, 2000u);
  EXPECT_EQ(time.first_idle, 1000u);
  EXPECT_DOUBLE_EQ(time.busy, 257.0 / 512);
  EXPECT_DOUBLE_EQ(time.imbalance, 33.0 * 8 / 257);
}

TEST(ChipDealing, FewWorkgroupsLeaveComputeUnitsIdle) {
  const ChipTime time = deal_workgroups({100, 300, 200}, 1);
  EXPECT_EQ(time.cycles, 300u);
  EXPECT_EQ(time.first_idle, 0u);
  EXPECT_DOUBLE_EQ(time.busy, 600.0 / (300 * 256));
  EXPECT_DOUBLE_EQ(time.imbalance, 300.0 * 8 / 600);
}

// 8 XCDs: every eighth workgroup is long and all long ones meet on XCD 0. 64 of them on 32 compute units.
TEST(ChipDealing, RoundRobinCanLoadOneXcd) {
  std::vector<double> cycles(512, 100);
  for (std::size_t n = 0; n < cycles.size(); n += 8) cycles[n] = 900;
  const ChipTime time = deal_workgroups(cycles, 1);
  EXPECT_EQ(time.cycles, 1800u);
  EXPECT_EQ(time.first_idle, 200u);
  EXPECT_DOUBLE_EQ(time.imbalance, 900.0 * 8 / (900 + 7 * 100));
}

// One XCD (workgroups of the others take no time): 31 of 500, then 100, 400, 50. The 32nd compute unit takes 100, then
// 400 to 500, and the next goes to the first that is free at 500: end 550.
TEST(ChipDealing, TheNextGoesToTheFirstFreeComputeUnit) {
  std::vector<double> cycles;
  const auto add = [&](double value) {
    cycles.push_back(value);
    cycles.insert(cycles.end(), 7, 0.0);
  };
  for (int i = 0; i < 31; ++i) add(500);
  for (const double value : {100.0, 400.0, 50.0}) add(value);
  EXPECT_EQ(deal_workgroups(cycles, 1).cycles, 550u);
  // Longest last: 100 + 50 + 400 on one.
  std::swap(cycles[8 * 32], cycles[8 * 33]);
  EXPECT_EQ(deal_workgroups(cycles, 1).cycles, 550u);
  cycles[8 * 33] = 401;
  EXPECT_EQ(deal_workgroups(cycles, 1).cycles, 551u);
}

// Two slots a compute unit: 64 an XCD. Workgroups spread before they share.
TEST(ChipDealing, ResidentWorkgroupsShareComputeUnits) {
  EXPECT_EQ(deal_workgroups(std::vector<double>(512, 1000), 2).cycles, 1000u);
  EXPECT_EQ(deal_workgroups(std::vector<double>(513, 1000), 2).cycles, 2000u);
  const ChipTime spread = deal_workgroups(std::vector<double>(256, 1000), 2);
  EXPECT_EQ(spread.first_idle, 1000u);  // every compute unit has one
  EXPECT_DOUBLE_EQ(spread.busy, 0.5);
}

TEST(ChipDealing, NothingTakesNoTime) {
  EXPECT_EQ(deal_workgroups({}, 1).cycles, 0u);
  EXPECT_EQ(deal_workgroups({0, 0}, 1).imbalance, 0);
}

TEST(ChipMemory, TimesByLevel) {
  // 17 GB asked for, 1.7 GB of them distinct: more than the Infinity Cache holds, so XCDs that fetch the same bytes
  // read them from HBM each.
  const MemoryTimes times = memory_times({.requested = 17e9, .unique = 1.7e9});
  EXPECT_DOUBLE_EQ(times.l2_cycles, 17e9 / 16384);
  EXPECT_DOUBLE_EQ(times.mall_seconds_least, 1e-4);
  EXPECT_DOUBLE_EQ(times.mall_seconds_most, 8e-4);
  EXPECT_DOUBLE_EQ(times.hbm_seconds, 8 * 1.7e9 / 8e12);
  // 100 MB fit.
  EXPECT_DOUBLE_EQ(memory_times({.requested = 1e9, .unique = 1e8}).hbm_seconds, 1e8 / 8e12);
  // Never more than what was asked for.
  EXPECT_DOUBLE_EQ(memory_times({.requested = 3.4e9, .unique = 1.7e9}).mall_seconds_most, 2e-4);
  EXPECT_DOUBLE_EQ(memory_times({.requested = 1e8, .unique = 1e9}).hbm_seconds, 1e8 / 8e12);
}

TEST(ChipClock, FollowsThePublishedFits) {
  // 2,493.5 - 9.8 * 90 = 1,611.5 MHz; joint 2,714 - 12.4 * 90 = 1,598.
  const Clock clock = power_clock(90);
  EXPECT_NEAR(clock.ghz, 1.6115, 1e-9);
  EXPECT_NEAR(clock.low, 1.598 * 0.96, 1e-9);
  EXPECT_NEAR(clock.high, 1.6115 * 1.04, 1e-9);
  // The peak caps it: 2,493.5 - 49 = 2,444.5.
  EXPECT_EQ(power_clock(5).ghz, 2.4);
  EXPECT_EQ(power_clock(5).high, 2.4);
  EXPECT_NEAR(power_clock(5).low, 2.4445 * 0.96, 1e-9);
}

TEST(ChipClock, FixedIsOfTheChipsRange) {
  EXPECT_EQ(fixed_clock(1.8)->ghz, 1.8);
  EXPECT_EQ(fixed_clock(2.4)->high, 2.4);
  for (const double wrong : {0.0, 1e-300, 0.09, -1.0, 2.41, 1e300, std::nan("")}) {
    const auto clock = fixed_clock(wrong);
    ASSERT_FALSE(clock.has_value()) << wrong;
    EXPECT_THAT(clock.error().message, HasSubstr("allowed are 0.1 to 2.4 GHz"));
  }
}

}  // namespace
}  // namespace zyfa::sim::timing
