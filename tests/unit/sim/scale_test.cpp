// Conversions to and from fp8, bf8, fp6, bf6 and fp4 with a scale, and stochastic rounding: every code and every
// neighbour by value tables made from the formats' definitions (CDNA4 ISA guide, table 30).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using Lanes = std::array<u32, 64>;

u32 bits(float x) { return std::bit_cast<u32>(x); }
float value(u32 x) { return std::bit_cast<float>(x); }

struct Format {
  const char* name;
  int exponent_bits, mantissa_bits, bias;
  u32 largest;             // code of the largest number
  u32 nan, overflow, max;  // codes for NaN, for overflow, and with FP16_OVFL
};
const Format kFp8{"fp8", 4, 3, 7, 0x7e, 0x7f, 0x7f, 0x7e};
const Format kBf8{"bf8", 5, 2, 15, 0x7b, 0x7f, 0x7c, 0x7b};
const Format kFp6{"fp6", 2, 3, 1, 0x1f, 0x1f, 0x1f, 0x1f};
const Format kBf6{"bf6", 3, 2, 3, 0x1f, 0x1f, 0x1f, 0x1f};
const Format kFp4{"fp4", 2, 1, 1, 0x7, 0x7, 0x7, 0x7};

u32 sign_of(const Format& f) { return 1u << (f.exponent_bits + f.mantissa_bits); }
// Magnitude of a code by the definition; codes beyond the largest go on as if they were numbers.
double magnitude(const Format& f, u32 m) {
  const u32 e = m >> f.mantissa_bits, frac = m & ((1u << f.mantissa_bits) - 1);
  const double one = 1 << f.mantissa_bits;
  return e == 0 ? std::ldexp(frac / one, 1 - f.bias) : std::ldexp(1 + frac / one, static_cast<int>(e) - f.bias);
}
double number(const Format& f, u32 code) {
  const double m = magnitude(f, code & (sign_of(f) - 1));
  return code & sign_of(f) ? -m : m;
}

// To nearest even of a double.
u32 nearest(const Format& f, double x, bool saturate) {
  const u32 sign = std::signbit(x) ? sign_of(f) : 0;
  if (std::isnan(x)) return sign | f.nan;
  const double m = std::fabs(x);
  u32 lo = 0;
  while (lo <= f.largest && magnitude(f, lo + 1) <= m) ++lo;
  u32 code = lo;
  if (lo <= f.largest) {
    const double below = m - magnitude(f, lo), above = magnitude(f, lo + 1) - m;
    code = below < above ? lo : above < below ? lo + 1 : lo + (lo & 1);
  }
  if (code > f.largest) code = saturate ? f.max : f.overflow;
  return sign | code;
}
// AMD's host version: the value with the mantissa of its source type, cut to the exponent range of the target, the
// upper bits of the seed below the bits that stay, then cut.
u32 stochastic(const Format& f, double x, int source_mantissa, u32 seed, bool saturate) {
  const u32 sign = std::signbit(x) ? sign_of(f) : 0;
  if (std::isnan(x)) return sign | f.nan;
  if (x == 0) return sign;
  if (std::isinf(x)) return sign | (saturate ? f.max : f.overflow);
  const int min_exp = 1 - f.bias;
  const int e = std::max(std::ilogb(x), min_exp);
  const double unit = std::ldexp(1.0, e - source_mantissa);  // of the last bit that the source type keeps at e
  const double cut = std::floor(std::fabs(x) / unit);
  const double random = seed >> (32 - (source_mantissa - f.mantissa_bits));
  const double kept = std::floor((cut + random) * std::ldexp(1.0, f.mantissa_bits - source_mantissa));
  const double result = kept * std::ldexp(1.0, e - f.mantissa_bits);
  u32 code = 0;
  while (code <= f.largest && magnitude(f, code + 1) <= result) ++code;
  if (code > f.largest) code = saturate ? f.max : f.overflow;
  return sign | code;
}

float half_value(u32 h) {
  const int e = static_cast<int>((h >> 10) & 31), frac = static_cast<int>(h & 0x3ff);
  const double m = e == 0 ? std::ldexp(frac, -24) : e == 31 ? (frac ? NAN : INFINITY) : std::ldexp(1024 + frac, e - 25);
  return static_cast<float>(h & 0x8000 ? -m : m);
}
float bfloat_value(u32 b) { return value(b << 16); }

// Inputs around the format's range after division by the scale; some exact midpoints, some special values.
Lanes inputs(std::mt19937& rng, const Format& f, int scale, bool half) {
  return by_lane([&](u32 l) {
    if (l == 60) return half ? 0x7e017e01u : 0x7fc01234u;
    if (l == 61) return half ? 0xfc007c00u : 0x7f800000u;
    if (l == 62) return half ? 0x7c008000u : 0xff800000u;
    if (l == 63) return half ? 0x00018001u : 0x80000000u;
    const u32 code = static_cast<u32>(rng()) % (f.largest + 3);
    double x = magnitude(f, code);
    const u32 kind = static_cast<u32>(rng()) % 4;
    if (kind == 1) x = (x + magnitude(f, code + 1)) / 2;
    if (kind >= 2) x += (magnitude(f, code + 1) - x) * (static_cast<double>(rng() % 4096) / 4096);
    x = std::ldexp(x, scale) * (rng() & 1 ? -1 : 1);
    return bits(static_cast<float>(x));
  });
}
u32 to_half_bits(float x) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)); }
u32 to_bfloat_bits(float x) { return bits(x) >> 16; }

constexpr int kScales[] = {0, 3, -5};

TEST(Scale, PairsToFp8AndBf8) {
  std::mt19937 rng(1);
  for (const Format& f : {kFp8, kBf8}) {
    for (const bool saturate : {false, true}) {
      for (const int k : kScales) {
        const Lanes scale = splat(bits(std::ldexp(1.0f, k) * 1.75f));  // only the exponent counts
        const Lanes a = inputs(rng, f, k, false), b = inputs(rng, f, k, false);
        const auto out = run_vector(fmt::format("v_mov_b32 v40, -1\nv_cvt_scalef32_pk_{0}_f32 v40, v10, v11, v12\n"
                                                "v_mov_b32 v41, -1\nv_cvt_scalef32_pk_{0}_f32 v41, v10, -v11, v12 "
                                                "op_sel:[0,0,0,1]\n",
                                                f.name),
                                    {a, b, scale}, 2, {.fp16_overflow = saturate, .denorm32 = 3});
        for (unsigned l = 0; l < 64; ++l) {
          const double x = std::ldexp(static_cast<double>(value(a[l])), -k),
                       y = std::ldexp(static_cast<double>(value(b[l])), -k);
          ASSERT_EQ(out[0][l], 0xffff0000u | nearest(f, x, saturate) | (nearest(f, y, saturate) << 8))
              << f.name << " " << x << " " << y;
          ASSERT_EQ(out[1][l], 0xffffu | (nearest(f, x, saturate) << 16) | ((nearest(f, y, saturate) ^ 0x80) << 24));
        }
      }
    }
  }
}

TEST(Scale, HalvesToFp8Bf8AndFp4) {
  std::mt19937 rng(2);
  for (const Format& f : {kFp8, kBf8, kFp4}) {
    for (const bool bfloat : {false, true}) {
      const int k = 2;
      const Lanes lo = inputs(rng, f, k, false), hi = inputs(rng, f, k, false), scale = splat(bits(4.0f));
      const Lanes packed = by_lane([&](u32 l) {
        const auto to = bfloat ? to_bfloat_bits : to_half_bits;
        return to(value(lo[l])) | (to(value(hi[l])) << 16);
      });
      const bool fp4 = f.largest == 7;
      const auto out = run_vector(fmt::format("v_mov_b32 v40, -1\nv_cvt_scalef32_pk_{0}_{1} v40, v10, v11{2}\n", f.name,
                                              bfloat ? "bf16" : "f16", fp4 ? " op_sel:[0,0,0,1]" : " op_sel:[0,0,1]"),
                                  {packed, scale}, 1);
      for (unsigned l = 0; l < 64; ++l) {
        const auto from = bfloat ? bfloat_value : half_value;
        const u32 x = nearest(f, std::ldexp(static_cast<double>(from(packed[l] & 0xffff)), -k), false);
        const u32 y = nearest(f, std::ldexp(static_cast<double>(from(packed[l] >> 16)), -k), false);
        const u32 want = fp4 ? 0xff00ffffu | (x << 16) | (y << 20) : 0xffffu | (x << 16) | (y << 24);
        ASSERT_EQ(out[0][l], want) << f.name << std::hex << " " << packed[l];
      }
    }
  }
}

TEST(Scale, PairsToFp4InEveryByte) {
  std::mt19937 rng(3);
  for (const int k : kScales) {
    const Lanes a = inputs(rng, kFp4, k, false), b = inputs(rng, kFp4, k, false),
                scale = splat(bits(std::ldexp(1.0f, k)));
    const auto out = run_vector(
        "v_mov_b32 v40, 0\nv_cvt_scalef32_pk_fp4_f32 v40, v10, v11, v12\n"
        "v_cvt_scalef32_pk_fp4_f32 v40, v11, v10, v12 op_sel:[0,0,1,0]\n"
        "v_cvt_scalef32_pk_fp4_f32 v40, v10, v10, v12 op_sel:[0,0,0,1]\n"
        "v_cvt_scalef32_pk_fp4_f32 v40, v11, v11, v12 op_sel:[0,0,1,1]\n",
        {a, b, scale}, 1, {.denorm32 = 3});
    for (unsigned l = 0; l < 64; ++l) {
      const u32 x = nearest(kFp4, std::ldexp(static_cast<double>(value(a[l])), -k), false);
      const u32 y = nearest(kFp4, std::ldexp(static_cast<double>(value(b[l])), -k), false);
      ASSERT_EQ(out[0][l], x | (y << 4) | (y << 8) | (x << 12) | (x << 16) | (x << 20) | (y << 24) | (y << 28));
    }
  }
}

// The rule that chooses the other direction of the scale.
TEST(Scale, DirectionIsARule) {
  const Lanes x = splat(bits(2.0f)), scale = splat(bits(4.0f));
  SimRules multiplies;
  multiplies.narrow_scale = SimNarrowScale::kMultiplies;
  const char code[] =
      "v_mov_b32 v40, 0\nv_cvt_scalef32_pk_fp8_f32 v40, v10, v10, v11\n"
      "v_mov_b32 v41, 0x38\nv_cvt_scalef32_f32_fp8 v41, v41, v11\n";
  const auto divided = run_vector(code, {x, scale}, 2),
             multiplied = run_vector(code, {x, scale}, 2, {.rules = multiplies});
  EXPECT_EQ(divided[0][0], nearest(kFp8, 0.5, false) * 0x101);
  EXPECT_EQ(multiplied[0][0], nearest(kFp8, 8.0, false) * 0x101);
  EXPECT_EQ(value(divided[1][0]), 4.0f);
  EXPECT_EQ(value(multiplied[1][0]), 4.0f);
}

TEST(Scale, NaNAndExtremeScales) {
  const Lanes one = splat(bits(1.0f)), nan = splat(0x7f800000u), tiny = splat(0), huge = splat(0x7f000000u);
  const auto out = run_vector(
      "v_mov_b32 v40, 0\nv_cvt_scalef32_pk_fp8_f32 v40, v10, -v10, v11\n"
      "v_mov_b32 v41, 0\nv_cvt_scalef32_pk_fp4_f32 v41, v10, -v10, v11\n"
      "v_mov_b32 v42, 0x38\nv_cvt_scalef32_f32_fp8 v42, v42, v11\n"
      "v_mov_b32 v43, 0\nv_cvt_scalef32_pk_bf8_f32 v43, v10, -v10, v12\n"
      "v_mov_b32 v44, 0\nv_cvt_scalef32_pk_bf8_f32 v44, v10, -v10, v13\n"
      "v_mov_b32 v45, 0x38\nv_cvt_scalef32_f32_fp8 v45, v45, v12\n"
      "v_mov_b32 v46, 0x38\nv_mov_b32 v47, 0\nv_cvt_scalef32_f16_fp8 v47, v46, v13\n"
      "v_mov_b32 v46, 0x7f\nv_cvt_scalef32_f32_fp8 v46, v46, v10\n",
      {one, nan, tiny, huge}, 8, {.denorm32 = 3});
  EXPECT_EQ(out[0][0], 0xff7fu);
  EXPECT_EQ(out[1][0], 0xf7u);  // no NaN in fp4: the largest number
  EXPECT_TRUE(std::isnan(value(out[2][0])));
  EXPECT_EQ(out[3][0], 0xfc7cu);  // 2^127: infinity
  EXPECT_EQ(out[4][0], 0x8000u);  // 2^-127
  EXPECT_EQ(value(out[5][0]), 0x1p-127f);
  EXPECT_EQ(out[7][0], 0x7c00u);
  EXPECT_TRUE(std::isnan(value(out[6][0])));
}

TEST(Scale, EightBitCodesToWideTypes) {
  for (const Format& f : {kFp8, kBf8}) {
    const Lanes codes =
        by_lane([](u32 l) { return (4 * l) | ((4 * l + 1) << 8) | ((4 * l + 2) << 16) | ((4 * l + 3) << 24); });
    const int k = 4;
    const auto out = run_vector(
        fmt::format("v_cvt_scalef32_pk_f32_{0} v[40:41], v10, v11\nv_cvt_scalef32_pk_f32_{0} v[42:43], v10, v11 "
                    "op_sel:[1,0,0]\n"
                    "v_cvt_scalef32_pk_f16_{0} v44, v10, v11 op_sel:[1,0,0]\nv_cvt_scalef32_pk_bf16_{0} v45, v10, v11\n"
                    "v_cvt_scalef32_f32_{0} v46, v10, v11 op_sel:[0,1,0]\n"
                    "v_mov_b32 v47, -1\nv_cvt_scalef32_f16_{0} v47, v10, v11 op_sel:[1,0,1]\n"
                    "v_mov_b32 v48, -1\nv_cvt_scalef32_f16_{0} v48, v10, v11 op_sel:[1,1,0]\n",
                    f.name),
        {codes, splat(bits(16.0f))}, 9);
    for (unsigned l = 0; l < 64; ++l) {
      const auto check_one = [&](u32 code, float got, const char* what) {
        const u32 m = code & 0x7f;
        if (m > f.largest && !(f.largest == 0x7b && m == 0x7c)) {
          EXPECT_TRUE(std::isnan(got)) << what << code;
        } else if (m > f.largest) {
          EXPECT_EQ(got, code & 0x80 ? -INFINITY : INFINITY) << what;
        } else {
          // Exact in all three types but where f16 overflows: 57344 * 16.
          const double x = std::ldexp(number(f, code), k);
          const bool over = std::fabs(x) >= 65520 && std::string_view(what).starts_with("f16");
          EXPECT_EQ(got, over ? std::copysign(INFINITY, static_cast<float>(x)) : static_cast<float>(x)) << what << code;
        }
      };
      const auto code = [&](unsigned b) { return (codes[l] >> (8 * b)) & 0xff; };
      for (unsigned b = 0; b < 4; ++b) check_one(code(b), value(out[b][l]), "f32");
      check_one(code(2), half_value(out[4][l] & 0xffff), "f16");
      check_one(code(3), half_value(out[4][l] >> 16), "f16");
      check_one(code(0), bfloat_value(out[5][l] & 0xffff), "bf16");
      check_one(code(1), bfloat_value(out[5][l] >> 16), "bf16");
      check_one(code(2), value(out[6][l]), "f32");
      EXPECT_EQ(out[7][l] & 0xffff, 0xffffu);
      check_one(code(1), half_value(out[7][l] >> 16), "f16");
      EXPECT_EQ(out[8][l] >> 16, 0xffffu);
      check_one(code(3), half_value(out[8][l] & 0xffff), "f16");
    }
  }
}

TEST(Scale, Fp4CodesToWideTypes) {
  const Lanes codes = by_lane([](u32 l) { return 0x01010101u * (4 * l) + 0x03020100u; });
  const auto out = run_vector(
      "v_cvt_scalef32_pk_f32_fp4 v[40:41], v10, v11\nv_cvt_scalef32_pk_f32_fp4 v[42:43], v10, v11 op_sel:[1,1,0]\n"
      "v_cvt_scalef32_pk_f16_fp4 v44, v10, v11 op_sel:[1,0,0]\nv_cvt_scalef32_pk_bf16_fp4 v45, v10, v11 "
      "op_sel:[0,1,0]\n",
      {codes, splat(bits(0.25f))}, 6);
  for (unsigned l = 0; l < 64; ++l) {
    const auto want = [&](unsigned b, unsigned n) {
      return static_cast<float>(std::ldexp(number(kFp4, (codes[l] >> (8 * b + 4 * n)) & 15), -2));
    };
    for (unsigned n = 0; n < 2; ++n) {
      EXPECT_EQ(bits(value(out[n][l])), bits(want(0, n)));
      EXPECT_EQ(value(out[2 + n][l]), want(3, n));
      EXPECT_EQ(half_value((out[4][l] >> (16 * n)) & 0xffff), want(1, n));
      EXPECT_EQ(bfloat_value((out[5][l] >> (16 * n)) & 0xffff), want(2, n));
    }
  }
}

// 192 bits of 32 codes, item s at bits 6s (gfx950-isa.md 1.1).
u32 six_bits(const std::vector<Lanes>& registers, unsigned first, unsigned item, unsigned lane) {
  u32 code = 0;
  for (unsigned b = 0; b < 6; ++b) {
    const unsigned at = 6 * item + b;
    code |= ((registers[first + at / 32][lane] >> (at % 32)) & 1) << b;
  }
  return code;
}

TEST(Scale, SixBitCodesToWideTypes) {
  std::mt19937 rng(4);
  for (const Format& f : {kFp6, kBf6}) {
    std::vector<Lanes> in(6);
    for (auto& r : in) r = by_lane([&](u32) { return static_cast<u32>(rng()); });
    in.push_back(splat(bits(8.0f)));
    const auto out = run_vector(fmt::format("v_cvt_scalef32_pk32_f32_{0} v[40:71], v[10:15], v16\n"
                                            "v_cvt_scalef32_pk32_f16_{0} v[72:87], v[10:15], v16\n"
                                            "v_cvt_scalef32_pk32_bf16_{0} v[88:103], v[10:15], v16\n",
                                            f.name),
                                in, 64);
    for (unsigned l = 0; l < 64; ++l) {
      for (unsigned s = 0; s < 32; ++s) {
        const u32 code = six_bits(in, 0, s, l);
        const float want = static_cast<float>(std::ldexp(number(f, code), 3));
        ASSERT_EQ(value(out[s][l]), want);
        ASSERT_EQ(half_value((out[32 + s / 2][l] >> (16 * (s % 2))) & 0xffff), want);
        ASSERT_EQ(bfloat_value((out[48 + s / 2][l] >> (16 * (s % 2))) & 0xffff), want);
      }
    }
  }
}

TEST(Scale, WideTypesToSixBits) {
  std::mt19937 rng(5);
  for (const Format& f : {kFp6, kBf6}) {
    const int k = -3;
    std::vector<Lanes> in;
    for (unsigned s = 0; s < 32; ++s) in.push_back(inputs(rng, f, k, false));
    for (auto& r : in)
      for (u32& x : r) x &= 0xffff0000u;  // bf16 values, so that all three sources can be made of them
    std::string code = fmt::format("v_mov_b32 v8, 0x{:x}\n", bits(std::ldexp(1.0f, k)));
    // Interleaved: sources of 16 registers each give items 2i and 2i + 1 (guide, V_CVT_SCALEF32_2XPK16_FP6_F32).
    code += fmt::format("v_cvt_scalef32_2xpk16_{}_f32 v[110:115], v[10:25], v[26:41], v8\n", f.name);
    for (unsigned s = 0; s < 16; ++s) {
      code += fmt::format("v_lshrrev_b32 v{0}, 16, v{1}\nv_and_or_b32 v{0}, v{2}, v9, v{0}\n", 42 + s, 10 + 2 * s,
                          11 + 2 * s);
      code += fmt::format("v_cvt_pkrtz_f16_f32 v{}, v{}, v{}\n", 58 + s, 10 + 2 * s, 11 + 2 * s);
    }
    code = "v_mov_b32 v9, 0xffff0000\n" + code;
    code += fmt::format(
        "v_cvt_scalef32_pk32_{0}_bf16 v[116:121], v[42:57], v8\n"
        "v_cvt_scalef32_pk32_{0}_f16 v[122:127], v[58:73], v8\n",
        f.name);
    for (unsigned i = 0; i < 16; ++i) code += fmt::format("v_mov_b32 v{}, v{}\n", 58 + i, 58 + i);
    for (unsigned i = 0; i < 18; ++i) code += fmt::format("v_mov_b32 v{}, v{}\n", 40 + i, 110 + i);
    const auto out = run_vector(code, in, 18, {.denorm32 = 3});
    for (unsigned l = 0; l < 64; ++l) {
      for (unsigned s = 0; s < 32; ++s) {
        const float x = value(in[s][l]);
        const u32 want = nearest(f, std::ldexp(static_cast<double>(x), -k), false);
        ASSERT_EQ(six_bits(out, 0, s < 16 ? 2 * s : 2 * (s - 16) + 1, l), want) << f.name << " " << x;
        ASSERT_EQ(six_bits(out, 6, s, l), want) << f.name << " " << x;
        // f16 holds these values exactly unless they are NaN with a small payload.
        if (!std::isnan(x)) {
          ASSERT_EQ(six_bits(out, 12, s, l), want) << f.name << " " << x;
        }
      }
    }
  }
}

u32 next_random(u32 x) { return (x << 1) ^ (x & 0x80000000u ? 197u : 0u); }

TEST(Scale, StochasticToBytes) {
  std::mt19937 rng(6);
  for (const Format& f : {kFp8, kBf8}) {
    for (const bool saturate : {false, true}) {
      const int k = 1;
      const Lanes a = inputs(rng, f, k, false),
                  seed = by_lane([&](u32 l) {
                    return l % 8 == 0 ? 0xffffffffu : l % 8 == 1 ? 0 : static_cast<u32>(rng());
                  });
      const Lanes h = by_lane([&](u32 l) { return to_half_bits(value(a[l])); }),
                  b = by_lane([&](u32 l) { return to_bfloat_bits(value(a[l])); });
      const auto out =
          run_vector(fmt::format("v_mov_b32 v40, -1\nv_cvt_sr_{0}_f32 v40, v10, v11 op_sel:[0,0,1,0]\n"
                                 "v_mov_b32 v41, -1\nv_cvt_scalef32_sr_{0}_f32 v41, v10, v11, v14 op_sel:[0,0,0,1]\n"
                                 "v_mov_b32 v42, -1\nv_cvt_scalef32_sr_{0}_f16 v42, v12, v11, v14\n"
                                 "v_mov_b32 v43, -1\nv_cvt_scalef32_sr_{0}_bf16 v43, v13, v11, v14 op_sel:[0,0,1,1]\n",
                                 f.name),
                     {a, seed, h, b, splat(bits(2.0f))}, 4, {.fp16_overflow = saturate, .denorm32 = 3});
      for (unsigned l = 0; l < 64; ++l) {
        const double x = static_cast<double>(value(a[l]));
        ASSERT_EQ((out[0][l] >> 8) & 0xff, stochastic(f, x, 23, seed[l], saturate))
            << f.name << " " << x << " " << seed[l];
        ASSERT_EQ(out[0][l] | 0xff00, 0xffffffffu);
        ASSERT_EQ((out[1][l] >> 16) & 0xff, stochastic(f, std::ldexp(x, -k), 23, seed[l], saturate));
        const double xh = std::ldexp(static_cast<double>(half_value(h[l])), -k);
        ASSERT_EQ(out[2][l] & 0xff, stochastic(f, xh, 10, seed[l], saturate)) << f.name << " " << xh;
        const double xb = std::ldexp(static_cast<double>(bfloat_value(b[l])), -k);
        ASSERT_EQ(out[3][l] >> 24, stochastic(f, xb, 7, seed[l], saturate)) << f.name << " " << xb;
      }
    }
  }
}

TEST(Scale, StochasticToFourAndSixBits) {
  std::mt19937 rng(7);
  const Lanes seed = by_lane([&](u32) { return static_cast<u32>(rng()); });
  {
    const Lanes a = inputs(rng, kFp4, 0, false), b = inputs(rng, kFp4, 0, false);
    const Lanes packed = by_lane([&](u32 l) { return to_half_bits(value(a[l])) | (to_half_bits(value(b[l])) << 16); });
    const auto out = run_vector(
        "v_mov_b32 v40, -1\nv_cvt_scalef32_sr_pk_fp4_f32 v40, v[10:11], v12, 1.0 op_sel:[0,0,1,0]\n"
        "v_mov_b32 v41, -1\nv_cvt_scalef32_sr_pk_fp4_f16 v41, v13, v12, 1.0\n",
        {a, b, seed, packed}, 2, {.denorm32 = 3});
    for (unsigned l = 0; l < 64; ++l) {
      const u32 x = stochastic(kFp4, value(a[l]), 23, seed[l], false),
                y = stochastic(kFp4, value(b[l]), 23, next_random(seed[l]), false);
      ASSERT_EQ(out[0][l], 0xffff00ffu | (x << 8) | (y << 12));
      const u32 xh = stochastic(kFp4, half_value(packed[l] & 0xffff), 10, seed[l], false);
      const u32 yh = stochastic(kFp4, half_value(packed[l] >> 16), 10, next_random(seed[l]), false);
      ASSERT_EQ(out[1][l], 0xffffff00u | xh | (yh << 4));
    }
  }
  for (const Format& f : {kFp6, kBf6}) {
    std::vector<Lanes> in;
    for (unsigned s = 0; s < 32; ++s) in.push_back(inputs(rng, f, 0, false));
    in.push_back(seed);
    std::string code = fmt::format("v_cvt_scalef32_sr_pk32_{}_f32 v[44:49], v[10:41], v42, 1.0\n", f.name);
    for (unsigned i = 0; i < 6; ++i) code += fmt::format("v_mov_b32 v{}, v{}\n", 40 + i, 44 + i);
    const auto out = run_vector(code, in, 6, {.denorm32 = 3});
    for (unsigned l = 0; l < 64; ++l) {
      u32 random = seed[l];
      for (unsigned s = 0; s < 32; ++s) {
        ASSERT_EQ(six_bits(out, 0, s, l), stochastic(f, value(in[s][l]), 23, random, false)) << f.name;
        random = next_random(random);
      }
    }
  }
}

TEST(Scale, StochasticToHalves) {
  std::mt19937 rng(8);
  const Lanes a = by_lane([&](u32 l) {
    const u32 special[] = {0x7fc00000, 0x7f800000, 0xff800000, 0, 0x80000000, 0x477fffff, 0x7f7fffff, 0x33000001};
    return l < 8 ? special[l] : (static_cast<u32>(rng()) & 0x807fffff) | ((100 + static_cast<u32>(rng()) % 45) << 23);
  });
  const Lanes seed = by_lane([&](u32) { return static_cast<u32>(rng()); });
  const auto out = run_vector(
      "v_mov_b32 v40, -1\nv_cvt_sr_f16_f32 v40, v10, v11\n"
      "v_mov_b32 v41, -1\nv_cvt_sr_bf16_f32 v41, v10, v11 op_sel:[0,0,1]\n",
      {a, seed}, 2, {.denorm32 = 3});
  const Format f16{"f16", 5, 10, 15, 0x7bff, 0x7e00, 0x7c00, 0x7bff},
      bf16{"bf16", 8, 7, 127, 0x7f7f, 0x7fc0, 0x7f80, 0x7f7f};
  for (unsigned l = 0; l < 64; ++l) {
    const double x = static_cast<double>(value(a[l]));
    ASSERT_EQ(out[0][l], 0xffff0000u | stochastic(f16, x, 23, seed[l], false)) << x;
    ASSERT_EQ(out[1][l], 0xffffu | (stochastic(bf16, x, 23, seed[l], false) << 16)) << x;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
