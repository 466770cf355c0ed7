// MFMA arithmetic: element formats, the documented accumulation model, scales and their byte selection, C operands.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using Lanes = std::array<u32, 64>;

u32 bits(float x) { return std::bit_cast<u32>(x); }
float value(u32 x) { return std::bit_cast<float>(x); }

// Tuples for A start at v10, B follow.
std::vector<Lanes> random_operands(unsigned seed, int registers, u32 (*word)(std::mt19937&)) {
  std::mt19937 rng(seed);
  std::vector<Lanes> in(static_cast<std::size_t>(registers));
  for (auto& r : in) r = by_lane([&](u32) { return word(rng); });
  return in;
}

TEST(MfmaNumeric, Bf16IsAnFmaChainInAscendingK) {
  const auto in = random_operands(1, 8, [](std::mt19937& rng) {
    auto half = [&] { return bits(std::uniform_real_distribution<float>(-3, 3)(rng)) >> 16; };
    const u32 lo = half();
    return lo | (half() << 16);
  });
  const auto out = run_vector("v_mfma_f32_32x32x16_bf16 v[40:55], v[10:13], v[14:17], 1.0\n", in, 16);
  auto element = [&](int base, int index, int k) {
    const Lanes& r = in[static_cast<std::size_t>(base + (k % 8) / 2)];
    return value((r[static_cast<std::size_t>(index + 32 * (k / 8))] >> (16 * (k % 2))) << 16);
  };
  for (int r = 0; r < 16; ++r) {
    for (int l = 0; l < 64; ++l) {
      const int row = 8 * (r / 4) + 4 * (l / 32) + r % 4, col = l % 32;
      float acc = 1.0f;
      for (int k = 0; k < 16; ++k) acc = std::fma(element(0, row, k), element(4, col, k), acc);
      ASSERT_EQ(out[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)], bits(acc)) << row << "," << col;
    }
  }
}

TEST(MfmaNumeric, DenormalsOfCAreKept) {
  const auto out = run_vector("v_mfma_f32_16x16x32_bf16 v[40:43], v[10:13], v[14:17], v[18:21]\n",
                              {splat(0), splat(0), splat(0), splat(0), splat(0), splat(0), splat(0), splat(0), splat(1),
                               splat(0x80000001), splat(0x7fffff), splat(bits(2.0f))},
                              4);
  EXPECT_EQ(out[0][0], 1u);
  EXPECT_EQ(out[1][0], 0x80000001u);
  EXPECT_EQ(out[2][0], 0x7fffffu);
  EXPECT_EQ(out[3][0], bits(2.0f));
}

// Value of a code by its format.
double decode(u32 code, int e, int m, int bias) {
  const u32 exponent = (code >> m) & ((1u << e) - 1), fraction = code & ((1u << m) - 1);
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, 1 - bias - m)
                               : std::ldexp(1.0 + std::ldexp(fraction, -m), static_cast<int>(exponent) - bias);
  return (code >> (e + m)) & 1 ? -magnitude : magnitude;
}
double format_value(int format, u32 code) {
  switch (format) {
    case 0:
      return (code & 0x7f) == 0x7f ? NAN : decode(code, 4, 3, 7);
    case 1:
      return (code & 0x7f) == 0x7c  ? (code & 0x80 ? -INFINITY : INFINITY)
             : (code & 0x7f) > 0x7c ? NAN
                                    : decode(code, 5, 2, 15);
    case 2:
      return decode(code, 2, 3, 1);
    case 3:
      return decode(code, 3, 2, 3);
    default:
      return decode(code, 2, 1, 1);
  }
}

// Every code of every f8f6f4 format in A against 1.0 in B at the same k: D is the code's value.
TEST(MfmaNumeric, EveryCodeOfEveryNarrowFormat) {
  const int width[] = {8, 8, 6, 6, 4}, dwords[] = {8, 8, 6, 6, 4};
  const u32 one[] = {0x38, 0x3c, 0x08, 0x0c, 0x2};
  for (int f = 0; f < 5; ++f) {
    // Lane l of 0..31 (row l) holds the code in item 0, k = 0; B has 1.0 there in all columns.
    for (u32 base = 0; base < (1u << width[f]); base += 32) {
      std::vector<Lanes> in(static_cast<std::size_t>(2 * dwords[f]));
      in[0] = by_lane([&](u32 l) { return l < 32 ? (base + l) & ((1u << width[f]) - 1) : 0; });
      in[static_cast<std::size_t>(dwords[f])] = by_lane([&](u32 l) { return l < 32 ? one[f] : 0u; });
      const auto out =
          run_vector(fmt::format("v_mfma_f32_32x32x64_f8f6f4 v[40:55], v[10:{}], v[{}:{}], 0 cbsz:{} blgp:{}\n",
                                 9 + dwords[f], 10 + dwords[f], 9 + 2 * dwords[f], f, f),
                     in, 16);
      for (int r = 0; r < 16; ++r)
        for (int half = 0; half < 2; ++half) {
          const u32 row = static_cast<u32>(8 * (r / 4) + 4 * half + r % 4);
          const double want = format_value(f, (base + row) & ((1u << width[f]) - 1));
          const float got = value(out[static_cast<std::size_t>(r)][static_cast<std::size_t>(32 * half)]);
          if (std::isnan(want)) {
            ASSERT_TRUE(std::isnan(got)) << f << " " << base + row;
          } else {
            ASSERT_EQ(got, static_cast<float>(want)) << f << " " << base + row;
          }
        }
    }
  }
}

TEST(MfmaNumeric, MixedFormatsUseTheirOwnLayouts) {
  // A fp8 (chunked), B fp4 (contiguous): B is 1.0 at k = 16..31 alone, A item values 2^(chunk).
  std::vector<Lanes> in(12, splat(0));
  // A: items 0-15 are 1.0, items 16-31 are 2.0 -> lanes 0-31: k 0-15 and 32-47; lanes 32-63: k 16-31 and 48-63.
  for (int d = 0; d < 4; ++d) in[static_cast<std::size_t>(d)] = splat(0x38383838);
  for (int d = 4; d < 8; ++d) in[static_cast<std::size_t>(d)] = splat(0x40404040);
  // B: lanes 0-31 hold k 0..31: items 16..31 are dwords 2 and 3.
  in[10] = in[11] = by_lane([](u32 l) { return l < 32 ? 0x22222222u : 0u; });
  const auto out = run_vector("v_mfma_f32_32x32x64_f8f6f4 v[40:55], v[10:17], v[18:21], 0 blgp:4\n", in, 1);
  EXPECT_EQ(value(out[0][0]), 16.0f);  // sixteen products of 1.0
}

TEST(MfmaNumeric, ScalesApplyPerBlockOf32) {
  // All A and B are 1.0 (fp8): a block's dot product is 32. Lane l < 32 scales k 0..31, lane l >= 32 k 32..63.
  std::vector<Lanes> in(18, splat(0x38383838));
  // Byte b of A's scale register: exponent 127 + b for block 0, 127 + 4 + b for block 1, + row % 3; B's: 127 + 8 + b.
  in[16] = by_lane([](u32 l) {
    u32 w = 0;
    for (u32 b = 0; b < 4; ++b) w |= (127 + b + (l >= 32 ? 4 : 0) + l % 3) << (8 * b);
    return w;
  });
  in[17] = by_lane([](u32 l) {
    u32 w = 0;
    for (u32 b = 0; b < 4; ++b) w |= (127 - 8 * b + l % 5) << (8 * b);
    return w;
  });
  for (u32 a = 0; a < 4; ++a) {
    for (u32 b = 0; b < 4; ++b) {
      const auto out = run_vector(fmt::format("v_mfma_scale_f32_32x32x64_f8f6f4 v[40:55], v[10:17], v[18:25], 0.5, "
                                              "v26, v27 op_sel:[{},{},0] op_sel_hi:[{},{},0]\n",
                                              a & 1, b & 1, a >> 1, b >> 1),
                                  in, 16);
      for (int r = 0; r < 16; ++r)
        for (int l = 0; l < 64; ++l) {
          const int row = 8 * (r / 4) + 4 * (l / 32) + r % 4, col = l % 32;
          const int ea = static_cast<int>(a), eb = -8 * static_cast<int>(b);
          const double block0 = 32 * std::exp2(ea + row % 3 + eb + col % 5);
          const double block1 = 32 * std::exp2(ea + 4 + (row + 32) % 3 + eb + (col + 32) % 5);
          const float want = static_cast<float>(static_cast<double>(static_cast<float>(0.5 + block0)) + block1);
          ASSERT_EQ(value(out[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)]), want)
              << a << b << " " << row << "," << col;
        }
    }
  }
}

TEST(MfmaNumeric, ScaleCorners) {
  std::vector<Lanes> in(18, splat(0x38383838));
  in[16] = by_lane([](u32 l) { return l == 3 ? 255u : l == 4 ? 0u : 127u; });  // row 3 NaN, row 4 2^-127 in block 0
  in[17] = splat(127);
  const auto out = run_vector("v_mfma_scale_f32_32x32x64_f8f6f4 v[40:55], v[10:17], v[18:25], 0, v26, v27\n", in, 4);
  EXPECT_TRUE(std::isnan(value(out[3][0])));
  EXPECT_EQ(value(out[0][0]), 64.0f);
  const auto row4 = value(out[0][32]);  // register 0, upper half: row 4
  EXPECT_EQ(row4, 32.0f);               // 32 * 2^-127 vanishes beside block 1
}

TEST(MfmaNumeric, SparseRowSums) {
  // Two rows of ones with complementary patterns sum all of B (1.7): row 0 takes k % 4 in {0, 1}, row 8 {2, 3}.
  std::vector<Lanes> in(14);
  for (int d = 0; d < 4; ++d)
    in[static_cast<std::size_t>(d)] = by_lane([](u32 l) { return l % 16 == 0 || l % 16 == 8 ? 0x38383838u : 0u; });
  std::mt19937 rng(3);
  std::vector<std::array<double, 64 * 32>> unused;
  for (int d = 4; d < 12; ++d)
    in[static_cast<std::size_t>(d)] = by_lane([&](u32) {
      u32 w = 0;
      for (int b = 0; b < 4; ++b) w |= (0x30 + static_cast<u32>(rng() % 16)) << (8 * b);
      return w;
    });
  in[12] = by_lane([](u32 l) {
    // Items alternate: even item first index, odd item second, of the pair for its row.
    const u32 pair = l % 16 == 8 ? (2u | (3u << 2)) : (0u | (1u << 2));
    u32 w = 0;
    for (u32 s = 0; s < 16; s += 2) w |= pair << (2 * s);
    return w;
  });
  const auto out = run_vector(
      "v_mov_b32 v40, 0\nv_mov_b32 v41, 0\nv_mov_b32 v42, 0\nv_mov_b32 v43, 0\ns_nop 1\nv_smfmac_f32_16x16x128_fp8_fp8 "
      "v[40:43], v[10:13], v[14:21], v22\n",
      in, 4);
  for (u32 col = 0; col < 16; ++col) {
    double all = 0;
    for (int g = 0; g < 4; ++g)
      for (int s = 0; s < 32; ++s)
        all += format_value(
            0, (in[static_cast<std::size_t>(4 + s / 4)][col + 16 * static_cast<u32>(g)] >> (8 * (s % 4))) & 0xff);
    // Row 0: register 0 of lanes 0-15; row 8: register 0 of lanes 32-47.
    EXPECT_EQ(value(out[0][col]) + value(out[0][col + 32]), static_cast<float>(all)) << col;
    EXPECT_EQ(out[1][col], 0u);
  }
}

TEST(MfmaNumeric, Int8WrapsAndSigns) {
  const auto in = random_operands(5, 8, [](std::mt19937& rng) { return static_cast<u32>(rng()); });
  std::vector<Lanes> all = in;
  for (int i = 0; i < 16; ++i) all.push_back(splat(0x4B400000));
  const auto out = run_vector("v_mfma_i32_32x32x32_i8 v[40:55], v[10:13], v[14:17], v[18:33]\n", all, 16);
  auto element = [&](int base, int index, int k) {
    return static_cast<std::int8_t>(
        in[static_cast<std::size_t>(base + (k % 16) / 4)][static_cast<std::size_t>(index + 32 * (k / 16))] >>
        (8 * (k % 4)));
  };
  for (int r = 0; r < 16; ++r)
    for (int l = 0; l < 64; ++l) {
      const int row = 8 * (r / 4) + 4 * (l / 32) + r % 4, col = l % 32;
      int sum = 0;
      for (int k = 0; k < 32; ++k) sum += element(0, row, k) * element(4, col, k);
      ASSERT_EQ(out[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)], 0x4B400000u + static_cast<u32>(sum));
    }
}

TEST(MfmaNumeric, AccumulatorInAgprs) {
  const auto in = random_operands(6, 8, [](std::mt19937&) { return 0x3f803f80u; });
  const auto out = run_vector(
      "v_accvgpr_write_b32 a4, 1.0\nv_accvgpr_write_b32 a5, 1.0\nv_accvgpr_write_b32 a6, 1.0\nv_accvgpr_write_b32 a7, "
      "1.0\ns_nop 1\n"
      "v_mfma_f32_16x16x32_bf16 a[0:3], v[10:13], v[14:17], a[4:7]\ns_nop 8\nv_accvgpr_read_b32 v40, a3\n",
      in, 1, {.vgprs = 64, .agprs = 8});
  EXPECT_EQ(value(out[0][17]), 33.0f);
}

TEST(MfmaNumeric, OverflowIsClampedWhenAsked) {
  const auto in = random_operands(7, 8, [](std::mt19937&) { return 0x7f7f7f7fu; });
  const char* code = "v_mfma_f32_16x16x32_bf16 v[40:43], v[10:13], v[14:17], 0\n";
  EXPECT_EQ(run_vector(code, in, 1)[0][0], 0x7f800000u);
  EXPECT_EQ(run_vector(code, in, 1, {.fp16_overflow = true})[0][0], 0x7f7fffffu);
}

}  // namespace
}  // namespace zyfa::sim_test
