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

// Blocks are visited in the order of start_blocks(); a stage may run a few past the end.
void load_and_step(StageWriter& w, const forward::OperandTile& tile) {
  const Reg left = w.reg(tile.name + "_left");
  const Reg jump = w.reg(tile.name + "_jump");
  const Reg rows = w.stemp(tile.name + "_rows");
  w.op(Op::kSCmpGtI32, {left, w.reg("key_length")}, "before the first key?");
  w.op(Op::kSCselectB32, {rows, Imm{0}, left});
  forward::load_block(w, tile, rows);
  forward::step_operand(w, tile, jump);
  w.op(Op::kSMovB32, {jump, Imm{-static_cast<std::int32_t>(kKeyTile)}}, "then the block before");
}

}  // namespace

void load_keys(StageWriter& w, const Variant& v) { load_and_step(w, key_tile(v)); }
void load_values(StageWriter& w) { load_and_step(w, value_tile()); }

void read_keys(StageWriter& w, const Variant& v) {
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint32_t step = 0; step < v.steps(); ++step) {
      const Reg fragment = w.reg("k_frag", block * v.steps() + step);
      for (std::uint32_t part = 0; part < 2; ++part) {
        // The swizzle of 128-byte rows flips all chunk bits, that of 192-byte rows those inside 64 bytes.
        const bool wide = v.head_dim == 128;
        const Reg address = w.reg("k_read", wide ? 2 * step + part : part);
        const std::uint32_t offset = block * 32 * v.head_dim + (wide ? 0 : kStepDims * step);
        const std::uint32_t dim = kStepDims * step + 32 * part;
        w.read_lds(Op::kDsReadB128, "k", fragment.sub(static_cast<std::uint16_t>(4 * part), 4), address,
                   w.lds("k") + offset,
                   "K keys " + std::to_string(32 * block) + "..+31, dims " + std::to_string(dim) + "..+31");
      }
    }
  }
}

void read_values(StageWriter& w) {
  for (std::uint32_t block = 0; block < forward::kOutputBlocks; ++block) {
    const Reg fragment = w.reg("v_frag", block);
    for (std::uint32_t part = 0; part < 4; ++part) {
      w.read_lds(
          Op::kDsReadB64TrB8, "v", fragment.sub(static_cast<std::uint16_t>(2 * part), 2), w.reg("v_read", block),
          w.lds("v") + 16 * part * kValueRowBytes,
          "V^T dims " + std::to_string(32 * block) + "..+31, keys " + std::to_string(16 * part) + "..+15 in P's order");
    }
  }
}

}  // namespace zyfa::schedules::fp8
