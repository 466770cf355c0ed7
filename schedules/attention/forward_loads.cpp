// K and V: memory to LDS without registers, LDS to MFMA fragments.
#include "schedules/attention/forward_parts.h"
#include "schedules/attention/kernel_setup.h"

namespace zyfa::schedules::forward {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;

// Loads one block of rows into LDS tile `name`, this wave's rounds of 4 rows, and steps the descriptor to the next
// block.
void load_block(StageWriter& w, const std::string& name) {
  const Reg desc = w.reg(name + "_desc");
  const Reg left = w.reg(name + "_left");
  const Reg stride = w.reg(name + "_stride");
  row_span(w, desc.sub(2), {left, kKeyTile, stride, kRowBytes}, name);
  const std::uint32_t waves = w.placement().waves;
  const std::uint32_t rounds = kTileBytes / kLoadBytes / waves;
  const Reg step = w.stemp("round_step");
  if (rounds > 1) w.op(Op::kSMulI32, {step, stride, Imm{static_cast<std::int32_t>(4 * waves)}}, "rows between rounds");
  Reg offset = w.reg(name + "_offset");
  for (std::uint32_t round = 0; round < rounds; ++round) {
    if (round > 0) {
      const Reg next = w.vtemp("round_offset");
      w.op(Op::kVAddU32, {next, step, offset});
      offset = next;
    }
    const std::uint32_t at = w.lds(name) + round * waves * kLoadBytes;
    w.op(Op::kSAddU32, {jit::m0(), w.reg("wave_lds"), Imm{static_cast<std::int32_t>(at)}});
    // soffset stays 0: it escapes the bounds check (gfx950-isa.md 3.2).
    w.load_to_lds(Op::kBufferLoadDwordx4Lds, name, {offset, desc, Imm{0}}, name + " rows to LDS", {.offen = true});
  }
  const Reg bytes = w.stemp("tile_bytes");
  w.op(Op::kSLshlB32, {bytes, stride, Imm{6}}, "64 rows");
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), bytes});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), Imm{0}}, "next block of " + name);
  w.op(Op::kSSubI32, {left, left, Imm{static_cast<std::int32_t>(kKeyTile)}});
}

}  // namespace

void load_keys(StageWriter& w) { load_block(w, "k"); }
void load_values(StageWriter& w) { load_block(w, "v"); }

void read_keys(StageWriter& w) {
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint32_t step = 0; step < kHeadSteps; ++step) {
      w.read_lds(Op::kDsReadB128, "k", w.reg("k_frag", block * kHeadSteps + step), w.reg("k_read", step),
                 w.lds("k") + block * 32 * kRowBytes,
                 "K keys " + std::to_string(32 * block) + "..+31, dims " + std::to_string(16 * step) + "..+15");
    }
  }
}

void read_values(StageWriter& w) {
  for (std::uint32_t step = 0; step < kKeySteps; ++step) {
    for (std::uint32_t block = 0; block < kHeadBlocks; ++block) {
      const Reg fragment = w.reg("v_frag", step * kHeadBlocks + block);
      for (std::uint16_t part = 0; part < 2; ++part) {
        w.read_lds(Op::kDsReadB64TrB16, "v", fragment.sub(static_cast<std::uint16_t>(2 * part), 2),
                   w.reg("v_read", block), w.lds("v") + (16 * step + 8 * part) * kRowBytes,
                   "V^T dims " + std::to_string(32 * block) + "..+31, keys " + std::to_string(16 * step + 8 * part) +
                       "..+7 in P's order");
      }
    }
  }
}

}  // namespace zyfa::schedules::forward
