// Random legal placements drawn from the grammar of schedules/select/placement.h for any algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "schedules/dsl/plan.h"

namespace zyfa::tests {

// One draw; nullopt when it is not legal. Waves are drawn from the algorithm's, groups, phases, interleaves, leads,
// buffer counts and priorities from the grammar.
std::optional<schedules::Plan> draw_placement(const schedules::Algorithm& algorithm, std::uint32_t trip,
                                              std::mt19937& random);

}  // namespace zyfa::tests
