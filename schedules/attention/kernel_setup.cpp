#include "schedules/attention/kernel_setup.h"

#include <bit>
#include <cstddef>
#include <utility>

#include "schedules/select/kernel_args.h"

namespace zyfa::schedules::forward {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kOutput = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, o));
constexpr auto kLse = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, lse_address));
constexpr auto kLengths = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, query_length));
constexpr auto kDescales = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, q_descale));
constexpr auto kTensorBytes = static_cast<std::int32_t>(sizeof(TensorArgs));

std::int32_t group_queries(StageWriter& w) {
  return static_cast<std::int32_t>(w.placement().queries * w.placement().waves);
}

Reg load_tensor(StageWriter& w, Reg kernarg, const std::string& name, std::int32_t offset, Reg to) {
  w.op(Op::kSLoadDwordx8, {to, kernarg, Imm{offset}}, name + ": address and strides");
  return to;
}

Arguments load_arguments(StageWriter& w, Reg kernarg, const ArgumentChoice& choice) {
  Arguments args;
  args.lengths = w.stemp("lengths", 4);
  w.op(Op::kSLoadDwordx4, {args.lengths, kernarg, Imm{kLengths}}, "lengths, head ratio, scale");
  args.q = load_tensor(w, kernarg, "q", choice.tensors, w.stemp("q_args", 8));
  args.k = load_tensor(w, kernarg, "k", choice.tensors + kTensorBytes, w.stemp("k_args", 8));
  args.v = load_tensor(w, kernarg, "v", choice.tensors + 2 * kTensorBytes, w.stemp("v_args", 8));
  if (choice.descales) {
    args.descales = w.stemp("descale_args", 18);
    w.op(Op::kSLoadDwordx16, {args.descales.sub(0, 16), kernarg, Imm{kDescales}}, "descales: addresses and strides");
    w.op(Op::kSLoadDwordx2, {args.descales.sub(16, 2), kernarg, Imm{kDescales + 64}});
  }
  if (!choice.output) return args;
  load_tensor(w, kernarg, "o", kOutput, w.reg("o_args"));
  if (choice.lse == LseOutput::kWritten) {
    const Reg lse = w.reg("lse_args");
    w.op(Op::kSLoadDwordx4, {lse.sub(0, 4), kernarg, Imm{kLse}}, "lse: address, head stride");
    w.op(Op::kSLoadDwordx2, {lse.sub(4, 2), kernarg, Imm{kLse + 16}}, "lse: batch stride");
  }
  return args;
}

// From the lane number or a number that it is modulo 64.
void number_lane(StageWriter& w, Reg number, SetupRegs& s) {
  s.lane = w.vtemp("lane");
  s.column = w.vtemp("column");
  s.half = w.vtemp("half");
  w.op(Op::kVAndB32, {s.lane, Imm{63}, number}, "lane");
  w.op(Op::kVAndB32, {s.column, Imm{31}, number}, "query of this lane");
  w.op(Op::kVLshrrevB32, {s.half, Imm{5}, s.lane}, "lane half");
}

}  // namespace

SetupRegs begin_setup(StageWriter& w, const ArgumentChoice& choice) {
  const Reg kernarg = w.pinned(jit::Bank::kSgpr, 2, "abi_kernarg", 0);
  const Reg tile_id = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_x", 2);
  const Reg head_id = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_y", 3);
  const Reg batch_id = w.pinned(jit::Bank::kSgpr, 1, "abi_workgroup_z", 4);
  const Reg thread = w.pinned(jit::Bank::kVgpr, 1, "abi_thread", 0);
  SetupRegs s;
  s.args = load_arguments(w, kernarg, choice);
  s.tile_id = tile_id;
  w.op(Op::kSMovB64, {w.reg("kernarg"), kernarg});
  w.op(Op::kSMovB32, {w.reg("head"), head_id});
  w.op(Op::kSMovB32, {w.reg("batch"), batch_id});
  const Reg wave = w.vtemp("wave");
  w.op(Op::kVLshrrevB32, {wave, Imm{6}, thread});
  number_lane(w, thread, s);
  w.op(Op::kVReadfirstlaneB32, {w.wave(), wave}, "wave of the workgroup");
  return s;
}

SetupRegs resume_setup(StageWriter& w, const ArgumentChoice& choice) {
  SetupRegs s;
  s.args = load_arguments(w, w.reg("kernarg"), choice);
  const Reg lane = w.vtemp("lane_number");
  w.op(Op::kVMbcntLo, {lane, Imm{-1}, Imm{0}});
  w.op(Op::kVMbcntHi, {lane, Imm{-1}, lane});
  number_lane(w, lane, s);
  return s;
}

void locate_key_head(StageWriter& w, SetupRegs& s) {
  s.key_head = w.stemp("key_head");
  w.op(Op::kSLshlB32, {s.key_head, w.reg("head"), Imm{1}});
  w.op(Op::kSAddU32, {s.key_head, s.key_head, Imm{1}});
  w.op(Op::kSMulHiU32, {s.key_head, s.key_head, s.args.lengths.sub(2)}, "head / (query heads per key head)");
}

// Workgroup id x counts query tiles; causal kernels take the longest rows first so that the last workgroups are short.
void locate_rows(StageWriter& w, MaskKind mask, SetupRegs& s) {
  s.group_row = w.stemp("group_row");
  w.op(Op::kSMovB32, {w.reg("query_length"), s.args.lengths.sub(0)});
  const Imm shift{std::countr_zero(static_cast<std::uint32_t>(group_queries(w)))};
  if (mask == MaskKind::kCausal) {
    const Reg tiles = w.stemp("tiles");
    w.op(Op::kSAddU32, {tiles, s.args.lengths.sub(0), Imm{group_queries(w) - 1}});
    w.op(Op::kSLshrB32, {tiles, tiles, shift}, "query tiles");
    w.op(Op::kSSubU32, {tiles, tiles, Imm{1}});
    w.op(Op::kSSubU32, {tiles, tiles, s.tile_id}, "longest rows first");
    w.op(Op::kSLshlB32, {s.group_row, tiles, shift});
  } else {
    w.op(Op::kSLshlB32, {s.group_row, s.tile_id, shift}, "first query of the workgroup");
  }
  w.op(Op::kSLshlB32, {w.reg("row0"), w.wave(), Imm{std::countr_zero(w.placement().queries)}});
  w.op(Op::kSAddU32, {w.reg("row0"), w.reg("row0"), s.group_row}, "first query of the wave");
}

void describe_key_rows(StageWriter& w, const SetupRegs& s, const std::string& name, Reg args) {
  const Reg desc = w.reg(name + "_desc");
  const Reg address = desc.sub(0, 2);
  add_scaled(w, address, args.sub(0, 2), w.reg("batch"), args.sub(6, 2), "batch");
  add_scaled(w, address, s.key_head, args.sub(4, 2), "key head");
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kBufferWord3}});
  w.op(Op::kSMovB32, {w.reg(name + "_left"), s.args.lengths.sub(1)}, "keys not yet loaded");
  w.op(Op::kSMovB32, {w.reg(name + "_stride"), args.sub(2)}, "token stride, below 2^26 (checked at launch)");
}

Reg first_row_of(StageWriter& w, std::uint32_t block) {
  if (block == 0) return w.reg("row0");
  const Reg row = w.stemp("block_row0");
  w.op(Op::kSAddU32, {row, w.reg("row0"), Imm{static_cast<std::int32_t>(kQueryBlock * block)}},
       "first query of the block");
  return row;
}

namespace {

void prepare_limits_of(StageWriter& w, MaskKind mask, const SetupRegs& s, Reg row0) {
  const Reg last_key = w.stemp("last_key");
  const Reg limit = w.reg("key_limit");
  w.op(Op::kSSubI32, {last_key, s.args.lengths.sub(1), Imm{1}});
  if (mask == MaskKind::kCausal) {
    const Reg diagonal = w.stemp("diagonal");
    w.op(Op::kSSubI32, {diagonal, s.args.lengths.sub(1), s.args.lengths.sub(0)}, "Sk - Sq: bottom-right aligned");
    w.op(Op::kSAddI32, {diagonal, diagonal, row0});
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

}  // namespace

void prepare_limits(StageWriter& w, MaskKind mask, const SetupRegs& s) {
  for_each_query_block(w, [&](std::uint32_t block) { prepare_limits_of(w, mask, s, first_row_of(w, block)); });
}

void count_trips(StageWriter& w, MaskKind mask, const SetupRegs& s, std::uint32_t block_keys) {
  const Reg keys = w.stemp("keys");
  if (mask == MaskKind::kCausal) {
    w.op(Op::kSAddI32, {keys, s.group_row, Imm{group_queries(w)}});
    w.op(Op::kSMinI32, {keys, keys, s.args.lengths.sub(0)}, "one past the workgroup's last query");
    w.op(Op::kSSubI32, {keys, keys, s.args.lengths.sub(0)});
    w.op(Op::kSAddI32, {keys, keys, s.args.lengths.sub(1)}, "keys that query sees");
    w.op(Op::kSMaxI32, {keys, keys, Imm{0}});
  } else {
    w.op(Op::kSMovB32, {keys, s.args.lengths.sub(1)});
  }
  w.op(Op::kSAddU32, {keys, keys, Imm{static_cast<std::int32_t>(block_keys - 1)}});
  w.op(Op::kSLshrB32, {w.trips(), keys, Imm{std::countr_zero(block_keys)}},
       "blocks of " + std::to_string(block_keys) + " keys");
}

void add_scaled(StageWriter& w, Reg to, Reg base, Reg index, Reg stride, const std::string& what) {
  const Reg low = w.stemp("low");
  const Reg high = w.stemp("high");
  const Reg cross = w.stemp("cross");
  w.op(Op::kSMulI32, {low, index, stride.sub(0)});
  w.op(Op::kSMulHiU32, {high, index, stride.sub(0)});
  w.op(Op::kSMulI32, {cross, index, stride.sub(1)});
  w.op(Op::kSAddU32, {high, high, cross});
  w.op(Op::kSAddU32, {to.sub(0), base.sub(0), low});
  w.op(Op::kSAddcU32, {to.sub(1), base.sub(1), high}, "+ " + what + " * stride");
}

void add_rows(StageWriter& w, Reg to, Reg base, Reg row, Reg stride) {
  const Reg low = w.stemp("low");
  const Reg high = w.stemp("high");
  w.op(Op::kSMulI32, {low, row, stride});
  w.op(Op::kSMulHiU32, {high, row, stride});
  w.op(Op::kSAddU32, {to.sub(0), base.sub(0), low});
  w.op(Op::kSAddcU32, {to.sub(1), base.sub(1), high}, "+ row * stride");
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

QueryLoads::QueryLoads(StageWriter& w, const SetupRegs& s, std::uint32_t row_bytes, std::vector<Reg> to)
    : to_(std::move(to)), desc_(w.stemp("q_desc", 4)), offsets_{w.vtemp("q_offset")} {
  const Reg& args = s.args.q;
  const Reg address = desc_.sub(0, 2);
  add_scaled(w, address, args.sub(0, 2), w.reg("batch"), args.sub(6, 2), "batch");
  add_scaled(w, address, w.reg("head"), args.sub(4, 2), "head");
  add_rows(w, address, address, w.reg("row0"), args.sub(2));
  const Reg rows = w.stemp("q_rows");
  w.op(Op::kSSubI32, {rows, w.reg("query_length"), w.reg("row0")});
  row_span(w, desc_.sub(2), {rows, static_cast<std::int32_t>(w.placement().queries), args.sub(2), row_bytes}, "q");
  w.op(Op::kSMovB32, {desc_.sub(3), Imm{kBufferWord3}});
  const Reg half = w.vtemp("q_half");
  w.op(Op::kVMulLoU32, {offsets_[0], s.column, args.sub(2)});
  w.op(Op::kVLshlrevB32, {half, Imm{4}, s.half});
  w.op(Op::kVAddU32, {offsets_[0], offsets_[0], half}, "row * stride + 16 * half");
  for (std::uint32_t block = 1; block < query_blocks(w.placement()); ++block) {
    const Reg step = w.stemp("q_block_bytes");
    offsets_.push_back(w.vtemp("q_offset"));
    w.op(Op::kSMulI32, {step, args.sub(2), Imm{static_cast<std::int32_t>(kQueryBlock * block)}});
    w.op(Op::kVAddU32, {offsets_[block], step, offsets_[0]}, "the same row of the other block");
  }
}

void QueryLoads::load(StageWriter& w, std::size_t loads) {
  const std::size_t of_block = to_.size() / offsets_.size();
  for (; loads > 0 && next_ < to_.size(); --loads, ++next_) {
    w.op(Op::kBufferLoadDwordx4, {to_[next_], offsets_[next_ / of_block], desc_, Imm{0}},
         "Q^T operand, rows past the end read 0",
         {.offset = static_cast<std::int32_t>(32 * (next_ % of_block)), .offen = true});
  }
}

void clear_output(StageWriter& w, std::uint32_t first, std::uint32_t last) {
  for_each_query_block(w, [&](std::uint32_t /*queries*/) {
    for (std::uint32_t block = first; block < last; ++block) {
      const Reg out = w.reg("out", block);
      const Op clear = out.bank == jit::Bank::kAgpr ? Op::kVAccvgprWrite : Op::kVMovB32;
      for (std::uint16_t r = 0; r < 16; ++r) w.op(clear, {out.sub(r), Imm{0}});
    }
  });
}

}  // namespace zyfa::schedules::forward
