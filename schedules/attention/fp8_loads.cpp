// K and V: memory to LDS without registers, LDS to MFMA fragments.
#include "schedules/attention/fp8_parts.h"

namespace zyfa::schedules::fp8 {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;

// Loads one block of rows into LDS tile `name`, this wave's share in rounds of 64 lanes x 16 bytes (a last one of 32
// lanes), and steps the descriptor to the next block.
void load_block(StageWriter& w, const std::string& name, std::uint32_t row_bytes) {
  const Reg desc = w.reg(name + "_desc");
  const Reg left = w.reg(name + "_left");
  const Reg stride = w.reg(name + "_stride");
  forward::row_span(w, desc.sub(2), {left, kKeyTile, stride, row_bytes}, name);
  const std::uint32_t wave_bytes = kKeyTile * row_bytes / w.placement().waves;
  for (std::uint32_t round = 0; round * kLoadBytes < wave_bytes; ++round) {
    const std::uint32_t at = w.lds(name) + round * kLoadBytes;
    w.op(Op::kSAddU32, {jit::m0(), w.reg(name + "_lds"), Imm{static_cast<std::int32_t>(at)}});
    const bool half = wave_bytes - round * kLoadBytes < kLoadBytes;
    if (half) w.op(Op::kSLshrB64, {jit::exec(), Imm{-1}, Imm{32}}, "the last 512 bytes: lanes 0 to 31");
    // soffset stays 0: it escapes the bounds check (gfx950-isa.md 3.2).
    w.load_to_lds(Op::kBufferLoadDwordx4Lds, name, {w.reg(name + "_offset", round), desc, Imm{0}},
                  name + " rows to LDS", {.offen = true});
    if (half) w.op(Op::kSMovB64, {jit::exec(), Imm{-1}});
  }
  const Reg bytes = w.stemp("tile_bytes");
  w.op(Op::kSLshlB32, {bytes, stride, Imm{6}}, "64 rows");
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), bytes});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), Imm{0}}, "next block of " + name);
  w.op(Op::kSSubI32, {left, left, Imm{static_cast<std::int32_t>(kKeyTile)}});
}

}  // namespace

void load_keys(StageWriter& w, const Variant& v) { load_block(w, "k", v.head_dim); }
void load_values(StageWriter& w) { load_block(w, "v", kValueRowBytes); }

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
