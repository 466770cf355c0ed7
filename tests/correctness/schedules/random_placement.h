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

// Independent draws of an algorithm of many stages would hardly ever be legal: random steps from a placement on, that
// stay legal.
class PlacementWalk {
 public:
  PlacementWalk(const schedules::Algorithm& algorithm, schedules::Placement from)
      : algorithm_(algorithm), from_(std::move(from)), at_(from_) {}

  // Two steps further; nothing when none of many is legal.
  std::optional<schedules::Plan> next(std::mt19937& random);
  void start_again() { at_ = from_; }

 private:
  const schedules::Algorithm& algorithm_;
  schedules::Placement from_, at_;
};

}  // namespace zyfa::tests
