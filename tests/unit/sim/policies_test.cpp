// When loads land and which wave runs next (SimLanding, SimInterleave): programs whose result tells, by hand
// calculation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using testing::Each;
using testing::ElementsAre;

// s[4:5] input (lane + 100), s[6:7] output, v1 = 4 * work-item, v0 = work-item.
constexpr char kStart[] =
    "s_load_dwordx4 s[4:7], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n";

struct Program {
  SimOptions options{};
  unsigned waves = 1, groups = 1, outputs = 64;

  std::vector<u32> operator()(const std::string& code) const {
    std::vector<u32> values(64 * waves);
    for (u32 l = 0; l < values.size(); ++l) values[l] = l + 100;
    const auto device = sim::make_sim_device(options).value();
    const Buffer<u32> in(*device, values), out(*device, std::vector<u32>(outputs, 0));
    check(sim_test::run(*device, assemble_kernel(kStart + code, {.lds = 4096, .workgroup = 64 * waves}), "k",
                        {.grid = {groups, 1, 1}, .block = {64 * waves, 1, 1}}, Args().add(in).add(out)));
    return out.read();
  }
};

SimOptions landing(SimLanding policy, std::uint64_t seed = 0) {
  SimOptions o;
  o.landing = policy;
  o.landing_seed = seed;
  return o;
}
SimOptions interleave(SimInterleave policy, std::uint64_t seed = 0) {
  SimOptions o;
  o.interleave = policy;
  o.interleave_seed = seed;
  return o;
}

std::vector<u32> run(const SimOptions& options, const std::string& code) { return Program{.options = options}(code); }

constexpr char kStore[] = "s_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v1, v41, s[6:7]";

// v41 takes v40 before the wait; v40 was 7.
std::string unwaited(const std::string& load) {
  return "v_mov_b32 v40, 7\n" + load + "\nv_mov_b32 v41, v40\n" + kStore;
}

TEST(Landing, VectorLoad) {
  const std::string code = unwaited("global_load_dword v40, v1, s[4:5]");
  EXPECT_THAT(run(landing(SimLanding::kLate), code), Each(7u));
  EXPECT_THAT(run(landing(SimLanding::kLatest), code), Each(7u));
  EXPECT_EQ(run(landing(SimLanding::kEarly), code)[5], 105u);
}

TEST(Landing, LdsRead) {
  const std::string code = unwaited("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nds_read_b32 v40, v1");
  EXPECT_THAT(run(landing(SimLanding::kLatest), code), Each(7u));
  EXPECT_EQ(run(landing(SimLanding::kLate), code)[5], 5u);
  EXPECT_EQ(run(landing(SimLanding::kEarly), code)[5], 5u);
}

TEST(Landing, ScalarLoad) {
  const std::string code = "s_mov_b32 s20, 7\ns_load_dword s20, s[4:5], 0\nv_mov_b32 v41, s20\n" + std::string(kStore);
  EXPECT_THAT(run(landing(SimLanding::kLate), code), Each(7u));
  EXPECT_THAT(run(landing(SimLanding::kEarly), code), Each(100u));
}

TEST(Landing, DirectToLdsLoad) {
  const std::string code =
      "v_mov_b32 v2, 7\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_mov_b32 m0, 0\ns_nop 0\n"
      "global_load_lds_dword v1, s[4:5]\nds_read_b32 v41, v1\n" +
      std::string(kStore);
  EXPECT_THAT(run(landing(SimLanding::kLate), code), Each(7u));
  EXPECT_EQ(run(landing(SimLanding::kEarly), code)[5], 105u);
}

TEST(Landing, RandomIsBetweenAndFollowsItsSeed) {
  const std::string code = unwaited("global_load_dword v40, v1, s[4:5]");
  std::set<u32> seen;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const auto out = run(landing(SimLanding::kRandom, seed), code);
    EXPECT_EQ(out, run(landing(SimLanding::kRandom, seed), code));
    seen.insert(out[5]);
  }
  EXPECT_THAT(seen, ElementsAre(7u, 105u));
}

// Whatever the policy, a result that was waited for is there, and two loads into the halves of one register keep both.
TEST(Landing, WaitedForIsThereUnderEveryPolicy) {
  const std::string code =
      "v_mov_b32 v41, -1\nglobal_load_short_d16 v41, v1, s[4:5]\nglobal_load_short_d16_hi v41, v1, s[4:5]\n"
      "ds_write_b32 v1, v0\nds_read_u16_d16 v42, v1\nds_read_u16_d16_hi v42, v1\n"
      "s_waitcnt vmcnt(0) lgkmcnt(0)\nv_add_u32 v41, v41, v42\nglobal_store_dword v1, v41, s[6:7]";
  for (const SimLanding policy : {SimLanding::kLate, SimLanding::kLatest, SimLanding::kEarly, SimLanding::kRandom}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const auto out = run(landing(policy, seed), code);
      for (u32 l = 0; l < 64; ++l) EXPECT_EQ(out[l], (l + 100 + l) * 0x10001u);
    }
  }
}

// vmcnt(1) waits for the older of two loads only; the random policy delivers them in order too.
TEST(Landing, OperationsOfOneCounterArriveInOrder) {
  const std::string code =
      "v_mov_b32 v40, 7\nv_mov_b32 v42, 7\nglobal_load_dword v40, v1, s[4:5]\nglobal_load_dword v42, v1, s[4:5]\n"
      "s_nop 0\ns_nop 0\nv_mov_b32 v43, v42\nv_mov_b32 v41, v40\nv_sub_u32 v41, v41, v43\n" +
      std::string(kStore);
  // Old and new minus old and new: 0, or what the first load brought while the second had not come; never the reverse.
  std::set<u32> seen;
  for (std::uint64_t seed = 0; seed < 64; ++seed) seen.insert(run(landing(SimLanding::kRandom, seed), code)[5]);
  EXPECT_THAT(seen, ElementsAre(0u, 98u));
}

// Three turns of each of two waves at a counter in LDS: the order in which they came.
std::vector<u32> order(const SimOptions& options, unsigned groups = 1) {
  const std::string code =
      "v_mov_b32 v3, 0\nv_mov_b32 v4, 1\nv_mov_b32 v5, 0x800\nv_readfirstlane_b32 s20, v0\ns_lshr_b32 s20, s20, 6\n"
      "s_cmp_lg_u32 s20, 0\ns_cbranch_scc1 started\nds_write_b32 v5, v3\ns_waitcnt lgkmcnt(0)\nstarted:\ns_barrier\n"
      "s_mov_b64 exec, 1\ns_mul_i32 s21, s20, 12\ns_mul_i32 s22, s2, 24\ns_add_u32 s21, s21, s22\nv_mov_b32 v1, s21\n"
      ".rept 3\nds_add_rtn_u32 v6, v5, v4\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v6, s[6:7]\n"
      "v_add_u32 v1, 4, v1\n.endr\n";
  return Program{.options = options, .waves = 2, .groups = groups, .outputs = 6 * groups}(code);
}

TEST(Interleave, RoundRobinTakesTurns) {
  EXPECT_THAT(order(interleave(SimInterleave::kRoundRobin)), ElementsAre(0, 2, 4, 1, 3, 5));
}
TEST(Interleave, ToBarrierRunsOneWaveThrough) {
  EXPECT_THAT(order(interleave(SimInterleave::kToBarrier)), ElementsAre(0, 1, 2, 3, 4, 5));
}
TEST(Interleave, RandomFollowsItsSeedOnAnyNumberOfThreads) {
  std::set<std::vector<u32>> seen;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    SimOptions options = interleave(SimInterleave::kRandom, seed);
    options.landing = SimLanding::kRandom;
    const auto one = order(options, 12);
    options.threads = 4;
    EXPECT_EQ(one, order(options, 12));
    for (std::size_t group = 0; group < 12; ++group) {
      const std::vector<u32> six(one.begin() + 6 * group, one.begin() + 6 * (group + 1));
      EXPECT_EQ(std::set<u32>(six.begin(), six.end()), (std::set<u32>{0, 1, 2, 3, 4, 5}));
      seen.insert(six);
    }
  }
  EXPECT_GT(seen.size(), 10u);  // of the 20 orders that two waves of three turns can have
}

// Waves that wait for one another in a loop end under every policy.
TEST(Interleave, SpinningWavesGiveWay) {
  const std::string code =
      "v_mov_b32 v3, 0\nv_mov_b32 v5, 0x800\nv_readfirstlane_b32 s20, v0\ns_lshr_b32 s20, s20, 6\ns_cmp_lg_u32 s20, 0\n"
      "s_cbranch_scc1 started\nds_write_b32 v5, v3\ns_waitcnt lgkmcnt(0)\nstarted:\ns_barrier\ns_cmp_eq_u32 s20, 0\n"
      "s_cbranch_scc1 spin\nv_mov_b32 v4, 1\nds_write_b32 v5, v4\ns_waitcnt lgkmcnt(0)\ns_endpgm\n"
      "spin:\nds_read_b32 v6, v5\ns_waitcnt lgkmcnt(0)\nv_readfirstlane_b32 s21, v6\ns_cmp_eq_u32 s21, 0\n"
      "s_cbranch_scc1 spin\nv_mov_b32 v41, s21\nglobal_store_dword v1, v41, s[6:7]";
  for (const SimInterleave policy : {SimInterleave::kRoundRobin, SimInterleave::kToBarrier, SimInterleave::kRandom})
    EXPECT_THAT((Program{.options = interleave(policy), .waves = 2}(code)), Each(1u));
}

// Strict mode names every pair of instructions that race, once, and both sides of it.
TEST(Races, EveryUnorderedPairIsNamed) {
  SimOptions options;
  options.checks = SimChecks::kStrict;
  const auto device = sim::make_sim_device(options).value();
  const Buffer<u32> out(*device, std::vector<u32>(128, 0));
  // Each wave writes its slots twice, then reads the other wave's slots twice: four pairs, seen in both waves.
  const std::string code =
      "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nds_write_b32 v1, v0\nds_write_b32 v1, v0 offset:1024\n"
      "s_waitcnt lgkmcnt(0)\nds_read_b32 v40, v24\nds_read_b32 v41, v24 offset:1024\nds_read2_b32 v[42:43], v24 "
      "offset1:255\ns_waitcnt lgkmcnt(0)\n";
  const Status status = sim_test::run(*device, assemble_kernel(kStart + code, {.lds = 4096, .workgroup = 128}), "k",
                                      {.grid = {1, 1, 1}, .block = {128, 1, 1}}, Args().add(out).add(out));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kStrictFinding);
  std::multiset<std::string> pairs;
  for (const SimFinding& f : device->last_findings()) {
    EXPECT_EQ(f.kind, "lds-race");
    const auto from = f.message.find('`'), to = f.message.find('`', from + 1);
    pairs.insert(f.message.substr(from + 1, to - from - 1) + " / " + f.instruction);
  }
  // offset1:255 is 1020 bytes on, the last slot of lane 0's neighbour rows: it meets the second write in lanes 1 and
  // up.
  EXPECT_THAT(
      pairs, testing::UnorderedElementsAre("ds_write_b32 v1, v0 / ds_read_b32 v40, v24",
                                           "ds_write_b32 v1, v0 offset:1024 / ds_read_b32 v41, v24 offset:1024",
                                           "ds_write_b32 v1, v0 / ds_read2_b32 v[42:43], v24 offset1:255",
                                           "ds_write_b32 v1, v0 offset:1024 / ds_read2_b32 v[42:43], v24 offset1:255"));
}

// Without barriers the list of accesses is cut; a race with one that was forgotten is still found.
TEST(Races, FoundAfterAnyNumberOfAccesses) {
  SimOptions options;
  options.checks = SimChecks::kStrict;
  const auto device = sim::make_sim_device(options).value();
  // Wave 0 writes once; wave 1 reads its own slots 9,000 times and then those of wave 0.
  const std::string code =
      "v_readfirstlane_b32 s20, v0\ns_lshr_b32 s20, s20, 6\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n"
      "s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 end\ns_movk_i32 s21, 9000\nloop:\nds_read_b32 v40, v1\ns_waitcnt "
      "lgkmcnt(0)\ns_sub_u32 s21, s21, 1\ns_cmp_lg_u32 s21, 0\ns_cbranch_scc1 loop\n"
      "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nds_read_b32 v41, v24\ns_waitcnt lgkmcnt(0)\nend:\n";
  const Buffer<u32> out(*device, std::vector<u32>(128, 0));
  const Status status = sim_test::run(*device, assemble_kernel(kStart + code, {.lds = 4096, .workgroup = 128}), "k",
                                      {.grid = {1, 1, 1}, .block = {128, 1, 1}}, Args().add(out).add(out));
  ASSERT_FALSE(status.has_value());
  const auto findings = device->last_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "lds-race");
  EXPECT_EQ(findings[0].instruction, "ds_read_b32 v41, v24");
}

}  // namespace
}  // namespace zyfa::sim_test
