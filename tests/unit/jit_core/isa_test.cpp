// Registers, the opcode table, facts of instructions and the emitter.
#include <gmock/gmock.h>

#include "jit/isa/facts.h"
#include "tests/unit/jit_core/builder.h"

namespace zyfa::jit {
namespace {

using test::Builder;
using test::offen;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

RegRange v(std::uint16_t first, std::uint16_t count = 1) { return {Bank::kVgpr, first, count}; }
RegRange s(std::uint16_t first, std::uint16_t count = 1) { return {Bank::kSgpr, first, count}; }
RegRange special_range(Special s) { return {Bank::kSpecial, static_cast<std::uint16_t>(s), 1}; }

InstFacts facts(Op op, std::vector<Operand> operands, Modifiers mods = {}) {
  const Instruction instruction{op, std::move(operands), mods, {}, {}, 0, {}};
  const RegTable none;
  const Status ok = check(instruction, none);
  EXPECT_TRUE(ok) << (ok ? "" : to_string(ok.error()));
  return facts_of(instruction);
}

TEST(Reg, Names) {
  EXPECT_EQ(to_string(vgpr(4, 4)), "v[4:7]");
  EXPECT_EQ(to_string(sgpr(3)), "s3");
  EXPECT_EQ(to_string(agpr(0, 16)), "a[0:15]");
  EXPECT_EQ(to_string(vcc()), "vcc");
  EXPECT_EQ(to_string(exec()), "exec");
  EXPECT_EQ(to_string(m0()), "m0");
  EXPECT_EQ(to_string(vgpr(4, 4).sub(2, 2)), "v[6:7]");
}

TEST(RegTable, NamesPartsAndAligns) {
  RegTable table;
  const Reg score = table.add(Bank::kVgpr, 16, "score");
  const Reg resource = table.add(Bank::kSgpr, 4, "resource", 8);
  const Reg pair = table.add(Bank::kSgpr, 2, "pair");
  const Reg one = table.add(Bank::kVgpr, 1, "one");
  EXPECT_EQ(table.name(score.sub(2, 4)), "%score[2:5]");
  EXPECT_EQ(table.name(score.sub(4, 8).sub(1)), "%score[5]");
  EXPECT_EQ(table.name(one), "%one");
  EXPECT_EQ(table.name(vgpr(1)), "v1");
  EXPECT_EQ(table.at(score.id).align, 2);
  EXPECT_EQ(table.at(resource.id).align, 4);
  EXPECT_EQ(table.at(resource.id).pinned, 8);
  EXPECT_EQ(table.at(pair.id).align, 2);
  EXPECT_EQ(table.at(one.id).align, 1);
}

// gfx950-isa.md 1.5.
TEST(OpInfo, MfmaPasses) {
  EXPECT_EQ(op_info(Op::kVMfmaF32_32x32x64F8f6f4).mfma_passes, 16);
  EXPECT_EQ(op_info(Op::kVMfmaScaleF32_32x32x64F8f6f4).mfma_passes, 16);
  EXPECT_EQ(op_info(Op::kVMfmaF32_16x16x128F8f6f4).mfma_passes, 8);
  EXPECT_EQ(op_info(Op::kVMfmaF32_32x32x16Bf16).mfma_passes, 8);
  EXPECT_EQ(op_info(Op::kVMfmaF32_16x16x32Bf16).mfma_passes, 4);
  EXPECT_EQ(op_info(Op::kVAddF32).mfma_passes, 0);
}

TEST(OpInfo, MemoryKinds) {
  EXPECT_TRUE(op_info(Op::kBufferLoadDwordx4Lds).is_lds_dma);
  EXPECT_FALSE(op_info(Op::kBufferLoadDwordx4).is_lds_dma);
  EXPECT_TRUE(op_info(Op::kGlobalStoreDwordx4).is_store);
  EXPECT_TRUE(op_info(Op::kDsWriteB64).is_store);
  EXPECT_FALSE(op_info(Op::kDsReadB64).is_store);
}

TEST(Facts, VectorAlu) {
  const InstFacts fma = facts(Op::kVFmaF32, {vgpr(0), vgpr(1), sgpr(2), FloatImm{1.0f}});
  EXPECT_EQ(fma.cls, FactClass::kValu);
  EXPECT_THAT(fma.writes, ElementsAre(v(0)));
  EXPECT_THAT(fma.reads, ElementsAre(v(1), s(2)));
  EXPECT_THAT(facts(Op::kVFmacF32, {vgpr(0), vgpr(1), vgpr(2)}).reads, UnorderedElementsAre(v(0), v(1), v(2)));
  EXPECT_EQ(facts(Op::kVExpF32, {vgpr(0), vgpr(1)}).cls, FactClass::kTrans);
  EXPECT_EQ(facts(Op::kVReadfirstlaneB32, {sgpr(0), vgpr(1)}).cls, FactClass::kReadlane);
  const InstFacts swap = facts(Op::kVPermlane32Swap, {vgpr(0), vgpr(1)});
  EXPECT_EQ(swap.cls, FactClass::kPermlaneSwap);
  EXPECT_THAT(swap.reads, ElementsAre(v(0), v(1)));
  EXPECT_THAT(swap.writes, ElementsAre(v(0), v(1)));
  EXPECT_THAT(facts(Op::kVCmpGtF32, {vcc(), vgpr(0), vgpr(1)}).writes, ElementsAre(special_range(Special::kVcc)));
  EXPECT_EQ(facts(Op::kVCmpGtF32, {exec(), vgpr(0), vgpr(1)}).cls, FactClass::kCmpx);
  Modifiers high;
  high.op_sel = 8;
  EXPECT_TRUE(facts(Op::kVCvtPkFp8F32, {vgpr(0), vgpr(1), vgpr(2)}, high).dest_half_select);
  EXPECT_FALSE(facts(Op::kVCvtPkFp8F32, {vgpr(0), vgpr(1), vgpr(2)}).dest_half_select);
  Modifiers moved;
  moved.dpp = 0xb1;
  EXPECT_TRUE(facts(Op::kVAddF32, {vgpr(0), vgpr(1), vgpr(2)}, moved).is_dpp);
  EXPECT_FALSE(facts(Op::kVAddF32, {vgpr(0), vgpr(1), vgpr(2)}).is_dpp);
}

TEST(Facts, ScalarAndSpecialRegisters) {
  const InstFacts addc = facts(Op::kSAddcU32, {sgpr(0), sgpr(1), Imm{0}});
  EXPECT_EQ(addc.cls, FactClass::kSalu);
  EXPECT_THAT(addc.reads, UnorderedElementsAre(s(1), special_range(Special::kScc)));
  EXPECT_THAT(addc.writes, UnorderedElementsAre(s(0), special_range(Special::kScc)));
  EXPECT_THAT(facts(Op::kSMovB64, {exec(), vcc()}).reads, ElementsAre(special_range(Special::kVcc)));
  EXPECT_THAT(facts(Op::kSCbranchVccz, {Label{0}}).reads, ElementsAre(special_range(Special::kVcc)));
  EXPECT_EQ(facts(Op::kSCbranchVccz, {Label{0}}).cls, FactClass::kBranch);
  EXPECT_EQ(facts(Op::kSNop, {Imm{7}}).nop_states, 8);
  EXPECT_EQ(facts(Op::kSWaitcnt, {Imm{0x0f70}}).waitcnt, 0x0f70);
  EXPECT_EQ(facts(Op::kSBarrier, {}).cls, FactClass::kBarrier);
  EXPECT_EQ(facts(Op::kSEndpgm, {}).cls, FactClass::kEndpgm);
  EXPECT_EQ(facts(Op::kSLoadDwordx4, {sgpr(4, 4), sgpr(0, 2), Imm{16}}).cls, FactClass::kSmem);
  const InstFacts label = facts_of({Op::kLabel, {Label{0}}, {}, {}, {}, 0, {}});
  EXPECT_EQ(label.nop_states, 0);
  EXPECT_THAT(label.reads, IsEmpty());
}

TEST(Facts, Mfma) {
  const InstFacts scaled = facts(Op::kVMfmaScaleF32_32x32x64F8f6f4,
                                 {vgpr(0, 16), vgpr(16, 8), agpr(24, 8), vgpr(0, 16), vgpr(40), vgpr(41)});
  EXPECT_EQ(scaled.cls, FactClass::kMfmaXdl);
  EXPECT_EQ(scaled.mfma_passes, 16);
  EXPECT_EQ(scaled.mfma_d, v(0, 16));
  EXPECT_EQ(scaled.mfma_a, v(16, 8));
  EXPECT_EQ(scaled.mfma_b, (RegRange{Bank::kAgpr, 24, 8}));
  EXPECT_EQ(scaled.mfma_c, v(0, 16));
  EXPECT_EQ(scaled.mfma_scale_a, v(40));
  EXPECT_EQ(scaled.mfma_scale_b, v(41));
  const InstFacts zero = facts(Op::kVMfmaF32_32x32x16Bf16, {vgpr(0, 16), vgpr(16, 4), vgpr(24, 4), Imm{0}});
  EXPECT_EQ(zero.mfma_c.count, 0);
  Modifiers formats;
  formats.cbsz = formats.blgp = 4;
  EXPECT_EQ(facts(Op::kVMfmaF32_32x32x64F8f6f4, {vgpr(0, 16), vgpr(16, 4), vgpr(24, 4), Imm{0}}, formats).mfma_passes,
            8);
  formats.blgp = 0;
  EXPECT_EQ(facts(Op::kVMfmaF32_32x32x64F8f6f4, {vgpr(0, 16), vgpr(16, 4), vgpr(24, 8), Imm{0}}, formats).mfma_passes,
            16);
}

TEST(Facts, Memory) {
  const InstFacts store = facts(Op::kBufferStoreDwordx4, {vgpr(4, 4), vgpr(0), sgpr(4, 4), sgpr(9)}, offen());
  EXPECT_EQ(store.cls, FactClass::kVmemStore);
  EXPECT_EQ(store.store_data, v(4, 4));
  EXPECT_EQ(store.store_dwords, 4);
  EXPECT_TRUE(store.soffset_is_sgpr);
  EXPECT_THAT(store.reads, UnorderedElementsAre(v(4, 4), v(0), s(4, 4), s(9)));
  EXPECT_FALSE(facts(Op::kBufferStoreDwordx4, {vgpr(4, 4), vgpr(0), sgpr(4, 4), Imm{0}}, offen()).soffset_is_sgpr);
  const InstFacts dma = facts(Op::kBufferLoadDwordx4Lds, {vgpr(0), sgpr(4, 4), Imm{0}}, offen());
  EXPECT_EQ(dma.cls, FactClass::kVmemLoad);
  EXPECT_TRUE(dma.lds_dma);
  EXPECT_THAT(dma.writes, IsEmpty());
  EXPECT_THAT(dma.reads, UnorderedElementsAre(v(0), s(4, 4), special_range(Special::kM0)));
  const InstFacts global = facts(Op::kGlobalStoreDwordx4, {vgpr(0), vgpr(4, 4), sgpr(2, 2)});
  EXPECT_EQ(global.store_data, v(4, 4));
  EXPECT_EQ(global.store_dwords, 4);
  EXPECT_EQ(facts(Op::kDsReadB128, {agpr(4, 4), vgpr(0)}).cls, FactClass::kLds);
}

TEST(Emitter, StampsOriginAndAppendsOnlyWhatChecks) {
  std::vector<Instruction> code;
  RegTable table;
  Emitter emitter(code, table);
  emitter.set_origin({"qk@1#0", "schedules/attention.cpp", 42});
  ASSERT_TRUE(emitter.emit(Op::kDsReadB128, {vgpr(4, 4), vgpr(0)}, {}, "K frag", 5));
  ASSERT_EQ(code.size(), 1u);
  EXPECT_EQ(code[0].origin.stage, "qk@1#0");
  EXPECT_EQ(code[0].origin.line, 42u);
  EXPECT_EQ(code[0].comment, "K frag");
  EXPECT_EQ(code[0].moves, 5u);
  EXPECT_FALSE(emitter.emit(Op::kDsReadB128, {vgpr(5, 4), vgpr(0)}));
  EXPECT_EQ(code.size(), 1u);
  ASSERT_TRUE(emitter.await({5}, "K tile"));
  EXPECT_THAT(code[1].awaits, ElementsAre(5u));
  EXPECT_FALSE(emitter.await({0}));
  ASSERT_TRUE(emitter.place(Label{3}));
  EXPECT_FALSE(emitter.place(Label{3}));
  EXPECT_EQ(code.size(), 3u);
}

}  // namespace
}  // namespace zyfa::jit
