// What an opcode is: mnemonic, unit, operand signature; and the check that an instruction fits it.
#pragma once

#include <cstdint>
#include <optional>
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
  kAgpr,
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

// Which fields of Modifiers an opcode accepts.
enum ModifierBit : std::uint16_t {
  kModOffset = 1 << 0,
  kModOffen = 1 << 1,
  kModCache = 1 << 2,  // sc0, sc1, nt
  kModClamp = 1 << 3,
  kModNegAbs = 1 << 4,    // neg and abs of sources `negatable`
  kModDestHalf = 1 << 5,  // op_sel bit 3
  kModPacked = 1 << 6,    // VOP3P f32: op_sel, op_sel_hi, neg (lo), neg_hi
  kModScaleSel = 1 << 7,  // op_sel, op_sel_hi of the two scales
  kModFormats = 1 << 8,   // cbsz, blgp as f8f6f4 formats
  kModBitop3 = 1 << 9,
  kModDpp = 1 << 10,
};

struct OpInfo {
  Op op;
  std::string_view mnemonic;
  Unit unit;
  std::span<const OperandInfo> operands;
  std::uint8_t implicit_reads = 0;  // bit mask over Special
  std::uint8_t implicit_writes = 0;
  std::uint8_t mfma_passes = 0;  // XDL passes (gfx950-isa.md 1.5), 0 when not an MFMA; f8f6f4: as for 8-bit operands
  bool is_lds_dma = false;
  bool is_store = false;
  std::uint16_t modifiers = 0;  // ModifierBit
  std::uint8_t negatable = 0;   // bit i: source i takes neg and abs
};

const OpInfo& op_info(Op op);

// Whether the value needs no literal dword: integers -16..64 and the float constants of the ISA, given as 32 bits.
[[nodiscard]] bool is_inline_constant(std::uint32_t bits);

// The constant's 32 bits when the operand is one that needs a literal dword.
[[nodiscard]] std::optional<std::uint32_t> literal_of(const Operand& operand);

// Dwords of an f8f6f4 operand in format 0..4 (cbsz or blgp; gfx950-isa.md 1.2), 0 for an unknown format.
[[nodiscard]] std::uint16_t mfma_format_dwords(std::uint8_t format);

// Operand count, kinds, tuple sizes and alignment, ranges of modifiers, one-SGPR rule, no literal in VOP3, C/D overlap
// (gfx950-isa.md 1.2). The message names the instruction text, the operand and what is allowed.
[[nodiscard]] Status check(const Instruction& instruction, const RegTable& regs);

// The LLVM MC text of one instruction with physical registers (no comment). Labels print as "L<id>".
std::string print(const Instruction& instruction);
// The same for messages, with virtual tuples named as in the table: "%score[0:3]".
std::string print(const Instruction& instruction, const RegTable& regs);

// "stage (file:line)" of an origin, or "" when it names nothing.
std::string to_string(const Origin& origin);

}  // namespace zyfa::jit
