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

QueryLoads locate_queries(StageWriter& w, const SetupRegs& s) {
  std::vector<Reg> to;
  for_each_query_block(w, [&](std::uint32_t /*queries*/) {
    for (std::uint32_t step = 0; step < kHeadSteps; ++step) to.push_back(w.reg("q", step));
  });
  return {w, s, kRowBytes, std::move(to)};
}

// Of the first load: the lane's row, and its 16-byte chunk of the memory row in bytes. LDS placement is linear in the
// lane, so the bank swizzle permutes the chunks of the memory row that a lane fetches (gfx950-isa.md 3.1): K by
// row % 16, V by 4 * (row % 4).
struct LanePlace {
  Reg row, byte;  // VGPRs
};

LanePlace place_lane(StageWriter& w, const SetupRegs& s, const std::string& name) {
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
  w.op(Op::kVLshlrevB32, {chunk, Imm{4}, chunk});
  return {row, chunk};
}

// Per-lane offset of K or V.
void offset_lanes(StageWriter& w, const std::string& operand, Reg args, const LanePlace& place) {
  const Reg offset = w.reg(operand + "_offset");
  w.op(Op::kVMulLoU32, {offset, place.row, args.sub(2)});
  w.op(Op::kVAddU32, {offset, offset, place.byte});
}

void describe_keys(StageWriter& w, const SetupRegs& s, const LanePlace& place) {
  describe_key_rows(w, s, "k", s.args.k);
  offset_lanes(w, "k", s.args.k, place);
}

void describe_values(StageWriter& w, const SetupRegs& s, const LanePlace& place) {
  describe_key_rows(w, s, "v_first", s.args.v);
  describe_key_rows(w, s, "v_rest", s.args.v);
  step_rows(w, "v_rest", kBlockKeys);
  offset_lanes(w, "v", s.args.v, place);
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

void clear_state(StageWriter& w, QueryLoads& queries) {
  for (std::uint32_t block = kBlocksClearedFirst; block < kHeadBlocks; ++block) {
    clear_output(w, block, block + 1);
    queries.load(w, 2);
  }
  for_each_query_block(w, [&](std::uint32_t /*queries*/) {
    // Low enough that any real score moves it, finite so that a masked score (-inf) minus it is -inf and not NaN.
    w.op(Op::kVMovB32, {w.reg("reference"), FloatImm{-3.0e38F}});
    w.op(Op::kVMovB32, {w.reg("reference_limit"), FloatImm{-3.0e38F}});
    w.op(Op::kVMovB32, {w.reg("row_sum"), Imm{0}});
    w.op(Op::kSMovB32, {w.reg("key_position"), Imm{0}});
  });
}

// Under the latency of the first keys. Q goes before V and further keys: the first products need it, and memory brings
// no more than a few blocks at a time.
SetupRest continue_setup(StageWriter& w, const Shape& shape, SetupRegs s, const LanePlace& value_place) {
  locate_rows(w, shape.mask, s);
  QueryLoads queries = locate_queries(w, s);
  queries.load(w, 2);
  prepare_limits(w, shape.mask, s);
  count_trips(w, shape.mask, s, kIterationKeys);
  queries.load(w, 2);
  clear_state(w, queries);
  queries.load_rest(w);
  describe_values(w, s, value_place);
  return {{"load_k", "load_v_first", "load_v_rest"}, [s](StageWriter& later) {
            apply_scale(later, s, "q", kHeadSteps);
            return SetupRest{};
          }};
}

}  // namespace

SetupRest setup(StageWriter& w, const Shape& shape) {
  SetupRegs s = begin_setup(w, {.tensors = kQ, .output = true, .lse = shape.lse});
  w.op(Op::kSLshlB32, {w.reg("wave_lds"), w.wave(), Imm{10}}, "this wave's share of a load round");
  const LanePlace key_place = place_lane(w, s, "k");
  const LanePlace value_place = place_lane(w, s, "v");
  prepare_key_reads(w, s);
  prepare_value_reads(w, s, "v_read");
  for (std::uint32_t dims = 0; dims < kHeadBlocks; ++dims) {
    const Reg address = w.reg("v_read", dims);
    w.op(Op::kVAddU32, {address, Imm{static_cast<std::int32_t>(w.lds_base("v_first"))}, address});
  }
  clear_output(w, 0, kBlocksClearedFirst);
  locate_key_head(w, s);
  describe_keys(w, s, key_place);
  return {{"load_k"}, [=](StageWriter& later) { return continue_setup(later, shape, s, value_place); }};
}

}  // namespace zyfa::schedules::forward
