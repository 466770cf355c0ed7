// Finish: the row sum stands in its query's lanes already; O and LSE in their own units.
#include "schedules/attention/fp8_parts.h"

namespace zyfa::schedules::fp8 {
namespace {

using jit::FloatImm;
using jit::Op;
using jit::Reg;

void finish_block(StageWriter& w, const Variant& v, std::uint32_t queries) {
  const Reg reference = w.vtemp("reference_log2");
  w.op(Op::kVMulF32, {reference, FloatImm{1.0F / v.units()}, w.reg("reference")}, "units to log2");
  if (!v.always_exponents()) {
    w.op(Op::kVSubrevF32, {reference, FloatImm{v.reference_binades()}, reference},
         "where probabilities of the reference stand");
  }
  const Reg descale = w.vtemp("v_descale");
  w.op(Op::kVMovB32, {descale, w.reg("v_descale")});
  const Reg total = w.reg("row_sum").sub(0);
  if (v.sum_parts() == 2) w.op(Op::kVAddF32, {total, w.reg("row_sum").sub(1), total}, "both halves of each four keys");
  forward::write_output(w, v.lse, {total, reference, descale}, queries);
}

}  // namespace

void finish(StageWriter& w, const Variant& v) {
  for_each_query_block(w, [&](std::uint32_t queries) { finish_block(w, v, queries); });
  w.op(Op::kSEndpgm, {});
}

}  // namespace zyfa::schedules::fp8
