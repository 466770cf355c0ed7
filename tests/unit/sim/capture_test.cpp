// Recorded traces and operand toggles (zyfa/sim_capture.h) of programs followed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/sim/launch_capture.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using sim::LaunchCapture;
using sim::timing::GroupTrace;
using testing::ElementsAre;
using testing::HasSubstr;

// Offsets of the instructions a wave executed.
std::vector<u64> offsets(const LaunchCapture& capture, const sim::timing::WaveTrace& wave) {
  std::vector<u64> result;
  for (const sim::timing::Step& step : wave.steps) result.push_back(capture.kernel->program().ops[step.op].offset);
  return result;
}

std::vector<u32> work(const sim::timing::WaveTrace& wave) {
  std::vector<u32> result;
  for (const sim::timing::Step& step : wave.steps) result.push_back(step.work);
  return result;
}

bool same(const GroupTrace& a, const GroupTrace& b) {
  if (a.id != b.id || a.waves.size() != b.waves.size()) return false;
  for (std::size_t w = 0; w < a.waves.size(); ++w) {
    const auto &x = a.waves[w], &y = b.waves[w];
    if (x.addresses != y.addresses || x.steps.size() != y.steps.size()) return false;
    for (std::size_t i = 0; i < x.steps.size(); ++i)
      if (x.steps[i].op != y.steps[i].op || x.steps[i].work != y.steps[i].work) return false;
  }
  return true;
}

std::shared_ptr<SimDevice> recording(const SimCapture& capture, SimOptions options = {}) {
  const auto device = make_device();
  options.capture = capture;
  check(device->set_options(options));
  return device;
}

TEST(Capture, IsEveryInstructionOfEveryWaveInOrder) {
  // Offsets: 0 s_mov, 4 loop: s_sub, 8 s_cmp, 12 branch, 16 s_endpgm.
  const auto device = recording({});
  check(run(*device,
            assemble_kernel("s_mov_b32 s8, 2\nloop:\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n",
                            {.workgroup = 128}),
            "k", {.grid = {3, 1, 1}, .block = {128, 1, 1}}, Args()));
  const auto capture = sim::last_capture(*device);
  ASSERT_TRUE(capture);
  ASSERT_EQ(capture->groups.size(), 3u);
  for (u32 g = 0; g < 3; ++g) {
    EXPECT_EQ(capture->groups[g].id, (std::array<u32, 3>{g, 0, 0}));
    ASSERT_EQ(capture->groups[g].waves.size(), 2u);
    for (const auto& wave : capture->groups[g].waves) {
      EXPECT_THAT(offsets(*capture, wave), ElementsAre(0, 4, 8, 12, 4, 8, 12, 16));
      EXPECT_THAT(work(wave), testing::Each(0u));
      EXPECT_THAT(wave.addresses, ElementsAre());
    }
  }
  EXPECT_THAT(capture->instructions, ElementsAre(16, 16, 16));
}

TEST(Capture, KnowsTheWorkAndTheFirstAddressOfMemoryInstructions) {
  const auto device = recording({});
  const Buffer<u32> buffer(*device, std::vector<u32>(1024, 1));
  check(run(*device,
            assemble_kernel("s_load_dwordx2 s[4:5], s[0:1], 0\n"  // 8 bytes
                            "v_lshlrev_b32 v1, 4, v0\n"           // 16 bytes a lane
                            "v_lshlrev_b32 v2, 8, v0\n"           // 256 bytes a lane: one bank
                            "s_waitcnt lgkmcnt(0)\n"
                            "global_load_dwordx4 v[4:7], v1, s[4:5]\n"  // 64 lanes x 16
                            "s_mov_b64 exec, 0xf0\n"                    // lanes 4 to 7
                            "global_store_dword v1, v0, s[4:5] offset:8\n"
                            "ds_write_b32 v2, v0\n"  // 4 lanes in one bank of one phase
                            "s_mov_b64 exec, 0\n"
                            "global_load_dword v4, v1, s[4:5]\n"
                            "s_waitcnt vmcnt(0) lgkmcnt(0)\n",
                            {.lds = 16384}),
            "k", {}, Args().add(buffer)));
  const auto capture = sim::last_capture(*device);
  ASSERT_TRUE(capture);
  const auto& wave = capture->groups.at(0).waves.at(0);
  // One phase for lanes 0 to 31, and three cycles more for the other three dwords of its bank.
  EXPECT_THAT(work(wave), ElementsAre(8, 0, 0, 0, 1024, 0, 16, 4, 0, 0, 0, 0));
  EXPECT_THAT(wave.addresses, ElementsAre(buffer.address(), buffer.address() + 4 * 16 + 8, 0));
}

TEST(Capture, OfListedWorkgroupsCanLeaveTheOthersOut) {
  const Bytes object = assemble_kernel(
      "s_load_dwordx2 s[4:5], s[0:1], 0\ns_lshl_b32 s6, s2, 2\nv_mov_b32 v1, s6\nv_mov_b32 v2, 7\ns_waitcnt "
      "lgkmcnt(0)\nglobal_store_dword v1, v2, s[4:5]");
  for (const auto others : {SimCapture::Others::kRun, SimCapture::Others::kSkipped}) {
    const auto device = recording({.workgroups = {{5, 0, 0}, {2, 0, 0}, {5, 0, 0}}, .others = others});
    const Buffer<u32> out(*device, std::vector<u32>(8, 0));
    check(run(*device, object, "k", {.grid = {8, 1, 1}}, Args().add(out)));
    const auto capture = sim::last_capture(*device);
    ASSERT_TRUE(capture);
    ASSERT_EQ(capture->groups.size(), 2u);
    EXPECT_EQ(capture->groups[0].id[0], 2u);
    EXPECT_EQ(capture->groups[1].id[0], 5u);
    if (others == SimCapture::Others::kRun) {
      EXPECT_THAT(out.read(), ElementsAre(7, 7, 7, 7, 7, 7, 7, 7));
      EXPECT_THAT(capture->instructions, testing::Each(7u));
      EXPECT_EQ(device->last_statistics().workgroups, 8u);
    } else {
      EXPECT_THAT(out.read(), ElementsAre(0, 0, 7, 0, 0, 7, 0, 0));
      EXPECT_THAT(capture->instructions, ElementsAre(0, 0, 7, 0, 0, 7, 0, 0));
      EXPECT_EQ(device->last_statistics().workgroups, 2u);
    }
  }
}

TEST(Capture, OfAnotherKernelIsNone) {
  const auto device = recording({.kernel = "attention", .workgroups = {{9, 9, 9}}});
  check(run(*device, assemble_kernel("s_nop 0"), "k", {}, Args()));
  EXPECT_FALSE(sim::last_capture(*device));
}

TEST(Capture, RefusesAWorkgroupOutsideOfTheGrid) {
  const auto device = recording({.workgroups = {{0, 0, 0}, {1, 2, 0}}});
  const Status status = run(*device, assemble_kernel("s_nop 0"), "k", {.grid = {2, 2, 1}}, Args());
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message,
              HasSubstr("workgroup (1, 2, 0) is to be recorded; the grid has 2 x 2 x 1 workgroups"));
}

TEST(Capture, OfAFailedLaunchIsNone) {
  const auto device = recording({});
  check(run(*device, assemble_kernel("s_nop 0"), "k", {}, Args()));
  EXPECT_TRUE(sim::last_capture(*device));
  EXPECT_FALSE(run(*device, assemble_kernel("s_trap 2"), "k", {}, Args()).has_value());
  EXPECT_FALSE(sim::last_capture(*device));
}

// GPR indexing makes the executed operation a copy, which is recorded, watched and counted as the one it came from.
TEST(Capture, WatchAndCountsKnowAnIndexedInstruction) {
  SimOptions options;
  options.counts = SimCounts::kByInstruction;
  std::vector<std::string> seen;
  SimWatch watch;
  watch.offset = 4;
  watch.call = [&](const SimStep& step, const SimWaveView&) {
    seen.emplace_back(step.instruction);
    return SimAction::kContinue;
  };
  options.watches.push_back(std::move(watch));
  const auto device = recording({}, options);
  check(run(*device, assemble_kernel("s_set_gpr_idx_on 1, gpr_idx(SRC0)\nv_mov_b32 v2, v0\ns_set_gpr_idx_off\n"), "k",
            {}, Args()));
  const auto capture = sim::last_capture(*device);
  ASSERT_TRUE(capture);
  EXPECT_THAT(offsets(*capture, capture->groups.at(0).waves.at(0)), ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(seen, ElementsAre("v_mov_b32_e32 v2, v0"));
  ASSERT_EQ(device->last_instruction_counts().size(), 4u);
  EXPECT_EQ(device->last_instruction_counts()[1].executed, 1u);
}

// A loop with LDS, barriers and loads from two waves, under every policy: one trace.
TEST(Capture, DoesNotDependOnThreadsInterleaveOrChecks) {
  const Bytes object = assemble_kernel(
      "s_load_dwordx2 s[4:5], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\nv_mov_b32 v3, 1.0\n"
      "v_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_mov_b32 v6, 0\nv_mov_b32 v7, 0\ns_add_u32 s8, s2, 2\n"
      "s_waitcnt lgkmcnt(0)\nloop:\nglobal_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nds_write_b32 v1, v2\n"
      "s_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\ns_barrier\ns_nop 1\n"
      "v_mfma_f32_16x16x4_f32 v[4:7], v3, v2, v[4:7]\ns_nop 15\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\n"
      "s_cbranch_scc1 loop\n",
      {.lds = 4096, .workgroup = 128});
  std::shared_ptr<const LaunchCapture> first;
  // One device: addresses are part of a trace.
  const auto device = make_device();
  std::vector<u32> values(128);
  for (u32 i = 0; i < values.size(); ++i) values[i] = 0x3f800000 + (i << 12);
  const Buffer<u32> in(*device, values);
  for (const unsigned threads : {1u, 3u}) {
    for (const auto interleave : {SimInterleave::kRoundRobin, SimInterleave::kToBarrier, SimInterleave::kRandom}) {
      for (const auto checks : {SimChecks::kPlain, SimChecks::kStrict}) {
        SimOptions options;
        options.threads = threads;
        options.interleave = interleave;
        options.checks = checks;
        options.landing = threads == 1 ? SimLanding::kEarly : SimLanding::kRandom;
        options.capture = SimCapture{};
        check(device->set_options(options));
        check(run(*device, object, "k", {.grid = {9, 1, 1}, .block = {128, 1, 1}}, Args().add(in)));
        const auto capture = sim::last_capture(*device);
        ASSERT_TRUE(capture);
        ASSERT_EQ(capture->groups.size(), 9u);
        if (!first) first = capture;
        for (std::size_t g = 0; g < 9; ++g) EXPECT_TRUE(same(first->groups[g], capture->groups[g]));
        EXPECT_EQ(first->toggles.mfmas, capture->toggles.mfmas);
        EXPECT_EQ(first->toggles.a, capture->toggles.a);
        EXPECT_EQ(first->toggles.b, capture->toggles.b);
        EXPECT_EQ(first->toggles.c, capture->toggles.c);
      }
    }
  }
  EXPECT_GT(first->toggles.c, 0u);
}

// v_mfma_f32_16x16x4_f32: one register of A and of B, four of C. A goes 0xf -> 0xff (4 bits a lane), B stays, C goes
// from the constant 0 to registers of 1.0 (0x3f800000: 7 bits) and then, in its destination, whatever it adds up to.
TEST(Capture, CountsTogglesBetweenMfmas) {
  const auto device = recording({});
  check(run(*device,
            assemble_kernel("v_mov_b32 v1, 0xf\nv_mov_b32 v2, 0xff\nv_mov_b32 v3, 0\nv_mov_b32 v8, 1.0\nv_mov_b32 v9, "
                            "1.0\nv_mov_b32 v10, 1.0\nv_mov_b32 v11, 1.0\ns_nop 4\n"
                            "v_mfma_f32_16x16x4_f32 v[4:7], v1, v3, 0\ns_nop 15\n"
                            "v_mfma_f32_16x16x4_f32 v[4:7], v2, v3, v[8:11]\ns_nop 15\n",
                            {.workgroup = 128}),
            "k", {.block = {128, 1, 1}}, Args()));
  const SimToggles toggles = device->last_toggles();
  EXPECT_EQ(toggles.mfmas, 2u);  // one of each wave; the first has nothing before it
  EXPECT_EQ(toggles.a, 2u * 64 * 4);
  EXPECT_EQ(toggles.b, 0u);
  EXPECT_EQ(toggles.c, 2u * 64 * 4 * 7);
}

// The sparse form accumulates in its destination, and its third source is no matrix.
TEST(Capture, TakesTheAccumulatorOfASparseMfma) {
  const auto device = recording({});
  check(
      run(*device,
          assemble_kernel(
              "v_mov_b32 v1, 0\nv_mov_b32 v2, 0\nv_mov_b32 v3, 0\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\n"
              "v_mov_b32 v6, 0\nv_mov_b32 v7, 0\nv_mov_b32 v8, 0\nv_mov_b32 v9, 0\nv_mov_b32 v10, 0\nv_mov_b32 v11, 0\n"
              "v_mov_b32 v12, 1.0\nv_mov_b32 v13, 1.0\nv_mov_b32 v14, 1.0\nv_mov_b32 v15, 1.0\n"
              "v_mov_b32 v16, -1\nv_mov_b32 v17, 0\ns_nop 4\n"
              "v_smfmac_f32_16x16x32_f16 v[8:11], v[2:3], v[4:7], v17\ns_nop 15\n"
              "v_smfmac_f32_16x16x32_f16 v[12:15], v[2:3], v[4:7], v16\ns_nop 15\n"),
          "k", {}, Args()));
  const SimToggles toggles = device->last_toggles();
  EXPECT_EQ(toggles.mfmas, 1u);
  EXPECT_EQ(toggles.a + toggles.b, 0u);
  EXPECT_EQ(toggles.c, 64u * 4 * 7);
}

TEST(Capture, LeavesResultsAndCountsAsTheyAre) {
  const Bytes object = assemble_kernel(
      "s_load_dwordx2 s[4:5], s[0:1], 0\ns_lshl_b32 s6, s2, 8\nv_lshlrev_b32 v1, 2, v0\nv_add_u32 v1, s6, v1\n"
      "v_cvt_f32_u32 v2, v1\nv_rcp_f32 v2, v2\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[4:5]");
  std::vector<u32> values[2];
  u64 instructions[2];
  for (const bool record : {false, true}) {
    const auto device = make_device();
    SimOptions options;
    if (record) options.capture = SimCapture{};
    check(device->set_options(options));
    const Buffer<u32> out(*device, std::vector<u32>(256, 0));
    check(run(*device, object, "k", {.grid = {4, 1, 1}}, Args().add(out)));
    values[record] = out.read();
    instructions[record] = device->last_statistics().instructions;
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(instructions[0], instructions[1]);
}

}  // namespace
}  // namespace zyfa::sim_test
