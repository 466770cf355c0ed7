// Gaussian inputs of one head for `profile`.
#pragma once

#include <cstdint>

#include "runtime/io/attention_inputs.h"
#include "zyfa/problem.h"

namespace zyfa::tools {

// q, k and v with independent normal elements of variance 1, the same for the same arguments on any host. 8-bit inputs
// hold 80 times the value, so that 5.6 standard deviations reach e4m3's largest, and descales of 1/80.
[[nodiscard]] io::AttentionInputs gaussian_inputs(const AttentionProblem& problem, std::int64_t tokens,
                                                  std::int64_t key_tokens);

}  // namespace zyfa::tools
