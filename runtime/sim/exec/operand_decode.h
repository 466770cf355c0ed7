// Operands and modifiers of one printed instruction into a micro-operation.
#pragma once

#include <deque>
#include <string>

#include "runtime/sim/exec/inst_text.h"
#include "runtime/sim/exec/program.h"

namespace zyfa::sim {

// The reason an instruction cannot be simulated, or empty.
using Refusal = std::string;

// Fills destinations and sources of `op` from `inst` by the signature of op.row.
Refusal decode_operands(const InstText& inst, const RegisterFile& registers, MicroOp& op);
// Fills everything that follows the operands. Runs after decode_operands.
Refusal decode_modifiers(const InstText& inst, std::deque<DppControl>& dpp, MicroOp& op);

}  // namespace zyfa::sim
