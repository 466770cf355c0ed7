// Vector instructions with rules of their own: mixed precision, classes, compares that write EXEC, the division
// helpers, lane selects, dot products of floats.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/sim/exact_half.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Lanes = std::array<u32, 64>;

float f32(u32 x) { return std::bit_cast<float>(x); }
u32 bits(float x) { return std::bit_cast<u32>(x); }
float half_as_float(u32 h) { return static_cast<float>(real_of(h & 0xffff)); }

// Halves between 2^-6 and 2^6, so that the products and sums below are exact in double.
u32 moderate_half(std::mt19937& rng) {
  return (static_cast<u32>(rng()) & 0x83ff) | ((9 + static_cast<u32>(rng()) % 12) << 10);
}

TEST(Mix, SourcesByOpSelWithModifiers) {
  std::mt19937 rng(1);
  const auto pair = [&](u32) { return moderate_half(rng) | (moderate_half(rng) << 16); };
  const auto single = [&](u32) {
    return (static_cast<u32>(rng()) & 0x807fffff) | ((120 + static_cast<u32>(rng()) % 12) << 23);
  };
  const std::vector<Lanes> in{by_lane(pair), by_lane(single), by_lane(pair)};
  const auto out = run_vector(
      "v_fma_mix_f32 v40, v10, v11, v12 op_sel:[1,0,0] op_sel_hi:[1,0,1]\n"
      "v_fma_mix_f32 v41, -v10, |v11|, v12 op_sel:[0,0,1] op_sel_hi:[1,0,1]\n"
      "v_mov_b32 v42, -1\nv_fma_mixlo_f16 v42, v10, v11, v12 op_sel:[1,0,0] op_sel_hi:[1,0,1]\n"
      "v_mov_b32 v43, -1\nv_fma_mixhi_f16 v43, v10, v11, -|v12| op_sel:[0,0,1] op_sel_hi:[1,0,1]\n"
      "v_fma_mix_f32 v44, v10, 1.0, v12 op_sel_hi:[1,0,0]\n"
      "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 13\n"  // f32 up, f16 toward zero
      "v_fma_mix_f32 v45, v10, v11, v12 op_sel_hi:[1,0,1]\nv_mov_b32 v46, 0\n"
      "v_fma_mixlo_f16 v46, v10, v11, v12 op_sel_hi:[1,0,1]\n",
      in, 7, {.denorm32 = 3});
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], c = in[2][l];
    const float x = f32(in[1][l]);
    const float alo = half_as_float(a), ahi = half_as_float(a >> 16), clo = half_as_float(c),
                chi = half_as_float(c >> 16);
    EXPECT_EQ(f32(out[0][l]), std::fmaf(ahi, x, clo));
    EXPECT_EQ(f32(out[1][l]), std::fmaf(-alo, std::fabs(x), chi));
    EXPECT_EQ(out[2][l], 0xffff0000u | code_of_real(static_cast<long double>(std::fmaf(ahi, x, clo))));
    EXPECT_EQ(out[3][l], 0xffffu | code_of_real(static_cast<long double>(std::fmaf(alo, x, -std::fabs(chi)))) << 16);
    EXPECT_EQ(f32(out[4][l]), alo + f32(c));
    // Exact: 11 + 24 bits of product and a half within 2^40 of it fit a long double.
    const long double exact = static_cast<long double>(alo) * x + static_cast<long double>(clo);
    float up = static_cast<float>(exact);
    if (static_cast<long double>(up) < exact) up = std::nextafterf(up, INFINITY);
    EXPECT_EQ(f32(out[5][l]), up);
    u32 cut = code_of_real(std::fabs(static_cast<long double>(up)));
    if (real_of(cut) > std::fabs(static_cast<long double>(up))) --cut;
    EXPECT_EQ(out[6][l], cut | (std::signbit(up) ? 0x8000u : 0u));
  }
}

// Bits of v_cmp_class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
TEST(Class, HalvesOfEveryKind) {
  const u32 examples[] = {0x7d00, 0x7e00, 0xfc00, 0xc000, 0x8001, 0x8000,
                          0x0000, 0x03ff, 0x0400, 0x7c00, 0xfd01, 0xfe00};
  const unsigned classes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1};
  const Lanes in = by_lane([&](u32 l) { return examples[l % 12] | 0xabcd0000u; }),
              mask = by_lane([](u32 l) { return 1u << (l / 6); });
  const auto out = run_vector(
      "v_cmp_class_f16 vcc, v10, v11\nv_cndmask_b32_e64 v40, 0, 1, vcc\n"
      "v_cmp_class_f16 s[20:21], -v10, v11\nv_cndmask_b32_e64 v41, 0, 1, s[20:21]\n",
      {in, mask}, 2);
  const unsigned negated[] = {0, 1, 9, 8, 7, 6, 5, 4, 3, 2};
  for (u32 l = 0; l < 64; ++l) {
    EXPECT_EQ(out[0][l], u32{(mask[l] >> classes[l % 12] & 1) != 0}) << l;
    EXPECT_EQ(out[1][l], u32{(mask[l] >> negated[classes[l % 12]] & 1) != 0}) << l;
  }
}

TEST(Compare, CmpxWritesTheMaskAndExec) {
  const Lanes in = by_lane([](u32 l) { return l; });
  const auto out = run_vector(
      "v_mov_b32 v40, 0\nv_mov_b32 v41, 0\ns_mov_b32 exec_hi, 0xffff\nv_cmpx_gt_u32_e64 s[20:21], v10, 40\n"
      "v_mov_b32 v40, 1\ns_mov_b64 s[22:23], exec\ns_mov_b64 exec, -1\nv_cndmask_b32_e64 v41, 0, 1, s[20:21]\n"
      "v_mov_b32 v42, s22\nv_mov_b32 v43, s23\n",
      {in}, 4);
  for (u32 l = 0; l < 64; ++l) {
    const u32 want = l > 40 && l < 48;
    EXPECT_EQ(out[0][l], want);
    EXPECT_EQ(out[1][l], want);
    EXPECT_EQ(out[2][l], 0u);
    EXPECT_EQ(out[3][l], 0x0000fe00u);
  }
}

// AMD's division sequence gives the correctly rounded quotient whatever the operands: so do the three helpers together.
TEST(Division, SequenceOfSingles) {
  std::mt19937 rng(2);
  const auto any = [&](u32 l) {
    const u32 corners[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                           1, 0x007fffff, 0x00800000, 0x7f7fffff, 0x3f800000};
    return l % 3 == 0 ? corners[rng() % 10] : static_cast<u32>(rng());
  };
  for (int trial = 0; trial < 12; ++trial) {
    const Lanes a = by_lane(any), b = by_lane(any);
    const auto out = run_vector(
        "v_div_scale_f32 v20, s[20:21], v11, v11, v10\nv_div_scale_f32 v21, vcc, v10, v11, v10\n"
        "v_rcp_f32 v22, v20\nv_fma_f32 v23, -v20, v22, 1.0\nv_fma_f32 v22, v23, v22, v22\n"
        "v_mul_f32 v24, v21, v22\nv_fma_f32 v25, -v20, v24, v21\nv_fma_f32 v24, v25, v22, v24\n"
        "v_fma_f32 v25, -v20, v24, v21\nv_div_fmas_f32 v25, v25, v22, v24\nv_div_fixup_f32 v40, v25, v11, v10\n",
        {a, b}, 1, {.denorm32 = 3});
    for (unsigned l = 0; l < 64; ++l) {
      const float want = f32(a[l]) / f32(b[l]);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(f32(out[0][l])));
      } else {
        EXPECT_EQ(out[0][l], bits(want)) << f32(a[l]) << " / " << f32(b[l]);
      }
    }
  }
}

TEST(Division, SequenceOfDoubles) {
  std::mt19937_64 rng(3);
  const auto any = [&](unsigned i) {
    const u64 corners[] = {0,
                           1ull << 63,
                           0x7ff0000000000000,
                           1,
                           0x000fffffffffffff,
                           0x0010000000000000,
                           0x7fefffffffffffff,
                           0x3ff0000000000000};
    return i % 4 == 0 ? corners[rng() % 8] : rng();
  };
  for (int trial = 0; trial < 12; ++trial) {
    std::vector<u64> a(64), b(64);
    for (unsigned i = 0; i < 64; ++i) a[i] = any(i), b[i] = any(i / 2);
    const auto low = [](const std::vector<u64>& v) { return by_lane([&](u32 l) { return static_cast<u32>(v[l]); }); };
    const auto high = [](const std::vector<u64>& v) {
      return by_lane([&](u32 l) { return static_cast<u32>(v[l] >> 32); });
    };
    const auto out = run_vector(
        "v_div_scale_f64 v[20:21], s[20:21], v[12:13], v[12:13], v[10:11]\nv_div_scale_f64 v[22:23], vcc, v[10:11], "
        "v[12:13], v[10:11]\n"
        "v_rcp_f64 v[24:25], v[20:21]\nv_fma_f64 v[26:27], -v[20:21], v[24:25], 1.0\nv_fma_f64 v[24:25], v[24:25], "
        "v[26:27], v[24:25]\n"
        "v_fma_f64 v[26:27], -v[20:21], v[24:25], 1.0\nv_fma_f64 v[24:25], v[24:25], v[26:27], v[24:25]\n"
        "v_mul_f64 v[26:27], v[22:23], v[24:25]\nv_fma_f64 v[28:29], -v[20:21], v[26:27], v[22:23]\n"
        "v_div_fmas_f64 v[28:29], v[28:29], v[24:25], v[26:27]\nv_div_fixup_f64 v[40:41], v[28:29], v[12:13], "
        "v[10:11]\n",
        {low(a), high(a), low(b), high(b)}, 2);
    for (unsigned l = 0; l < 64; ++l) {
      const double want = std::bit_cast<double>(a[l]) / std::bit_cast<double>(b[l]);
      const double got = std::bit_cast<double>(out[0][l] | (static_cast<u64>(out[1][l]) << 32));
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got));
      } else {
        EXPECT_EQ(got, want) << std::bit_cast<double>(a[l]) << " / " << std::bit_cast<double>(b[l]);
      }
    }
  }
}

TEST(Division, FixupOfSpecialOperands) {
  // Invalid divisions give the negative NaN; a quotient 151 exponents below gives 0 (guide, V_DIV_FIXUP_F32).
  const u32 d[] = {0, 0x7f800000, 0x7f000000, 0x80000000, 0x3f800000},
            n[] = {0, 0xff800000, 0x00800000, 0x3f800000, 0x7f812345};
  const u32 want[] = {0xffc00000, 0xffc00000, 0, 0xff800000, 0x7fc12345};
  const auto out = run_vector(
      "v_div_fixup_f32 v40, v10, v11, v12\n",
      {splat(bits(2.0f)), by_lane([&](u32 l) { return d[l % 5]; }), by_lane([&](u32 l) { return n[l % 5]; })}, 1);
  for (unsigned l = 0; l < 5; ++l) EXPECT_EQ(out[0][l], want[l]) << l;
}

TEST(Lanes, SelectsByM0AndScalars) {
  const Lanes in = by_lane([](u32 l) { return 500 + l; });
  const auto out = run_vector(
      "s_mov_b32 m0, 67\ns_mov_b32 s20, 9\ns_nop 4\nv_readlane_b32 s21, v10, m0\nv_readlane_b32 s22, v10, s20\n"
      "v_readlane_b32 s23, v10, 63\ns_mov_b64 exec, 0\nv_readfirstlane_b32 s24, v10\n"
      "v_writelane_b32 v10, s20, m0\nv_writelane_b32 v10, 64, s20\ns_mov_b64 exec, 0x30\nv_readfirstlane_b32 s25, v10\n"
      "s_mov_b64 exec, -1\nv_mov_b32 v40, s21\nv_mov_b32 v41, s22\nv_mov_b32 v42, s23\nv_mov_b32 v43, s24\nv_mov_b32 "
      "v44, s25\nv_mov_b32 v45, v10\n",
      {in}, 6);
  EXPECT_EQ(out[0][0], 503u);  // the select has six bits
  EXPECT_EQ(out[1][0], 509u);
  EXPECT_EQ(out[2][0], 563u);
  EXPECT_EQ(out[3][0], 500u);  // lane 0 when no lane is active
  EXPECT_EQ(out[4][0], 504u);
  for (u32 l = 0; l < 64; ++l) EXPECT_EQ(out[5][l], l == 3 ? 9u : l == 9 ? 64u : 500 + l);
}

TEST(Dot, FloatsInTheOrderOfTheGuide) {
  std::mt19937 rng(4);
  const auto halves = [&](u32) { return moderate_half(rng) | (moderate_half(rng) << 16); };
  const auto bfloats = [&](u32) {
    const auto one = [&] { return (static_cast<u32>(rng()) & 0x807f) | ((118 + static_cast<u32>(rng()) % 20) << 7); };
    return one() | (one() << 16);
  };
  const auto single = [&](u32) {
    return (static_cast<u32>(rng()) & 0x807fffff) | ((118 + static_cast<u32>(rng()) % 20) << 23);
  };
  const std::vector<Lanes> in{by_lane(halves), by_lane(halves), by_lane(bfloats), by_lane(bfloats), by_lane(single)};
  const auto out = run_vector(
      "v_dot2_f32_f16 v40, v10, v11, v14\nv_dot2_f32_bf16 v41, v12, v13, v14\n"
      "v_mov_b32 v42, v14\nv_dot2c_f32_f16 v42, v10, v11\nv_mov_b32 v43, v14\nv_dot2c_f32_bf16 v43, v12, v13\n"
      "v_dot2_f32_f16 v44, v10, v11, v14 neg_lo:[1,0,0] neg_hi:[0,1,0]\n"
      "v_mov_b32 v45, v14\nv_dot2c_f32_f16_e64 v45, -v10, v11\nv_dot2_f32_f16 v46, v10, v11, v14 clamp\n",
      in, 7, {.denorm32 = 3});
  for (unsigned l = 0; l < 64; ++l) {
    const float a0 = half_as_float(in[0][l]), a1 = half_as_float(in[0][l] >> 16), b0 = half_as_float(in[1][l]),
                b1 = half_as_float(in[1][l] >> 16);
    const float x0 = f32(in[2][l] << 16), x1 = f32(in[2][l] & 0xffff0000u), y0 = f32(in[3][l] << 16),
                y1 = f32(in[3][l] & 0xffff0000u);
    const float c = f32(in[4][l]);
    // Products of halves and of bfloats are exact in float.
    const float f16 = (c + a0 * b0) + a1 * b1, bf16 = (x0 * y0 + x1 * y1) + c, accumulated = (c + x0 * y0) + x1 * y1;
    EXPECT_EQ(f32(out[0][l]), f16);
    EXPECT_EQ(f32(out[1][l]), bf16);
    EXPECT_EQ(f32(out[2][l]), f16);
    EXPECT_EQ(f32(out[3][l]), accumulated);
    EXPECT_EQ(f32(out[4][l]), (c - a0 * b0) - a1 * b1);
    EXPECT_EQ(f32(out[5][l]), (c - a0 * b0) + a1 * b1);
    EXPECT_EQ(f32(out[6][l]), f16 > 1 ? 1.0f : f16 > 0 ? f16 : 0.0f);
  }
}

TEST(Special, MedianOfZerosAndShiftsOfPairs) {
  // The operand equal to the largest is left out: the median of -0, +0 and -1 is +0 (guide, V_MED3_F32).
  const auto out = run_vector(
      "v_mov_b32 v8, 0x80000000\nv_med3_f32 v40, v8, 0, -1.0\nv_med3_f32 v41, 0, v8, -1.0\n"
      "v_mov_b32 v20, 1\nv_mov_b32 v21, 0\nv_lshl_add_u64 v[42:43], v[20:21], v10, v[20:21]\n",
      {by_lane([](u32 l) { return l % 8; })}, 3);
  EXPECT_EQ(out[0][0], 0u);
  EXPECT_EQ(out[1][0], 0x80000000u);
  for (u32 l = 0; l < 8; ++l) EXPECT_EQ(out[2][l], (l > 4 ? 1u : 1u << l) + 1);  // larger counts shift by 0
}

}  // namespace
}  // namespace zyfa::sim_test
