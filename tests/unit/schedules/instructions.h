// Instructions for streams made by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jit/isa/instruction.h"

namespace zyfa::schedules {

inline jit::Instruction make(jit::Op op, std::vector<jit::Operand> operands, std::string comment = {}) {
  jit::Instruction instruction;
  instruction.op = op;
  instruction.operands = std::move(operands);
  instruction.comment = std::move(comment);
  return instruction;
}

inline jit::Instruction move(std::string comment = {}) {
  return make(jit::Op::kVMovB32, {jit::vgpr(0), jit::Imm{0}}, std::move(comment));
}

// 16 passes of the matrix pipe, and 8.
inline jit::Instruction scaled_product(std::string comment = {}) {
  return make(jit::Op::kVMfmaScaleF32_32x32x64F8f6f4,
              {jit::vgpr(0, 16), jit::vgpr(16, 8), jit::vgpr(24, 8), jit::Imm{0}, jit::vgpr(40), jit::vgpr(41)},
              std::move(comment));
}
inline jit::Instruction bf16_product(std::string comment = {}) {
  return make(jit::Op::kVMfmaF32_32x32x16Bf16, {jit::vgpr(0, 16), jit::vgpr(16, 4), jit::vgpr(24, 4), jit::Imm{0}},
              std::move(comment));
}

inline std::vector<std::string> comments(const std::vector<jit::Instruction>& code) {
  std::vector<std::string> result;
  for (const jit::Instruction& instruction : code) result.push_back(instruction.comment);
  return result;
}

}  // namespace zyfa::schedules
