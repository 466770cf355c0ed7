// What a gfx950 instruction is, from the mnemonic LLVM prints: hazard class and MFMA pass count. No LLVM type appears.
#pragma once

#include <cstdint>
#include <string_view>

#include "jit/isa/facts.h"

namespace zyfa::jit {

// Precondition: `mnemonic` as printed by LLVM, suffixes included ("v_exp_f32_e32"). Memory operations that LLVM may
// both load and store (atomics) are told apart by name.
FactClass classify(std::string_view mnemonic);

// Passes of a matrix instruction (gfx950-isa.md 1.5), 0 for others. `any_8bit`: f8f6f4 forms with an fp8 or bf8 operand
// (CBSZ or BLGP below 2); ignored by the other forms.
enum class F8f6f4Width : std::uint8_t { kSome8Bit, kNone8Bit };
std::uint8_t matrix_passes(std::string_view mnemonic, F8f6f4Width width);

}  // namespace zyfa::jit
