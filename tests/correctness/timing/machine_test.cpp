// How waves share a compute unit, by small traces whose times follow from the rules by hand, and what a run refuses.
#include <gtest/gtest.h>

#include "runtime/sim/timing/steady.h"
#include "tests/correctness/timing/micro.h"
#include "tests/correctness/timing/weave.h"

namespace zyfa::sim_test {
namespace {

using namespace sim::timing;

std::vector<std::uint64_t> issues(const CuResult& result, std::uint32_t wave) {
  std::vector<std::uint64_t> times;
  for (const Event& e : result.events)
    if (e.wave == wave) times.push_back(e.issue);
  return times;
}

// Waves 0 and 4 share SIMD 0; the others have nothing to do.
std::vector<Steps> pair(std::string_view a, std::string_view b) {
  return {micro().steps(a), {}, {}, {}, micro().steps(b)};
}

TEST(Machine, WavesAlternateAtThePort) {
  const auto result = run_waves(pair("add*4", "add*4"));
  EXPECT_EQ(issues(result, 0), (std::vector<std::uint64_t>{0, 8, 16, 24}));
  EXPECT_EQ(issues(result, 4), (std::vector<std::uint64_t>{4, 12, 20, 28}));
  EXPECT_EQ(result.waves[4].stalls[static_cast<std::size_t>(Stall::kPriority)] +
                result.waves[4].stalls[static_cast<std::size_t>(Stall::kValuPort)],
            16u);
}

TEST(Machine, OldestFirst) {
  Parameters p;
  p.oldest_first = 1;
  const auto result = run_waves(pair("add*4", "add*4"), p);
  EXPECT_EQ(issues(result, 0), (std::vector<std::uint64_t>{0, 4, 8, 12}));
  EXPECT_EQ(issues(result, 4), (std::vector<std::uint64_t>{16, 20, 24, 28}));
}

TEST(Machine, HigherPriorityWins) {
  const auto result = run_waves(pair("add*6", "prio1 add*4"));
  // The other wave has issued once when the priority holds, from 4 on.
  EXPECT_EQ(issues(result, 4), (std::vector<std::uint64_t>{0, 4, 8, 12, 16}));
  EXPECT_EQ(issues(result, 0), (std::vector<std::uint64_t>{0, 20, 24, 28, 32, 36}));
}

TEST(Machine, CategoriesOfDifferentWavesIssueTogether) {
  const auto result =
      run_waves({micro().steps("add*3"), {}, {}, {}, micro().steps("read128*3"), {}, {}, {}, micro().steps("salu*3")});
  for (const std::uint32_t wave : {0u, 4u, 8u})
    EXPECT_EQ(issues(result, wave), (std::vector<std::uint64_t>{0, 4, 8})) << wave;
}

TEST(Machine, LdsAndVectorMemoryShareAPort) {
  Parameters p;
  EXPECT_EQ(issues(run_waves(pair("read128", "load4"), p), 4), (std::vector<std::uint64_t>{4}));
  p.shared_memory_port = 0;
  EXPECT_EQ(issues(run_waves(pair("read128", "load4"), p), 4), (std::vector<std::uint64_t>{0}));
}

// An FP8 MFMA holds the port 12 cycles against the other wave too, unless the switch says otherwise.
TEST(Machine, HoldOfTheOtherWave) {
  Parameters p;
  EXPECT_EQ(issues(run_waves(pair("fp8_32", "add"), p), 4), (std::vector<std::uint64_t>{12}));
  p.hold_other_wave = 0;
  EXPECT_EQ(issues(run_waves(pair("fp8_32", "add"), p), 4), (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(issues(run_waves({micro().steps("fp8_32 add")}, p), 0), (std::vector<std::uint64_t>{0, 12}));
}

TEST(Machine, HoldUnderTrans) {
  Parameters p;
  EXPECT_EQ(issues(run_waves(pair("exp", "fp8_32"), p), 4), (std::vector<std::uint64_t>{8}));
  p.hold_hides_under_trans = 1;
  EXPECT_EQ(issues(run_waves(pair("exp", "fp8_32"), p), 4), (std::vector<std::uint64_t>{4}));
}

// A packed instruction of the other wave takes 5 cycles from the pipe: the next MFMA starts at 69.
TEST(Machine, PackedTakesMatrixCycles) {
  const auto result = run_waves(pair("fp8_32*2", "pk_fma"));
  EXPECT_EQ(issues(result, 4), (std::vector<std::uint64_t>{12}));
  for (const Event& e : result.events)
    if (e.wave == 0 && e.issue > 0) {
      EXPECT_EQ(e.unit_start, 69u);
    }
}

TEST(Machine, BarrierReleasesAfterTheLast) {
  const auto result = run_waves({micro().steps("add barrier add"), micro().steps("add*5 barrier add")});
  // Wave 1 arrives at 21, on the turns of SIMD 1; 16 later both go on, at their turns.
  EXPECT_EQ(issues(result, 1).back(), 37u);
  EXPECT_EQ(issues(result, 0).back(), 40u);
  EXPECT_EQ(result.waves[0].stalls[static_cast<std::size_t>(Stall::kBarrier)], 36u);
  for (const Event& e : result.events)
    if (e.op == micro().op("barrier")) {
      EXPECT_EQ(e.end, 37u);
    }
}

TEST(Machine, EndedWavesHaveArrived) {
  const auto result = run_waves({micro().steps("barrier add"), micro().steps("add*9")});
  EXPECT_EQ(result.waves[0].instructions, 2u);
  EXPECT_GE(issues(result, 0).back(), 37u + 16);
}

// The wait lets 16 loads be out: it ends with the fourth of 20, whose result is 1,000 after its turn in the path.
TEST(Machine, WaitForVectorMemory) {
  const auto result = run_waves({micro().steps("load4*12 wait_vm8 add")});
  EXPECT_EQ(issues(result, 0).back(), 4 * 16u + 1000);
  EXPECT_EQ(result.events[12].stall, Stall::kVmemWait);
}

TEST(Machine, WaitForScalarLoads) {
  const auto result = run_waves({micro().steps("read128 smem wait_lgkm add")});
  EXPECT_EQ(issues(result, 0).back(), 4 + 760u);
  EXPECT_EQ(result.events[2].stall, Stall::kSmemWait);
}

// 44 KB: the 45th load waits for the first.
TEST(Machine, BytesInFlight) {
  const auto result = run_waves({micro().steps("load4*46")});
  EXPECT_LT(issues(result, 0)[43], 800u);
  EXPECT_EQ(issues(result, 0)[44], 16 + 1000u);
  EXPECT_EQ(result.events[44].stall, Stall::kVmemQueue);
}

TEST(Machine, WorkgroupsFollowEachOther) {
  GroupTrace group;
  group.waves.assign(4, {.steps = repeat(micro().steps("add"), 100), .addresses = {}});
  GroupTrace second = group;
  second.id = {7, 8, 9};
  CuRun run{.program = &micro().program(), .groups = {&group, &second}, .resident = 1, .events = EventLog::kOff};
  const auto serial = run_cu(run, {});
  run.resident = 2;
  const auto together = run_cu(run, {});
  ASSERT_TRUE(serial.has_value() && together.has_value());
  EXPECT_EQ(serial->waves[4].workgroup, (std::array<std::uint32_t, 3>{7, 8, 9}));
  EXPECT_GE(serial->waves[4].start, 400u);
  EXPECT_EQ(together->waves[4].start, 0u);
  EXPECT_EQ(together->waves[4].simd, 0u);
  // One port either way.
  EXPECT_NEAR(static_cast<double>(serial->cycles), 800, 12);
  EXPECT_NEAR(static_cast<double>(together->cycles), 800, 12);
  EXPECT_TRUE(serial->events.empty());
}

TEST(Machine, BusyCounts) {
  const auto result = run_waves({micro().steps("fp8_32*3 exp*2 add salu read128*4 load4")});
  EXPECT_EQ(result.busy.matrix[0], 192u);
  EXPECT_EQ(result.busy.valu[0], 20u);
  EXPECT_EQ(result.busy.trans[0], 16u);
  EXPECT_EQ(result.busy.scalar, 4u);
  EXPECT_EQ(result.busy.lds, 16u);
  EXPECT_EQ(result.busy.l1, 16u);
  EXPECT_EQ(result.busy.valu[1], 0u);
}

TEST(Machine, Refuses) {
  const auto refused = [](const CuRun& run, std::string_view says) {
    const auto result = run_cu(run, {});
    ASSERT_FALSE(result.has_value()) << says;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message.find(says), std::string::npos) << result.error().message;
  };
  GroupTrace group, wide, wrong;
  group.waves.resize(4);
  wide.waves.resize(33);
  wrong.waves.push_back({.steps = {{1u << 20, 0}}, .addresses = {}});
  const sim::Program& program = micro().program();
  refused({.program = nullptr, .groups = {&group}}, "a program");
  refused({.program = &program, .groups = {}}, "0 workgroups");
  refused({.program = &program, .groups = {&group}, .resident = 0}, "0 resident");
  refused({.program = &program, .groups = {&wide}}, "33 waves; a compute unit holds 1 to 32");
  refused({.program = &program, .groups = {&group}, .resident = 9}, "9 resident workgroups of 4 waves");
  refused({.program = &program, .groups = {&wrong}}, "instruction 1048576");
}

}  // namespace
}  // namespace zyfa::sim_test
