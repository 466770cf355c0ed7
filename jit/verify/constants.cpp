// Constant propagation for LDS addresses (constants.h): forward dataflow of "register = constant".
#include "jit/verify/constants.h"

#include <map>

#include "jit/verify/text.h"

namespace zyfa::jit::verify {
namespace {

using Constants = std::map<std::uint16_t, std::uint32_t>;  // absent: unknown

std::optional<std::uint32_t> value_of(const Constants& known, std::string_view operand) {
  if (const auto number = parse_integer(operand)) return static_cast<std::uint32_t>(*number);
  const auto reg = parse_register(operand);
  if (!reg || reg->count != 1) return std::nullopt;
  const auto it = known.find(reg->first);
  return it == known.end() ? std::nullopt : std::optional(it->second);
}

// The constant that the instruction leaves in its first operand, when it is one.
std::optional<std::uint32_t> result_of(const Constants& known, const Decoded& inst) {
  const std::string_view m = inst.mnemonic;
  const auto operands = operands_of(inst.text);
  if ((m == "s_mov_b32" || m == "s_movk_i32" || m.starts_with("v_mov_b32_e")) && operands.size() == 2)
    return value_of(known, operands[1]);
  if ((m == "s_add_u32" || m == "s_add_i32" || m.starts_with("v_add_u32_e")) && operands.size() == 3) {
    const auto a = value_of(known, operands[1]), b = value_of(known, operands[2]);
    if (a && b) return *a + *b;
  }
  return std::nullopt;
}

void step(const Program& program, const Node& node, Constants& known) {
  const auto writes = program.writes(node);
  if (writes.empty()) return;
  const auto result = result_of(known, *node.inst);
  for (RegSpan w : writes)
    for (std::uint16_t r = 0; r < w.count; ++r) known.erase(static_cast<std::uint16_t>(w.first + r));
  if (result && writes.front().count == 1) known[writes.front().first] = *result;
}

bool meet(Constants& into, const Constants& with) {
  bool changed = false;
  for (auto it = into.begin(); it != into.end();) {
    const auto other = with.find(it->first);
    if (other != with.end() && other->second == it->second) {
      ++it;
    } else {
      it = into.erase(it);
      changed = true;
    }
  }
  return changed;
}

std::optional<ByteRange> dma_range(const Node& node, const Constants& known) {
  const Decoded& d = *node.inst;
  const auto m0 = known.find(flat_special(Special::kM0));
  if (m0 == known.end() || d.mnemonic.find("dwordx3") != std::string::npos) return std::nullopt;
  const std::uint32_t lane_bytes = d.mnemonic.find("dwordx4") != std::string::npos ? 16 : 4;
  const auto begin = static_cast<std::int64_t>(m0->second) + modifier_of(d.text, "offset").value_or(0);
  if (begin < 0 || begin > 0x3ffff) return std::nullopt;
  return ByteRange{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin) + 64 * lane_bytes};
}

// Bytes of one lane of a plain ds_read, 0 for other forms.
std::uint32_t read_bytes(std::string_view m) {
  if (!m.starts_with("ds_read_")) return 0;
  m.remove_prefix(8);
  if (m.starts_with("b32")) return 4;
  if (m.starts_with("b64")) return 8;
  if (m.starts_with("b96")) return 12;
  if (m.starts_with("b128")) return 16;
  if (m.starts_with("u8") || m.starts_with("i8")) return 1;
  if (m.starts_with("u16") || m.starts_with("i16")) return 2;
  return 0;
}

std::optional<ByteRange> read_range(const Node& node, const Constants& known) {
  const Decoded& d = *node.inst;
  const std::uint32_t bytes = read_bytes(d.mnemonic);
  const auto operands = operands_of(d.text);
  if (bytes == 0 || operands.size() < 2) return std::nullopt;
  const auto address = value_of(known, operands[1]);
  if (!address) return std::nullopt;
  const auto begin =
      static_cast<std::uint64_t>(*address) + static_cast<std::uint64_t>(modifier_of(d.text, "offset").value_or(0));
  if (begin > 0x3ffff) return std::nullopt;
  return ByteRange{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin) + bytes};
}

}  // namespace

LdsRanges known_lds_ranges(const Program& program) {
  std::vector<std::optional<Constants>> in(program.blocks.size());
  for (std::uint32_t e : program.entries) in[e] = Constants{};
  std::vector<std::uint32_t> work(program.order.rbegin(), program.order.rend());
  while (!work.empty()) {
    const std::uint32_t b = work.back();
    work.pop_back();
    if (!in[b]) continue;
    Constants known = *in[b];
    for (std::uint32_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i)
      step(program, program.nodes[i], known);
    for (const Successor& s : program.blocks[b].successors) {
      if (!in[s.block]) {
        in[s.block] = known;
        work.push_back(s.block);
      } else if (meet(*in[s.block], known)) {
        work.push_back(s.block);
      }
    }
  }
  LdsRanges ranges;
  for (std::uint32_t b = 0; b < program.blocks.size(); ++b) {
    if (!in[b]) continue;
    Constants known = *in[b];
    for (std::uint32_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i) {
      const Node& node = program.nodes[i];
      if (node.inst->facts.lds_dma) {
        if (const auto r = dma_range(node, known)) ranges.dma[i] = *r;
      } else if (node.inst->facts.cls == FactClass::kLds) {
        if (const auto r = read_range(node, known)) ranges.reads[i] = *r;
      }
      step(program, node, known);
    }
  }
  return ranges;
}

}  // namespace zyfa::jit::verify
