// The softmax of one block: mask, row maximum, reference, probabilities.
#include <array>

#include "schedules/attention/forward_parts.h"
#include "schedules/attention/output.h"

namespace zyfa::schedules::forward {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr std::uint16_t kTupleScores = 16;
constexpr std::uint16_t kGroup = 8;  // scores handled together: hides the wait state between v_exp and its use

// Key of score register r of a 32-key block, for lane half 0 (gfx950-isa.md 1.1); half 1 is 4 higher.
std::int32_t key_of(std::uint32_t block, std::uint32_t r) {
  return static_cast<std::int32_t>(32 * block + 8 * (r / 4) + r % 4);
}

// x = max over the lane pair (lane, lane + 32), in both lanes.
void max_over_halves(StageWriter& w, Reg x) {
  const Reg other = w.vtemp("other_half");
  w.op(Op::kVMovB32, {other, x});
  w.op(Op::kVPermlane32Swap, {x, other});
  w.op(Op::kVMaxF32, {x, x, other}, "over both lane halves");
}

// chain = max of a tuple's scores but the last.
void chain_maximum(StageWriter& w, Reg chain, Reg score) {
  w.op(Op::kVMax3F32, {chain, score.sub(0), score.sub(1), score.sub(2)});
  for (std::uint16_t r = 3; r + 1 < kTupleScores; r += 2) {
    w.op(Op::kVMax3F32, {chain, chain, score.sub(r), score.sub(static_cast<std::uint16_t>(r + 1))});
  }
}

}  // namespace

void hide_keys(StageWriter& w, Reg position, std::uint32_t blocks, std::string_view tile) {
  const auto last = static_cast<std::int32_t>(kBlockKeys * blocks - 1);
  const Reg end = w.stemp("block_end");
  const jit::Label skip = w.new_label();
  w.op(Op::kSAddI32, {end, position, Imm{last}});
  w.op(Op::kSCmpGtI32, {end, w.reg("first_limit")}, "does any query of the wave end before this block does?");
  w.op(Op::kSCbranchScc0, {skip});
  const Reg limit = w.vtemp("limit");
  const Reg minus_inf = w.vtemp("minus_inf");
  w.op(Op::kVSubrevU32, {limit, position, w.reg("key_limit")}, "last visible key, relative to the block");
  w.op(Op::kVMovB32, {minus_inf, Imm{static_cast<std::int32_t>(0xff800000)}});
  // Four flags at a time: a VALU result in an SGPR may be read 2 wait states later (gfx950-isa.md 4.3).
  std::array<Reg, 4> hidden;
  for (Reg& flag : hidden) flag = w.stemp("hidden", 2);
  constexpr std::uint32_t kBlocksInReach = 2;  // inline constants end at 64
  for (std::uint32_t block = 0; block < blocks; ++block) {
    if (block > 0 && block % kBlocksInReach == 0) {
      w.op(Op::kVSubrevU32, {limit, Imm{kBlockKeys * kBlocksInReach}, limit}, "relative to this block");
    }
    const std::uint32_t near_block = block % kBlocksInReach;
    const Reg score = w.reg(tile, block);
    for (std::uint16_t r = 0; r < kTupleScores; r += 4) {
      for (std::uint16_t n = 0; n < 4; ++n) w.op(Op::kVCmpLtI32, {hidden[n], limit, Imm{key_of(near_block, r + n)}});
      for (std::uint16_t n = 0; n < 4; ++n) {
        const Reg x = score.sub(static_cast<std::uint16_t>(r + n));
        w.op(Op::kVCndmaskB32, {x, x, minus_inf, hidden[n]},
             "key " + std::to_string(key_of(block, r + n)) + " hidden?");
      }
    }
  }
  w.place(skip);
}

void mask(StageWriter& w, std::uint32_t blocks) {
  const Reg position = w.reg("key_position");
  hide_keys(w, position, blocks);
  w.op(Op::kSAddI32, {position, position, Imm{static_cast<std::int32_t>(kBlockKeys * blocks)}});
}

void row_maximum_of(StageWriter& w, std::uint32_t blocks) {
  const Reg maximum = w.reg("block_max");
  // Two blocks at a time, a chain each: of 32 scores 15 three-way maxima and one of two.
  for (std::uint32_t block = 0; block < blocks; block += 2) {
    const Reg first = block == 0 ? maximum : w.vtemp("first");
    const Reg second = w.vtemp("second");
    chain_maximum(w, first, w.reg("score", block));
    chain_maximum(w, second, w.reg("score", block + 1));
    const Reg last0 = w.reg("score", block).sub(kTupleScores - 1);
    const Reg last1 = w.reg("score", block + 1).sub(kTupleScores - 1);
    w.op(Op::kVMax3F32, {second, second, last0, last1});
    if (block == 0) {
      w.op(Op::kVMaxF32, {maximum, maximum, second});
    } else {
      w.op(Op::kVMax3F32, {maximum, maximum, first, second});
    }
  }
  max_over_halves(w, maximum);
  w.op(Op::kVMulF32, {maximum, w.reg("scale"), maximum}, "block maximum in log2 units (scale > 0)");
  w.op(Op::kVCmpGtF32, {w.reg("moved"), maximum, w.reg("reference_limit")}, "must the reference move?");
}

void move_reference(StageWriter& w, float slack) {
  const Reg any = w.stemp("any");
  const Reg moved = w.reg("moved");
  const jit::Label skip = w.new_label();
  w.op(Op::kSOrB32, {any, moved.sub(0), moved.sub(1)}, "any query of the wave");
  w.op(Op::kSCbranchScc0, {skip});
  const Reg reference = w.reg("reference");
  const Reg raised = w.vtemp("raised");
  const Reg factor = w.vtemp("factor", 2);
  w.op(Op::kVMaxF32, {raised, reference, w.reg("block_max")});
  w.op(Op::kVSubF32, {factor.sub(0), reference, raised});
  w.op(Op::kVExpF32, {factor.sub(0), factor.sub(0)}, "2^(old - new)");
  w.op(Op::kVMovB32, {reference, raised});
  w.op(Op::kVAddF32, {w.reg("reference_limit"), FloatImm{slack}, raised});
  w.op(Op::kVMovB32, {factor.sub(1), factor.sub(0)});
  const Reg sum = w.reg("row_sum").sub(0);
  w.op(Op::kVMulF32, {sum, sum, factor.sub(0)});
  const std::uint16_t width = w.placement().math == VectorMath::kPacked ? 2 : 1;
  change_output(w, [&](Reg out) {
    for (std::uint16_t r = 0; r < out.count; r = static_cast<std::uint16_t>(r + width)) {
      const Reg part = out.sub(r, width);
      const Op multiply = width == 2 ? Op::kVPkMulF32 : Op::kVMulF32;
      w.op(multiply, {part, part, factor.sub(0, width)}, "O in units of the new reference");
    }
  });
  w.place(skip);
}

void block_probabilities(StageWriter& w, std::uint32_t block, const std::array<Reg, kBlockSteps>& prob) {
  const Reg sum = w.reg("row_sum").sub(0);
  for (std::uint16_t step = 0; step < kBlockSteps; ++step) {
    const Reg scores = w.reg("score", block).sub(static_cast<std::uint16_t>(step * kGroup), kGroup);
    std::array<Reg, kGroup> p;
    for (std::uint16_t r = 0; r < kGroup; ++r) {
      p[r] = w.vtemp("p" + std::to_string(r));
      w.op(Op::kVFmaF32, {p[r], scores.sub(r), w.reg("scale"), w.reg("reference")}, "x - reference, log2 units",
           {.neg = 0b100});
    }
    for (std::uint16_t r = 0; r < kGroup; ++r) w.op(Op::kVExpF32, {p[r], p[r]}, "probability");
    for (std::uint16_t r = 0; r < kGroup; r += 2) {
      w.op(Op::kVCvtPkBf16F32, {prob[step].sub(r / 2), p[r], p[r + 1]}, "P in the order of the MFMA result");
    }
    for (std::uint16_t width = kGroup / 2; width > 0; width /= 2) {
      for (std::uint16_t r = 0; r < width; ++r) w.op(Op::kVAddF32, {p[r], p[r], p[r + width]});
    }
    w.op(Op::kVAddF32, {sum, sum, p[0]}, "row sum, this lane's keys");
  }
}

void probabilities(StageWriter& w) {
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    block_probabilities(w, block, {w.reg("prob", kBlockSteps * block), w.reg("prob", kBlockSteps * block + 1)});
  }
}

}  // namespace zyfa::schedules::forward
