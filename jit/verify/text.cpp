// Parsing of printed operands (text.h).
#include "jit/verify/text.h"

#include <charconv>

namespace zyfa::jit::verify {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::optional<RegSpan> parse_tuple(std::string_view body, std::uint16_t base, std::uint32_t limit) {
  std::uint32_t first = 0, last = 0;
  const bool range = !body.empty() && body.front() == '[';
  if (range) body.remove_prefix(1);
  auto [next, error] = std::from_chars(body.data(), body.data() + body.size(), first);
  if (error != std::errc{}) return std::nullopt;
  last = first;
  if (range && next != body.data() + body.size() && *next == ':') {
    auto [end, bad] = std::from_chars(next + 1, body.data() + body.size(), last);
    if (bad != std::errc{}) return std::nullopt;
    next = end;
  }
  if (range ? (next == body.data() + body.size() || *next != ']') : next != body.data() + body.size())
    return std::nullopt;
  if (last < first || last >= limit) return std::nullopt;
  return RegSpan{static_cast<std::uint16_t>(base + first), static_cast<std::uint16_t>(last - first + 1)};
}

}  // namespace

std::vector<std::string_view> operands_of(std::string_view text) {
  std::vector<std::string_view> result;
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return result;
  text = trim(text.substr(space));
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (c != ',' || depth != 0) continue;
    std::string_view operand = trim(text.substr(begin, i - begin));
    // Modifiers follow the last operand after a space.
    if (operand.find('(') == std::string_view::npos) operand = operand.substr(0, operand.find(' '));
    if (!operand.empty()) result.push_back(operand);
    begin = i + 1;
  }
  return result;
}

std::optional<std::int64_t> modifier_of(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at > 0 && text[at - 1] == ' ' && end < text.size() && text[end] == ':')
      return parse_integer(text.substr(end + 1, text.find(' ', end) - end - 1));
  }
  return std::nullopt;
}

std::optional<RegSpan> parse_register(std::string_view operand) {
  if (operand.starts_with('-')) operand.remove_prefix(1);
  if (operand.starts_with('|') && operand.size() > 2) operand = operand.substr(1, operand.size() - 2);
  if (operand == "m0") return RegSpan{flat_special(Special::kM0), 1};
  if (operand.starts_with("vcc")) return RegSpan{flat_special(Special::kVcc), 1};
  if (operand.starts_with("exec")) return RegSpan{flat_special(Special::kExec), 1};
  if (operand.size() < 2) return std::nullopt;
  switch (operand.front()) {
    case 'v':
      return parse_tuple(operand.substr(1), kVgprBase, 256);
    case 'a':
      return parse_tuple(operand.substr(1), kAgprBase, 256);
    case 's':
      return parse_tuple(operand.substr(1), kSgprBase, 128);
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> parse_integer(std::string_view s) {
  const bool negative = s.starts_with('-');
  if (negative) s.remove_prefix(1);
  const int base = s.starts_with("0x") ? 16 : 10;
  if (base == 16) s.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return negative ? -value : value;
}

std::optional<HwregField> parse_hwreg(std::string_view text) {
  const std::size_t open = text.find("hwreg(");
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t begin = open + 6, close = text.find(')', begin);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(begin, close - begin);
  HwregField field;
  const std::size_t comma = inside.find(',');
  field.name = trim(inside.substr(0, comma));
  if (comma == std::string_view::npos) return field;
  const std::string_view rest = inside.substr(comma + 1);
  const std::size_t second = rest.find(',');
  if (second == std::string_view::npos) return field;
  field.offset = static_cast<std::uint32_t>(parse_integer(trim(rest.substr(0, second))).value_or(0));
  field.width = static_cast<std::uint32_t>(parse_integer(trim(rest.substr(second + 1))).value_or(32));
  return field;
}

}  // namespace zyfa::jit::verify
