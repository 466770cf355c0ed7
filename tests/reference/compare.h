// Error figures of a kernel's output against the fp64 reference.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// Relative rms error of each query head over all batches and rows, in percent: 100 * ||o - ref|| / ||ref||; 0 when both
// are zero, infinite when only ref is, NaN when an element is. The shapes are the same.
[[nodiscard]] std::vector<double> relative_rms_by_head(const AttentionResult& reference, const AttentionResult& result);

// lse - ref over all rows but those that see no key in both.
struct LseErrors {
  double mean = 0.0;  // signed: the bias
  double mean_abs = 0.0;
  double max_abs = 0.0;  // infinite when a row sees no key in one only
};
[[nodiscard]] LseErrors lse_errors(const AttentionResult& reference, const AttentionResult& result);

// A kernel's output as doubles, to compare as above. `o` is dense [batch, tokens, heads, dim], `lse` [batch, heads,
// tokens] or empty, as the result's then is.
[[nodiscard]] AttentionResult to_result(const Bf16View& o, std::span<const float> lse);

}  // namespace zyfa::reference
