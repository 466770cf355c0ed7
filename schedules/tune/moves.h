// Placements one step away from a placement: what the tuner walks along.
//
// Every kind of step has its inverse among them, so that any legal placement can be reached from any other of the same
// trip. Pure and deterministic: the order of the result depends on nothing but the arguments.
#pragma once

#include <string>
#include <vector>

#include "schedules/dsl/algorithm.h"
#include "schedules/select/placement.h"

namespace zyfa::schedules {

struct Move {
  std::string change;  // "pv@0: phase 0 to 1", for people
  Placement placement;
};

// Steps of the main loop; the one of Algorithm::before stays as it is. Not all are legal (make_plan()); none equals
// `from`, and no two are equal. Names are kept.
//   - a stage to another place: an item of its own at either end of a phase or between two items, into a stream, or a
//     phase of its own
//   - a lead by one trip up or down
//   - two neighbouring items into one of two streams, and back; paced by matrix cycles or by counts; a weight to the
//     next of 1, 2, 3, 4, 6, 8, 12, 16
//   - a barrier between two items of a phase, or none between two phases
//   - copies of a tile one up or down (LDS: up to 8, registers: up to 2)
//   - one wave group or two; another legal number of waves; packed or scalar arithmetic
//   - the priority of a phase flipped between 0 and 1, no priorities at all, or the usual 1, 0, ...
[[nodiscard]] std::vector<Move> moves(const Algorithm& algorithm, const Placement& from);

// The placement with trips of two iterations that does the same in the same order: every phase once for each of the
// two. `from` must have trips of one.
[[nodiscard]] Placement with_two_iterations(const Placement& from);

}  // namespace zyfa::schedules
