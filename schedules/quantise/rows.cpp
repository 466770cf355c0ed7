// Rows in and out of the quantise kernels: where a workgroup works, its loads, its walk over blocks.
#include <cstddef>

#include "schedules/attention/kernel_setup.h"
#include "schedules/quantise/parts.h"
#include "schedules/select/quantise_args.h"

namespace zyfa::schedules::quantising {
namespace {

using forward::add_scaled;
using forward::kBufferWord3;
using jit::Bank;
using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kInput = static_cast<std::int32_t>(offsetof(QuantiseArgs, input));
constexpr auto kTokens = static_cast<std::int32_t>(offsetof(QuantiseArgs, tokens));
constexpr auto kBlockTokens = static_cast<std::int32_t>(kQuantiseBlockTokens);

// -1.0 in lanes whose number has bit `bit` set, else 1.0.
void lane_sign(StageWriter& w, Reg to, Reg lane, std::int32_t bit) {
  w.op(Op::kVLshlrevB32, {to, Imm{31 - bit}, lane});
  w.op(Op::kVAndB32, {to, Imm{INT32_MIN}, to});
  w.op(Op::kVOrB32, {to, FloatImm{1.0F}, to}, "-1 where bit " + std::to_string(bit) + " of the lane is set");
}

void load_rows(StageWriter& w, const Shape& shape) {
  set_span(w, "in", 2 * shape.dims);
  for (std::uint32_t t = 0; t < shape.pieces() * kPieceTuples; ++t) {
    const std::uint32_t offset = 128 * (t / kPieceTuples) + 16 * (t % kPieceTuples);
    w.op(Op::kBufferLoadDwordx4, {w.reg("raw", t), w.reg("in_offset"), w.reg("in_desc"), Imm{0}},
         "rows past the end read 0", {.offset = static_cast<std::int32_t>(offset), .offen = true});
  }
  step(w, "in");
}

}  // namespace

void add_walk_tiles(const std::string& name, std::vector<Tile>& tiles) {
  using enum TileLife;
  tiles.push_back(scalar_tile(name + "_desc", kState, 4));
  tiles.push_back(scalar_tile(name + "_heads", kState, 1));   // left of the current tokens
  tiles.push_back(scalar_tile(name + "_tokens", kState, 1));  // left, those of the current block among them
  tiles.push_back(scalar_tile(name + "_stride", kConstant, 1));
  tiles.push_back(scalar_tile(name + "_step", kConstant, 2));
  tiles.push_back(scalar_tile(name + "_wrap", kConstant, 2));
  tiles.push_back(vector_tile(name + "_offset", kConstant, 1));
}

std::vector<Access> walk_accesses(const std::string& name) {
  return {{name + "_desc", AccessKind::kUpdate},
          {name + "_heads", AccessKind::kUpdate},
          {name + "_tokens", AccessKind::kUpdate}};
}

void set_span(StageWriter& w, const std::string& name, std::uint32_t row_bytes) {
  forward::row_span(w, w.reg(name + "_desc").sub(2),
                    {w.reg(name + "_tokens"), kBlockTokens, w.reg(name + "_stride"), row_bytes}, name);
}

void step(StageWriter& w, const std::string& name) {
  const Reg desc = w.reg(name + "_desc");
  const Reg heads = w.reg(name + "_heads");
  const Reg bytes = w.stemp("step", 2);
  const Reg tokens = w.stemp("step_tokens");
  w.op(Op::kSSubU32, {heads, heads, Imm{1}});
  w.op(Op::kSCmpEqU32, {heads, Imm{0}}, "last head of these tokens?");
  w.op(Op::kSCselectB32, {bytes.sub(0), w.reg(name + "_wrap").sub(0), w.reg(name + "_step").sub(0)});
  w.op(Op::kSCselectB32, {bytes.sub(1), w.reg(name + "_wrap").sub(1), w.reg(name + "_step").sub(1)});
  w.op(Op::kSCselectB32, {heads, w.reg("heads"), heads});
  w.op(Op::kSCselectB32, {tokens, Imm{kBlockTokens}, Imm{0}});
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), bytes.sub(0)});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), bytes.sub(1)}, "next head, or the first of the next tokens");
  w.op(Op::kSSubI32, {w.reg(name + "_tokens"), w.reg(name + "_tokens"), tokens});
}

void add_common_tiles(const Shape& shape, std::vector<Tile>& tiles) {
  using enum TileLife;
  tiles.push_back(vector_tile("raw", kIteration, 4, shape.pieces() * kPieceTuples));
  add_walk_tiles("in", tiles);
  tiles.push_back(scalar_tile("kernarg", kConstant, 2));
  tiles.push_back(scalar_tile("group", kConstant, 1));
  tiles.push_back(scalar_tile("key_head", kConstant, 1));
  tiles.push_back(scalar_tile("batch", kConstant, 1));
  tiles.push_back(scalar_tile("first_head", kConstant, 1));
  tiles.push_back(scalar_tile("first_token", kConstant, 1));
  tiles.push_back(scalar_tile("group_tokens", kConstant, 1));  // that exist; negative past the end
  tiles.push_back(scalar_tile("heads", kConstant, 1));
  tiles.push_back(scalar_tile("high_mask", kConstant, 1));
  tiles.push_back(scalar_tile("infinity", kConstant, 1));
  tiles.push_back(vector_tile("lane", kConstant, 1));
  tiles.push_back(vector_tile("row", kConstant, 1));
  tiles.push_back(vector_tile("lane_in_row", kConstant, 1));
  if (shape.rotation == Rotation::kHadamard) {
    tiles.push_back(vector_tile("prescale", kConstant, 2));
    tiles.push_back(vector_tile("sign", kConstant, 1, 2));
  }
}

void common_setup(StageWriter& w, const Shape& shape) {
  const Reg kernarg = w.pinned(Bank::kSgpr, 2, "abi_kernarg", 0);
  const Reg group = w.pinned(Bank::kSgpr, 1, "abi_workgroup_x", 2);
  const Reg key_head = w.pinned(Bank::kSgpr, 1, "abi_workgroup_y", 3);
  const Reg batch = w.pinned(Bank::kSgpr, 1, "abi_workgroup_z", 4);
  const Reg thread = w.pinned(Bank::kVgpr, 1, "abi_thread", 0);
  const Reg sizes = w.stemp("sizes", 4);
  w.op(Op::kSMovB64, {w.reg("kernarg"), kernarg});
  w.op(Op::kSLoadDwordx4, {sizes, w.reg("kernarg"), Imm{kTokens}}, "tokens, tokens of a group, heads");
  w.op(Op::kSMovB32, {w.reg("group"), group});
  w.op(Op::kSMovB32, {w.reg("key_head"), key_head});
  w.op(Op::kSMovB32, {w.reg("batch"), batch});
  w.op(Op::kSMovB32, {w.reg("high_mask"), Imm{static_cast<std::int32_t>(0xffff0000)}});
  w.op(Op::kSMovB32, {w.reg("infinity"), Imm{kInfinity}});
  w.op(Op::kVAndB32, {w.reg("lane"), Imm{63}, thread});
  w.op(Op::kVLshrrevB32, {w.reg("row"), Imm{2}, w.reg("lane")}, "four lanes a row");
  w.op(Op::kVAndB32, {w.reg("lane_in_row"), Imm{3}, w.reg("lane")});
  if (shape.rotation == Rotation::kHadamard) {
    for (std::uint16_t r = 0; r < 2; ++r) w.op(Op::kVMovB32, {w.reg("prescale").sub(r), FloatImm{kPrescale}});
    for (std::int32_t bit = 0; bit < 2; ++bit) {
      lane_sign(w, w.reg("sign", static_cast<std::uint32_t>(bit)), w.reg("lane"), bit);
    }
  }
  w.op(Op::kSMovB32, {w.reg("heads"), sizes.sub(2)});
  w.op(Op::kSMulI32, {w.reg("first_head"), w.reg("key_head"), w.reg("heads")});
  w.op(Op::kSMulI32, {w.reg("first_token"), w.reg("group"), sizes.sub(1)});
  const Reg tokens = w.reg("group_tokens");
  w.op(Op::kSSubI32, {tokens, sizes.sub(0), w.reg("first_token")});
  w.op(Op::kSMinI32, {tokens, tokens, sizes.sub(1)}, "tokens of this group");
  start_walk(w, "in", kInput, 32);

  const Reg trips = w.trips();
  w.op(Op::kSMaxI32, {trips, tokens, Imm{0}});
  w.op(Op::kSAddU32, {trips, trips, Imm{kBlockTokens - 1}});
  w.op(Op::kSLshrB32, {trips, trips, Imm{4}}, "blocks of 16 tokens");
  w.op(Op::kSMulI32, {trips, trips, w.reg("heads")});
}

// `lane_bytes`: contiguous bytes of a lane in each piece.
void start_walk(StageWriter& w, const std::string& name, std::int32_t tensor_args, std::uint32_t lane_bytes) {
  const Reg args = w.stemp(name + "_args", 8);
  w.op(Op::kSLoadDwordx8, {args, w.reg("kernarg"), Imm{tensor_args}}, name + ": address and strides");
  const Reg token_stride = args.sub(2, 2);
  const Reg head_stride = args.sub(4, 2);
  const Reg desc = w.reg(name + "_desc");
  w.op(Op::kSMovB64, {desc.sub(0, 2), args.sub(0, 2)});
  add_scaled(w, desc.sub(0, 2), w.reg("batch"), args.sub(6, 2), "batch");
  add_scaled(w, desc.sub(0, 2), w.reg("first_head"), head_stride, "head");
  add_scaled(w, desc.sub(0, 2), w.reg("first_token"), token_stride, "token");
  w.op(Op::kSMovB32, {desc.sub(2), Imm{0}});
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kBufferWord3}});
  w.op(Op::kSMovB32, {w.reg(name + "_heads"), w.reg("heads")});
  w.op(Op::kSMovB32, {w.reg(name + "_tokens"), w.reg("group_tokens")});
  w.op(Op::kSMovB32, {w.reg(name + "_stride"), token_stride.sub(0)}, "token stride, below 2^26 (checked at launch)");
  w.op(Op::kSMovB64, {w.reg(name + "_step"), head_stride});
  // From the last head of one block of tokens to the first head of the next: 16 tokens on, heads - 1 back.
  const Reg wrap = w.reg(name + "_wrap");
  const Reg back = w.stemp("back");
  const Reg bytes = w.stemp("back_bytes", 2);
  w.op(Op::kSMovB64, {bytes, Imm{0}});
  w.op(Op::kSSubU32, {back, w.reg("heads"), Imm{1}});
  add_scaled(w, bytes, back, head_stride, "heads before the last");
  w.op(Op::kSMovB64, {wrap, Imm{0}});
  const Reg block = w.stemp("block");
  w.op(Op::kSMovB32, {block, Imm{kBlockTokens}});
  add_scaled(w, wrap, block, token_stride, "a block of tokens");
  w.op(Op::kSSubU32, {wrap.sub(0), wrap.sub(0), bytes.sub(0)});
  w.op(Op::kSSubbU32, {wrap.sub(1), wrap.sub(1), bytes.sub(1)});
  const Reg offset = w.reg(name + "_offset");
  const Reg in_row = w.vtemp("in_row");
  w.op(Op::kVMulLoU32, {offset, w.reg("row"), w.reg(name + "_stride")});
  w.op(Op::kVMulU32U24, {in_row, Imm{static_cast<std::int32_t>(lane_bytes)}, w.reg("lane_in_row")});
  w.op(Op::kVAddU32, {offset, offset, in_row}, "this lane's bytes of a piece");
}

Stage load_stage(const Shape& shape) {
  std::vector<Access> accesses = walk_accesses("in");
  accesses.push_back({"raw", AccessKind::kWrite});
  return {"load", std::move(accesses), Speculation::kHarmless, [shape](StageWriter& w) { load_rows(w, shape); }};
}

jit::Reg key_head_descriptor(StageWriter& w, const std::string& name, Reg address, const KeyHeadStrides& strides,
                             jit::Operand bytes) {
  const Reg desc = w.stemp(name + "_desc", 4);
  w.op(Op::kSMovB64, {desc.sub(0, 2), address});
  add_scaled(w, desc.sub(0, 2), w.reg("key_head"), strides.head, "key head");
  add_scaled(w, desc.sub(0, 2), w.reg("batch"), strides.batch, "batch");
  w.op(Op::kSMovB32, {desc.sub(2), bytes});
  w.op(Op::kSMovB32, {desc.sub(3), Imm{kBufferWord3}});
  return desc;
}

}  // namespace zyfa::schedules::quantising
