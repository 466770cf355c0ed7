// `simulate --stats`: what a launch on the simulator counted.
#pragma once

#include "tools/cli.h"
#include "zyfa/device.h"

namespace zyfa::tools {

// Instructions by unit; with SimCounts::kByInstruction also bytes by level, bank conflicts and the LDS instructions
// that have some.
void print_statistics(const SimDevice& device);
[[nodiscard]] OrderedJson statistics_json(const SimDevice& device);

}  // namespace zyfa::tools
