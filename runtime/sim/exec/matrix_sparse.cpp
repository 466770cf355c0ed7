// SMFMAC with float elements: A holds 2 of every 4 k (AMD CDNA4 ISA guide 7.5, gfx950-isa.md 1.7). D is also C.
// Compiled once per host instruction set.
//
// A is contiguous in the compressed k; B has the layout of dense operands of its size. Only the lines of B that the
// index names are read: an infinity in another line leaves no trace. The chain runs over the compressed k in ascending
// order.
#include "runtime/sim/exec/matrix.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

template <int Dim>
ZYFA_SIM_INLINE void chain_picked(const Tile& t, int count) {
  for (int row = 0; row < Dim; ++row) {
    alignas(64) float sum[Dim];
    __builtin_memcpy(sum, t.acc + row * Dim, sizeof(sum));
    for (int s = 0; s < count; ++s) {
      const float x = t.a[s * Dim + row];
      const float* y = t.b + t.pick[s * Dim + row] * Dim;
      for (int i = 0; i < Dim; ++i) sum[i] = std::fma(x, y[i], sum[i]);
    }
    __builtin_memcpy(t.acc + row * Dim, sum, sizeof(sum));
  }
}

template <int Dim, int K, class A, class B>
void smfmac(Wave& w, const MicroOp& op) {
  alignas(64) float a[K / 2 * Dim], b[K * Dim], acc[Dim * Dim];
  u8 pick[K / 2 * Dim];
  expand<Dim, K / 2, A, kOneRun>(w.v + op.src[0].index, a);
  expand<Dim, K, B, 128 / B::kBits>(w.v + op.src[1].index, b);
  picked_lines<Dim, K>(w, op, pick);
  gather_c<Dim>(w, op.dst, acc);
  accumulate<Dim>(w, {Dim, K / 2, a, b, acc, A::kFormat, B::kFormat, pick},
                  [](const Tile& t) { chain_picked<Dim>(t, K / 2); });
  scatter_d<Dim>(w, op, acc);
}

#define SPARSE(name, dim, k, a, b, passes) \
  {name, "t=ttt", (&smfmac<dim, k, a, b>), Unit::kMfma, kIgnoresExec | kSparse | kTied, matrix_arg(passes, 1, dim, k)}
#define SPARSE8(shape, dim, k, passes)                                    \
  SPARSE("v_smfmac_f32_" shape "_fp8_fp8", dim, k, Fp8, Fp8, passes),     \
      SPARSE("v_smfmac_f32_" shape "_fp8_bf8", dim, k, Fp8, Bf8, passes), \
      SPARSE("v_smfmac_f32_" shape "_bf8_fp8", dim, k, Bf8, Fp8, passes), \
      SPARSE("v_smfmac_f32_" shape "_bf8_bf8", dim, k, Bf8, Bf8, passes)

constexpr OpRow kRows[] = {
    SPARSE("v_smfmac_f32_16x16x32_f16", 16, 32, F16, F16, 4),
    SPARSE("v_smfmac_f32_32x32x16_f16", 32, 16, F16, F16, 8),
    SPARSE("v_smfmac_f32_16x16x32_bf16", 16, 32, Bf16, Bf16, 4),
    SPARSE("v_smfmac_f32_32x32x16_bf16", 32, 16, Bf16, Bf16, 8),
    SPARSE("v_smfmac_f32_16x16x64_f16", 16, 64, F16, F16, 4),
    SPARSE("v_smfmac_f32_32x32x32_f16", 32, 32, F16, F16, 8),
    SPARSE("v_smfmac_f32_16x16x64_bf16", 16, 64, Bf16, Bf16, 4),
    SPARSE("v_smfmac_f32_32x32x32_bf16", 32, 32, Bf16, Bf16, 8),
    SPARSE8("16x16x64", 16, 64, 4),
    SPARSE8("32x32x32", 32, 32, 8),
    SPARSE8("16x16x128", 16, 128, 4),
    SPARSE8("32x32x64", 32, 64, 8),
};

}  // namespace

RowTable sparse_matrix_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
