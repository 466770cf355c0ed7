// f16 instructions against exact arithmetic: every rounding mode, denormal modes, overflow, NaN, halves of registers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/sim/exact_half.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using Lanes = std::array<u32, 64>;

std::string set_mode(unsigned first, unsigned bits, unsigned value) {
  return fmt::format("s_setreg_imm32_b32 hwreg(HW_REG_MODE, {}, {}), {}\n", first, bits, value);
}

// All 65536 codes in one launch: `code` computes v40.. from v10 = the code; result i of code c at [c * outputs + i].
std::vector<u32> over_all_codes(std::string_view code, unsigned outputs, const AsmOptions& options = {}) {
  std::string body =
      "s_load_dwordx2 s[4:5], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\ns_lshl_b32 s6, s2, 6\nv_add_u32 v10, s6, v0\n";
  body += fmt::format("v_mul_u32_u24 v1, {}, v10\ns_waitcnt lgkmcnt(0)\n", 4 * outputs);
  body += code;
  for (unsigned i = 0; i < outputs; ++i)
    body += fmt::format("\nglobal_store_dword v1, v{}, s[4:5] offset:{}", 40 + i, 4 * i);
  const auto device = make_device();
  const Buffer<u32> out(*device, std::vector<u32>(65536 * outputs));
  check(
      run(*device, assemble_kernel(body, options), "k", {.grid = {1024, 1, 1}, .block = {64, 1, 1}}, Args().add(out)));
  return out.read();
}

// Random codes with corners among them.
u32 random_code(std::mt19937& rng) {
  constexpr u32 kCorners[] = {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7c00,
                              0xfc00, 0x3c00, 0xbc00, 0x8001, 0x83ff, 0x8400, 0x3bff, 0x7e01};
  const u32 x = static_cast<u32>(rng());
  if (x % 4 == 0) return kCorners[(x >> 8) % std::size(kCorners)];
  return (x >> 8) & 0xffff;
}

struct Mode {
  unsigned round;
  bool saturate, denormals;
};
u32 input(u32 h, const Mode& m) { return m.denormals ? h : flushed(h); }
u32 output(u32 h, const Mode& m) { return m.denormals ? h : flushed(h); }
// Quiet form of the first NaN, or 0.
u32 nan_of(u32 a, u32 b, u32 c = 0) {
  return is_nan_code(a) ? a | 0x200 : is_nan_code(b) ? b | 0x200 : is_nan_code(c) ? c | 0x200 : 0;
}
u32 sum(u32 a, u32 b, const Mode& m) {
  if (const u32 nan = nan_of(a, b)) return nan;
  if (is_inf_code(a) && is_inf_code(b)) return a == b ? a : 0x7e00;
  if (is_inf_code(a)) return a;
  if (is_inf_code(b)) return b;
  // x + -x is +0, or -0 when rounding down; equal signs keep theirs.
  const u32 zero = (a & b & 0x8000) ? 0x8000 : (((a | b) & 0x8000) && m.round == 2) ? 0x8000 : 0;
  return output(code_of(exact_of(a) + exact_of(b), m.round, m.saturate, zero), m);
}
u32 product(u32 a, u32 b, const Mode& m) {
  if (const u32 nan = nan_of(a, b)) return nan;
  const u32 sign = (a ^ b) & 0x8000;
  if (is_inf_code(a) || is_inf_code(b)) return (a & 0x7fff) == 0 || (b & 0x7fff) == 0 ? 0x7e00 : sign | 0x7c00;
  const Wide exact = (exact_of(a) >> 24) * (exact_of(b) >> 24);
  return output(code_of(exact, m.round, m.saturate, sign), m);
}
u32 fused(u32 a, u32 b, u32 c, const Mode& m) {
  if (const u32 nan = nan_of(a, b, c)) return nan;
  const u32 sign = (a ^ b) & 0x8000;
  if (is_inf_code(a) || is_inf_code(b)) {
    if ((a & 0x7fff) == 0 || (b & 0x7fff) == 0) return 0x7e00;
    return is_inf_code(c) && ((c & 0x8000) != sign) ? 0x7e00 : sign | 0x7c00;
  }
  if (is_inf_code(c)) return c;
  const Wide exact = (exact_of(a) >> 24) * (exact_of(b) >> 24);
  const u32 zero = (sign & c & 0x8000) ? 0x8000 : ((sign | (c & 0x8000)) && m.round == 2) ? 0x8000 : 0;
  return output(code_of(exact + exact_of(c), m.round, m.saturate, zero), m);
}

TEST(Half, SumsAndProductsInEveryMode) {
  std::mt19937 rng(16);
  for (unsigned variant = 0; variant < 12; ++variant) {
    const Mode m{variant % 4, variant / 4 == 1, variant / 4 != 2};
    std::vector<Lanes> in;
    for (int r = 0; r < 24; ++r) in.push_back(by_lane([&](u32) { return random_code(rng); }));
    std::string code = set_mode(2, 2, m.round) + set_mode(6, 2, m.denormals ? 3 : 0);
    for (unsigned k = 0; k < 8; ++k) {
      const unsigned a = 10 + 3 * k, d = 40 + 8 * k;
      code += fmt::format(
          "v_add_f16 v{0}, v{8}, v{9}\nv_sub_f16 v{1}, v{8}, v{9}\nv_mul_f16 v{2}, v{8}, v{9}\n"
          "v_mov_b32 v{3}, -1\nv_fma_f16 v{3}, v{8}, v{9}, v{10}\nv_fma_legacy_f16 v{4}, v{8}, v{9}, v{10}\n"
          "v_mad_legacy_f16 v{5}, v{8}, v{9}, v{10}\nv_mov_b32 v{6}, v{10}\nv_mac_f16 v{6}, v{8}, v{9}\n"
          "v_mov_b32 v{7}, 5\nv_mad_f16 v{7}, v{8}, v{9}, v{10} op_sel:[0,0,0,1]\n",
          d, d + 1, d + 2, d + 3, d + 4, d + 5, d + 6, d + 7, a, a + 1, a + 2);
    }
    const auto out = run_vector(code, in, 64, {.fp16_overflow = m.saturate});
    for (unsigned k = 0; k < 8; ++k) {
      for (unsigned l = 0; l < 64; ++l) {
        const u32 a = input(in[3 * k][l], m), b = input(in[3 * k + 1][l], m), c = input(in[3 * k + 2][l], m);
        const auto say = [&] { return fmt::format("mode {} of {:04x} {:04x} {:04x}", variant, a, b, c); };
        ASSERT_EQ(out[8 * k][l], sum(a, b, m)) << say();
        ASSERT_EQ(out[8 * k + 1][l], is_nan_code(b) ? nan_of(a, b) : sum(a, b ^ 0x8000, m)) << say();
        ASSERT_EQ(out[8 * k + 2][l], product(a, b, m)) << say();
        ASSERT_EQ(out[8 * k + 3][l], 0xffff0000u | fused(a, b, c, m)) << say();
        ASSERT_EQ(out[8 * k + 4][l], fused(a, b, c, m)) << say();
        // Unfused: two roundings, denormals flushed in any mode.
        const Mode u{m.round, m.saturate, false};
        const u32 fa = flushed(a), fb = flushed(b), fc = flushed(c);
        const u32 p = product(fa, fb, u), nan = nan_of(fa, fb, fc), mad = nan ? nan : sum(p, fc, u);
        ASSERT_EQ(out[8 * k + 5][l], mad) << say();
        ASSERT_EQ(out[8 * k + 6][l], mad) << say();
        ASSERT_EQ(out[8 * k + 7][l], 5u | (mad << 16)) << say();
      }
    }
  }
}

TEST(Half, PackedFormsAreTheScalarOnes) {
  std::mt19937 rng(17);
  const auto pair = [&](u32) { return random_code(rng) | (random_code(rng) << 16); };
  const std::vector<Lanes> in{by_lane(pair), by_lane(pair), by_lane(pair)};
  const Mode m{1, false, true};
  const auto out = run_vector(set_mode(2, 2, 1) +
                                  "v_pk_add_f16 v40, v10, v11 op_sel:[1,0] op_sel_hi:[0,1]\n"
                                  "v_pk_mul_f16 v41, v10, v11 neg_lo:[1,0] neg_hi:[0,1]\n"
                                  "v_pk_fma_f16 v42, v10, v11, v12\nv_mov_b32 v43, v12\nv_pk_fmac_f16 v43, v10, v11\n",
                              in, 4);
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], b = in[1][l], c = in[2][l];
    const u32 al = a & 0xffff, ah = a >> 16, bl = b & 0xffff, bh = b >> 16, cl = c & 0xffff, ch = c >> 16;
    ASSERT_EQ(out[0][l], sum(ah, bl, m) | (sum(al, bh, m) << 16));
    ASSERT_EQ(out[1][l], product(al ^ 0x8000, bl, m) | (product(ah, bh ^ 0x8000, m) << 16));
    ASSERT_EQ(out[2][l], fused(al, bl, cl, m) | (fused(ah, bh, ch, m) << 16));
    ASSERT_EQ(out[3][l], out[2][l]);
  }
}

TEST(Half, ConversionFromFloatInEveryMode) {
  std::mt19937 rng(18);
  for (unsigned variant = 0; variant < 8; ++variant) {
    const unsigned round = variant % 4;
    const bool saturate = variant >= 4;
    std::vector<Lanes> in;
    for (int r = 0; r < 16; ++r) {
      in.push_back(by_lane([&](u32) {
        const u32 x = static_cast<u32>(rng());
        // Around the f16 range: exponents 2^-27 to 2^17; some exact midpoints.
        const u32 e = 100 + (x >> 8) % 45,
                  f = x % 3 == 0 ? (static_cast<u32>(rng()) & 0x7fe000) | 0x1000 : static_cast<u32>(rng()) & 0x7fffff;
        return (x & 0x80000000u) | (e << 23) | f;
      }));
    }
    std::string code = set_mode(2, 2, round);
    for (int r = 0; r < 16; ++r) code += fmt::format("v_cvt_f16_f32 v{}, v{}\n", 40 + r, 10 + r);
    const auto out = run_vector(code, in, 16, {.fp16_overflow = saturate, .denorm32 = 3});
    for (int r = 0; r < 16; ++r) {
      for (unsigned l = 0; l < 64; ++l) {
        const float x = std::bit_cast<float>(in[r][l]);
        // Exact in units of 2^-48: the smallest bit is 2^(100 - 127 - 23) = 2^-50, so work in 2^-52 by scaling.
        const long double scaled = std::ldexp(static_cast<long double>(x), 48);
        const Wide floor = static_cast<Wide>(scaled);  // toward zero
        // What lies below one unit only matters as a sticky bit: every f16 midpoint is a multiple of 2^-25.
        const bool rest = static_cast<long double>(floor) != scaled;
        const Wide n = floor * 4 + (rest ? (x < 0 ? -1 : 1) : 0);
        // The same search on a grid four times finer.
        const bool negative = x < 0;
        const Wide mag = negative ? -n : n;
        u32 lo = 0, hi = 0x7c00;
        while (hi - lo > 1) {
          const u32 mid = (lo + hi) / 2;
          (magnitude_of(mid) * 4 <= mag ? lo : hi) = mid;
        }
        u32 want;
        if (mag >= magnitude_of(0x7c00) * 4) {
          want = round == 3 || (round != 0 && (round == 1) == negative) ? 0x7bff : 0x7c00;
        } else {
          const Wide twice = 2 * mag - 4 * (magnitude_of(lo) + magnitude_of(lo + 1));
          want = choose(lo, magnitude_of(lo) * 4 == mag, twice < 0 ? -1 : twice > 0, round, negative);
        }
        if (want == 0x7c00 && saturate) want = 0x7bff;
        ASSERT_EQ(out[r][l], want | (negative ? 0x8000u : 0u)) << x << " mode " << round;
      }
    }
  }
}

// The f32 field of FP_ROUND leaves f16 alone and the other way round; RNE-only conversions ignore both.
TEST(Half, FieldsOfFpRoundAreSeparate) {
  const Lanes x = splat(std::bit_cast<u32>(1.0f + 0x1p-20f)), third = splat(std::bit_cast<u32>(0x1.555556p-2f));
  const Lanes half = splat(0x3555), tiny = splat(0x0001);
  const auto out = run_vector(set_mode(0, 4, 1) +  // f32 up, f16 nearest
                                  "v_cvt_f16_f32 v40, v10\nv_mul_f32 v41, v11, v11\nv_add_f16 v42, v12, v13\n" +
                                  set_mode(0, 4, 4) +  // f32 nearest, f16 up
                                  "v_cvt_f16_f32 v43, v10\nv_mul_f32 v44, v11, v11\nv_add_f16 v45, v12, v13\n"
                                  "v_cvt_pk_f16_f32 v46, v10, v10\nv_cvt_pkrtz_f16_f32 v47, v10, v10\n",
                              {x, third, half, tiny}, 8, {.denorm32 = 3});
  EXPECT_EQ(out[0][0], 0x3c00u);
  EXPECT_EQ(out[3][0], 0x3c01u);
  const double factor = static_cast<double>(0x1.555556p-2f), exact = factor * factor;
  EXPECT_GE(static_cast<double>(std::bit_cast<float>(out[1][0])), exact);
  EXPECT_EQ(std::bit_cast<float>(out[4][0]), static_cast<float>(exact));
  EXPECT_EQ(out[2][0], 0x3555u);
  EXPECT_EQ(out[5][0], 0x3556u);
  EXPECT_EQ(out[6][0], 0x3c003c00u);
  EXPECT_EQ(out[7][0], 0x3c003c00u);
}

TEST(Half, RoundingToIntegersAllCodes) {
  for (const unsigned round : {0u, 1u}) {  // FP_ROUND does not matter here
    const auto out = over_all_codes(set_mode(2, 2, round) +
                                        "v_trunc_f16 v40, v10\nv_ceil_f16 v41, v10\nv_floor_f16 v42, v10\n"
                                        "v_rndne_f16 v43, v10\nv_cvt_i16_f16 v44, v10\nv_cvt_u16_f16 v45, v10\n"
                                        "v_frexp_mant_f16 v46, v10\nv_frexp_exp_i16_f16 v47, v10\n",
                                    8);
    for (u32 c = 0; c < 65536; ++c) {
      const u32* o = &out[8 * c];
      if (is_nan_code(c)) {
        for (int i : {0, 1, 2, 3, 6}) ASSERT_EQ(o[i], c | 0x200) << i;
        for (int i : {4, 5, 7}) ASSERT_EQ(o[i], 0u) << i;
        continue;
      }
      if (is_inf_code(c)) {
        for (int i : {0, 1, 2, 3, 6}) ASSERT_EQ(o[i], c) << i;
        ASSERT_EQ(o[4], c == 0x7c00 ? 0x7fffu : 0x8000u);
        ASSERT_EQ(o[5], c == 0x7c00 ? 0xffffu : 0u);
        ASSERT_EQ(o[7], 0u);
        continue;
      }
      const long double x = real_of(c);
      const u32 sign = c & 0x8000;
      ASSERT_EQ(o[0], sign | code_of_real(std::fabs(std::trunc(x)))) << x;
      ASSERT_EQ(o[1], sign | code_of_real(std::fabs(std::ceil(x)))) << x;
      ASSERT_EQ(o[2], sign | code_of_real(std::fabs(std::floor(x)))) << x;
      ASSERT_EQ(o[3], sign | code_of_real(std::fabs(std::nearbyint(x)))) << x;
      const long double t = std::trunc(x);
      ASSERT_EQ(o[4], static_cast<u32>(static_cast<int>(t < -32768 ? -32768 : t > 32767 ? 32767 : t)) & 0xffff) << x;
      ASSERT_EQ(o[5], static_cast<u32>(t < 0 ? 0 : t)) << x;
      int e = 0;
      const long double m = std::frexp(x, &e);
      ASSERT_EQ(o[6], x == 0 ? c : code_of_real(m)) << x;
      ASSERT_EQ(o[7], static_cast<u32>(e) & 0xffff) << x;
    }
  }
}

TEST(Half, NormalisedIntegersAllCodes) {
  for (const unsigned round : {0u, 1u, 2u, 3u}) {
    const auto out =
        over_all_codes(set_mode(2, 2, round) +
                           "v_cvt_norm_i16_f16 v40, v10\nv_cvt_norm_u16_f16 v41, v10\n"
                           "v_lshl_or_b32 v9, v10, 16, v10\nv_cvt_pknorm_i16_f16 v42, v9, v9 op_sel:[1,0,0]\n"
                           "v_cvt_pknorm_u16_f16 v43, v10, -v10\n",
                       4);
    const auto rounded = [&](long double x) {
      const long double f = std::floor(x), r = x - f;
      if (r == 0) return f;
      if (round == 1) return f + 1;
      if (round == 2) return f;
      if (round == 3) return std::trunc(x);
      return r < 0.5L ? f : r > 0.5L ? f + 1 : std::fmod(f, 2.0L) == 0 ? f : f + 1;
    };
    const auto snorm = [&](u32 c) {
      if (is_nan_code(c)) return 0u;
      const long double x = std::fmax(-1.0L, std::fmin(1.0L, real_of(c)));
      return static_cast<u32>(static_cast<int>(rounded(x * 32767.0L))) & 0xffff;
    };
    const auto unorm = [&](u32 c) {
      if (is_nan_code(c)) return 0u;
      const long double x = std::fmax(0.0L, std::fmin(1.0L, real_of(c)));
      return static_cast<u32>(rounded(x * 65535.0L)) & 0xffff;
    };
    for (u32 c = 0; c < 65536; ++c) {
      ASSERT_EQ(out[4 * c], snorm(c)) << std::hex << c;
      ASSERT_EQ(out[4 * c + 1], unorm(c)) << std::hex << c;
      ASSERT_EQ(out[4 * c + 2], snorm(c) | (snorm(c) << 16)) << std::hex << c;
      ASSERT_EQ(out[4 * c + 3], unorm(c) | (unorm(c ^ 0x8000) << 16)) << std::hex << c;
    }
  }
}

TEST(Half, TranscendentalsAllCodes) {
  const auto out = over_all_codes(
      "v_rcp_f16 v40, v10\nv_sqrt_f16 v41, v10\nv_rsq_f16 v42, v10\nv_exp_f16 v43, v10\nv_log_f16 v44, v10\n"
      "v_sin_f16 v45, v10\nv_cos_f16 v46, v10\nv_fract_f16 v47, v10\n",
      8);
  const long double pi = std::acos(-1.0L);
  for (u32 c = 0; c < 65536; ++c) {
    const u32* o = &out[8 * c];
    if (is_nan_code(c)) {
      for (int i = 0; i < 8; ++i) ASSERT_EQ(o[i], c | 0x200) << i;
      continue;
    }
    const long double x = is_inf_code(c) ? (c == 0x7c00 ? INFINITY : -INFINITY) : real_of(c);
    const bool zero = (c & 0x7fff) == 0;
    ASSERT_EQ(o[0], zero ? (c & 0x8000) | 0x7c00 : code_of_real(1 / x)) << x;
    ASSERT_EQ(o[1], zero ? c : x < 0 ? 0xfe00 : code_of_real(std::sqrt(x))) << x;
    ASSERT_EQ(o[2], zero ? (c & 0x8000) | 0x7c00 : x < 0 ? 0xfe00 : code_of_real(1 / std::sqrt(x))) << x;
    ASSERT_EQ(o[3], code_of_real(std::exp2(x))) << x;
    ASSERT_EQ(o[4], zero ? 0xfc00 : x < 0 ? 0xfe00 : code_of_real(std::log2(x))) << x;
    if (is_inf_code(c)) {
      ASSERT_EQ(o[5], 0xfe00u);
      ASSERT_EQ(o[6], 0xfe00u);
      ASSERT_EQ(o[7], 0x7e00u);  // infinity - infinity
      continue;
    }
    // Quarter turns by hand: pi is not exact. The guide's examples: whole numbers give +0, -0 stays.
    const long double turn = x - std::floor(x);
    const u32 sine = c == 0x8000 ? c : turn == 0 || turn == 0.5L ? 0 : code_of_real(std::sin(2 * pi * turn));
    const u32 cosine = turn == 0.25L || turn == 0.75L ? 0 : code_of_real(std::cos(2 * pi * turn));
    ASSERT_EQ(o[5] & (turn == 0.5L ? 0x7fff : 0xffff), sine) << x;
    ASSERT_EQ(o[6] & (cosine == 0 ? 0x7fff : 0xffff), cosine) << x;
    const u32 fraction = code_of_real(turn);
    ASSERT_EQ(o[7], fraction == 0x3c00 ? 0x3bff : fraction) << x;
  }
  // Examples of the guide.
  const std::pair<u32, u32> sines[] = {{0xfbff, 0}, {0x8000, 0x8000}, {0x3400, 0x3c00}, {0x7bff, 0}, {0x7c00, 0xfe00}};
  for (const auto& [from, to] : sines) EXPECT_EQ(out[8 * from + 5], to);
  const std::pair<u32, u32> cosines[] = {{0xfbff, 0x3c00}, {0x8000, 0x3c00}, {0x3400, 0}, {0x7bff, 0x3c00}};
  for (const auto& [from, to] : cosines) EXPECT_EQ(out[8 * from + 6], to);
}

// Minimum, maximum, median of values with NaNs of both kinds and both zeros, from the guide's text.
TEST(Half, ExtremesFollowTheRulesForNaNAndZero) {
  std::vector<u32> codes{0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 0xfd23, 0x7c05, 0x0001};
  std::vector<Lanes> in(3);
  std::mt19937 rng(19);
  for (auto& r : in) r = by_lane([&](u32) { return codes[rng() % codes.size()]; });
  for (const bool ieee : {false, true}) {
    const auto out = run_vector(
        "v_max_f16 v40, v10, v11\nv_min_f16 v41, v10, v11\nv_mov_b32 v42, 0\nv_max3_f16 v42, v10, v11, v12\n"
        "v_mov_b32 v43, 0\nv_min3_f16 v43, v10, v11, v12\nv_mov_b32 v44, 0\nv_med3_f16 v44, v10, v11, v12\n"
        "v_pk_maximum3_f16 v45, v10, v11, v12\nv_pk_minimum3_f16 v46, v10, v11, v12\n"
        "v_pk_max_f16 v47, v10, v11\n",
        in, 8, {.ieee = ieee});
    const auto signalling = [](u32 h) { return is_nan_code(h) && !(h & 0x200); };
    const auto extreme = [&](u32 a, u32 b, bool max) -> u32 {
      if (ieee && signalling(a)) return a | 0x200;
      if (ieee && signalling(b)) return b | 0x200;
      if (is_nan_code(a)) return b;
      if (is_nan_code(b)) return a;
      const auto key = [](u32 h) {
        return h & 0x8000 ? -static_cast<int>(h & 0x7fff) * 2 - 1 : static_cast<int>(h) * 2;
      };
      return (key(a) > key(b)) == max ? a : b;
    };
    for (unsigned l = 0; l < 64; ++l) {
      const u32 a = in[0][l], b = in[1][l], c = in[2][l];
      const u32 max3 = extreme(extreme(a, b, true), c, true), min3 = extreme(extreme(a, b, false), c, false);
      ASSERT_EQ(out[0][l], extreme(a, b, true));
      ASSERT_EQ(out[1][l], extreme(a, b, false));
      ASSERT_EQ(out[2][l], max3);
      ASSERT_EQ(out[3][l], min3);
      const auto same = [](u32 x, u32 y) { return x == y || ((x | y) & 0x7fff) == 0; };
      const u32 median = nan_of(a, b, c) ? min3
                         : same(max3, a) ? extreme(b, c, true)
                         : same(max3, b) ? extreme(a, c, true)
                                         : extreme(a, b, true);
      ASSERT_EQ(out[4][l], median) << std::hex << a << " " << b << " " << c;
      const u32 nan = nan_of(a, b, c);
      ASSERT_EQ(out[5][l] & 0xffff, nan ? nan : max3);
      ASSERT_EQ(out[6][l] & 0xffff, nan ? nan : min3);
      ASSERT_EQ(out[7][l] & 0xffff, extreme(a, b, true));
    }
  }
  const auto clamped = run_vector("v_pk_maximum3_f16 v40, v10, v11, v12\n", in, 1, {.dx10_clamp = true});
  for (unsigned l = 0; l < 64; ++l) {
    if (nan_of(in[0][l], in[1][l], in[2][l])) {
      ASSERT_EQ(clamped[0][l] & 0xffff, 0u);
    }
  }
}

TEST(Half, DivisionFixup) {
  const std::vector<u32> codes{0, 0x8000, 0x7c00, 0xfc00, 0x3c00, 0xbe00, 0x7e01, 0x7d00};
  const Lanes q = splat(0x3555), s1 = by_lane([&](u32 l) { return codes[l / 8]; }),
              s2 = by_lane([&](u32 l) { return codes[l % 8]; });
  const auto out = run_vector(
      "v_div_fixup_legacy_f16 v40, v10, v11, v12\nv_mov_b32 v41, -1\n"
      "v_div_fixup_f16 v41, v10, v11, v12\n",
      {q, s1, s2}, 2);
  for (unsigned l = 0; l < 64; ++l) {
    const u32 d = s1[l], n = s2[l], sign = (d ^ n) & 0x8000;
    const bool zd = (d & 0x7fff) == 0, zn = (n & 0x7fff) == 0;
    const u32 want = is_nan_code(n)                                     ? n | 0x200
                     : is_nan_code(d)                                   ? d | 0x200
                     : (zd && zn) || (is_inf_code(d) && is_inf_code(n)) ? 0xfe00
                     : zd || is_inf_code(n)                             ? sign | 0x7c00
                     : is_inf_code(d) || zn                             ? sign
                                                                        : sign | 0x3555;
    EXPECT_EQ(out[0][l], want) << std::hex << d << " " << n;
    EXPECT_EQ(out[1][l], 0xffff0000u | want);
  }
}

TEST(Half, LdexpAndMadWithConstants) {
  std::mt19937 rng(20);
  const Lanes a = by_lane([&](u32) { return random_code(rng); });
  const Lanes b = by_lane([&](u32) { return rng() % 60 - 30; });
  const auto out = run_vector(
      "v_ldexp_f16 v40, v10, v11\nv_madak_f16 v41, v10, v10, 0x3e00\n"
      "v_madmk_f16 v42, v10, 0x4200, v10\n",
      {a, b}, 3);
  const Mode u{0, false, false};
  for (unsigned l = 0; l < 64; ++l) {
    const u32 x = a[l], f = flushed(x);
    const int e = static_cast<std::int16_t>(b[l]);
    if (is_finite_code(x)) {
      const u32 sign = x & 0x8000;
      ASSERT_EQ(out[0][l], sign | code_of_real(std::fabs(std::ldexp(real_of(x), e)))) << std::hex << x << " " << e;
    } else {
      ASSERT_EQ(out[0][l], is_nan_code(x) ? x | 0x200 : x);
    }
    const auto mad = [&](u32 p, u32 q, u32 c) {
      const u32 nan = nan_of(p, q, c);
      return nan ? nan : sum(product(p, q, u), c, u);
    };
    ASSERT_EQ(out[1][l], mad(f, f, 0x3e00));
    ASSERT_EQ(out[2][l], mad(f, 0x4200, f));
  }
}

}  // namespace
}  // namespace zyfa::sim_test
