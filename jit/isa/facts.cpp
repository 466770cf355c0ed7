// InstFacts of a listing instruction, from the opcode table.
#include "jit/isa/facts.h"

#include "jit/isa/op_info.h"

namespace zyfa::jit {
namespace {

RegRange range_of(const Reg& reg) {
  // VCC and EXEC are one fact each: a count of 2 would reach the next special register's id.
  if (reg.bank == Bank::kSpecial) return {Bank::kSpecial, static_cast<std::uint16_t>(reg.id), 1};
  return {reg.bank, static_cast<std::uint16_t>(reg.id), reg.count};
}

FactClass class_of(const OpInfo& info) {
  switch (info.op) {
    case Op::kSBarrier:
      return FactClass::kBarrier;
    case Op::kSWaitcnt:
      return FactClass::kWaitcnt;
    case Op::kSEndpgm:
      return FactClass::kEndpgm;
    case Op::kVPermlane32Swap:
    case Op::kVPermlane16Swap:
      return FactClass::kPermlaneSwap;
    case Op::kVReadfirstlaneB32:
      return FactClass::kReadlane;
    case Op::kVSmfmacF32_16x16x128Fp8Fp8:
      return FactClass::kSmfmac;
    default:
      break;
  }
  switch (info.unit) {
    case Unit::kPseudo:
    case Unit::kInternal:
      return FactClass::kOther;
    case Unit::kSalu:
      return FactClass::kSalu;
    case Unit::kBranch:
      return FactClass::kBranch;
    case Unit::kSmem:
      return FactClass::kSmem;
    case Unit::kValu:
      return FactClass::kValu;
    case Unit::kTrans:
      return FactClass::kTrans;
    case Unit::kMfma:
      return FactClass::kMfmaXdl;
    case Unit::kLds:
      return FactClass::kLds;
    case Unit::kVmem:
      return info.is_store ? FactClass::kVmemStore : FactClass::kVmemLoad;
  }
  return FactClass::kOther;
}

void add_specials(std::vector<RegRange>& out, std::uint8_t mask) {
  for (std::uint16_t id = 0; mask >> id != 0; ++id) {
    if ((mask >> id & 1) != 0) out.push_back({Bank::kSpecial, id, 1});
  }
}

void fill_mfma(const Instruction& instruction, const OpInfo& info, InstFacts& facts) {
  const auto range = [&instruction](std::size_t i) {
    const Reg* reg = i < instruction.operands.size() ? std::get_if<Reg>(&instruction.operands[i]) : nullptr;
    return reg != nullptr ? range_of(*reg) : RegRange{};
  };
  facts.mfma_d = range(0);
  facts.mfma_a = range(1);
  facts.mfma_b = range(2);
  if (facts.cls == FactClass::kSmfmac) {  // accumulates in place; its last operand is the index
    facts.mfma_c = facts.mfma_d;
    facts.mfma_passes = info.mfma_passes;
    return;
  }
  facts.mfma_c = range(3);
  facts.mfma_scale_a = range(4);
  facts.mfma_scale_b = range(5);
  facts.mfma_passes = info.mfma_passes;
  // gfx950-isa.md 1.5: without an 8-bit operand an f8f6f4 MFMA takes half the passes.
  const bool narrow = instruction.mods.cbsz >= 2 && instruction.mods.blgp >= 2;
  if ((info.modifiers & kModFormats) != 0 && narrow) facts.mfma_passes /= 2;
}

void fill_memory(const Instruction& instruction, const OpInfo& info, InstFacts& facts) {
  facts.lds_dma = info.is_lds_dma;
  const std::size_t last = instruction.operands.size() - 1;
  if ((info.modifiers & kModOffen) != 0)
    facts.soffset_is_sgpr = std::holds_alternative<Reg>(instruction.operands[last]);
  if (!info.is_store) return;
  for (std::size_t i = 0; i <= last; ++i) {
    if (info.operands[i].kind != Kind::kVgprOrAgpr) continue;
    facts.store_data = range_of(std::get<Reg>(instruction.operands[i]));
    facts.store_dwords = static_cast<std::uint8_t>(facts.store_data.count);
  }
}

}  // namespace

InstFacts facts_of(const Instruction& instruction) {
  InstFacts facts;
  const OpInfo& info = op_info(instruction.op);
  facts.cls = class_of(info);
  if (info.unit == Unit::kPseudo) {
    facts.nop_states = 0;
    return facts;
  }
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const Reg* reg = std::get_if<Reg>(&instruction.operands[i]);
    if (reg == nullptr || reg->count == 0) continue;
    const Role role = info.operands[i].role;
    if (role != Role::kUse) facts.writes.push_back(range_of(*reg));
    if (role != Role::kDef) facts.reads.push_back(range_of(*reg));
  }
  add_specials(facts.reads, info.implicit_reads);
  add_specials(facts.writes, info.implicit_writes);

  switch (info.unit) {
    case Unit::kMfma:
      fill_mfma(instruction, info, facts);
      break;
    case Unit::kVmem:
      fill_memory(instruction, info, facts);
      break;
    case Unit::kValu:
    case Unit::kTrans:
      for (const RegRange& w : facts.writes) {
        if (w == range_of(exec())) facts.cls = FactClass::kCmpx;
      }
      facts.is_dpp = instruction.mods.dpp >= 0;
      facts.dest_half_select = (info.modifiers & kModDestHalf) != 0 && (instruction.mods.op_sel & 8) != 0;
      break;
    case Unit::kInternal:
      if (instruction.op == Op::kSNop) {
        facts.nop_states = static_cast<std::uint8_t>(std::get<Imm>(instruction.operands[0]).value + 1);
      } else if (instruction.op == Op::kSWaitcnt) {
        facts.waitcnt = static_cast<std::uint16_t>(std::get<Imm>(instruction.operands[0]).value);
      }
      break;
    default:
      break;
  }
  return facts;
}

}  // namespace zyfa::jit
