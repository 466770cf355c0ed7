#include "schedules/attention/kernel_setup.h"

#include <bit>
#include <cstddef>

#include "schedules/select/kernel_args.h"

namespace zyfa::schedules::forward {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kLengths = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, query_length));

std::int32_t group_queries(StageWriter& w) { return static_cast<std::int32_t>(kWaveQueries * w.placement().waves); }

// Workgroup id x counts query tiles; causal kernels take the longest rows first so that the last workgroups are short.
void locate_group(StageWriter& w, MaskKind mask, const Reg& tile_id, SetupRegs& s) {
  s.group_row = w.stemp("group_row");
  const Imm shift{std::countr_zero(static_cast<std::uint32_t>(group_queries(w)))};
  if (mask == MaskKind::kCausal) {
    const Reg tiles = w.stemp("tiles");
    w.op(Op::kSAddU32, {tiles, s.lengths.sub(0), Imm{group_queries(w) - 1}});
    w.op(Op::kSLshrB32, {tiles, tiles, shift}, "query tiles");
    w.op(Op::kSSubU32, {tiles, tiles, Imm{1}});
    w.op(Op::kSSubU32, {tiles, tiles, tile_id}, "longest rows first");
    w.op(Op::kSLshlB32, {s.group_row, tiles, shift});
  } else {
    w.op(Op::kSLshlB32, {s.group_row, tile_id, shift}, "first query of the workgroup");
  }
}

void locate_lane(StageWriter& w, const Reg& thread, SetupRegs& s) {
  const Reg wave = w.vtemp("wave");
  w.op(Op::kVLshrrevB32, {wave, Imm{6}, thread});
  w.op(Op::kVReadfirstlaneB32, {w.wave(), wave}, "wave of the workgroup");
  s.lane = w.vtemp("lane");
  s.column = w.vtemp("column");
  s.half = w.vtemp("half");
  w.op(Op::kVAndB32, {s.lane, Imm{63}, thread}, "lane");
  w.op(Op::kVAndB32, {s.column, Imm{31}, thread}, "query of this lane");
  w.op(Op::kVLshrrevB32, {s.half, Imm{5}, s.lane}, "lane half");
  w.op(Op::kSLshlB32, {w.reg("row0"), w.wave(), Imm{5}});
  w.op(Op::kSAddU32, {w.reg("row0"), w.reg("row0"), s.group_row}, "first query of the wave");
}

void load_lengths(StageWriter& w, SetupRegs& s) {
  s.lengths = w.stemp("lengths", 4);
  w.op(Op::kSLoadDwordx4, {s.lengths, w.reg("kernarg"), Imm{kLengths}}, "lengths, head ratio, scale");
  s.key_head = w.stemp("key_head");
  w.op(Op::kSLshlB32, {s.key_head, w.reg("head"), Imm{1}});
  w.op(Op::kSAddU32, {s.key_head, s.key_head, Imm{1}});
  w.op(Op::kSMulHiU32, {s.key_head, s.key_head, s.lengths.sub(2)}, "head / (query heads per key head)");
}

}  // namespace

SetupRegs begin_setup(StageWriter& w, MaskKind mask) {
  const Reg kernarg = w.pinned(jit::Bank::kSgpr, 2, "abi_kernarg", 0);
  const Reg tile_id = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_x", 2);
  const Reg head_id = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_y", 3);
  const Reg batch_id = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_z", 4);
  const Reg thread = w.pinned(jit::Bank::kVgpr, 1, "abi_thread", 0);
  w.op(Op::kSMovB64, {w.reg("kernarg"), kernarg});
  w.op(Op::kSMovB32, {w.reg("head"), head_id});
  w.op(Op::kSMovB32, {w.reg("batch"), batch_id});
  SetupRegs s;
  load_lengths(w, s);
  w.op(Op::kSMovB32, {w.reg("query_length"), s.lengths.sub(0)});
  locate_group(w, mask, tile_id, s);
  locate_lane(w, thread, s);
  return s;
}

SetupRegs resume_setup(StageWriter& w) {
  SetupRegs s;
  load_lengths(w, s);
  s.lane = w.vtemp("lane");
  s.column = w.vtemp("column");
  s.half = w.vtemp("half");
  w.op(Op::kVMbcntLo, {s.lane, Imm{-1}, Imm{0}});
  w.op(Op::kVMbcntHi, {s.lane, Imm{-1}, s.lane}, "lane");
  w.op(Op::kVAndB32, {s.column, Imm{31}, s.lane}, "query of this lane");
  w.op(Op::kVLshrrevB32, {s.half, Imm{5}, s.lane}, "lane half");
  return s;
}

void prepare_limits(StageWriter& w, MaskKind mask, const SetupRegs& s) {
  const Reg last_key = w.stemp("last_key");
  const Reg limit = w.reg("key_limit");
  w.op(Op::kSSubI32, {last_key, s.lengths.sub(1), Imm{1}});
  if (mask == MaskKind::kCausal) {
    const Reg diagonal = w.stemp("diagonal");
    w.op(Op::kSSubI32, {diagonal, s.lengths.sub(1), s.lengths.sub(0)}, "Sk - Sq: bottom-right aligned");
    w.op(Op::kSAddI32, {diagonal, diagonal, w.reg("row0")});
    w.op(Op::kSMinI32, {w.reg("first_limit"), diagonal, last_key});
    w.op(Op::kVAddU32, {limit, diagonal, s.column});
    w.op(Op::kVMinI32, {limit, last_key, limit});
  } else {
    w.op(Op::kSMovB32, {w.reg("first_limit"), last_key});
    w.op(Op::kVMovB32, {limit, last_key});
  }
  const Reg shift = w.vtemp("half_rows");
  w.op(Op::kVLshlrevB32, {shift, Imm{2}, s.half});
  w.op(Op::kVSubU32, {limit, limit, shift});
}

void count_trips(StageWriter& w, MaskKind mask, const SetupRegs& s) {
  const Reg keys = w.stemp("keys");
  if (mask == MaskKind::kCausal) {
    w.op(Op::kSAddI32, {keys, s.group_row, Imm{group_queries(w)}});
    w.op(Op::kSMinI32, {keys, keys, s.lengths.sub(0)}, "one past the workgroup's last query");
    w.op(Op::kSSubI32, {keys, keys, s.lengths.sub(0)});
    w.op(Op::kSAddI32, {keys, keys, s.lengths.sub(1)}, "keys that query sees");
    w.op(Op::kSMaxI32, {keys, keys, Imm{0}});
  } else {
    w.op(Op::kSMovB32, {keys, s.lengths.sub(1)});
  }
  w.op(Op::kSAddU32, {keys, keys, Imm{static_cast<std::int32_t>(kKeyTile - 1)}});
  w.op(Op::kSLshrB32, {w.trips(), keys, Imm{6}}, "blocks of 64 keys");
}

void add_scaled(StageWriter& w, Reg base, Reg index, Reg stride, const std::string& what) {
  const Reg low = w.stemp("low");
  const Reg high = w.stemp("high");
  const Reg cross = w.stemp("cross");
  w.op(Op::kSMulI32, {low, index, stride.sub(0)});
  w.op(Op::kSMulHiU32, {high, index, stride.sub(0)});
  w.op(Op::kSMulI32, {cross, index, stride.sub(1)});
  w.op(Op::kSAddU32, {high, high, cross});
  w.op(Op::kSAddU32, {base.sub(0), base.sub(0), low});
  w.op(Op::kSAddcU32, {base.sub(1), base.sub(1), high}, "+ " + what + " * stride");
}

void row_span(StageWriter& w, Reg to, const RowSpan& span, const std::string& what) {
  const Reg bytes = w.stemp("span");
  w.op(Op::kSMinI32, {bytes, span.rows, Imm{span.most}});
  w.op(Op::kSSubI32, {bytes, bytes, Imm{1}});
  w.op(Op::kSMulI32, {bytes, bytes, span.stride});
  w.op(Op::kSAddU32, {bytes, bytes, Imm{static_cast<std::int32_t>(span.row_bytes)}});
  w.op(Op::kSCmpGtI32, {span.rows, Imm{0}});
  w.op(Op::kSCselectB32, {to, bytes, Imm{0}}, what + ": bytes in range, so that rows past the end read 0");
}

QueryRows locate_queries(StageWriter& w, const SetupRegs& s, std::int32_t args_offset, std::uint32_t row_bytes) {
  const Reg args = w.stemp("q_args", 8);
  w.op(Op::kSLoadDwordx8, {args, w.reg("kernarg"), Imm{args_offset}}, "q: address and strides");
  const Reg desc = w.stemp("q_desc", 4);
  w.op(Op::kSMovB64, {desc.sub(0, 2), args.sub(0, 2)});
  add_scaled(w, desc.sub(0, 2), w.reg("batch"), args.sub(6, 2), "batch");
  add_scaled(w, desc.sub(0, 2), w.reg("head"), args.sub(4, 2), "head");
  add_scaled(w, desc.sub(0, 2), w.reg("row0"), args.sub(2, 2), "row");
  const Reg rows = w.stemp("q_rows");
  w.op(Op::kSSubI32, {rows, w.reg("query_length"), w.reg("row0")});
  row_span(w, desc.sub(2), {rows, kWaveQueries, args.sub(2), row_bytes}, "q");
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kBufferWord3}});
  const Reg offset = w.vtemp("q_offset");
  const Reg half = w.vtemp("q_half");
  w.op(Op::kVMulLoU32, {offset, s.column, args.sub(2)});
  w.op(Op::kVLshlrevB32, {half, Imm{4}, s.half});
  w.op(Op::kVAddU32, {offset, offset, half}, "row * stride + 16 * half");
  return {desc, offset};
}

}  // namespace zyfa::schedules::forward
