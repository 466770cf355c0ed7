// The steady loop as text for a terminal: a row for each of two waves and one for the matrix pipe between them, a
// column for every few cycles.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/sim/picture/execution.h"
#include "zyfa/error.h"

namespace zyfa::sim::picture {

struct LoopTextOptions {
  std::optional<Window> window = {};
  std::size_t columns = 100;  // of the chart at most, 20 to 1000
};

// Errors as view_loop(); kInvalidArgument for the columns.
[[nodiscard]] Expected<std::string> loop_text(const Execution& execution, const LoopTextOptions& options = {});

}  // namespace zyfa::sim::picture
