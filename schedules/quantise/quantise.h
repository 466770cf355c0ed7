// The quantiser of BF16 q, k and v: two algorithms, one read of the input each (docs/quantiser.md).
//
// quantise_statistics: per workgroup the largest |x| (smoothing: sum, minimum, maximum of each dim) of its rows.
// quantise: reduces those to the scale, then rows -> 8-bit codes; writes the descale.
//
// A wave works on 16 tokens of one head at a time, four lanes a row: lane j of a row holds elements 64 p + 16 j + i,
// i = 0..15, of each piece p of 64. So a rotation needs other lanes for two of its stages only, and a lane loads and
// stores 16 contiguous elements.
#pragma once

#include "schedules/dsl/algorithm.h"
#include "schedules/select/kernel_spec.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

// kUnsupported for a specification outside the family, naming what is allowed.
[[nodiscard]] Expected<Algorithm> quantise_statistics(const KernelSpec& spec);
[[nodiscard]] Expected<Algorithm> quantise(const KernelSpec& spec);

}  // namespace zyfa::schedules
