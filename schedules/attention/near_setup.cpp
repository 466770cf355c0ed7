// Setup of the near loop, the first of its kernel: BF16 queries, descriptors, LDS addresses, which blocks are near.
#include <cstddef>

#include "schedules/attention/bf16_operands.h"
#include "schedules/attention/near_parts.h"
#include "schedules/select/kernel_args.h"

namespace zyfa::schedules::near {
namespace {

using forward::SetupRegs;
using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kQ = static_cast<std::int32_t>(offsetof(AttentionForwardArgs, q_near));

Imm imm(std::uint32_t value) { return Imm{static_cast<std::int32_t>(value)}; }

forward::QueryLoads locate_queries(StageWriter& w, const SetupRegs& s, const NearShape& shape) {
  std::vector<Reg> to;
  for_each_query_block(w, [&](std::uint32_t /*queries*/) {
    for (std::uint32_t step = 0; step < shape.head_dim / 16; ++step) to.push_back(w.reg("near_q", step));
  });
  return {w, s, 2 * shape.head_dim, std::move(to)};
}

// K fragment: lane reads key lane % 32, chunk 2 * step + half of the swizzled row.
void prepare_key_reads(StageWriter& w, const SetupRegs& s, const NearShape& shape) {
  const bool wide = shape.head_dim == 128;
  const Reg chunk = w.vtemp("k_read_chunk");
  const Reg row = w.vtemp("k_read_row");
  if (wide) {
    w.op(Op::kVAndB32, {chunk, Imm{15}, s.column}, "key % 16");
  } else {
    w.op(Op::kVLshrrevB32, {chunk, Imm{1}, s.column});
    w.op(Op::kVAndB32, {chunk, Imm{7}, chunk}, "key / 2 % 8");
  }
  w.op(Op::kVXorB32, {chunk, s.half, chunk});
  w.op(Op::kVMulU32U24, {row, imm(2 * shape.head_dim), s.column});
  w.op(Op::kVLshlAddU32, {w.reg("near_k_read"), chunk, Imm{4}, row});
  // Rows are multiples of the bytes whose address bits the steps flip.
  for (std::uint32_t step = 1; step < (wide ? 8U : 4U); ++step) {
    w.op(Op::kVXorB32, {w.reg("near_k_read", step), imm(32 * step), w.reg("near_k_read")});
  }
}

// near_from: the block before the one that holds the last key that the first of these 256 queries sees, but not before
// block 1; without a diagonal all blocks but the first are the 8-bit loop's, but for one more where they would be odd.
// trips: block 0 and those from near_from on.
void choose_blocks(StageWriter& w, const SetupRegs& s, const NearShape& shape) {
  const Reg blocks = w.reg("blocks");
  const Reg from = w.reg("near_from");
  forward::count_trips(w, shape.mask, s);
  w.op(Op::kSMovB32, {blocks, w.trips()});
  if (shape.mask == MaskKind::kCausal) {
    w.op(Op::kSSubI32, {from, s.args.lengths.sub(1), s.args.lengths.sub(0)});
    // Of 256 queries whatever the workgroup has, so that every placement gives the same bits.
    const Reg first_row = w.stemp("first_row");
    w.op(Op::kSAndB32, {first_row, s.group_row, Imm{-static_cast<std::int32_t>(kNearQueries)}});
    w.op(Op::kSAddI32, {from, from, first_row}, "last key that the first of these queries sees");
    w.op(Op::kSAshrI32, {from, from, Imm{6}});
    w.op(Op::kSSubI32, {from, from, Imm{1}});
    w.op(Op::kSMinI32, {from, from, blocks}, "first queries beyond the last key");
  } else {
    w.op(Op::kSMovB32, {from, blocks});
  }
  w.op(Op::kSMaxI32, {from, from, Imm{1}});
  w.op(Op::kSSubI32, {from, from, Imm{1}});
  w.op(Op::kSOrB32, {from, from, Imm{1}}, "odd, so that the 8-bit loop has whole iterations of two blocks");
  const Reg diagonal = w.stemp("diagonal_blocks");
  w.op(Op::kSSubI32, {diagonal, blocks, from});
  w.op(Op::kSMaxI32, {diagonal, diagonal, Imm{0}});
  w.op(Op::kSMinI32, {w.trips(), blocks, Imm{1}});
  w.op(Op::kSAddI32, {w.trips(), w.trips(), diagonal}, "near blocks");
  const auto jump = [&](const char* name) {
    w.op(Op::kSLshlB32, {w.reg(name), from, Imm{6}}, "from block 0 to the first on the diagonal");
  };
  jump("k_jump");
  jump("v_jump");
  for_each_query_block(w, [&](std::uint32_t /*queries*/) { jump("mask_jump"); });
}

void clear_state(StageWriter& w, const NearShape& shape, forward::QueryLoads& queries) {
  for (std::uint32_t block = forward::kBlocksClearedFirst; block < forward::kHeadBlocks; ++block) {
    forward::clear_output(w, block, block + 1);
    queries.load(w, 3);
  }
  for_each_query_block(w, [&](std::uint32_t /*queries*/) {
    for (std::uint16_t r = 0; r < shape.sum_registers; ++r) w.op(Op::kVMovB32, {w.reg("row_sum").sub(r), Imm{0}});
    // Low enough that any real score moves it, finite so that a masked score (-inf) minus it is -inf and not NaN.
    w.op(Op::kVMovB32, {w.reg("reference"), FloatImm{-3.0e38F}});
    w.op(Op::kVMovB32, {w.reg("reference_limit"), FloatImm{-3.0e38F}});
    w.op(Op::kSMovB32, {w.reg("key_position"), Imm{0}});
  });
}

// Under the latency of the first keys.
SetupRest continue_setup(StageWriter& w, const NearShape& shape, const SetupRegs& s,
                         const forward::LanePlaces& values) {
  forward::describe_operand(w, s, value_tile(), s.args.v, values);
  return {{"load_k", "load_v"}, [=](StageWriter& later) {
            forward::QueryLoads queries = locate_queries(later, s, shape);
            queries.load(later, 2);
            forward::prepare_limits(later, shape.mask, s);
            queries.load(later, 2);
            clear_state(later, shape, queries);
            queries.load_rest(later);
            forward::apply_scale(later, s, "near_q", shape.head_dim / 16);
            return SetupRest{};
          }};
}

// One jump to the diagonal, then block by block.
void step(StageWriter& w, const forward::OperandTile& tile) {
  const Reg jump = w.reg(tile.name + "_jump");
  forward::step_operand(w, tile, jump);
  w.op(Op::kSMovB32, {jump, imm(kKeyTile)});
}

}  // namespace

forward::OperandTile key_tile(const NearShape& shape) {
  return {"k", 2 * shape.head_dim, shape.head_dim == 128 ? forward::Swizzle::kRow : forward::Swizzle::kHalfRow};
}

forward::OperandTile value_tile() { return {"v", forward::kRowBytes, forward::Swizzle::kTransposeB16}; }

SetupRest setup(StageWriter& w, const NearShape& shape) {
  SetupRegs s = forward::begin_setup(w, {.tensors = kQ});
  const forward::LanePlaces keys = forward::place_lanes(w, s, key_tile(shape));
  const forward::LanePlaces values = forward::place_lanes(w, s, value_tile());
  prepare_key_reads(w, s, shape);
  forward::prepare_value_reads(w, s, "near_v_read");
  forward::clear_output(w, 0, forward::kBlocksClearedFirst);
  forward::locate_key_head(w, s);
  forward::locate_rows(w, shape.mask, s);
  forward::describe_operand(w, s, key_tile(shape), s.args.k, keys);
  choose_blocks(w, s, shape);
  return {{"load_k"}, [=](StageWriter& later) { return continue_setup(later, shape, s, values); }};
}

void load_keys(StageWriter& w, const NearShape& shape) {
  forward::load_block(w, key_tile(shape), w.reg("k_left"));
  step(w, key_tile(shape));
}

void load_values(StageWriter& w) {
  forward::load_block(w, value_tile(), w.reg("v_left"));
  step(w, value_tile());
}

void mask(StageWriter& w) {
  const Reg position = w.reg("key_position");
  const Reg jump = w.reg("mask_jump");
  forward::mask(w);
  w.op(Op::kSAddI32, {position, position, jump});
  w.op(Op::kSSubI32, {position, position, imm(kKeyTile)}, "first key of the next block");
  w.op(Op::kSMovB32, {jump, imm(kKeyTile)});
}

}  // namespace zyfa::schedules::near
