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

// What O and the row sum must be multiplied by: 2^-(distance in units); NaN for a distance of NaN.
void set_factor(StageWriter& w, const Variant& v, Reg distance) {
  const Reg factor = w.reg("factor");
  w.op(Op::kVMulF32, {factor, FloatImm{-1.0F / v.units()}, distance});
  w.op(Op::kVExpF32, {factor, factor}, "2^(old - new)");
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
  set_factor(w, v, distance);
  if (!v.lean()) silence_nan_rows(w);
  w.op(Op::kVAddF32, {w.reg("reference_limit"), FloatImm{v.units() * kTopSlack}, reference});
  if (!v.uses_exponents()) {
    const Reg bias = w.reg("bias");
    w.op(Op::kVSubF32, {bias.sub(0), FloatImm{v.top()}, reference}, "what a score gets before conversion");
    if (v.integer()) w.op(Op::kVAddF32, {bias.sub(0), bias.sub(0), w.reg("integer_zero")});
    w.op(Op::kVMovB32, {bias.sub(1), bias.sub(0)});
  }
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
  set_factor(w, v, delta);
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
  w.op(Op::kSAddU32, {w.reg("moves"), w.reg("moves"), Imm{1}});
}

}  // namespace

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
  const Reg scaled = w.reg("scaled");
  const Reg moved = w.reg("moved");
  const jit::Label skip = w.new_label();
  w.op(Op::kSOrB32, {scaled, moved.sub(0), moved.sub(1)}, "any query of the wave");
  w.op(Op::kSCbranchScc0, {skip});
  v.folded() ? move_folded_reference(w, v) : move_score_reference(w, v);
  w.place(skip);
}

}  // namespace zyfa::schedules::fp8
