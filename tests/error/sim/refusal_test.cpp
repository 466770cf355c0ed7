// What the simulator refuses, and how its errors read: memory faults, unknown instructions, bad launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using testing::HasSubstr;

constexpr char kLoadArgs[] =
    "s_load_dwordx4 s[4:7], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n";

Status run_code(const std::string& code, SimDevice& device, const LaunchShape& shape = {}, unsigned workgroup = 64) {
  const Buffer<std::uint32_t> in(device, std::vector<std::uint32_t>(64, 1)),
      out(device, std::vector<std::uint32_t>(64, 1));
  return run(device, assemble_kernel(kLoadArgs + code, {.workgroup = workgroup}), "k", shape, Args().add(in).add(out));
}

TEST(MemoryFault, NamesEverything) {
  for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
    const auto device = make_device(checks);
    // Lane 0 of wave 1 of workgroup (2, 0, 0) is the first beyond the 256 bytes.
    const Status status =
        run_code("s_cmp_lg_u32 s2, 2\ns_cbranch_scc1 end\nglobal_load_dword v4, v1, s[4:5]\ns_waitcnt vmcnt(0)\nend:\n",
                 *device, {.grid = {4, 1, 1}, .block = {128, 1, 1}}, 128);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kMemoryFault);
    EXPECT_THAT(status.error().message, HasSubstr("reads 4 bytes"));
    EXPECT_THAT(status.error().message, HasSubstr("0 bytes past the end of the buffer"));
    const auto findings = device->last_findings();
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].kind, "memory-fault");
    EXPECT_EQ(findings[0].workgroup, (std::array<std::uint32_t, 3>{2, 0, 0}));
    EXPECT_EQ(findings[0].wave, 1u);
    EXPECT_EQ(findings[0].lane, 0u);
    EXPECT_THAT(findings[0].instruction, HasSubstr("global_load_dword v4"));
    EXPECT_GT(findings[0].offset, 0u);
    EXPECT_EQ(status.error().details.size(), 1u);
  }
}

TEST(MemoryFault, ByteExactAtBothEnds) {
  const auto device = make_device();
  EXPECT_TRUE(run_code("global_load_dword v4, v1, s[4:5]\n", *device).has_value());
  EXPECT_FALSE(run_code("global_load_dword v4, v1, s[4:5] offset:1\n", *device).has_value());
  EXPECT_FALSE(run_code("global_load_dword v4, v1, s[4:5] offset:-1\n", *device).has_value());
  EXPECT_FALSE(run_code("global_store_byte v1, v0, s[6:7] offset:4\n", *device).has_value());
  EXPECT_FALSE(run_code("s_load_dwordx16 s[16:31], s[4:5], 0xc4\n", *device).has_value());
  EXPECT_TRUE(run_code("s_load_dwordx16 s[16:31], s[4:5], 0xc0\n", *device).has_value());
}

TEST(MemoryFault, ReleasedBufferIsGone) {
  const auto device = make_device();
  const auto address = device->allocate(256).value();
  device->release(address);
  const Status status = run(*device, assemble_kernel(std::string(kLoadArgs) + "global_load_dword v4, v1, s[4:5]\n"),
                            "k", {}, Args().add(address).add(address));
  EXPECT_EQ(status.error().code, ErrorCode::kMemoryFault);
  std::vector<std::byte> bytes(4);
  EXPECT_FALSE(device->read(bytes, address).has_value());
  EXPECT_FALSE(device->write(address, bytes).has_value());
}

TEST(Unsupported, IsRefusedBeforeTheFirstInstruction) {
  const auto device = make_device();
  const Status status = run_code("v_mov_b32 v4, 0\ns_sendmsghalt sendmsg(MSG_INTERRUPT)\n", *device);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(status.error().message, HasSubstr("s_sendmsghalt"));
  EXPECT_THAT(status.error().message, HasSubstr("halts the wave"));
  EXPECT_THAT(status.error().message, HasSubstr("+0x"));
}

TEST(Unsupported, UnreachableInstructionsDoNotMatter) {
  const auto device = make_device();
  EXPECT_TRUE(run_code("s_branch end\ns_sendmsghalt sendmsg(MSG_INTERRUPT)\nend:\n", *device).has_value());
}

TEST(Unsupported, RegistersOutsideOfTheAllocation) {
  const auto device = make_device();
  const Status status = run(*device, assemble_kernel("v_mov_b32 v40, 0\n", {.vgprs = 32}), "k", {}, Args());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(status.error().message, HasSubstr("v40"));
}

TEST(Launch, RefusesBadShapesAndForeignKernels) {
  const auto device = make_device(), other = make_device();
  const Bytes object = assemble_kernel("");
  const auto kernel = device->load(object, "k").value();
  EXPECT_EQ(device->launch(*kernel, {.block = {0, 1, 1}}, {}, nullptr).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(device->launch(*kernel, {.block = {1025, 1, 1}}, {}, nullptr).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(device->launch(*kernel, {.dynamic_lds = 163841}, {}, nullptr).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(other->launch(*kernel, {}, {}, nullptr).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(device->launch(*kernel, {.grid = {0, 1, 1}}, {}, nullptr).has_value());
}

TEST(Launch, RefusesABlockTheKernelWasNotBuiltFor) {
  const auto device = make_device();
  const auto small = device->load(assemble_kernel("", {.workgroup = 128}), "k").value();
  const Status most = device->launch(*small, {.block = {129, 1, 1}}, {}, nullptr);
  ASSERT_FALSE(most.has_value());
  EXPECT_EQ(most.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(most.error().message, HasSubstr("a workgroup of 129 work-items; kernel 'k' was built for at most 128"));
  const auto fixed =
      device->load(assemble_kernel("", {.workgroup = 128, .metadata = "    .reqd_workgroup_size: [64, 2, 1]\n"}), "k")
          .value();
  EXPECT_TRUE(device->launch(*fixed, {.block = {64, 2, 1}}, {}, nullptr).has_value());
  const Status other = device->launch(*fixed, {.block = {128, 1, 1}}, {}, nullptr);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(other.error().message, HasSubstr("128x1x1 work-items; kernel 'k' requires 64x2x1"));
}

TEST(Launch, UnknownSymbolListsTheKernels) {
  const auto device = make_device();
  const auto loaded = device->load(assemble_kernel(""), "nothing");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
  ASSERT_EQ(loaded.error().details.size(), 1u);
  EXPECT_THAT(loaded.error().details[0], HasSubstr("'k'"));
}

TEST(Launch, EndlessLoopStopsAtTheLimit) {
  for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
    const auto device = sim::make_sim_device({.checks = checks, .max_instructions = 1000}).value();
    const Status status = run_code("loop:\ns_branch loop\n", *device);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kDeviceError);
    EXPECT_THAT(status.error().message, HasSubstr("limit of 1000 instructions"));
  }
}

TEST(Launch, WavesThatEndDoNotBlockABarrier) {
  const auto device = make_device();
  EXPECT_TRUE(run_code("v_readfirstlane_b32 s20, v0\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 end\ns_barrier\nend:\n",
                       *device, {.block = {256, 1, 1}}, 256)
                  .has_value());
}

// What is known not to be simulated is refused with the reason, before anything runs.
TEST(Unsupported, NamesTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"v_screen_partition_4se_b32 v4, v0", "no semantics"},
      {"v_clrexcp", "exceptions"},
      {"s_cbranch_g_fork s[20:21], s[22:23]", "fork and join"},
      {"s_cbranch_i_fork s[20:21], end", "fork and join"},
      {"s_cbranch_join s20", "fork and join"},
      {"s_rfe_b64 s[20:21]", "trap handler"},
      {"s_rfe_restore_b64 s[20:21], s22", "trap handler"},
      {"s_endpgm_saved", "trap handler"},
      {"s_endpgm_ordered_ps_done", "pixel shaders"},
      {"s_sethalt 1", "halts the wave"},
      // v_add_f16_e64 v4, v0, v0 and v_mad_legacy_u16 v4, v0, v0, v0 with bit 11, op_sel[0], set.
      {".long 0xd11f0804, 0x00020100", "op_sel bits"},
      {".long 0xd1eb0804, 0x04020100", "op_sel bits"},
      {"s_sendmsg sendmsg(MSG_GS_DONE, GS_OP_NOP)", "MSG_INTERRUPT"},
      {"s_getreg_b32 s20, hwreg(HW_REG_IB_STS)", "only MODE, STATUS"},
      {"s_getreg_b32 s20, hwreg(HW_REG_LDS_ALLOC)", "only MODE, STATUS"},
  };
  for (const auto& [code, reason] : cases) {
    const auto device = make_device();
    const Status status = run_code(std::string("global_store_dword v1, v0, s[6:7]\n") + code + "\nend:\n", *device);
    ASSERT_FALSE(status.has_value()) << code;
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported) << code;
    EXPECT_THAT(status.error().message, HasSubstr(reason)) << code;
  }
}

TEST(Launch, TrapsAreFaults) {
  for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
    const auto device = make_device(checks);
    const Status status = run_code("s_trap 2\n", *device);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kDeviceError);
    EXPECT_THAT(status.error().message, HasSubstr("trap 2"));
  }
}

// The guide calls an index that leaves the wave's registers illegal (6.6.1).
TEST(Launch, GprIndicesOutsideOfTheRegistersAreFaults) {
  const auto device = make_device();
  EXPECT_TRUE(run_code("s_set_gpr_idx_on 27, gpr_idx(SRC0)\nv_mov_b32 v4, v100\ns_set_gpr_idx_off\n", *device));
  for (const char* what : {"gpr_idx(SRC0)\nv_mov_b32 v4, v100", "gpr_idx(DST)\nv_mov_b32 v100, v0",
                           "gpr_idx(SRC1)\nv_add_u32 v4, v0, v100"}) {
    const Status status = run_code(std::string("s_set_gpr_idx_on 28, ") + what + "\n", *device);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kDeviceError);
    EXPECT_THAT(status.error().message, HasSubstr("reaches v128; the wave has 128 arch VGPRs"));
  }
}

TEST(Options, ZeroThreadsOrFindingsAreRefused) {
  for (const SimOptions& bad : {SimOptions{.threads = 0}, SimOptions{.max_findings = 0}}) {
    EXPECT_EQ(sim::make_sim_device(bad).error().code, ErrorCode::kInvalidArgument);
  }
}

// A device keeps what it had, so strict mode cannot be made to pass everything by allowing no finding.
TEST(Options, ChangingThemIsCheckedToo) {
  const auto device = make_device(SimChecks::kStrict);
  for (const SimOptions& bad : {SimOptions{.checks = SimChecks::kStrict, .threads = 0},
                                SimOptions{.checks = SimChecks::kPlain, .max_findings = 0}}) {
    const Status status = device->set_options(bad);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(device->options().threads, 1u);
    EXPECT_EQ(device->options().checks, SimChecks::kStrict);
  }
  EXPECT_EQ(run_code("v_add_u32 v41, v40, v1\n", *device).error().code, ErrorCode::kStrictFinding);
  ASSERT_TRUE(device->set_options({.checks = SimChecks::kPlain, .threads = 2}).has_value());
  EXPECT_EQ(device->options().threads, 2u);
  EXPECT_TRUE(run_code("v_add_u32 v41, v40, v1\n", *device).has_value());
}

TEST(Options, AnEndlessKernelEndsByDefault) {
  EXPECT_NE(sim::make_sim_device().value()->options().max_instructions, 0u);
}

}  // namespace
}  // namespace zyfa::sim_test
