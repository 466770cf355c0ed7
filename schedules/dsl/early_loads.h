// Loads of the prologue that need not stand in their own phase.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/dsl/plan.h"

namespace zyfa::schedules {

struct EarlyLoad {
  StageRef ref;
  std::int64_t iteration;
  std::int64_t epoch;  // of its own phase (plan.h)
};

// Of the prologue's loads behind its first phase with work, those that may stand in an earlier phase and should: they
// fill LDS copies that nobody has used yet, share no state with other stages, and bring a tile's first iteration or
// what their own phase waits for. In the order of the prologue.
//
// The first barrier waits until every wave has issued what stands before it, and memory takes only so much at a time.
// So the loads of the next phase come before that barrier, the others at the end of the phase behind it.
[[nodiscard]] std::vector<EarlyLoad> early_loads(const Plan& plan);

}  // namespace zyfa::schedules
