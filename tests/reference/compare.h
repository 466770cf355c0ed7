// Error figures of a kernel's output against the fp64 reference.
#pragma once

#include <cstdint>
#include <span>

#include "tests/reference/attention.h"

namespace zyfa::reference {

struct ErrorFigures {
  // 100 * ||o - ref|| / ||ref|| over all elements, in percent; 0 when both are zero, infinite when only ref is.
  double relative_rms_percent = 0.0;
  double max_abs = 0.0;             // largest |o - ref| of an output element
  double lse_max_abs = 0.0;         // largest |lse - ref|; equal infinities count as 0, unequal ones as infinite
  std::int64_t mismatched_nan = 0;  // elements (of O or LSE) that are NaN in one and not in the other
  std::int64_t nonzero_empty = 0;   // output elements other than 0 in rows whose reference LSE is -inf
  // Where max_abs was found.
  std::int64_t worst_batch = 0, worst_token = 0, worst_head = 0, worst_dim = 0;
};

// `o` has the reference's shape. `lse` is [batch, heads, tokens] or empty when the kernel writes none.
// kInvalidArgument when shapes differ.
[[nodiscard]] Expected<ErrorFigures> compare(const AttentionResult& reference, const Bf16View& o,
                                             std::span<const float> lse);

}  // namespace zyfa::reference
