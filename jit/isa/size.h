// Bytes of an instruction's machine code, as LLVM MC encodes the text that print() gives.
#pragma once

#include <cstdint>

#include "jit/isa/instruction.h"

namespace zyfa::jit {

// 0 for a pseudo instruction, else 4, 8 or 16. Precondition: check() accepts the instruction.
[[nodiscard]] std::uint32_t encoded_size(const Instruction& instruction);

// Whether the opcode has a 4-byte encoding (VOP1, VOP2) that Modifiers::long_form can override.
[[nodiscard]] bool has_long_form(Op op);

}  // namespace zyfa::jit
