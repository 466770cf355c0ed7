// Attention forward, BF16: the algorithm of DESIGN.md section 4 with exact probabilities.
//
// A wave owns 32 queries, one per lane and its partner lane + 32, or two such blocks (query_blocks.h). One iteration is
// 128 keys, as four blocks of 32. S^T = K Q^T and O^T = V^T P^T, so the softmax of a query stays inside a lane pair and
// P needs no shuffle (gfx950-isa.md 1.1). Scores are kept in units of log2; `reference` is the running row reference
// and moves only when an iteration's maximum exceeds it by more than kReferenceSlack binades, by a wave-uniform branch.
#pragma once

#include "schedules/dsl/algorithm.h"
#include "schedules/select/kernel_spec.h"
#include "schedules/select/placement.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

inline constexpr std::uint32_t kKeyTile = 64;
inline constexpr std::uint32_t kIterationKeys = 128;

// kUnsupported for a specification outside the family.
[[nodiscard]] Expected<Algorithm> attention_forward(const KernelSpec& spec, const Placement& placement);

}  // namespace zyfa::schedules
