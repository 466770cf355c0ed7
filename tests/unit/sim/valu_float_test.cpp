// Floating-point VALU semantics against exact or higher-precision arithmetic (gfx950-isa.md section 2).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using Lanes = std::array<std::uint32_t, 64>;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float value(std::uint32_t x) { return std::bit_cast<float>(x); }
constexpr std::uint32_t kNan = 0x7fc00000, kInf = 0x7f800000, kNegInf = 0xff800000;

// Values where rules meet: zeros, denormals, normals, infinities, quiet and signalling NaN.
const std::uint32_t kCorners[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
                                  0x80800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, kInf,       kNegInf,
                                  kNan,       0x7f800001, 0x40490fdb, 0xc0490fdb, 0x3f800001, 0x33800000};

std::vector<Lanes> corner_pairs() {
  // Lanes over all ordered pairs of corners, several registers a and b.
  std::vector<Lanes> registers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const auto a : kCorners)
    for (const auto b : kCorners) pairs.emplace_back(a, b);
  for (std::size_t i = 0; i < pairs.size(); i += 64) {
    registers.push_back(by_lane([&](std::uint32_t l) { return pairs[(i + l) % pairs.size()].first; }));
    registers.push_back(by_lane([&](std::uint32_t l) { return pairs[(i + l) % pairs.size()].second; }));
  }
  return registers;
}
std::uint32_t flushed(std::uint32_t x) { return (x & 0x7f800000) ? x : x & 0x80000000; }
bool is_nan(std::uint32_t x) { return (x & 0x7fffffff) > kInf; }

std::uint32_t random_bits(std::mt19937& rng) { return static_cast<std::uint32_t>(rng()); }

// One output register for each pair of input registers.
std::vector<Lanes> binary(const std::string& op, const std::vector<Lanes>& in, const AsmOptions& o = {}) {
  std::string code;
  for (std::size_t i = 0; i + 1 < in.size(); i += 2)
    code += fmt::format("{} v{}, v{}, v{}\n", op, 40 + i / 2, 10 + i, 11 + i);
  return run_vector(code, in, static_cast<unsigned>(in.size() / 2), o);
}

TEST(VectorFloat, AddAndMultiplyAreRoundedOnceWithDenormalsByMode) {
  const auto in = corner_pairs();
  for (const unsigned denorm : {0u, 3u}) {
    for (const char* op : {"v_add_f32", "v_mul_f32", "v_sub_f32"}) {
      const auto out = binary(op, in, {.denorm32 = denorm});
      for (std::size_t i = 0; i < out.size(); ++i) {
        for (int l = 0; l < 64; ++l) {
          const std::uint32_t ra = denorm ? in[2 * i][l] : flushed(in[2 * i][l]),
                              rb = denorm ? in[2 * i + 1][l] : flushed(in[2 * i + 1][l]);
          const double a = value(ra), b = value(rb);
          // Sums and products of two floats rounded through double are rounded once: 53 >= 2 * 24 + 2.
          const float exact = static_cast<float>(op[2] == 'a' ? a + b : op[2] == 's' ? a - b : a * b);
          const std::uint32_t want = denorm ? bits(exact) : flushed(bits(exact));
          if (is_nan(bits(exact))) {
            ASSERT_TRUE(is_nan(out[i][l])) << op;
          } else {
            ASSERT_EQ(out[i][l], want) << op << " " << std::hex << ra << " " << rb << " denorm " << denorm;
          }
        }
      }
    }
  }
}

TEST(VectorFloat, FmaRoundsOnce) {
  std::mt19937 rng(1);
  std::vector<Lanes> in(3);
  // a * b + c with massive cancellation: c = -(a * b rounded).
  for (int l = 0; l < 64; ++l) {
    const float a = 1.0f + static_cast<float>(rng() % 8388608) * 0x1p-23f,
                b = 1.0f + static_cast<float>(rng() % 8388608) * 0x1p-23f;
    in[0][l] = bits(a);
    in[1][l] = bits(b);
    in[2][l] = bits(-(a * b));
  }
  const auto out = run_vector(
      "v_fma_f32 v40, v10, v11, v12\nv_mov_b32 v41, v12\nv_fmac_f32 v41, v10, v11\nv_fma_f32 v42, -v10, |v12|, v11\n",
      in, 3);
  for (int l = 0; l < 64; ++l) {
    const double a = value(in[0][l]), b = value(in[1][l]), c = value(in[2][l]);
    EXPECT_EQ(out[0][l], bits(static_cast<float>(a * b + c)));  // exact in double here
    EXPECT_EQ(out[1][l], out[0][l]);
    EXPECT_EQ(out[2][l], bits(static_cast<float>(-a * std::fabs(c) + b)));
  }
}

TEST(VectorFloat, MaxAndMinIgnoreNanAndOrderZeros) {
  const auto in = corner_pairs();
  const auto hi = binary("v_max_f32", in, {.denorm32 = 3}), lo = binary("v_min_f32", in, {.denorm32 = 3});
  for (std::size_t i = 0; i < hi.size(); ++i) {
    for (int l = 0; l < 64; ++l) {
      const std::uint32_t a = in[2 * i][l], b = in[2 * i + 1][l];
      if (is_nan(a) && is_nan(b)) {
        EXPECT_TRUE(is_nan(hi[i][l]) && is_nan(lo[i][l]));
      } else if (is_nan(a) || is_nan(b)) {
        EXPECT_EQ(hi[i][l], is_nan(a) ? b : a);
        EXPECT_EQ(lo[i][l], is_nan(a) ? b : a);
      } else if (value(a) == 0 && value(b) == 0) {
        EXPECT_EQ(hi[i][l], (a == 0 || b == 0) ? 0u : 0x80000000u);
        EXPECT_EQ(lo[i][l], (a == 0x80000000u || b == 0x80000000u) ? 0x80000000u : 0u);
      } else {
        EXPECT_EQ(value(hi[i][l]), std::max(value(a), value(b)));
        EXPECT_EQ(value(lo[i][l]), std::min(value(a), value(b)));
      }
    }
  }
}

TEST(VectorFloat, SignallingNanIsQuietedInIeeeMode) {
  const auto out = run_vector("v_max_f32 v40, v10, v11\nv_max_f32 v41, v11, v10\n",
                              {splat(0x7f800001), splat(bits(2.0f))}, 2, {.ieee = true});
  EXPECT_EQ(out[0][0], 0x7fc00001u);
  EXPECT_EQ(out[1][0], 0x7fc00001u);
}

TEST(VectorFloat, ThreeOperandForms) {
  const auto out = run_vector(
      "v_max3_f32 v40, v10, v11, v12\nv_min3_f32 v41, v10, v11, v12\nv_med3_f32 v42, v10, v11, v12\n"
      "v_max3_f32 v43, v10, v13, v12\nv_maximum3_f32 v44, v10, v13, v12\nv_minimum3_f32 v45, v10, v11, "
      "v12\nv_maximum3_f32 v46, v10, v11, v12\n",
      {splat(bits(1.0f)), splat(bits(-3.0f)), splat(bits(2.0f)), splat(kNan)}, 7);
  EXPECT_EQ(value(out[0][5]), 2.0f);
  EXPECT_EQ(value(out[1][5]), -3.0f);
  EXPECT_EQ(value(out[2][5]), 1.0f);
  EXPECT_EQ(value(out[3][5]), 2.0f);  // NaN ignored
  EXPECT_TRUE(is_nan(out[4][5]));     // NaN propagates
  EXPECT_EQ(value(out[5][5]), -3.0f);
  EXPECT_EQ(value(out[6][5]), 2.0f);
}

TEST(VectorFloat, ClampOmodAndSourceModifiers) {
  const auto out = run_vector(
      "v_add_f32 v40, v10, v11 clamp\nv_add_f32 v41, v10, -v11\nv_mul_f32 v42, |v12|, v11 mul:4\nv_mul_f32 v43, v10, "
      "v11 div:2\nv_add_f32 v44, -|v12|, v10\n",
      {splat(bits(0.75f)), splat(bits(0.5f)), splat(bits(-2.0f))}, 5);
  EXPECT_EQ(value(out[0][0]), 1.0f);
  EXPECT_EQ(value(out[1][0]), 0.25f);
  EXPECT_EQ(value(out[2][0]), 4.0f);
  EXPECT_EQ(value(out[3][0]), 0.1875f);
  EXPECT_EQ(value(out[4][0]), -1.25f);
}

TEST(VectorFloat, PackedPairsSelectAndNegate) {
  // v10:11 = (1, 2), v12:13 = (10, 20), v14:15 = (100, 200).
  const std::vector<Lanes> in = {splat(bits(1.0f)),  splat(bits(2.0f)),   splat(bits(10.0f)),
                                 splat(bits(20.0f)), splat(bits(100.0f)), splat(bits(200.0f))};
  const auto out = run_vector(
      "v_pk_add_f32 v[40:41], v[10:11], v[12:13]\n"
      "v_pk_mul_f32 v[42:43], v[10:11], v[12:13] op_sel_hi:[0,1]\n"
      "v_pk_fma_f32 v[44:45], v[10:11], v[12:13], v[14:15] op_sel:[1,0,0] op_sel_hi:[0,1,1]\n"
      "v_pk_add_f32 v[46:47], v[10:11], v[12:13] neg_lo:[1,0] neg_hi:[0,1]\n"
      "v_pk_mul_f32 v[48:49], v[10:11], 2.0\n"
      "s_mov_b32 s20, 0x40400000\ns_mov_b32 s21, 0x40800000\ns_nop 4\nv_pk_mul_f32 v[50:51], v[10:11], s[20:21]\n",
      in, 12);
  const float want[] = {11, 22, 10, 20, 120, 220, 9, -18, 2, 4, 3, 8};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(value(out[i][7]), want[i]) << i;
}

// Error of a result in units of the last place of the exact value.
double ulp_error(float got, long double exact) {
  if (exact == 0) return got == 0 ? 0 : 1e9;
  const int e = std::max(std::ilogb(static_cast<double>(exact)), -126);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, e - 23));
}

TEST(VectorFloat, TranscendentalsAreWithinOneUlp) {
  std::mt19937 rng(2);
  std::vector<Lanes> in;
  for (int r = 0; r < 8; ++r)
    in.push_back(
        by_lane([&](std::uint32_t) { return bits(std::uniform_real_distribution<float>(-126, 127.9f)(rng)); }));
  for (int r = 0; r < 8; ++r)
    in.push_back(by_lane([&](std::uint32_t) { return 0x00800000u + random_bits(rng) % 0x7f000000u; }));
  in.push_back(by_lane([](std::uint32_t l) { return bits(1.0f + (static_cast<float>(l) - 32) * 0x1p-23f); }));
  std::string code;
  for (int r = 0; r < 8; ++r) code += fmt::format("v_exp_f32 v{}, v{}\n", 40 + r, 10 + r);
  for (int r = 0; r < 9; ++r)
    code += fmt::format("v_log_f32 v{}, v{}\nv_rcp_f32 v{}, v{}\nv_rsq_f32 v{}, v{}\nv_sqrt_f32 v{}, v{}\n", 48 + r,
                        18 + r, 57 + r, 18 + r, 66 + r, 18 + r, 75 + r, 18 + r);
  const auto out = run_vector(code, in, 44);
  for (int l = 0; l < 64; ++l) {
    for (int r = 0; r < 8; ++r)
      EXPECT_LE(ulp_error(value(out[r][l]), std::exp2(static_cast<long double>(value(in[r][l])))), 1.0)
          << value(in[r][l]);
    for (int r = 0; r < 9; ++r) {
      const long double x = value(in[8 + r][l]);
      EXPECT_LE(ulp_error(value(out[8 + r][l]), std::log2(x)), 1.0) << value(in[8 + r][l]);
      const long double reciprocal = 1 / x;
      if (reciprocal >= 0x1p-126L) {
        EXPECT_LE(ulp_error(value(out[17 + r][l]), reciprocal), 1.0);
      }
      EXPECT_LE(ulp_error(value(out[26 + r][l]), 1 / std::sqrt(x)), 1.0);
      EXPECT_LE(ulp_error(value(out[35 + r][l]), std::sqrt(x)), 1.0);
    }
  }
}

TEST(VectorFloat, TranscendentalCorners) {
  // Denormals flush whatever MODE says (section 2).
  const Lanes in = by_lane([](std::uint32_t l) {
    const std::uint32_t v[] = {0,          0x80000000,    kInf,          kNegInf,      kNan,        1,
                               0x80000001, bits(-126.5f), bits(-126.0f), bits(128.0f), bits(-1.0f), bits(127.99999f)};
    return v[l % 12];
  });
  const auto out = run_vector("v_exp_f32 v40, v10\nv_log_f32 v41, v10\nv_rcp_f32 v42, v10\n", {in}, 3, {.denorm32 = 3});
  const std::uint32_t exp_want[] = {bits(1), bits(1), kInf, 0, kNan, bits(1), bits(1), 0, 0x00800000, kInf, bits(0.5f)};
  const std::uint32_t log_want[] = {kNegInf, kNegInf,    kInf,       0xffc00000, kNan,      kNegInf,
                                    kNegInf, 0xffc00000, 0xffc00000, bits(7.0f), 0xffc00000};
  const std::uint32_t rcp_want[] = {kInf, kNegInf, 0, 0x80000000, kNan, kInf, kNegInf};
  for (int i = 0; i < 11; ++i) EXPECT_EQ(out[0][i], exp_want[i]) << i;
  for (int i = 0; i < 11; ++i) EXPECT_EQ(out[1][i], log_want[i]) << i;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(out[2][i], rcp_want[i]) << i;
  EXPECT_LT(value(out[0][11]), std::numeric_limits<float>::infinity());
}

TEST(VectorFloat, CompareRelations) {
  struct Case {
    const char* name;
    bool less, equal, greater, unordered;
  };
  const Case cases[] = {{"f", 0, 0, 0, 0},   {"lt", 1, 0, 0, 0},  {"eq", 0, 1, 0, 0},  {"le", 1, 1, 0, 0},
                        {"gt", 0, 0, 1, 0},  {"lg", 1, 0, 1, 0},  {"ge", 0, 1, 1, 0},  {"o", 1, 1, 1, 0},
                        {"u", 0, 0, 0, 1},   {"nge", 1, 0, 0, 1}, {"nlg", 0, 1, 0, 1}, {"ngt", 1, 1, 0, 1},
                        {"nle", 0, 0, 1, 1}, {"neq", 1, 0, 1, 1}, {"nlt", 0, 1, 1, 1}, {"tru", 1, 1, 1, 1}};
  const Lanes a = by_lane([](std::uint32_t l) { return bits(static_cast<float>(l % 4)); });
  const Lanes b = by_lane([](std::uint32_t l) { return l % 4 == 3 ? kNan : bits(1.0f); });
  std::string code;
  for (int i = 0; i < 16; ++i)
    code += fmt::format("v_cmp_{}_f32 vcc, v10, v11\ns_nop 4\nv_mov_b32 v{}, vcc_lo\n", cases[i].name, 40 + i);
  const auto out = run_vector(code, {a, b}, 16);
  for (int i = 0; i < 16; ++i) {
    std::uint32_t want = 0;
    for (std::uint32_t l = 0; l < 32; ++l) {
      const bool holds = l % 4 == 0   ? cases[i].less
                         : l % 4 == 1 ? cases[i].equal
                         : l % 4 == 2 ? cases[i].greater
                                      : cases[i].unordered;
      want |= static_cast<std::uint32_t>(holds) << l;
    }
    EXPECT_EQ(out[i][0], want) << cases[i].name;
  }
}

TEST(VectorFloat, DirectedRounding) {
  // 1 + 2^-25 lies between 1 and 1 + 2^-23.
  for (const auto& [mode, want] : {std::pair{0u, 1.0f}, {1u, 1.0f + 0x1p-23f}, {2u, 1.0f}, {3u, 1.0f}}) {
    const auto out =
        run_vector("v_add_f32 v40, v10, v11\n", {splat(bits(1.0f)), splat(bits(0x1p-25f))}, 1, {.round32 = mode});
    EXPECT_EQ(value(out[0][0]), want) << mode;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
