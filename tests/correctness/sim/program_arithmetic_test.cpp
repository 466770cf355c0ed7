// Arithmetic that compilers expand into long sequences: division and square root of f64, f32 and 64-bit integers,
// packed halves, bit tricks. IEEE 754 and C fix every bit of the results.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/correctness/sim/program.h"

namespace zyfa::sim_test {
namespace {

class ProgramArithmetic : public Program {};

constexpr char kNoContraction[] = "-ffp-contract=off";

// Doubles of every binade: small, large, denormal, zero.
std::vector<double> wide_doubles(std::size_t n, unsigned seed) {
  std::mt19937_64 rng(seed);
  std::vector<double> v{0.0, -0.0, 1.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 4.0, 3.0};
  std::uniform_real_distribution<double> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-1040, 1020);
  while (v.size() < n) v.push_back(std::ldexp(mantissa(rng), exponent(rng)));
  return v;
}

TEST_P(ProgramArithmetic, DoubleSqrtAndDivision) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global double* out, global const double* a, global const double* b) {
  u32 i = GID * 64 + LID; double x = a[i], y = b[i];
  out[4 * i] = __builtin_elementwise_sqrt(x); out[4 * i + 1] = x / y;
  out[4 * i + 2] = __builtin_fma(x, y, 1.0) - __builtin_floor(y); out[4 * i + 3] = __builtin_ldexp(x, (int)i - 60) + (double)(float)y;
})",
                          kNoContraction));
  auto a = wide_doubles(256, 1), b = wide_doubles(256, 2);
  std::reverse(b.begin(), b.end());
  on_each_device([&](SimDevice& device) {
    const Buffer<double> ba(device, a), bb(device, b), out(device, std::vector<double>(4 * 256));
    if (!launch(device, 4, 64, Args().add(out).add(ba).add(bb))) return;
    const auto got = out.read();
    for (int i = 0; i < 256; ++i) {
      const std::array<double, 4> want{std::sqrt(a[i]), a[i] / b[i], std::fma(a[i], b[i], 1.0) - std::floor(b[i]),
                                       std::ldexp(a[i], i - 60) + static_cast<double>(static_cast<float>(b[i]))};
      for (int j = 0; j < 4; ++j) {
        if (std::isnan(want[j])) {
          ASSERT_TRUE(std::isnan(got[4 * i + j])) << i << "," << j;
        } else {
          ASSERT_EQ(std::bit_cast<std::uint64_t>(got[4 * i + j]), std::bit_cast<std::uint64_t>(want[j]))
              << i << "," << j << ": " << a[i] << " " << b[i];
        }
      }
    }
  });
}

// IEEE single division and square root, the operands from every binade with denormals kept.
TEST_P(ProgramArithmetic, FloatSqrtAndDivision) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global float* out, global const float* a, global const float* b) {
  u32 i = GID * 64 + LID; out[2 * i] = a[i] / b[i]; out[2 * i + 1] = __builtin_elementwise_sqrt(a[i]);
})",
                          "-cl-fp32-correctly-rounded-divide-sqrt -ffp-contract=off"));
  std::vector<float> a{0.0F, 1e-45F, 1.1754944e-38F, 3.4028235e38F, 2.0F}, b{1.0F, 3.0F, 7.0F, 1e-40F, 3.0F};
  std::mt19937 rng(3);
  while (a.size() < 256) {
    a.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(rng() % 0x7f800000u)));
    b.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(rng() % 0x7f800000u) | 1));
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<float> ba(device, a), bb(device, b), out(device, std::vector<float>(512));
    if (!launch(device, 4, 64, Args().add(out).add(ba).add(bb))) return;
    const auto got = out.read();
    for (int i = 0; i < 256; ++i) {
      ASSERT_EQ(got[2 * i], a[i] / b[i]) << i << ": " << a[i] << " " << b[i];
      ASSERT_EQ(got[2 * i + 1], std::sqrt(a[i])) << i << ": " << a[i];
    }
  });
}

TEST_P(ProgramArithmetic, Int64Division) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u64* out, global const u64* a, global const u64* b) {
  u32 i = GID * 64 + LID; u64 x = a[i], y = b[i]; long s = (long)x, t = (long)y;
  out[6 * i] = x / y; out[6 * i + 1] = x % y; out[6 * i + 2] = (u64)(s / t); out[6 * i + 3] = (u64)(s % t);
  out[6 * i + 4] = x / 1000000007ul + (u64)(s / -7); out[6 * i + 5] = (u64)((int)x / ((int)y | 1)) + (u32)x % ((u32)y | 1);
})"));
  std::mt19937_64 rng(4);
  std::vector<std::uint64_t> a(128), b(128);
  for (int i = 0; i < 128; ++i) {
    a[i] = rng() >> (i % 5 * 11);
    b[i] = (rng() >> (i % 7 * 9)) | 1;
  }
  a[0] = ~0ull;
  b[0] = 1ull << 32;
  a[1] = 1ull << 63;
  b[1] = 10;
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint64_t> ba(device, a), bb(device, b), out(device, std::vector<std::uint64_t>(6 * 128));
    if (!launch(device, 2, 64, Args().add(out).add(ba).add(bb))) return;
    const auto got = out.read();
    for (int i = 0; i < 128; ++i) {
      const std::uint64_t x = a[i], y = b[i];
      const auto s = static_cast<std::int64_t>(x), t = static_cast<std::int64_t>(y);
      const auto low = static_cast<std::int32_t>(x), divisor = static_cast<std::int32_t>(y) | 1;
      ASSERT_EQ(got[6 * i], x / y) << i;
      ASSERT_EQ(got[6 * i + 1], x % y) << i;
      ASSERT_EQ(got[6 * i + 2], static_cast<std::uint64_t>(s / t)) << i;
      ASSERT_EQ(got[6 * i + 3], static_cast<std::uint64_t>(s % t)) << i;
      ASSERT_EQ(got[6 * i + 4], x / 1000000007ull + static_cast<std::uint64_t>(s / -7)) << i;
      ASSERT_EQ(got[6 * i + 5], static_cast<std::uint64_t>(std::int64_t{low} / divisor) +
                                    static_cast<std::uint32_t>(x) % (static_cast<std::uint32_t>(y) | 1))
          << i;
    }
  });
}

// Pairs of halves: add, multiply, fma, minimum and maximum, each rounded once to 11 bits by _Float16 on the host.
TEST_P(ProgramArithmetic, PackedHalf) {
  ZYFA_COMPILE(compile_cl(R"(
typedef half h2 __attribute__((ext_vector_type(2)));
kernel void k(global h2* out, global const h2* a, global const h2* b, global const h2* c) {
  u32 i = GID * 64 + LID; h2 x = a[i], y = b[i], z = c[i];
  out[6 * i] = x + y; out[6 * i + 1] = x * y; out[6 * i + 2] = __builtin_elementwise_fma(x, y, z);
  out[6 * i + 3] = __builtin_elementwise_max(x, y.yx); out[6 * i + 4] = __builtin_elementwise_min(-x, z);
  out[6 * i + 5] = (x - (h2)z.x) * y.yx;
})",
                          kNoContraction));
  // The bits of every tenth half, finite.
  std::vector<std::uint16_t> codes;
  for (unsigned c = 0; codes.size() < 3 * 256; c += 163)
    if ((c & 0x7c00) != 0x7c00) codes.push_back(static_cast<std::uint16_t>(c));
  std::mt19937 rng(5);
  std::shuffle(codes.begin(), codes.end(), rng);
  const std::vector<std::uint16_t> a(codes.begin(), codes.begin() + 256), b(codes.begin() + 256, codes.begin() + 512),
      c(codes.begin() + 512, codes.end());
  // Sums and products of halves are exact in double, and so is rounding them once; fma's sum fits in a double, too,
  // when it is not tiny beside the product, for which std::fma has no use: 2 x 11 bits + 40 binades exceed 53 at most
  // there.
  const auto f = [](std::uint16_t h) { return static_cast<double>(std::bit_cast<_Float16>(h)); };
  const auto h = [](double v) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(v)); };
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint16_t> ba(device, a), bb(device, b), bc(device, c),
        out(device, std::vector<std::uint16_t>(6 * 256));
    if (!launch(device, 2, 64, Args().add(out).add(ba).add(bb).add(bc))) return;
    const auto got = out.read();
    for (int i = 0; i < 128; ++i) {
      for (int j = 0; j < 2; ++j) {
        const double x = f(a[2 * i + j]), y = f(b[2 * i + j]), z = f(c[2 * i + j]), swapped = f(b[2 * i + 1 - j]);
        const double difference = f(h(x - f(c[2 * i])));
        const std::array<double, 6> want{
            x + y, x * y, x * y + z, std::max(x, swapped), std::min(-x, z), difference * swapped};
        for (int n = 0; n < 6; ++n)
          ASSERT_EQ(f(got[2 * (6 * i + n) + j]), f(h(want[n])))
              << i << "," << j << "," << n << ": " << x << " " << y << " " << z;
      }
    }
  });
}

TEST_P(ProgramArithmetic, BitTricks) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u32* out, global const u32* a, global const u32* b) {
  u32 i = GID * 64 + LID, x = a[i], y = b[i]; u64 w = (u64)x << 32 | y;
  u32 r[12];
  r[0] = (u32)__builtin_popcount(x) + (u32)__builtin_popcountl(w); r[1] = (u32)__builtin_clz(x | 1) * 64 + (u32)__builtin_ctz(y | 0x80000000u);
  r[2] = (u32)__builtin_clzl(w | 1) * 64 + (u32)__builtin_ctzl(w | 1ul << 63); r[3] = __builtin_bitreverse32(x) ^ (u32)__builtin_bitreverse64(w);
  r[4] = __builtin_amdgcn_perm(x, y, 0x0c020507); r[5] = __builtin_amdgcn_alignbit(x, y, x & 31) + __builtin_amdgcn_alignbyte(x, y, y & 3);
  r[6] = __builtin_amdgcn_ubfe(x, y & 31, 7) + (u32)__builtin_amdgcn_sbfe((int)x, 3, y & 15);
  r[7] = (x & y) | (~x & r[0]); r[8] = __builtin_amdgcn_sad_u8(x, y, 5) + (u32)__builtin_amdgcn_lerp(x, y, 0x01010101);
  r[9] = __builtin_rotateleft32(x, y) ^ (u32)(__builtin_rotateleft64(w, y) >> 13); r[10] = __builtin_bswap32(x) + (u32)__builtin_bswap64(w) + __builtin_bswap16((u16)y);
  r[11] = (x ^ y ^ i) + ((x & 0xffffff) * (y & 0xffffff)) + (u32)(((u64)x * y) >> 32);
  for (u32 j = 0; j < 12; ++j) out[12 * i + j] = r[j];
})"));
  const auto a = random_words(128, 6), b = random_words(128, 7);
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> ba(device, a), bb(device, b), out(device, std::vector<std::uint32_t>(12 * 128));
    if (!launch(device, 2, 64, Args().add(out).add(ba).add(bb))) return;
    const auto got = out.read();
    const auto reverse = [](std::uint64_t v, int bits) {
      std::uint64_t r = 0;
      for (int n = 0; n < bits; ++n) r |= (v >> n & 1) << (bits - 1 - n);
      return r;
    };
    for (std::uint32_t i = 0; i < 128; ++i) {
      const std::uint32_t x = a[i], y = b[i];
      const std::uint64_t w = std::uint64_t{x} << 32 | y;
      const auto byte = [](std::uint32_t v, int n) { return v >> 8 * n & 255; };
      const auto sbfe = [](std::uint32_t v, std::uint32_t offset, std::uint32_t width) {
        return width == 0
                   ? 0u
                   : static_cast<std::uint32_t>(static_cast<std::int32_t>(v << (32 - offset - width)) >> (32 - width));
      };
      std::uint32_t sad = 5, lerp = 0;
      for (int n = 0; n < 4; ++n) {
        sad += byte(x, n) > byte(y, n) ? byte(x, n) - byte(y, n) : byte(y, n) - byte(x, n);
        lerp |= ((byte(x, n) + byte(y, n) + 1) >> 1) << 8 * n;
      }
      const std::array<std::uint32_t, 12> want{
          static_cast<std::uint32_t>(std::popcount(x) + std::popcount(w)),
          static_cast<std::uint32_t>(std::countl_zero(x | 1) * 64 + std::countr_zero(y | 0x80000000u)),
          static_cast<std::uint32_t>(std::countl_zero(w | 1) * 64 + std::countr_zero(w | 1ull << 63)),
          static_cast<std::uint32_t>(reverse(x, 32) ^ reverse(w, 64)),
          // Selector bytes, lowest first: 7 and 5 of the first operand, 2 of the second, then zero.
          byte(x, 3) | byte(x, 1) << 8 | byte(y, 2) << 16,
          static_cast<std::uint32_t>(w >> (x & 31)) + static_cast<std::uint32_t>(w >> 8 * (y & 3)),
          (x >> (y & 31) & 127) + sbfe(x, 3, y & 15),
          (x & y) | (~x & static_cast<std::uint32_t>(std::popcount(x) + std::popcount(w))), sad + lerp,
          std::rotl(x, static_cast<int>(y & 31)) ^
              static_cast<std::uint32_t>(std::rotl(w, static_cast<int>(y & 63)) >> 13),
          __builtin_bswap32(x) + static_cast<std::uint32_t>(__builtin_bswap64(w)) +
              __builtin_bswap16(static_cast<std::uint16_t>(y)),
          (x ^ y ^ i) + (x & 0xffffff) * (y & 0xffffff) + static_cast<std::uint32_t>((std::uint64_t{x} * y) >> 32)};
      for (int j = 0; j < 12; ++j) ASSERT_EQ(got[12 * i + j], want[j]) << i << "," << j << ": " << x << " " << y;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Levels, ProgramArithmetic, testing::Values("-O0", "-O2"), level_name);

}  // namespace
}  // namespace zyfa::sim_test
