// Registers, constants and immediates of printed operands: see operand_decode.h.
#include "runtime/sim/exec/operand_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

bool is_scalar_type(char t) { return t == 's' || t == 'S' || t == 'm' || t == 'r' || t == 'g' || t == 'o' || t == 'u'; }
bool is_wide(char t) { return t == 'd' || t == 'D' || t == 'l' || t == 'S' || t == 'm'; }

// The f16 or bf16 inline constants are few: converting through float is exact for all but 1/(2*pi).
u32 half_bits(double x) {
  if (x == 0.15915494309189532 || static_cast<float>(x) == 0.15915494f) return 0x3118;
  const u32 f = std::bit_cast<u32>(static_cast<float>(x));
  if ((f & 0x7fffffff) == 0) return f >> 16;
  return ((f >> 16) & 0x8000) | ((((f >> 23) & 0xff) - 112) << 10) | ((f >> 13) & 0x3ff);
}

void set_constant(const TextOperand& t, char type, Operand& o) {
  o.kind = OperandKind::kConst;
  o.count = 1;
  if (t.kind == TokenKind::kInteger) {
    const u64 value = static_cast<u64>(t.integer);
    o.lo = static_cast<u32>(value);
    if (type == 'd' && t.hex) {
      o.hi = o.lo;  // a literal of a 64-bit float is its high dword
      o.lo = 0;
    } else if (is_wide(type)) {
      o.hi = t.hex ? 0 : static_cast<u32>(value >> 32);
    } else {
      o.hi = o.lo;
    }
    return;
  }
  if (type == 'h' || type == 'q') {
    o.lo = half_bits(t.real);
  } else if (type == 'b') {
    o.lo = std::bit_cast<u32>(static_cast<float>(t.real)) >> 16;
  } else if (is_wide(type)) {
    const u64 bits = std::bit_cast<u64>(t.real);
    o.lo = static_cast<u32>(bits);
    o.hi = static_cast<u32>(bits >> 32);
  } else {
    o.lo = o.hi = std::bit_cast<u32>(static_cast<float>(t.real));
  }
}

struct HwReg {
  std::string_view name;
  u32 id;
};
constexpr std::array kHwRegs{
    HwReg{"HW_REG_MODE", 1},   HwReg{"HW_REG_STATUS", 2},        HwReg{"HW_REG_TRAPSTS", 3},
    HwReg{"HW_REG_HW_ID", 4},  HwReg{"HW_REG_GPR_ALLOC", 5},     HwReg{"HW_REG_LDS_ALLOC", 6},
    HwReg{"HW_REG_IB_STS", 7}, HwReg{"HW_REG_SH_MEM_BASES", 15}, HwReg{"HW_REG_XCC_ID", 20},
};

// "hwreg(HW_REG_MODE, 4, 4)" into id | offset << 6 | (size - 1) << 11.
Refusal decode_hwreg(std::string_view text, MicroOp& op) {
  if (const auto raw = parse_integer(text)) {
    op.imm2 = static_cast<std::int32_t>(*raw & 0xffff);
    return {};
  }
  if (!text.starts_with("hwreg(") || text.back() != ')') return fmt::format("hardware register '{}'", text);
  text = text.substr(6, text.size() - 7);
  u32 field[3] = {0, 0, 32};
  for (u32 i = 0; i < 3; ++i) {
    const auto comma = text.find(',');
    std::string_view piece = text.substr(0, comma);
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    if (const auto value = parse_integer(piece)) {
      field[i] = static_cast<u32>(*value);
    } else {
      bool known = false;
      for (const auto& reg : kHwRegs) {
        if (i == 0 && reg.name == piece) {
          field[0] = reg.id;
          known = true;
        }
      }
      if (!known) return fmt::format("hardware register '{}'", piece);
    }
    if (comma == std::string_view::npos) break;
    text = text.substr(comma + 1);
  }
  if (field[2] == 0 || field[2] > 32 || field[1] > 31) return "hardware register field out of range";
  op.imm2 = static_cast<std::int32_t>((field[0] & 63) | (field[1] << 6) | ((field[2] - 1) << 11));
  return {};
}

// "gpr_idx(SRC0,DST)" into the four enable bits.
bool decode_gpr_idx(std::string_view text, u32& bits) {
  if (!text.starts_with("gpr_idx(") || text.back() != ')') return false;
  constexpr std::array<std::string_view, 4> kNames{"SRC0", "SRC1", "SRC2", "DST"};
  text = text.substr(8, text.size() - 9);
  bits = 0;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view piece = text.substr(0, comma);
    const auto* const name = std::find(kNames.begin(), kNames.end(), piece);
    if (name == kNames.end()) return false;
    bits |= 1u << (name - kNames.begin());
    if (comma == std::string_view::npos) break;
    text = text.substr(comma + 1);
  }
  return true;
}

Refusal decode_register(const TextOperand& t, const RegisterFile& file, Operand& o) {
  o.count = static_cast<std::uint8_t>(t.count);
  if (t.kind == TokenKind::kSgpr) {
    o.kind = OperandKind::kSgpr;
    o.index = t.index;
    if (t.index + t.count > kScalars) return fmt::format("scalar register {} does not exist", t.text);
    return {};
  }
  o.kind = OperandKind::kVgpr;
  o.agpr = t.kind == TokenKind::kAgpr;
  const u32 row = t.index + (o.agpr ? file.accum_offset : 0);
  if (row + t.count > file.rows)
    return fmt::format("register {} lies outside of the {} registers the kernel declares", t.text, file.rows);
  o.index = static_cast<std::uint16_t>(row);
  return {};
}

Refusal decode_source(const TextOperand& t, char type, const RegisterFile& file, MicroOp& op, Operand& o) {
  o.type = type;
  o.neg = t.neg;
  o.abs = t.abs;
  o.sext = t.sext;
  if (type == 'w') return decode_hwreg(t.text, op);
  switch (t.kind) {
    case TokenKind::kVgpr:
    case TokenKind::kAgpr:
      if (is_scalar_type(type) || type == 'k') return fmt::format("operand {} where a scalar is expected", t.text);
      return decode_register(t, file, o);
    case TokenKind::kSgpr:
      if (type == 'a' || type == 't' || type == 'D')
        return fmt::format("operand {} where vector registers are expected", t.text);
      return decode_register(t, file, o);
    case TokenKind::kSpecial:
      o.kind = OperandKind::kSpecial;
      o.index = t.index;
      o.count = 1;
      return {};
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      if (type == 'a' || type == 'g' || type == 'r')
        return fmt::format("operand {} where registers are expected", t.text);
      set_constant(t, type, o);
      return {};
    case TokenKind::kOff:
      if (type != 'a' && type != 'g') return "operand 'off' where a register is expected";
      return {};
    case TokenKind::kWord:
      // Branch labels: the target comes from the decoder.
      if (type == 'k' && op.unit == Unit::kBranch) return {};
      if (type == 'n') return {};  // a message: check_values in program.cpp
      if (type == 'k' && decode_gpr_idx(t.text, o.lo)) {
        o.kind = OperandKind::kConst;
        return {};
      }
      return fmt::format("operand '{}'", t.text);
  }
  return fmt::format("operand '{}'", t.text);
}

// Registers an operand of this type spans, or 0 when any number will do.
unsigned expected_count(char type) {
  switch (type) {
    case 'd':
    case 'l':
    case 'p':
    case 'S':
    case 'm':
      return 2;
    case 'r':
      return 4;
    case 't':
    case 'D':
    case 'a':
    case 'g':
    case 'o':
    case 'u':
    case 'k':
    case 'w':
      return 0;
    default:
      return 1;
  }
}

}  // namespace

Refusal decode_operands(const InstText& inst, const RegisterFile& file, MicroOp& op) {
  const std::string_view signature = op.row->signature;
  const auto equals = signature.find('=');
  std::string destinations;
  for (const char c : signature.substr(0, equals))
    if (c != ',') destinations.push_back(c);
  const std::string_view sources = signature.substr(equals + 1);
  // s_barrier and cache maintenance carry no operand that matters.
  if (destinations.empty() && sources.empty()) return {};
  if (inst.operands.size() != destinations.size() + sources.size()) {
    return fmt::format("has {} operands where {} are expected", inst.operands.size(),
                       destinations.size() + sources.size());
  }

  for (std::size_t i = 0; i < destinations.size(); ++i) {
    Operand& o = i == 0 ? op.dst : op.dst2;
    const TextOperand& t = inst.operands[i];
    const char type = destinations[i];
    if (t.kind != TokenKind::kVgpr && t.kind != TokenKind::kAgpr && t.kind != TokenKind::kSgpr)
      return fmt::format("destination '{}'", t.text);
    if (is_scalar_type(type) != (t.kind == TokenKind::kSgpr)) return fmt::format("destination {}", t.text);
    o.type = type;
    if (Refusal refusal = decode_register(t, file, o); !refusal.empty()) return refusal;
    const unsigned want = op.unit == Unit::kSmem ? op.arg : expected_count(type);
    if (want != 0 && o.count != want)
      return fmt::format("destination {} has {} registers, {} expected", t.text, o.count, want);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const TextOperand& t = inst.operands[destinations.size() + i];
    Operand& o = op.src[i];
    if (Refusal refusal = decode_source(t, sources[i], file, op, o); !refusal.empty()) return refusal;
    const unsigned want = expected_count(sources[i]);
    const bool is_register = o.kind == OperandKind::kVgpr || o.kind == OperandKind::kSgpr;
    if (is_register && want != 0 && o.count != want && !(sources[i] == 's' && o.count == 2))
      return fmt::format("operand {} has {} registers, {} expected", t.text, o.count, want);
    if (o.kind == OperandKind::kVgpr) o.plain = !o.neg && !o.abs && !o.sext;
  }
  op.sources = static_cast<std::uint8_t>(sources.size());
  return {};
}

}  // namespace zyfa::sim
