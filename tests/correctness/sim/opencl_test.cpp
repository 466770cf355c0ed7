// Programs compiled by clang-22 for gfx950 run on the simulator and agree with the host: machine code that this project
// did not emit. Each runs plain and strict; strict must find nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/require_tools.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

constexpr char kPrelude[] = R"(
typedef uint u32; typedef ulong u64;
#define LID __builtin_amdgcn_workitem_id_x()
#define GID __builtin_amdgcn_workgroup_id_x()
#define BARRIER() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
)";

class OpenCl : public testing::TestWithParam<SimChecks> {
 protected:
  void SetUp() override { device_ = make_device(GetParam(), 2); }
  // False when clang is absent (the test is skipped) or the run failed.
  bool launch(const char* source, unsigned groups, unsigned items, const Args& args, const char* flags = "-O2") {
    const auto object = compile_opencl(std::string(kPrelude) + source, flags);
    if (!object) {
      skipped_ = true;
      return false;
    }
    const Status status = run(*device_, *object, "k", {.grid = {groups, 1, 1}, .block = {items, 1, 1}}, args);
    if (!status) ADD_FAILURE() << to_string(status.error());
    return status.has_value();
  }
  std::shared_ptr<SimDevice> device_;
  bool skipped_ = false;
};
#define LAUNCH(...)                                                    \
  if (!launch(__VA_ARGS__)) {                                          \
    if (skipped_) ZYFA_SKIP_WITHOUT_TOOL("clang-22 is not installed"); \
    return;                                                            \
  }

std::vector<float> random_floats(std::size_t n, unsigned seed, float lo = -2, float hi = 2) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(lo, hi);
  std::vector<float> v(n);
  for (float& x : v) x = d(rng);
  return v;
}
std::vector<std::uint32_t> random_words(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::uint32_t> v(n);
  for (auto& x : v) x = rng();
  return v;
}

TEST_P(OpenCl, Saxpy) {
  const auto x = random_floats(1000, 1), y = random_floats(1000, 2);
  const Buffer<float> bx(*device_, x), by(*device_, y);
  LAUNCH(R"(kernel void k(global float* y, global const float* x, float a, int n) {
    int i = GID * 256 + LID; if (i < n) y[i] = a * x[i] + y[i]; })",
         4, 256, Args().add(by).add(bx).add(1.5f).add(1000));
  const auto result = by.read();
  for (int i = 0; i < 1000; ++i) {
    // Contraction is the compiler's choice: either rounding is right.
    const float fused = std::fma(1.5f, x[i], y[i]), split = 1.5f * x[i] + y[i];
    ASSERT_TRUE(result[i] == fused || result[i] == split) << i;
  }
}

TEST_P(OpenCl, LdsReduction) {
  const auto x = random_words(1024, 3);
  const Buffer<std::uint32_t> in(*device_, x), out(*device_, std::vector<std::uint32_t>(4, 0));
  LAUNCH(R"(kernel void k(global u32* out, global const u32* x) {
    local u32 sums[256];
    u32 l = LID; sums[l] = x[GID * 256 + l]; BARRIER();
    for (u32 step = 128; step > 0; step >>= 1) { if (l < step) sums[l] += sums[l + step]; BARRIER(); }
    if (l == 0) out[GID] = sums[0]; })",
         4, 256, Args().add(out).add(in));
  const auto result = out.read();
  for (int g = 0; g < 4; ++g)
    EXPECT_EQ(result[g], std::accumulate(x.begin() + 256 * g, x.begin() + 256 * (g + 1), 0u)) << g;
}

TEST_P(OpenCl, TiledTranspose) {
  const auto x = random_words(64 * 64, 4);
  const Buffer<std::uint32_t> in(*device_, x), out(*device_, std::vector<std::uint32_t>(64 * 64, 0));
  LAUNCH(R"(kernel void k(global u32* out, global const u32* x) {
    local u32 tile[16][17];
    u32 r = LID / 16, c = LID % 16, by = GID / 4, bx = GID % 4;
    tile[r][c] = x[(by * 16 + r) * 64 + bx * 16 + c]; BARRIER();
    out[(bx * 16 + r) * 64 + by * 16 + c] = tile[c][r]; })",
         16, 256, Args().add(out).add(in));
  const auto result = out.read();
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 64; ++c) ASSERT_EQ(result[r * 64 + c], x[c * 64 + r]);
}

TEST_P(OpenCl, DivergentCollatz) {
  const Buffer<std::uint32_t> out(*device_, std::vector<std::uint32_t>(512, 0));
  LAUNCH(R"(kernel void k(global u32* out) {
    u32 i = GID * 128 + LID, n = i + 1, steps = 0;
    while (n != 1) { if (n & 1) n = 3 * n + 1; else n >>= 1; ++steps; if (steps > 1000) break; }
    out[i] = steps; })",
         4, 128, Args().add(out));
  const auto result = out.read();
  for (std::uint32_t i = 0; i < 512; ++i) {
    std::uint32_t n = i + 1, steps = 0;
    while (n != 1) {
      n = n & 1 ? 3 * n + 1 : n >> 1;
      ++steps;
    }
    ASSERT_EQ(result[i], steps) << i;
  }
}

TEST_P(OpenCl, IntegerMixture) {
  const auto x = random_words(512, 5), y = random_words(512, 6);
  const Buffer<std::uint32_t> bx(*device_, x), by(*device_, y);
  const Buffer<std::uint64_t> out(*device_, std::vector<std::uint64_t>(512, 0));
  LAUNCH(R"(kernel void k(global u64* out, global const u32* x, global const u32* y) {
    u32 i = GID * 128 + LID, a = x[i], b = y[i] | 1;
    u64 wide = (u64)a * b + ((u64)b << (a & 31));
    long s = (long)(int)a * (int)b;
    u64 r = wide ^ (u64)(s >> (b & 15)) ^ ((u64)(a / b) << 32) ^ (a % b);
    r += (u64)(__builtin_popcount(a) + __builtin_clz(b)) + (u64)((int)a > (int)b ? (int)a : (int)b) + (u64)(a < b ? a : b);
    r ^= (u64)__builtin_rotateleft32(a, b & 31) << 7; r -= wide >> 3;
    r += (u64)((int)a < (int)b ? (int)a >> 3 : (int)b >> 5);
    out[i] = r; })",
         4, 128, Args().add(out).add(bx).add(by));
  const auto result = out.read();
  for (int i = 0; i < 512; ++i) {
    const std::uint32_t a = x[i], b = y[i] | 1;
    const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
    const std::uint64_t wide = std::uint64_t{a} * b + (std::uint64_t{b} << (a & 31));
    const std::int64_t s = std::int64_t{sa} * sb;
    std::uint64_t r = wide ^ static_cast<std::uint64_t>(s >> (b & 15)) ^ (std::uint64_t{a / b} << 32) ^ (a % b);
    r += static_cast<std::uint64_t>(std::popcount(a) + std::countl_zero(b)) +
         static_cast<std::uint64_t>(std::int64_t{std::max(sa, sb)}) + std::min(a, b);
    r ^= std::uint64_t{std::rotl(a, static_cast<int>(b & 31))} << 7;
    r -= wide >> 3;
    r += static_cast<std::uint64_t>(std::int64_t{sa < sb ? sa >> 3 : sb >> 5});
    ASSERT_EQ(result[i], r) << i;
  }
}

TEST_P(OpenCl, FloatMixture) {
  const auto x = random_floats(256, 7, 0.1f, 9.0f), y = random_floats(256, 8, 0.1f, 9.0f);
  const Buffer<float> bx(*device_, x), by(*device_, y), out(*device_, std::vector<float>(256, 0));
  LAUNCH(R"(kernel void k(global float* out, global const float* x, global const float* y) {
    u32 i = GID * 64 + LID; float a = x[i], b = y[i];
    float r = a / b + __builtin_amdgcn_exp2f(a - b) + __builtin_amdgcn_logf(a) - __builtin_amdgcn_rcpf(b);
    r += __builtin_fmaxf(a, b) * __builtin_fminf(a, 2.0f) + __builtin_floorf(a) - __builtin_truncf(b) + (float)(int)(a * 100.0f);
    r += __builtin_elementwise_abs(a - b) + __builtin_sqrtf(a); out[i] = r; })",
         4, 64, Args().add(out).add(bx).add(by));
  const auto result = out.read();
  for (int i = 0; i < 256; ++i) {
    const double a = x[i], b = y[i];
    const double r = a / b + std::exp2(a - b) + std::log2(a) - 1 / b + std::max(a, b) * std::min(a, 2.0) +
                     std::floor(a) - std::trunc(b) + std::trunc(x[i] * 100.0f) + std::fabs(a - b) + std::sqrt(a);
    ASSERT_NEAR(result[i], r, 1e-5 * (std::fabs(r) + 200)) << i;
  }
}

TEST_P(OpenCl, DoubleDivision) {
  const auto f = random_floats(128, 9, 0.5f, 4.0f), g = random_floats(128, 10, 0.5f, 4.0f);
  const std::vector<double> x(f.begin(), f.end()), y(g.begin(), g.end());
  const Buffer<double> bx(*device_, x), by(*device_, y), out(*device_, std::vector<double>(128, 0));
  LAUNCH(R"(kernel void k(global double* out, global const double* x, global const double* y) {
    u32 i = GID * 64 + LID; out[i] = x[i] / y[i] + __builtin_fma(x[i], y[i], 1.0) - (double)(int)(x[i] * 10.0); })",
         2, 64, Args().add(out).add(bx).add(by), "-O2 -ffp-contract=off");
  const auto result = out.read();
  for (int i = 0; i < 128; ++i) {
    ASSERT_EQ(result[i], x[i] / y[i] + std::fma(x[i], y[i], 1.0) - static_cast<double>(static_cast<int>(x[i] * 10.0)))
        << i;
  }
}

TEST_P(OpenCl, Atomics) {
  const auto x = random_words(1024, 11);
  const Buffer<std::uint32_t> in(*device_, x), bins(*device_, std::vector<std::uint32_t>(16, 0)),
      extremes(*device_, std::vector<std::uint32_t>{0u, ~0u, 0u});
  LAUNCH(R"(kernel void k(global u32* bins, global u32* extremes, global const u32* x) {
    local u32 count[16]; if (LID < 16) count[LID] = 0; BARRIER();
    u32 v = x[GID * 256 + LID];
    __opencl_atomic_fetch_add((local atomic_uint*)&count[v & 15], 1, memory_order_relaxed, memory_scope_work_group);
    __opencl_atomic_fetch_max((global atomic_uint*)&extremes[0], v, memory_order_relaxed, memory_scope_device);
    __opencl_atomic_fetch_min((global atomic_uint*)&extremes[1], v, memory_order_relaxed, memory_scope_device);
    u32 seen = 0; atomic_uint global* p = (global atomic_uint*)&extremes[2];
    while (!__opencl_atomic_compare_exchange_strong(p, &seen, seen ^ v, memory_order_relaxed, memory_order_relaxed, memory_scope_device)) {}
    BARRIER();
    if (LID < 16) __opencl_atomic_fetch_add((global atomic_uint*)&bins[LID], count[LID], memory_order_relaxed, memory_scope_device); })",
         4, 256, Args().add(bins).add(extremes).add(in));
  std::vector<std::uint32_t> want(16, 0);
  for (const auto v : x) ++want[v & 15];
  EXPECT_EQ(bins.read(), want);
  const auto e = extremes.read();
  EXPECT_EQ(e[0], *std::max_element(x.begin(), x.end()));
  EXPECT_EQ(e[1], *std::min_element(x.begin(), x.end()));
  EXPECT_EQ(e[2], std::accumulate(x.begin(), x.end(), 0u, std::bit_xor<>()));
}

TEST_P(OpenCl, PrivateArrayInScratch) {
  const auto x = random_words(256, 12);
  const Buffer<std::uint32_t> in(*device_, x), out(*device_, std::vector<std::uint32_t>(256, 0));
  LAUNCH(R"(kernel void k(global u32* out, global const u32* x) {
    volatile u32 a[32]; u32 i = GID * 64 + LID, v = x[i];
    for (u32 n = 0; n < 32; ++n) a[n] = v * n + n;
    u32 r = 0; for (u32 n = 0; n < 32; ++n) r = r * 31 + a[(v + n * 7) & 31];
    out[i] = r; })",
         4, 64, Args().add(out).add(in));
  const auto result = out.read();
  for (int i = 0; i < 256; ++i) {
    std::uint32_t r = 0;
    for (std::uint32_t n = 0; n < 32; ++n) {
      const std::uint32_t m = (x[i] + n * 7) & 31;
      r = r * 31 + (x[i] * m + m);
    }
    ASSERT_EQ(result[i], r) << i;
  }
}

TEST_P(OpenCl, SubDwordTypes) {
  const auto words = random_words(256, 13);
  std::vector<std::uint8_t> x(1024);
  std::memcpy(x.data(), words.data(), 1024);
  const Buffer<std::uint8_t> in(*device_, x), out(*device_, std::vector<std::uint8_t>(1024, 0));
  const Buffer<std::int16_t> halves(*device_, std::vector<std::int16_t>(1024, 0));
  LAUNCH(R"(kernel void k(global uchar* out, global short* halves, global const uchar* x) {
    local short t[256]; u32 i = GID * 256 + LID;
    char c = (char)x[i]; t[LID] = (short)(c * 3); BARRIER();
    short s = t[255 - LID]; halves[i] = (short)(s - c); out[i] = (uchar)((s >> 2) + x[i]); })",
         4, 256, Args().add(out).add(halves).add(in));
  const auto o = out.read();
  const auto h = halves.read();
  for (int i = 0; i < 1024; ++i) {
    const auto c = static_cast<std::int8_t>(x[i]);
    const auto s = static_cast<std::int16_t>(static_cast<std::int8_t>(x[(i & ~255) + 255 - (i & 255)]) * 3);
    ASSERT_EQ(h[i], static_cast<std::int16_t>(s - c)) << i;
    ASSERT_EQ(o[i], static_cast<std::uint8_t>((s >> 2) + x[i])) << i;
  }
}

TEST_P(OpenCl, HalfArithmetic) {
  std::vector<std::uint16_t> x(256), y(256);
  for (int i = 0; i < 256; ++i) {
    x[i] = static_cast<std::uint16_t>(0x3800 + 7 * i);
    y[i] = static_cast<std::uint16_t>(0x3c00 + 3 * i);
  }
  const Buffer<std::uint16_t> bx(*device_, x), by(*device_, y);
  const Buffer<float> out(*device_, std::vector<float>(256, 0));
  LAUNCH(R"(#pragma OPENCL EXTENSION cl_khr_fp16 : enable
    kernel void k(global float* out, global const half* x, global const half* y) {
    u32 i = GID * 64 + LID; half r = x[i] * y[i]; half s = r - x[i]; out[i] = (float)s; })",
         4, 64, Args().add(out).add(bx).add(by), "-O2 -ffp-contract=off");
  // Exact: all values are normal halves; rounding by hand to 11 bits.
  auto decode = [](std::uint16_t h) { return std::ldexp(1.0 + (h & 0x3ff) / 1024.0, (h >> 10) - 15); };
  auto round11 = [](double v) {
    if (v == 0) return 0.0;
    int e = 0;
    const double m = std::frexp(v, &e);
    return std::ldexp(std::nearbyint(std::ldexp(m, 11)), e - 11);
  };
  const auto result = out.read();
  for (int i = 0; i < 256; ++i) {
    const double r = round11(decode(x[i]) * decode(y[i]));
    ASSERT_EQ(result[i], static_cast<float>(round11(r - decode(x[i])))) << i;
  }
}

TEST_P(OpenCl, MfmaBuiltinGemm) {
  // D[32x32] = A[32x16] * B[16x32] in BF16 with small integers: exact.
  std::vector<std::uint16_t> a(512), b(512);
  std::vector<int> ai(512), bi(512);
  std::mt19937 rng(14);
  auto bf16 = [](int v) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(v)) >> 16);
  };
  for (int i = 0; i < 512; ++i) {
    ai[i] = static_cast<int>(rng() % 17) - 8;
    bi[i] = static_cast<int>(rng() % 17) - 8;
    a[i] = bf16(ai[i]);
    b[i] = bf16(bi[i]);
  }
  const Buffer<std::uint16_t> ba(*device_, a), bb(*device_, b);
  const Buffer<float> out(*device_, std::vector<float>(1024, 0));
  LAUNCH(
      R"(typedef __bf16 v8bf __attribute__((ext_vector_type(8))); typedef float v16f __attribute__((ext_vector_type(16)));
    kernel void k(global float* d, global const ushort* a, global const ushort* b) {
    u32 l = LID; union { v8bf v; ushort u[8]; } x, y;
    for (u32 s = 0; s < 8; ++s) { u32 kk = 8 * (l / 32) + s; x.u[s] = a[(l % 32) * 16 + kk]; y.u[s] = b[kk * 32 + l % 32]; }
    v16f c = 0; c = __builtin_amdgcn_mfma_f32_32x32x16_bf16(x.v, y.v, c, 0, 0, 0);
    for (u32 r = 0; r < 16; ++r) d[(8 * (r / 4) + 4 * (l / 32) + r % 4) * 32 + l % 32] = c[r]; })",
      1, 64, Args().add(out).add(ba).add(bb));
  const auto result = out.read();
  for (int r = 0; r < 32; ++r) {
    for (int c = 0; c < 32; ++c) {
      int want = 0;
      for (int k = 0; k < 16; ++k) want += ai[r * 16 + k] * bi[k * 32 + c];
      ASSERT_EQ(result[r * 32 + c], static_cast<float>(want)) << r << "," << c;
    }
  }
}

TEST_P(OpenCl, FunctionCallsAndSwitch) {
  const auto x = random_words(256, 15);
  const Buffer<std::uint32_t> in(*device_, x), out(*device_, std::vector<std::uint32_t>(256, 0));
  LAUNCH(
      R"(__attribute__((noinline)) u32 mix(u32 a, u32 n) { for (u32 i = 0; i < n; ++i) a = a * 1664525 + 1013904223; return a; }
    kernel void k(global u32* out, global const u32* x) {
    u32 i = GID * 64 + LID, v = x[i], r;
    switch (v & 3) { case 0: r = mix(v, 3); break; case 1: r = v / 7; break; case 2: r = mix(v, 5) ^ v; break; default: r = ~v; }
    out[i] = r; })",
      4, 64, Args().add(out).add(in));
  auto mix = [](std::uint32_t a, int n) {
    while (n-- > 0) a = a * 1664525 + 1013904223;
    return a;
  };
  const auto result = out.read();
  for (int i = 0; i < 256; ++i) {
    const std::uint32_t v = x[i];
    const std::uint32_t r = (v & 3) == 0 ? mix(v, 3) : (v & 3) == 1 ? v / 7 : (v & 3) == 2 ? mix(v, 5) ^ v : ~v;
    ASSERT_EQ(result[i], r) << i;
  }
}

TEST_P(OpenCl, PartialWaveAndDpp) {
  const auto x = random_words(128, 16);
  const Buffer<std::uint32_t> in(*device_, x), out(*device_, std::vector<std::uint32_t>(128, 0));
  LAUNCH(R"(kernel void k(global u32* out, global const u32* x) {
    u32 i = LID; int v = (int)x[i];
    v = __builtin_amdgcn_update_dpp(v, v, 0xB1, 0xf, 0xf, 0);        // quad_perm:[1,0,3,2]
    v += __builtin_amdgcn_update_dpp(0, v, 0x128, 0xf, 0xf, 0);      // row_ror:8
    v += __builtin_amdgcn_ds_swizzle(v, 0x041F);                     // swap neighbours
    out[i] = (u32)v + __builtin_amdgcn_readfirstlane((u32)v); })",
         1, 64, Args().add(out).add(in));
  std::vector<std::uint32_t> v(64), w(64);
  for (int l = 0; l < 64; ++l) v[l] = x[l ^ 1];
  for (int l = 0; l < 64; ++l) w[l] = v[l] + v[(l & ~15) | ((l - 8) & 15)];
  for (int l = 0; l < 64; ++l) v[l] = w[l] + w[l ^ 1];
  const auto result = out.read();
  for (int l = 0; l < 64; ++l) ASSERT_EQ(result[l], v[l] + v[0]) << l;
}

INSTANTIATE_TEST_SUITE_P(Checks, OpenCl, testing::Values(SimChecks::kPlain, SimChecks::kStrict),
                         [](const auto& info) { return info.param == SimChecks::kPlain ? "Plain" : "Strict"; });

}  // namespace
}  // namespace zyfa::sim_test
