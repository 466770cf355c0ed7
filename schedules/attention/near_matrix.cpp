// S^T = K Q^T and O^T += V^T P^T with fragments read from LDS as they are needed: at head dim 192 a whole block of K, Q
// and O would not fit the registers beside each other.
#include <array>

#include "schedules/attention/near_parts.h"

namespace zyfa::schedules::near {
namespace {

using jit::Imm;
using jit::Op;
using jit::Operand;
using jit::Reg;

Reg read_key_fragment(StageWriter& w, const NearShape& shape, std::uint32_t block, std::uint32_t step) {
  const std::uint32_t row_bytes = 2 * shape.head_dim;
  const Reg fragment = w.vtemp("k_frag", 4);
  // The swizzle of 256-byte rows flips all four chunk bits, that of 384-byte rows the low three; the rest is offset.
  const bool wide = shape.head_dim == 128;
  const Reg address = w.reg("near_k_read", wide ? step : step % 4);
  const std::uint32_t offset = block * 32 * row_bytes + (wide ? 0 : step / 4 * 128);
  w.read_lds(Op::kDsReadB128, "k", fragment, address, w.lds("k") + offset,
             "K keys " + std::to_string(32 * block) + "..+31, dims " + std::to_string(16 * step) + "..+15");
  return fragment;
}

}  // namespace

void scores(StageWriter& w, const NearShape& shape) {
  const std::uint32_t steps = shape.head_dim / 16;
  std::vector<Reg> fragments;
  for (std::uint32_t step = 0; step < steps; ++step) fragments.push_back(read_key_fragment(w, shape, 0, step));
  for (std::uint32_t block = 0; block < forward::kKeyBlocks; ++block) {
    const Reg score = w.reg("score", block);
    for (std::uint32_t step = 0; step < steps; ++step) {
      const Operand start = step == 0 ? Operand{Imm{0}} : Operand{score};
      w.op(Op::kVMfmaF32_32x32x16Bf16, {score, fragments[step], w.reg("near_q", step), start},
           "S^T keys " + std::to_string(32 * block) + "..+31, dims " + std::to_string(16 * step) + "..+15");
      if (block + 1 < forward::kKeyBlocks) fragments[step] = read_key_fragment(w, shape, block + 1, step);
    }
  }
}

// V fragments in P's order, as forward_loads.cpp; those of the next 16 keys are read while these multiply.
void accumulate(StageWriter& w) {
  using Fragments = std::array<Reg, forward::kHeadBlocks>;
  const auto read = [&](std::uint32_t step) {
    Fragments fragments;
    for (std::uint32_t block = 0; block < forward::kHeadBlocks; ++block) {
      fragments[block] = w.vtemp("v_frag", 4);
      for (std::uint16_t part = 0; part < 2; ++part) {
        w.read_lds(Op::kDsReadB64TrB16, "v", fragments[block].sub(static_cast<std::uint16_t>(2 * part), 2),
                   w.reg("near_v_read", block), w.lds("v") + (16 * step + 8 * part) * forward::kRowBytes,
                   "V^T dims " + std::to_string(32 * block) + "..+31, keys " + std::to_string(16 * step + 8 * part) +
                       "..+7 in P's order");
      }
    }
    return fragments;
  };
  Fragments fragments = read(0);
  for (std::uint32_t step = 0; step < forward::kKeySteps; ++step) {
    Fragments next;
    if (step + 1 < forward::kKeySteps) next = read(step + 1);
    for (std::uint32_t block = 0; block < forward::kHeadBlocks; ++block) {
      const Reg out = w.reg("out", block);
      w.op(Op::kVMfmaF32_32x32x16Bf16, {out, fragments[block], w.reg("prob", step), out},
           "O^T dims " + std::to_string(32 * block) + "..+31, keys " + std::to_string(16 * step) + "..+15");
    }
    fragments = next;
  }
}

}  // namespace zyfa::schedules::near
