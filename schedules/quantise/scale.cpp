// From the partial statistics to the scale: descale = what one code step of 1.0 is worth, factor = its inverse.
//
// Every lane computes the same scale. Bounds that keep all of it finite and normal: a descale is at least 2^-120 (a
// largest magnitude below 2^-111 counts as that), and at most 2^131 / 127.
#include <cmath>
#include <cstddef>

#include "schedules/attention/kernel_setup.h"
#include "schedules/quantise/scale.h"
#include "schedules/select/quantise_args.h"

namespace zyfa::schedules::quantising {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kPartials = static_cast<std::int32_t>(offsetof(QuantiseArgs, partials));
constexpr auto kDescale = static_cast<std::int32_t>(offsetof(QuantiseArgs, descale));
constexpr auto kKeyDescale = static_cast<std::int32_t>(offsetof(QuantiseArgs, key_descale));
constexpr auto kCounts = static_cast<std::int32_t>(offsetof(QuantiseArgs, partial_count));
constexpr auto kMantissa = static_cast<std::int32_t>(offsetof(QuantiseArgs, score_mantissa));
constexpr std::int32_t kLoadFloats = 256;         // a wave's dwordx4 load
constexpr std::int32_t kLeastScale = 0x03800000;  // 2^-120

struct Partials {
  Reg address;  // SGPR pair
  KeyHeadStrides strides;
  Reg counts;  // SGPRs: partial count, entry count
};

Partials read_partials(StageWriter& w) {
  const Reg strides = w.stemp("partial_strides", 4);
  const Partials p{w.stemp("partials", 2), {strides.sub(0, 2), strides.sub(2, 2)}, w.stemp("counts", 2)};
  w.op(Op::kSLoadDwordx2, {p.address, w.reg("kernarg"), Imm{kPartials}}, "partials");
  w.op(Op::kSLoadDwordx4, {strides, w.reg("kernarg"), Imm{kPartials + 8}}, "head and batch stride");
  w.op(Op::kSLoadDwordx2, {p.counts, w.reg("kernarg"), Imm{kCounts}}, "partials, entries");
  return p;
}

// The largest of partial_count floats.
Reg largest_partial(StageWriter& w, const Partials& p) {
  const Reg most = w.vtemp("most");
  const Reg desc = key_head_descriptor(w, "partial", p.address, p.strides, Imm{0});
  const Reg left = w.stemp("left");
  const Reg offset = w.vtemp("partial_offset");
  w.op(Op::kSMovB32, {left, p.counts.sub(0)});
  w.op(Op::kVLshlrevB32, {offset, Imm{4}, w.reg("lane")});
  w.op(Op::kVMovB32, {most, Imm{0}});
  const jit::Label more = w.new_label();
  w.place(more);
  const Reg four = w.vtemp("four", 4);
  const Reg bytes = w.stemp("bytes");
  w.op(Op::kSMinU32, {bytes, left, Imm{kLoadFloats}});
  w.op(Op::kSLshlB32, {desc.sub(2), bytes, Imm{2}}, "those that exist; past them reads 0");
  w.op(Op::kBufferLoadDwordx4, {four, offset, desc, Imm{0}}, "partial maxima", {.offen = true});
  w.op(Op::kVMax3F32, {most, most, four.sub(0), four.sub(1)});
  w.op(Op::kVMax3F32, {most, most, four.sub(2), four.sub(3)});
  w.op(Op::kSAddU32, {desc.sub(0), desc.sub(0), Imm{4 * kLoadFloats}});
  w.op(Op::kSAddcU32, {desc.sub(1), desc.sub(1), Imm{0}});
  w.op(Op::kSSubU32, {left, left, Imm{kLoadFloats}});
  w.op(Op::kSCmpGtI32, {left, Imm{0}}, "more partials?");
  w.op(Op::kSCbranchScc1, {more});
  reduce_wave(w, Op::kVMaxF32, most);
  return most;
}

// Sum, minimum or maximum of a dim over the partials of one entry, spread over the 16 rows of the wave, then over rows.
struct MomentReader {
  StageWriter& w;
  const Shape& shape;
  Reg desc, count;  // SGPRs
  std::vector<Reg> sums, lows, highs;

  void clear() {
    for (std::uint32_t t = 0; t < 4 * shape.pieces(); ++t) {
      for (std::uint16_t r = 0; r < 4; ++r) {
        w.op(Op::kVMovB32, {sums[t].sub(r), Imm{0}});
        w.op(Op::kVMovB32, {lows[t].sub(r), w.reg("infinity")});
        w.op(Op::kVMovB32, {highs[t].sub(r), Imm{static_cast<std::int32_t>(0xff800000)}});
      }
    }
  }

  void fold(Op op, const std::vector<Reg>& into, Reg offset, std::uint32_t array) {
    for (std::uint32_t t = 0; t < 4 * shape.pieces(); ++t) {
      const Reg four = w.vtemp("four", 4);
      const std::uint32_t at = 4 * (array * shape.dims + kPieceDims * (t / 4) + 4 * (t % 4));
      w.op(Op::kBufferLoadDwordx4, {four, offset, desc, Imm{0}}, {},
           {.offset = static_cast<std::int32_t>(at), .offen = true});
      for (std::uint16_t r = 0; r < 4; ++r) w.op(op, {into[t].sub(r), into[t].sub(r), four.sub(r)});
    }
  }

  void run() {
    const auto stride = static_cast<std::int32_t>(partial_bytes(Smoothing::kMean, shape.dims));
    const Reg index = w.vtemp("index");
    const Reg last = w.stemp("last");
    const Reg left = w.stemp("left");
    const Reg in_row = w.vtemp("in_row");
    w.op(Op::kSSubU32, {last, count, Imm{1}});
    w.op(Op::kSMulI32, {desc.sub(2), count, Imm{stride}});
    w.op(Op::kSMovB32, {left, count});
    w.op(Op::kVMovB32, {index, w.reg("row")});
    w.op(Op::kVLshlrevB32, {in_row, Imm{6}, w.reg("lane_in_row")}, "16 floats a lane and piece");
    clear();
    const jit::Label more = w.new_label();
    w.place(more);
    const Reg offset = w.vtemp("offset");
    const Reg nearest = w.vtemp("nearest");
    w.op(Op::kVMinI32, {nearest, last, index}, "repeating the last one changes no minimum or maximum");
    for (const Reg& x : {offset, nearest}) {
      w.op(Op::kVMulU32U24, {x, Imm{stride}, x == offset ? index : nearest});
      w.op(Op::kVAddU32, {x, x, in_row});
    }
    fold(Op::kVAddF32, sums, offset, 0);
    fold(Op::kVMinF32, lows, nearest, 1);
    fold(Op::kVMaxF32, highs, nearest, 2);
    w.op(Op::kVAddU32, {index, Imm{16}, index});
    w.op(Op::kSSubU32, {left, left, Imm{16}});
    w.op(Op::kSCmpGtI32, {left, Imm{0}}, "more partials?");
    w.op(Op::kSCbranchScc1, {more});
    for (std::uint32_t t = 0; t < 4 * shape.pieces(); ++t) {
      for (std::uint16_t r = 0; r < 4; ++r) {
        reduce_rows(w, Op::kVAddF32, sums[t].sub(r));
        reduce_rows(w, Op::kVMinF32, lows[t].sub(r));
        reduce_rows(w, Op::kVMaxF32, highs[t].sub(r));
      }
    }
  }
};

// 1 / tokens, 1 when there are none.
Reg inverse_tokens(StageWriter& w) {
  const Reg tokens = w.stemp("tokens");
  const Reg inverse = w.vtemp("inverse_tokens");
  w.op(Op::kSLoadDword, {tokens, w.reg("kernarg"), Imm{static_cast<std::int32_t>(offsetof(QuantiseArgs, tokens))}});
  w.op(Op::kSMaxI32, {tokens, tokens, Imm{1}});
  w.op(Op::kVCvtF32I32, {inverse, tokens});
  w.op(Op::kVRcpF32, {inverse, inverse});
  return inverse;
}

// Leaves the key head's mean in tile "mean" and returns the largest |x - mean|, over all entries where they share a
// scale: entries 0 .. entry_count - 1 in turn, then the key head's own.
Reg largest_deviation(StageWriter& w, const Shape& shape, const Partials& p) {
  const Reg most = w.vtemp("most");
  const Reg inverse = inverse_tokens(w);
  const Reg own = key_head_descriptor(w, "own", p.address, p.strides, Imm{0});
  MomentReader moments{w, shape, w.stemp("entry_desc", 4), p.counts.sub(0), {}, {}, {}};
  for (std::uint32_t t = 0; t < 4 * shape.pieces(); ++t) {
    moments.sums.push_back(w.reg("mean", t));
    moments.lows.push_back(w.vtemp("low", 4));
    moments.highs.push_back(w.vtemp("high", 4));
  }
  const Reg entry = w.stemp("entry");
  const Reg next = w.stemp("next", 2);
  w.op(Op::kVMovB32, {most, Imm{0}});
  w.op(Op::kSMovB32, {entry, Imm{0}});
  w.op(Op::kSMovB64, {next, p.address});
  const jit::Label more = w.new_label();
  w.place(more);
  const Reg desc = moments.desc;
  w.op(Op::kSCmpLtI32, {entry, p.counts.sub(1)}, "an entry, or at last the key head's own?");
  w.op(Op::kSCselectB32, {desc.sub(0), next.sub(0), own.sub(0)});
  w.op(Op::kSCselectB32, {desc.sub(1), next.sub(1), own.sub(1)});
  w.op(Op::kSMovB32, {desc.sub(3), Imm{forward::kBufferWord3}});
  moments.run();
  // Infinite where int8 has met a value that is not finite: the sum tells.
  const bool keeps_nan = shape.element == ElementType::kInt8;
  std::vector<Reg> parts;
  for (std::size_t b = 0; b < blocks_of(shape).size(); ++b) {
    parts.push_back(w.vtemp("part"));
    w.op(Op::kVMovB32, {parts.back(), Imm{0}});
  }
  for (std::uint32_t t = 0; t < 4 * shape.pieces(); ++t) {
    const Reg part = parts[parts.size() == 2 && t >= 8 ? 1 : 0];
    for (std::uint16_t r = 0; r < 4; ++r) {
      const Reg mean = moments.sums[t].sub(r);
      const Reg above = moments.highs[t].sub(r), below = moments.lows[t].sub(r);
      w.op(Op::kVMulF32, {mean, mean, inverse}, "mean");
      w.op(Op::kVSubF32, {above, above, mean});
      w.op(Op::kVSubF32, {below, mean, below});
      w.op(keeps_nan ? Op::kVMaximum3F32 : Op::kVMax3F32, {part, part, above, below});
    }
  }
  if (parts.size() == 2) {
    w.op(Op::kVMulF32, {parts[1], FloatImm{kUnitRatio}, parts[1]}, "H64's values in H128's unit");
    w.op(keeps_nan ? Op::kVMaximum3F32 : Op::kVMax3F32, {parts[0], parts[0], parts[1], parts[1]});
  }
  if (keeps_nan) poison_to_infinity(w, parts[0]);
  w.op(Op::kVMaxF32, {most, most, parts[0]});
  w.op(Op::kSAddU32, {next.sub(0), next.sub(0), p.strides.head.sub(0)});
  w.op(Op::kSAddcU32, {next.sub(1), next.sub(1), p.strides.head.sub(1)}, "next entry");
  w.op(Op::kSAddU32, {entry, entry, Imm{1}});
  w.op(Op::kSCmpLeI32, {entry, p.counts.sub(1)});
  w.op(Op::kSCbranchScc1, {more});
  reduce_wave(w, Op::kVMaxF32, most);
  return most;
}

// scale = max(2^-120, largest |x| / largest code); 1 for an all-zero head; int8: NaN when a value was not finite.
Reg scale_of(StageWriter& w, const Shape& shape, Reg most) {
  const double limit = shape.element == ElementType::kInt8 ? 127.0 : 448.0;
  const double unit = shape.rotation == Rotation::kHadamard ? std::sqrt(128.0) : 1.0;
  const Reg scale = w.vtemp("scale");
  const Reg flag = w.stemp("zero", 2);
  w.op(Op::kVMulF32, {scale, FloatImm{static_cast<float>(unit / limit)}, most}, "largest |x| / largest code");
  w.op(Op::kVMaxF32, {scale, Imm{kLeastScale}, scale}, "stays a normal number");
  w.op(Op::kVCmpEqF32, {flag, most, Imm{0}});
  w.op(Op::kVCndmaskB32, {scale, scale, FloatImm{1.0F}, flag}, "all zero: 1");
  if (shape.element == ElementType::kInt8) {
    const Reg finite = w.stemp("finite", 2);
    const Reg nan = w.vtemp("nan");
    w.op(Op::kVMovB32, {nan, Imm{kNan}});
    w.op(Op::kVCmpLtF32, {finite, most, w.reg("infinity")});
    w.op(Op::kVCndmaskB32, {scale, nan, scale, finite}, "a value that is not finite: every row becomes NaN");
  }
  return scale;
}

// The mantissa of a positive normal number, in [1, 2).
Reg mantissa(StageWriter& w, Reg x) {
  const Reg m = w.vtemp("mantissa");
  w.op(Op::kVAndB32, {m, Imm{0x007fffff}, x});
  w.op(Op::kVOrB32, {m, FloatImm{1.0F}, m});
  return m;
}

// The folded form's scale of Q: the smallest one not below `scale` for which 8 log2(e) |softmax_scale| scale s_k is a
// power of two. With m = the mantissas of log2(e) |softmax_scale| and of s_k multiplied, that is 2^j / m for the
// smallest power of two not below scale * m.
Reg folded_scale(StageWriter& w, Reg scale) {
  const Reg args = w.stemp("key_descale_args", 2);
  const Reg strides = w.stemp("key_descale_strides", 4);
  const Reg fixed = w.stemp("score_mantissa");
  w.op(Op::kSLoadDwordx2, {args, w.reg("kernarg"), Imm{kKeyDescale}}, "k's descale");
  w.op(Op::kSLoadDwordx4, {strides, w.reg("kernarg"), Imm{kKeyDescale + 8}}, "batch and head stride");
  w.op(Op::kSLoadDword, {fixed, w.reg("kernarg"), Imm{kMantissa}});
  const Reg desc = key_head_descriptor(w, "key_descale", args, {strides.sub(2, 2), strides.sub(0, 2)}, Imm{4});
  const Reg zero = w.vtemp("zero");
  const Reg key_scale = w.vtemp("key_scale");
  w.op(Op::kVMovB32, {zero, Imm{0}});
  w.op(Op::kBufferLoadDword, {key_scale, zero, desc, Imm{0}}, "s_k", {.offen = true});
  const Reg m = mantissa(w, key_scale);
  w.op(Op::kVMulF32, {m, fixed, m}, "in [1, 4)");
  const Reg power = w.vtemp("power");
  w.op(Op::kVMulF32, {power, scale, m});
  w.op(Op::kVAddU32, {power, Imm{0x007fffff}, power});
  w.op(Op::kVAndB32, {power, Imm{static_cast<std::int32_t>(0xff800000)}, power}, "the power of two not below it");
  w.op(Op::kVRcpF32, {m, m});
  w.op(Op::kVMulF32, {power, power, m}, "8 log2(e) |softmax_scale| s_q s_k is a power of two");
  return power;
}

// Lane 0 of workgroup x = 0.
void store_descale(StageWriter& w, Reg scale) {
  const Reg args = w.stemp("descale_args", 2);
  const Reg strides = w.stemp("descale_strides", 4);
  const Reg bytes = w.stemp("bytes");
  w.op(Op::kSLoadDwordx2, {args, w.reg("kernarg"), Imm{kDescale}}, "descale");
  w.op(Op::kSLoadDwordx4, {strides, w.reg("kernarg"), Imm{kDescale + 8}}, "batch and head stride");
  w.op(Op::kSCmpEqU32, {w.reg("group"), Imm{0}});
  w.op(Op::kSCselectB32, {bytes, Imm{4}, Imm{0}}, "one workgroup of the key head writes");
  const Reg desc = key_head_descriptor(w, "descale", args, {strides.sub(2, 2), strides.sub(0, 2)}, bytes);
  const Reg offset = w.vtemp("descale_offset");
  w.op(Op::kVLshlrevB32, {offset, Imm{2}, w.reg("lane")}, "lane 0; the others are out of range");
  w.op(Op::kBufferStoreDword, {scale, offset, desc, Imm{0}}, "descale", {.offen = true});
}

// factor = unit / scale for each block of dims, signed as rotated values are, in both registers of a pair.
void set_factors(StageWriter& w, const Shape& shape, Reg scale) {
  const Reg inverse = w.vtemp("inverse");
  w.op(Op::kVRcpF32, {inverse, scale});
  const bool rotated = shape.rotation == Rotation::kHadamard;
  if (rotated) {
    w.op(Op::kVMulF32, {inverse, w.reg("sign", 0), inverse});
    w.op(Op::kVMulF32, {inverse, w.reg("sign", 1), inverse}, "the sign of rotated values");
  }
  const std::size_t blocks = blocks_of(shape).size();
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const Reg factor = w.reg("factor", b);
    const float unit = !rotated ? 1.0F : b == 0 ? kUnit128 : kUnit64;
    for (std::uint16_t r = 0; r < 2; ++r) w.op(Op::kVMulF32, {factor.sub(r), FloatImm{unit}, inverse});
  }
}

}  // namespace

void find_scale(StageWriter& w, const Shape& shape) {
  const Partials partials = read_partials(w);
  const Reg most =
      shape.smoothing == Smoothing::kMean ? largest_deviation(w, shape, partials) : largest_partial(w, partials);
  Reg scale = scale_of(w, shape, most);
  if (shape.feeds == ScoreForm::kFolded) scale = folded_scale(w, scale);
  store_descale(w, scale);
  set_factors(w, shape, scale);
}

}  // namespace zyfa::schedules::quantising
