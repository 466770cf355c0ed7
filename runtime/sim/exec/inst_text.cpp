// Tokenises printed instructions: see inst_text.h.
#include "runtime/sim/exec/inst_text.h"

#include <array>
#include <charconv>
#include <cstdlib>

#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Splits at `separator` outside brackets, parentheses and bars.
std::vector<std::string_view> split_top(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool bar = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == '|') bar = !bar;
    if (c == separator && depth == 0 && !bar) {
      parts.push_back(trim(s.substr(start, i - start)));
      start = i + 1;
    }
  }
  parts.push_back(trim(s.substr(start)));
  return parts;
}

struct NamedRegister {
  std::string_view name;
  std::uint16_t index, count;
};
constexpr std::array kNamed{
    NamedRegister{"vcc", kVccLo, 2},
    NamedRegister{"vcc_lo", kVccLo, 1},
    NamedRegister{"vcc_hi", kVccLo + 1, 1},
    NamedRegister{"exec", kExecLo, 2},
    NamedRegister{"exec_lo", kExecLo, 1},
    NamedRegister{"exec_hi", kExecLo + 1, 1},
    NamedRegister{"m0", kM0, 1},
    NamedRegister{"flat_scratch", kFlatScratchLo, 2},
    NamedRegister{"flat_scratch_lo", kFlatScratchLo, 1},
    NamedRegister{"flat_scratch_hi", kFlatScratchLo + 1, 1},
    NamedRegister{"xnack_mask", kXnackMaskLo, 2},
    NamedRegister{"xnack_mask_lo", kXnackMaskLo, 1},
    NamedRegister{"xnack_mask_hi", kXnackMaskLo + 1, 1},
};
struct NamedSpecial {
  std::string_view name;
  SpecialSource source;
};
constexpr std::array kSpecials{
    NamedSpecial{"src_scc", SpecialSource::kScc},
    NamedSpecial{"scc", SpecialSource::kScc},
    NamedSpecial{"src_vccz", SpecialSource::kVccz},
    NamedSpecial{"src_execz", SpecialSource::kExecz},
    NamedSpecial{"src_shared_base", SpecialSource::kSharedBase},
    NamedSpecial{"src_shared_limit", SpecialSource::kSharedLimit},
    NamedSpecial{"src_private_base", SpecialSource::kPrivateBase},
    NamedSpecial{"src_private_limit", SpecialSource::kPrivateLimit},
};

// "v7" or "v[4:7]" after the bank letter.
bool parse_tuple(std::string_view body, TextOperand& out) {
  auto number = [](std::string_view s, std::uint16_t& value) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    return error == std::errc() && end == s.data() + s.size() && !s.empty();
  };
  if (body.empty()) return false;
  if (body.front() != '[') {
    out.count = 1;
    return number(body, out.index);
  }
  if (body.back() != ']') return false;
  body = body.substr(1, body.size() - 2);
  const auto colon = body.find(':');
  if (colon == std::string_view::npos) {
    out.count = 1;
    return number(body, out.index);
  }
  std::uint16_t last = 0;
  if (!number(body.substr(0, colon), out.index) || !number(body.substr(colon + 1), last) || last < out.index)
    return false;
  out.count = static_cast<std::uint16_t>(last - out.index + 1);
  return true;
}

TextOperand parse_operand(std::string_view s) {
  TextOperand out;
  out.text = s;
  for (bool again = true; again;) {
    again = false;
    if (s.size() > 1 && s.front() == '-' && !(s[1] >= '0' && s[1] <= '9')) {
      out.neg = !out.neg;
      s = trim(s.substr(1));
      again = true;
    } else if (s.size() > 2 && s.front() == '|' && s.back() == '|') {
      out.abs = true;
      s = trim(s.substr(1, s.size() - 2));
      again = true;
    } else if (s.size() > 6 && s.starts_with("sext(") && s.back() == ')') {
      out.sext = true;
      s = trim(s.substr(5, s.size() - 6));
      again = true;
    } else if (s.size() > 5 && s.starts_with("neg(") && s.back() == ')') {
      out.neg = !out.neg;
      s = trim(s.substr(4, s.size() - 5));
      again = true;
    } else if (s.size() > 5 && s.starts_with("lit(") && s.back() == ')') {
      s = trim(s.substr(4, s.size() - 5));
      again = true;
    } else if (s.size() > 5 && s.starts_with("abs(") && s.back() == ')') {
      out.abs = true;
      s = trim(s.substr(4, s.size() - 5));
      again = true;
    }
  }
  if (s == "off") {
    out.kind = TokenKind::kOff;
    return out;
  }
  for (const auto& named : kNamed) {
    if (named.name == s) {
      out.kind = TokenKind::kSgpr;
      out.index = named.index;
      out.count = named.count;
      return out;
    }
  }
  for (const auto& special : kSpecials) {
    if (special.name == s) {
      out.kind = TokenKind::kSpecial;
      out.index = static_cast<std::uint16_t>(special.source);
      out.count = 1;
      return out;
    }
  }
  if (!s.empty()) {
    const char bank = s.front();
    if ((bank == 'v' || bank == 'a' || bank == 's') && parse_tuple(s.substr(1), out)) {
      out.kind = bank == 'v' ? TokenKind::kVgpr : bank == 'a' ? TokenKind::kAgpr : TokenKind::kSgpr;
      return out;
    }
    if (s.starts_with("ttmp") && parse_tuple(s.substr(4), out)) {
      out.kind = TokenKind::kSgpr;
      out.index = static_cast<std::uint16_t>(out.index + 108);
      return out;
    }
  }
  if (const auto integer = parse_integer(s)) {
    out.kind = TokenKind::kInteger;
    out.integer = *integer;
    out.hex = s.find("0x") != std::string_view::npos;
    return out;
  }
  if (s.find('.') != std::string_view::npos) {
    const std::string copy(s);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (end == copy.c_str() + copy.size()) {
      out.kind = TokenKind::kFloat;
      out.real = value;
      return out;
    }
  }
  out.kind = TokenKind::kWord;
  return out;
}

// LLVM prints an inline constant where its own tables want a register as "1.0/*Invalid immediate*/". The hardware takes
// one as the scale of a matrix instruction (AMD CDNA4 ISA guide 7.2.1).
constexpr std::string_view kInvalidImmediate = "/*Invalid immediate*/";
std::string_view without_comment(std::string_view s) {
  return s.ends_with(kInvalidImmediate) ? s.substr(0, s.size() - kInvalidImmediate.size()) : s;
}

TextModifier parse_modifier(std::string_view s) {
  const auto colon = s.find(':');
  if (colon != std::string_view::npos) return {s.substr(0, colon), s.substr(colon + 1)};
  const auto paren = s.find('(');
  if (paren != std::string_view::npos && s.back() == ')')
    return {s.substr(0, paren), s.substr(paren + 1, s.size() - paren - 2)};
  return {s, {}};
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view s) {
  bool negative = false;
  if (!s.empty() && s.front() == '-') {
    negative = true;
    s.remove_prefix(1);
  }
  int base = 10;
  if (s.starts_with("0x")) {
    base = 16;
    s.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (s.empty() || error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::optional<InstText> parse_instruction(std::string_view text) {
  text = trim(text);
  if (text.empty()) return std::nullopt;
  const auto space = text.find_first_of(" \t");
  InstText out;
  out.mnemonic = std::string(text.substr(0, space));
  for (const std::string_view suffix : {"_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"}) {
    if (std::string_view(out.mnemonic).ends_with(suffix)) {
      out.suffix = std::string(suffix.substr(1));
      out.mnemonic.resize(out.mnemonic.size() - suffix.size());
      break;
    }
  }
  if (space == std::string_view::npos) return out;
  const std::string_view rest = trim(text.substr(space));
  if (rest.empty()) return out;
  if (out.mnemonic == "s_waitcnt") {
    for (const auto piece : split_top(rest, ' ')) {
      if (!piece.empty()) out.modifiers.push_back(parse_modifier(piece));
    }
    return out;
  }
  const bool scaled = std::string_view(out.mnemonic).starts_with("v_mfma_scale_");
  const auto parts = split_top(rest, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 < parts.size()) {
      out.operands.push_back(parse_operand(scaled ? without_comment(parts[i]) : parts[i]));
      continue;
    }
    // The last piece carries the modifiers.
    std::string_view last = parts[i];
    if (const auto comment = last.find(kInvalidImmediate); scaled && comment != std::string_view::npos) {
      out.operands.push_back(parse_operand(last.substr(0, comment)));
      for (const auto piece : split_top(last.substr(comment + kInvalidImmediate.size()), ' '))
        if (!piece.empty()) out.modifiers.push_back(parse_modifier(piece));
      continue;
    }
    const auto pieces = split_top(last, ' ');
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      if (pieces[k].empty()) continue;
      if (k == 0) {
        out.operands.push_back(parse_operand(pieces[k]));
      } else {
        out.modifiers.push_back(parse_modifier(pieces[k]));
      }
    }
  }
  return out;
}

}  // namespace zyfa::sim
