// What the verifier reads from an instruction's printed text: the few facts InstFacts does not carry.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "jit/verify/program.h"

namespace zyfa::jit::verify {

// Operands in order, without the mnemonic and without trailing modifiers: "v[0:3]", "s4", "0x10", "off".
std::vector<std::string_view> operands_of(std::string_view text);
// The number after "name:" among the modifiers, e.g. "offset".
std::optional<std::int64_t> modifier_of(std::string_view text, std::string_view name);
// "v4", "a[0:3]", "s[2:3]", "vcc", "m0", "exec" as a flat span; nothing for constants and other names.
std::optional<RegSpan> parse_register(std::string_view operand);
std::optional<std::int64_t> parse_integer(std::string_view operand);

// s_setreg / s_getreg: name of the register, first bit and width.
struct HwregField {
  std::string_view name;
  std::uint32_t offset = 0, width = 32;
};
std::optional<HwregField> parse_hwreg(std::string_view text);

}  // namespace zyfa::jit::verify
