// What the 8-bit kernels promise, in double: attention with the probabilities rounded by their rule under the reference
// that moves as theirs does (schedules/attention/fp8.h), for 32 queries at a time. What is left between it and a
// kernel is the rounding of O to BF16 and a code here and there whose exact value lies at a half.
//
// The first 128 keys are visited first, then from the last to the second. Reference: the maximum of the first ones in
// which a row sees a key; when the maximum of later ones passes the window in any of the 32 rows, each row's reference
// rises to its own maximum.
#pragma once

#include "tests/correctness/fp8/harness.h"
#include "tests/reference/attention.h"
#include "tests/reference/eight_bit.h"

namespace zyfa::tests {

struct ModelledAttention {
  reference::AttentionResult result;
  // Of 32 rows by 128 keys:
  std::int64_t moves = 0;          // tiles that moved the reference, the first ones not counted
  std::int64_t near = 0, far = 0;  // tiles on each path of the folded form with block exponents
};

// `conversion`: what the machine does to the byte of a Lean code, whatever the specification hopes for.
[[nodiscard]] ModelledAttention modelled_attention(
    const Fp8Case& c, const Fp8Inputs& in, reference::ByteRounding conversion = reference::ByteRounding::kNearestEven);

}  // namespace zyfa::tests
