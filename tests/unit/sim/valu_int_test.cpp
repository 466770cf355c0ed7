// Integer VALU, lane movement and mask instructions against host arithmetic and the definitions of gfx950-isa.md 2.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using Lanes = std::array<std::uint32_t, 64>;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

Lanes random_lanes(unsigned seed) {
  std::mt19937 rng(seed);
  return by_lane([&](u32 l) {
    return l == 0 ? 0u : l == 1 ? ~0u : l == 2 ? 0x80000000u : l == 3 ? 0x7fffffffu : static_cast<u32>(rng());
  });
}

struct Case {
  const char* code;  // destination {d}, sources v10, v11, v12
  std::function<u32(u32, u32, u32)> want;
};

i32 sext24(u32 x) { return static_cast<i32>(x << 8) >> 8; }

TEST(VectorInteger, AgreesWithHostArithmetic) {
  const std::vector<Case> cases = {
      {"v_add_u32 {d}, v10, v11", [](u32 a, u32 b, u32) { return a + b; }},
      {"v_sub_u32 {d}, v10, v11", [](u32 a, u32 b, u32) { return a - b; }},
      {"v_subrev_u32 {d}, v10, v11", [](u32 a, u32 b, u32) { return b - a; }},
      {"v_add_u32 {d}, v10, v11 clamp",
       [](u32 a, u32 b, u32) { return static_cast<u32>(std::min<u64>(u64{a} + b, 0xffffffffu)); }},
      {"v_mul_lo_u32 {d}, v10, v11", [](u32 a, u32 b, u32) { return a * b; }},
      {"v_mul_hi_u32 {d}, v10, v11", [](u32 a, u32 b, u32) { return static_cast<u32>((u64{a} * b) >> 32); }},
      {"v_mul_hi_i32 {d}, v10, v11",
       [](u32 a, u32 b, u32) { return static_cast<u32>((i64{static_cast<i32>(a)} * static_cast<i32>(b)) >> 32); }},
      {"v_mul_u32_u24 {d}, v10, v11", [](u32 a, u32 b, u32) { return (a & 0xffffff) * (b & 0xffffff); }},
      {"v_mul_i32_i24 {d}, v10, v11", [](u32 a, u32 b, u32) { return static_cast<u32>(i64{sext24(a)} * sext24(b)); }},
      {"v_mad_u32_u24 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return (a & 0xffffff) * (b & 0xffffff) + c; }},
      {"v_lshlrev_b32 {d}, v10, v11", [](u32 a, u32 b, u32) { return b << (a & 31); }},
      {"v_lshrrev_b32 {d}, v10, v11", [](u32 a, u32 b, u32) { return b >> (a & 31); }},
      {"v_ashrrev_i32 {d}, v10, v11",
       [](u32 a, u32 b, u32) { return static_cast<u32>(static_cast<i32>(b) >> (a & 31)); }},
      {"v_and_b32 {d}, v10, v11", [](u32 a, u32 b, u32) { return a & b; }},
      {"v_or_b32 {d}, v10, v11", [](u32 a, u32 b, u32) { return a | b; }},
      {"v_xor_b32 {d}, v10, v11", [](u32 a, u32 b, u32) { return a ^ b; }},
      {"v_and_b32 {d}, 0x12345678, v11", [](u32, u32 b, u32) { return 0x12345678 & b; }},
      {"v_sub_u32 {d}, -16, v11", [](u32, u32 b, u32) { return 0u - 16 - b; }},
      {"v_lshl_add_u32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }},
      {"v_add_lshl_u32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }},
      {"v_lshl_or_b32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }},
      {"v_and_or_b32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return (a & b) | c; }},
      {"v_or3_b32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return a | b | c; }},
      {"v_add3_u32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return a + b + c; }},
      {"v_xad_u32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; }},
      {"v_min_u32 {d}, v10, v11", [](u32 a, u32 b, u32) { return std::min(a, b); }},
      {"v_max_i32 {d}, v10, v11",
       [](u32 a, u32 b, u32) { return static_cast<u32>(std::max(static_cast<i32>(a), static_cast<i32>(b))); }},
      {"v_min_i32 {d}, v10, v11",
       [](u32 a, u32 b, u32) { return static_cast<u32>(std::min(static_cast<i32>(a), static_cast<i32>(b))); }},
      {"v_bfe_u32 {d}, v10, v11, v12",
       [](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} >> (b & 31)) & ((u64{1} << (c & 31)) - 1)); }},
      {"v_bfe_i32 {d}, v10, 4, 8", [](u32 a, u32, u32) { return static_cast<u32>(static_cast<i32>(a << 20) >> 24); }},
      {"v_bfi_b32 {d}, v10, v11, v12", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }},
      {"v_alignbit_b32 {d}, v10, v11, v12",
       [](u32 a, u32 b, u32 c) { return static_cast<u32>(((u64{a} << 32) | b) >> (c & 31)); }},
      {"v_not_b32 {d}, v10", [](u32 a, u32, u32) { return ~a; }},
      {"v_ffbh_u32 {d}, v10", [](u32 a, u32, u32) { return a ? static_cast<u32>(std::countl_zero(a)) : ~0u; }},
      {"v_ffbl_b32 {d}, v10", [](u32 a, u32, u32) { return a ? static_cast<u32>(std::countr_zero(a)) : ~0u; }},
      {"v_bcnt_u32_b32 {d}, v10, v11", [](u32 a, u32 b, u32) { return static_cast<u32>(std::popcount(a)) + b; }},
      {"v_bitop3_b32 {d}, v10, v11, v12 bitop3:0xca", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }},
      {"v_bitop3_b32 {d}, v10, v11, v12 bitop3:0x96", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; }},
      {"v_bitop3_b32 {d}, v10, v11, v12 bitop3:0x80", [](u32 a, u32 b, u32 c) { return a & b & c; }},
      {"v_bitop3_b32 {d}, v10, v11, v12 bitop3:0x10", [](u32 a, u32 b, u32 c) { return a & ~b & ~c; }},
      {"v_add_u32_sdwa {d}, v10, v11 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_2",
       [](u32 a, u32 b, u32) { return (a >> 16) + ((b >> 16) & 0xff); }},
      {"v_add_u32_sdwa {d}, sext(v10), v11 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:DWORD",
       [](u32 a, u32 b, u32) { return static_cast<u32>(static_cast<i32>(static_cast<std::int8_t>(a >> 8))) + b; }},
      {"v_mov_b32_sdwa {d}, v10 dst_sel:BYTE_3 dst_unused:UNUSED_PAD src0_sel:DWORD",
       [](u32 a, u32, u32) { return a << 24; }},
  };
  const Lanes a = random_lanes(1), b = random_lanes(2), c = random_lanes(3);
  std::string code;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string line = cases[i].code;
    line.replace(line.find("{d}"), 3, fmt::format("v{}", 40 + i));
    code += line + "\n";
  }
  const auto out = run_vector(code, {a, b, c}, static_cast<unsigned>(cases.size()));
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (int l = 0; l < 64; ++l)
      ASSERT_EQ(out[i][l], cases[i].want(a[l], b[l], c[l])) << cases[i].code << " lane " << l;
}

TEST(VectorInteger, PermuteBytesTakesLowSelectorsFromTheSecondSource) {
  const Lanes s0 = splat(0x84838281), s1 = splat(0x14131211);
  const Lanes sel = by_lane([](u32 l) {
    const u32 v[] = {0x03020100, 0x07060504, 0x0c0d0c0d, 0x0b0a0908, 0x00040105};
    return v[l % 5];
  });
  const auto out = run_vector("v_perm_b32 v40, v10, v11, v12\n", {s0, s1, sel}, 1);
  const u32 want[] = {0x14131211, 0x84838281, 0x00ff00ff, 0xffff0000, 0x11811282};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out[0][i], want[i]) << i;
}

TEST(VectorInteger, CarryChainsAndWideProducts) {
  const Lanes a = random_lanes(4), b = random_lanes(5), c = random_lanes(6), d = random_lanes(7);
  const auto out = run_vector(
      "v_add_co_u32 v40, vcc, v10, v12\ns_nop 4\nv_addc_co_u32 v41, vcc, v11, v13, vcc\n"
      "v_sub_co_u32 v42, vcc, v10, v12\ns_nop 4\nv_subb_co_u32 v43, vcc, v11, v13, vcc\n"
      "v_mad_u64_u32 v[44:45], s[20:21], v10, v11, v[12:13]\ns_nop 4\nv_mov_b32 v46, s20\n"
      "v_mad_i64_i32 v[48:49], s[20:21], v10, v11, v[12:13]\n"
      "v_lshlrev_b64 v[50:51], v13, v[10:11]\nv_lshrrev_b64 v[52:53], v13, v[10:11]\nv_ashrrev_i64 v[54:55], v13, "
      "v[10:11]\n"
      "v_lshl_add_u64 v[56:57], v[10:11], 3, v[12:13]\nv_mov_b64 v[58:59], v[10:11]\nv_mov_b64 v[60:61], 1.0\n",
      {a, b, c, d}, 22);
  for (u32 l = 0; l < 64; ++l) {
    const u64 x = a[l] | (u64{b[l]} << 32), y = c[l] | (u64{d[l]} << 32);
    auto pair = [&](int r) { return out[r][l] | (u64{out[r + 1][l]} << 32); };
    EXPECT_EQ(pair(0), x + y);
    EXPECT_EQ(pair(2), x - y);
    EXPECT_EQ(pair(4), u64{a[l]} * b[l] + y);
    if (l < 32) {
      EXPECT_EQ((out[6][0] >> l) & 1, u32{u64{a[l]} * b[l] + y < y});
    }
    EXPECT_EQ(pair(8), static_cast<u64>(i64{static_cast<i32>(a[l])} * static_cast<i32>(b[l])) + y);
    EXPECT_EQ(pair(10), x << (d[l] & 63));
    EXPECT_EQ(pair(12), x >> (d[l] & 63));
    EXPECT_EQ(pair(14), static_cast<u64>(static_cast<i64>(x) >> (d[l] & 63)));
    EXPECT_EQ(pair(16), (x << 3) + y);
    EXPECT_EQ(pair(18), x);
    EXPECT_EQ(pair(20), 0x3ff0000000000000u);
  }
}

TEST(VectorInteger, LaneSwaps) {
  const Lanes x = by_lane([](u32 l) { return 100 + l; }), y = by_lane([](u32 l) { return 200 + l; });
  const auto out = run_vector(
      "v_mov_b32 v40, v10\nv_mov_b32 v41, v11\nv_mov_b32 v42, v10\nv_mov_b32 v43, v11\ns_nop 1\nv_permlane32_swap_b32 "
      "v40, v41\nv_permlane16_swap_b32 v42, v43\n",
      {x, y}, 4);
  for (u32 l = 0; l < 64; ++l) {
    // x = {x.lo, y.lo}, y = {x.hi, y.hi}.
    EXPECT_EQ(out[0][l], l < 32 ? 100 + l : 200 + (l - 32));
    EXPECT_EQ(out[1][l], l < 32 ? 100 + (l + 32) : 200 + l);
    // x rows 1, 3 <-> y rows 0, 2.
    const bool odd = (l / 16) & 1;
    EXPECT_EQ(out[2][l], odd ? 200 + (l - 16) : 100 + l);
    EXPECT_EQ(out[3][l], odd ? 200 + l : 100 + (l + 16));
  }
}

TEST(VectorInteger, DppMovesLanes) {
  const Lanes x = by_lane([](u32 l) { return 1000 + l; });
  struct Control {
    const char* text;
    std::function<int(int)> from;  // source lane or -1
  };
  const std::vector<Control> controls = {
      {"quad_perm:[1,0,3,2]", [](int l) { return l ^ 1; }},
      {"quad_perm:[0,0,2,2]", [](int l) { return l & ~1; }},
      {"row_shl:1", [](int l) { return (l & 15) == 15 ? -1 : l + 1; }},
      {"row_shr:3", [](int l) { return (l & 15) < 3 ? -1 : l - 3; }},
      {"row_ror:8", [](int l) { return (l & ~15) | ((l + 8) & 15); }},
      {"row_ror:1", [](int l) { return (l & ~15) | ((l - 1) & 15); }},
      {"row_mirror", [](int l) { return l ^ 15; }},
      {"row_half_mirror", [](int l) { return l ^ 7; }},
      {"row_newbcast:5", [](int l) { return (l & ~15) + 5; }},
      {"row_bcast:15", [](int l) { return l < 16 ? -1 : (l & ~15) - 1; }},
      {"row_bcast:31", [](int l) { return l < 32 ? -1 : 31; }},
      {"wave_shr:1", [](int l) { return l - 1; }},
      {"wave_rol:1", [](int l) { return (l + 1) & 63; }},
  };
  std::string code;
  for (std::size_t i = 0; i < controls.size(); ++i)
    code += fmt::format(
        "v_mov_b32 v{0}, 7\nv_mov_b32 v{1}, 7\ns_nop 1\nv_mov_b32_dpp v{0}, v10 {2} row_mask:0xf bank_mask:0xf\n"
        "v_mov_b32_dpp v{1}, v10 {2} row_mask:0xf bank_mask:0xf bound_ctrl:0\n",
        40 + 2 * i, 41 + 2 * i, controls[i].text);
  const auto out = run_vector(code, {x}, static_cast<unsigned>(2 * controls.size()));
  for (std::size_t i = 0; i < controls.size(); ++i)
    for (int l = 0; l < 64; ++l) {
      const int from = controls[i].from(l);
      EXPECT_EQ(out[2 * i][l], from < 0 ? 7u : 1000u + static_cast<u32>(from)) << controls[i].text << " lane " << l;
      EXPECT_EQ(out[2 * i + 1][l], from < 0 ? 0u : 1000u + static_cast<u32>(from)) << controls[i].text << " lane " << l;
    }
  const auto masked =
      run_vector("v_mov_b32 v40, 7\ns_nop 1\nv_mov_b32_dpp v40, v10 row_mirror row_mask:0x5 bank_mask:0x3\n", {x}, 1);
  for (u32 l = 0; l < 64; ++l) {
    const bool written = ((0x5 >> (l / 16)) & 1) && ((0x3 >> ((l % 16) / 4)) & 1);
    EXPECT_EQ(masked[0][l], written ? 1000 + (l ^ 15) : 7u) << l;
  }
}

TEST(VectorInteger, LanesMasksAndExec) {
  const Lanes x = by_lane([](u32 l) { return 10 * l; });
  const auto out = run_vector(
      "v_readlane_b32 s20, v10, 7\ns_nop 4\nv_mov_b32 v40, s20\n"
      "s_mov_b32 s20, 33\ns_nop 4\nv_readlane_b32 s21, v10, s20\ns_nop 4\nv_mov_b32 v41, s21\n"
      "v_mov_b32 v42, v10\nv_writelane_b32 v42, 5, 9\n"
      "v_mbcnt_lo_u32_b32 v43, -1, 0\nv_mbcnt_hi_u32_b32 v43, -1, v43\n"
      "v_cmp_gt_u32 vcc, 300, v10\ns_nop 4\nv_cndmask_b32 v44, 1, v10, vcc\n"
      "v_mov_b32 v45, 0\nv_cmpx_lt_u32 vcc, 300, v10\nv_mov_b32 v45, 1\ns_nop 4\nv_readfirstlane_b32 s22, "
      "v10\ns_mov_b64 exec, -1\nv_mov_b32 v46, s22\n",
      {x}, 7);
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(out[0][l], 70u);
    EXPECT_EQ(out[1][l], 330u);
    EXPECT_EQ(out[2][l], l == 9 ? 5u : 10 * l);
    EXPECT_EQ(out[3][l], l);
    EXPECT_EQ(out[4][l], 10 * l < 300 ? 10 * l : 1u);
    EXPECT_EQ(out[5][l], u32{10 * l > 300});
    EXPECT_EQ(out[6][l], 310u);
  }
}

TEST(VectorInteger, AccumulationRegisters) {
  const auto out = run_vector(
      "v_accvgpr_write_b32 a3, v10\nv_accvgpr_read_b32 v40, a3\nv_accvgpr_mov_b32 a0, a3\nv_accvgpr_read_b32 v41, a0\n",
      {random_lanes(8)}, 2, {.vgprs = 128, .agprs = 8});
  const Lanes want = random_lanes(8);
  EXPECT_EQ(out[0], want);
  EXPECT_EQ(out[1], want);
}

}  // namespace
}  // namespace zyfa::sim_test
