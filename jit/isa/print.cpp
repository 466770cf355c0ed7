// LLVM MC text of instructions. Operands and modifiers come out in the order MC itself prints them; VOP1/VOP2/VOPC
// mnemonics carry no _e32/_e64 suffix, so MC picks the encoding from the operands, but where the listing asks for _e64.
#include <bit>
#include <charconv>

#include "jit/isa/op_info.h"

namespace zyfa::jit {
namespace {

class Printer {
 public:
  Printer(const Instruction& instruction, const RegTable* regs)
      : inst_(instruction), info_(op_info(instruction.op)), regs_(regs) {}

  std::string text() {
    if (inst_.op == Op::kLabel) {
      operand(0);
      return out_ += ':';
    }
    if (inst_.op == Op::kAwait) return await_text();
    out_.reserve(96);
    out_ += info_.mnemonic;
    if (inst_.mods.dpp >= 0) out_ += "_dpp";
    if (inst_.mods.long_form) out_ += "_e64";
    if (inst_.op == Op::kSWaitcnt && inst_.operands.size() == 1 && std::holds_alternative<Imm>(inst_.operands[0])) {
      waitcnt(static_cast<std::uint32_t>(std::get<Imm>(inst_.operands[0]).value));
      return out_;
    }
    for (std::size_t i = 0; i < inst_.operands.size(); ++i) {
      out_ += i == 0 ? " " : ", ";
      operand(i);
    }
    modifiers();
    return out_;
  }

 private:
  std::string await_text() {
    out_ = "await";
    for (const Token token : inst_.awaits) {
      out_ += ' ';
      number(token);
    }
    return out_;
  }

  void number(std::int64_t n, int base = 10) {
    char buffer[24];
    out_.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), n, base).ptr);
  }

  void hex(std::uint32_t bits) {
    out_ += "0x";
    number(bits, 16);
  }

  void counter(std::string_view name, std::uint32_t value) {
    out_ += name;
    number(value);
    out_ += ')';
  }

  // gfx950-isa.md 3.5. A counter at its maximum does not wait and is left out, unless nothing would be left.
  void waitcnt(std::uint32_t simm) {
    const std::uint32_t vm = (simm & 15) | (simm >> 14 & 3) << 4;
    const std::uint32_t exp = simm >> 4 & 7;
    const std::uint32_t lgkm = simm >> 8 & 15;
    const bool none = vm == 63 && exp == 7 && lgkm == 15;
    if (vm != 63 || none) counter(" vmcnt(", vm);
    if (exp != 7 || none) counter(" expcnt(", exp);
    if (lgkm != 15 || none) counter(" lgkmcnt(", lgkm);
  }

  void immediate(std::int32_t value, Kind kind) {
    if (kind == Kind::kImmediate || (value >= -16 && value <= 64)) {
      number(value);
    } else {
      hex(static_cast<std::uint32_t>(value));
    }
  }

  void float_immediate(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    switch (bits) {
      case 0:
        out_ += '0';
        return;
      case 0x3f000000:
        out_ += "0.5";
        return;
      case 0xbf000000:
        out_ += "-0.5";
        return;
      case 0x3f800000:
        out_ += "1.0";
        return;
      case 0xbf800000:
        out_ += "-1.0";
        return;
      case 0x40000000:
        out_ += "2.0";
        return;
      case 0xc0000000:
        out_ += "-2.0";
        return;
      case 0x40800000:
        out_ += "4.0";
        return;
      case 0xc0800000:
        out_ += "-4.0";
        return;
      case 0x3e22f983:
        out_ += "0.15915494";
        return;
      default:
        hex(bits);
    }
  }

  void operand(std::size_t i) {
    const Operand& operand = inst_.operands[i];
    const Kind kind = i < info_.operands.size() ? info_.operands[i].kind : Kind::kImmediate;
    if (const Reg* reg = std::get_if<Reg>(&operand)) {
      const bool sourced = (info_.modifiers & kModNegAbs) != 0 && i > 0;
      const bool neg = sourced && (inst_.mods.neg >> (i - 1) & 1) != 0;
      const bool abs = sourced && (inst_.mods.abs >> (i - 1) & 1) != 0;
      if (neg) out_ += '-';
      if (abs) out_ += '|';
      out_ += regs_ != nullptr ? regs_->name(*reg) : to_string(*reg);
      if (abs) out_ += '|';
    } else if (const Imm* imm = std::get_if<Imm>(&operand)) {
      immediate(imm->value, kind);
    } else if (const FloatImm* imm = std::get_if<FloatImm>(&operand)) {
      float_immediate(imm->value);
    } else {
      out_ += 'L';
      number(std::get<Label>(operand).id);
    }
  }

  // " name:[b0,b1,...]" of the low `count` bits.
  void bits(std::string_view name, std::uint32_t mask, std::size_t count) {
    out_ += name;
    for (std::size_t i = 0; i < count; ++i) {
      if (i != 0) out_ += ',';
      out_ += (mask >> i & 1) != 0 ? '1' : '0';
    }
    out_ += ']';
  }

  void selects() {
    const Modifiers& m = inst_.mods;
    const std::size_t sources = inst_.operands.size() - 1;
    if ((info_.modifiers & kModPacked) != 0) {
      const std::uint32_t all = (1u << sources) - 1;
      if (m.op_sel != 0) bits(" op_sel:[", m.op_sel, sources);
      if (m.op_sel_hi != 0xff && (m.op_sel_hi & all) != all) bits(" op_sel_hi:[", m.op_sel_hi, sources);
      if (m.neg != 0) bits(" neg_lo:[", m.neg, sources);
      if (m.neg_hi != 0) bits(" neg_hi:[", m.neg_hi, sources);
    } else if ((info_.modifiers & kModScaleSel) != 0) {
      // Unlike other VOP3P instructions op_sel_hi defaults to 0 here (gfx950-isa.md 1.3).
      const std::uint32_t high = m.op_sel_hi == 0xff ? 0 : m.op_sel_hi;
      if (m.op_sel != 0 || high != 0) {
        bits(" op_sel:[", m.op_sel, 3);
        bits(" op_sel_hi:[", high, 3);
      }
    } else if ((info_.modifiers & kModDestHalf) != 0 && (m.op_sel & 8) != 0) {
      // The last place is the destination half: OPSEL bit 3 of the encoding.
      bits(" op_sel:[", 1u << sources, sources + 1);
    }
  }

  // bound_ctrl: every lane is written, so that the destination is not read as the value that others keep.
  void dpp(std::uint32_t control) {
    if (control < 0x100) {
      out_ += " quad_perm:[";
      for (std::uint32_t lane = 0; lane < 4; ++lane) {
        if (lane != 0) out_ += ',';
        number(control >> (2 * lane) & 3);
      }
      out_ += ']';
    } else {
      out_ += " row_ror:";
      number(control & 15);
    }
    out_ += " row_mask:0xf bank_mask:0xf bound_ctrl:1";
  }

  void modifiers() {
    const Modifiers& m = inst_.mods;
    if (m.dpp >= 0) dpp(static_cast<std::uint32_t>(m.dpp));
    if (info_.unit == Unit::kVmem && m.offen) out_ += " offen";
    if (m.offset != 0) {
      out_ += " offset:";
      number(m.offset);
    }
    if (m.bitop3 >= 0) {
      out_ += " bitop3:";
      hex(static_cast<std::uint32_t>(m.bitop3));
    }
    if (m.sc0) out_ += " sc0";
    if (m.nt) out_ += " nt";
    if (m.sc1) out_ += " sc1";
    if (info_.is_lds_dma) out_ += " lds";
    if (info_.modifiers & (kModPacked | kModScaleSel | kModDestHalf)) selects();
    if (m.clamp) out_ += " clamp";
    if (m.cbsz != 0) {
      out_ += " cbsz:";
      number(m.cbsz);
    }
    if (m.blgp != 0) {
      out_ += " blgp:";
      number(m.blgp);
    }
  }

  const Instruction& inst_;
  const OpInfo& info_;
  const RegTable* regs_;
  std::string out_;
};

}  // namespace

std::string print(const Instruction& instruction) { return Printer(instruction, nullptr).text(); }

std::string print(const Instruction& instruction, const RegTable& regs) { return Printer(instruction, &regs).text(); }

std::string to_string(const Origin& origin) {
  if (*origin.file == '\0') return origin.stage;
  const std::string place = std::string(origin.file) + ":" + std::to_string(origin.line);
  return origin.stage.empty() ? place : origin.stage + " (" + place + ")";
}

}  // namespace zyfa::jit
