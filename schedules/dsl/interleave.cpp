#include "schedules/dsl/interleave.h"

#include <array>
#include <iterator>
#include <map>
#include <optional>

#include "jit/isa/op_info.h"

namespace zyfa::schedules {
namespace {

constexpr std::size_t kSpecials = 5;

struct SpecialUse {
  std::uint8_t reads = 0, writes = 0;  // bit masks over jit::Special
};

SpecialUse special_use(const jit::Instruction& instruction) {
  const jit::OpInfo& info = jit::op_info(instruction.op);
  SpecialUse use{info.implicit_reads, info.implicit_writes};
  for (std::size_t i = 0; i < instruction.operands.size() && i < info.operands.size(); ++i) {
    const auto* reg = std::get_if<jit::Reg>(&instruction.operands[i]);
    if (reg == nullptr || reg->bank != jit::Bank::kSpecial) continue;
    const auto bit = static_cast<std::uint8_t>(1U << reg->id);
    if (info.operands[i].role != jit::Role::kUse) use.writes |= bit;
    if (info.operands[i].role != jit::Role::kDef) use.reads |= bit;
  }
  return use;
}

bool writes_exec(const jit::Instruction& instruction) {
  return (special_use(instruction).writes >> static_cast<unsigned>(jit::Special::kExec) & 1U) != 0;
}

bool fills_exec(const jit::Instruction& instruction) {
  return instruction.op == jit::Op::kSMovB64 && instruction.operands[1] == jit::Operand{jit::Imm{-1}};
}

void glue(std::vector<std::uint8_t>& glued, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) glued[i] = 1;
}

}  // namespace

std::vector<std::uint8_t> glued_to_next(const std::vector<jit::Instruction>& code) {
  std::vector<std::uint8_t> glued(code.size(), 0);
  std::array<std::size_t, kSpecials> written{};
  std::array<bool, kSpecials> live{};
  std::map<std::uint32_t, std::size_t> branches;  // label -> first branch to it
  std::optional<std::size_t> narrowed;            // where some lanes were switched off
  for (std::size_t i = 0; i < code.size(); ++i) {
    const SpecialUse use = special_use(code[i]);
    for (std::size_t s = 0; s < kSpecials; ++s) {
      if ((use.reads >> s & 1U) != 0 && live[s]) glue(glued, written[s], i);
      if ((use.writes >> s & 1U) != 0) {
        written[s] = i;
        live[s] = true;
      }
    }
    if (writes_exec(code[i])) {
      if (narrowed) glue(glued, *narrowed, i);
      narrowed = fills_exec(code[i]) ? std::nullopt : std::optional(i);
    }
    if (const jit::Label* label = jit::label_of(code[i])) {
      const auto [at, is_new] = branches.emplace(label->id, i);
      if (!is_new) glue(glued, at->second, i);
    }
  }
  return glued;
}

std::vector<jit::Instruction> interleave(std::vector<WeightedCode> streams) {
  if (streams.size() == 1) return std::move(streams.front().code);
  std::vector<std::vector<std::uint8_t>> glued;
  std::size_t total = 0;
  for (const WeightedCode& stream : streams) {
    glued.push_back(glued_to_next(stream.code));
    total += stream.code.size();
  }
  std::vector<std::size_t> at(streams.size(), 0);
  std::vector<jit::Instruction> merged;
  merged.reserve(total);
  while (merged.size() < total) {
    for (std::size_t s = 0; s < streams.size(); ++s) {
      bool together = false;
      for (std::uint32_t n = 0; (n < streams[s].weight || together) && at[s] < streams[s].code.size(); ++n) {
        together = glued[s][at[s]] != 0;
        merged.push_back(std::move(streams[s].code[at[s]++]));
      }
    }
  }
  return merged;
}

}  // namespace zyfa::schedules
