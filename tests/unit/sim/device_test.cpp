// The device's own promises: statistics, buffers, and the origin that findings carry from a listing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/isa/instruction.h"
#include "jit/llvm/assembler.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using testing::HasSubstr;

TEST(SimDevice, CountsInstructionsByUnit) {
  const auto device = make_device();
  const Buffer<std::uint32_t> in(*device, std::vector<std::uint32_t>(64, 0)),
      out(*device, std::vector<std::uint32_t>(64, 0));
  const Bytes object = assemble_kernel(
      "s_load_dwordx4 s[4:7], s[0:1], 0\nv_and_b32 v0, 63, v0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt "
      "lgkmcnt(0)\nglobal_load_dword v2, v1, s[4:5]\n"
      "s_waitcnt vmcnt(0)\nv_exp_f32 v3, v2\nds_write_b32 v1, v3\nds_read_b32 v4, v1\ns_barrier\n"
      "v_mfma_f32_32x32x16_bf16 v[16:31], v[8:11], v[12:15], 0\nv_mfma_f32_16x16x128_f8f6f4 v[16:19], v[32:39], "
      "v[40:47], 0\ns_cmp_eq_u32 s4, s4\ns_cbranch_scc1 1\ns_nop 0",
      {.lds = 1024, .workgroup = 128});
  ASSERT_TRUE(
      run(*device, object, "k", {.grid = {3, 1, 1}, .block = {128, 1, 1}}, Args().add(in).add(out)).has_value());
  const SimStatistics s = device->last_statistics();
  EXPECT_EQ(s.workgroups, 3u);
  EXPECT_EQ(s.waves, 6u);
  EXPECT_EQ(s.valu, 6u * 2);
  EXPECT_EQ(s.trans, 6u);
  EXPECT_EQ(s.mfma, 6u * 2);
  EXPECT_EQ(s.salu, 6u);
  EXPECT_EQ(s.smem, 6u);
  EXPECT_EQ(s.lds, 6u * 2);
  EXPECT_EQ(s.vmem, 6u);
  EXPECT_EQ(s.branch, 6u);
  EXPECT_EQ(s.barrier, 6u);
  EXPECT_EQ(s.other, 6u * 3);  // two waits and s_endpgm; the branch skips s_nop
  EXPECT_EQ(s.instructions, 6u * 15);
  EXPECT_EQ(s.mfma_flops, 6u * (2 * 32 * 32 * 16 + 2 * 16 * 16 * 128));
}

TEST(SimDevice, BuffersAreApartAlignedAndUnwrittenBytesAreNan) {
  const auto device = make_device();
  const DeviceAddress a = device->allocate(1).value(), b = device->allocate(0).value(),
                      c = device->allocate(4096).value();
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(c % 256, 0u);
  EXPECT_GE(b - a, 4096u);
  EXPECT_NE(b, c);
  std::vector<std::byte> bytes(4096);
  ASSERT_TRUE(device->read(bytes, c).has_value());
  for (const std::byte x : bytes) ASSERT_EQ(x, std::byte{0xff});
  EXPECT_FALSE(device->read(bytes, c + 1).has_value());
  EXPECT_FALSE(device->allocate(std::size_t{1} << 47).has_value());
}

TEST(SimDevice, GridAndWorkItemIds) {
  const auto device = make_device();
  const Buffer<std::uint32_t> out(*device, std::vector<std::uint32_t>(2 * 3 * 2 * 24, 0));
  // Work-item (x, y, z) of block (4, 3, 2); each stores its packed id plus the workgroup's coordinates in high bits.
  ASSERT_TRUE(run(*device, assemble_kernel(R"(
s_load_dwordx2 s[6:7], s[0:1], 0
v_and_b32 v1, 0x3ff, v0
v_bfe_u32 v2, v0, 10, 10
v_bfe_u32 v3, v0, 20, 10
v_lshl_add_u32 v4, v2, 2, v1
v_mul_u32_u24 v5, 12, v3
v_add_u32 v4, v4, v5
s_mul_i32 s8, s4, 3
s_add_u32 s8, s8, s3
s_lshl_b32 s8, s8, 1
s_add_u32 s8, s8, s2
s_mul_i32 s9, s8, 24
v_add_u32 v4, s9, v4
v_lshlrev_b32 v4, 2, v4
s_lshl_b32 s8, s8, 24
v_lshl_or_b32 v6, v2, 8, v1
v_lshl_or_b32 v6, v3, 16, v6
v_or_b32 v6, s8, v6
s_waitcnt lgkmcnt(0)
global_store_dword v4, v6, s[6:7])"),
                  "k", {.grid = {2, 3, 2}, .block = {4, 3, 2}}, Args().add(out))
                  .has_value());
  const auto values = out.read();
  for (std::uint32_t g = 0; g < 12; ++g) {
    for (std::uint32_t i = 0; i < 24; ++i) {
      ASSERT_EQ(values[24 * g + i], (g << 24) | ((i / 12) << 16) | ((i / 4 % 3) << 8) | (i % 4));
    }
  }
}

TEST(SimDevice, FindingsCarryTheListingsOrigin) {
  using namespace jit;
  Listing listing;
  listing.symbol = "k";
  listing.code.push_back({.op = Op::kVAddU32,
                          .operands = {vgpr(3), vgpr(7), vgpr(0)},
                          .mods = {},
                          .comment = "sum of what nobody wrote",
                          .origin = {.stage = "qk@1", .file = "schedules/example.cpp", .line = 42},
                          .moves = 0,
                          .awaits = {}});
  listing.code.push_back(
      {.op = Op::kSEndpgm, .operands = {}, .mods = {}, .comment = {}, .origin = {}, .moves = 0, .awaits = {}});
  const auto object = jit::assemble(
      listing, {.symbol = "k", .vgprs = 8, .sgprs = 16, .kernarg_bytes = 8, .workgroup_size = 64, .arguments = {}});
  ASSERT_TRUE(object.has_value()) << to_string(object.error());
  const auto device = make_device(SimChecks::kStrict);
  const Status status = run(*device, *object, "k", {}, Args());
  ASSERT_FALSE(status.has_value());
  const auto findings = device->last_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].origin, HasSubstr("sum of what nobody wrote"));
  EXPECT_THAT(findings[0].origin, HasSubstr("qk@1"));
  EXPECT_THAT(findings[0].origin, HasSubstr("schedules/example.cpp:42"));
  EXPECT_THAT(status.error().details.at(0), HasSubstr("v_add_u32"));
}

}  // namespace
}  // namespace zyfa::sim_test
