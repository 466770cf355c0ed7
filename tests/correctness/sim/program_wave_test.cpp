// What lanes of a wave do together, and apart: softmax rows reduced by DPP, scans, ballots and compaction, permutes,
// loops whose trip counts differ by lane.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "tests/correctness/sim/program.h"

namespace zyfa::sim_test {
namespace {

class ProgramWave : public Program {};

// A row of 192 a wave: maximum and sum by DPP in rows of 16 and by readlane across them.
TEST_P(ProgramWave, SoftmaxRows) {
  ZYFA_COMPILE(compile_cl(R"(
#define STEP(op, x, control) { float other = __builtin_astype(__builtin_amdgcn_update_dpp(__builtin_astype(x, int), __builtin_astype(x, int), control, 15, 15, 0), float); x = op(x, other); }
#define ACROSS(op, x) { STEP(op, x, 0x128) STEP(op, x, 0x124) STEP(op, x, 0x122) STEP(op, x, 0x121) \
    float r = lane_of(x, 0); for (u32 i = 16; i < 64; i += 16) r = op(r, lane_of(x, i)); x = r; }
#define ADD(a, b) ((a) + (b))
float lane_of(float x, u32 lane) { return __builtin_astype(__builtin_amdgcn_readlane(__builtin_astype(x, int), lane), float); }
kernel void k(global float* out, global const float* in) {
  u32 row = GID * 2 + LID / 64, l = LID % 64;
  float v[3], top = -INFINITY, sum = 0;
  for (u32 i = 0; i < 3; ++i) { v[i] = in[row * 192 + 64 * i + l]; top = __builtin_fmaxf(top, v[i]); }
  ACROSS(__builtin_fmaxf, top)
  for (u32 i = 0; i < 3; ++i) { v[i] = __builtin_amdgcn_exp2f((v[i] - top) * 1.44269504f); sum += v[i]; }
  ACROSS(ADD, sum)
  for (u32 i = 0; i < 3; ++i) out[row * 192 + 64 * i + l] = v[i] / sum;
})"));
  const auto in = random_floats(8 * 192, 1, -12, 12);
  on_each_device([&](SimDevice& device) {
    const Buffer<float> bin(device, in), out(device, std::vector<float>(in.size(), NAN));
    if (!launch(device, 4, 128, Args().add(out).add(bin))) return;
    const auto got = out.read();
    for (int row = 0; row < 8; ++row) {
      const float* x = &in[row * 192];
      const double top = *std::max_element(x, x + 192);
      double sum = 0;
      for (int i = 0; i < 192; ++i) sum += std::exp(x[i] - top);
      // One exp2 of 1 ulp whose argument, at most 35, is rounded to f32; sum and quotient add a few roundings.
      for (int i = 0; i < 192; ++i) {
        const double want = std::exp(x[i] - top) / sum;
        ASSERT_NEAR(got[row * 192 + i], want, 5e-6 * want) << row << "," << i;
      }
    }
  });
}

// Inclusive scan by row_shr and row_bcast, as compilers do it on GFX9.
TEST_P(ProgramWave, ScanByDpp) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global int* out, global const int* in) {
  int x = in[GID * 64 + LID];
  x += __builtin_amdgcn_update_dpp(0, x, 0x111, 15, 15, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x112, 15, 15, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x114, 15, 15, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x118, 15, 15, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x142, 10, 15, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x143, 12, 15, 0);
  out[GID * 64 + LID] = x;
})"));
  const auto in = random_ints(192, 2, -1000, 1000);
  std::vector<int> want(192);
  for (int g = 0; g < 3; ++g) std::inclusive_scan(&in[64 * g], &in[64 * g] + 64, &want[64 * g]);
  on_each_device([&](SimDevice& device) {
    const Buffer<int> bin(device, in), out(device, std::vector<int>(192));
    if (!launch(device, 3, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// Values below a limit move to the front of their wave's segment; the count is a popcount of the ballot.
TEST_P(ProgramWave, BallotCompaction) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u32* out, global u32* counts, global const u32* in) {
  u32 wave = GID * 4 + LID / 64, x = in[GID * 256 + LID];
  bool keep = x < 0x60000000u;
  u64 mask = __builtin_amdgcn_ballot_w64(keep);
  u32 before = __builtin_amdgcn_mbcnt_hi((u32)(mask >> 32), __builtin_amdgcn_mbcnt_lo((u32)mask, 0));
  if (keep) out[wave * 64 + before] = x;
  if (LID % 64 == 0) counts[wave] = (u32)__builtin_popcountl(mask);
})"));
  const auto in = random_words(512, 3);
  std::vector<std::uint32_t> want(512, 0), counts(8, 0);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i] < 0x60000000u) want[i / 64 * 64 + counts[i / 64]++] = in[i];
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(512)),
        n(device, std::vector<std::uint32_t>(8));
    if (!launch(device, 2, 256, Args().add(out).add(n).add(bin))) return;
    EXPECT_EQ(out.read(), want);
    EXPECT_EQ(n.read(), counts);
  });
}

TEST_P(ProgramWave, Permutes) {
  ZYFA_COMPILE(compile_cl(R"(
typedef u32 v2u __attribute__((ext_vector_type(2)));
kernel void k(global u32* out, global const u32* in) {
  u32 l = LID, x = in[l], y = in[64 + l];
  out[l] = (u32)__builtin_amdgcn_ds_bpermute((int)(4 * (x & 63)), (int)y);
  out[64 + l] = (u32)__builtin_amdgcn_ds_permute((int)(4 * (l * 5 + 3 & 63)), (int)y);
  v2u s = __builtin_amdgcn_permlane32_swap(x, y, 0, 0), t = __builtin_amdgcn_permlane16_swap(x, y, 0, 0);
  out[128 + l] = s.x; out[192 + l] = s.y; out[256 + l] = t.x; out[320 + l] = t.y;
  out[384 + l] = (u32)__builtin_amdgcn_readlane((int)x, (int)__builtin_amdgcn_readfirstlane((int)y) & 63);
  out[448 + l] = (u32)__builtin_amdgcn_mov_dpp((int)x, 0x141, 15, 15, 1) + (u32)__builtin_amdgcn_ds_swizzle((int)y, 0x8039);
})"));
  const auto in = random_words(128, 4);
  const std::uint32_t *x = in.data(), *y = in.data() + 64;
  std::vector<std::uint32_t> want(512);
  for (std::uint32_t l = 0; l < 64; ++l) {
    want[l] = y[x[l] & 63];
    want[64 + ((l * 5 + 3) & 63)] = y[l];
    // Lanes 32 to 63 of the first trade places with 0 to 31 of the second; odd rows of 16 with even ones.
    want[128 + l] = l < 32 ? x[l] : y[l - 32];
    want[192 + l] = l < 32 ? x[l + 32] : y[l];
    want[256 + l] = (l & 16) == 0 ? x[l] : y[l - 16];
    want[320 + l] = (l & 16) == 0 ? x[l + 16] : y[l];
    want[384 + l] = x[y[0] & 63];
    const std::array<std::uint32_t, 4> quad{1, 2, 3, 0};
    want[448 + l] = x[(l & ~7u) | (7 - (l & 7))] + y[(l & ~3u) | quad[l & 3]];
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(512));
    if (!launch(device, 1, 64, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

// Nested loops with break and continue; Collatz lengths, greatest common divisors, Mandelbrot in fixed point.
TEST_P(ProgramWave, DivergentLoops) {
  ZYFA_COMPILE(compile_cl(R"(
kernel void k(global u32* out, global const u32* in) {
  u32 i = GID * 128 + LID, a = in[i] >> 12, b = in[i] & 4095, n = i + 1, r = 0;
  while (n != 1) { n = n & 1 ? 3 * n + 1 : n >> 1; ++r; }
  while (b != 0) { u32 t = a % b; a = b; b = t; }
  r = r * 31 + a;
  for (u32 outer = 0; outer < (i & 7); ++outer) {
    if (outer == 5) continue;
    for (u32 inner = 0; inner < 20; ++inner) { if ((inner * i & 15) == 9) break; r += inner ^ outer; if (r & 0x80000000u) return; }
  }
  int cx = (int)(i % 32 * 300) - 8192, cy = (int)(i / 32 * 500) - 2048, x = 0, y = 0, steps = 0;
  while (steps < 40) {
    int xx = x * x >> 12, yy = y * y >> 12;
    if (xx + yy > 16384) break;
    y = (x * y >> 11) + cy; x = xx - yy + cx; ++steps;
  }
  out[i] = r * 41 + (u32)steps;
})"));
  const auto in = random_words(256, 5);
  std::vector<std::uint32_t> want(256);
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t n = i + 1, r = 0;
    for (; n != 1; ++r) n = n & 1 ? 3 * n + 1 : n >> 1;
    r = r * 31 + std::gcd(in[i] >> 12, in[i] & 4095);
    for (std::uint32_t outer = 0; outer < (i & 7); ++outer)
      for (std::uint32_t inner = 0; outer != 5 && inner < 20 && ((inner * i) & 15) != 9; ++inner) r += inner ^ outer;
    const int cx = static_cast<int>(i % 32 * 300) - 8192, cy = static_cast<int>(i / 32 * 500) - 2048;
    int x = 0, y = 0;
    std::uint32_t steps = 0;
    for (; steps < 40; ++steps) {
      const int xx = (x * x) >> 12, yy = (y * y) >> 12;
      if (xx + yy > 16384) break;
      y = ((x * y) >> 11) + cy;
      x = xx - yy + cx;
    }
    want[i] = r * 41 + steps;
  }
  on_each_device([&](SimDevice& device) {
    const Buffer<std::uint32_t> bin(device, in), out(device, std::vector<std::uint32_t>(256));
    if (!launch(device, 2, 128, Args().add(out).add(bin))) return;
    EXPECT_EQ(out.read(), want);
  });
}

INSTANTIATE_TEST_SUITE_P(Levels, ProgramWave, testing::Values("-O0", "-O2"), level_name);

}  // namespace
}  // namespace zyfa::sim_test
