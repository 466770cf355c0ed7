// K and V: memory to LDS without registers, LDS to MFMA fragments.
#include <algorithm>

#include "schedules/attention/forward_parts.h"
#include "schedules/attention/kernel_setup.h"

namespace zyfa::schedules::forward {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;

// An LDS tile, and the blocks of an iteration's K or V that it holds.
struct LoadedBlocks {
  std::string tile, operand;
  std::uint32_t blocks;
};

// Two blocks: token strides are below 2^26 bytes, and a descriptor spans less than 2^32.
constexpr std::uint32_t kSpanBlocks = 2;

// Loads the next rows to `at` in LDS, this wave's rounds of 4 rows.
void load_span(StageWriter& w, const LoadedBlocks& loaded, std::uint32_t blocks, std::uint32_t at) {
  const std::string& name = loaded.tile;
  const Reg desc = w.reg(name + "_desc");
  const Reg stride = w.reg(name + "_stride");
  const auto rows = static_cast<std::int32_t>(blocks * kBlockKeys);
  row_span(w, desc.sub(2), {w.reg(name + "_left"), rows, stride, kRowBytes}, name);
  const std::uint32_t waves = w.placement().waves;
  const std::uint32_t rounds = blocks * kBlockBytes / kLoadBytes / waves;
  const Reg step = w.stemp("round_step");
  if (rounds > 1) w.op(Op::kSMulI32, {step, stride, Imm{static_cast<std::int32_t>(4 * waves)}}, "rows between rounds");
  Reg offset = w.reg(loaded.operand + "_offset");
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint32_t to = at + round * waves * kLoadBytes;
    w.op(Op::kSAddU32, {jit::m0(), w.reg("wave_lds"), Imm{static_cast<std::int32_t>(to)}});
    if (round > 0) {  // behind the write of M0, which a load may not follow at once
      const Reg next = w.vtemp("round_offset");
      w.op(Op::kVAddU32, {next, step, offset});
      offset = next;
    }
    // soffset stays 0: it escapes the bounds check (gfx950-isa.md 3.2).
    w.load_to_lds(Op::kBufferLoadDwordx4Lds, name, {offset, desc, Imm{0}}, name + " rows to LDS", {.offen = true});
  }
}

// Loads the iteration's rows and steps the tile's descriptor to the next iteration.
void load_blocks(StageWriter& w, const LoadedBlocks& loaded) {
  for (std::uint32_t block = 0; block < loaded.blocks; block += kSpanBlocks) {
    const std::uint32_t blocks = std::min(kSpanBlocks, loaded.blocks - block);
    load_span(w, loaded, blocks, w.lds(loaded.tile) + block * kBlockBytes);
    const bool last = block + blocks == loaded.blocks;
    step_rows(w, loaded.tile, last ? kIterationKeys - block * kBlockKeys : blocks * kBlockKeys);
  }
}

}  // namespace

void step_rows(StageWriter& w, const std::string& tile, std::uint32_t rows) {
  const Reg desc = w.reg(tile + "_desc");
  const Reg left = w.reg(tile + "_left");
  const Reg bytes = w.stemp("step_bytes");
  const Imm count{static_cast<std::int32_t>(rows)};
  w.op(Op::kSMulI32, {bytes, w.reg(tile + "_stride"), count});
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), bytes});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), Imm{0}}, "next rows of " + tile);
  w.op(Op::kSSubI32, {left, left, count});
}

void load_keys(StageWriter& w) { load_blocks(w, {"k", "k", kIterationBlocks}); }
void load_first_values(StageWriter& w) { load_blocks(w, {"v_first", "v", 1}); }
void load_other_values(StageWriter& w) { load_blocks(w, {"v_rest", "v", kIterationBlocks - 1}); }

void read_keys(StageWriter& w, std::uint32_t block) {
  for (std::uint32_t step = 0; step < kHeadSteps; ++step) {
    w.read_lds(Op::kDsReadB128, "k", w.reg(of_block("k_frag", block), step), w.reg("k_read", step),
               w.lds("k") + block * kBlockBytes,
               "K keys " + std::to_string(kBlockKeys * block) + "..+31, dims " + std::to_string(16 * step) + "..+15");
  }
}

void read_values(StageWriter& w, std::uint32_t block) {
  const std::string tile = block == 0 ? "v_first" : "v_rest";
  const std::uint32_t in_tile = block == 0 ? 0 : block - 1;
  // v_read holds the address of V's first tile, so that the rest fits the offset field.
  const std::uint32_t at = w.lds(tile) - w.lds_base("v_first") + in_tile * kBlockBytes;
  for (std::uint32_t step = 0; step < kBlockSteps; ++step) {
    for (std::uint32_t dims = 0; dims < kHeadBlocks; ++dims) {
      const Reg fragment = w.reg(of_block("v_frag", block), step * kHeadBlocks + dims);
      for (std::uint16_t part = 0; part < 2; ++part) {
        const std::uint32_t key = 16 * step + 8 * part;
        w.read_lds(Op::kDsReadB64TrB16, tile, fragment.sub(static_cast<std::uint16_t>(2 * part), 2),
                   w.reg("v_read", dims), at + key * kRowBytes,
                   "V^T dims " + std::to_string(32 * dims) + "..+31, keys " + std::to_string(kBlockKeys * block + key) +
                       "..+7 in P's order");
      }
    }
  }
}

}  // namespace zyfa::schedules::forward
