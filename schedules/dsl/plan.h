// The plan of one algorithm under one placement: where each stage stands, and where LDS traffic is waited for.
//
// Time. The loop body is P phases separated by workgroup barriers. A trip has T iterations, and a stage stands in the
// loop T times, with leads that differ modulo T: on trip t the one with lead a works on iteration T * t + a. Group g
// runs g phases behind group 0, so with `stagger` = groups - 1 two waves may be `stagger` phases apart.
// Epoch of stage X for iteration i: (i - lead) / T * P + phase, with the lead that is i modulo T. Rules checked, each
// for every i:
// clang-format off
//  order    accesses of a tile happen in algorithm order within an iteration, and all of iteration i before the first of
//           iteration i + copies that conflicts; streams of one interleaved item are unordered among themselves.
//  arrival  data loaded to LDS is waited for by the loading wave (s_waitcnt) and published by a barrier before any wave
//           reads it: epoch(read) - stagger - 1 >= epoch(load). The wait stands at the end of phase epoch(read) - stagger - 1.
//  reuse    an LDS copy is overwritten only after every wave's reads of it have returned:
//           epoch(next load) - stagger - 1 >= epoch(read). The wait stands at the end of that phase.
// clang-format on
// The end. A number of iterations that T does not divide leaves a last trip: only the stages whose lead is below the
// remainder run in it, which are all that has not been done for the iterations there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedules/dsl/algorithm.h"
#include "schedules/select/placement.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

struct PlacedStage {
  const Stage* stage = nullptr;
  std::uint32_t lead = 0;
  std::uint32_t phase = 0, item = 0, stream = 0, order = 0;  // order: index inside its stream
};

enum class AwaitKind : std::uint8_t { kArrival, kReads };

// At the end of `phase` of trip t, wait for the LDS traffic of `tile` for iteration T * t + offset (skipped when
// negative).
struct PlannedAwait {
  AwaitKind kind;
  std::string tile;
  std::uint32_t phase = 0;
  std::int64_t offset = 0;
};

struct Plan {
  const Algorithm* algorithm = nullptr;
  Placement placement;
  std::vector<PlacedStage> stages;  // in algorithm order, T each by the lead modulo T
  std::vector<PlannedAwait> awaits;
  std::uint32_t unroll = 1;  // iterations of the unrolled loop: least common multiple of T and all buffer counts
  std::uint32_t max_lead = 0;
  std::uint32_t lds_bytes = 0;         // of a workgroup: both loops' where there are two, one after the other
  std::shared_ptr<const Plan> before;  // of Algorithm::before, or null

  [[nodiscard]] std::uint32_t copies(std::string_view tile) const;
  [[nodiscard]] std::uint32_t lds_offset(std::string_view tile, std::uint32_t copy) const;
  [[nodiscard]] const PlacedStage& placed(const StageRef& ref) const;
  [[nodiscard]] std::uint32_t prologue_trips() const { return (max_lead + placement.trip - 1) / placement.trip; }
};

// kScheduleError: every rule the placement breaks, in terms of its stages and tiles.
[[nodiscard]] Expected<Plan> make_plan(const Algorithm& algorithm, const Placement& placement);

// A text picture: prologue trips, the loop's phases with their streams, waits and barriers for each wave group, LDS
// map.
[[nodiscard]] std::string chart(const Plan& plan);

}  // namespace zyfa::schedules
