// Merges the instruction streams of one interleaved item, instruction by instruction in proportion to their weights.
//
// A run of instructions that must not be parted is taken whole: from a write of SCC, VCC, EXEC or M0 to the last use of
// that value, from a branch to the label it skips to, and from where lanes are switched off to where all are on again.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/isa/instruction.h"

namespace zyfa::schedules {

struct WeightedCode {
  std::vector<jit::Instruction> code;
  std::uint32_t weight = 1;
};

[[nodiscard]] std::vector<jit::Instruction> interleave(std::vector<WeightedCode> streams);

// For each instruction, whether it must be followed directly by the next one of its own stream.
[[nodiscard]] std::vector<std::uint8_t> glued_to_next(const std::vector<jit::Instruction>& code);

}  // namespace zyfa::schedules
