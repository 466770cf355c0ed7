// The matrix products: S^T = K Q^T, O^T += V^T P^T, and the row sum of the rounded P.
#include "schedules/attention/fp8_parts.h"

namespace zyfa::schedules::fp8 {
namespace {

using jit::Imm;
using jit::Op;
using jit::Operand;
using jit::Reg;

std::string score_comment(std::uint32_t block, std::uint32_t first_dim, std::uint32_t dims) {
  return "S^T keys " + std::to_string(32 * block) + "..+31, dims " + std::to_string(first_dim) + "..+" +
         std::to_string(dims - 1);
}

void integer_scores(StageWriter& w, const Variant& v, std::uint32_t half, std::uint32_t block) {
  const Reg score = w.reg(of_half("score", half), block);
  for (std::uint32_t step = 0; step < v.steps(); ++step) {
    const Reg keys = w.reg(of_half("k_frag", half), block * v.steps() + step);
    for (std::uint16_t part = 0; part < 2; ++part) {
      const auto at = static_cast<std::uint16_t>(4 * part);
      const Reg start = step + part == 0 ? w.reg("score_start") : score;
      w.op(Op::kVMfmaI32_32x32x32I8, {score, keys.sub(at, 4), w.reg("q", step).sub(at, 4), start},
           score_comment(block, kStepDims * step + 32 * part, 32));
    }
  }
}

void float_scores(StageWriter& w, const Variant& v, std::uint32_t half, std::uint32_t block) {
  const Reg score = w.reg(of_half("score", half), block);
  for (std::uint32_t step = 0; step < v.steps(); ++step) {
    const Reg keys = w.reg(of_half("k_frag", half), block * v.steps() + step);
    const std::string comment = score_comment(block, kStepDims * step, kStepDims);
    if (v.folded()) {
      const Reg start = step == 0 ? w.reg("score_start") : score;
      w.op(Op::kVMfmaScaleF32_32x32x64F8f6f4,
           {score, keys, w.reg("q", step), start, w.reg("unit_scale"), w.reg("q_scale")}, comment);
    } else {
      const Operand start = step == 0 ? Operand{Imm{0}} : Operand{score};
      w.op(Op::kVMfmaF32_32x32x64F8f6f4, {score, keys, w.reg("q", step), start}, comment);
    }
  }
}

// Sum of the block's probabilities, by itself.
void sum_block(StageWriter& w, const Variant& v, std::uint32_t half, Reg to) {
  const Reg prob = w.reg(of_half("prob", half));
  constexpr const char* kComment = "row sum of the rounded P, of this block";
  if (v.dense_sum()) {
    w.op(Op::kVMfmaF32_16x16x128F8f6f4, {to, w.reg("ones"), prob, Imm{0}}, kComment);
    return;
  }
  for (std::uint16_t r = 0; r < 4; ++r) w.op(Op::kVMovB32, {to.sub(r), Imm{0}}, "the sparse product adds to it");
  w.op(Op::kVSmfmacF32_16x16x128Fp8Fp8, {to, w.reg("ones"), prob, w.reg("ones_index")}, kComment);
}

// To row_sum, whose products accumulate.
void accumulate_sum(StageWriter& w, const Variant& v, std::uint32_t half, const char* comment) {
  const Reg prob = w.reg(of_half("prob", half));
  const Reg total = w.reg("row_sum");
  if (v.dense_sum()) {
    w.op(Op::kVMfmaF32_16x16x128F8f6f4, {total, w.reg("ones"), prob, total}, comment);
  } else {
    w.op(Op::kVSmfmacF32_16x16x128Fp8Fp8, {total, w.reg("ones"), prob, w.reg("ones_index")}, comment);
  }
}

// A block's sum times 2^exponent to row_sum: neither the accumulating products nor a 16x16x128 scale operand can carry
// one exponent a query.
void add_weighted(StageWriter& w, const Variant& v, std::uint32_t half, Reg sum) {
  const Reg weight = w.vtemp("block_weight");
  w.op(Op::kVLshlrevB32, {weight, Imm{23}, w.reg(of_half("prob_scale", half))}, "E8M0 code to float: 2^exponent");
  for (std::uint16_t part = 0; part < v.product_parts(); ++part) {
    const Reg total = w.reg("row_sum").sub(v.always_exponents() ? std::uint16_t{0} : part);
    w.op(Op::kVFmaF32, {total, sum.sub(part), weight, total}, "row sum");
  }
}

}  // namespace

void scores(StageWriter& w, const Variant& v, std::uint32_t half) {
  for (std::uint32_t block = 0; block < kKeyBlocks; ++block) {
    v.integer() ? integer_scores(w, v, half, block) : float_scores(w, v, half, block);
  }
}

void accumulate(StageWriter& w, const Variant& v, std::uint32_t half) {
  const Reg prob = w.reg(of_half("prob", half));
  for (std::uint32_t block = 0; block < forward::kOutputBlocks; ++block) {
    const Reg out = w.reg("out", block);
    const Reg values = w.reg(of_half("v_frag", half), block);
    const std::string comment = "O^T dims " + std::to_string(32 * block) + "..+31";
    if (v.uses_exponents()) {
      w.op(Op::kVMfmaScaleF32_32x32x64F8f6f4,
           {out, values, prob, out, w.reg("unit_scale"), w.reg(of_half("prob_scale", half))},
           comment + ", times 2^exponent");
    } else {
      w.op(Op::kVMfmaF32_32x32x64F8f6f4, {out, values, prob, out}, comment);
    }
  }
}

void sum_half(StageWriter& w, const Variant& v, std::uint32_t half) {
  if (v.always_exponents()) {
    sum_block(w, v, half, w.reg(of_half("block_sum", half)));
    return;
  }
  const jit::Label near = w.new_label();
  const jit::Label done = w.new_label();
  if (v.two_paths()) {
    w.op(Op::kSCmpLgU32, {w.reg("far"), Imm{0}}, "is the sum one with exponents?");
    w.op(Op::kSCbranchScc0, {near});
    const Reg sum = w.vtemp("far_sum", 4);
    sum_block(w, v, half, sum);
    add_weighted(w, v, half, sum);
    w.op(Op::kSBranch, {done});
    w.place(near);
  }
  // Marks a tile on the near path (zyfa/inspect.h): unlike the conversion, it runs for no iteration past the end.
  accumulate_sum(w, v, half, v.two_paths() && half == 0 ? "near path" : "row sum of the rounded P");
  if (v.two_paths()) w.place(done);
}

void add_sums(StageWriter& w, const Variant& v) {
  if (!v.always_exponents()) return;
  for (std::uint32_t half = 0; half < kHalves; ++half) add_weighted(w, v, half, w.reg(of_half("block_sum", half)));
}

}  // namespace zyfa::schedules::fp8
