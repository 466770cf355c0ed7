// The two matrix products: S^T = K Q^T and O^T += V^T P^T.
#include "schedules/attention/forward_parts.h"

namespace zyfa::schedules::forward {

using jit::Imm;
using jit::Op;
using jit::Operand;
using jit::Reg;

void scores(StageWriter& w) {
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    const Reg score = w.reg("score", block);
    for (std::uint32_t step = 0; step < kHeadSteps; ++step) {
      const Operand start = step == 0 ? Operand{Imm{0}} : Operand{score};
      w.op(Op::kVMfmaF32_32x32x16Bf16, {score, w.reg("k_frag", block * kHeadSteps + step), w.reg("q", step), start},
           "S^T keys " + std::to_string(32 * block) + "..+31, dims " + std::to_string(16 * step) + "..+15");
    }
  }
}

void accumulate(StageWriter& w) {
  for (std::uint32_t step = 0; step < kKeySteps; ++step) {
    for (std::uint32_t block = 0; block < kHeadBlocks; ++block) {
      const Reg out = w.reg("out", block);
      w.op(Op::kVMfmaF32_32x32x16Bf16, {out, w.reg("v_frag", step * kHeadBlocks + block), w.reg("prob", step), out},
           "O^T dims " + std::to_string(32 * block) + "..+31, keys " + std::to_string(16 * step) + "..+15");
    }
  }
}

}  // namespace zyfa::schedules::forward
