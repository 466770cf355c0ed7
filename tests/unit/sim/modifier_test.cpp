// Modifiers and modes of vector instructions: rounding of f32 and f64, output modifiers, clamp, SDWA, DPP. Expected
// values from the CDNA4 ISA guide's sentences and exact arithmetic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Lanes = std::array<u32, 64>;

float f32(u32 x) { return std::bit_cast<float>(x); }
u32 bits(float x) { return std::bit_cast<u32>(x); }

std::string set_mode(unsigned first, unsigned count, unsigned value) {
  return fmt::format("s_setreg_imm32_b32 hwreg(HW_REG_MODE, {}, {}), {}\n", first, count, value);
}

// The result nearest to an exact value, and on which side of it that value lies, to the result FP_ROUND wants.
template <typename T>
T directed(T near, int error_sign, unsigned round) {
  const T infinity = std::numeric_limits<T>::infinity();
  const T below = error_sign < 0 ? std::nextafter(near, -infinity) : near;
  const T above = error_sign > 0 ? std::nextafter(near, infinity) : near;
  if (round == 0) return near;
  if (round == 1) return above;
  if (round == 2) return below;
  return near > 0 ? below : above;
}

TEST(Rounding, SinglesInEveryMode) {
  std::mt19937 rng(1);
  const auto number = [&](u32) {
    return (static_cast<u32>(rng()) & 0x807fffff) | ((110 + static_cast<u32>(rng()) % 34) << 23);
  };
  for (unsigned round = 0; round < 4; ++round) {
    const std::vector<Lanes> in{by_lane(number), by_lane(number)};
    const auto out =
        run_vector(set_mode(0, 4, round | ((round ^ 1) << 2)) +
                       "v_add_f32 v40, v10, v11\nv_mul_f32 v41, v10, v11\nv_pk_mul_f32 v[42:43], v[10:11], v[10:11]\n"
                       "v_cvt_f32_i32 v44, v10\nv_cvt_f32_u32 v45, v11\nv_rndne_f32 v46, v10\n",
                   in, 7, {.denorm32 = 3});
    for (unsigned l = 0; l < 64; ++l) {
      // Sums of exponents within 34 and products of two floats are exact in double, as are integers of 32 bits.
      const auto want = [&](double exact) {
        const float near = static_cast<float>(exact);
        const double error = exact - static_cast<double>(near);
        return directed(near, error > 0 ? 1 : error < 0 ? -1 : 0, round);
      };
      const double a = static_cast<double>(f32(in[0][l])), b = static_cast<double>(f32(in[1][l]));
      // a + b needs up to 24 + 34 bits: take the error of the double sum along.
      const double s = a + b, part = s - a, rest = (a - (s - part)) + (b - part);
      const float near = static_cast<float>(s);
      const double error = (s - static_cast<double>(near)) + rest;
      EXPECT_EQ(f32(out[0][l]), directed(near, error > 0 ? 1 : error < 0 ? -1 : 0, round)) << a << " " << b;
      EXPECT_EQ(f32(out[1][l]), want(a * b));
      EXPECT_EQ(f32(out[2][l]), want(a * a));
      EXPECT_EQ(f32(out[3][l]), want(b * b));
      EXPECT_EQ(f32(out[4][l]), want(static_cast<double>(static_cast<std::int32_t>(in[0][l]))));
      EXPECT_EQ(f32(out[5][l]), want(static_cast<double>(in[1][l])));
      EXPECT_EQ(f32(out[6][l]), static_cast<float>(std::nearbyint(a)));
    }
  }
}

TEST(Rounding, DoublesUseTheirOwnField) {
  std::mt19937_64 rng(2);
  const auto number = [&] { return (rng() & 0x800fffffffffffffull) | ((1000 + rng() % 46) << 52); };
  for (unsigned round = 0; round < 4; ++round) {
    std::vector<u64> a(64), b(64);
    for (auto& x : a) x = number();
    for (auto& x : b) x = number();
    const std::vector<Lanes> in{by_lane([&](u32 l) { return static_cast<u32>(a[l]); }),
                                by_lane([&](u32 l) { return static_cast<u32>(a[l] >> 32); }),
                                by_lane([&](u32 l) { return static_cast<u32>(b[l]); }),
                                by_lane([&](u32 l) { return static_cast<u32>(b[l] >> 32); })};
    const auto out = run_vector(set_mode(0, 4, (round << 2) | (round ^ 2)) +
                                    "v_add_f64 v[40:41], v[10:11], v[12:13]\nv_mul_f64 v[42:43], v[10:11], v[12:13]\n"
                                    "v_rndne_f64 v[44:45], v[10:11]\nv_cvt_f32_f64 v46, v[10:11]\n",
                                in, 7, {.denorm32 = 3});
    for (unsigned l = 0; l < 64; ++l) {
      const auto got = [&](unsigned r) {
        return std::bit_cast<double>(out[r][l] | (static_cast<u64>(out[r + 1][l]) << 32));
      };
      const double x = std::bit_cast<double>(a[l]), y = std::bit_cast<double>(b[l]);
      const double s = x + y, part = s - x, rest = (x - (s - part)) + (y - part);
      EXPECT_EQ(got(0), directed(s, rest > 0 ? 1 : rest < 0 ? -1 : 0, round));
      const double p = x * y, error = std::fma(x, y, -p);
      EXPECT_EQ(got(2), directed(p, error > 0 ? 1 : error < 0 ? -1 : 0, round));
      EXPECT_EQ(got(4), std::nearbyint(x));
      // The result is f32: rounded by the f32 field.
      const float near = static_cast<float>(x);
      const double e = x - static_cast<double>(near);
      EXPECT_EQ(f32(out[6][l]), directed(near, e > 0 ? 1 : e < 0 ? -1 : 0, round ^ 2));
    }
  }
}

TEST(Rounding, ByteConversion) {
  const Lanes in = by_lane([](u32 l) { return bits(static_cast<float>(l) * 0.25f + 3.0f); });
  SimRules cut;
  cut.cvt_pk_u8 = SimCvtPkU8::kTruncates;
  for (unsigned round = 0; round < 4; ++round) {
    const std::string code =
        set_mode(0, 2, round) +
        "v_cvt_pk_u8_f32 v40, v10, 1, -1\nv_mov_b32 v41, -1\nv_mov_b32 v8, 2\nv_cvt_pkaccum_u8_f32 v41, v10, v8\n";
    const auto out = run_vector(code, {in}, 2), truncated = run_vector(code, {in}, 2, {.rules = cut});
    for (unsigned l = 0; l < 64; ++l) {
      const float x = f32(in[l]), f = std::floor(x), r = x - f;
      const float even = std::fmod(f, 2.0f) == 0 ? f : f + 1;
      const float want = r == 0 ? f : round == 1 ? f + 1 : round != 0 ? f : r < 0.5f ? f : r > 0.5f ? f + 1 : even;
      EXPECT_EQ(out[0][l], 0xffff00ffu | static_cast<u32>(want) << 8);
      EXPECT_EQ(out[1][l], 0xff00ffffu | static_cast<u32>(want) << 16);
      EXPECT_EQ(truncated[0][l], 0xffff00ffu | static_cast<u32>(f) << 8);
    }
  }
}

// "If output denormals are enabled, then output modifiers are ignored. If output denormals are disabled, then the
// output modifier is applied and denormals are flushed to zero. -0 is flushed to +0. Output modifiers are ignored if
// the IEEE mode bit is set to 1."
TEST(OutputModifier, FollowsTheGuide) {
  const u32 values[] = {bits(3.0f),  bits(-1.5f), 0x80000000u, 0u,         0x7f000000u,
                        0x00800000u, 0x80800001u, 0x7fc00001u, 0xff800000u};
  const Lanes in = by_lane([&](u32 l) { return values[l % 9]; });
  struct Case {
    unsigned denorm32;
    bool ieee, applies;
  };
  for (const Case& c : {Case{0, false, true}, Case{1, false, true}, Case{2, false, false}, Case{3, false, false},
                        Case{0, true, false}}) {
    const auto out = run_vector(
        "v_mul_f32 v40, 1.0, v10 mul:2\nv_mul_f32 v41, 1.0, v10 mul:4\nv_mul_f32 v42, 1.0, v10 div:2\n"
        "v_mul_f32 v43, 1.0, v10 clamp mul:4\n",
        {in}, 4, {.denorm32 = c.denorm32, .ieee = c.ieee});
    for (unsigned l = 0; l < 64; ++l) {
      const float x = f32(in[l]);
      if (std::isnan(x)) {
        for (int i = 0; i < 3; ++i) EXPECT_EQ(out[i][l], in[l]);
        continue;
      }
      const float factors[] = {2, 4, 0.5f};
      // Input denormals are flushed, or kept, before the modifier sees the value; so are results.
      const auto modified = [&](float factor) {
        const float in_value = (c.denorm32 & 1) || std::fabs(x) >= 0x1p-126f ? x : std::copysign(0.0f, x);
        const float y = c.applies ? in_value * factor : in_value;
        if (!c.applies) return y;
        return std::fabs(y) < 0x1p-126f ? 0.0f : y;
      };
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(out[i][l], bits(modified(factors[i]))) << x << " " << i << " denorm " << c.denorm32;
      const float y = modified(4);
      EXPECT_EQ(out[3][l], bits(y > 1 ? 1.0f : y > 0 ? y : 0.0f)) << x;
    }
  }
}

TEST(OutputModifier, HalvesAndDoubles) {
  const u32 halves[] = {0x3c00, 0xbe00, 0x8000, 0x7800, 0x0400, 0x8401, 0x7e01, 0xfc00};
  const Lanes h = by_lane([&](u32 l) { return halves[l % 8]; });
  const u32 twice[] = {0x4000, 0xc200, 0x0000, 0x7c00, 0x0800, 0x8801, 0x7e01, 0xfc00};
  const u32 half[] = {0x3800, 0xba00, 0x0000, 0x7400, 0x0000, 0x0000, 0x7e01, 0xfc00};
  const double doubles[] = {1.0, -1.5, -0.0, 0x1p1023, 0x1p-1022, 0.25, 5.0, -7.0};
  const Lanes lo = by_lane([&](u32 l) { return static_cast<u32>(std::bit_cast<u64>(doubles[l % 8])); });
  const Lanes hi = by_lane([&](u32 l) { return static_cast<u32>(std::bit_cast<u64>(doubles[l % 8]) >> 32); });
  const char code[] =
      "v_max_f16 v40, v10, v10 mul:2\nv_max_f16 v41, v10, v10 div:2\nv_max_f16 v42, v10, v10 clamp\n"
      "v_max_f64 v[43:44], v[11:12], v[11:12] mul:2\nv_max_f64 v[45:46], v[11:12], v[11:12] clamp\n"
      "v_mov_b32 v47, -1\nv_fma_f16 v47, v10, 1.0, 0 op_sel:[0,0,0,1] mul:2\n";
  for (const bool applies : {true, false}) {
    const std::string denormals = set_mode(6, 2, applies ? 1 : 3);
    // Even registers for the f64 pairs.
    std::string text = code;
    const auto replace = [&](const char* from, const char* to) {
      for (auto at = text.find(from); at != std::string::npos; at = text.find(from))
        text.replace(at, std::strlen(from), to);
    };
    replace("v[11:12]", "v[12:13]");
    replace("v[43:44]", "v[44:45]");
    replace("v[45:46]", "v[46:47]");
    replace("v_mov_b32 v47, -1\nv_fma_f16 v47", "v_mov_b32 v48, -1\nv_fma_f16 v48");
    const auto out = run_vector(denormals + text, {h, h, lo, hi}, 9);
    for (unsigned l = 0; l < 64; ++l) {
      EXPECT_EQ(out[0][l], applies ? twice[l % 8] : h[l]) << l;
      EXPECT_EQ(out[1][l], applies ? half[l % 8] : h[l]) << l;
      const u32 clamped[] = {0x3c00, 0, 0, 0x3c00, 0x0400, 0, 0x7e01, 0};
      EXPECT_EQ(out[2][l], clamped[l % 8]) << l;
      const double x = doubles[l % 8], want = applies ? (x == 0 ? 0.0 : 2 * x) : x;
      EXPECT_EQ(out[4][l] | (static_cast<u64>(out[5][l]) << 32), std::bit_cast<u64>(want)) << x;
      const double c = x > 1 ? 1.0 : x > 0 ? x : 0.0;
      EXPECT_EQ(out[6][l] | (static_cast<u64>(out[7][l]) << 32), std::bit_cast<u64>(c)) << x;
      // v_fma_f16 of -0 * 1 + 0 is +0.
      const u32 fma = h[l] == 0x8000 ? 0 : applies ? twice[l % 8] : h[l];
      EXPECT_EQ(out[8][l], 0xffffu | (fma << 16)) << l;
    }
  }
}

TEST(Clamp, NaNByDx10Clamp) {
  const Lanes nan32 = splat(0x7fc00001), nan16 = splat(0x7e017e01);
  for (const bool dx10 : {false, true}) {
    const auto out = run_vector(
        "v_add_f32 v40, v10, v10 clamp\nv_add_f16 v41, v11, v11 clamp\nv_pk_add_f16 v42, v11, v11 clamp\n"
        "v_mov_b32 v8, 0\nv_mov_b32 v9, 0x7ff80000\nv_add_f64 v[44:45], v[8:9], v[8:9] clamp\n"
        "v_fma_mixlo_f16 v43, v10, v10, v10 clamp\n",
        {nan32, nan16}, 6, {.dx10_clamp = dx10});
    EXPECT_EQ(out[0][0], dx10 ? 0 : 0x7fc00001u);
    EXPECT_EQ(out[1][0], dx10 ? 0 : 0x7e01u);
    EXPECT_EQ(out[2][0], dx10 ? 0 : 0x7e017e01u);
    EXPECT_EQ(out[3][0] & 0xffff, dx10 ? 0 : 0x7e00u);
    EXPECT_EQ(out[5][0], dx10 ? 0 : 0x7ff80000u);
  }
}

TEST(Sdwa, SelectionsOfSourceAndDestination) {
  std::mt19937 rng(3);
  const auto word = [&](u32) { return static_cast<u32>(rng()); };
  const std::vector<Lanes> in{by_lane(word), by_lane(word), by_lane(word)};
  const char* sels[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
  const unsigned shifts[] = {0, 8, 16, 24, 0, 16, 0}, widths[] = {8, 8, 8, 8, 16, 16, 32};
  const auto select = [&](u32 x, unsigned sel, bool sext) {
    const unsigned w = widths[sel];
    const u32 raw = w == 32 ? x : (x >> shifts[sel]) & ((1u << w) - 1);
    return sext && w < 32 && ((raw >> (w - 1)) & 1) ? raw | ~((1u << w) - 1) : raw;
  };
  const char* unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
  for (unsigned d = 0; d < 7; ++d) {
    for (unsigned s = 0; s < 7; ++s) {
      std::string code;
      for (unsigned u = 0; u < 3; ++u) {
        code += fmt::format(
            "v_mov_b32 v{0}, v12\nv_add_u32_sdwa v{0}, sext(v10), v11 dst_sel:{1} dst_unused:{2} src0_sel:{3} "
            "src1_sel:BYTE_2\n",
            40 + u, sels[d], unused[u], sels[s]);
      }
      const auto out = run_vector(code, in, 3);
      for (unsigned l = 0; l < 64; ++l) {
        const u32 sum = select(in[0][l], s, true) + select(in[1][l], 2, false);
        const unsigned w = widths[d], shift = shifts[d];
        for (unsigned u = 0; u < 3; ++u) {
          u32 want = sum;
          if (w != 32) {
            const u32 mask = ((1u << w) - 1) << shift, field = (sum << shift) & mask;
            want = field;
            if (u == 1 && ((sum >> (w - 1)) & 1)) want |= static_cast<u32>(~0ull << (shift + w));
            if (u == 2) want |= in[2][l] & ~mask;
          }
          ASSERT_EQ(out[u][l], want) << sels[d] << " " << unused[u] << " " << sels[s];
        }
      }
    }
  }
}

TEST(Sdwa, FloatsComparesAndCarries) {
  std::mt19937 rng(4);
  const auto half = [&](u32) { return (static_cast<u32>(rng()) & 0x3fff3fff) | 0x20002000; };
  const std::vector<Lanes> in{by_lane(half), by_lane(half)};
  const auto out = run_vector(
      "v_max_f16_sdwa v40, -v10, |v11| dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0\n"
      "v_cmp_lt_f16_sdwa s[20:21], v10, v11 src0_sel:WORD_1 src1_sel:WORD_0\nv_cndmask_b32_e64 v41, 0, 1, s[20:21]\n"
      "v_cmp_gt_u32_sdwa vcc, v10, v11 src0_sel:BYTE_0 src1_sel:BYTE_1\nv_cndmask_b32_e64 v42, 0, 1, vcc\n"
      "v_cndmask_b32_sdwa v43, v10, v11, vcc src0_sel:BYTE_3 src1_sel:WORD_1\n"
      "v_cvt_f32_f16_sdwa v44, -v10 src0_sel:WORD_1\n"
      "v_cmpx_eq_u32_sdwa vcc, v10, v10 src0_sel:BYTE_0 src1_sel:BYTE_1\nv_mov_b32 v45, 7\ns_mov_b64 exec, -1\n",
      in, 6);
  const auto value = [](u32 h) {
    return std::ldexp(1024 + static_cast<int>(h & 0x3ff), static_cast<int>((h >> 10) & 31) - 25);
  };
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], b = in[1][l];
    ASSERT_EQ(out[0][l], (b & 0xffff) << 16);  // a is positive here
    ASSERT_EQ(out[1][l], u32{value(a >> 16) < value(b & 0xffff)});
    const bool greater = (a & 0xff) > ((b >> 8) & 0xff);
    ASSERT_EQ(out[2][l], u32{greater});
    ASSERT_EQ(out[3][l], greater ? b >> 16 : a >> 24);
    ASSERT_EQ(f32(out[4][l]), static_cast<float>(-value(a >> 16)));
    if ((a & 0xff) == ((a >> 8) & 0xff)) {
      ASSERT_EQ(out[5][l], 7u);
    }
  }
}

// Lane each lane reads under a control, -1 for none; after the table DPP_CTRL of the guide.
int dpp_source(const std::string& control, int n) {
  const int row = n & ~15, i = n & 15;
  const auto colon = control.find(':');
  const std::string name = control.substr(0, colon);
  const int k = colon == std::string::npos || control[colon + 1] == '[' ? 0 : std::atoi(control.c_str() + colon + 1);
  if (name == "quad_perm") return (n & ~3) + (control[colon + 2 + 2 * static_cast<unsigned>(n & 3)] - '0');
  if (name == "row_shl") return i + k < 16 ? n + k : -1;
  if (name == "row_shr") return i >= k ? n - k : -1;
  if (name == "row_ror") return i >= k ? n - k : n + 16 - k;
  if (name == "wave_shl") return n < 63 ? n + 1 : -1;
  if (name == "wave_rol") return n < 63 ? n + 1 : 0;
  if (name == "wave_shr") return n > 0 ? n - 1 : -1;
  if (name == "wave_ror") return n > 0 ? n - 1 : 63;
  if (name == "row_mirror") return row + 15 - i;
  if (name == "row_half_mirror") return row + (i & 8) + 7 - (i & 7);
  if (name == "row_bcast") return k == 15 ? (n > 15 ? (n & 0x30) - 1 : -1) : (n > 31 ? 31 : -1);
  return row + k;  // row_newbcast
}

TEST(Dpp, EveryControlWithMasksAndBoundControl) {
  const Lanes x = by_lane([](u32 l) { return 100 + l; }), y = by_lane([](u32 l) { return 1000 * l; });
  for (const std::string control :
       {"quad_perm:[3,1,0,2]", "row_shl:1", "row_shl:15", "row_shr:3", "row_ror:5", "wave_shl:1", "wave_rol:1",
        "wave_shr:1", "wave_ror:1", "row_mirror", "row_half_mirror", "row_bcast:15", "row_bcast:31", "row_newbcast:0",
        "row_newbcast:11"}) {
    // Three masks, without and with bound_ctrl (LLVM writes the set bit as bound_ctrl:0), and with some lanes inactive.
    const std::pair<unsigned, unsigned> masks[] = {{15, 15}, {5, 15}, {15, 9}};
    std::string code;
    unsigned at = 40;
    for (const auto& [rows, banks] : masks) {
      for (const char* bound : {"", " bound_ctrl:0"}) {
        code +=
            fmt::format("v_mov_b32 v{0}, -1\nv_add_u32_dpp v{0}, v10, v11 {1} row_mask:0x{2:x} bank_mask:0x{3:x}{4}\n",
                        at++, control, rows, banks, bound);
      }
    }
    for (const u64 exec : {~0ull, 0x0f37ffff8001fffeull}) {
      const std::string masked =
          fmt::format("s_mov_b32 exec_lo, 0x{:x}\ns_mov_b32 exec_hi, 0x{:x}\n", static_cast<u32>(exec), exec >> 32);
      std::string start;
      for (unsigned r = 40; r < at; ++r) start += fmt::format("v_mov_b32 v{}, -1\n", r);
      const auto out = run_vector(start + masked + code, {x, y}, 6);
      for (unsigned m = 0; m < 3; ++m) {
        for (unsigned b = 0; b < 2; ++b) {
          for (int n = 0; n < 64; ++n) {
            const int from = dpp_source(control, n);
            const bool active = (exec >> n) & 1, row = (masks[m].first >> (n / 16)) & 1,
                       bank = (masks[m].second >> (n % 16 / 4)) & 1;
            const bool valid = from >= 0 && ((exec >> from) & 1);
            u32 want = ~0u;
            if (active && row && bank && (valid || b))
              want = (valid ? x[static_cast<unsigned>(from)] : 0) + y[static_cast<unsigned>(n)];
            ASSERT_EQ(out[2 * m + b][static_cast<unsigned>(n)], want)
                << control << " lane " << n << " masks " << m << " bound " << b;
          }
        }
      }
    }
  }
}

TEST(Dpp, FloatModifiersCarriesAndPairs) {
  const Lanes x = by_lane([](u32 l) { return bits(static_cast<float>(l) - 20.0f); }),
              y = by_lane([](u32 l) { return l; });
  const auto out = run_vector(
      "v_max_f32_dpp v40, -v10, |v10| row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
      "v_mov_b32 v41, v10\nv_fmac_f32_dpp v41, v10, v10 row_newbcast:2 row_mask:0xf bank_mask:0xf\n"
      "v_mov_b64_dpp v[42:43], v[10:11] row_newbcast:3 row_mask:0xf bank_mask:0xf\n"
      "v_mov_b32 v8, -1\nv_add_co_u32_dpp v44, vcc, v8, v11 row_shr:1 row_mask:0xf bank_mask:0xf\nv_cndmask_b32_e64 "
      "v45, 0, 1, vcc\n",
      {x, y}, 6);
  for (unsigned l = 0; l < 64; ++l) {
    const float own = f32(x[l]), before = l % 16 ? f32(x[l - 1]) : 0.0f;
    EXPECT_EQ(f32(out[0][l]), std::max(-before, std::fabs(own)));
    EXPECT_EQ(f32(out[1][l]), f32(x[(l & 48) + 2]) * own + own);
    EXPECT_EQ(out[2][l], x[(l & 48) + 3]);
    EXPECT_EQ(out[3][l], (l & 48) + 3);
    if (l % 16) {
      EXPECT_EQ(out[4][l], l - 1);
      EXPECT_EQ(out[5][l], u32{l > 0});
    } else {
      EXPECT_EQ(out[5][l], 0u);  // a lane that DPP does not write
    }
  }
}

}  // namespace
}  // namespace zyfa::sim_test
