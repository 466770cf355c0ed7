// One typed instruction of a listing: opcode, operands, modifiers, a comment and the DSL origin.
//
// Besides real opcodes there are pseudo instructions (kLabel, kAwait) that print nothing or resolve to s_waitcnt.
// Invariant: an instruction accepted by check() (op_info.h) prints to text that LLVM MC assembles for gfx950.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "jit/isa/reg.h"

namespace zyfa::jit {

enum class Op : std::uint16_t {
#define ZYFA_OP(name, ...) name,
#include "jit/isa/opcodes.def"
#undef ZYFA_OP
  kCount
};

struct Label {
  std::uint32_t id = 0;
  bool operator==(const Label&) const = default;
};

// 32-bit integer, printed as an inline constant or literal; and a float constant, printed as a float literal.
struct Imm {
  std::int32_t value = 0;
  bool operator==(const Imm&) const = default;
};
struct FloatImm {
  float value = 0;
  bool operator==(const FloatImm&) const = default;
};

using Operand = std::variant<Reg, Imm, FloatImm, Label>;

// Direct-to-LDS loads and LDS reads complete on counters without naming a register. A memory token names the data that
// such an instruction moves; kAwait names the tokens that must have completed. Token 0 = none.
using Token = std::uint32_t;

struct Modifiers {
  std::int32_t offset = 0;  // instruction offset: DS 16 bit, buffer 12 bit unsigned, global 13 bit signed, SMEM 21 bit
  bool offen = false;       // buffer: VGPR offset present
  bool lds = false;         // buffer/global load: direct to LDS (address in M0)
  bool sc0 = false, sc1 = false, nt = false;
  bool clamp = false;
  std::uint8_t op_sel = 0;        // bit i: source i; bit 3: destination half
  std::uint8_t op_sel_hi = 0xff;  // 0xff: the instruction's default
  std::uint8_t neg = 0, abs = 0;  // bit i: source i (VOP3); neg_lo of VOP3P
  std::uint8_t neg_hi = 0;        // VOP3P
  std::uint8_t cbsz = 0, blgp = 0;
  std::int16_t bitop3 = -1;
  // DPP control of source 0 (gfx950-isa.md 2), all rows and banks: quad_perm 0x00..0xff, two bits a lane of the quad;
  // row_ror:n 0x120 + n. -1: no DPP.
  std::int16_t dpp = -1;
  bool long_form = false;  // VALU that has a 4-byte encoding: take the 8-byte one (VOP3) all the same
  bool operator==(const Modifiers&) const = default;
};

// Where in the schedule description an instruction comes from: "pv[3]" of the C++ line that emitted it.
struct Origin {
  std::string stage;      // stage name with iteration slot, e.g. "qk@1#0"; empty for glue
  const char* file = "";  // DSL source file (static storage), path relative to the repository
  std::uint32_t line = 0;
};

struct Instruction {
  Op op{};
  std::vector<Operand> operands;
  Modifiers mods;
  std::string comment;
  Origin origin;
  Token moves = 0;  // token this memory instruction carries (LDS-DMA: data arriving in LDS; DS read: data leaving)
  std::vector<Token> awaits;  // kAwait only
};

// What a branch goes to and what kLabel places, else nullptr.
[[nodiscard]] inline const Label* label_of(const Instruction& instruction) {
  return instruction.operands.empty() ? nullptr : std::get_if<Label>(&instruction.operands.front());
}

// A linear listing with labels; control flow only through the branch instructions it contains.
struct Listing {
  std::string symbol;  // kernel symbol
  RegTable regs;
  std::vector<Instruction> code;
  std::uint32_t label_count = 0;

  Label new_label() { return Label{label_count++}; }
};

}  // namespace zyfa::jit
