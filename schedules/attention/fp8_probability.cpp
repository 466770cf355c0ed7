// From scores to e4m3 probabilities in the order of the MFMA result, which is also P's operand order
// (gfx950-isa.md 1.1).
#include <array>
#include <bit>

#include "schedules/attention/forward_parts.h"
#include "schedules/attention/fp8_parts.h"

namespace zyfa::schedules::fp8 {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr std::uint16_t kTupleScores = 16;
constexpr std::uint16_t kGroup = 8;  // scores handled together: hides the wait state between v_exp and its use

// exponent = max(ceil(value), -119), as a float, and its E8M0 code in prob_scale.
void set_exponent(StageWriter& w, Reg exponent) {
  const Reg scale = w.reg("prob_scale");
  w.op(Op::kVCeilF32, {exponent, exponent});
  w.op(Op::kVMaxF32, {exponent, FloatImm{kLeastExponent}, exponent}, "block exponent");
  w.op(Op::kVCvtI32F32, {scale, exponent});
  w.op(Op::kVAddU32, {scale, Imm{kUnitExponent}, scale}, "as an E8M0 code");
}

// bias = one - reference - units * exponent, so that the block's largest probability comes out at most at the top.
void bias_of_block(StageWriter& w, const Variant& v) {
  const Reg exponent = w.vtemp("exponent");
  const Reg bias = w.reg("bias");
  const Reg minus_units = w.reg("minus_units");
  w.op(Op::kVSubF32, {exponent, w.reg("block_max"), w.reg("reference")});
  w.op(Op::kVMulF32, {exponent, FloatImm{1.0F / v.units()}, exponent});
  w.op(Op::kVAddF32, {exponent, FloatImm{-kTopBinades}, exponent}, "block maximum - reference - 8 binades");
  set_exponent(w, exponent);
  w.op(Op::kVSubF32, {bias.sub(0), FloatImm{v.one()}, w.reg("reference")});
  if (v.integer()) w.op(Op::kVAddF32, {bias.sub(0), bias.sub(0), w.reg("integer_zero")});
  w.op(Op::kVFmaF32, {bias.sub(0), exponent, minus_units, bias.sub(0)}, "what a score gets before conversion");
  w.op(Op::kVMovB32, {bias.sub(1), bias.sub(0)});
}

// scores = scores * scale + bias, in place.
void add_bias(StageWriter& w, Reg scores) {
  const Reg scale = w.reg("scale");
  const Reg bias = w.reg("bias");
  if (w.placement().math == VectorMath::kScalar) {
    for (std::uint16_t r = 0; r < scores.count; ++r) {
      w.op(Op::kVFmaF32, {scores.sub(r), scores.sub(r), scale.sub(0), bias.sub(0)});
    }
    return;
  }
  for (std::uint16_t r = 0; r < scores.count; r = static_cast<std::uint16_t>(r + 2)) {
    w.op(Op::kVPkFmaF32, {scores.sub(r, 2), scores.sub(r, 2), scale, bias});
  }
}

// Four codes a register: the conversion rounds and saturates at 0, so that a masked or far score becomes P = 0.
void convert_lean(StageWriter& w) {
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint16_t dword = 0; dword < 4; ++dword) {
      const Reg codes = w.reg("prob").sub(static_cast<std::uint16_t>(4 * block + dword));
      for (std::uint16_t byte = 0; byte < 4; ++byte) {
        const Reg t = w.reg("score", block).sub(static_cast<std::uint16_t>(4 * dword + byte));
        w.op(Op::kVCvtPkU8F32, {codes, t, Imm{byte}, byte == 0 ? jit::Operand{Imm{0}} : jit::Operand{codes}});
      }
    }
  }
}

// The first exponential lands in the register of its codes: the conversion keeps the half it does not write, which so
// holds something defined.
void convert_exact(StageWriter& w) {
  constexpr std::uint8_t kHighHalf = 8;
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint16_t first = 0; first < kTupleScores; first = static_cast<std::uint16_t>(first + kGroup)) {
      std::array<Reg, kGroup> p;
      for (std::uint16_t r = 0; r < kGroup; ++r) {
        const Reg x = w.reg("score", block).sub(static_cast<std::uint16_t>(first + r));
        p[r] = r % 4 == 0 ? w.reg("prob").sub(static_cast<std::uint16_t>(4 * block + (first + r) / 4)) : x;
        w.op(Op::kVExpF32, {p[r], x}, "probability");
      }
      for (std::uint16_t r = 0; r < kGroup; r = static_cast<std::uint16_t>(r + 4)) {
        w.op(Op::kVCvtPkFp8F32, {p[r], p[r], p[r + 1]});
        w.op(Op::kVCvtPkFp8F32, {p[r], p[r + 2], p[r + 3]}, {}, {.op_sel = kHighHalf});
      }
    }
  }
}

void multiply_add_probabilities(StageWriter& w, const Variant& v) {
  if (v.uses_exponents()) bias_of_block(w, v);
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) add_bias(w, w.reg("score", block));
  v.lean() ? convert_lean(w) : convert_exact(w);
}

// t -= 8 * exponent, then conversion.
void far_path(StageWriter& w, const Variant& v) {
  w.op(Op::kSMovB32, {w.reg("far"), Imm{1}}, "far path");
  const Reg exponent = w.vtemp("exponent");
  const Reg minus_units = w.reg("minus_units");
  w.op(Op::kVSubrevF32, {exponent, FloatImm{v.top()}, w.reg("block_max")});
  w.op(Op::kVMulF32, {exponent, FloatImm{1.0F / v.units()}, exponent}, "block maximum - top, binades");
  set_exponent(w, exponent);
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint16_t r = 0; r < kTupleScores; ++r) {
      const Reg t = w.reg("score", block).sub(r);
      w.op(Op::kVFmaF32, {t, exponent, minus_units, t});
    }
  }
  convert_lean(w);
}

void folded_probabilities(StageWriter& w, const Variant& v) {
  const jit::Label far = w.new_label();
  const jit::Label done = w.new_label();
  const Reg low = w.stemp("below_near", 2);
  const Reg seen = w.stemp("above_nothing", 2);
  w.op(Op::kVCmpLtF32, {low, w.reg("block_max"), w.reg("near_least")});
  w.op(Op::kVCmpGtF32, {seen, w.reg("block_max"), w.reg("nothing")});
  w.op(Op::kSAndB64, {low, low, seen}, "does any row need a block exponent?");
  w.op(Op::kSCbranchScc1, {far});
  w.op(Op::kSMovB32, {w.reg("far"), Imm{0}}, "no block exponent");
  w.op(Op::kVMovB32, {w.reg("prob_scale"), Imm{kUnitExponent}});
  convert_lean(w);
  w.op(Op::kSBranch, {done});
  w.place(far);
  far_path(w, v);
  w.place(done);
}

// Integer scores of a wide scale: 12582912 + n becomes n.
void centre_scores(StageWriter& w, const Variant& v) {
  const jit::Label narrow = w.new_label();
  branch_if_narrow(w, v, narrow);
  const Reg start = w.stemp("integer_start");
  w.op(Op::kSMovB32, {start, FloatImm{-kIntegerZero}});
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint16_t r = 0; r < kTupleScores; ++r) {
      const Reg score = w.reg("score", block).sub(r);
      w.op(Op::kVAddF32, {score, start, score});
    }
  }
  w.place(narrow);
}

}  // namespace

void branch_if_narrow(StageWriter& w, const Variant& v, jit::Label to) {
  const auto widest = std::bit_cast<std::int32_t>(v.widest_scale());
  w.op(Op::kSCmpLeI32, {w.reg("scale").sub(0), Imm{widest}}, "positive floats and NaN order as integers");
  w.op(Op::kSCbranchScc1, {to});
}

void mask(StageWriter& w, const Variant& v) {
  if (v.folded() && w.guessed()) repair_scores(w, v);
  if (v.integer()) centre_scores(w, v);
  // Past the end everything is hidden, also the first block, which was visited first. Lengths are at most 2^30
  // (zyfa/attention.h).
  constexpr auto kBlock = static_cast<std::int32_t>(kKeyTile);
  constexpr std::int32_t kBeyondAllKeys = (1 << 30) + kBlock;
  const Reg position = w.reg("key_position");
  const Reg jump = w.reg("mask_jump");
  const jit::Label skip = w.new_label();
  w.op(Op::kSCmpGeI32, {position, w.reg("mask_limit")}, "may a key be hidden?");
  w.op(Op::kSCbranchScc0, {skip});
  const Reg first_key = w.stemp("first_key");
  const Reg behind = w.stemp("behind");
  w.op(Op::kSAddU32, {behind, position, Imm{kPositionBias}});
  w.op(Op::kSCmpLgU32, {jump, Imm{-kBlock}}, "the first block?");
  w.op(Op::kSCselectB32, {first_key, Imm{0}, Imm{kBlock}});
  w.op(Op::kSAddI32, {first_key, first_key, behind});
  w.op(Op::kSCmpLtI32, {behind, Imm{0}}, "past the end?");
  w.op(Op::kSCselectB32, {first_key, Imm{kBeyondAllKeys}, first_key});
  forward::hide_keys(w, first_key);
  w.place(skip);
  w.op(Op::kSAddU32, {position, position, jump}, "next block");
  w.op(Op::kSMovB32, {jump, Imm{-kBlock}});
}

void probabilities(StageWriter& w, const Variant& v) {
  if (v.two_paths()) {
    folded_probabilities(w, v);
  } else if (v.folded()) {
    convert_lean(w);
  } else {
    multiply_add_probabilities(w, v);
  }
}

}  // namespace zyfa::schedules::fp8
