// Merges streams by time: the first one's matrix instructions set the pace, the others are spread over it.
//
// A wave that multiplies and does its softmax in one instruction stream has the turns that an MFMA leaves: all but its
// own and those for which it holds the VALU port, in which LDS, memory and scalar instructions go
// (mi355x-timing.md 1.3). Weights of instructions a round know nothing of MFMAs of unequal length and of regions that
// are skipped; this does.
#pragma once

#include <vector>

#include "jit/isa/instruction.h"
#include "schedules/dsl/interleave.h"

namespace zyfa::schedules {

// A stream of weight w is done after 1 / w of the first one's matrix cycles; the first's own weight is not looked at.
[[nodiscard]] std::vector<jit::Instruction> pace(std::vector<WeightedCode> streams);

}  // namespace zyfa::schedules
