// Row maxima of an iteration's two blocks, and the running reference of a row.
//
// A block's maximum is one of a query, which two lanes hold; so lanes 0 to 31 keep that of block a and lanes 32 to 63
// that of block b, and what depends on a block is computed once for both.
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

// The largest of a lane's scores of one block, in two chains.
void maximum_of_block(StageWriter& w, std::uint32_t half, Reg to) {
  const std::string tile = of_half("score", half);
  const Reg second = w.vtemp("second");
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    const Reg score = w.reg(tile, block);
    const Reg chain = block == 0 ? to : second;
    w.op(Op::kVMaximum3F32, {chain, score.sub(0), score.sub(1), score.sub(2)});
    for (std::uint16_t r = 3; r + 1 < kTupleScores; r = static_cast<std::uint16_t>(r + 2)) {
      w.op(Op::kVMaximum3F32, {chain, chain, score.sub(r), score.sub(static_cast<std::uint16_t>(r + 1))});
    }
  }
  w.op(Op::kVMaximum3F32, {second, second, w.reg(tile, 0).sub(kTupleScores - 1), w.reg(tile, 1).sub(kTupleScores - 1)});
  w.op(Op::kVMaximum3F32, {to, to, second, second});
}

// The row's maximum over both blocks, in both lanes.
Reg maximum_of_row(StageWriter& w) {
  const Reg row = w.vtemp("row_max");
  const Reg other = w.vtemp("other_block");
  w.op(Op::kVMovB32, {row, w.reg("block_max")});
  w.op(Op::kVMovB32, {other, w.reg("block_max")});
  w.op(Op::kVPermlane32Swap, {row, other});
  w.op(Op::kVMaximum3F32, {row, row, other, other}, "of both blocks");
  return row;
}

// O and the row sum times 2^-(distance in units); NaN for a distance of NaN.
void scale_sums(StageWriter& w, const Variant& v, Reg distance) {
  const bool packed = w.placement().math == VectorMath::kPacked;
  const Reg factor = w.vtemp("factor", 2);
  w.op(Op::kVMulF32, {factor.sub(0), FloatImm{-1.0F / v.units()}, distance});
  w.op(Op::kVExpF32, {factor.sub(0), factor.sub(0)}, "2^(old - new)");
  if (packed) w.op(Op::kVMovB32, {factor.sub(1), factor.sub(0)});
  const auto width = static_cast<std::uint16_t>(packed ? 2 : 1);
  for (std::uint16_t part = 0; part < v.sum_parts(); ++part) {
    const Reg sum = w.reg("row_sum").sub(part);
    w.op(Op::kVMulF32, {sum, factor.sub(0), sum});
  }
  forward::change_output(w, [&](Reg out) {
    for (std::uint16_t r = 0; r < out.count; r = static_cast<std::uint16_t>(r + width)) {
      const Reg part = out.sub(r, width);
      w.op(packed ? Op::kVPkMulF32 : Op::kVMulF32, {part, part, factor.sub(0, width)},
           "O in units of the new reference");
    }
  });
}

template <typename Change>
void for_each_score(StageWriter& w, const Change& change) {
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
      for (std::uint16_t r = 0; r < kTupleScores; ++r) change(w.reg(of_half("score", half), block).sub(r));
    }
  }
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
  for_each_score(w, [&](Reg x) { w.op(Op::kVCndmaskB32, {x, x, hidden, lost}); });
}

// Binades of the block maxima above the reference, in E8M0's bias less the top where blocks have exponents.
void measure_blocks(StageWriter& w) {
  w.op(Op::kVFmaF32, {w.reg("height"), w.reg("block_max"), w.reg("scale_binades"), w.reg("height_start")},
       "of the block maxima (scale > 0)");
}

// Multiply-add form: block_max holds raw scores, the reference is in units. "No reference" lies below every score, and
// moving from it multiplies an O of 0 by 0.
void move_score_reference(StageWriter& w, const Variant& v) {
  const Reg reference = w.reg("reference");
  const Reg distance = w.vtemp("distance");
  const Reg row = maximum_of_row(w);
  const Reg before = w.vtemp("old_reference");
  const Reg minus_inf = w.vtemp("minus_inf");
  const Reg hidden = w.stemp("sees_no_key", 2);
  w.op(Op::kVMovB32, {minus_inf, Imm{static_cast<std::int32_t>(0xff800000)}});
  w.op(Op::kVCmpEqF32, {hidden, row, minus_inf}, "no key here: nothing, whatever a scale that is NaN makes of it");
  if (v.integer()) {
    w.op(Op::kVFmaF32, {row, row, w.reg("scale").sub(0), w.reg("integer_zero")}, "in units");
  } else {
    w.op(Op::kVMulF32, {row, w.reg("scale").sub(0), row}, "in units");
  }
  w.op(Op::kVMovB32, {before, reference});
  w.op(Op::kVMaximum3F32, {reference, row, reference, reference}, "the row's maximum so far");
  w.op(Op::kVCndmaskB32, {reference, reference, before, hidden});
  w.op(Op::kVSubF32, {distance, reference, before});
  scale_sums(w, v, distance);
  if (!v.lean()) silence_nan_rows(w);
  follow_reference(w, v);
  measure_blocks(w);
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
  const Reg row = maximum_of_row(w);
  w.op(Op::kVMovB32, {none, FloatImm{kNoReference}});
  w.op(Op::kVSubrevF32, {distance, FloatImm{v.reference_top()}, row}, "above the reference, in units");
  w.op(Op::kVMaximum3F32, {delta, distance, Imm{0}, Imm{0}});
  scale_sums(w, v, delta);
  w.op(Op::kVCmpNleF32, {real, row, none}, "a score or NaN");
  w.op(Op::kVCmpEqF32, {unset, limit, none});
  w.op(Op::kSAndB64, {unset, unset, real});
  w.op(Op::kVCndmaskB32, {delta, delta, distance, unset}, "the first score may lower it: O is 0 still");
  w.op(Op::kVMovB32, {bound, FloatImm{v.reference_top() + v.units() * v.slack()}});
  w.op(Op::kVCndmaskB32, {limit, limit, bound, real});
  w.op(Op::kVAddF32, {reference, delta, reference});
  w.op(Op::kVSubF32, {maximum, maximum, delta});
  for_each_score(w, [&](Reg t) { w.op(Op::kVSubF32, {t, t, delta}); });
  const Reg start = w.vtemp("start");
  w.op(Op::kVSubF32, {start, FloatImm{v.reference_top()}, reference});
  for (std::uint16_t r = 0; r < kTupleScores; ++r) {
    w.op(Op::kVMovB32, {w.reg("score_start").sub(r), start}, "C operand of the next blocks");
  }
}

}  // namespace

void follow_reference(StageWriter& w, const Variant& v) {
  const Reg reference = w.reg("reference");
  const Reg height = w.reg("height_start");
  const Reg bias = w.reg("bias_start");
  const float exponent_bias = v.uses_exponents() ? static_cast<float>(kUnitExponent) : 0.0F;
  w.op(Op::kVSubF32, {bias, FloatImm{v.reference_top() + v.units() * exponent_bias}, reference},
       "what a score gets before conversion, but for its block's exponent");
  w.op(Op::kVSubF32, {height, Imm{0}, reference});
  if (v.integer()) {
    // Last, so that it is rounded once.
    w.op(Op::kVAddF32, {bias, bias, w.reg("integer_zero")});
    w.op(Op::kVAddF32, {height, height, w.reg("integer_zero")});
  }
  w.op(Op::kVMulF32, {height, FloatImm{1.0F / v.units()}, height}, "minus the reference, in binades");
  if (v.uses_exponents()) w.op(Op::kVAddF32, {height, FloatImm{exponent_bias - kTopBinades}, height});
}

void row_maximum(StageWriter& w, const Variant& v) {
  const Reg maximum = w.reg("block_max");
  const Reg second = w.vtemp("block_b");
  maximum_of_block(w, 0, maximum);
  maximum_of_block(w, 1, second);
  w.op(Op::kVPermlane32Swap, {maximum, second}, "lanes 0-31: both halves of a's; lanes 32-63: of b's");
  w.op(Op::kVMaximum3F32, {maximum, maximum, second, second}, "over both lane halves");
  const std::string comment = "must the reference move? (yes for NaN)";
  if (v.folded()) {
    w.op(Op::kVCmpNleF32, {w.reg("moved"), maximum, w.reg("reference_limit")}, comment);
    return;
  }
  measure_blocks(w);
  w.op(Op::kVCmpNleF32, {w.reg("moved"), w.reg("height"), w.reg("height_limit")}, comment);
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
