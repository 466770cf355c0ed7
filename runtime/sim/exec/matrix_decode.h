// Rules of a decoded matrix instruction that its row cannot express: register tuples, broadcast fields, element
// formats, pass and flop counts. Row argument: passes << 24 | blocks << 16 | rows of a block << 8 | k.
#pragma once

#include "runtime/sim/exec/inst_text.h"
#include "runtime/sim/exec/operand_decode.h"

namespace zyfa::sim {

// Completes `op`; the refusal names what the simulator or the hardware does not do.
Refusal finish_matrix(const InstText& inst, MicroOp& op);

}  // namespace zyfa::sim
