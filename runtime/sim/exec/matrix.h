// Shared by the matrix instructions: operand layouts (AMD CDNA4 ISA guide 7.1.4, 7.1.5; gfx950-isa.md 1.1), the
// broadcast controls, and the choice of accumulation model.
//
// Operands are expanded to f32 as A[k][row] and B[k][col]; the layout of C and D makes a register a set of matrix rows
// of contiguous columns, so a product is a set of broadcast-times-vector updates. A NaN result is the default NaN.
// Included only by files that are compiled once per host instruction set (lanes.h).
#pragma once

#include <cmath>

#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {

// What an accumulation model knows of an element format.
struct Format {
  int fraction;      // bits of the significand after the point
  int min_exponent;  // of normal numbers
  bool narrow;       // 8 bits or less
};

inline constexpr int kTileValues = 2048;  // most values of A or of B

// One matrix product, D = C + A * B, square in rows and columns.
struct Tile {
  int dim, k;          // rows = columns; products that make up one result
  const float *a, *b;  // A[s][row] at [s * dim + row], B[k][col] at [k * dim + col]
  float* acc;          // C, then D, at [row * dim + col]
  Format format_a, format_b;
  const u8* pick = nullptr;     // sparse: product s of a row takes line pick[s * dim + row] of B's 2k
  const u8* scale_a = nullptr;  // E8M0 of the 32-wide k block and row at [block * dim + row]; both or none
  const u8* scale_b = nullptr;
};

// The models other than the fma chain, for any tile (zyfa/sim_rules.h).
void accumulate_exact(const Tile& tile);
void accumulate_chunked(const Tile& tile);

namespace {

struct F32 {
  static constexpr int kBits = 32;
  static constexpr Format kFormat{23, -126, false};
  static ZYFA_SIM_INLINE float decode(u32 x) { return f32(x); }
};
struct F16 {
  static constexpr int kBits = 16;
  static constexpr Format kFormat{10, -14, false};
  static ZYFA_SIM_INLINE float decode(u32 x) { return from_f16(x); }
};
struct Bf16 {
  static constexpr int kBits = 16;
  static constexpr Format kFormat{7, -126, false};
  static ZYFA_SIM_INLINE float decode(u32 x) { return from_bf16(x); }
};
struct Fp8 {
  static constexpr int kBits = 8;
  static constexpr Format kFormat{3, -6, true};
  static ZYFA_SIM_INLINE float decode(u32 x) { return from_fp8(x); }
};
struct Bf8 {
  static constexpr int kBits = 8;
  static constexpr Format kFormat{2, -14, true};
  static ZYFA_SIM_INLINE float decode(u32 x) { return from_bf8(x); }
};
struct Fp6 {
  static constexpr int kBits = 6;
  static constexpr Format kFormat{3, 0, true};
  static ZYFA_SIM_INLINE float decode(u32 x) { return from_fp6(x); }
};
struct Bf6 {
  static constexpr int kBits = 6;
  static constexpr Format kFormat{2, -2, true};
  static ZYFA_SIM_INLINE float decode(u32 x) { return from_bf6(x); }
};
struct Fp4 {
  static constexpr int kBits = 4;
  static constexpr Format kFormat{1, 0, true};
  static ZYFA_SIM_INLINE float decode(u32 x) { return from_fp4(x); }
};

// k of item s in lane group g: each group holds `items` consecutive k, or, for operands of 8 dwords, two runs of 4
// dwords with those of the other groups between (guide 7.1.5.1 and 7.5.1.3).
constexpr int k_of(int groups, int items, int run, int g, int s) {
  return run >= items ? items * g + s : run * g + s % run + run * groups * (s / run);
}

// f32[k][row or column] of a single-block operand; Run: see k_of, large for one run.
template <int Dim, int K, class T, int Run>
void expand(const VectorReg* rows, float* out) {
  constexpr int kGroups = 64 / Dim, kItems = K / kGroups;
  constexpr u32 kMask = T::kBits == 32 ? ~0u : (1u << (T::kBits % 32)) - 1;
  for (int s = 0; s < kItems; ++s) {
    const int bit = s * T::kBits, word = bit / 32, shift = bit % 32;
    for (int g = 0; g < kGroups; ++g) {
      float* to = out + k_of(kGroups, kItems, Run, g, s) * Dim;
      const u32* lo = rows[word].lane + g * Dim;
      if (shift + T::kBits <= 32) {
        for (int i = 0; i < Dim; ++i) to[i] = T::decode((lo[i] >> shift) & kMask);
      } else {
        const u32* hi = rows[word + 1].lane + g * Dim;
        for (int i = 0; i < Dim; ++i) to[i] = T::decode(((lo[i] >> shift) | (hi[i] << (32 - shift))) & kMask);
      }
    }
  }
}
inline constexpr int kOneRun = 1 << 10;

// CBSZ and ABID: 64 >> CBSZ lanes supply A to all lanes (guide 7.1.6.1).
ZYFA_SIM_INLINE unsigned lane_of_a(unsigned lane, const MicroOp& op) {
  const unsigned size = 64u >> op.cbsz;
  return op.cbsz ? lane % size + size * op.abid : lane;
}
// BLGP: the lane that supplies B (guide 7.1.6.3, table 29).
ZYFA_SIM_INLINE unsigned lane_of_b(unsigned lane, const MicroOp& op) {
  switch (op.blgp) {
    case 0:
      return lane;
    case 1:
    case 2:
      return lane % 32 + 32 * (op.blgp - 1u);
    case 3:
      return (lane + 16) % 64;
    default:
      return lane % 16 + 16 * (op.blgp - 4u);
  }
}
__attribute__((noinline)) const VectorReg* broadcast_a(const Wave& w, const MicroOp& op, int words, VectorReg* to) {
  for (int i = 0; i < words; ++i)
    for (unsigned l = 0; l < kLanes; ++l) to[i].lane[l] = w.v[op.src[0].index + i].lane[lane_of_a(l, op)];
  return to;
}
__attribute__((noinline)) const VectorReg* broadcast_b(const Wave& w, const MicroOp& op, int words, VectorReg* to) {
  for (int i = 0; i < words; ++i)
    for (unsigned l = 0; l < kLanes; ++l) to[i].lane[l] = w.v[op.src[1].index + i].lane[lane_of_b(l, op)];
  return to;
}
// Registers of A and of B as the multipliers see them; `to` has room for the operand.
ZYFA_SIM_INLINE const VectorReg* source_a(const Wave& w, const MicroOp& op, int words, VectorReg* to) {
  return op.cbsz ? broadcast_a(w, op, words, to) : w.v + op.src[0].index;
}
ZYFA_SIM_INLINE const VectorReg* source_b(const Wave& w, const MicroOp& op, int words, VectorReg* to) {
  return op.blgp ? broadcast_b(w, op, words, to) : w.v + op.src[1].index;
}

// Row of C and D that register r holds in lane group g (guide 7.1.4.2). 32x32: 8*(r/4) + r%4, plus 4 in lanes 32-63.
// 16x16: r, r+4, r+8, r+12 in the four groups.
template <int Dim>
constexpr int row_of(int r, int group) {
  return Dim == 32 ? 8 * (r / 4) + r % 4 + 4 * group : 4 * group + r;
}
template <int Dim>
constexpr int registers() {
  return Dim * Dim / 64;
}

// Where row i of a block stands in C and D of a form of several blocks: its columns are consecutive lanes.
struct BlockSlot {
  int reg, lane;
};
// Guide 7.1.4.2 with a group height of 4.
template <int Dim>
ZYFA_SIM_INLINE BlockSlot block_slot(int block, int row) {
  constexpr int kBlocksAtOnce = Dim == 4 ? 16 : 1, kGroups = Dim == 4 ? 1 : 64 / Dim;
  return {row % 4 + 4 * (row / (4 * kGroups) + Dim / (4 * kGroups) * (block / kBlocksAtOnce)),
          Dim * (row / 4 % kGroups + kGroups * (block % kBlocksAtOnce))};
}
ZYFA_SIM_INLINE u32 c_value(const Wave& w, const Operand& c, BlockSlot slot, int col) {
  return c.kind == OperandKind::kVgpr ? w.v[c.index + slot.reg].lane[slot.lane + col] : c.lo;
}

// Sparse forms: line of B for every compressed item of A. Item s of a lane has index bits 2s+1:2s of the set that ABID
// chooses when CBSZ is 0; a set is as wide as the lane's items need, so an operand of 4 dwords of bytes has one (guide
// 7.5; its prose says 8 bits for 16x16x64 and 32x32x32 f16, its tables and the hardware 16).
template <int Dim, int K>
ZYFA_SIM_INLINE void picked_lines(const Wave& w, const MicroOp& op, u8* pick) {
  constexpr int kItems = K / 2 * Dim / 64, kSets = 16 / kItems;
  const unsigned shift = op.cbsz ? 0 : 2 * kItems * (op.abid % kSets);
  const u32* index = w.v[op.src[2].index].lane;
  for (int s = 0; s < kItems; ++s) {
    for (int l = 0; l < static_cast<int>(kLanes); ++l) {
      const int j = kItems * (l / Dim) + s;
      pick[j * Dim + l % Dim] = static_cast<u8>(4 * (j / 2) + static_cast<int>((index[l] >> (shift + 2 * s)) & 3));
    }
  }
}

ZYFA_SIM_INLINE float canonical(float x) { return x != x ? f32(0x7fc00000u) : x; }

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
  for (int r = 0; r < registers<Dim>(); ++r) {
    for (int g = 0; g < 64 / Dim; ++g) {
      const float* from = acc + row_of<Dim>(r, g) * Dim;
      u32* to = w.v[op.dst.index + r].lane + g * Dim;
      for (int i = 0; i < Dim; ++i) to[i] = raw(canonical(from[i]));
    }
  }
}

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

// The fma chain over k in [k0, k1), one f32 fma per k in ascending order.
template <int Dim>
ZYFA_SIM_INLINE void chain(float* acc, const float* a, const float* b, int k0, int k1) {
  if constexpr (Dim >= 16) {
    constexpr int kRowsAtOnce = 8;
    for (int row = 0; row < Dim; row += kRowsAtOnce) update_rows<Dim, kRowsAtOnce>(acc + row * Dim, a, b, k0, k1, row);
  } else {
    for (int k = k0; k < k1; ++k) {
      for (int row = 0; row < Dim; ++row) {
        for (int i = 0; i < Dim; ++i)
          acc[row * Dim + i] = std::fma(a[k * Dim + row], b[k * Dim + i], acc[row * Dim + i]);
      }
    }
  }
}

template <class Chain>
ZYFA_SIM_INLINE void accumulate_by_model(const Wave& w, const Tile& tile, Chain&& by_chain) {
  if (w.rules.accumulation == SimAccumulation::kExact) return accumulate_exact(tile);
  if (w.rules.accumulation == SimAccumulation::kChunked && tile.format_a.fraction < 23) return accumulate_chunked(tile);
  by_chain(tile);
}

// MODE.FP16_OVFL: a result that overflowed becomes the largest finite number; an infinity that came from an infinite
// operand stays, as the flag's description in the guide says of conversions and VALU results.
[[maybe_unused]] __attribute__((noinline)) void clamp_overflow(const Tile& t, const float* c) {
  for (int row = 0; row < t.dim; ++row) {
    for (int col = 0; col < t.dim; ++col) {
      float& x = t.acc[row * t.dim + col];
      if ((raw(x) & 0x7fffffffu) != 0x7f800000u) continue;
      bool infinite = std::isinf(c[row * t.dim + col]);
      for (int s = 0; s < t.k && !infinite; ++s) {
        const int line = t.pick ? t.pick[s * t.dim + row] : s;
        infinite = std::isinf(t.a[s * t.dim + row]) || std::isinf(t.b[line * t.dim + col]);
      }
      if (!infinite) x = f32((raw(x) & 0x80000000u) | 0x7f7fffffu);
    }
  }
}

// D of the tile by the wave's model; `by_chain` computes it by the fma chain.
template <int Dim, class Chain>
ZYFA_SIM_INLINE void accumulate(const Wave& w, const Tile& tile, Chain&& by_chain) {
  if (!w.fp16_ovfl()) return accumulate_by_model(w, tile, by_chain);
  float c[Dim * Dim];
  __builtin_memcpy(c, tile.acc, sizeof(c));
  accumulate_by_model(w, tile, by_chain);
  clamp_overflow(tile, c);
}

// arg of a row: passes << 24 | blocks << 16 | rows of a block << 8 | k (matrix_decode.h).
constexpr u32 matrix_arg(u32 passes, u32 blocks, u32 dim, u32 k) {
  return (passes << 24) | (blocks << 16) | (dim << 8) | k;
}

}  // namespace
}  // namespace zyfa::sim::ZYFA_SIM_ISA
