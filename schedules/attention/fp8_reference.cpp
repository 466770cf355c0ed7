// Row maximum of a block, and the running reference of a row.
//
// NaN must reach the rows that see it although conversion drops it: the maxima propagate NaN, "has the reference to
// move" is asked as !(maximum <= limit), and moving it multiplies O and the row sum by NaN (DESIGN.md section 5).
#include "schedules/attention/fp8_parts.h"

namespace zyfa::schedules::fp8 {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr std::uint16_t kTupleScores = 16;

// x = max over the lane pair (lane, lane + 32), in both lanes.
void max_over_halves(StageWriter& w, Reg x) {
  const Reg other = w.vtemp("other_half");
  w.op(Op::kVMovB32, {other, x});
  w.op(Op::kVPermlane32Swap, {x, other});
  w.op(Op::kVMaximum3F32, {x, x, other, other}, "over both lane halves");
}

void scale_outputs(StageWriter& w, const Variant& v, Reg factor) {
  const bool packed = w.placement().math == VectorMath::kPacked;
  for (std::uint32_t block = 0; block < forward::kOutputBlocks; ++block) {
    for (std::uint16_t r = 0; r < kTupleScores; r = static_cast<std::uint16_t>(r + (packed ? 2 : 1))) {
      const Reg part = w.reg("out", block).sub(r, packed ? 2 : 1);
      if (packed) {
        w.op(Op::kVPkMulF32, {part, part, factor}, "O in units of the new reference");
      } else {
        w.op(Op::kVMulF32, {part, factor.sub(0), part}, "O in units of the new reference");
      }
    }
  }
  for (std::uint16_t part = 0; part < v.sum_parts(); ++part) {
    const Reg sum = w.reg("row_sum").sub(part);
    w.op(Op::kVMulF32, {sum, factor.sub(0), sum});
  }
}

// factor = 2^-(distance in units); NaN for a distance of NaN.
Reg rescale_factor(StageWriter& w, const Variant& v, Reg distance) {
  const Reg factor = w.vtemp("factor", 2);
  w.op(Op::kVMulF32, {factor.sub(0), FloatImm{-1.0F / v.units()}, distance});
  w.op(Op::kVExpF32, {factor.sub(0), factor.sub(0)}, "2^(old - new)");
  w.op(Op::kVMovB32, {factor.sub(1), factor.sub(0)});
  return factor;
}

// Exact P only, whose conversion keeps NaN: the row-sum MFMA has two queries in a column, and 0 * NaN would reach the
// other one. O and the row sum keep a lost row's NaN from here on; its probabilities become 0 and its reference none.
void silence_nan_rows(StageWriter& w) {
  const Reg none = w.vtemp("no_reference");
  const Reg reference = w.reg("reference");
  const Reg maximum = w.reg("block_max");
  const Reg hidden = w.vtemp("minus_inf");
  const Reg lost = w.stemp("lost", 2);
  w.op(Op::kVMovB32, {none, FloatImm{kNoReference}});
  w.op(Op::kVMovB32, {hidden, Imm{static_cast<std::int32_t>(0xff800000)}});
  w.op(Op::kVCmpNleF32, {lost, reference, reference}, "NaN?");
  w.op(Op::kVCndmaskB32, {reference, reference, none, lost});
  w.op(Op::kVCndmaskB32, {maximum, maximum, hidden, lost});
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint16_t r = 0; r < kTupleScores; ++r) {
      const Reg x = w.reg("score", block).sub(r);
      w.op(Op::kVCndmaskB32, {x, x, hidden, lost});
    }
  }
}

// Multiply-add form: block_max and reference are scores. "No reference" lies below every score, and moving from it
// multiplies an O of 0 by 0.
void move_score_reference(StageWriter& w, const Variant& v) {
  const Reg reference = w.reg("reference");
  const Reg maximum = w.reg("block_max");
  const Reg distance = w.vtemp("distance");
  w.op(Op::kVMovB32, {distance, reference});
  w.op(Op::kVMaximum3F32, {reference, maximum, reference, reference}, "the row's maximum so far");
  w.op(Op::kVSubF32, {distance, reference, distance});
  const Reg factor = rescale_factor(w, v, distance);
  if (!v.lean()) silence_nan_rows(w);
  w.op(Op::kVAddF32, {w.reg("reference_limit"), FloatImm{v.units() * kTopSlack}, reference});
  if (!v.uses_exponents()) {
    const Reg bias = w.reg("bias");
    w.op(Op::kVSubF32, {bias.sub(0), FloatImm{v.top()}, reference}, "what a score gets before conversion");
    if (v.integer()) w.op(Op::kVAddF32, {bias.sub(0), bias.sub(0), w.reg("integer_zero")});
    w.op(Op::kVMovB32, {bias.sub(1), bias.sub(0)});
  }
  scale_outputs(w, v, factor);
}

// Folded form: scores and block_max hold t, which the reference is already taken from; they and the C operand of the
// next products follow it.
void move_folded_reference(StageWriter& w, const Variant& v) {
  const Reg reference = w.reg("reference");
  const Reg limit = w.reg("reference_limit");
  const Reg maximum = w.reg("block_max");
  const Reg distance = w.vtemp("distance");
  const Reg delta = w.vtemp("delta");
  const Reg none = w.vtemp("no_reference");
  const Reg bound = w.vtemp("bound");
  const Reg unset = w.stemp("unset", 2);
  const Reg real = w.stemp("sees_a_key", 2);
  w.op(Op::kVMovB32, {none, FloatImm{kNoReference}});
  w.op(Op::kVSubrevF32, {distance, FloatImm{v.top()}, maximum}, "above the top, in units");
  w.op(Op::kVMaximum3F32, {delta, distance, Imm{0}, Imm{0}});
  const Reg factor = rescale_factor(w, v, delta);
  w.op(Op::kVCmpNleF32, {real, maximum, none}, "a score or NaN");
  w.op(Op::kVCmpEqF32, {unset, limit, none});
  w.op(Op::kSAndB64, {unset, unset, real});
  w.op(Op::kVCndmaskB32, {delta, delta, distance, unset}, "the first score may lower it: O is 0 still");
  w.op(Op::kVMovB32, {bound, FloatImm{v.top() + v.units() * kTopSlack}});
  w.op(Op::kVCndmaskB32, {limit, limit, bound, real});
  w.op(Op::kVAddF32, {reference, delta, reference});
  w.op(Op::kVSubF32, {maximum, maximum, delta});
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint16_t r = 0; r < kTupleScores; ++r) {
      const Reg t = w.reg("score", block).sub(r);
      w.op(Op::kVSubF32, {t, t, delta});
    }
  }
  const Reg start = w.vtemp("start");
  w.op(Op::kVSubF32, {start, FloatImm{v.top()}, reference});
  for (std::uint16_t r = 0; r < kTupleScores; ++r) {
    w.op(Op::kVMovB32, {w.reg("score_start").sub(r), start}, "C operand of the next blocks");
  }
  scale_outputs(w, v, factor);
}

}  // namespace

Reg scalar_constant(StageWriter& w, float value, const std::string& name) {
  const Reg constant = w.stemp(name);
  w.op(Op::kSMovB32, {constant, FloatImm{value}});
  return constant;
}

void row_maximum(StageWriter& w, const Variant& v) {
  const Reg maximum = w.reg("block_max");
  const Reg second = w.vtemp("second");
  // Two chains, one a 32-key block.
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    const Reg score = w.reg("score", block);
    const Reg chain = block == 0 ? maximum : second;
    w.op(Op::kVMaximum3F32, {chain, score.sub(0), score.sub(1), score.sub(2)});
    for (std::uint16_t r = 3; r + 1 < kTupleScores; r = static_cast<std::uint16_t>(r + 2)) {
      w.op(Op::kVMaximum3F32, {chain, chain, score.sub(r), score.sub(static_cast<std::uint16_t>(r + 1))});
    }
  }
  const Reg last0 = w.reg("score", 0).sub(kTupleScores - 1);
  const Reg last1 = w.reg("score", 1).sub(kTupleScores - 1);
  w.op(Op::kVMaximum3F32, {second, second, last0, last1});
  w.op(Op::kVMaximum3F32, {maximum, maximum, second, second});
  max_over_halves(w, maximum);
  if (v.integer()) {
    w.op(Op::kVFmaF32, {maximum, maximum, w.reg("scale").sub(0), w.reg("integer_zero")}, "block maximum in units");
  } else if (!v.folded()) {
    w.op(Op::kVMulF32, {maximum, w.reg("scale").sub(0), maximum}, "block maximum in units (scale > 0)");
  }
  w.op(Op::kVCmpNleF32, {w.reg("moved"), maximum, w.reg("reference_limit")}, "must the reference move? (yes for NaN)");
}

void move_reference(StageWriter& w, const Variant& v) {
  const Reg any = w.stemp("any");
  const Reg moved = w.reg("moved");
  const jit::Label skip = w.new_label();
  w.op(Op::kSOrB32, {any, moved.sub(0), moved.sub(1)}, "any query of the wave");
  w.op(Op::kSCbranchScc0, {skip});
  v.folded() ? move_folded_reference(w, v) : move_score_reference(w, v);
  w.place(skip);
}

}  // namespace zyfa::schedules::fp8
