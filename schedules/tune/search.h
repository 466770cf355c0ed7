// Looks for the placement of least cost by steps of moves.h: from the best of some starts to any neighbour that is
// better (or, some times in a row, as good), and when there is none, some random steps away from the best one and on
// from there. No step leads from one number of queries a wave to another, whose stages are others: starts of both mean
// a walk for each, with half of the trials.
//
// What a placement costs is the caller's business. The walk is a pure function of its arguments and of the costs, so a
// caller that remembers costs can repeat an interrupted walk up to where it stopped and go on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/dsl/algorithm.h"
#include "schedules/select/placement.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

// What became of a placement that was tried.
struct Trial {
  std::optional<double> cost = {};  // none: it is of no use, for the reason in `why`
  double tie_break = 0;             // less is better among equal costs
  std::string why = {};

  [[nodiscard]] bool better_than(const Trial& other) const {
    if (!cost) return false;
    if (!other.cost || *cost != *other.cost) return !other.cost || *cost < *other.cost;
    return tie_break < other.tie_break;
  }
};

struct SearchOptions {
  std::uint64_t seed = 1;
  std::uint64_t trials = 1000;  // stops after so many
};

struct SearchStep {
  std::uint64_t number = 0;  // from 1
  std::string change;        // from which step it came; "start"
  const Placement& placement;
  const Trial& trial;
  bool best = false;  // so far
};

struct Found {
  Placement placement;
  Trial trial;
  std::uint64_t trials = 0;
};

struct SearchCalls {
  // In whose stages a start is written (algorithm_of()); its steps keep them. Placements must be legal for all.
  std::function<Expected<std::vector<Algorithm>>(const Placement&)> algorithms = {};
  // An error ends the search and is returned.
  std::function<Expected<Trial>(const Placement&)> try_out = {};
  std::function<bool(const SearchStep&)> step = {};  // after each, false ends the walk; may be empty
};

// No placement is tried twice. kScheduleError: a start is not legal (make_plan()); kInvalidArgument: no start, or none
// of the starts is of use (details: why).
[[nodiscard]] Expected<Found> search(const std::vector<Placement>& starts, const SearchOptions& options,
                                     const SearchCalls& calls);

}  // namespace zyfa::schedules
