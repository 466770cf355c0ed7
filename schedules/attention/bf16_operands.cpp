#include "schedules/attention/bf16_operands.h"

#include "schedules/attention/forward_parts.h"

namespace zyfa::schedules::forward {

using jit::Imm;
using jit::Op;
using jit::Reg;

void prepare_value_reads(StageWriter& w, const SetupRegs& s, const std::string& tile) {
  const Reg in_group = w.vtemp("v_in_group");
  const Reg key = w.vtemp("v_key");
  const Reg chunk = w.vtemp("v_chunk");
  const Reg part = w.vtemp("v_part");
  const Reg address = w.reg(tile);
  w.op(Op::kVAndB32, {in_group, Imm{15}, s.lane}, "i");
  w.op(Op::kVLshrrevB32, {key, Imm{2}, in_group}, "i / 4");
  w.op(Op::kVLshlrevB32, {chunk, Imm{2}, key}, "swizzle of the row");
  w.op(Op::kVLshrrevB32, {part, Imm{4}, s.lane}, "q");
  w.op(Op::kVAndB32, {part, Imm{1}, part});
  w.op(Op::kVLshlrevB32, {part, Imm{1}, part}, "2 * (q % 2)");
  w.op(Op::kVXorB32, {chunk, chunk, part});
  w.op(Op::kVLshrrevB32, {part, Imm{1}, in_group});
  w.op(Op::kVAndB32, {part, Imm{1}, part}, "(i % 4) / 2");
  w.op(Op::kVXorB32, {chunk, chunk, part});
  w.op(Op::kVLshlOrB32, {key, s.half, Imm{2}, key}, "4 * half + i / 4");
  w.op(Op::kVLshlrevB32, {key, Imm{8}, key});
  w.op(Op::kVLshlOrB32, {key, chunk, Imm{4}, key});
  w.op(Op::kVAndB32, {part, Imm{1}, in_group});
  w.op(Op::kVLshlOrB32, {address, part, Imm{3}, key});
  for (std::uint32_t block = 1; block < kHeadBlocks; ++block) {
    w.op(Op::kVXorB32, {w.reg(tile, block), Imm{static_cast<std::int32_t>(64 * block)}, address});
  }
}

void apply_scale(StageWriter& w, const SetupRegs& s, const std::string& queries, std::uint32_t steps) {
  constexpr std::int32_t kLeast = 0x00800000;  // 2^-126, the least that is not flushed
  const Reg scale = w.reg("scale");
  const Reg sign = w.stemp("sign");
  w.op(Op::kSAshrI32, {sign, s.args.lengths.sub(3), Imm{31}});
  w.op(Op::kSAndB32, {sign, sign, Imm{static_cast<std::int32_t>(0x80008000)}}, "both halves of a bf16 pair");
  w.op(Op::kSAndB32, {scale, s.args.lengths.sub(3), Imm{0x7fffffff}});
  w.op(Op::kSMaxI32, {scale, scale, Imm{kLeast}}, "|scale|; positive floats order as integers");
  // By a branch: only a negative scale waits here for Q.
  const jit::Label positive = w.new_label();
  w.op(Op::kSCmpEqU32, {sign, Imm{0}});
  w.op(Op::kSCbranchScc1, {positive});
  for_each_query_block(w, [&](std::uint32_t /*block*/) {
    for (std::uint32_t step = 0; step < steps; ++step) {
      for (std::uint16_t r = 0; r < 4; ++r) {
        const Reg pair = w.reg(queries, step).sub(r);
        w.op(Op::kVXorB32, {pair, sign, pair});
      }
    }
  });
  w.place(positive);
}

}  // namespace zyfa::schedules::forward
