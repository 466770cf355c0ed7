// Definitions and uses come from MCInstrDesc; what LLVM's description of the encoded form leaves out (partial writes of
// d16 loads and of SDWA) and roles (MFMA, store data, lane select) are added from operand positions and printed text.
#include "jit/llvm/mc_facts.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "jit/llvm/fact_class.h"

namespace zyfa::jit {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

RegRange special_range(Special id) { return {Bank::kSpecial, static_cast<std::uint16_t>(id), 1}; }

// "VGPR4_VGPR5_VGPR6" -> v[4:6].
std::optional<RegRange> tuple_range(std::string_view name, std::string_view prefix, Bank bank) {
  if (!name.starts_with(prefix)) return std::nullopt;
  unsigned first = 0;
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), first);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view tail(rest, static_cast<std::size_t>(name.data() + name.size() - rest));
  const bool half = tail == "_LO16" || tail == "_HI16";
  const auto parts = half ? 0 : std::count(tail.begin(), tail.end(), '_');
  return RegRange{bank, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(parts + 1)};
}

RegRange range_of_name(std::string_view name) {
  if (const auto range = tuple_range(name, "VGPR", Bank::kVgpr)) return *range;
  if (const auto range = tuple_range(name, "SGPR", Bank::kSgpr)) return *range;
  if (const auto range = tuple_range(name, "AGPR", Bank::kAgpr)) return *range;
  if (name == "VCC" || name == "VCC_LO" || name == "VCC_HI" || name == "SRC_VCCZ") return special_range(Special::kVcc);
  if (name == "EXEC" || name == "EXEC_LO" || name == "EXEC_HI" || name == "SRC_EXECZ") {
    return special_range(Special::kExec);
  }
  if (name == "M0" || name == "M0_gfxpre11") return special_range(Special::kM0);
  if (name == "SCC" || name == "SRC_SCC") return special_range(Special::kScc);
  if (name == "MODE") return special_range(Special::kMode);
  return {Bank::kSpecial, 0, 0};
}

void add(std::vector<RegRange>& ranges, const RegRange& range) {
  if (range.count != 0 && std::find(ranges.begin(), ranges.end(), range) == ranges.end()) ranges.push_back(range);
}

// The list behind "op_sel:" as a bit mask, and its length.
struct OpSel {
  unsigned bits = 0, count = 0;
};

OpSel parse_op_sel(std::string_view text) {
  OpSel result;
  const std::size_t at = text.find("op_sel:[");
  if (at == std::string_view::npos) return result;
  for (std::size_t i = at + 8; i < text.size() && text[i] != ']'; ++i) {
    if (text[i] == '0' || text[i] == '1') {
      result.bits |= static_cast<unsigned>(text[i] - '0') << result.count++;
    }
  }
  return result;
}

bool is_vector_memory(FactClass cls) {
  return cls == FactClass::kVmemLoad || cls == FactClass::kVmemStore || cls == FactClass::kVmemAtomic ||
         cls == FactClass::kFlat;
}

bool is_matrix(FactClass cls) {
  return cls == FactClass::kMfmaXdl || cls == FactClass::kMfmaSgemm || cls == FactClass::kMfmaDgemm ||
         cls == FactClass::kSmfmac;
}

// LLVM decodes LDS instructions to the GFX8 forms, which need M0 as a size limit; since GFX9 only these read it
// (gfx950-isa.md 3.3).
bool lds_reads_m0(std::string_view mnemonic) {
  return contains(mnemonic, "_addtid_") || mnemonic.starts_with("ds_gws_") || mnemonic.starts_with("ds_ordered_");
}

// A DPP move with every row and bank enabled and bound_ctrl set writes all active lanes: its tied "old" value is
// unread.
bool dpp_writes_all_lanes(std::string_view text) {
  return contains(text, "row_mask:0xf bank_mask:0xf") && contains(text, "bound_ctrl:");
}

}  // namespace

FactTable::FactTable(const McTarget& mc) : mc_(mc) {
  registers_.resize(mc.registers->getNumRegs());
  for (unsigned i = 0; i < registers_.size(); ++i) {
    const std::string_view name = mc.registers->getName(i);
    registers_[i] = range_of_name(name);
    if (name == "SRC_VCCZ") vccz_ = i;
    if (name == "SRC_EXECZ") execz_ = i;
  }
}

InstFacts FactTable::facts_of(const llvm::MCInst& inst, std::string_view mnemonic, std::string_view text,
                              std::uint32_t word) const {
  InstFacts facts;
  facts.cls = classify(mnemonic);
  facts.is_dpp = mnemonic.ends_with("_dpp");
  facts.is_sdwa = mnemonic.ends_with("_sdwa");
  add_operands(inst, text, facts);
  add_implicit(inst, mnemonic, facts);
  if (is_matrix(facts.cls)) {
    add_matrix(inst, mnemonic, facts);
  } else if (is_vector_memory(facts.cls) || facts.cls == FactClass::kLds) {
    add_memory(inst, mnemonic, text, facts);
  } else {
    add_modifiers(inst, mnemonic, text, facts);
  }
  if (facts.cls == FactClass::kWaitcnt) {
    facts.waitcnt = static_cast<std::uint16_t>(word);
  } else if (mnemonic == "s_nop") {
    facts.nop_states = static_cast<std::uint8_t>((word & 0xf) + 1);  // four bits in hardware (gfx950-isa.md 3.5)
  }
  return facts;
}

RegRange FactTable::range_of(const llvm::MCInst& inst, unsigned operand) const {
  if (operand >= inst.getNumOperands() || !inst.getOperand(operand).isReg()) return {};
  return registers_[inst.getOperand(operand).getReg().id()];
}

void FactTable::add_operands(const llvm::MCInst& inst, std::string_view text, InstFacts& facts) const {
  const llvm::MCInstrDesc& desc = mc_.instructions->get(inst.getOpcode());
  const unsigned defs = desc.getNumDefs();
  for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
    if (!inst.getOperand(i).isReg()) continue;
    const unsigned reg = inst.getOperand(i).getReg().id();
    facts.reads_vccz |= reg == vccz_;
    facts.reads_execz |= reg == execz_;
    const bool is_unread_old = facts.is_dpp && i == defs && i < desc.getNumOperands() &&
                               desc.getOperandConstraint(i, llvm::MCOI::TIED_TO) >= 0 && dpp_writes_all_lanes(text);
    if (!is_unread_old) add(i < defs ? facts.writes : facts.reads, registers_[reg]);
  }
  // Tied operands that the decoder did not materialise.
  for (unsigned i = inst.getNumOperands(); i < desc.getNumOperands(); ++i) {
    const int def = desc.getOperandConstraint(i, llvm::MCOI::TIED_TO);
    if (def >= 0) add(facts.reads, range_of(inst, static_cast<unsigned>(def)));
  }
}

void FactTable::add_implicit(const llvm::MCInst& inst, std::string_view mnemonic, InstFacts& facts) const {
  const llvm::MCInstrDesc& desc = mc_.instructions->get(inst.getOpcode());
  const bool scalar = mnemonic.starts_with("s_");
  for (const llvm::MCPhysReg reg : desc.implicit_defs()) add(facts.writes, registers_[reg]);
  for (const llvm::MCPhysReg reg : desc.implicit_uses()) {
    const RegRange range = registers_[reg];
    // Every vector instruction reads EXEC (facts.h leaves it out); most read MODE, which is defined at launch and whose
    // changes need no wait (gfx950-isa.md 4.4).
    const bool understood = range == special_range(Special::kExec) || range == special_range(Special::kMode);
    if (facts.cls == FactClass::kLds && range == special_range(Special::kM0) && !lds_reads_m0(mnemonic)) continue;
    if (scalar ? facts.cls != FactClass::kOther || range == special_range(Special::kM0) : !understood) {
      add(facts.reads, range);
    }
  }
}

// Operands of every form: D, A, B, C (the index register for smfmac), modifiers; the scaled forms append two scales.
void FactTable::add_matrix(const llvm::MCInst& inst, std::string_view mnemonic, InstFacts& facts) const {
  facts.mfma_d = range_of(inst, 0);
  facts.mfma_a = range_of(inst, 1);
  facts.mfma_b = range_of(inst, 2);
  facts.mfma_c = facts.cls == FactClass::kSmfmac ? facts.mfma_d : range_of(inst, 3);
  F8f6f4Width width = F8f6f4Width::kSome8Bit;
  if (contains(mnemonic, "_f8f6f4") && inst.getNumOperands() > 5) {
    const std::int64_t cbsz = inst.getOperand(4).getImm();
    const std::int64_t blgp = inst.getOperand(5).getImm();
    width = cbsz < 2 || blgp < 2 ? F8f6f4Width::kSome8Bit : F8f6f4Width::kNone8Bit;
    facts.mfma_scale_a = range_of(inst, 6);
    facts.mfma_scale_b = range_of(inst, 7);
  }
  facts.mfma_passes = matrix_passes(mnemonic, width);
}

void FactTable::add_memory(const llvm::MCInst& inst, std::string_view mnemonic, std::string_view text,
                           InstFacts& facts) const {
  const llvm::MCInstrDesc& desc = mc_.instructions->get(inst.getOpcode());
  const unsigned defs = desc.getNumDefs();
  const bool is_buffer = mnemonic.starts_with("buffer_") || mnemonic.starts_with("tbuffer_");
  const bool lds_operand = contains(mnemonic, "_load_lds_") || text.ends_with(" lds") || contains(text, " lds ");
  facts.lds_dma = is_vector_memory(facts.cls) && lds_operand;
  // A d16 load keeps the other half of its destination.
  if (contains(mnemonic, "_d16") && defs != 0) add(facts.reads, range_of(inst, 0));

  if (is_buffer) {
    for (unsigned i = 0; i + 1 < inst.getNumOperands(); ++i) {
      const RegRange range = range_of(inst, i);
      if (range.bank == Bank::kSgpr && range.count == 4) {
        facts.soffset_is_sgpr = inst.getOperand(i + 1).isReg();
        break;
      }
    }
  }
  const bool stores = contains(mnemonic, "_store_") || contains(mnemonic, "_atomic_") ||
                      mnemonic.starts_with("ds_write") || (facts.cls == FactClass::kLds && desc.mayStore());
  if (!stores) return;
  // Data: first operand of buffer and scratch stores, the one behind the address elsewhere.
  const bool data_first = is_buffer || mnemonic.starts_with("scratch_") || contains(mnemonic, "_addtid_");
  const unsigned index = (is_buffer && defs != 0) ? 0 : defs + (data_first ? 0 : 1);
  const RegRange data = range_of(inst, index);
  if (data.count == 0 || (data.bank != Bank::kVgpr && data.bank != Bank::kAgpr)) return;
  facts.store_data = data;
  facts.store_dwords = static_cast<std::uint8_t>(data.count);
  const RegRange second = range_of(inst, index + 1);  // ds_write2 has two data operands
  if (facts.cls == FactClass::kLds && (second.bank == Bank::kVgpr || second.bank == Bank::kAgpr)) {
    facts.store_dwords = static_cast<std::uint8_t>(data.count + second.count);
  }
}

void FactTable::add_modifiers(const llvm::MCInst& inst, std::string_view mnemonic, std::string_view text,
                              InstFacts& facts) const {
  if (facts.cls == FactClass::kReadlane && !mnemonic.starts_with("v_readfirstlane")) {
    const RegRange lane = range_of(inst, 2);
    const bool scalar = lane == special_range(Special::kM0) || lane == special_range(Special::kVcc);
    if (lane.bank == Bank::kSgpr || scalar) facts.lane_select = lane;
  }
  if (facts.is_sdwa) {
    facts.dest_half_select = contains(text, "dst_sel:") && !contains(text, "dst_sel:DWORD");
    if (contains(text, "dst_unused:UNUSED_PRESERVE")) add(facts.reads, range_of(inst, 0));
    return;
  }
  // gfx950-isa.md 4.3: op_sel[3], the high half of fp8 converts, any byte of the stochastic-rounding ones. The last bit
  // of a VOP3 op_sel list selects the destination half; VOP3P lists (v_pk_, v_dot, mixed fma) have source bits only.
  if (mnemonic.starts_with("v_cvt_sr_") || (mnemonic.starts_with("v_cvt_scalef32_") && contains(mnemonic, "_sr_"))) {
    facts.dest_half_select = true;
    return;
  }
  static constexpr std::string_view kVop3p[] = {"v_pk_", "v_dot", "v_mad_mix", "v_fma_mix"};
  const bool is_vop3p = std::any_of(std::begin(kVop3p), std::end(kVop3p),
                                    [mnemonic](std::string_view p) { return mnemonic.starts_with(p); });
  if (is_vop3p || !mnemonic.starts_with("v_")) return;
  const OpSel op_sel = parse_op_sel(text);
  const bool is_swap = facts.cls == FactClass::kPermlaneSwap;
  facts.dest_half_select = !is_swap && op_sel.count > 1 && (op_sel.bits >> (op_sel.count - 1) & 1) != 0;
}

}  // namespace zyfa::jit
