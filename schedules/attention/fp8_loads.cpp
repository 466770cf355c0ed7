// K and V: memory to LDS without registers, LDS to MFMA fragments.
#include "schedules/attention/fp8_parts.h"

namespace zyfa::schedules::fp8 {
using jit::Imm;
using jit::Op;
using jit::Reg;

forward::OperandTile key_tile(const Variant& v) {
  return {"k", v.head_dim, v.head_dim == 128 ? forward::Swizzle::kHalfRow : forward::Swizzle::kQuarterRow};
}

forward::OperandTile value_tile() { return {"v", kValueRowBytes, forward::Swizzle::kTransposeB8}; }

namespace {

// Half a of an iteration, then half b: its rows start 64 below, and those of a are no longer in range.
void load_and_step(StageWriter& w, const forward::OperandTile& tile, std::uint32_t half) {
  const std::string& name = tile.name;
  const Reg desc = w.reg(name + "_desc");
  if (half == 0) {
    const Reg block = w.reg(name + "_block");
    forward::load_described_block(w, tile, of_half(name, half), [] {});
    w.op(Op::kSSubI32, {desc.sub(2), desc.sub(2), block});
    w.op(Op::kSMaxI32, {desc.sub(2), desc.sub(2), Imm{0}}, "bytes in range of the other half");
    w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), block});
    w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), Imm{0}}, "other half of " + name);
    return;
  }
  const Reg step = w.reg(name + "_step");
  const Reg iterations = w.reg(name + "_iterations");
  const Reg span = w.reg(name + "_span");
  // Iterations are visited in the order of start_operand(); a stage may run a few past the end.
  forward::load_described_block(w, tile, of_half(name, half), [&] {
    w.op(Op::kSSubI32, {iterations, iterations, Imm{1}});
    w.op(Op::kSCmpGtI32, {iterations, Imm{0}}, "another iteration?");
  });
  w.op(Op::kSCselectB32, {desc.sub(2), span, Imm{0}}, "bytes in range: past the end none");
  w.op(Op::kSMovB32, {span, w.reg(name + "_full")}, "of all iterations but the first and the last");
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), step.sub(0)});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), step.sub(1)}, "next rows of " + name);
  w.op(Op::kSMovB64, {step, w.reg(name + "_back")}, "then the iteration before");
}

}  // namespace

void load_keys(StageWriter& w, const Variant& v, std::uint32_t half) { load_and_step(w, key_tile(v), half); }
void load_values(StageWriter& w, const Variant& /*v*/, std::uint32_t half) { load_and_step(w, value_tile(), half); }

void read_keys(StageWriter& w, const Variant& v, std::uint32_t half) {
  const std::string tile = of_half("k", half);
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint32_t step = 0; step < v.steps(); ++step) {
      const Reg fragment = w.reg(of_half("k_frag", half), block * v.steps() + step);
      for (std::uint32_t part = 0; part < 2; ++part) {
        // The swizzle of 128-byte rows flips all chunk bits, that of 192-byte rows those inside 64 bytes.
        const bool wide = v.head_dim == 128;
        const Reg address = w.reg("k_read", wide ? 2 * step + part : part);
        const std::uint32_t offset = block * 32 * v.head_dim + (wide ? 0 : kStepDims * step);
        const std::uint32_t dim = kStepDims * step + 32 * part;
        w.read_lds(Op::kDsReadB128, tile, fragment.sub(static_cast<std::uint16_t>(4 * part), 4), address,
                   w.lds(tile) + offset,
                   "K keys " + std::to_string(32 * block) + "..+31, dims " + std::to_string(dim) + "..+31");
      }
    }
  }
}

void read_values(StageWriter& w, const Variant& /*v*/, std::uint32_t half) {
  const std::string tile = of_half("v", half);
  for (std::uint32_t block = 0; block < forward::kOutputBlocks; ++block) {
    const Reg fragment = w.reg(of_half("v_frag", half), block);
    for (std::uint32_t part = 0; part < 4; ++part) {
      w.read_lds(
          Op::kDsReadB64TrB8, tile, fragment.sub(static_cast<std::uint16_t>(2 * part), 2), w.reg("v_read", block),
          w.lds(tile) - w.lds_base("v_a") + 16 * part * kValueRowBytes,
          "V^T dims " + std::to_string(32 * block) + "..+31, keys " + std::to_string(16 * part) + "..+15 in P's order");
    }
  }
}

}  // namespace zyfa::schedules::fp8
