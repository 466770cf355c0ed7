// Format conversions against the definitions of the formats, by search over all codes (gfx950-isa.md 1.2 and 2).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using Lanes = std::array<std::uint32_t, 64>;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float value(std::uint32_t x) { return std::bit_cast<float>(x); }

// Value of a code: sign, `e` exponent bits of the given bias, `m` mantissa bits.
double decode(unsigned code, int e, int m, int bias) {
  const int exponent = (code >> m) & ((1 << e) - 1), fraction = code & ((1 << m) - 1);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias - m) : std::ldexp(1.0 + std::ldexp(fraction, -m), exponent - bias);
  return (code >> (e + m)) & 1 ? -magnitude : magnitude;
}
double e4m3(unsigned code) { return (code & 0x7f) == 0x7f ? NAN : decode(code, 4, 3, 7); }
double e5m2(unsigned code) {
  return (code & 0x7f) == 0x7c  ? (code & 0x80 ? -INFINITY : INFINITY)
         : (code & 0x7f) > 0x7c ? NAN
                                : decode(code, 5, 2, 15);
}

// The code of the finite value nearest to x, ties to the even code; -1 when |x| rounds above the largest.
int nearest(double x, double (*of)(unsigned), unsigned largest, double beyond) {
  const double m = std::fabs(x);
  int best = 0;
  double distance = 1e300;
  for (unsigned c = 0; c <= largest; ++c) {
    const double d = std::fabs(m - of(c));
    if (d < distance || (d == distance && c % 2 == 0)) {
      distance = d;
      best = static_cast<int>(c);
    }
  }
  // `beyond` is the value one step above the largest.
  if (std::fabs(m - beyond) < distance || (std::fabs(m - beyond) == distance && largest % 2 == 1)) return -1;
  return best | (std::signbit(x) ? 0x80 : 0);
}

std::vector<Lanes> samples(std::mt19937& rng, double scale) {
  std::vector<Lanes> in;
  for (int r = 0; r < 8; ++r)
    in.push_back(by_lane([&](std::uint32_t l) {
      if (l % 8 == 7)
        return bits(static_cast<float>(std::ldexp(static_cast<double>(rng() % 64), -12)) *
                    (l % 16 == 7 ? -1.0f : 1.0f));
      return bits(static_cast<float>(std::exp2(std::uniform_real_distribution<double>(-12, scale)(rng))) *
                  (rng() & 1 ? -1.0f : 1.0f));
    }));
  return in;
}

TEST(Convert, PkFp8RoundsToNearestEven) {
  std::mt19937 rng(1);
  auto in = samples(rng, 9.2);
  in[0] = by_lane([](std::uint32_t l) { return bits(448.0f + static_cast<float>(l)); });  // 448 .. 511, tie at 464
  for (const bool saturate : {false, true}) {
    std::string code;
    for (int i = 0; i < 4; ++i)
      code += fmt::format(
          "v_mov_b32 v{0}, -1\nv_cvt_pk_fp8_f32 v{0}, v{1}, v{2}\nv_mov_b32 v{3}, -1\nv_cvt_pk_fp8_f32 v{3}, v{1}, "
          "v{2} op_sel:[0,0,1]\n",
          40 + 2 * i, 10 + 2 * i, 11 + 2 * i, 41 + 2 * i);
    const auto out = run_vector(code, in, 8, {.fp16_overflow = saturate});
    for (int i = 0; i < 4; ++i) {
      for (int l = 0; l < 64; ++l) {
        std::uint32_t want = 0;
        for (int b = 0; b < 2; ++b) {
          const double x = value(in[2 * i + b][l]);
          const int c = nearest(x, e4m3, 0x7e, 480.0);
          const unsigned code8 = c >= 0 ? static_cast<unsigned>(c) : (saturate ? 0x7eu : 0x7fu) | (x < 0 ? 0x80u : 0u);
          want |= code8 << (8 * b);
        }
        ASSERT_EQ(out[2 * i][l], 0xffff0000u | want) << value(in[2 * i][l]) << " " << value(in[2 * i + 1][l]);
        ASSERT_EQ(out[2 * i + 1][l], 0x0000ffffu | (want << 16));
      }
    }
  }
}

TEST(Convert, PkBf8RoundsToNearestEven) {
  std::mt19937 rng(2);
  const auto in = samples(rng, 15.99);
  std::string code;
  for (int i = 0; i < 4; ++i)
    code += fmt::format("v_mov_b32 v{0}, 0\nv_cvt_pk_bf8_f32 v{0}, v{1}, v{2}\n", 40 + i, 10 + 2 * i, 11 + 2 * i);
  const auto out = run_vector(code, in, 4);
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < 64; ++l)
      for (int b = 0; b < 2; ++b) {
        const double x = value(in[2 * i + b][l]);
        const int c = nearest(x, e5m2, 0x7b, 65536.0);
        const unsigned want = c >= 0 ? static_cast<unsigned>(c) : 0x7cu | (x < 0 ? 0x80u : 0u);
        ASSERT_EQ((out[i][l] >> (8 * b)) & 0xff, want) << x;
      }
}

TEST(Convert, Fp8SpecialValues) {
  const Lanes in = by_lane([](std::uint32_t l) {
    const std::uint32_t v[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x80000000, 0};
    return v[l % 5];
  });
  const auto out = run_vector(
      "v_mov_b32 v40, 0\nv_cvt_pk_fp8_f32 v40, v10, v10\nv_mov_b32 v41, 0\nv_cvt_pk_bf8_f32 v41, v10, v10\n", {in}, 2);
  const std::uint32_t fp8[] = {0x7f, 0xff, 0x7f, 0x80, 0}, bf8[] = {0x7c, 0xfc, 0x7f, 0x80, 0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(out[0][i] & 0xff, fp8[i]) << i;
    EXPECT_EQ(out[1][i] & 0xff, bf8[i]) << i;
  }
  const auto saturated =
      run_vector("v_mov_b32 v40, 0\nv_cvt_pk_fp8_f32 v40, v10, v10\n", {in}, 1, {.fp16_overflow = true});
  EXPECT_EQ(saturated[0][0] & 0xff, 0x7eu);
  EXPECT_EQ(saturated[0][1] & 0xff, 0xfeu);
  EXPECT_EQ(saturated[0][2] & 0x7f, 0x7fu);
}

TEST(Convert, UnpackFp8AllCodes) {
  std::vector<Lanes> in = {by_lane(
      [](std::uint32_t l) { return (4 * l) | ((4 * l + 1) << 8) | ((4 * l + 2) << 16) | ((4 * l + 3) << 24); })};
  const auto out = run_vector(
      "v_cvt_pk_f32_fp8 v[40:41], v10\nv_cvt_pk_f32_fp8_sdwa v[42:43], v10 src0_sel:WORD_1\n"
      "v_cvt_pk_f32_bf8 v[44:45], v10\nv_cvt_pk_f32_bf8_sdwa v[46:47], v10 src0_sel:WORD_1\nv_cvt_f32_fp8_sdwa v48, "
      "v10 src0_sel:BYTE_2\n",
      in, 9);
  for (int l = 0; l < 64; ++l) {
    for (int b = 0; b < 4; ++b) {
      const double f = e4m3(static_cast<unsigned>(4 * l + b)), g = e5m2(static_cast<unsigned>(4 * l + b));
      if (std::isnan(f)) {
        EXPECT_TRUE(std::isnan(value(out[b][l])));
      } else {
        EXPECT_EQ(value(out[b][l]), static_cast<float>(f));
      }
      if (std::isnan(g)) {
        EXPECT_TRUE(std::isnan(value(out[4 + b][l])));
      } else {
        EXPECT_EQ(value(out[4 + b][l]), static_cast<float>(g));
      }
    }
    EXPECT_EQ(out[8][l], out[2][l]);
  }
}

TEST(Convert, PkBf16IsNearestEven) {
  std::mt19937 rng(3);
  std::vector<Lanes> in(8);
  for (auto& r : in)
    r = by_lane([&](std::uint32_t l) {
      const auto x = static_cast<std::uint32_t>(rng());
      return l % 4 == 0 ? (x & 0xffff0000u) | 0x8000u : x;  // exact ties
    });
  std::string code;
  for (int i = 0; i < 4; ++i) code += fmt::format("v_cvt_pk_bf16_f32 v{}, v{}, v{}\n", 40 + i, 10 + 2 * i, 11 + 2 * i);
  const auto out = run_vector(code, in, 4, {.denorm32 = 3});
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < 64; ++l)
      for (int b = 0; b < 2; ++b) {
        const float x = value(in[2 * i + b][l]);
        const std::uint32_t got = (out[i][l] >> (16 * b)) & 0xffff;
        if (std::isnan(x)) {
          EXPECT_TRUE((got & 0x7fff) > 0x7f80 && (got & 0x40)) << std::hex << in[2 * i + b][l] << " " << got;
          continue;
        }
        // Neighbours below and above; the nearer one, the even code at a tie.
        const std::uint32_t down = in[2 * i + b][l] >> 16, up = down + 1;
        const double lo = value(down << 16), hi = (up & 0x7fff) == 0x7f80 ? std::copysign(0x1p128, x) : value(up << 16);
        const double dl = std::fabs(x - lo), dh = std::fabs(hi - x);
        const std::uint32_t want = std::isinf(x) ? down : dl < dh ? down : dh < dl ? up : (down & 1) ? up : down;
        ASSERT_EQ(got, want) << std::hex << in[2 * i + b][l];
      }
}

TEST(Convert, PkU8RoundsAndClamps) {
  const Lanes in = by_lane([](std::uint32_t l) {
    const float v[] = {0.5f, 1.5f, 2.5f, 2.51f, 254.5f, 255.5f, 300, -0.6f, -5, 126.5f, 127.49f, 1e30f};
    if (l == 12) return 0x7fc00000u;
    if (l == 13) return 0x7f800000u;
    if (l == 14) return 0xff800000u;
    return l < 12 ? bits(v[l]) : bits(static_cast<float>(l));
  });
  const auto out =
      run_vector("v_cvt_pk_u8_f32 v40, v10, 2, v11\nv_cvt_pk_u8_f32 v41, v10, 0, v11\nv_cvt_pk_u8_f32 v42, v10, 7, 0\n",
                 {in, splat(0x11223344)}, 3);
  const unsigned want[] = {0, 2, 2, 3, 254, 255, 255, 0, 0, 126, 127, 255, 0, 255, 0, 15};
  for (int l = 0; l < 16; ++l) {
    EXPECT_EQ(out[0][l], 0x11003344u | (want[l] << 16)) << l;
    EXPECT_EQ(out[1][l], 0x11223300u | want[l]) << l;
    EXPECT_EQ(out[2][l], want[l] << 24) << l;
  }
}

TEST(Convert, IntegersSaturateAndTruncate) {
  const Lanes in = by_lane([](std::uint32_t l) {
    const float v[] = {1.9f, -1.9f, 3e9f, -3e9f, 5e9f, NAN, INFINITY, -INFINITY, 2147483520.0f, 0.0f};
    return bits(v[l % 10]);
  });
  const auto out = run_vector("v_cvt_i32_f32 v40, v10\nv_cvt_u32_f32 v41, v10\n", {in}, 2);
  const std::int32_t i[] = {1, -1, 0x7fffffff, INT32_MIN, 0x7fffffff, 0, 0x7fffffff, INT32_MIN, 2147483520, 0};
  const std::uint32_t u[] = {1, 0, 3000000000u, 0, ~0u, 0, ~0u, 0, 2147483520u, 0};
  for (int k = 0; k < 10; ++k) {
    EXPECT_EQ(out[0][k], static_cast<std::uint32_t>(i[k])) << k;
    EXPECT_EQ(out[1][k], u[k]) << k;
  }
}

TEST(Convert, HalfPrecisionAllCodes) {
  // f16 -> f32 is exact for every code, and f32 -> f16 brings it back.
  for (std::uint32_t base = 0; base < 65536; base += 64 * 16) {
    std::vector<Lanes> in;
    std::string code;
    for (std::uint32_t r = 0; r < 16; ++r) {
      in.push_back(by_lane([&](std::uint32_t l) { return base + 64 * r + l; }));
      code += fmt::format("v_cvt_f32_f16 v{}, v{}\nv_cvt_f16_f32 v{}, v{}\n", 40 + r, 10 + r, 56 + r, 40 + r);
    }
    const auto out = run_vector(code, in, 32, {.denorm32 = 3});
    for (int r = 0; r < 16; ++r)
      for (int l = 0; l < 64; ++l) {
        const std::uint32_t h = in[r][l];
        if ((h & 0x7fff) > 0x7c00) {
          ASSERT_TRUE(std::isnan(value(out[r][l])));
          continue;
        }
        const double exact = (h & 0x7fff) == 0x7c00 ? (h & 0x8000 ? -INFINITY : INFINITY) : decode(h, 5, 10, 15);
        ASSERT_EQ(value(out[r][l]), static_cast<float>(exact)) << std::hex << h;
        ASSERT_EQ(out[16 + r][l], h);
      }
  }
}

}  // namespace
}  // namespace zyfa::sim_test
