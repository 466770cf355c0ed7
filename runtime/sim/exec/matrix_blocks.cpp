// MFMA of several blocks with f32, f16 and bf16 elements: 32x32 in 2, 16x16 in 4, 4x4 in 16 blocks (AMD CDNA4 ISA
// guide 7.1.4). Compiled once per host instruction set.
#include "runtime/sim/exec/matrix.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

// A[b][i][k] and B[b][k][i] are item k of lane Dim * b + i: a lane holds all k of its row.
template <int Dim, int K, class T>
ZYFA_SIM_INLINE void expand_block(const Wave& w, const VectorReg* rows, int block, float* out) {
  constexpr u32 kMask = T::kBits == 32 ? ~0u : (1u << (T::kBits % 32)) - 1;
  for (int k = 0; k < K; ++k) {
    const u32* from = rows[k * T::kBits / 32].lane + Dim * block;
    for (int i = 0; i < Dim; ++i) {
      u32 x = (from[i] >> (k * T::kBits % 32)) & kMask;
      if constexpr (T::kBits == 32) x = flush32(x, w.f32_in);
      out[k * Dim + i] = T::decode(x);
    }
  }
}

template <int Dim, int K, class T>
void mfma_blocks(Wave& w, const MicroOp& op) {
  constexpr int kBlocks = 64 / Dim, kWords = K * T::kBits / 32;
  VectorReg moved_a[kWords], moved_b[kWords];
  const VectorReg* rows_a = source_a(w, op, kWords, moved_a);
  const VectorReg* rows_b = source_b(w, op, kWords, moved_b);
  alignas(64) float acc[kBlocks * Dim * Dim];
  for (int block = 0; block < kBlocks; ++block) {
    alignas(64) float a[K * Dim], b[K * Dim];
    expand_block<Dim, K, T>(w, rows_a, block, a);
    expand_block<Dim, K, T>(w, rows_b, block, b);
    float* d = acc + block * Dim * Dim;
    for (int row = 0; row < Dim; ++row) {
      const BlockSlot slot = block_slot<Dim>(block, row);
      for (int col = 0; col < Dim; ++col) d[row * Dim + col] = f32(c_value(w, op.src[2], slot, col));
    }
    accumulate<Dim>(w, {Dim, K, a, b, d, T::kFormat, T::kFormat},
                    [](const Tile& t) { chain<Dim>(t.acc, t.a, t.b, 0, K); });
  }
  for (int block = 0; block < kBlocks; ++block) {
    for (int row = 0; row < Dim; ++row) {
      const BlockSlot slot = block_slot<Dim>(block, row);
      u32* to = w.v[op.dst.index + slot.reg].lane + slot.lane;
      for (int col = 0; col < Dim; ++col) to[col] = raw(canonical(acc[(block * Dim + row) * Dim + col]));
    }
  }
}

#define BLOCKS(name, dim, k, type, flags, passes) \
  {name,                                          \
   "t=ttt",                                       \
   (&mfma_blocks<dim, k, type>),                  \
   Unit::kMfma,                                   \
   kIgnoresExec | (flags),                        \
   matrix_arg(passes, 64 / (dim), dim, k)}

constexpr OpRow kRows[] = {
    BLOCKS("v_mfma_f32_32x32x1_2b_f32", 32, 1, F32, kSgemm, 16),
    BLOCKS("v_mfma_f32_16x16x1_4b_f32", 16, 1, F32, kSgemm, 8),
    BLOCKS("v_mfma_f32_4x4x1_16b_f32", 4, 1, F32, kSgemm, 2),
    BLOCKS("v_mfma_f32_32x32x4_2b_f16", 32, 4, F16, 0, 16),
    BLOCKS("v_mfma_f32_16x16x4_4b_f16", 16, 4, F16, 0, 8),
    BLOCKS("v_mfma_f32_4x4x4_16b_f16", 4, 4, F16, 0, 2),
    BLOCKS("v_mfma_f32_32x32x4_2b_bf16", 32, 4, Bf16, 0, 16),
    BLOCKS("v_mfma_f32_16x16x4_4b_bf16", 16, 4, Bf16, 0, 8),
    BLOCKS("v_mfma_f32_4x4x4_16b_bf16", 4, 4, Bf16, 0, 2),
};

}  // namespace

RowTable block_matrix_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
