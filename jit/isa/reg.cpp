// Register names and the table of virtual tuples.
#include "jit/isa/reg.h"

#include <charconv>
#include <utility>

namespace zyfa::jit {
namespace {

void append_number(std::string& out, std::uint32_t n) {
  char buffer[12];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), n).ptr;
  out.append(buffer, end);
}

void append_range(std::string& out, std::uint32_t first, std::uint32_t count) {
  out += '[';
  append_number(out, first);
  if (count != 1) {
    out += ':';
    append_number(out, first + count - 1);
  }
  out += ']';
}

std::string_view special_name(const Reg& reg) {
  switch (static_cast<Special>(reg.id)) {
    case Special::kVcc:
      return reg.count == 2 ? "vcc" : "vcc_lo";
    case Special::kExec:
      return reg.count == 2 ? "exec" : "exec_lo";
    case Special::kM0:
      return "m0";
    case Special::kScc:
      return "scc";
    case Special::kMode:
      return "mode";
  }
  return "?";
}

}  // namespace

std::string to_string(const Reg& reg) {
  if (reg.count == 0) return "off";
  if (reg.is_virtual) {
    std::string out = "%";
    append_number(out, reg.id);
    append_range(out, reg.first, reg.count);
    return out;
  }
  if (reg.bank == Bank::kSpecial) return std::string(special_name(reg));
  std::string out(1, reg.bank == Bank::kSgpr ? 's' : reg.bank == Bank::kVgpr ? 'v' : 'a');
  if (reg.count == 1) {
    append_number(out, reg.id);
  } else {
    append_range(out, reg.id, reg.count);
  }
  return out;
}

Reg RegTable::add(Bank bank, std::uint16_t count, std::string name, std::int32_t pinned) {
  std::uint16_t align = count >= 2 ? 2 : 1;
  if (bank == Bank::kSgpr && count >= 3) align = 4;
  const auto id = static_cast<std::uint32_t>(tuples_.size());
  tuples_.push_back({bank, count, align, std::move(name), pinned});
  return {bank, true, count, 0, id};
}

std::string RegTable::name(const Reg& reg) const {
  if (!reg.is_virtual || reg.id >= tuples_.size()) return to_string(reg);
  std::string out = "%" + tuples_[reg.id].name;
  if (tuples_[reg.id].count != 1) append_range(out, reg.first, reg.count);
  return out;
}

}  // namespace zyfa::jit
