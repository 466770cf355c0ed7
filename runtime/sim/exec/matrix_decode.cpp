// Rules of matrix instructions: see matrix_decode.h.
#include "runtime/sim/exec/matrix_decode.h"

#include <fmt/format.h>

#include <string_view>

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;

u32 blocks_of(const MicroOp& op) { return (op.arg >> 16) & 0xff; }

// AMD CDNA4 ISA guide 7.1.6: CBSZ and ABID choose a block of A, BLGP lanes of B.
Refusal check_broadcast(const MicroOp& op) {
  if (op.cbsz > 4 || (1u << op.cbsz) > blocks_of(op))
    return fmt::format("cbsz:{} of an instruction of {} blocks: 1 << cbsz may not exceed them", op.cbsz, blocks_of(op));
  if (op.abid >= (1u << op.cbsz))
    return fmt::format("abid:{} with cbsz:{}: below 1 << cbsz is allowed", op.abid, op.cbsz);
  return {};
}

unsigned narrow_dwords(unsigned format) { return format < 2 ? 8 : format < 4 ? 6 : 4; }

Refusal check_formats(const MicroOp& op) {
  if (op.cbsz > 4 || op.blgp > 4)
    return fmt::format("matrix format cbsz:{} blgp:{}: 0 to 4 are allowed", op.cbsz, op.blgp);
  if (op.src[0].count != narrow_dwords(op.cbsz) || op.src[1].count != narrow_dwords(op.blgp)) {
    return fmt::format("A of {} and B of {} registers where cbsz:{} blgp:{} take {} and {}", op.src[0].count,
                       op.src[1].count, op.cbsz, op.blgp, narrow_dwords(op.cbsz), narrow_dwords(op.blgp));
  }
  return {};
}

}  // namespace

Refusal finish_matrix(const InstText& inst, MicroOp& op) {
  const bool f8f6f4 = std::string_view(inst.mnemonic).ends_with("f8f6f4");
  for (unsigned i = 0; i < 2; ++i)
    if (op.src[i].kind != OperandKind::kVgpr) return "A or B that is no vector register";
  const Operand& c = op.src[2];
  if (op.flags & kSparse) {
    if (c.kind != OperandKind::kVgpr || c.count != 1) return "a sparse index that is not one vector register";
  } else if (c.kind == OperandKind::kVgpr ? c.count != op.dst.count : c.kind != OperandKind::kConst) {
    return "C that is neither a tuple of D's size nor an inline constant";
  }
  if (op.flags & kScaled) {
    for (unsigned i = 3; i < 5; ++i) {
      if (op.src[i].kind != OperandKind::kVgpr && op.src[i].kind != OperandKind::kConst)
        return "a scale that is neither a vector register nor an inline constant";
    }
  }
  // SMFMAC chooses its index set with CBSZ and ABID; the f64 forms ignore both, and BLGP negates.
  Refusal refusal;
  if (f8f6f4) {
    refusal = check_formats(op);
  } else if (!(op.flags & (kSparse | kDgemm))) {
    refusal = check_broadcast(op);
  }
  if (!refusal.empty()) return refusal;

  const u32 dim = (op.arg >> 8) & 0xff, k = op.arg & 0xff;
  u32 passes = op.arg >> 24;
  // f8f6f4 forms without an 8-bit operand take half the passes (guide 7.1.5).
  if (f8f6f4 && op.cbsz > 1 && op.blgp > 1) passes /= 2;
  op.arg = (passes << 24) | (op.arg & 0xffffff);
  op.flops = 2 * blocks_of(op) * dim * dim * k;
  return {};
}

}  // namespace zyfa::sim
