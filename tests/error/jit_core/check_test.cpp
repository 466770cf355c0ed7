// Instructions that check() must refuse, with the words of the refusal; the same rules LLVM MC or the ISA reference
// has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/isa/op_info.h"

namespace zyfa::jit {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  Op op;
  std::vector<Operand> operands;
  Modifiers mods;
  const char* message;  // part of it
};

Modifiers with(void (*change)(Modifiers&)) {
  Modifiers m;
  change(m);
  return m;
}

RegTable& table() {
  static RegTable regs;
  return regs;
}

const std::vector<Case>& cases() {
  static const Reg score = table().add(Bank::kVgpr, 16, "score"), frag = table().add(Bank::kVgpr, 4, "frag"),
                   resource = table().add(Bank::kSgpr, 8, "resource"), x = table().add(Bank::kVgpr, 1, "x");
  static const Modifiers none, offen = with([](Modifiers& m) { m.offen = true; });
  static const std::vector<Case> all = {
      {"TooFewOperands", Op::kVAddF32, {vgpr(0), vgpr(1)}, none, "has 2 operands, v_add_f32 takes 3"},
      {"TooManyOperands", Op::kSBarrier, {Imm{0}}, none, "has 1 operands, s_barrier takes 0"},
      {"WrongBank", Op::kVAddF32, {vgpr(0), vgpr(1), sgpr(2)}, none, "operand 3 is s2, must be a VGPR tuple"},
      {"LabelAsValue", Op::kVAddF32, {vgpr(0), Label{1}, vgpr(2)}, none, "operand 2 is a label"},
      {"ConstantDestination", Op::kVMovB32, {Imm{0}, vgpr(0)}, none, "operand 1 is a constant"},
      {"RegisterAsImmediate", Op::kSNop, {sgpr(0)}, none, "must be an immediate"},
      {"FloatAsImmediate", Op::kSNop, {FloatImm{1.0f}}, none, "is a float constant, must be an immediate"},
      {"NoRegister", Op::kVMovB32, {Reg{}, vgpr(0)}, none, "operand 1 is no register"},
      {"WrongSize", Op::kDsReadB128, {vgpr(0, 2), vgpr(8)}, none, "operand 1 is v[0:1] of 2 registers, must have 4"},
      {"OddPhysicalTuple", Op::kDsReadB64, {vgpr(3, 2), vgpr(8)}, none, "v[3:4], must start at a multiple of 2"},
      {"OddVirtualPart", Op::kDsReadB64, {score.sub(3, 2), x}, none, "%score[3:4], must start at a multiple of 2"},
      {"UnalignedScalarQuad",
       Op::kBufferLoadDword,
       {vgpr(0), vgpr(1), sgpr(6, 4), Imm{0}},
       offen,
       "s[6:9], must start at a multiple of 4"},
      {"UnalignedVirtualScalarQuad",
       Op::kBufferLoadDword,
       {x, x, resource.sub(2, 4), Imm{0}},
       offen,
       "%resource[2:5], must start at a multiple of 4"},
      {"PastTheTuple", Op::kVMovB32, {frag.sub(4), Imm{0}}, none, "the tuple has 4 registers"},
      {"UnknownTuple", Op::kVMovB32, {Reg{Bank::kVgpr, true, 1, 0, 77}, Imm{0}}, none, "does not hold"},
      {"PastTheBank", Op::kDsReadB64, {vgpr(256, 2), vgpr(0)}, none, "past the last register"},
      {"PastTheScalars", Op::kSMovB32, {sgpr(102), Imm{0}}, none, "past the last register"},
      {"LiteralInVop3",
       Op::kVFmaF32,
       {vgpr(0), vgpr(1), vgpr(2), FloatImm{1.442695f}},
       none,
       "operand 4 needs a literal"},
      {"LiteralAsC",
       Op::kVMfmaF32_16x16x32Bf16,
       {vgpr(0, 4), vgpr(4, 4), vgpr(8, 4), Imm{100}},
       none,
       "needs a literal, must be a VGPR or AGPR tuple or an inline constant"},
      {"TwoLiterals", Op::kSAddU32, {sgpr(0), Imm{1000}, Imm{2000}}, none, "two different literals"},
      {"LiteralSoffset", Op::kBufferLoadDword, {vgpr(0), vgpr(1), sgpr(4, 4), Imm{4096}}, offen, "soffset must be"},
      {"NegativeLiteral64", Op::kSMovB64, {sgpr(0, 2), Imm{-1000}}, none, "of 64 bits"},
      {"IntegerInPackedFloat", Op::kVPkMulF32, {vgpr(0, 2), vgpr(2, 2), Imm{1}}, none, "use a float constant"},
      {"TwoScalars",
       Op::kVFmaF32,
       {vgpr(0), sgpr(1), sgpr(2), vgpr(3)},
       none,
       "reads two scalar registers, s1 and s2; a VALU instruction may read one"},
      {"ScalarAndVcc", Op::kVCndmaskB32, {vgpr(0), sgpr(1), vgpr(2), vcc()}, none, "two scalar registers, s1 and vcc"},
      {"LiteralAndModifier",
       Op::kVMulF32,
       {vgpr(0), FloatImm{3.0f}, vgpr(1)},
       with([](Modifiers& m) { m.neg = 2; }),
       "a literal and a VOP3 modifier"},
      {"NegOfConstant",
       Op::kVMulF32,
       {vgpr(0), FloatImm{1.0f}, vgpr(1)},
       with([](Modifiers& m) { m.neg = 1; }),
       "neg and abs apply to registers"},
      {"NegOfInteger",
       Op::kVAddU32,
       {vgpr(0), vgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.neg = 1; }),
       "no neg or abs"},
      {"AbsInPacked",
       Op::kVPkMulF32,
       {vgpr(0, 2), vgpr(2, 2), vgpr(4, 2)},
       with([](Modifiers& m) { m.abs = 1; }),
       "packed instructions take no abs"},
      {"ClampOfCvtPkFp8",
       Op::kVCvtPkFp8F32,
       {vgpr(0), vgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.clamp = true; }),
       "takes no clamp"},
      {"OpSelOfPlain",
       Op::kVAddF32,
       {vgpr(0), vgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.op_sel = 1; }),
       "takes no op_sel"},
      {"DppOfVop3",
       Op::kVFmaF32,
       {vgpr(0), vgpr(1), vgpr(2), vgpr(3)},
       with([](Modifiers& m) { m.dpp = 0; }),
       "takes no DPP control"},
      {"DppControl",
       Op::kVAddF32,
       {vgpr(0), vgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.dpp = 0x120; }),
       "DPP control 288 is not quad_perm (0..255) or row_ror:1..15"},
      {"DppWithNeg",
       Op::kVAddF32,
       {vgpr(0), vgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.dpp = 0, m.neg = 1; }),
       "takes DPP alone"},
      {"DppOfScalar",
       Op::kVAddF32,
       {vgpr(0), sgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.dpp = 0; }),
       "operand 2 moves between lanes, must be a VGPR"},
      {"LongFormOfVop3",
       Op::kVFmaF32,
       {vgpr(0), vgpr(1), vgpr(2), vgpr(3)},
       with([](Modifiers& m) { m.long_form = true; }),
       "takes no long_form"},
      {"LongFormOfScalar",
       Op::kSAddU32,
       {sgpr(0), sgpr(1), sgpr(2)},
       with([](Modifiers& m) { m.long_form = true; }),
       "takes no long_form"},
      {"LongFormWithLiteral",
       Op::kVMulF32,
       {vgpr(0), FloatImm{3.0f}, vgpr(2)},
       with([](Modifiers& m) { m.long_form = true; }),
       "needs a literal, which the 8-byte encoding does not hold"},
      {"LongFormWithDpp",
       Op::kVAddF32,
       {vgpr(0), vgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.dpp = 0, m.long_form = true; }),
       "takes DPP alone"},
      {"OffsetOfAlu",
       Op::kVAddF32,
       {vgpr(0), vgpr(1), vgpr(2)},
       with([](Modifiers& m) { m.offset = 4; }),
       "takes no instruction offset"},
      {"DsOffset",
       Op::kDsReadB32,
       {vgpr(0), vgpr(1)},
       with([](Modifiers& m) { m.offset = 65536; }),
       "offset 65536 is not in 0..65535"},
      {"BufferOffset",
       Op::kBufferLoadDword,
       {vgpr(0), vgpr(1), sgpr(4, 4), Imm{0}},
       with([](Modifiers& m) {
         m.offen = true;
         m.offset = 4096;
       }),
       "offset 4096 is not in 0..4095"},
      {"GlobalOffset",
       Op::kGlobalLoadDword,
       {vgpr(0), vgpr(1), sgpr(4, 2)},
       with([](Modifiers& m) { m.offset = -4097; }),
       "offset -4097 is not in -4096..4095"},
      {"ScalarOffset", Op::kSLoadDword, {sgpr(0), sgpr(2, 2), Imm{1 << 20}}, none, "-1048576..1048575"},
      {"MissingOffen", Op::kBufferLoadDword, {vgpr(0), vgpr(1), sgpr(4, 4), Imm{0}}, none, "must have offen"},
      {"OffenWithoutRegister", Op::kBufferLoadDword, {vgpr(0), Reg{}, sgpr(4, 4), Imm{0}}, offen, "is no register"},
      {"LdsOfPlainLoad",
       Op::kBufferLoadDword,
       {vgpr(0), vgpr(1), sgpr(4, 4), Imm{0}},
       with([](Modifiers& m) { m.offen = m.lds = true; }),
       "takes no lds"},
      {"CachePolicyOfLds", Op::kDsReadB32, {vgpr(0), vgpr(1)}, with([](Modifiers& m) { m.nt = true; }), "cache policy"},
      {"BigNop", Op::kSNop, {Imm{16}}, none, "must be in 0..15"},
      {"BigPriority", Op::kSSetprio, {Imm{4}}, none, "must be in 0..3"},
      {"Bitop3WithoutTable", Op::kVBitop3B32, {vgpr(0), vgpr(1), vgpr(2), vgpr(3)}, none, "bitop3 table in 0..255"},
      {"FormatsOfBf16",
       Op::kVMfmaF32_16x16x32Bf16,
       {vgpr(0, 4), vgpr(4, 4), vgpr(8, 4), Imm{0}},
       with([](Modifiers& m) { m.cbsz = 1; }),
       "takes no cbsz"},
      {"FormatWidth",
       Op::kVMfmaF32_32x32x64F8f6f4,
       {vgpr(0, 16), vgpr(16, 8), vgpr(24, 8), Imm{0}},
       with([](Modifiers& m) { m.cbsz = 4; }),
       "operand 2 is v[16:23] of 8 registers, must have 4"},
      {"PartialOverlapOfC",
       Op::kVMfmaF32_32x32x64F8f6f4,
       {vgpr(0, 16), vgpr(32, 8), vgpr(40, 8), vgpr(8, 16)},
       none,
       "overlaps D = v[0:15]; C must equal D"},
      {"OverlapOfA",
       Op::kVMfmaF32_32x32x16Bf16,
       {score, score.sub(4, 4), frag, Imm{0}},
       none,
       "operand 2 is %score[4:7] and overlaps D"},
      {"ScaleInD",
       Op::kVMfmaScaleF32_32x32x64F8f6f4,
       {vgpr(0, 16), vgpr(16, 8), vgpr(24, 8), Imm{0}, vgpr(3), vgpr(40)},
       none,
       "operand 5 is v3 and overlaps D"},
      {"BanksOfCAndD",
       Op::kVMfmaF32_16x16x32Bf16,
       {vgpr(0, 4), vgpr(4, 4), vgpr(8, 4), agpr(0, 4)},
       none,
       "must be in the bank of D"},
      {"ReadfirstlaneToM0", Op::kVReadfirstlaneB32, {m0(), vgpr(0)}, none, "operand 1 is m0"},
      {"ScalarLoadToVcc", Op::kSLoadDwordx2, {vcc(), sgpr(0, 2), Imm{0}}, none, "operand 1 is vcc"},
      {"AccReadOfVgpr", Op::kVAccvgprRead, {vgpr(0), vgpr(1)}, none, "must be an AGPR tuple"},
  };
  return all;
}

class CheckError : public testing::TestWithParam<std::size_t> {};

TEST_P(CheckError, IsRefused) {
  const Case& c = cases()[GetParam()];
  const Instruction instruction{c.op, c.operands, c.mods, {}, {"qk@0", "schedules/test.cpp", 5}, 0, {}};
  const Status status = check(instruction, table());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCompileError);
  EXPECT_THAT(status.error().message, HasSubstr(c.message));
  EXPECT_THAT(status.error().message, HasSubstr(std::string(op_info(c.op).mnemonic)));
  EXPECT_THAT(status.error().details, testing::ElementsAre("emitted by qk@0 (schedules/test.cpp:5)"));
}

INSTANTIATE_TEST_SUITE_P(All, CheckError, testing::Range<std::size_t>(0, cases().size()),
                         [](const auto& param) { return cases()[param.param].name; });

}  // namespace
}  // namespace zyfa::jit
