// The steady loop as one HTML page with an inline SVG: needs no other file, no script and no network.
//
// Two waves of one SIMD with the matrix pipe between them on one time axis, coloured by stage; where the pipe idles it
// is red, the longest gaps are numbered and explained below, and hovering over anything tells the instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/sim/picture/execution.h"
#include "zyfa/error.h"

namespace zyfa::sim::picture {

// Wider, an instruction is less than half a pixel.
inline constexpr std::uint64_t kMostPageCycles = 50000;

// Of a run without a loop that takes longer, the first cycles are shown. Errors as view_loop(); kInvalidArgument: a
// window of more cycles than that.
[[nodiscard]] Expected<std::string> loop_html(const Execution& execution, const std::optional<Window>& window = {});

}  // namespace zyfa::sim::picture
