// Integer MFMA and SMFMAC: exact sums of signed 8-bit products, wrapping at 32 bits, or clamped there when
// MODE.FP16_OVFL is set (AMD CDNA4 ISA guide 7.1.2; the clamp is taken at the final sum). Compiled once per host
// instruction set.
#include <algorithm>

#include "runtime/sim/exec/matrix.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

ZYFA_SIM_INLINE i32 byte_of(const VectorReg* rows, int lane, int item) {
  return static_cast<std::int8_t>(rows[item / 4].lane[lane] >> (8 * (item % 4)));
}
ZYFA_SIM_INLINE u32 finish(u32 sum) { return sum; }
ZYFA_SIM_INLINE u32 finish(i64 sum) {
  return static_cast<u32>(static_cast<i32>(std::clamp<i64>(sum, -2147483648ll, 2147483647ll)));
}

// One row of D: to[0..Dim) = c[0..Dim) + sum over s < count of a[s * Dim] * line(s)[0..Dim).
template <class Sum, int Dim, class Line>
ZYFA_SIM_INLINE void row_sum(const u32* c, const i32* a, int count, Line&& line, u32* to) {
  Sum sum[Dim];
  for (int i = 0; i < Dim; ++i) sum[i] = static_cast<Sum>(static_cast<i32>(c[i]));
  for (int s = 0; s < count; ++s) {
    const i32 x = a[s * Dim];
    const i32* y = line(s);
    for (int i = 0; i < Dim; ++i) sum[i] += static_cast<Sum>(x * y[i]);
  }
  for (int i = 0; i < Dim; ++i) to[i] = finish(sum[i]);
}

// D of one block in matrix order; pick as in Tile.
template <int Dim>
void multiply_i8(const Wave& w, const i32* a, const i32* b, const u8* pick, int count, u32* acc) {
  for (int row = 0; row < Dim; ++row) {
    u32* d = acc + row * Dim;
    const auto line = [&](int s) { return b + (pick ? pick[s * Dim + row] : s) * Dim; };
    if (w.fp16_ovfl()) {
      row_sum<i64, Dim>(d, a + row, count, line, d);
    } else {
      row_sum<u32, Dim>(d, a + row, count, line, d);
    }
  }
}

template <int Dim>
ZYFA_SIM_INLINE void gather_int(const Wave& w, const Operand& c, u32* acc) {
  for (int r = 0; r < registers<Dim>(); ++r) {
    for (int g = 0; g < 64 / Dim; ++g) {
      u32* to = acc + row_of<Dim>(r, g) * Dim;
      for (int i = 0; i < Dim; ++i) to[i] = c.kind == OperandKind::kVgpr ? w.v[c.index + r].lane[g * Dim + i] : c.lo;
    }
  }
}
template <int Dim>
ZYFA_SIM_INLINE void scatter_int(Wave& w, const MicroOp& op, const u32* acc) {
  for (int r = 0; r < registers<Dim>(); ++r) {
    for (int g = 0; g < 64 / Dim; ++g)
      __builtin_memcpy(w.v[op.dst.index + r].lane + g * Dim, acc + row_of<Dim>(r, g) * Dim, Dim * sizeof(u32));
  }
}

template <int Dim, int K>
void mfma_i8(Wave& w, const MicroOp& op) {
  constexpr int kItems = K * Dim / 64;
  alignas(64) i32 a[K * Dim], b[K * Dim];
  alignas(64) u32 acc[Dim * Dim];
  VectorReg moved[kItems / 4];
  const VectorReg* rows_a = w.v + op.src[0].index;
  const VectorReg* rows_b = source_b(w, op, kItems / 4, moved);
  for (int s = 0; s < kItems; ++s) {
    for (int l = 0; l < static_cast<int>(kLanes); ++l) {
      const int at = (kItems * (l / Dim) + s) * Dim + l % Dim;
      a[at] = byte_of(rows_a, l, s);
      b[at] = byte_of(rows_b, l, s);
    }
  }
  gather_int<Dim>(w, op.src[2], acc);
  multiply_i8<Dim>(w, a, b, nullptr, K, acc);
  scatter_int<Dim>(w, op, acc);
}

// Several blocks, layout as in matrix_blocks.cpp; K is 4, one dword a lane.
template <int Dim>
void mfma_i8_blocks(Wave& w, const MicroOp& op) {
  constexpr int kBlocks = 64 / Dim, kK = 4;
  VectorReg moved_a[1], moved_b[1];
  const VectorReg* rows_a = source_a(w, op, 1, moved_a);
  const VectorReg* rows_b = source_b(w, op, 1, moved_b);
  alignas(64) u32 acc[kBlocks * Dim * Dim];
  for (int block = 0; block < kBlocks; ++block) {
    alignas(64) i32 a[kK * Dim], b[kK * Dim];
    for (int k = 0; k < kK; ++k) {
      for (int i = 0; i < Dim; ++i) {
        a[k * Dim + i] = byte_of(rows_a, Dim * block + i, k);
        b[k * Dim + i] = byte_of(rows_b, Dim * block + i, k);
      }
    }
    u32* d = acc + block * Dim * Dim;
    for (int row = 0; row < Dim; ++row) {
      const BlockSlot slot = block_slot<Dim>(block, row);
      for (int col = 0; col < Dim; ++col) d[row * Dim + col] = c_value(w, op.src[2], slot, col);
    }
    multiply_i8<Dim>(w, a, b, nullptr, kK, d);
  }
  for (int block = 0; block < kBlocks; ++block) {
    for (int row = 0; row < Dim; ++row) {
      const BlockSlot slot = block_slot<Dim>(block, row);
      __builtin_memcpy(w.v[op.dst.index + slot.reg].lane + slot.lane, acc + (block * Dim + row) * Dim,
                       Dim * sizeof(u32));
    }
  }
}

template <int Dim, int K>
void smfmac_i8(Wave& w, const MicroOp& op) {
  constexpr int kGroups = 64 / Dim, kItemsA = K / 2 / kGroups, kItemsB = K / kGroups;
  alignas(64) i32 a[K / 2 * Dim], b[K * Dim];
  alignas(64) u32 acc[Dim * Dim];
  u8 pick[K / 2 * Dim];
  for (int l = 0; l < static_cast<int>(kLanes); ++l) {
    const int g = l / Dim, i = l % Dim;
    for (int s = 0; s < kItemsA; ++s) a[(kItemsA * g + s) * Dim + i] = byte_of(w.v + op.src[0].index, l, s);
    for (int s = 0; s < kItemsB; ++s)
      b[k_of(kGroups, kItemsB, 16, g, s) * Dim + i] = byte_of(w.v + op.src[1].index, l, s);
  }
  picked_lines<Dim, K>(w, op, pick);
  gather_int<Dim>(w, op.dst, acc);
  multiply_i8<Dim>(w, a, b, pick, K / 2, acc);
  scatter_int<Dim>(w, op, acc);
}

constexpr u32 kM = kIgnoresExec;
constexpr OpRow kRows[] = {
    {"v_mfma_i32_32x32x32_i8", "t=ttt", (&mfma_i8<32, 32>), Unit::kMfma, kM, matrix_arg(8, 1, 32, 32)},
    {"v_mfma_i32_16x16x64_i8", "t=ttt", (&mfma_i8<16, 64>), Unit::kMfma, kM, matrix_arg(4, 1, 16, 64)},
    {"v_mfma_i32_32x32x16_i8", "t=ttt", (&mfma_i8<32, 16>), Unit::kMfma, kM, matrix_arg(8, 1, 32, 16)},
    {"v_mfma_i32_16x16x32_i8", "t=ttt", (&mfma_i8<16, 32>), Unit::kMfma, kM, matrix_arg(4, 1, 16, 32)},
    {"v_mfma_i32_32x32x4_2b_i8", "t=ttt", (&mfma_i8_blocks<32>), Unit::kMfma, kM, matrix_arg(16, 2, 32, 4)},
    {"v_mfma_i32_16x16x4_4b_i8", "t=ttt", (&mfma_i8_blocks<16>), Unit::kMfma, kM, matrix_arg(8, 4, 16, 4)},
    {"v_mfma_i32_4x4x4_16b_i8", "t=ttt", (&mfma_i8_blocks<4>), Unit::kMfma, kM, matrix_arg(2, 16, 4, 4)},
    {"v_smfmac_i32_16x16x64_i8", "t=ttt", (&smfmac_i8<16, 64>), Unit::kMfma, kM | kSparse | kTied,
     matrix_arg(4, 1, 16, 64)},
    {"v_smfmac_i32_32x32x32_i8", "t=ttt", (&smfmac_i8<32, 32>), Unit::kMfma, kM | kSparse | kTied,
     matrix_arg(8, 1, 32, 32)},
    {"v_smfmac_i32_16x16x128_i8", "t=ttt", (&smfmac_i8<16, 128>), Unit::kMfma, kM | kSparse | kTied,
     matrix_arg(4, 1, 16, 128)},
    {"v_smfmac_i32_32x32x64_i8", "t=ttt", (&smfmac_i8<32, 64>), Unit::kMfma, kM | kSparse | kTied,
     matrix_arg(8, 1, 32, 64)},
};

}  // namespace

RowTable int8_matrix_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
