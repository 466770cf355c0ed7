// MFMA: dense, block-scaled, integer and sparse (gfx950-isa.md 1). Compiled once per host instruction set.
//
// A and B are expanded once to f32 as A^T[k][row] and B[k][col]; the layout of C and D makes a register a pair of
// matrix rows of contiguous columns, so the product is a set of broadcast-times-vector updates. Accumulator model: one
// f32 fma per k, in ascending k, starting from C (gfx950-isa.md 1.6 leaves it open; the model is the template parameter
// Model, so that another one is an addition). The scaled form multiplies each 32-block's fma chain by the scales and
// adds it to the accumulator. A NaN result is the default NaN.
#include <cmath>

#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

enum class Model { kFmaChain };

// Expanded operand: value of (k, i) at [k * dim + i].
template <int Dim, int K>
struct alignas(64) Expanded {
  float at[K * Dim];
};

// k of item s in lane group g (gfx950-isa.md 1.1).
template <int Dim, int K, bool Chunked>
constexpr int k_of(int g, int s) {
  constexpr int kGroups = 64 / Dim, kItems = K / kGroups;
  return Chunked ? 16 * g + (s % 16) + 16 * kGroups * (s / 16) : kItems * g + s;
}

template <int Dim, int K, int Bits, bool Chunked, auto Decode>
void expand(const VectorReg* rows, float* out) {
  constexpr int kGroups = 64 / Dim, kItems = K / kGroups;
  constexpr u32 kMask = (1u << Bits) - 1;
  for (int s = 0; s < kItems; ++s) {
    const int bit = s * Bits, word = bit / 32, shift = bit % 32;
    for (int g = 0; g < kGroups; ++g) {
      float* to = out + k_of<Dim, K, Chunked>(g, s) * Dim;
      const u32* lo = rows[word].lane + g * Dim;
      if (shift + Bits <= 32) {
        for (int i = 0; i < Dim; ++i) to[i] = Decode((lo[i] >> shift) & kMask);
      } else {
        const u32* hi = rows[word + 1].lane + g * Dim;
        for (int i = 0; i < Dim; ++i) to[i] = Decode(((lo[i] >> shift) | (hi[i] << (32 - shift))) & kMask);
      }
    }
  }
}

// f8f6f4 operand format by CBSZ / BLGP.
template <int Dim, int K>
void expand_f8f6f4(unsigned format, const VectorReg* rows, float* out) {
  switch (format) {
    case 0:
      return expand<Dim, K, 8, true, from_fp8>(rows, out);
    case 1:
      return expand<Dim, K, 8, true, from_bf8>(rows, out);
    case 2:
      return expand<Dim, K, 6, false, from_fp6>(rows, out);
    case 3:
      return expand<Dim, K, 6, false, from_bf6>(rows, out);
    default:
      return expand<Dim, K, 4, false, from_fp4>(rows, out);
  }
}

ZYFA_SIM_INLINE float canonical(float x) { return x != x ? f32(0x7fc00000u) : x; }

// acc[row][0..Dim) += sum over k in [k0, k1) of A[row][k] * B[k][0..Dim), R rows of the tile at once.
template <int Dim, int R>
ZYFA_SIM_INLINE void update_rows(float* acc, const float* a, const float* b, int k0, int k1, int row0) {
#if defined(__AVX512F__)
  constexpr int kV = Dim / 16;
  __m512 c[R][kV];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kV; ++v) c[r][v] = _mm512_load_ps(acc + r * Dim + 16 * v);
  for (int k = k0; k < k1; ++k) {
    __m512 x[kV];
    for (int v = 0; v < kV; ++v) x[v] = _mm512_load_ps(b + k * Dim + 16 * v);
    for (int r = 0; r < R; ++r) {
      const __m512 s = _mm512_set1_ps(a[k * Dim + row0 + r]);
      for (int v = 0; v < kV; ++v) c[r][v] = _mm512_fmadd_ps(s, x[v], c[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kV; ++v) _mm512_store_ps(acc + r * Dim + 16 * v, c[r][v]);
#elif defined(__AVX2__)
  constexpr int kV = Dim / 8;
  for (int half = 0; half < kV; half += 2) {
    __m256 c[R][2];
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < 2; ++v) c[r][v] = _mm256_load_ps(acc + r * Dim + 8 * (half + v));
    for (int k = k0; k < k1; ++k) {
      const __m256 x0 = _mm256_load_ps(b + k * Dim + 8 * half), x1 = _mm256_load_ps(b + k * Dim + 8 * half + 8);
      for (int r = 0; r < R; ++r) {
        const __m256 s = _mm256_broadcast_ss(a + k * Dim + row0 + r);
        c[r][0] = _mm256_fmadd_ps(s, x0, c[r][0]);
        c[r][1] = _mm256_fmadd_ps(s, x1, c[r][1]);
      }
    }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < 2; ++v) _mm256_store_ps(acc + r * Dim + 8 * (half + v), c[r][v]);
  }
#else
  for (int k = k0; k < k1; ++k) {
    for (int r = 0; r < R; ++r) {
      for (int i = 0; i < Dim; ++i)
        acc[r * Dim + i] = std::fma(a[k * Dim + row0 + r], b[k * Dim + i], acc[r * Dim + i]);
    }
  }
#endif
}

// Rows of a tile in register order. 32x32: register r holds row 8*(r/4) + r%4 in lanes 0-31 and that row + 4 in lanes
// 32-63. 16x16: register r holds rows r, r+4, r+8, r+12 in its four lane groups.
template <int Dim>
constexpr int row_of(int r, int group) {
  return Dim == 32 ? 8 * (r / 4) + r % 4 + 4 * group : 4 * group + r;
}
template <int Dim>
constexpr int registers() {
  return Dim * Dim / 64;
}

ZYFA_SIM_INLINE void load_c(const Wave& w, const Operand& c, int count, u32 (*tile)[kLanes]) {
  if (c.kind == OperandKind::kVgpr) {
    for (int r = 0; r < count; ++r) __builtin_memcpy(tile[r], w.v[c.index + r].lane, sizeof(tile[r]));
  } else {
    for (int r = 0; r < count; ++r)
      for (unsigned l = 0; l < kLanes; ++l) tile[r][l] = c.lo;
  }
}

// The tile in matrix order: acc[row][col].
template <int Dim>
ZYFA_SIM_INLINE void gather_c(const Wave& w, const Operand& c, float* acc) {
  for (int r = 0; r < registers<Dim>(); ++r) {
    for (int g = 0; g < 64 / Dim; ++g) {
      float* to = acc + row_of<Dim>(r, g) * Dim;
      if (c.kind == OperandKind::kVgpr) {
        __builtin_memcpy(to, w.v[c.index + r].lane + g * Dim, Dim * sizeof(float));
      } else {
        for (int i = 0; i < Dim; ++i) to[i] = f32(c.lo);
      }
    }
  }
}
template <int Dim>
ZYFA_SIM_INLINE void scatter_d(Wave& w, const MicroOp& op, const float* acc) {
  const bool saturate = w.fp16_ovfl();
  for (int r = 0; r < registers<Dim>(); ++r) {
    for (int g = 0; g < 64 / Dim; ++g) {
      const float* from = acc + row_of<Dim>(r, g) * Dim;
      u32* to = w.v[op.dst.index + r].lane + g * Dim;
      for (int i = 0; i < Dim; ++i) to[i] = raw(canonical(from[i]));
      if (saturate) {
        // MODE.FP16_OVFL: overflow gives the largest finite value (gfx950-isa.md 1.2).
        for (int i = 0; i < Dim; ++i) {
          if ((to[i] & 0x7fffffffu) == 0x7f800000u) to[i] = (to[i] & 0x80000000u) | 0x7f7fffffu;
        }
      }
    }
  }
}

template <int Dim, Model M>
ZYFA_SIM_INLINE void multiply(float* acc, const float* a, const float* b, int k0, int k1) {
  static_assert(M == Model::kFmaChain);
  constexpr int kRowsAtOnce = 8;
  for (int row = 0; row < Dim; row += kRowsAtOnce) update_rows<Dim, kRowsAtOnce>(acc + row * Dim, a, b, k0, k1, row);
}

template <int Dim, int K, int Bits, auto DecodeA, auto DecodeB>
void mfma(Wave& w, const MicroOp& op) {
  Expanded<Dim, K> a, b;
  alignas(64) float acc[Dim * Dim];
  expand<Dim, K, Bits, false, DecodeA>(w.v + op.src[0].index, a.at);
  expand<Dim, K, Bits, false, DecodeB>(w.v + op.src[1].index, b.at);
  gather_c<Dim>(w, op.src[2], acc);
  multiply<Dim, Model::kFmaChain>(acc, a.at, b.at, 0, K);
  scatter_d<Dim>(w, op, acc);
}

template <int Dim, int K>
void mfma_f8f6f4(Wave& w, const MicroOp& op) {
  Expanded<Dim, K> a, b;
  alignas(64) float acc[Dim * Dim];
  expand_f8f6f4<Dim, K>(op.cbsz, w.v + op.src[0].index, a.at);
  expand_f8f6f4<Dim, K>(op.blgp, w.v + op.src[1].index, b.at);
  gather_c<Dim>(w, op.src[2], acc);
  multiply<Dim, Model::kFmaChain>(acc, a.at, b.at, 0, K);
  scatter_d<Dim>(w, op, acc);
}

// E8M0: 2^(byte - 127), 255 is NaN.
ZYFA_SIM_INLINE double e8m0(u32 byte) {
  return byte == 255 ? __builtin_nan("") : std::ldexp(1.0, static_cast<int>(byte) - 127);
}

// Lane l of the scale register serves row/column l % Dim and the 32-wide k block l / Dim (gfx950-isa.md 1.3).
template <int Dim, int K>
void mfma_scaled(Wave& w, const MicroOp& op) {
  Expanded<Dim, K> a, b;
  alignas(64) float acc[Dim * Dim], part[Dim * Dim];
  expand_f8f6f4<Dim, K>(op.cbsz, w.v + op.src[0].index, a.at);
  expand_f8f6f4<Dim, K>(op.blgp, w.v + op.src[1].index, b.at);
  gather_c<Dim>(w, op.src[2], acc);
  const u32* sa = w.v[op.src[3].index].lane;
  const u32* sb = w.v[op.src[4].index].lane;
  const unsigned byte_a = 8 * ((op.op_sel & 1) + 2 * (op.op_sel_hi & 1));
  const unsigned byte_b = 8 * (((op.op_sel >> 1) & 1) + 2 * ((op.op_sel_hi >> 1) & 1));
  for (int block = 0; block < K / 32; ++block) {
    double col[Dim];
    for (int i = 0; i < Dim; ++i) col[i] = e8m0((sb[block * Dim + i] >> byte_b) & 0xff);
    for (int i = 0; i < Dim * Dim; ++i) part[i] = 0;
    multiply<Dim, Model::kFmaChain>(part, a.at, b.at, 32 * block, 32 * block + 32);
    for (int row = 0; row < Dim; ++row) {
      const double scale = e8m0((sa[block * Dim + row] >> byte_a) & 0xff);
      // The scaled sum is exact in double, so it is rounded once, when it is added to the accumulator.
      for (int i = 0; i < Dim; ++i) {
        const double scaled = static_cast<double>(part[row * Dim + i]) * scale * col[i];
        acc[row * Dim + i] = static_cast<float>(static_cast<double>(acc[row * Dim + i]) + scaled);
      }
    }
  }
  scatter_d<Dim>(w, op, acc);
}

// INT8: exact 32-bit wrap-around sums.
template <int Dim, int K>
void mfma_i8(Wave& w, const MicroOp& op) {
  constexpr int kItems = K * Dim / 64;
  alignas(64) i32 a[K * Dim], b[K * Dim];
  alignas(64) u32 tile[registers<Dim>()][kLanes];
  load_c(w, op.src[2], registers<Dim>(), tile);
  for (int s = 0; s < kItems; ++s) {
    for (int l = 0; l < static_cast<int>(kLanes); ++l) {
      const int k = kItems * (l / Dim) + s;
      a[k * Dim + l % Dim] = static_cast<std::int8_t>(w.v[op.src[0].index + s / 4].lane[l] >> (8 * (s % 4)));
      b[k * Dim + l % Dim] = static_cast<std::int8_t>(w.v[op.src[1].index + s / 4].lane[l] >> (8 * (s % 4)));
    }
  }
  for (int r = 0; r < registers<Dim>(); ++r) {
    for (int g = 0; g < 64 / Dim; ++g) {
      u32* to = tile[r] + g * Dim;
      for (int k = 0; k < K; ++k) {
        const i32 x = a[k * Dim + row_of<Dim>(r, g)];
        for (int i = 0; i < Dim; ++i) to[i] += static_cast<u32>(x * b[k * Dim + i]);
      }
    }
    __builtin_memcpy(w.v[op.dst.index + r].lane, tile[r], sizeof(tile[r]));
  }
}

// 2:4 sparse, fp8 (gfx950-isa.md 1.7): compressed column j of A stands at dense k = 4*(j/2) + index; the index of item
// s is at bits 2s+1:2s of the lane's index dword. D is also C.
template <int Dim, int K, auto DecodeA, auto DecodeB>
void smfmac_fp8(Wave& w, const MicroOp& op) {
  constexpr int kItems = 16;
  alignas(64) float a[K * Dim] = {};
  Expanded<Dim, K> b;
  alignas(64) float acc[Dim * Dim];
  expand<Dim, K, 8, true, DecodeB>(w.v + op.src[1].index, b.at);
  const u32* index = w.v[op.src[2].index].lane;
  for (int l = 0; l < static_cast<int>(kLanes); ++l) {
    for (int s = 0; s < kItems; ++s) {
      const int j = kItems * (l / Dim) + s;
      const int k = 4 * (j / 2) + static_cast<int>((index[l] >> (2 * s)) & 3);
      a[k * Dim + l % Dim] = DecodeA((w.v[op.src[0].index + s / 4].lane[l] >> (8 * (s % 4))) & 0xff);
    }
  }
  gather_c<Dim>(w, op.dst, acc);
  multiply<Dim, Model::kFmaChain>(acc, a, b.at, 0, K);
  scatter_d<Dim>(w, op, acc);
}

// f32 inputs: one value a lane, k = lane group.
template <int Dim, int K>
void mfma_f32(Wave& w, const MicroOp& op) {
  Expanded<Dim, K> a, b;
  alignas(64) float acc[Dim * Dim];
  __builtin_memcpy(a.at, w.v[op.src[0].index].lane, sizeof(a.at));
  __builtin_memcpy(b.at, w.v[op.src[1].index].lane, sizeof(b.at));
  gather_c<Dim>(w, op.src[2], acc);
  multiply<Dim, Model::kFmaChain>(acc, a.at, b.at, 0, K);
  scatter_d<Dim>(w, op, acc);
}

constexpr u32 kM = kIgnoresExec;
#define DENSE(name, dim, k, bitcount, from_a, from_b, passes) \
  {name, "t=ttt", (&mfma<dim, k, bitcount, from_a, from_b>), Unit::kMfma, kM, ((passes) << 16) | ((dim) << 8) | (k)}
#define WIDE(name, dim, k, fn, flags, passes) \
  {name, (flags) & kScaled ? "t=tttii" : "t=ttt", fn, Unit::kMfma, kM | (flags), ((passes) << 16) | ((dim) << 8) | (k)}

// arg: passes << 16 | dim << 8 | k (gfx950-isa.md 1.5); 16 passes of an f8f6f4 form become 8 (8 become 4) when neither
// operand is 8-bit.
constexpr OpRow kRows[] = {
    DENSE("v_mfma_f32_32x32x16_bf16", 32, 16, 16, from_bf16, from_bf16, 8),
    DENSE("v_mfma_f32_16x16x32_bf16", 16, 32, 16, from_bf16, from_bf16, 4),
    DENSE("v_mfma_f32_32x32x8_bf16", 32, 8, 16, from_bf16, from_bf16, 8),
    DENSE("v_mfma_f32_16x16x16_bf16", 16, 16, 16, from_bf16, from_bf16, 4),
    DENSE("v_mfma_f32_32x32x8_bf16_1k", 32, 8, 16, from_bf16, from_bf16, 8),
    DENSE("v_mfma_f32_16x16x16_bf16_1k", 16, 16, 16, from_bf16, from_bf16, 4),
    DENSE("v_mfma_f32_32x32x16_f16", 32, 16, 16, from_f16, from_f16, 8),
    DENSE("v_mfma_f32_16x16x32_f16", 16, 32, 16, from_f16, from_f16, 4),
    DENSE("v_mfma_f32_32x32x8_f16", 32, 8, 16, from_f16, from_f16, 8),
    DENSE("v_mfma_f32_16x16x16_f16", 16, 16, 16, from_f16, from_f16, 4),
    DENSE("v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 8, from_fp8, from_fp8, 8),
    DENSE("v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 8, from_fp8, from_bf8, 8),
    DENSE("v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 8, from_bf8, from_fp8, 8),
    DENSE("v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 8, from_bf8, from_bf8, 8),
    DENSE("v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 8, from_fp8, from_fp8, 4),
    DENSE("v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 8, from_fp8, from_bf8, 4),
    DENSE("v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 8, from_bf8, from_fp8, 4),
    DENSE("v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 8, from_bf8, from_bf8, 4),
    WIDE("v_mfma_f32_32x32x64_f8f6f4", 32, 64, (&mfma_f8f6f4<32, 64>), 0, 16),
    WIDE("v_mfma_f32_16x16x128_f8f6f4", 16, 128, (&mfma_f8f6f4<16, 128>), 0, 8),
    WIDE("v_mfma_scale_f32_32x32x64_f8f6f4", 32, 64, (&mfma_scaled<32, 64>), kScaled, 16),
    WIDE("v_mfma_scale_f32_16x16x128_f8f6f4", 16, 128, (&mfma_scaled<16, 128>), kScaled, 8),
    WIDE("v_mfma_i32_32x32x32_i8", 32, 32, (&mfma_i8<32, 32>), 0, 8),
    WIDE("v_mfma_i32_16x16x64_i8", 16, 64, (&mfma_i8<16, 64>), 0, 4),
    WIDE("v_mfma_i32_32x32x16_i8", 32, 16, (&mfma_i8<32, 16>), 0, 8),
    WIDE("v_mfma_i32_16x16x32_i8", 16, 32, (&mfma_i8<16, 32>), 0, 4),
    WIDE("v_smfmac_f32_16x16x128_fp8_fp8", 16, 128, (&smfmac_fp8<16, 128, from_fp8, from_fp8>), kSparse | kTied, 4),
    WIDE("v_mfma_f32_32x32x2_f32", 32, 2, (&mfma_f32<32, 2>), kSgemm, 16),
    WIDE("v_mfma_f32_16x16x4_f32", 16, 4, (&mfma_f32<16, 4>), kSgemm, 8),
};

}  // namespace

RowTable matrix_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
