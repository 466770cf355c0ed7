// The steady state of a run: the hottest loop of the traces, and what one trip through it costs.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sim/timing/cu_model.h"

namespace zyfa::sim::timing {

// Trips are counted from one pass of a wave through the loop's head to its next.
struct SteadyLoop {
  std::uint32_t head = 0, tail = 0;  // first instruction, and the taken backward branch: indices into Program::ops
  std::uint64_t passes = 0;          // of all waves through the head
  double trip_cycles = 0;            // mean over the middle half of every wave's trips
  std::uint64_t median_cycles = 0;   // of the same trips
  double matrix_cycles = 0;          // matrix pipe, a wave's share, mean a trip
  double instructions = 0;           // of a wave, mean a trip
  std::uint64_t begin = 0, end = 0;  // cycles of one trip from the middle of the first wave's
  std::vector<Event> events;         // of all waves that issued in [begin, end)
};

// The loop whose body executed the most instructions. kNotFound: no wave passes a loop head three times, or the result
// has no events.
[[nodiscard]] Expected<SteadyLoop> steady_loop(const Program& program, const CuResult& result);

}  // namespace zyfa::sim::timing
