// Finish: the row sum over both lane halves, then O and LSE.
#include "schedules/attention/forward_parts.h"
#include "schedules/attention/output.h"

namespace zyfa::schedules::forward {

using jit::Op;
using jit::Reg;

void finish(StageWriter& w, const Shape& shape) {
  const Reg total = w.reg("row_sum");
  const Reg other = w.vtemp("other_half");
  w.op(Op::kVMovB32, {other, total});
  w.op(Op::kVPermlane32Swap, {total, other});
  w.op(Op::kVAddF32, {total, total, other}, "row sum over both lane halves");
  write_output(w, shape.lse, {total, w.reg("reference")});
}

}  // namespace zyfa::schedules::forward
