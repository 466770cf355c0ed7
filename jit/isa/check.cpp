// check(): does an instruction fit its opcode's signature and the operand rules of gfx950. The common, valid case
// allocates nothing; messages are made only for a fault.
#include <array>
#include <bit>
#include <optional>

#include "jit/isa/op_info.h"
#include "jit/isa/size.h"

namespace zyfa::jit {
namespace {

std::string_view kind_text(Kind kind) {
  switch (kind) {
    case Kind::kVgpr:
      return "a VGPR tuple";
    case Kind::kAgpr:
      return "an AGPR tuple";
    case Kind::kVgprOrAgpr:
      return "a VGPR or AGPR tuple";
    case Kind::kSgpr:
      return "an SGPR tuple (m0 for one register, vcc or exec for two)";
    case Kind::kVectorSource:
      return "a VGPR, an SGPR or an inline constant (no literal)";
    case Kind::kVectorSourceLiteral:
      return "a VGPR, an SGPR, an inline constant or a 32-bit literal";
    case Kind::kMfmaC:
      return "a VGPR or AGPR tuple or an inline constant";
    case Kind::kScalarSource:
      return "an SGPR, an inline constant or a 32-bit literal";
    case Kind::kImmediate:
      return "an immediate";
    case Kind::kLabel:
      return "a label";
  }
  return "?";
}

bool is_special(const Reg& reg, Special s) {
  return reg.bank == Bank::kSpecial && reg.id == static_cast<std::uint32_t>(s);
}

bool overlaps(const Reg& a, const Reg& b) {
  if (a.bank != b.bank || a.is_virtual != b.is_virtual) return false;
  const std::uint32_t a0 = a.is_virtual ? a.first : a.id;
  const std::uint32_t b0 = b.is_virtual ? b.first : b.id;
  return (!a.is_virtual || a.id == b.id) && a0 < b0 + b.count && b0 < a0 + a.count;
}

class Checker {
 public:
  Checker(const Instruction& instruction, const RegTable& regs)
      : inst_(instruction), info_(op_info(instruction.op)), regs_(regs) {}

  Status run() {
    if (inst_.op >= Op::kCount) return make_error(ErrorCode::kCompileError, "unknown opcode");
    if (inst_.operands.size() != info_.operands.size()) {
      return fail("has " + std::to_string(inst_.operands.size()) + " operands, " + std::string(info_.mnemonic) +
                  " takes " + std::to_string(info_.operands.size()));
    }
    for (std::size_t i = 0; i < inst_.operands.size(); ++i) {
      if (Status s = operand(i); !s) return s;
    }
    if (Status s = modifiers(); !s) return s;
    if (Status s = immediates(); !s) return s;
    switch (info_.unit) {
      case Unit::kValu:
      case Unit::kTrans:
        return vector_rules();
      case Unit::kMfma:
        return mfma_rules();
      case Unit::kSalu:
        return scalar_rules();
      default:
        return {};
    }
  }

 private:
  Status fail(std::string what) const {
    std::vector<std::string> details;
    if (std::string origin = to_string(inst_.origin); !origin.empty()) details.push_back("emitted by " + origin);
    return make_error(ErrorCode::kCompileError, "`" + print(inst_, regs_) + "`: " + std::move(what),
                      std::move(details));
  }

  Status fail_operand(std::size_t i, const std::string& what) const {
    return fail("operand " + std::to_string(i + 1) + " " + what);
  }

  // Dwords operand i must have: the signature's, but an f8f6f4 source's follow from its format (gfx950-isa.md 1.2).
  std::uint16_t expected_count(std::size_t i) const {
    if ((info_.modifiers & kModFormats) != 0 && i == 1) return mfma_format_dwords(inst_.mods.cbsz);
    if ((info_.modifiers & kModFormats) != 0 && i == 2) return mfma_format_dwords(inst_.mods.blgp);
    return info_.operands[i].count;
  }

  bool bank_fits(const Reg& reg, const OperandInfo& want) const {
    const bool vgpr = reg.bank == Bank::kVgpr;
    const bool vector = vgpr || reg.bank == Bank::kAgpr;
    switch (want.kind) {
      case Kind::kVgpr:
        return vgpr;
      case Kind::kAgpr:
        return reg.bank == Bank::kAgpr;
      case Kind::kVgprOrAgpr:
      case Kind::kMfmaC:
        return vector;
      case Kind::kVectorSource:
      case Kind::kVectorSourceLiteral:
        return vgpr || reg.bank == Bank::kSgpr || (want.count == 1 && is_special(reg, Special::kM0));
      case Kind::kSgpr:
      case Kind::kScalarSource:
        return reg.bank == Bank::kSgpr || special_fits(reg, want);
      default:
        return false;
    }
  }

  bool special_fits(const Reg& reg, const OperandInfo& want) const {
    if (info_.unit == Unit::kSmem) return false;
    // v_readfirstlane_b32 cannot write M0 (refused by LLVM MC).
    if (want.count == 1) {
      return is_special(reg, Special::kM0) && (info_.unit == Unit::kSalu || info_.unit == Unit::kVmem);
    }
    return want.count == 2 && info_.unit != Unit::kVmem &&
           (is_special(reg, Special::kVcc) || is_special(reg, Special::kExec));
  }

  Status operand(std::size_t i) const {
    const OperandInfo& want = info_.operands[i];
    if (const Reg* reg = std::get_if<Reg>(&inst_.operands[i])) return register_operand(i, *reg, want);
    if (std::holds_alternative<Label>(inst_.operands[i])) {
      return want.kind == Kind::kLabel ? Status{} : wrong_kind(i, "is a label");
    }
    std::uint32_t bits = 0;
    const FloatImm* real = std::get_if<FloatImm>(&inst_.operands[i]);
    if (real != nullptr) {
      bits = std::bit_cast<std::uint32_t>(real->value);
    } else {
      bits = static_cast<std::uint32_t>(std::get<Imm>(inst_.operands[i]).value);
    }
    switch (want.kind) {
      case Kind::kImmediate:
        return real == nullptr ? Status{} : wrong_kind(i, "is a float constant");
      case Kind::kVectorSource:
        if (!is_inline_constant(bits)) return wrong_kind(i, "needs a literal");
        if (want.count == 2 && real == nullptr && bits != 0) {
          return fail_operand(i, "is an integer in a packed float instruction; use a float constant");
        }
        return {};
      case Kind::kMfmaC:
        return is_inline_constant(bits) ? Status{} : wrong_kind(i, "needs a literal");
      case Kind::kVectorSourceLiteral:
        return {};
      case Kind::kScalarSource:
        return scalar_constant(i, bits, real != nullptr);
      default:
        return wrong_kind(i, "is a constant");
    }
  }

  Status scalar_constant(std::size_t i, std::uint32_t bits, bool real) const {
    if (info_.unit == Unit::kVmem && !is_inline_constant(bits)) {
      return fail_operand(i, "needs a literal; soffset must be an SGPR, m0 or an inline constant");
    }
    // How a 64-bit operand extends a float or a negative literal is not what it reads like.
    const auto value = std::bit_cast<std::int32_t>(bits);
    if (info_.operands[i].count == 2 && ((real && bits != 0) || value < -16)) {
      return fail_operand(i, "of 64 bits takes integers from -16 to 2147483647");
    }
    return {};
  }

  Status wrong_kind(std::size_t i, std::string_view what) const {
    return fail_operand(i, std::string(what) + ", must be " + std::string(kind_text(info_.operands[i].kind)));
  }

  Status register_operand(std::size_t i, const Reg& reg, const OperandInfo& want) const {
    if (reg.count == 0) {
      const bool voffset = (info_.modifiers & kModOffen) != 0 && i + 3 == info_.operands.size();
      return voffset && !inst_.mods.offen ? Status{} : fail_operand(i, "is no register");
    }
    if (!bank_fits(reg, want)) return wrong_kind(i, "is " + regs_.name(reg));
    if (const std::uint16_t count = expected_count(i); reg.count != count) {
      return fail_operand(i, "is " + regs_.name(reg) + " of " + std::to_string(reg.count) + " registers, must have " +
                                 std::to_string(count));
    }
    if (reg.bank == Bank::kSpecial) return {};
    if (reg.is_virtual) {
      if (reg.id >= regs_.size()) return fail_operand(i, "is a virtual tuple that the register table does not hold");
      const RegTable::Tuple& tuple = regs_.at(reg.id);
      if (tuple.bank != reg.bank || reg.first + reg.count > tuple.count) {
        return fail_operand(i, "is " + regs_.name(reg) + ", but the tuple has " + std::to_string(tuple.count) +
                                   " registers of its own bank");
      }
    } else if (reg.id + reg.count > (reg.bank == Bank::kSgpr ? 102u : 256u)) {
      return fail_operand(i, "is " + regs_.name(reg) + ", past the last register of its bank");
    }
    const std::uint32_t start = reg.is_virtual ? reg.first : reg.id;
    const std::uint32_t align = reg.count < 2 ? 1 : reg.bank == Bank::kSgpr && reg.count >= 4 ? 4 : 2;
    if (start % align != 0) {
      return fail_operand(i, "is " + regs_.name(reg) + ", must start at a multiple of " + std::to_string(align));
    }
    return {};
  }

  Status offset_range() const {
    const std::int32_t offset = inst_.mods.offset;
    std::int32_t low = 0, high = 65535;  // DS
    if ((info_.modifiers & kModOffen) != 0) {
      high = 4095;
    } else if (info_.unit == Unit::kVmem) {
      low = -4096;
      high = 4095;
    }
    if (offset >= low && offset <= high) return {};
    return fail("offset " + std::to_string(offset) + " is not in " + std::to_string(low) + ".." + std::to_string(high));
  }

  Status modifiers() const {
    const Modifiers& m = inst_.mods;
    if (m == Modifiers{} && (info_.modifiers & (kModOffen | kModBitop3)) == 0) return {};
    const auto has = [this](std::uint16_t bit) { return (info_.modifiers & bit) != 0; };
    if (m.offset != 0 && !has(kModOffset)) return fail("takes no instruction offset");
    if (Status s = offset_range(); !s) return s;
    if (m.offen && !has(kModOffen)) return fail("takes no offen");
    if (has(kModOffen)) {
      const Reg* voffset = std::get_if<Reg>(&inst_.operands[inst_.operands.size() - 3]);
      if (!m.offen && voffset != nullptr && voffset->count != 0) {
        return fail("has a voffset register, so it must have offen");
      }
    }
    if (m.lds && !info_.is_lds_dma) return fail("is not a direct-to-LDS load, so it takes no lds");
    if ((m.sc0 || m.sc1 || m.nt) && !has(kModCache)) return fail("takes no cache policy (sc0, sc1, nt)");
    if (m.clamp && !has(kModClamp)) return fail("takes no clamp");
    if (m.bitop3 != -1 && !has(kModBitop3)) return fail("takes no bitop3");
    if (has(kModBitop3) && (m.bitop3 < 0 || m.bitop3 > 255)) return fail("needs a bitop3 table in 0..255");
    if ((m.cbsz != 0 || m.blgp != 0) && !has(kModFormats)) return fail("takes no cbsz or blgp");
    if (m.cbsz > 4 || m.blgp > 4) return fail("cbsz and blgp are formats 0..4");
    if (m.long_form && !has_long_form(inst_.op)) return fail("has no choice of encoding, so it takes no long_form");
    if (Status s = dpp(); !s) return s;
    if (Status s = source_modifiers(); !s) return s;
    return select_modifiers();
  }

  Status dpp() const {
    const Modifiers& m = inst_.mods;
    if (m.dpp == -1) return {};
    if ((info_.modifiers & kModDpp) == 0) return fail("takes no DPP control");
    if ((m.dpp < 0 || m.dpp > 0xff) && (m.dpp < 0x121 || m.dpp > 0x12f)) {
      return fail("DPP control " + std::to_string(m.dpp) + " is not quad_perm (0..255) or row_ror:1..15 (289..303)");
    }
    if (m.neg != 0 || m.abs != 0 || m.clamp || m.long_form) {
      return fail("takes DPP alone, without neg, abs, clamp or long_form");
    }
    const Reg* moved = std::get_if<Reg>(&inst_.operands[1]);
    if (moved == nullptr || moved->bank != Bank::kVgpr) return fail_operand(1, "moves between lanes, must be a VGPR");
    return {};
  }

  Status source_modifiers() const {
    const Modifiers& m = inst_.mods;
    if (m.neg == 0 && m.abs == 0 && m.neg_hi == 0) return {};
    if ((info_.modifiers & kModPacked) != 0) {
      if (m.abs != 0) return fail("packed instructions take no abs");
      const unsigned sources = static_cast<unsigned>(inst_.operands.size()) - 1;
      return (m.neg | m.neg_hi) >> sources == 0 ? Status{} : fail("neg of a source that does not exist");
    }
    if (m.neg_hi != 0) return fail("takes no neg_hi");
    if (((m.neg | m.abs) & ~info_.negatable) != 0) return fail("takes no neg or abs on that source");
    for (std::size_t i = 1; i < inst_.operands.size(); ++i) {
      if (((m.neg | m.abs) >> (i - 1) & 1) != 0 && !std::holds_alternative<Reg>(inst_.operands[i])) {
        return fail_operand(i, "is a constant; neg and abs apply to registers");
      }
    }
    return {};
  }

  Status select_modifiers() const {
    const Modifiers& m = inst_.mods;
    if (m.op_sel == 0 && m.op_sel_hi == 0xff) return {};
    if ((info_.modifiers & kModDestHalf) != 0) {
      return m.op_sel_hi == 0xff && (m.op_sel & ~8) == 0 ? Status{} : fail("takes only the op_sel of its destination");
    }
    if ((info_.modifiers & (kModPacked | kModScaleSel)) == 0) return fail("takes no op_sel");
    const unsigned count = (info_.modifiers & kModScaleSel) != 0 ? 2 : static_cast<unsigned>(inst_.operands.size()) - 1;
    if (m.op_sel >> count != 0 || (m.op_sel_hi != 0xff && m.op_sel_hi >> count != 0)) {
      return fail("op_sel of a source that does not exist");
    }
    return {};
  }

  Status immediate_range(std::size_t i, std::int32_t low, std::int32_t high) const {
    const std::int32_t value = std::get<Imm>(inst_.operands[i]).value;
    if (value >= low && value <= high) return {};
    return fail_operand(i, "must be in " + std::to_string(low) + ".." + std::to_string(high));
  }

  Status immediates() const {
    switch (inst_.op) {
      case Op::kSNop:
        return immediate_range(0, 0, 15);  // LLVM MC accepts more, the hardware has 4 bits (gfx950-isa.md 3.5)
      case Op::kSSetprio:
        return immediate_range(0, 0, 3);
      case Op::kSWaitcnt:
        return immediate_range(0, 0, 0xffff);
      default:
        return info_.unit == Unit::kSmem ? immediate_range(2, -(1 << 20), (1 << 20) - 1) : Status{};
    }
  }

  Status scalar_rules() const {
    std::optional<std::uint32_t> seen;
    for (std::size_t i = 0; i < inst_.operands.size(); ++i) {
      const auto bits = literal_of(inst_.operands[i]);
      if (!bits) continue;
      if (seen && *seen != *bits) return fail("has two different literals, one is allowed");
      seen = bits;
    }
    return {};
  }

  // At most one distinct scalar register, VCC included; modifiers force VOP3, which takes no literal (gfx950-isa.md 2).
  Status vector_rules() const {
    const Reg* scalar = nullptr;
    bool has_literal = false;
    for (std::size_t i = 0; i < inst_.operands.size(); ++i) {
      if (info_.operands[i].role == Role::kDef) continue;
      if (literal_of(inst_.operands[i])) has_literal = true;
      const Reg* reg = std::get_if<Reg>(&inst_.operands[i]);
      if (reg == nullptr || (reg->bank != Bank::kSgpr && reg->bank != Bank::kSpecial)) continue;
      if (scalar != nullptr && !(*scalar == *reg)) {
        return fail("reads two scalar registers, " + regs_.name(*scalar) + " and " + regs_.name(*reg) +
                    "; a VALU instruction may read one");
      }
      scalar = reg;
    }
    const Modifiers& m = inst_.mods;
    if (has_literal && (m.neg != 0 || m.abs != 0 || m.clamp)) {
      return fail("needs a literal and a VOP3 modifier, which do not go together");
    }
    if (has_literal && m.long_form) return fail("needs a literal, which the 8-byte encoding does not hold");
    return {};
  }

  Status mfma_rules() const {
    const Reg& d = std::get<Reg>(inst_.operands[0]);
    for (std::size_t i = 1; i < inst_.operands.size(); ++i) {
      const Reg* reg = std::get_if<Reg>(&inst_.operands[i]);
      if (reg == nullptr) continue;
      const bool is_c = info_.operands[i].kind == Kind::kMfmaC;
      if (is_c && reg->bank != d.bank) return fail_operand(i, "(C) must be in the bank of D");
      if (!overlaps(d, *reg) || (is_c && d == *reg)) continue;
      return fail_operand(i, "is " + regs_.name(*reg) + " and overlaps D = " + regs_.name(d) +
                                 (is_c ? "; C must equal D or be apart from it" : "; D must be apart from it"));
    }
    return {};
  }

  const Instruction& inst_;
  const OpInfo& info_;
  const RegTable& regs_;
};

}  // namespace

Status check(const Instruction& instruction, const RegTable& regs) { return Checker(instruction, regs).run(); }

}  // namespace zyfa::jit
