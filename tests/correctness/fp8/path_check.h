// That a folded kernel took the paths a test is about, by what the simulator executed: its last launch must have
// counted by instruction (SimCounts).
#pragma once

#include "schedules/select/kernel_spec.h"
#include "tests/correctness/fp8/model.h"
#include "zyfa/device.h"

namespace zyfa::tests {

// As many far tiles as the model has, which are at least a quarter of all, and near ones too.
void expect_both_paths(const ModelledAttention& model, const SimDevice& device);
// That the row sum was this matrix product, and never the other. Not for kAuto.
void expect_row_sum(schedules::RowSum sum, const SimDevice& device);

}  // namespace zyfa::tests
