// Printed instructions against stock llvm-mc: every opcode, with each operand kind and modifier its signature allows,
// must be accepted, and the encoding must carry the 32 bits of each constant and the fields asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <sstream>

#include "jit/isa/op_info.h"
#include "jit/isa/size.h"
#include "tests/golden/jit_core/tool.h"
#include "tests/require_tools.h"

namespace zyfa::jit {
namespace {

// Registers for operand i, far enough apart that nothing overlaps.
Reg register_for(std::size_t i, const OperandInfo& want, Bank bank) {
  const auto n = static_cast<std::uint32_t>(i);
  if (bank == Bank::kSgpr) return sgpr(16 * n % 80, want.count);
  return Reg{bank, false, want.count, 0, 32 * n};
}

Bank plain_bank(Kind kind) {
  switch (kind) {
    case Kind::kSgpr:
    case Kind::kScalarSource:
      return Bank::kSgpr;
    case Kind::kAgpr:
      return Bank::kAgpr;
    default:
      return Bank::kVgpr;
  }
}

Instruction plain(Op op) {
  const OpInfo& info = op_info(op);
  Instruction out{op, {}, {}, {}, {}, 0, {}};
  for (std::size_t i = 0; i < info.operands.size(); ++i) {
    const OperandInfo& want = info.operands[i];
    if (want.kind == Kind::kImmediate) {
      out.operands.push_back(Imm{3});
    } else if (want.kind == Kind::kLabel) {
      out.operands.push_back(Label{0});
    } else {
      out.operands.push_back(register_for(i, want, plain_bank(want.kind)));
    }
  }
  out.mods.offen = (info.modifiers & kModOffen) != 0;
  if ((info.modifiers & kModBitop3) != 0) out.mods.bitop3 = 0xca;
  return out;
}

// Alternatives for operand i.
std::vector<Operand> operand_variants(const OperandInfo& want, std::size_t i) {
  std::vector<Operand> out;
  const std::vector<Operand> inline_floats = {
      FloatImm{0.0f}, FloatImm{0.5f},  FloatImm{-0.5f}, FloatImm{1.0f},  FloatImm{-1.0f},
      FloatImm{2.0f}, FloatImm{-2.0f}, FloatImm{4.0f},  FloatImm{-4.0f}, FloatImm{std::bit_cast<float>(0x3e22f983u)}};
  const std::vector<Operand> inline_integers = {Imm{0}, Imm{1}, Imm{64}, Imm{-1}, Imm{-16}};
  const std::vector<Operand> literals = {
      Imm{65}, Imm{-17}, Imm{0x12345678}, Imm{INT32_MIN}, FloatImm{1.442695f}, FloatImm{-0.0f}, FloatImm{1e-40f}};
  const auto add = [&out](const std::vector<Operand>& more) { out.insert(out.end(), more.begin(), more.end()); };
  switch (want.kind) {
    case Kind::kVgprOrAgpr:
    case Kind::kMfmaC:
      out.push_back(register_for(i, want, Bank::kAgpr));
      break;
    case Kind::kSgpr:
    case Kind::kScalarSource:
      if (want.count == 1) out.push_back(m0());
      if (want.count == 2) out.insert(out.end(), {vcc(), exec()});
      break;
    case Kind::kVectorSource:
    case Kind::kVectorSourceLiteral:
      out.push_back(register_for(i, want, Bank::kSgpr));
      if (want.count == 1) out.push_back(m0());
      break;
    default:
      break;
  }
  switch (want.kind) {
    case Kind::kVectorSourceLiteral:
    case Kind::kScalarSource:
      add(literals);
      [[fallthrough]];
    case Kind::kVectorSource:
    case Kind::kMfmaC:
      add(inline_floats);
      add(inline_integers);
      break;
    default:
      break;
  }
  return out;
}

std::vector<Modifiers> modifier_variants(const Instruction& base) {
  const OpInfo& info = op_info(base.op);
  std::vector<Modifiers> out;
  const auto add = [&](auto&& change) {
    Modifiers m = base.mods;
    change(m);
    out.push_back(m);
  };
  const auto has = [&](std::uint16_t bit) { return (info.modifiers & bit) != 0; };
  if (has(kModOffset)) {
    for (const int offset : {4, 4095, -4096, 65535}) add([=](Modifiers& m) { m.offset = offset; });
  }
  if (has(kModCache)) {
    add([](Modifiers& m) { m.sc0 = true; });
    add([](Modifiers& m) { m.sc0 = m.sc1 = m.nt = true; });
  }
  if (has(kModClamp)) add([](Modifiers& m) { m.clamp = true; });
  if (has(kModDpp)) {
    for (const std::int16_t control : {0xb1, 0x4e, 0x121, 0x12f}) add([=](Modifiers& m) { m.dpp = control; });
  }
  add([](Modifiers& m) { m.long_form = true; });
  if (has(kModDestHalf)) add([](Modifiers& m) { m.op_sel = 8; });
  if (has(kModFormats)) {
    for (std::uint8_t a = 0; a <= 4; ++a)
      add([a](Modifiers& m) { m.cbsz = a, m.blgp = static_cast<std::uint8_t>(4 - a); });
  }
  if (has(kModNegAbs)) {
    for (std::uint8_t bit = 1; bit < 8; bit = static_cast<std::uint8_t>(bit << 1)) {
      add([=](Modifiers& m) { m.neg = bit; });
      add([=](Modifiers& m) { m.neg = m.abs = bit; });
    }
  }
  if (has(kModPacked) || has(kModScaleSel)) {
    for (std::uint8_t bits = 0; bits < 8; ++bits) {
      add([=](Modifiers& m) { m.op_sel = bits; });
      add([=](Modifiers& m) { m.op_sel_hi = bits; });
      if (has(kModPacked)) add([=](Modifiers& m) { m.neg = bits, m.neg_hi = static_cast<std::uint8_t>(bits ^ 1); });
    }
  }
  return out;
}

// All accepted variants of an opcode: one operand changed, or one set of modifiers.
std::vector<Instruction> variants(Op op) {
  const RegTable none;
  const Instruction base = plain(op);
  std::vector<Instruction> out;
  const auto add = [&](Instruction instruction) {
    if (check(instruction, none)) out.push_back(std::move(instruction));
  };
  add(base);
  for (std::size_t i = 0; i < base.operands.size(); ++i) {
    for (const Operand& operand : operand_variants(op_info(op).operands[i], i)) {
      Instruction changed = base;
      changed.operands[i] = operand;
      add(changed);
      if (op_info(op).unit == Unit::kMfma && i == 0) {  // C in the bank of D
        changed.operands[3] = register_for(3, op_info(op).operands[3], Bank::kAgpr);
        add(changed);
      }
    }
  }
  for (const Modifiers& mods : modifier_variants(base)) {
    Instruction changed = base;
    changed.mods = mods;
    if ((op_info(op).modifiers & kModFormats) != 0) {
      changed.operands[1] = vgpr(32, mfma_format_dwords(mods.cbsz));
      changed.operands[2] = vgpr(64, mfma_format_dwords(mods.blgp));
    }
    add(changed);
  }
  return out;
}

struct Encoded {
  std::string text;  // MC's own print
  std::vector<std::uint32_t> dwords;
};

// One entry per instruction of the output of llvm-mc -show-encoding.
std::vector<Encoded> parse_encodings(const std::string& output) {
  std::vector<Encoded> out;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("encoding: [");
    if (at == std::string::npos) continue;
    Encoded e{line.substr(1, line.find(';') - 1), {}};
    e.text.erase(e.text.find_last_not_of(" \t") + 1);
    std::vector<std::uint32_t> bytes;
    std::istringstream list(line.substr(at + 11));
    for (std::string byte; std::getline(list, byte, ',');) {
      bytes.push_back(byte[0] == 'A' ? 0 : static_cast<std::uint32_t>(std::stoul(byte, nullptr, 16)));
    }
    for (std::size_t i = 0; i + 3 < bytes.size(); i += 4) {
      e.dwords.push_back(bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 | bytes[i + 3] << 24);
    }
    out.push_back(std::move(e));
  }
  return out;
}

// The bits an inline-constant source code 128..248 stands for (CDNA4 ISA guide, table of source operands).
std::uint32_t inline_bits(std::uint32_t code) {
  if (code <= 192) return code - 128;
  if (code <= 208) return static_cast<std::uint32_t>(192 - static_cast<std::int32_t>(code));
  constexpr float kFloats[] = {0.5f, -0.5f, 1.0f, -1.0f, 2.0f, -2.0f, 4.0f, -4.0f};
  return code == 248 ? 0x3e22f983u : std::bit_cast<std::uint32_t>(kFloats[code - 240]);
}

class PrintTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (std::size_t op = 0; op < static_cast<std::size_t>(Op::kCount); ++op) {
      if (op_info(static_cast<Op>(op)).unit == Unit::kPseudo) continue;
      const auto more = variants(static_cast<Op>(op));
      ASSERT_FALSE(more.empty()) << op_info(static_cast<Op>(op)).mnemonic << " has no accepted form";
      instructions_.insert(instructions_.end(), more.begin(), more.end());
    }
    for (const Instruction& instruction : instructions_) text += print(instruction) + "\n";
    const auto result =
        test::run_tool(ZYFA_LLVM_MC, "-triple=amdgcn-amd-amdhsa -mcpu=gfx950 -show-encoding", text + "L0:\n", ".s");
    if (!result) ZYFA_SKIP_WITHOUT_TOOL("llvm-mc is not installed");
    ASSERT_EQ(result->status, 0) << result->output.substr(0, 4000);
    encoded_ = parse_encodings(result->output);
    ASSERT_EQ(encoded_.size(), instructions_.size());
  }

  std::vector<Instruction> instructions_;
  std::vector<Encoded> encoded_;
};

TEST_F(PrintTest, EveryVariantAssembles) {
  EXPECT_GT(instructions_.size(), 1500u);
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const std::string mnemonic(op_info(instructions_[i].op).mnemonic);
    EXPECT_THAT(encoded_[i].text, testing::StartsWith(mnemonic)) << print(instructions_[i]);
  }
}

TEST_F(PrintTest, SizesAreThoseOfTheEncoding) {
  std::map<std::uint32_t, int> of_size;
  int lengthened = 0;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    EXPECT_EQ(encoded_size(instructions_[i]), 4 * encoded_[i].dwords.size())
        << print(instructions_[i]) << " -> " << encoded_[i].text;
    ++of_size[encoded_size(instructions_[i])];
    lengthened += instructions_[i].mods.long_form ? 1 : 0;
  }
  EXPECT_GT(of_size[4], 400);
  EXPECT_GT(of_size[8], 800);
  EXPECT_GT(of_size[16], 10);
  EXPECT_GT(lengthened, 20);
}

// VOPC and v_cndmask have a short encoding when VCC is the mask, which the variants above do not reach together.
TEST(Print, SizeDependsOnTheMask) {
  const auto size = [](Op op, std::vector<Operand> operands) {
    return encoded_size({op, std::move(operands), {}, {}, {}, 0, {}});
  };
  EXPECT_EQ(size(Op::kVCmpGtF32, {vcc(), sgpr(3), vgpr(1)}), 4u);
  EXPECT_EQ(size(Op::kVCmpGtF32, {vcc(), vgpr(1), sgpr(3)}), 8u);
  EXPECT_EQ(size(Op::kVCmpGtF32, {sgpr(0, 2), vgpr(1), vgpr(2)}), 8u);
  EXPECT_EQ(size(Op::kVCndmaskB32, {vgpr(0), Imm{1}, vgpr(2), vcc()}), 4u);
  EXPECT_EQ(size(Op::kVCndmaskB32, {vgpr(0), vgpr(2), Imm{1}, vcc()}), 8u);
  EXPECT_EQ(size(Op::kSMovB64, {exec(), Imm{-1}}), 4u);
  EXPECT_EQ(size(Op::kSAddU32, {sgpr(0), Imm{1000}, Imm{1000}}), 8u);
}

TEST_F(PrintTest, ConstantsKeepTheirBits) {
  int checked = 0;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    const OpInfo& info = op_info(instruction.op);
    const bool e32 = encoded_[i].text.find("_e32") != std::string::npos || info.unit == Unit::kSalu;
    if (!e32 || info.operands.size() < 2) continue;
    // The first source of SOP1/SOP2/SOPC/VOP1/VOP2: its operand and its field.
    const std::size_t source = info.operands[0].role == Role::kUse ? 0 : 1;
    std::uint32_t bits = 0;
    if (const Imm* imm = std::get_if<Imm>(&instruction.operands[source])) {
      bits = static_cast<std::uint32_t>(imm->value);
    } else if (const FloatImm* real = std::get_if<FloatImm>(&instruction.operands[source])) {
      bits = std::bit_cast<std::uint32_t>(real->value);
    } else {
      continue;
    }
    const std::uint32_t code = encoded_[i].dwords[0] & (info.unit == Unit::kSalu ? 0xffu : 0x1ffu);
    const std::uint32_t got = code == 255 ? encoded_[i].dwords.at(1) : inline_bits(code);
    EXPECT_EQ(got, bits) << print(instruction) << " -> " << encoded_[i].text;
    EXPECT_EQ(code != 255, is_inline_constant(bits)) << print(instruction);
    ++checked;
  }
  EXPECT_GT(checked, 500);
}

// LLVM MC's own text, written by hand from the ISA reference and MC's syntax.
TEST(Print, KnownForms) {
  const auto text = [](Op op, std::vector<Operand> operands, Modifiers m = {}) {
    const Instruction instruction{op, std::move(operands), m, {}, {}, 0, {}};
    const RegTable none;
    const Status s = check(instruction, none);
    EXPECT_TRUE(s) << (s ? "" : s.error().message);
    return print(instruction);
  };
  Modifiers m;
  m.offen = true;
  m.offset = 16;
  EXPECT_EQ(text(Op::kBufferLoadDwordx4Lds, {vgpr(2), sgpr(4, 4), sgpr(9)}, m),
            "buffer_load_dwordx4 v2, s[4:7], s9 offen offset:16 lds");
  EXPECT_EQ(text(Op::kBufferLoadDword, {vgpr(1), Reg{}, sgpr(4, 4), Imm{0}}), "buffer_load_dword v1, off, s[4:7], 0");
  m = {};
  m.op_sel = 8;
  m.neg = 1;
  m.abs = 2;
  EXPECT_EQ(text(Op::kVCvtPkFp8F32, {vgpr(0), vgpr(1), vgpr(2)}, m), "v_cvt_pk_fp8_f32 v0, -v1, |v2| op_sel:[0,0,1]");
  m = {};
  m.dpp = 0xb1;
  EXPECT_EQ(text(Op::kVFmacF32, {vgpr(0), vgpr(1), vgpr(2)}, m),
            "v_fmac_f32_dpp v0, v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:1");
  m.dpp = 0x128;
  EXPECT_EQ(text(Op::kVMovB32, {vgpr(0), vgpr(1)}, m),
            "v_mov_b32_dpp v0, v1 row_ror:8 row_mask:0xf bank_mask:0xf bound_ctrl:1");
  m = {};
  m.op_sel = 1;
  m.op_sel_hi = 2;
  EXPECT_EQ(text(Op::kVMfmaScaleF32_32x32x64F8f6f4,
                 {vgpr(0, 16), vgpr(16, 8), vgpr(24, 8), vgpr(0, 16), vgpr(40), vgpr(41)}, m),
            "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15], v40, v41 op_sel:[1,0,0] "
            "op_sel_hi:[0,1,0]");
  EXPECT_EQ(
      text(Op::kVMfmaScaleF32_32x32x64F8f6f4, {vgpr(0, 16), vgpr(16, 8), vgpr(24, 8), Imm{0}, vgpr(40), vgpr(41)}),
      "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], 0, v40, v41");
  m = {};
  m.op_sel_hi = 6;
  EXPECT_EQ(text(Op::kVPkFmaF32, {vgpr(0, 2), sgpr(2, 2), vgpr(4, 2), FloatImm{1.0f}}, m),
            "v_pk_fma_f32 v[0:1], s[2:3], v[4:5], 1.0 op_sel_hi:[0,1,1]");
  EXPECT_EQ(text(Op::kVMulF32, {vgpr(0), FloatImm{0.125f}, vgpr(1)}), "v_mul_f32 v0, 0x3e000000, v1");
  m = {};
  m.long_form = true;
  EXPECT_EQ(text(Op::kVMulF32, {vgpr(0), FloatImm{2.0f}, vgpr(1)}, m), "v_mul_f32_e64 v0, 2.0, v1");
  EXPECT_EQ(text(Op::kSMovB64, {exec(), Imm{-1}}), "s_mov_b64 exec, -1");
  EXPECT_EQ(text(Op::kSWaitcnt, {Imm{0x0074}}), "s_waitcnt vmcnt(4) lgkmcnt(0)");
  EXPECT_EQ(text(Op::kSWaitcnt, {Imm{0xcf7f}}), "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)");
  EXPECT_EQ(text(Op::kSWaitcnt, {Imm{0x0f70}}), "s_waitcnt vmcnt(0)");
  EXPECT_EQ(print({Op::kLabel, {Label{7}}, {}, {}, {}, 0, {}}), "L7:");
}

}  // namespace
}  // namespace zyfa::jit
