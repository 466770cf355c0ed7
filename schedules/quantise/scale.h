// The setup of the quantise kernel: partial statistics -> scale.
#pragma once

#include "schedules/quantise/parts.h"

namespace zyfa::schedules::quantising {

// Writes the descale, fills tile "factor" (a pair for each block of blocks_of()) and, with smoothing, tile "mean".
void find_scale(StageWriter& w, const Shape& shape);

}  // namespace zyfa::schedules::quantising
