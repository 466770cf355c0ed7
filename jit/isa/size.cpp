// Encoding sizes (gfx950-isa.md 2): a literal is one dword more, and only the short encodings hold one.
#include "jit/isa/size.h"

#include <algorithm>

#include "jit/isa/op_info.h"

namespace zyfa::jit {
namespace {

constexpr std::uint32_t kDword = 4;

bool has_literal(const Instruction& instruction) {
  return std::any_of(instruction.operands.begin(), instruction.operands.end(),
                     [](const Operand& operand) { return literal_of(operand).has_value(); });
}

bool is_register(const Operand& operand, Bank bank) {
  const Reg* reg = std::get_if<Reg>(&operand);
  return reg != nullptr && reg->bank == bank;
}

bool is_vcc(const Operand& operand) {
  const Reg* reg = std::get_if<Reg>(&operand);
  return reg != nullptr && reg->bank == Bank::kSpecial && reg->id == static_cast<std::uint32_t>(Special::kVcc);
}

// Whether MC takes the short encoding of an instruction without literal or modifiers.
bool takes_short_form(const Instruction& instruction) {
  if (has_long_form(instruction.op)) return true;
  const auto& operands = instruction.operands;
  switch (instruction.op) {
    case Op::kVReadfirstlaneB32:
    case Op::kVPermlane32Swap:
    case Op::kVPermlane16Swap:
      return true;
    case Op::kVCndmaskB32:
      return is_vcc(operands[3]) && is_register(operands[2], Bank::kVgpr);
    default:
      // VOPC writes VCC.
      return op_info(instruction.op).mnemonic.starts_with("v_cmp_") && is_vcc(operands[0]) &&
             is_register(operands[2], Bank::kVgpr);
  }
}

std::uint32_t vector_size(const Instruction& instruction) {
  const Modifiers& m = instruction.mods;
  const bool short_form = takes_short_form(instruction) && m.neg == 0 && m.abs == 0 && !m.clamp && !m.long_form;
  return short_form && m.dpp < 0 && !has_literal(instruction) ? kDword : 2 * kDword;
}

}  // namespace

bool has_long_form(Op op) {
  const OpInfo& info = op_info(op);
  return (info.unit == Unit::kValu || info.unit == Unit::kTrans) &&
         std::any_of(info.operands.begin(), info.operands.end(),
                     [](const OperandInfo& operand) { return operand.kind == Kind::kVectorSourceLiteral; });
}

std::uint32_t encoded_size(const Instruction& instruction) {
  switch (op_info(instruction.op).unit) {
    case Unit::kPseudo:
      return 0;
    case Unit::kBranch:
    case Unit::kInternal:
      return kDword;
    case Unit::kSalu:
      return has_literal(instruction) ? 2 * kDword : kDword;
    case Unit::kValu:
    case Unit::kTrans:
      return vector_size(instruction);
    case Unit::kMfma:
      return op_info(instruction.op).mnemonic.starts_with("v_mfma_scale_") ? 4 * kDword : 2 * kDword;
    case Unit::kSmem:
    case Unit::kLds:
    case Unit::kVmem:
      break;
  }
  return 2 * kDword;
}

}  // namespace zyfa::jit
