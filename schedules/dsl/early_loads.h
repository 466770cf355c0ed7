// Loads of the prologue that need not stand in their own phase.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/dsl/plan.h"

namespace zyfa::schedules {

struct EarlyLoad {
  StageRef ref;
  std::int64_t iteration;
};

// Of the prologue's loads behind its first phase with work, those that may stand at the end of that phase and should:
// they fill LDS copies that nobody has used yet, share no state with other stages, and bring a tile's first iteration
// or what their own phase or the next one would wait for. So the latencies of the first loads run side by side. In the
// order of the prologue.
[[nodiscard]] std::vector<EarlyLoad> early_loads(const Plan& plan);

}  // namespace zyfa::schedules
