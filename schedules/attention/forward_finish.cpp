// Finish: the row sum over both lane halves, then O and LSE.
#include "schedules/attention/forward_parts.h"
#include "schedules/attention/output.h"

namespace zyfa::schedules::forward {
namespace {

using jit::Op;
using jit::Reg;

void finish_block(StageWriter& w, const Shape& shape, std::uint32_t queries) {
  const Reg total = w.reg("row_sum");
  const Reg other = w.vtemp("other_half");
  w.op(Op::kVMovB32, {other, total});
  w.op(Op::kVPermlane32Swap, {total, other});
  w.op(Op::kVAddF32, {total, total, other}, "row sum over both lane halves");
  write_output(w, shape.lse, {total, w.reg("reference")}, queries);
}

}  // namespace

void finish(StageWriter& w, const Shape& shape) {
  for_each_query_block(w, [&](std::uint32_t queries) { finish_block(w, shape, queries); });
  w.op(Op::kSEndpgm, {});
}

}  // namespace zyfa::schedules::forward
