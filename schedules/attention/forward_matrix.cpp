// The two matrix products: S^T = K Q^T and O^T += V^T P^T.
#include "schedules/attention/forward_parts.h"

namespace zyfa::schedules::forward {

using jit::Imm;
using jit::Op;
using jit::Operand;
using jit::Reg;

void scores(StageWriter& w, std::uint32_t block) {
  const Reg score = w.reg("score", block);
  for (std::uint32_t step = 0; step < kHeadSteps; ++step) {
    const Operand start = step == 0 ? Operand{Imm{0}} : Operand{score};
    w.op(Op::kVMfmaF32_32x32x16Bf16, {score, w.reg(of_block("k_frag", block), step), w.reg("q", step), start},
         "S^T keys " + std::to_string(kBlockKeys * block) + "..+31, dims " + std::to_string(16 * step) + "..+15");
  }
}

void accumulate(StageWriter& w, std::uint32_t block) {
  for (std::uint32_t step = 0; step < kBlockSteps; ++step) {
    const Reg prob = w.reg(of_block("prob", block), step);
    const std::uint32_t key = kBlockKeys * block + 16 * step;
    for (std::uint32_t dims = 0; dims < kHeadBlocks; ++dims) {
      const Reg out = w.reg("out", dims);
      w.op(Op::kVMfmaF32_32x32x16Bf16, {out, w.reg(of_block("v_frag", block), step * kHeadBlocks + dims), prob, out},
           "O^T dims " + std::to_string(32 * dims) + "..+31, keys " + std::to_string(key) + "..+15");
    }
  }
}

}  // namespace zyfa::schedules::forward
