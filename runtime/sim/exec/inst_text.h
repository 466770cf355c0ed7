// Reads one printed instruction (LLVM's AMDGPU syntax) into mnemonic, operands and modifiers.
// Purely textual: no opcode knowledge. Any text is safe input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zyfa::sim {

enum class TokenKind : std::uint8_t {
  kVgpr,
  kAgpr,
  kSgpr,     // also VCC, EXEC, M0, flat_scratch, xnack_mask and trap registers, by their scalar numbers
  kSpecial,  // src_* (number: SpecialSource)
  kInteger,
  kFloat,  // printed with a decimal point
  kOff,
  kWord,  // anything else, kept as text: hwreg(...), sendmsg(...), swizzle(...)
};

struct TextOperand {
  TokenKind kind = TokenKind::kWord;
  std::uint16_t index = 0, count = 0;
  std::int64_t integer = 0;
  bool hex = false;  // printed in hexadecimal: a 32-bit literal
  double real = 0;
  bool neg = false, abs = false, sext = false;
  std::string_view text;
};

struct TextModifier {
  std::string_view name;   // "offset" of "offset:16", "offen", "vmcnt" of "vmcnt(0)"
  std::string_view value;  // "16", "[1,0]", "BYTE_1", "0xf"; empty for a bare word
};

struct InstText {
  std::string mnemonic;  // without encoding suffix
  std::string suffix;    // "e32", "e64", "dpp", "sdwa", "e64_dpp" or empty
  std::vector<TextOperand> operands;
  std::vector<TextModifier> modifiers;
};

// `text` must outlive the result. nullopt when the text does not have the shape of an instruction.
std::optional<InstText> parse_instruction(std::string_view text);

// "12", "-3", "0x1f" -> value.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace zyfa::sim
