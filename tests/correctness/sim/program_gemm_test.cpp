// Matrix products through clang's MFMA builtins, tiled through LDS with barriers. Inputs are small integers or powers
// of two, so that every sum is exact in any order and the comparison is bit for bit.
#include <array>
#include <bit>
#include <cmath>

#include "tests/correctness/sim/program.h"

namespace zyfa::sim_test {
namespace {

class ProgramGemm : public Program {};

std::uint16_t bf16_of(int v) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(v)) >> 16);
}

// A float of `exponent_bits` and `mantissa_bits` with its bias, as its code; the value must be representable.
std::uint8_t small_float(int v, int exponent_bits, int mantissa_bits, int bias) {
  const int width = exponent_bits + mantissa_bits;
  for (int code = 0; code < 1 << width; ++code) {
    const int e = code >> mantissa_bits, m = code & ((1 << mantissa_bits) - 1);
    const double x = std::ldexp(e == 0 ? m : m + (1 << mantissa_bits), (e == 0 ? 1 : e) - bias - mantissa_bits);
    if (x == std::abs(v)) return static_cast<std::uint8_t>(code | (v < 0 ? 1 << width : 0));
  }
  ADD_FAILURE() << v << " has no code";
  return 0;
}

// Row-major C = A[m x k] * B[k x n].
template <typename T>
std::vector<T> product(const std::vector<T>& a, const std::vector<T>& b, int m, int n, int k) {
  std::vector<T> c(static_cast<std::size_t>(m) * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int x = 0; x < k; ++x) c[i * n + j] += a[i * k + x] * b[x * n + j];
  return c;
}

constexpr char kVectors[] = R"(
typedef __bf16 v8bf __attribute__((ext_vector_type(8))); typedef half v8h __attribute__((ext_vector_type(8)));
typedef int v4i __attribute__((ext_vector_type(4))); typedef int v8i __attribute__((ext_vector_type(8)));
typedef int v16i __attribute__((ext_vector_type(16)));
typedef float v4f __attribute__((ext_vector_type(4))); typedef float v16f __attribute__((ext_vector_type(16)));
typedef double v4d __attribute__((ext_vector_type(4)));
)";

// 64x64 by four waves, K in steps of 32 staged in padded LDS; B is transposed on the way in.
TEST_P(ProgramGemm, Bf16Tiled) {
  constexpr int n = 64, k = 96;
  ZYFA_COMPILE(compile_cl((std::string(kVectors) + R"(
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void k(global float* c, global const u16* a, global const u16* b, int depth) {
  local u16 ta[64][40]; local u16 tb[64][40];
  u32 lane = LID % 64, wave = LID / 64, row = 32 * (wave / 2), col = 32 * (wave % 2);
  v16f acc = 0;
  for (int k0 = 0; k0 < depth; k0 += 32) {
    for (u32 e = LID; e < 64 * 32; e += 256) {
      ta[e / 32][e % 32] = a[(e / 32) * depth + k0 + e % 32];
      tb[e % 64][e / 64] = b[(k0 + e / 64) * 64 + e % 64];
    }
    BARRIER();
    for (u32 s = 0; s < 32; s += 16) {
      u32 at = s + 8 * (lane / 32);
      v8bf x = *(local v8bf*)&ta[row + lane % 32][at], y = *(local v8bf*)&tb[col + lane % 32][at];
      acc = __builtin_amdgcn_mfma_f32_32x32x16_bf16(x, y, acc, 0, 0, 0);
    }
    BARRIER();
  }
  for (u32 r = 0; r < 16; ++r) c[(row + 8 * (r / 4) + 4 * (lane / 32) + r % 4) * 64 + col + lane % 32] = acc[r];
})")
                              .c_str()));
  const auto a = random_ints(n * k, 1, -9, 9), b = random_ints(k * n, 2, -9, 9);
  std::vector<std::uint16_t> a16, b16;
  for (const int v : a) a16.push_back(bf16_of(v));
  for (const int v : b) b16.push_back(bf16_of(v));
  const auto want = product(a, b, n, n, k);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint16_t> ba(device, a16), bb(device, b16);
    const Buffer<float> c(device, std::vector<float>(n * n, NAN));
    if (!launch(device, 1, 256, Args().add(c).add(ba).add(bb).add(k))) return;
    const auto got = c.read();
    for (int i = 0; i < n * n; ++i) ASSERT_EQ(got[i], static_cast<float>(want[i])) << i;
  });
}

TEST_P(ProgramGemm, F16Small) {
  constexpr int n = 16, k = 64;
  ZYFA_COMPILE(compile_cl((std::string(kVectors) + R"(
kernel void k(global float* c, global const half* a, global const half* b) {
  u32 l = LID; v4f acc = 1.0f;
  for (u32 k0 = 0; k0 < 64; k0 += 32) {
    v8h x, y;
    for (u32 s = 0; s < 8; ++s) { u32 kk = k0 + 8 * (l / 16) + s; x[s] = a[(l % 16) * 64 + kk]; y[s] = b[kk * 16 + l % 16]; }
    acc = __builtin_amdgcn_mfma_f32_16x16x32_f16(x, y, acc, 0, 0, 0);
  }
  for (u32 r = 0; r < 4; ++r) c[(4 * (l / 16) + r) * 16 + l % 16] = acc[r];
})")
                              .c_str()));
  const auto a = random_ints(n * k, 3, -7, 7), b = random_ints(k * n, 4, -7, 7);
  std::vector<std::uint16_t> a16, b16;  // half codes: sign, 5 exponent and 10 mantissa bits
  const auto half_of = [](int v) {
    if (v == 0) return std::uint16_t{0};
    const int e = std::ilogb(std::abs(v));
    const int m = (std::abs(v) << (10 - e)) & 0x3ff;
    return static_cast<std::uint16_t>((v < 0 ? 0x8000 : 0) | ((e + 15) << 10) | m);
  };
  for (const int v : a) a16.push_back(half_of(v));
  for (const int v : b) b16.push_back(half_of(v));
  const auto want = product(a, b, n, n, k);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint16_t> ba(device, a16), bb(device, b16);
    const Buffer<float> c(device, std::vector<float>(n * n, NAN));
    if (!launch(device, 1, 64, Args().add(c).add(ba).add(bb))) return;
    const auto got = c.read();
    for (int i = 0; i < n * n; ++i) ASSERT_EQ(got[i], static_cast<float>(want[i] + 1)) << i;
  });
}

TEST_P(ProgramGemm, Int8Tiled) {
  constexpr int n = 32, k = 128;
  ZYFA_COMPILE(compile_cl((std::string(kVectors) + R"(
kernel void k(global int* c, global const char* a, global const char* b) {
  local char tb[32][144]; u32 l = LID;
  for (u32 e = l; e < 32 * 128; e += 64) tb[e % 32][e / 32] = b[e];
  BARRIER();
  v16i acc = 0;
  for (u32 k0 = 0; k0 < 128; k0 += 32) {
    u32 at = k0 + 16 * (l / 32);
    v4i x = *(global const v4i*)&a[(l % 32) * 128 + at], y = *(local v4i*)&tb[l % 32][at];
    acc = __builtin_amdgcn_mfma_i32_32x32x32_i8(x, y, acc, 0, 0, 0);
  }
  for (u32 r = 0; r < 16; ++r) c[(8 * (r / 4) + 4 * (l / 32) + r % 4) * 32 + l % 32] = acc[r];
})")
                              .c_str()));
  const auto a = random_ints(n * k, 5, -128, 127), b = random_ints(k * n, 6, -128, 127);
  const std::vector<std::int8_t> a8(a.begin(), a.end()), b8(b.begin(), b.end());
  const auto want = product(a, b, n, n, k);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::int8_t> ba(device, a8), bb(device, b8);
    const Buffer<int> c(device, std::vector<int>(n * n, -1));
    if (!launch(device, 1, 64, Args().add(c).add(ba).add(bb))) return;
    EXPECT_EQ(c.read(), want);
  });
}

// e4m3 with an E8M0 scale for every 32 of k: two instructions, chunked operand layout, scale byte 1 of A and 2 of B.
TEST_P(ProgramGemm, ScaledFp8) {
  constexpr int n = 32, k = 128;
  ZYFA_COMPILE(compile_cl((std::string(kVectors) + R"(
kernel void k(global float* c, global const u8* a, global const u8* b, global const u8* sa, global const u8* sb) {
  u32 l = LID; v16f acc = 0;
  for (u32 k0 = 0; k0 < 128; k0 += 64) {
    union { v8i v; u8 u[32]; } x, y;
    for (u32 s = 0; s < 32; ++s) {
      u32 kk = k0 + 16 * (l / 32) + s % 16 + 32 * (s / 16);
      x.u[s] = a[(l % 32) * 128 + kk]; y.u[s] = b[kk * 32 + l % 32];
    }
    u32 block = k0 / 32 + l / 32;
    int scale_a = sa[(l % 32) * 4 + block] << 8 | 3, scale_b = sb[block * 32 + l % 32] << 16 | 0x7700;
    acc = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(x.v, y.v, acc, 0, 0, 1, scale_a, 2, scale_b);
  }
  for (u32 r = 0; r < 16; ++r) c[(8 * (r / 4) + 4 * (l / 32) + r % 4) * 32 + l % 32] = acc[r];
})")
                              .c_str()));
  const auto a = random_ints(n * k, 7, -8, 8), b = random_ints(k * n, 8, -8, 8);
  const auto ea = random_ints(n * 4, 9, -3, 3), eb = random_ints(4 * n, 10, -3, 3);
  std::vector<std::uint8_t> a8, b8, sa, sb;
  for (const int v : a) a8.push_back(small_float(v, 4, 3, 7));
  for (const int v : b) b8.push_back(small_float(v, 4, 3, 7));
  for (const int e : ea) sa.push_back(static_cast<std::uint8_t>(127 + e));
  for (const int e : eb) sb.push_back(static_cast<std::uint8_t>(127 + e));
  std::vector<double> want(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int x = 0; x < k; ++x)
        want[i * n + j] += std::ldexp(a[i * k + x] * b[x * n + j], ea[i * 4 + x / 32] + eb[x / 32 * n + j]);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint8_t> ba(device, a8), bb(device, b8), bsa(device, sa), bsb(device, sb);
    const Buffer<float> c(device, std::vector<float>(n * n, NAN));
    if (!launch(device, 1, 64, Args().add(c).add(ba).add(bb).add(bsa).add(bsb))) return;
    const auto got = c.read();
    for (int i = 0; i < n * n; ++i) ASSERT_EQ(got[i], want[i]) << i;
  });
}

// A is fp4 (e2m1), B is fp6 (e2m3): contiguous operands of 4 and 6 dwords in the 16x16x128 shape, no scale.
TEST_P(ProgramGemm, Fp4TimesFp6) {
  constexpr int n = 16, k = 128;
  ZYFA_COMPILE(compile_cl((std::string(kVectors) + R"(
kernel void k(global float* c, global const u8* a, global const u8* b) {
  u32 l = LID; v4f acc = 0; v8i x = 0, y = 0;
  for (u32 s = 0; s < 32; ++s) {
    u32 kk = 32 * (l / 16) + s, code_a = a[(l % 16) * 128 + kk], code_b = b[kk * 16 + l % 16], bit = 6 * s;
    x[s / 8] |= code_a << 4 * (s % 8);
    y[bit / 32] |= code_b << bit % 32;
    if (bit % 32 > 26) y[bit / 32 + 1] |= code_b >> (32 - bit % 32);
  }
  acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, acc, 4, 2, 0, 0, 0, 0);
  for (u32 r = 0; r < 4; ++r) c[(4 * (l / 16) + r) * 16 + l % 16] = acc[r];
})")
                              .c_str()));
  constexpr std::array<int, 7> kFp4Values{-6, -4, -3, 0, 1, 2, 3};
  std::vector<int> a;
  for (const int i : random_ints(n * k, 11, 0, 6)) a.push_back(kFp4Values[static_cast<std::size_t>(i)]);
  const auto b = random_ints(k * n, 12, -7, 7);
  std::vector<std::uint8_t> a4, b6;
  for (const int v : a) a4.push_back(small_float(v, 2, 1, 1));
  for (const int v : b) b6.push_back(small_float(v, 2, 3, 1));
  const auto want = product(a, b, n, n, k);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint8_t> ba(device, a4), bb(device, b6);
    const Buffer<float> c(device, std::vector<float>(n * n, NAN));
    if (!launch(device, 1, 64, Args().add(c).add(ba).add(bb))) return;
    const auto got = c.read();
    for (int i = 0; i < n * n; ++i) ASSERT_EQ(got[i], static_cast<float>(want[i])) << i;
  });
}

TEST_P(ProgramGemm, F32) {
  constexpr int n = 16, k = 32;
  ZYFA_COMPILE(compile_cl((std::string(kVectors) + R"(
kernel void k(global float* c, global const float* a, global const float* b) {
  u32 l = LID; v4f acc = 0;
  for (u32 k0 = 0; k0 < 32; k0 += 4)
    acc = __builtin_amdgcn_mfma_f32_16x16x4f32(a[(l % 16) * 32 + k0 + l / 16], b[(k0 + l / 16) * 16 + l % 16], acc, 0, 0, 0);
  for (u32 r = 0; r < 4; ++r) c[(4 * (l / 16) + r) * 16 + l % 16] = acc[r];
})")
                              .c_str()));
  const auto a = random_ints(n * k, 13, -300, 300), b = random_ints(k * n, 14, -300, 300);
  const std::vector<float> fa(a.begin(), a.end()), fb(b.begin(), b.end());
  const auto want = product(a, b, n, n, k);
  on_each_device([&](SimDevice& device) {
    const Buffer<float> ba(device, fa), bb(device, fb), c(device, std::vector<float>(n * n, NAN));
    if (!launch(device, 1, 64, Args().add(c).add(ba).add(bb))) return;
    const auto got = c.read();
    for (int i = 0; i < n * n; ++i) ASSERT_EQ(got[i], static_cast<float>(want[i])) << i;
  });
}

TEST_P(ProgramGemm, F64) {
  constexpr int n = 16, k = 16;
  ZYFA_COMPILE(compile_cl((std::string(kVectors) + R"(
kernel void k(global double* c, global const double* a, global const double* b) {
  u32 l = LID; v4d acc = 0;
  for (u32 k0 = 0; k0 < 16; k0 += 4)
    acc = __builtin_amdgcn_mfma_f64_16x16x4f64(a[(l % 16) * 16 + k0 + l / 16], b[(k0 + l / 16) * 16 + l % 16], acc, 0, 0, 0);
  for (u32 r = 0; r < 4; ++r) c[(4 * r + l / 16) * 16 + l % 16] = acc[r];
})")
                              .c_str()));
  const auto a = random_ints(n * k, 15, -1000000, 1000000), b = random_ints(k * n, 16, -1000000, 1000000);
  const std::vector<double> da(a.begin(), a.end()), db(b.begin(), b.end());
  const auto want = product(da, db, n, n, k);
  on_each_device([&](SimDevice& device) {
    const Buffer<double> ba(device, da), bb(device, db), c(device, std::vector<double>(n * n, NAN));
    if (!launch(device, 1, 64, Args().add(c).add(ba).add(bb))) return;
    EXPECT_EQ(c.read(), want);
  });
}

INSTANTIATE_TEST_SUITE_P(Levels, ProgramGemm, testing::Values("-O0", "-O3"), level_name);

}  // namespace
}  // namespace zyfa::sim_test
