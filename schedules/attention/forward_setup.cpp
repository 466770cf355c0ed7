// Setup: arguments, this wave's query rows, descriptors, per-lane LDS addresses, loop-carried state, trip count.
#include <cstddef>

#include "schedules/attention/bf16_operands.h"
#include "schedules/attention/forward_parts.h"
#include "schedules/attention/kernel_setup.h"
#include "schedules/select/kernel_args.h"

namespace zyfa::schedules::forward {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kQ = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, q));
constexpr auto kK = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, k));
constexpr auto kV = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, v));

void load_queries(StageWriter& w, const SetupRegs& s) {
  const auto [desc, offset] = locate_queries(w, s, kQ, kRowBytes);
  for (std::uint32_t step = 0; step < kHeadSteps; ++step) {
    w.op(Op::kBufferLoadDwordx4, {w.reg("q", step), offset, desc, Imm{0}}, "Q^T operand, rows past the end read 0",
         {.offset = static_cast<std::int32_t>(32 * step), .offen = true});
  }
}

// Descriptor and per-lane offset of K or V. LDS placement is linear in the lane, so the bank swizzle permutes the
// 16-byte chunks of the memory row that a lane fetches (gfx950-isa.md 3.1): K by row % 16, V by 4 * (row % 4).
void prepare_operand(StageWriter& w, const SetupRegs& s, const std::string& name, std::int32_t args_offset) {
  const Reg args = w.stemp(name + "_args", 8);
  w.op(Op::kSLoadDwordx8, {args, w.reg("kernarg"), Imm{args_offset}}, name + ": address and strides");
  const Reg desc = w.reg(name + "_desc");
  w.op(Op::kSMovB64, {desc.sub(0, 2), args.sub(0, 2)});
  add_scaled(w, desc.sub(0, 2), w.reg("batch"), args.sub(6, 2), "batch");
  add_scaled(w, desc.sub(0, 2), s.key_head, args.sub(4, 2), "key head");
  w.op(Op::kSMovB32, {desc.sub(2), Imm{0}});
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kBufferWord3}});
  w.op(Op::kSMovB32, {w.reg(name + "_left"), s.lengths.sub(1)}, "keys not yet loaded");
  w.op(Op::kSMovB32, {w.reg(name + "_stride"), args.sub(2)}, "token stride, below 2^26 (checked at launch)");

  const Reg in_load = w.vtemp(name + "_row");
  const Reg row = w.vtemp(name + "_group_row");
  const Reg chunk = w.vtemp(name + "_chunk");
  const Reg wave_rows = w.stemp(name + "_wave_rows");
  w.op(Op::kVLshrrevB32, {in_load, Imm{4}, s.lane}, "row within a load: lane / 16");
  w.op(Op::kSLshlB32, {wave_rows, w.wave(), Imm{2}});
  w.op(Op::kVAddU32, {row, wave_rows, in_load}, "row of the first load: 4 * wave + lane / 16");
  w.op(Op::kVAndB32, {chunk, Imm{15}, s.lane}, "16-byte chunk of the LDS row");
  const Reg swizzle = w.vtemp(name + "_swizzle");
  if (name == "k") {
    w.op(Op::kVAndB32, {swizzle, Imm{15}, row});
  } else {
    w.op(Op::kVLshlrevB32, {swizzle, Imm{2}, in_load});
  }
  w.op(Op::kVXorB32, {chunk, swizzle, chunk}, "chunk of the memory row");
  const Reg offset = w.reg(name + "_offset");
  w.op(Op::kVMulLoU32, {offset, row, args.sub(2)});
  w.op(Op::kVLshlrevB32, {chunk, Imm{4}, chunk});
  w.op(Op::kVAddU32, {offset, offset, chunk});
}

// K fragment: lane reads key lane % 32, chunk 2 * step + half of the swizzled row; the step only flips address bits.
void prepare_key_reads(StageWriter& w, const SetupRegs& s) {
  const Reg chunk = w.vtemp("k_read_chunk");
  const Reg row = w.vtemp("k_read_row");
  w.op(Op::kVAndB32, {chunk, Imm{15}, s.lane}, "key % 16");
  w.op(Op::kVXorB32, {chunk, s.half, chunk});
  w.op(Op::kVLshlrevB32, {chunk, Imm{4}, chunk});
  w.op(Op::kVLshlrevB32, {row, Imm{8}, s.column});
  w.op(Op::kVAddU32, {w.reg("k_read"), row, chunk});
  for (std::uint32_t step = 1; step < kHeadSteps; ++step) {
    w.op(Op::kVXorB32, {w.reg("k_read", step), Imm{static_cast<std::int32_t>(32 * step)}, w.reg("k_read")});
  }
}

void clear_state(StageWriter& w) {
  for (std::uint32_t block = 0; block < kHeadBlocks; ++block) {
    for (std::uint16_t r = 0; r < 16; ++r) w.op(Op::kVMovB32, {w.reg("out", block).sub(r), Imm{0}});
  }
  // Low enough that any real score moves it, finite so that a masked score (-inf) minus it is -inf and not NaN.
  w.op(Op::kVMovB32, {w.reg("reference"), FloatImm{-3.0e38F}});
  w.op(Op::kVMovB32, {w.reg("reference_limit"), FloatImm{-3.0e38F}});
  w.op(Op::kVMovB32, {w.reg("row_sum"), Imm{0}});
  w.op(Op::kSMovB32, {w.reg("key_position"), Imm{0}});
}

}  // namespace

void setup(StageWriter& w, const Shape& shape) {
  const SetupRegs s = begin_setup(w, shape.mask);
  w.op(Op::kSLshlB32, {w.reg("wave_lds"), w.wave(), Imm{10}}, "this wave's share of a load round");
  load_queries(w, s);
  prepare_operand(w, s, "k", kK);
  prepare_operand(w, s, "v", kV);
  prepare_key_reads(w, s);
  prepare_value_reads(w, s, "v_read");
  prepare_limits(w, shape.mask, s);
  count_trips(w, shape.mask, s);
  clear_state(w);
  apply_scale(w, s, "q", kHeadSteps);
}

}  // namespace zyfa::schedules::forward
