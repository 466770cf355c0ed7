// The near keys of mixed precision: the first 64-key block and those on the causal diagonal, with the one before them,
// in BF16 from the inputs before quantisation, as a loop that runs before the 8-bit one (fp8.h).
//
// It shares out, row_sum, reference and reference_limit with that loop: O and the row sum in units of 2^reference, the
// reference in log2 units and equal to the row's maximum so far. Blocks: 0, then near_from to the last that the
// workgroup sees; the 8-bit loop takes near_from - 1 down to 1, which every query of the workgroup sees whole.
#pragma once

#include "schedules/dsl/algorithm.h"
#include "schedules/select/kernel_spec.h"
#include "schedules/select/placement.h"

namespace zyfa::schedules {

inline constexpr std::uint32_t kNearQueries = 256;  // queries that share near_from

struct NearShape {
  std::uint32_t head_dim = 128;  // of q and k
  MaskKind mask = MaskKind::kFull;
  std::uint16_t sum_registers = 1;  // of the 8-bit loop's row_sum, whose first one is shared
};

[[nodiscard]] Algorithm near_attention(const NearShape& shape, const Placement& placement);

}  // namespace zyfa::schedules
