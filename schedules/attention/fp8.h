// Attention forward in 8 bits: Q.K in e4m3 or int8, P and V in e4m3, O in BF16; head dims 128/128 and 192/128.
//
// As in forward.h a wave owns 32 queries, or two blocks of 32. An iteration is two blocks of 64 keys, "a" and "b". All
// softmax quantities are in units of 1/8 binade for lean P and of one binade for exact P
// ("units"), and the rules are those of docs/numerics.md:
//  - lean P: the e4m3 code of a probability is round(t) with t = 8 * (x - reference - exponent) + 55.543;
//  - block exponents: an integer per (query, block) brings the block's largest probability to at most 2^8, and the
//    scaled MFMA takes it away again; without them all blocks share one reference with a top of 2^8;
//  - the row sum adds the rounded probabilities, on the matrix pipe;
//  - the first block is visited first, then from the last one a workgroup sees down to the second;
//  - the reference moves to the row's maximum over both blocks, lazily, by a wave-uniform branch, before any
//  conversion;
//  - folded form: the scaled MFMA and its C operand deliver t for one exponent that all blocks share; a wave-uniform
//    branch sends iterations whose rows need a block exponent down the far path.
#pragma once

#include "schedules/dsl/algorithm.h"
#include "schedules/select/kernel_spec.h"
#include "schedules/select/placement.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

// kUnsupported for a specification outside the family.
[[nodiscard]] Expected<Algorithm> attention_forward_fp8(const KernelSpec& spec, const Placement& placement);

}  // namespace zyfa::schedules
