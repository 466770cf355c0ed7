// A predicted execution in the Trace Event Format (JSON object form), which Perfetto and chrome://tracing open.
//
// A process per SIMD has a track for each of its waves, for its matrix pipe, VALU port and scalar unit; one more
// process has what the compute unit shares. Memory instructions overlap between issue and result, so each of those
// units has as many tracks as are in flight at once. All events are complete ("X") or metadata ("M"); of two slices of
// a track one lies within the other or they do not overlap. On a wave's track a run of instructions of one stage
// encloses them, and a wait is a slice of its own. Timestamps are whole cycles, written where the format has
// microseconds.
//
// Perfetto colours a slice by its name: slices of units, and the enclosing ones of waves, bear their stage's name.
// chrome://tracing takes the colour of `cname`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/sim/picture/execution.h"
#include "zyfa/error.h"

namespace zyfa::sim::picture {

struct TraceOptions {
  std::optional<Window> window = {};  // instructions that issue in it; default: the steady loop's trip, else all
  std::size_t most_spans = 500000;    // about 600 bytes each
};

// Of a run without a loop that has more instructions than that, the first are written. kInvalidArgument: as check() and
// choose_window(), and more instructions in the window than allowed.
[[nodiscard]] Expected<std::string> trace_json(const Execution& execution, const TraceOptions& options = {});

}  // namespace zyfa::sim::picture
