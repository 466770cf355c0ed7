// MFMA with f64 elements (AMD CDNA4 ISA guide 7.1.3.4 and 7.1.6.4). Compiled once per host instruction set.
//
// MODE is ignored: round to nearest even, denormals kept. BLGP negates A, B and C. Each result is a chain of f64 fma in
// ascending k, or the exact sum rounded once when the wave's model is kExact.
#include "runtime/sim/exec/matrix.h"
#include "runtime/sim/exec/matrix_exact.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

constexpr int kK = 4;

ZYFA_SIM_INLINE u64 pair_at(const VectorReg* rows, int lane) {
  return static_cast<u64>(rows[0].lane[lane]) | (static_cast<u64>(rows[1].lane[lane]) << 32);
}

// 16x16: rows 4r..4r+3 of the matrix are register pair r. 4x4 in 4 blocks: row i of all blocks is lanes 16i..16i+15
// (amd-lab-notes matrix cores, measured on an MI350 by hip-fpsan; the guide's formula for several blocks in one
// register disagrees).
template <int Dim>
ZYFA_SIM_INLINE BlockSlot double_slot(int block, int row) {
  if constexpr (Dim == 16) return {2 * (row / 4), 16 * (row % 4)};
  return {0, 16 * row + 4 * block};
}

template <int Dim>
void mfma_f64(Wave& w, const MicroOp& op) {
  constexpr int kBlocks = 16 / Dim;
  const u64 flip_a = static_cast<u64>(op.blgp & 1) << 63, flip_b = static_cast<u64>((op.blgp >> 1) & 1) << 63;
  const u64 flip_c = static_cast<u64>((op.blgp >> 2) & 1) << 63;
  const bool exact = w.rules.accumulation == SimAccumulation::kExact;
  double results[kBlocks * Dim * Dim];
  for (int block = 0; block < kBlocks; ++block) {
    for (int row = 0; row < Dim; ++row) {
      const BlockSlot slot = double_slot<Dim>(block, row);
      for (int col = 0; col < Dim; ++col) {
        // A[b][i][k] and B[b][k][i] are lane 16k + Dim*b + i.
        double a[kK], b[kK];
        for (int k = 0; k < kK; ++k) {
          a[k] = bits<double>(pair_at(w.v + op.src[0].index, 16 * k + Dim * block + row) ^ flip_a);
          b[k] = bits<double>(pair_at(w.v + op.src[1].index, 16 * k + Dim * block + col) ^ flip_b);
        }
        const Operand& c = op.src[2];
        const u64 addend = c.kind == OperandKind::kVgpr ? pair_at(w.v + c.index + slot.reg, slot.lane + col)
                                                        : static_cast<u64>(c.lo) | (static_cast<u64>(c.hi) << 32);
        double sum = bits<double>(addend ^ flip_c);
        if (exact) {
          sum = exact_dot(kK, a, b, sum);
        } else {
          for (int k = 0; k < kK; ++k) sum = std::fma(a[k], b[k], sum);
        }
        results[(block * Dim + row) * Dim + col] = sum;
      }
    }
  }
  for (int block = 0; block < kBlocks; ++block) {
    for (int row = 0; row < Dim; ++row) {
      const BlockSlot slot = double_slot<Dim>(block, row);
      for (int col = 0; col < Dim; ++col) {
        const double x = results[(block * Dim + row) * Dim + col];
        const u64 code = x != x ? 0x7ff8000000000000ull : bits<u64>(x);
        w.v[op.dst.index + slot.reg].lane[slot.lane + col] = static_cast<u32>(code);
        w.v[op.dst.index + slot.reg + 1].lane[slot.lane + col] = static_cast<u32>(code >> 32);
      }
    }
  }
}

constexpr u32 kFlags = kIgnoresExec | kSgemm | kDgemm;
// Passes: 16 and 4 as in LLVM's scheduling model and the guide's wait states (7.6); guide table 28 gives 32 cycles for
// the 4x4 form.
constexpr OpRow kRows[] = {
    {"v_mfma_f64_16x16x4_f64", "t=ttD", (&mfma_f64<16>), Unit::kMfma, kFlags, matrix_arg(16, 1, 16, 4)},
    {"v_mfma_f64_4x4x4_4b_f64", "t=ttD", (&mfma_f64<4>), Unit::kMfma, kFlags, matrix_arg(4, 4, 4, 4)},
};

}  // namespace

RowTable double_matrix_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
