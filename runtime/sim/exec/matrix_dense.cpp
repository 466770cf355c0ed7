// Dense MFMA of one block with f16, bf16, fp8, bf8 and f32 elements (AMD CDNA4 ISA guide 7.1, gfx950-isa.md 1).
// Compiled once per host instruction set.
#include "runtime/sim/exec/matrix.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

template <int Dim, int K, class A, class B>
void mfma(Wave& w, const MicroOp& op) {
  constexpr int kWords = K * Dim / 64 * A::kBits / 32;
  alignas(64) float a[K * Dim], b[K * Dim], acc[Dim * Dim];
  VectorReg moved[kWords];
  expand<Dim, K, A, kOneRun>(w.v + op.src[0].index, a);
  expand<Dim, K, B, kOneRun>(source_b(w, op, kWords, moved), b);
  if constexpr (A::kBits == 32) {
    // Inputs of 32 bits follow MODE.FP_DENORM, C and D do not (guide 7.4).
    for (int i = 0; i < K * Dim; ++i) {
      a[i] = f32(flush32(raw(a[i]), w.f32_in));
      b[i] = f32(flush32(raw(b[i]), w.f32_in));
    }
  }
  gather_c<Dim>(w, op.src[2], acc);
  const Tile tile{Dim, K, a, b, acc, A::kFormat, B::kFormat};
  accumulate<Dim>(w, tile, [](const Tile& t) { chain<Dim>(t.acc, t.a, t.b, 0, K); });
  scatter_d<Dim>(w, op, acc);
}

#define DENSE(name, dim, k, a, b, flags, passes) \
  {name, "t=ttt", (&mfma<dim, k, a, b>), Unit::kMfma, kIgnoresExec | (flags), matrix_arg(passes, 1, dim, k)}

// Passes: guide table 28, the same as LLVM's scheduling model.
constexpr OpRow kRows[] = {
    DENSE("v_mfma_f32_32x32x16_bf16", 32, 16, Bf16, Bf16, 0, 8),
    DENSE("v_mfma_f32_16x16x32_bf16", 16, 32, Bf16, Bf16, 0, 4),
    DENSE("v_mfma_f32_32x32x8_bf16", 32, 8, Bf16, Bf16, 0, 8),
    DENSE("v_mfma_f32_16x16x16_bf16", 16, 16, Bf16, Bf16, 0, 4),
    DENSE("v_mfma_f32_32x32x8_bf16_1k", 32, 8, Bf16, Bf16, 0, 8),
    DENSE("v_mfma_f32_16x16x16_bf16_1k", 16, 16, Bf16, Bf16, 0, 4),
    DENSE("v_mfma_f32_32x32x16_f16", 32, 16, F16, F16, 0, 8),
    DENSE("v_mfma_f32_16x16x32_f16", 16, 32, F16, F16, 0, 4),
    DENSE("v_mfma_f32_32x32x8_f16", 32, 8, F16, F16, 0, 8),
    DENSE("v_mfma_f32_16x16x16_f16", 16, 16, F16, F16, 0, 4),
    DENSE("v_mfma_f32_32x32x16_fp8_fp8", 32, 16, Fp8, Fp8, 0, 8),
    DENSE("v_mfma_f32_32x32x16_fp8_bf8", 32, 16, Fp8, Bf8, 0, 8),
    DENSE("v_mfma_f32_32x32x16_bf8_fp8", 32, 16, Bf8, Fp8, 0, 8),
    DENSE("v_mfma_f32_32x32x16_bf8_bf8", 32, 16, Bf8, Bf8, 0, 8),
    DENSE("v_mfma_f32_16x16x32_fp8_fp8", 16, 32, Fp8, Fp8, 0, 4),
    DENSE("v_mfma_f32_16x16x32_fp8_bf8", 16, 32, Fp8, Bf8, 0, 4),
    DENSE("v_mfma_f32_16x16x32_bf8_fp8", 16, 32, Bf8, Fp8, 0, 4),
    DENSE("v_mfma_f32_16x16x32_bf8_bf8", 16, 32, Bf8, Bf8, 0, 4),
    DENSE("v_mfma_f32_32x32x2_f32", 32, 2, F32, F32, kSgemm, 16),
    DENSE("v_mfma_f32_16x16x4_f32", 16, 4, F32, F32, kSgemm, 8),
};

}  // namespace

RowTable dense_matrix_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
