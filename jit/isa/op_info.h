// What an opcode is: mnemonic, unit, operand signature; and the check that an instruction fits it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "jit/isa/instruction.h"
#include "zyfa/error.h"

namespace zyfa::jit {

enum class Unit : std::uint8_t { kPseudo, kSalu, kBranch, kInternal, kSmem, kValu, kTrans, kMfma, kLds, kVmem };

enum class Role : std::uint8_t { kDef, kUse, kTied };
enum class Kind : std::uint8_t {
  kVgpr,
  kVgprOrAgpr,
  kSgpr,
  kVectorSource,
  kVectorSourceLiteral,
  kMfmaC,
  kScalarSource,
  kImmediate,
  kLabel
};

struct OperandInfo {
  Role role;
  Kind kind;
  std::uint16_t count;  // 32-bit registers
};

struct OpInfo {
  Op op;
  std::string_view mnemonic;
  Unit unit;
  std::span<const OperandInfo> operands;
  std::uint8_t implicit_reads = 0;  // bit mask over Special
  std::uint8_t implicit_writes = 0;
  std::uint8_t mfma_passes = 0;  // XDL passes (gfx950-isa.md 1.5), 0 when not an MFMA
  bool is_lds_dma = false;
  bool is_store = false;
};

const OpInfo& op_info(Op op);

// Operand count, kinds, tuple sizes and alignment, ranges of modifiers, one-SGPR rule, no literal in VOP3, C/D overlap
// (gfx950-isa.md 1.2). The message names the instruction text, the operand and what is allowed.
[[nodiscard]] Status check(const Instruction& instruction, const RegTable& regs);

// The LLVM MC text of one instruction with physical registers (no comment). Labels print as "L<id>".
std::string print(const Instruction& instruction);

}  // namespace zyfa::jit
