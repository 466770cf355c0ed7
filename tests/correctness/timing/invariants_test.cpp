// What must be true of any run, over random traces: order, turns, units that hold one thing at a time, waits, barriers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/sim/launch_capture.h"
#include "runtime/sim/sim_device.h"
#include "runtime/sim/timing/op_cost.h"
#include "runtime/sim/timing/steady.h"
#include "tests/correctness/fp8/harness.h"
#include "tests/correctness/timing/micro.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using namespace sim::timing;

constexpr const char* kNames[] = {"fp8_32",  "fp8_16",   "bf16_32", "scale_fp8_32", "smfmac_16", "f64_16",  "add",
                                  "fma",     "exp",      "rcp",     "pk_fma",       "dot2",      "swap",    "salu",
                                  "smem",    "nop0",     "nop7",    "barrier",      "prio0",     "prio1",   "wait_lgkm",
                                  "wait_vm", "wait_vm8", "read128", "read_tr8",     "read_own",  "write64", "load4",
                                  "load1",   "load_lds", "store4"};

GroupTrace random_group(std::mt19937& random, std::uint32_t number) {
  GroupTrace group;
  group.id = {number, 0, 0};
  const unsigned waves = 1 + random() % 8;
  for (unsigned w = 0; w < waves; ++w) {
    WaveTrace& wave = group.waves.emplace_back();
    for (unsigned i = random() % 300; i > 0; --i) {
      const Steps one = micro().steps(kNames[random() % std::size(kNames)]);
      wave.steps.insert(wave.steps.end(), one.begin(), one.end());
    }
  }
  return group;
}

struct Interval {
  std::uint64_t from, to;
};
void expect_disjoint(std::vector<Interval> intervals, const char* what) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.from < b.from; });
  for (std::size_t i = 1; i < intervals.size(); ++i) EXPECT_LE(intervals[i - 1].to, intervals[i].from) << what;
}

// Each wave's instructions in its order, at its SIMD's turns, one at a time unless they are internal.
void check_order(const CuResult& result, const std::vector<const WaveTrace*>& traces,
                 const std::vector<OpCost>& costs) {
  std::vector<std::size_t> next(traces.size(), 0);
  std::vector<std::uint64_t> last(traces.size(), 0);
  std::uint64_t before = 0;
  for (const Event& e : result.events) {
    EXPECT_LE(before, e.issue);
    before = e.issue;
    ASSERT_LT(next[e.wave], traces[e.wave]->steps.size());
    EXPECT_EQ(e.op, traces[e.wave]->steps[next[e.wave]++].op);
    EXPECT_EQ(e.issue % 4, result.waves[e.wave].simd);
    if (costs[e.op].category != Category::kInternal) {
      EXPECT_LT(last[e.wave], e.issue + 1);
      last[e.wave] = e.issue + 4;
    }
  }
  for (std::size_t w = 0; w < traces.size(); ++w) EXPECT_EQ(next[w], traces[w]->steps.size()) << w;
}

void check_units(const CuResult& result, const std::vector<OpCost>& costs) {
  std::map<std::uint32_t, std::vector<Interval>> matrix, vector;
  std::set<std::tuple<std::uint32_t, std::uint64_t, Category>> turns;
  for (const Event& e : result.events) {
    const OpCost& c = costs[e.op];
    const std::uint32_t simd = result.waves[e.wave].simd;
    if (c.kind == Kind::kMatrix) matrix[simd].push_back({e.unit_start, e.end});
    if (c.port > 0) vector[simd].push_back({e.issue, e.end});
    if (c.kind == Kind::kMatrix) vector[simd].push_back({e.issue, e.issue + c.hold});
    const Category category = c.category == Category::kVmem ? Category::kLds : c.category;
    if (category != Category::kInternal) {
      EXPECT_TRUE(turns.insert({simd, e.issue, category}).second) << e.issue;
    }
  }
  for (auto& [simd, intervals] : matrix) expect_disjoint(intervals, "matrix pipe");
  for (auto& [simd, intervals] : vector) expect_disjoint(intervals, "VALU port");
  for (std::uint32_t s = 0; s < kSimds; ++s) EXPECT_LE(result.busy.valu[s], result.cycles + 64);
}

// After a wait for everything, everything asked for before is there.
void check_waits(const CuResult& result, const std::vector<OpCost>& costs) {
  std::map<std::uint32_t, std::uint64_t> lgkm, vm;
  for (const Event& e : result.events) {
    const OpCost& c = costs[e.op];
    if (c.category == Category::kLds || c.kind == Kind::kSmem) lgkm[e.wave] = std::max(lgkm[e.wave], e.end);
    if (c.kind == Kind::kVmem) {
      EXPECT_GE(e.end, vm[e.wave]) << "in order";
      vm[e.wave] = e.end;
    }
    if (c.kind != Kind::kWait) continue;
    if (c.lgkmcnt == 0) {
      EXPECT_GE(e.issue, lgkm[e.wave]);
    }
    if (c.vmcnt == 0) {
      EXPECT_GE(e.issue, vm[e.wave]);
    }
  }
}

// Nobody passes barrier k of its workgroup before all who still run have reached it.
void check_barriers(const CuResult& result, const std::vector<OpCost>& costs, const Parameters& parameters) {
  std::map<std::uint32_t, std::vector<Interval>> arrivals;  // by wave: arrival and release
  for (const Event& e : result.events)
    if (costs[e.op].kind == Kind::kBarrier) arrivals[e.wave].push_back({e.issue, e.end});
  for (const auto& [a, mine] : arrivals) {
    for (const auto& [b, theirs] : arrivals) {
      if (result.waves[a].workgroup != result.waves[b].workgroup) continue;
      for (std::size_t k = 0; k < std::min(mine.size(), theirs.size()); ++k)
        EXPECT_GE(mine[k].to, theirs[k].from + parameters.barrier_cycles);
    }
  }
}

// A captured workgroup of a shipped kernel, on a program whose branches the trace follows.
TEST(Invariants, ShippedKernels) {
  for (const char* placement : {"fp8_naive", "fp8_pingpong"}) {
    const auto device = sim::make_sim_device().value();
    SimOptions options = device->options();
    options.capture = SimCapture{};
    check(device->set_options(options));
    const tests::Fp8Case c{.query_length = 256, .key_length = 2000, .spec = tests::fp8_spec(), .placement = placement};
    const auto output = tests::launch_fp8_case(c, tests::make_fp8_inputs(c), *device);
    ASSERT_TRUE(output) << to_string(output.error());
    const auto capture = sim::last_capture(*device);
    ASSERT_NE(capture, nullptr);
    CuRun run{.program = &capture->kernel->program(), .groups = {}, .resident = 1, .events = EventLog::kOn};
    std::vector<const WaveTrace*> traces;
    for (const GroupTrace& group : capture->groups) {
      run.groups.push_back(&group);
      for (const WaveTrace& wave : group.waves) traces.push_back(&wave);
    }
    const auto result = run_cu(run, {});
    ASSERT_TRUE(result) << to_string(result.error());
    const auto costs = op_costs(*run.program, {});
    check_order(*result, traces, costs);
    check_units(*result, costs);
    check_waits(*result, costs);
    check_barriers(*result, costs, {});
    const auto steady = steady_loop(*run.program, *result);
    ASSERT_TRUE(steady) << to_string(steady.error());
    EXPECT_GE(steady->trip_cycles, steady->matrix_cycles * (traces.size() / capture->groups.size() > 4 ? 2 : 1));
  }
}

TEST(Invariants, RandomTraces) {
  std::mt19937 random(20261130);
  for (unsigned trial = 0; trial < 60; ++trial) {
    std::vector<GroupTrace> groups;
    for (std::uint32_t g = 0; g < 1 + trial % 5; ++g) groups.push_back(random_group(random, g));
    Parameters p;
    p.oldest_first = trial % 2;
    p.waitcnt_cycles = trial % 3 == 0 ? 4 : 0;
    CuRun run{.program = &micro().program(), .groups = {}, .resident = 1 + trial % 4, .events = EventLog::kOn};
    std::vector<const WaveTrace*> traces;
    for (const GroupTrace& group : groups) {
      run.groups.push_back(&group);
      for (const WaveTrace& wave : group.waves) traces.push_back(&wave);
    }
    const auto result = run_cu(run, p);
    ASSERT_TRUE(result.has_value()) << to_string(result.error());
    ASSERT_EQ(result->waves.size(), traces.size());
    const auto costs = op_costs(micro().program(), p);
    check_order(*result, traces, costs);
    check_units(*result, costs);
    check_waits(*result, costs);
    check_barriers(*result, costs, p);
    const auto again = run_cu(run, p);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->cycles, result->cycles);
    run.events = EventLog::kOff;
    EXPECT_EQ(run_cu(run, p)->cycles, result->cycles);
    if (HasFailure()) FAIL() << "trial " << trial;
  }
}

// A wave's time is its instructions' turns and its stalls: nothing is lost. Of a lone wave without internal
// instructions.
TEST(Invariants, StallsAddUp) {
  for (const char* text : {"fp8_32*3 add*5 pk_fma exp*2 add", "read128*30 wait_lgkm add*4", "load4*60 wait_vm add*2",
                           "add read_own wait_lgkm exp*9"}) {
    const Steps steps = micro().steps(text);
    const auto result = run_waves({steps});
    const auto costs = op_costs(micro().program(), {});
    std::uint64_t turns = 0, stalled = 0;
    for (const auto& s : steps) turns += costs[s.op].category != Category::kInternal;
    for (const std::uint64_t cycles : result.waves[0].stalls) stalled += cycles;
    EXPECT_EQ(result.cycles, 4 * turns + stalled) << text;
    std::uint64_t by_event = 0;
    for (const Event& e : result.events) by_event += e.stalled;
    EXPECT_EQ(by_event, stalled) << text;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
