// Scalar instructions beyond arithmetic: bits, relative moves, calls, hardware registers, and the modes that change
// vector instructions: GPR indexing and VSKIP. Each runs in plain and in strict mode.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Lanes = std::array<u32, 64>;

// Runs `code`, which leaves results in s20, s21, ...; returns the first `count` of them.
std::vector<u32> scalars(const std::string& code, unsigned count, const AsmOptions& options = {}) {
  std::string text = code;
  for (unsigned i = 0; i < count; ++i) text += fmt::format("\nv_mov_b32 v{}, s{}", 40 + i, 20 + i);
  std::vector<u32> values;
  for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
    AsmOptions o = options;
    o.checks = checks;
    const auto out = run_vector(text, {splat(0)}, count, o);
    std::vector<u32> now;
    for (const Lanes& r : out) now.push_back(r[0]);
    if (!values.empty()) {
      EXPECT_EQ(now, values) << code;
    }
    values = now;
  }
  return values;
}

TEST(Scalar, BitsOfPairs) {
  std::mt19937_64 rng(1);
  for (int trial = 0; trial < 8; ++trial) {
    const u64 x = rng();
    const u32 n = static_cast<u32>(rng()), lo = static_cast<u32>(x), hi = static_cast<u32>(x >> 32);
    const auto out =
        scalars(fmt::format("s_mov_b32 s20, 0x{0:x}\ns_mov_b32 s21, 0x{1:x}\ns_mov_b64 s[22:23], s[20:21]\n"
                            "s_mov_b32 s30, 0x{2:x}\ns_bitset0_b64 s[20:21], s30\ns_bitset1_b64 s[22:23], s30\n"
                            "s_bitreplicate_b64_b32 s[24:25], s30\n",
                            lo, hi, n),
                6);
    const u64 bit = 1ull << (n & 63);
    EXPECT_EQ(out[0] | (static_cast<u64>(out[1]) << 32), x & ~bit);
    EXPECT_EQ(out[2] | (static_cast<u64>(out[3]) << 32), x | bit);
    u64 twice = 0;
    for (unsigned i = 0; i < 64; ++i) twice |= static_cast<u64>((n >> (i / 2)) & 1) << i;
    EXPECT_EQ(out[4] | (static_cast<u64>(out[5]) << 32), twice);
  }
}

TEST(Scalar, RelativeMoves) {
  const auto out = scalars(
      "s_mov_b32 s40, 11\ns_mov_b32 s41, 22\ns_mov_b32 s42, 33\ns_mov_b32 s43, 44\ns_mov_b32 s24, 0\ns_mov_b32 s25, 0\n"
      "s_mov_b32 m0, 2\ns_nop 0\ns_movrels_b32 s20, s40\ns_movrels_b64 s[22:23], s[40:41]\ns_mov_b32 s21, 5\n"
      "s_movreld_b32 s24, s41\ns_movreld_b64 s[28:29], s[42:43]\ns_mov_b32 s24, s30\ns_mov_b32 s25, s31\n",
      7);
  EXPECT_EQ(out, (std::vector<u32>{33, 5, 33, 44, 33, 44, 22}));
}

TEST(Scalar, CallsReturn) {
  EXPECT_EQ(scalars("s_mov_b32 s20, 1\ns_call_b64 s[40:41], add\ns_call_b64 s[40:41], add\ns_branch done\n"
                    "add:\ns_add_u32 s20, s20, 10\ns_setpc_b64 s[40:41]\ndone:\n",
                    1),
            std::vector<u32>{21});
}

TEST(Scalar, HarmlessControl) {
  EXPECT_EQ(scalars("s_mov_b32 s20, 7\ns_mov_b32 m0, 0\ns_cbranch_cdbgsys bad\ns_cbranch_cdbguser bad\n"
                    "s_cbranch_cdbgsys_or_user bad\ns_cbranch_cdbgsys_and_user bad\ns_sethalt 0\n"
                    "s_sendmsg sendmsg(MSG_INTERRUPT)\ns_wakeup\ns_sleep 1\ns_setprio 3\ns_branch good\n"
                    "bad:\ns_mov_b32 s20, 9\ngood:\n",
                    1),
            std::vector<u32>{7});
}

TEST(Scalar, HardwareRegisters) {
  const auto out = scalars(
      "s_cmp_eq_u32 s0, s0\ns_mov_b64 vcc, 0\ns_getreg_b32 s20, hwreg(HW_REG_STATUS)\n"
      "s_getreg_b32 s21, hwreg(HW_REG_MODE, 0, 8)\ns_getreg_b32 s22, hwreg(HW_REG_GPR_ALLOC, 8, 6)\n"
      "s_getreg_b32 s23, hwreg(HW_REG_HW_ID)\ns_getreg_b32 s24, hwreg(HW_REG_XCC_ID)\n"
      "s_getreg_b32 s25, hwreg(HW_REG_TRAPSTS)\n",
      6, {.denorm32 = 3, .round32 = 2});
  EXPECT_EQ(out[0], 1u | 1u << 10 | 1u << 16);  // SCC, VCCZ, VALID
  EXPECT_EQ(out[1], 0xf2u);
  EXPECT_EQ(out[2], 128 / 8 - 1u);
  for (int i = 3; i < 6; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], 0u);
}

// "When VSKIP is enabled, no VOP*/M*BUF/DS/FLAT instructions are issued."
TEST(Scalar, VskipSkipsVectorInstructions) {
  for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
    for (const char* on :
         {"s_setvskip 1, 0\n", "s_setvskip 0x40, 6\n", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1\ns_nop 1\n"}) {
      const auto out =
          run_vector(std::string("v_mov_b32 v40, 1\n") + on +
                         "v_mov_b32 v40, 2\nv_cmpx_eq_u32 vcc, 0, 1\nglobal_store_dword v10, v40, s[6:7]\n"
                         "v_exp_f32 v40, v40\ns_mov_b32 s20, 5\ns_setvskip 0, 0\ns_nop 1\nv_mov_b32 v41, s20\n",
                     {splat(0x7fffff00)}, 2, {.checks = checks});
      EXPECT_EQ(out[0][0], 1u);
      EXPECT_EQ(out[1][0], 5u);
    }
  }
}

TEST(Scalar, GprIndexing) {
  const std::vector<Lanes> in{by_lane([](u32 l) { return l; }), by_lane([](u32 l) { return 100 + l; }),
                              by_lane([](u32 l) { return 200 + l; }), by_lane([](u32 l) { return 300 + l; })};
  for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
    const auto out = run_vector(
        "v_mov_b32 v47, 0\ns_mov_b32 s20, 2\ns_set_gpr_idx_on s20, gpr_idx(SRC0)\nv_mov_b32 v40, v10\nv_sub_u32 v41, "
        "v11, v10\n"
        "s_set_gpr_idx_mode gpr_idx(SRC1)\nv_sub_u32 v42, v11, v10\n"
        "s_set_gpr_idx_mode gpr_idx(SRC0,SRC1,SRC2)\nv_add3_u32 v43, v10, v11, v10\n"
        "s_set_gpr_idx_idx 1\nv_mov_b32 v44, v10\n"
        "s_set_gpr_idx_mode gpr_idx(DST)\nv_mov_b32 v44, v12\n"  // v45
        "v_mov_b32 v45, v10\nv_fmac_f32 v46, 0, v10\n"           // v46, then v47 += 0
        "s_set_gpr_idx_off\nv_mov_b32 v48, v10\n",
        in, 9, {.checks = checks});
    for (u32 l = 0; l < 64; ++l) {
      EXPECT_EQ(out[0][l], 200 + l);
      EXPECT_EQ(out[1][l], 300u);
      EXPECT_EQ(out[2][l], 100u - 200u);
      EXPECT_EQ(out[3][l], 200 + 300 + 200 + 3 * l);
      EXPECT_EQ(out[4][l], 100 + l);
      EXPECT_EQ(out[5][l], 200 + l);
      EXPECT_EQ(out[6][l], l);
      EXPECT_EQ(out[8][l], l);
    }
  }
}

// Strict mode follows the moved registers: what is read and written is checked, not what is encoded.
TEST(Scalar, GprIndexingIsWatched) {
  const auto device = make_device(SimChecks::kStrict);
  const auto run_code = [&](const std::string& code) {
    const Buffer<u32> b(*device, std::vector<u32>(64));
    return run(*device,
               assemble_kernel("s_load_dwordx2 s[6:7], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\n"
                               "s_waitcnt lgkmcnt(0)\n" +
                               code),
               "k", {}, Args().add(b));
  };
  const char defined[] =
      "v_mov_b32 v13, 1\ns_set_gpr_idx_on 3, gpr_idx(SRC0)\nv_add_u32 v20, v10, v0\ns_set_gpr_idx_off\n";
  EXPECT_TRUE(run_code(defined));
  const char undefined[] =
      "v_mov_b32 v10, 1\ns_set_gpr_idx_on 3, gpr_idx(SRC0)\nv_add_u32 v20, v10, v0\ns_set_gpr_idx_off\n";
  const Status status = run_code(undefined);
  ASSERT_FALSE(status.has_value());
  const auto findings = device->last_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "uninitialised-register");
  EXPECT_NE(findings[0].message.find("v13"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[0].instruction.find("v_add_u32"), std::string::npos);
  const char written[] =
      "s_set_gpr_idx_on 3, gpr_idx(DST)\nv_mov_b32 v10, 1\ns_set_gpr_idx_off\nv_add_u32 v20, v13, v0\n";
  EXPECT_TRUE(run_code(written));
}

}  // namespace
}  // namespace zyfa::sim_test
