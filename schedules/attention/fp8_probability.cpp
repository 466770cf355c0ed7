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

// In both lanes of a query: of a value that lanes 0 to 31 hold for block a and lanes 32 to 63 for block b.
std::array<Reg, kHalves> spread(StageWriter& w, Reg value) {
  const Reg other = w.vtemp("of_block_b");
  w.op(Op::kVMovB32, {other, value});
  w.op(Op::kVPermlane32Swap, {value, other}, "of block a; of block b");
  return {value, other};
}

// An exponent in E8M0's bias is the code itself: prob_scale. bias_start knows of the bias.
void set_exponents(StageWriter& w) {
  const Reg height = w.reg("height");
  w.op(Op::kVCeilF32, {height, height});
  w.op(Op::kVMaxF32, {height, FloatImm{kLeastExponent + kUnitExponent}, height}, "block exponents, as E8M0 codes");
  const auto exponents = spread(w, height);
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const Reg bias = w.reg(of_half("bias", half));
    w.op(Op::kVCvtI32F32, {w.reg(of_half("prob_scale", half)), exponents[half]});
    w.op(Op::kVFmaF32, {bias.sub(0), exponents[half], w.reg("minus_units"), w.reg("bias_start")},
         "what a score gets before conversion");
    if (w.placement().math == VectorMath::kPacked) w.op(Op::kVMovB32, {bias.sub(1), bias.sub(0)});
  }
}

// scores = scores * scale + bias, in place.
void add_bias(StageWriter& w, Reg scores, Reg bias) {
  const Reg scale = w.reg("scale");
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

// Of all blocks: the state itself, in a pair where arithmetic is packed.
Reg common_bias(StageWriter& w) {
  const Reg start = w.reg("bias_start");
  if (w.placement().math == VectorMath::kScalar) return start;
  const Reg pair = w.vtemp("bias_pair", 2);
  for (std::uint16_t r = 0; r < 2; ++r) w.op(Op::kVMovB32, {pair.sub(r), start});
  return pair;
}

// Four codes a register: the conversion rounds and saturates at 0, so that a masked or far score becomes P = 0.
void convert_lean(StageWriter& w, std::uint32_t half) {
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    const Reg scores = w.reg(of_half("score", half), block);
    for (std::uint16_t dword = 0; dword < 4; ++dword) {
      const Reg codes = w.reg(of_half("prob", half)).sub(static_cast<std::uint16_t>(4 * block + dword));
      for (std::uint16_t byte = 0; byte < 4; ++byte) {
        const Reg t = scores.sub(static_cast<std::uint16_t>(4 * dword + byte));
        w.op(Op::kVCvtPkU8F32, {codes, t, Imm{byte}, byte == 0 ? jit::Operand{Imm{0}} : jit::Operand{codes}});
      }
    }
  }
}

// The first exponential lands in the register of its codes: the conversion keeps the half it does not write, which so
// holds something defined.
void convert_exact(StageWriter& w, std::uint32_t half) {
  constexpr std::uint8_t kHighHalf = 8;
  const Reg prob = w.reg(of_half("prob", half));
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    const Reg scores = w.reg(of_half("score", half), block);
    for (std::uint16_t first = 0; first < kTupleScores; first = static_cast<std::uint16_t>(first + kGroup)) {
      std::array<Reg, kGroup> p;
      for (std::uint16_t r = 0; r < kGroup; ++r) {
        const Reg x = scores.sub(static_cast<std::uint16_t>(first + r));
        p[r] = r % 4 == 0 ? prob.sub(static_cast<std::uint16_t>(4 * block + (first + r) / 4)) : x;
        w.op(Op::kVExpF32, {p[r], x}, "probability");
      }
      for (std::uint16_t r = 0; r < kGroup; r = static_cast<std::uint16_t>(r + 4)) {
        w.op(Op::kVCvtPkFp8F32, {p[r], p[r], p[r + 1]});
        w.op(Op::kVCvtPkFp8F32, {p[r], p[r + 2], p[r + 3]}, {}, {.op_sel = kHighHalf});
      }
    }
  }
}

// t -= 8 * exponent.
void take_far_path(StageWriter& w, const Variant& v) {
  w.op(Op::kSMovB32, {w.reg("far"), Imm{1}}, "far path");
  const Reg exponent = w.vtemp("exponent");
  const Reg minus_units = w.reg("minus_units");
  w.op(Op::kVSubrevF32, {exponent, FloatImm{v.top()}, w.reg("block_max")});
  w.op(Op::kVMulF32, {exponent, FloatImm{1.0F / v.units()}, exponent}, "block maxima - top, binades");
  w.op(Op::kVCeilF32, {exponent, exponent});
  w.op(Op::kVMaxF32, {exponent, FloatImm{kLeastExponent}, exponent}, "block exponents");
  const auto exponents = spread(w, exponent);
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const Reg scale = w.reg(of_half("prob_scale", half));
    w.op(Op::kVCvtI32F32, {scale, exponents[half]});
    w.op(Op::kVAddU32, {scale, Imm{kUnitExponent}, scale}, "as an E8M0 code");
    for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
      for (std::uint16_t r = 0; r < kTupleScores; ++r) {
        const Reg t = w.reg(of_half("score", half), block).sub(r);
        w.op(Op::kVFmaF32, {t, exponents[half], minus_units, t});
      }
    }
  }
}

void choose_path(StageWriter& w, const Variant& v) {
  const jit::Label far = w.new_label();
  const jit::Label done = w.new_label();
  const Reg low = w.stemp("below_near", 2);
  const Reg seen = w.stemp("above_nothing", 2);
  w.op(Op::kVCmpLtF32, {low, w.reg("block_max"), w.reg("near_least")});
  w.op(Op::kVCmpGtF32, {seen, w.reg("block_max"), w.reg("nothing")});
  w.op(Op::kSAndB64, {low, low, seen}, "does any row need a block exponent?");
  w.op(Op::kSCbranchScc1, {far});
  w.op(Op::kSMovB32, {w.reg("far"), Imm{0}}, "no block exponent");
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    w.op(Op::kVMovB32, {w.reg(of_half("prob_scale", half)), Imm{kUnitExponent}});
  }
  w.op(Op::kSBranch, {done});
  w.place(far);
  take_far_path(w, v);
  w.place(done);
}

// Integer scores of a wide scale: 12582912 + n becomes n.
void centre_scores(StageWriter& w, const Variant& v, std::uint32_t half) {
  const jit::Label narrow = w.new_label();
  branch_if_narrow(w, v, narrow);
  const Reg start = w.stemp("integer_start");
  w.op(Op::kSMovB32, {start, FloatImm{-kIntegerZero}});
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    for (std::uint16_t r = 0; r < kTupleScores; ++r) {
      const Reg score = w.reg(of_half("score", half), block).sub(r);
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

void mask(StageWriter& w, const Variant& v, std::uint32_t half) {
  if (v.integer()) centre_scores(w, v, half);
  // Past the end everything is hidden, also the first keys, which were visited first. Lengths are at most 2^30
  // (zyfa/attention.h).
  constexpr auto kKeys = static_cast<std::int32_t>(kIterationKeys);
  constexpr std::int32_t kBeyondAllKeys = (1 << 30) + kKeys;
  const Reg position = w.reg("key_position");
  const Reg jump = w.reg("mask_jump");
  const jit::Label skip = w.new_label();
  w.op(Op::kSCmpGeI32, {position, w.reg("mask_limit")}, "may a key be hidden?");
  w.op(Op::kSCbranchScc0, {skip});
  const Reg first_key = w.stemp("first_key");
  const Reg behind = w.stemp("behind");
  const auto in_iteration = static_cast<std::int32_t>(half * kKeyTile);
  w.op(Op::kSAddU32, {behind, position, Imm{kPositionBias}});
  w.op(Op::kSCmpLgU32, {jump, Imm{-kKeys}}, "the first iteration?");
  w.op(Op::kSCselectB32, {first_key, Imm{in_iteration}, Imm{static_cast<std::int32_t>(v.second_key()) + in_iteration}});
  w.op(Op::kSAddI32, {first_key, first_key, behind});
  w.op(Op::kSCmpLtI32, {behind, Imm{0}}, "past the end?");
  w.op(Op::kSCselectB32, {first_key, Imm{kBeyondAllKeys}, first_key});
  forward::hide_keys(w, first_key, kKeyBlocks, of_half("score", half));
  w.place(skip);
  if (half == 0) return;
  w.op(Op::kSAddU32, {position, position, jump}, "next iteration");
  w.op(Op::kSMovB32, {jump, Imm{-kKeys}});
}

void exponents(StageWriter& w, const Variant& v) {
  if (v.always_exponents()) set_exponents(w);
  if (v.two_paths()) choose_path(w, v);
}

void probabilities(StageWriter& w, const Variant& v, std::uint32_t half) {
  if (!v.folded()) {
    const Reg bias = v.always_exponents() ? w.reg(of_half("bias", half)) : common_bias(w);
    for (std::uint32_t block = 0; block < kKeyBlocks; ++block) add_bias(w, w.reg(of_half("score", half), block), bias);
  }
  v.lean() ? convert_lean(w, half) : convert_exact(w, half);
}

}  // namespace zyfa::schedules::fp8
