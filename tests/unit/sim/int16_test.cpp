// 16-bit and packed integers, integer dot products, sums of absolute differences: exact arithmetic in the test, with
// and without saturation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using i64 = std::int64_t;
using Lanes = std::array<u32, 64>;

std::vector<Lanes> random_lanes(std::mt19937& rng, unsigned count) {
  std::vector<Lanes> in;
  for (unsigned r = 0; r < count; ++r) {
    in.push_back(by_lane([&](u32) {
      const u32 corners[] = {0, 0xffff, 0x7fff8000, 0x80007fff, 0xffffffff, 0x00010001, 0x8000ffff, 0x7fffffff};
      const u32 x = static_cast<u32>(rng());
      return x % 3 == 0 ? corners[(x >> 8) % 8] : static_cast<u32>(rng());
    }));
  }
  return in;
}
i64 clip(i64 x, i64 low, i64 high) { return x < low ? low : x > high ? high : x; }
// 16 bits of `x`, signed or not.
i64 h(u32 x, bool sign) { return sign ? static_cast<std::int16_t>(x) : static_cast<i64>(x & 0xffff); }
u32 settle(i64 x, bool sign, bool clamp) {
  if (clamp) x = sign ? clip(x, -32768, 32767) : clip(x, 0, 65535);
  return static_cast<u32>(x) & 0xffff;
}

struct Op {
  const char* name;
  bool sign;
  std::function<i64(i64, i64, i64)> f;
  int sources;
  bool keeps;   // the upper half of the destination
  bool clamps;  // takes the clamp bit
};
const Op kScalar[] = {
    {"v_add_u16", false, [](i64 a, i64 b, i64) { return a + b; }, 2, false, true},
    {"v_sub_u16", false, [](i64 a, i64 b, i64) { return a - b; }, 2, false, true},
    {"v_subrev_u16", false, [](i64 a, i64 b, i64) { return b - a; }, 2, false, true},
    {"v_mul_lo_u16", false, [](i64 a, i64 b, i64) { return a * b; }, 2, false, true},
    {"v_lshlrev_b16", false, [](i64 a, i64 b, i64) { return (b << (a & 15)) & 0xffff; }, 2, false, false},
    {"v_lshrrev_b16", false, [](i64 a, i64 b, i64) { return b >> (a & 15); }, 2, false, false},
    {"v_ashrrev_i16", true, [](i64 a, i64 b, i64) { return b >> (a & 15); }, 2, false, false},
    {"v_max_u16", false, [](i64 a, i64 b, i64) { return std::max(a, b); }, 2, false, false},
    {"v_min_u16", false, [](i64 a, i64 b, i64) { return std::min(a, b); }, 2, false, false},
    {"v_max_i16", true, [](i64 a, i64 b, i64) { return std::max(a, b); }, 2, false, false},
    {"v_min_i16", true, [](i64 a, i64 b, i64) { return std::min(a, b); }, 2, false, false},
    {"v_add_i16", true, [](i64 a, i64 b, i64) { return a + b; }, 2, true, true},
    {"v_sub_i16", true, [](i64 a, i64 b, i64) { return a - b; }, 2, true, true},
    {"v_mad_u16", false, [](i64 a, i64 b, i64 c) { return a * b + c; }, 3, true, true},
    {"v_mad_i16", true, [](i64 a, i64 b, i64 c) { return a * b + c; }, 3, true, true},
    {"v_mad_legacy_u16", false, [](i64 a, i64 b, i64 c) { return a * b + c; }, 3, false, true},
    {"v_mad_legacy_i16", true, [](i64 a, i64 b, i64 c) { return a * b + c; }, 3, false, true},
    {"v_min3_i16", true, [](i64 a, i64 b, i64 c) { return std::min({a, b, c}); }, 3, true, false},
    {"v_max3_u16", false, [](i64 a, i64 b, i64 c) { return std::max({a, b, c}); }, 3, true, false},
    {"v_max3_i16", true, [](i64 a, i64 b, i64 c) { return std::max({a, b, c}); }, 3, true, false},
    {"v_min3_u16", false, [](i64 a, i64 b, i64 c) { return std::min({a, b, c}); }, 3, true, false},
    {"v_med3_i16", true, [](i64 a, i64 b, i64 c) { return a + b + c - std::min({a, b, c}) - std::max({a, b, c}); }, 3,
     true, false},
    {"v_med3_u16", false, [](i64 a, i64 b, i64 c) { return a + b + c - std::min({a, b, c}) - std::max({a, b, c}); }, 3,
     true, false},
};

TEST(Int16, ScalarForms) {
  std::mt19937 rng(1);
  for (const Op& op : kScalar) {
    const auto in = random_lanes(rng, 3);
    const std::string sources = op.sources == 3 ? "v10, v11, v12" : "v10, v11";
    const char* last = op.sources == 3 ? ",0,1]" : ",1]";
    std::string code = fmt::format("v_mov_b32 v40, v12\n{} v40, {}\n", op.name, sources);
    code += fmt::format("v_mov_b32 v41, v12\n{} v41, {}{}\n", op.name, sources, op.clamps ? " clamp" : "");
    // Upper halves of the first source and of the destination.
    if (op.keeps) code += fmt::format("v_mov_b32 v42, v12\n{} v42, {} op_sel:[1,0{}\n", op.name, sources, last);
    const auto out = run_vector(code, in, op.keeps ? 3 : 2);
    for (unsigned l = 0; l < 64; ++l) {
      const u32 a = in[0][l], b = in[1][l], c = in[2][l];
      const i64 x = op.f(h(a, op.sign), h(b, op.sign), h(c, op.sign));
      const u32 upper = op.keeps ? c & 0xffff0000u : 0;
      ASSERT_EQ(out[0][l], upper | settle(x, op.sign, false)) << op.name;
      ASSERT_EQ(out[1][l], upper | settle(x, op.sign, op.clamps)) << op.name;
      if (op.keeps) {
        const i64 y = op.f(h(a >> 16, op.sign), h(b, op.sign), h(c, op.sign));
        ASSERT_EQ(out[2][l], (c & 0xffff) | (settle(y, op.sign, false) << 16)) << op.name;
      }
    }
  }
}

const Op kPackedOps[] = {
    {"v_pk_add_u16", false, [](i64 a, i64 b, i64) { return a + b; }, 2, false, true},
    {"v_pk_add_i16", true, [](i64 a, i64 b, i64) { return a + b; }, 2, false, true},
    {"v_pk_sub_u16", false, [](i64 a, i64 b, i64) { return a - b; }, 2, false, true},
    {"v_pk_sub_i16", true, [](i64 a, i64 b, i64) { return a - b; }, 2, false, true},
    {"v_pk_mul_lo_u16", false, [](i64 a, i64 b, i64) { return a * b; }, 2, false, false},
    {"v_pk_lshlrev_b16", false, [](i64 a, i64 b, i64) { return (b << (a & 15)) & 0xffff; }, 2, false, false},
    {"v_pk_lshrrev_b16", false, [](i64 a, i64 b, i64) { return b >> (a & 15); }, 2, false, false},
    {"v_pk_ashrrev_i16", true, [](i64 a, i64 b, i64) { return b >> (a & 15); }, 2, false, false},
    {"v_pk_max_i16", true, [](i64 a, i64 b, i64) { return std::max(a, b); }, 2, false, false},
    {"v_pk_min_i16", true, [](i64 a, i64 b, i64) { return std::min(a, b); }, 2, false, false},
    {"v_pk_max_u16", false, [](i64 a, i64 b, i64) { return std::max(a, b); }, 2, false, false},
    {"v_pk_min_u16", false, [](i64 a, i64 b, i64) { return std::min(a, b); }, 2, false, false},
    {"v_pk_mad_u16", false, [](i64 a, i64 b, i64 c) { return a * b + c; }, 3, false, true},
    {"v_pk_mad_i16", true, [](i64 a, i64 b, i64 c) { return a * b + c; }, 3, false, true},
};

TEST(Int16, PackedForms) {
  std::mt19937 rng(2);
  for (const Op& op : kPackedOps) {
    const auto in = random_lanes(rng, 3);
    const std::string sources = op.sources == 3 ? "v10, v11, v12" : "v10, v11";
    const char* rest = op.sources == 3 ? ",0]" : "]";
    const char* rest_hi = op.sources == 3 ? ",1]" : "]";
    const auto out =
        run_vector(fmt::format("{0} v40, {1}\n{0} v41, {1}{2}\n{0} v42, {1} op_sel:[1,0{3} op_sel_hi:[0,1{4}\n",
                               op.name, sources, op.clamps ? " clamp" : "", rest, rest_hi),
                   in, 3);
    for (unsigned l = 0; l < 64; ++l) {
      const u32 a = in[0][l], b = in[1][l], c = in[2][l];
      const auto both = [&](u32 al, u32 ah, bool clamp) {
        const i64 lo = op.f(h(al, op.sign), h(b, op.sign), h(c, op.sign));
        const i64 hi = op.f(h(ah, op.sign), h(b >> 16, op.sign), h(c >> 16, op.sign));
        return settle(lo, op.sign, clamp) | (settle(hi, op.sign, clamp) << 16);
      };
      ASSERT_EQ(out[0][l], both(a, a >> 16, false)) << op.name;
      ASSERT_EQ(out[1][l], both(a, a >> 16, op.clamps)) << op.name;
      ASSERT_EQ(out[2][l], both(a >> 16, a, false)) << op.name;
    }
  }
}

TEST(Int16, WideningMultiplyAdds) {
  std::mt19937 rng(3);
  const auto in = random_lanes(rng, 3);
  const auto out = run_vector(
      "v_mad_u32_u16 v40, v10, v11, v12\nv_mad_u32_u16 v41, v10, v11, v12 op_sel:[1,0,0,0] clamp\n"
      "v_mad_i32_i16 v42, v10, v11, v12 op_sel:[0,1,0,0]\nv_mad_i32_i16 v43, v10, v11, v12 clamp\n"
      "v_mad_u32_u24 v44, v10, v11, v12\nv_mad_u32_u24 v45, v10, v11, v12 clamp\n"
      "v_mad_i32_i24 v46, v10, v11, v12\nv_mad_i32_i24 v47, v10, v11, v12 clamp\n"
      "v_mul_u32_u24 v48, v10, v11\nv_mul_i32_i24 v49, v10, v11\n",
      in, 10);
  const auto s24 = [](u32 x) { return static_cast<i64>(static_cast<std::int32_t>(x << 8) >> 8); };
  const auto u24 = [](u32 x) { return static_cast<i64>(x & 0xffffff); };
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], b = in[1][l], c = in[2][l];
    const i64 sc = static_cast<std::int32_t>(c), uc = c;
    const i64 u_high = h(a >> 16, false) * h(b, false) + uc, s_low = h(a, true) * h(b, true) + sc;
    ASSERT_EQ(out[0][l], static_cast<u32>(h(a, false) * h(b, false) + uc));
    ASSERT_EQ(out[1][l], static_cast<u32>(clip(u_high, 0, 0xffffffffll)));
    ASSERT_EQ(out[2][l], static_cast<u32>(h(a, true) * h(b >> 16, true) + sc));
    ASSERT_EQ(out[3][l], static_cast<u32>(clip(s_low, INT32_MIN, INT32_MAX)));
    ASSERT_EQ(out[4][l], static_cast<u32>(u24(a) * u24(b) + uc));
    ASSERT_EQ(out[5][l], static_cast<u32>(clip(u24(a) * u24(b) + uc, 0, 0xffffffffll)));
    ASSERT_EQ(out[6][l], static_cast<u32>(s24(a) * s24(b) + sc));
    ASSERT_EQ(out[7][l], static_cast<u32>(clip(s24(a) * s24(b) + sc, INT32_MIN, INT32_MAX)));
    ASSERT_EQ(out[8][l], static_cast<u32>(u24(a) * u24(b)));
    ASSERT_EQ(out[9][l], static_cast<u32>(s24(a) * s24(b)));
  }
}

TEST(Int16, DotProducts) {
  std::mt19937 rng(4);
  const auto in = random_lanes(rng, 3);
  struct Dot {
    const char *name, *accumulating;
    unsigned bits;
    bool sign;
  };
  for (const Dot& d : {Dot{"v_dot2_i32_i16", "v_dot2c_i32_i16", 16, true}, Dot{"v_dot2_u32_u16", nullptr, 16, false},
                       Dot{"v_dot4_i32_i8", "v_dot4c_i32_i8", 8, true}, Dot{"v_dot4_u32_u8", nullptr, 8, false},
                       Dot{"v_dot8_i32_i4", "v_dot8c_i32_i4", 4, true}, Dot{"v_dot8_u32_u4", nullptr, 4, false}}) {
    std::string code =
        fmt::format("{0} v40, v10, v11, v12\n{0} v41, v10, v11, v12 clamp\nv_mov_b32 v42, v12\n", d.name);
    if (d.accumulating != nullptr) code += fmt::format("{} v42, v10, v11\n", d.accumulating);
    const auto out = run_vector(code, in, 3);
    for (unsigned l = 0; l < 64; ++l) {
      i64 sum = d.sign ? static_cast<i64>(static_cast<std::int32_t>(in[2][l])) : static_cast<i64>(in[2][l]);
      for (unsigned k = 0; k < 32; k += d.bits) {
        const i64 modulus = 1ll << d.bits;
        i64 a = (in[0][l] >> k) & (modulus - 1), b = (in[1][l] >> k) & (modulus - 1);
        if (d.sign && a >= modulus / 2) a -= modulus;
        if (d.sign && b >= modulus / 2) b -= modulus;
        sum += a * b;
      }
      ASSERT_EQ(out[0][l], static_cast<u32>(sum)) << d.name;
      ASSERT_EQ(out[1][l], static_cast<u32>(d.sign ? clip(sum, INT32_MIN, INT32_MAX) : clip(sum, 0, 0xffffffffll)))
          << d.name;
      if (d.accumulating != nullptr) {
        ASSERT_EQ(out[2][l], static_cast<u32>(sum)) << d.accumulating;
      }
    }
  }
}

TEST(Int16, BitwiseHalfByTable) {
  std::mt19937 rng(5);
  const auto in = random_lanes(rng, 3);
  const auto out = run_vector(
      "v_mov_b32 v40, v12\nv_bitop3_b16 v40, v10, v11, v12 bitop3:0x96\n"                    // xor
      "v_mov_b32 v41, v12\nv_bitop3_b16 v41, v10, v11, v12 bitop3:0xca op_sel:[1,0,1,1]\n",  // a ? b : c
      in, 2);
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], b = in[1][l], c = in[2][l];
    ASSERT_EQ(out[0][l], (c & 0xffff0000u) | ((a ^ b ^ c) & 0xffff));
    const u32 ah = a >> 16, ch = c >> 16, r = (ah & b) | (~ah & ch);
    ASSERT_EQ(out[1][l], (c & 0xffff) | (r << 16));
  }
}

TEST(Int16, CarriesAndWideSumsSaturate) {
  std::mt19937 rng(6);
  const auto in = random_lanes(rng, 4);
  const auto out = run_vector(
      "v_add_co_u32 v40, vcc, v10, v11 clamp\nv_sub_co_u32 v41, vcc, v10, v11 clamp\n"
      "v_mad_u64_u32 v[42:43], vcc, v10, v11, v[12:13] clamp\nv_mad_i64_i32 v[44:45], vcc, v10, v11, v[12:13] clamp\n",
      in, 6);
  __extension__ using I128 = __int128;
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], b = in[1][l];
    const std::uint64_t c = in[2][l] | (static_cast<std::uint64_t>(in[3][l]) << 32);
    ASSERT_EQ(out[0][l], static_cast<u32>(clip(static_cast<i64>(a) + b, 0, 0xffffffffll)));
    ASSERT_EQ(out[1][l], a < b ? 0 : a - b);
    const I128 u = static_cast<I128>(static_cast<std::uint64_t>(a) * b) + c;
    const I128 top = (static_cast<I128>(1) << 64) - 1;
    const auto want = static_cast<std::uint64_t>(u > top ? top : u);
    ASSERT_EQ(out[2][l] | (static_cast<std::uint64_t>(out[3][l]) << 32), want);
    const I128 s = static_cast<I128>(static_cast<std::int32_t>(a)) * static_cast<std::int32_t>(b) + static_cast<i64>(c);
    const i64 clipped = s > INT64_MAX ? INT64_MAX : s < INT64_MIN ? INT64_MIN : static_cast<i64>(s);
    ASSERT_EQ(out[4][l] | (static_cast<std::uint64_t>(out[5][l]) << 32), static_cast<std::uint64_t>(clipped));
  }
}

TEST(Int16, SumsOfAbsoluteDifferences) {
  std::mt19937 rng(7);
  const auto in = random_lanes(rng, 8);
  const auto out = run_vector(
      "v_sad_u8 v40, v10, v11, v12\nv_sad_hi_u8 v41, v10, v11, v12\nv_msad_u8 v42, v10, v11, v12\n"
      "v_sad_u16 v43, v10, v11, v12\nv_sad_u32 v44, v10, v11, v12\nv_sad_u32 v45, v10, v11, v12 clamp\n"
      "v_qsad_pk_u16_u8 v[46:47], v[10:11], v12, v[14:15]\nv_mqsad_pk_u16_u8 v[48:49], v[10:11], v12, v[14:15]\n"
      "v_mqsad_u32_u8 v[50:53], v[10:11], v12, v[14:17]\nv_mqsad_pk_u16_u8 v[54:55], v[10:11], v12, v[14:15] clamp\n"
      "v_lerp_u8 v56, v10, v11, v12\n",
      in, 17);
  const auto byte = [](std::uint64_t x, unsigned k) { return static_cast<int>((x >> (8 * k)) & 0xff); };
  const auto sad = [&](std::uint64_t a, u32 b, bool masked) {
    u32 sum = 0;
    for (unsigned k = 0; k < 4; ++k)
      if (!masked || byte(b, k) != 0) sum += static_cast<u32>(std::abs(byte(a, k) - byte(b, k)));
    return sum;
  };
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], b = in[1][l], c = in[2][l];
    const std::uint64_t wide = a | (static_cast<std::uint64_t>(b) << 32);
    ASSERT_EQ(out[0][l], sad(a, b, false) + c);
    ASSERT_EQ(out[1][l], (sad(a, b, false) << 16) + c);
    ASSERT_EQ(out[2][l], sad(a, b, true) + c);
    ASSERT_EQ(out[3][l], static_cast<u32>(std::abs(static_cast<int>(a & 0xffff) - static_cast<int>(b & 0xffff)) +
                                          std::abs(static_cast<int>(a >> 16) - static_cast<int>(b >> 16))) +
                             c);
    const i64 d = std::llabs(static_cast<i64>(a) - static_cast<i64>(b));
    ASSERT_EQ(out[4][l], static_cast<u32>(d + c));
    ASSERT_EQ(out[5][l], static_cast<u32>(clip(d + c, 0, 0xffffffffll)));
    for (unsigned k = 0; k < 4; ++k) {
      const u32 acc = (in[4 + k / 2][l] >> (16 * (k % 2))) & 0xffff;
      const u32 plain = sad(wide >> (8 * k), c, false) + acc, masked = sad(wide >> (8 * k), c, true) + acc;
      ASSERT_EQ((out[6 + k / 2][l] >> (16 * (k % 2))) & 0xffff, plain & 0xffff);
      ASSERT_EQ((out[8 + k / 2][l] >> (16 * (k % 2))) & 0xffff, masked & 0xffff);
      ASSERT_EQ((out[14 + k / 2][l] >> (16 * (k % 2))) & 0xffff, std::min(masked, 0xffffu));
      ASSERT_EQ(out[10 + k][l], sad(wide >> (8 * k), c, true) + in[4 + k][l]);
    }
    u32 lerp = 0;
    for (unsigned k = 0; k < 4; ++k)
      lerp |= static_cast<u32>((byte(a, k) + byte(b, k) + (byte(c, k) & 1)) / 2) << (8 * k);
    ASSERT_EQ(out[16][l], lerp);
  }
}

TEST(Int16, PackingAndRandomNumbers) {
  std::mt19937 rng(8);
  const auto in = random_lanes(rng, 2);
  const auto out = run_vector(
      "v_sat_pk_u8_i16 v40, v10\nv_prng_b32 v41, v10\nv_pack_b32_f16 v42, v10, -v11 op_sel:[1,0,0]\n"
      "v_cvt_off_f32_i4 v43, v10\nv_mov_b32 v44, v11\nv_ashr_pk_u8_i32 v44, v10, v11, 9\n"
      "v_mov_b32 v45, v11\nv_ashr_pk_i8_i32 v45, v10, v11, 3 op_sel:[0,0,0,1]\n",
      in, 6);
  for (unsigned l = 0; l < 64; ++l) {
    const u32 a = in[0][l], b = in[1][l];
    ASSERT_EQ(out[0][l], static_cast<u32>(clip(h(a, true), 0, 255) | (clip(h(a >> 16, true), 0, 255) << 8)));
    ASSERT_EQ(out[1][l], (2 * a) ^ (a & 0x80000000u ? 197 : 0));
    ASSERT_EQ(out[2][l], (a >> 16) | ((b & 0xffff) ^ 0x8000) << 16);
    const int nibble = static_cast<int>(a & 15) - (a & 8 ? 16 : 0);
    ASSERT_EQ(std::bit_cast<float>(out[3][l]), static_cast<float>(nibble) / 16.0f);
    const i64 x = static_cast<std::int32_t>(a), y = static_cast<std::int32_t>(b);
    ASSERT_EQ(out[4][l], (b & 0xffff0000u) | static_cast<u32>(clip(x >> 9, 0, 255) | (clip(y >> 9, 0, 255) << 8)));
    const u32 pair =
        (static_cast<u32>(clip(x >> 3, -128, 127)) & 0xff) | ((static_cast<u32>(clip(y >> 3, -128, 127)) & 0xff) << 8);
    ASSERT_EQ(out[5][l], (b & 0xffff) | (pair << 16));
  }
}

}  // namespace
}  // namespace zyfa::sim_test
