// What the passes refuse: too many registers, undefined reads, bad labels, bad pins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/emit/emitter.h"
#include "jit/passes/passes.h"

namespace zyfa::jit {
namespace {

using testing::Contains;
using testing::HasSubstr;

class PassError : public testing::Test {
 protected:
  Reg v(std::uint16_t count, const std::string& name, int pinned = -1) {
    return listing_.regs.add(Bank::kVgpr, count, name, pinned);
  }
  void emit(Op op, std::initializer_list<Operand> operands) { ASSERT_TRUE(emitter_.emit(op, operands)); }
  Error refusal(const RegisterLimits& limits = {}) {
    const std::vector<Instruction> before = listing_.code;
    auto map = allocate(listing_, limits);
    EXPECT_FALSE(map);
    EXPECT_EQ(listing_.code.size(), before.size());
    return map ? Error{} : map.error();
  }

  Listing listing_;
  Emitter emitter_{listing_.code, listing_.regs};
};

TEST_F(PassError, DemandOverTheLimitNamesTheTuplesAlive) {
  const Reg address = v(1, "address", 0), scores = v(16, "scores"), out = v(16, "out"), early = v(4, "early");
  emitter_.set_origin({"init", "schedules/test.cpp", 1});
  emit(Op::kDsReadB128, {early, address});
  emit(Op::kDsWriteB128, {address, early});
  emitter_.set_origin({"qk@0", "schedules/test.cpp", 2});
  for (std::uint16_t i = 0; i < 16; ++i) emit(Op::kVMovB32, {scores.sub(i), Imm{0}});
  emitter_.set_origin({"pv@0", "schedules/test.cpp", 3});
  for (std::uint16_t i = 0; i < 16; ++i) emit(Op::kVMovB32, {out.sub(i), scores.sub(i)});
  for (std::uint16_t i = 0; i < 16; i += 4) emit(Op::kDsWriteB128, {address, out.sub(i, 4)});
  for (std::uint16_t i = 0; i < 16; i += 4) emit(Op::kDsWriteB128, {address, scores.sub(i, 4)});
  RegisterLimits limits;
  limits.vgprs = 32;
  const Error error = refusal(limits);
  EXPECT_EQ(error.code, ErrorCode::kScheduleError);
  EXPECT_THAT(error.message, HasSubstr("does not fit in 32 VGPRs"));
  EXPECT_THAT(error.message, HasSubstr("peak demand 33"));
  EXPECT_THAT(error.details, Contains(HasSubstr("scores: 16 registers")));
  EXPECT_THAT(error.details, Contains(HasSubstr("first in qk@0 (schedules/test.cpp:2)")));
  EXPECT_THAT(error.details, Contains(HasSubstr("out: 16 registers")));
  EXPECT_THAT(error.details, Contains(HasSubstr("address: 1 registers")));
  EXPECT_THAT(error.details, testing::Not(Contains(HasSubstr("early"))));
}

TEST_F(PassError, PinsCanLeaveNoAlignedRun) {
  const Reg a = v(1, "a", 1), b = v(1, "b", 2), pair = v(2, "pair");
  emit(Op::kDsReadB64, {pair, a});
  emit(Op::kDsWriteB64, {b, pair});
  emit(Op::kDsWriteB32, {a, b});
  RegisterLimits limits;
  limits.vgprs = 4;
  const Error error = refusal(limits);
  EXPECT_EQ(error.code, ErrorCode::kScheduleError);
  EXPECT_THAT(error.message, HasSubstr("no aligned run of 2 was left for 'pair'"));
}

TEST_F(PassError, ReadOfARegisterNoPathDefines) {
  const Reg tuple = v(4, "frag"), address = v(1, "address", 0), out = v(4, "out");
  emit(Op::kDsReadB64, {tuple.sub(0, 2), address});
  emitter_.set_origin({"pv@0", "schedules/test.cpp", 9});
  emit(Op::kVMfmaF32_16x16x32Bf16, {out, tuple, tuple, Imm{0}});
  const Error error = refusal();
  EXPECT_EQ(error.code, ErrorCode::kCompileError);
  EXPECT_THAT(error.message, HasSubstr("reads %frag[2], which no path defines"));
  EXPECT_THAT(error.details, Contains("emitted by pv@0 (schedules/test.cpp:9)"));
}

TEST_F(PassError, ADefinitionThatNeverRunsDefinesNothing) {
  const Reg x = v(1, "x"), y = v(1, "y");
  const Label skip = listing_.new_label();
  emit(Op::kSBranch, {skip});
  emit(Op::kVMovB32, {x, Imm{0}});  // never runs
  ASSERT_TRUE(emitter_.place(skip));
  emit(Op::kVMovB32, {y, x});
  emit(Op::kSEndpgm, {});
  EXPECT_THAT(refusal().message, HasSubstr("reads %x"));
}

TEST_F(PassError, PinnedTuplesThatCollide) {
  const Reg a = v(2, "a", 4), b = v(1, "b", 5);
  emit(Op::kDsWriteB64, {b, a});
  const Error error = refusal();
  EXPECT_EQ(error.code, ErrorCode::kCompileError);
  EXPECT_THAT(error.message, HasSubstr("'a' and 'b' are pinned to v[4:5] and v5"));
}

TEST_F(PassError, MisalignedPin) {
  const Reg a = v(2, "a", 3);
  const Reg address = v(1, "address", 0);
  emit(Op::kDsWriteB64, {address, a});
  EXPECT_THAT(refusal().message, HasSubstr("pinned to v[3:4]; it must start at a multiple of 2"));
}

TEST_F(PassError, PhysicalRegisterBesideVirtualOnes) {
  const Reg a = v(1, "a");
  emit(Op::kVMovB32, {a, vgpr(3)});
  EXPECT_THAT(refusal().message, HasSubstr("names the register v3 itself"));
}

TEST_F(PassError, MoreRegistersThanAWaveHas) {
  RegisterLimits limits;
  limits.vgprs = 512;
  EXPECT_EQ(refusal(limits).code, ErrorCode::kInvalidArgument);
}

TEST_F(PassError, BranchToALabelThatIsNotPlaced) {
  emit(Op::kSCbranchScc0, {Label{4}});
  emit(Op::kSEndpgm, {});
  EXPECT_THAT(refusal().message, HasSubstr("`s_cbranch_scc0 L4` branches to a label that is not placed"));
  EXPECT_FALSE(insert_waits(listing_));
  EXPECT_FALSE(insert_wait_states(listing_));
}

TEST_F(PassError, LabelPlacedTwice) {
  ASSERT_TRUE(emitter_.place(Label{1}));
  listing_.code.push_back(listing_.code[0]);
  EXPECT_THAT(refusal().message, HasSubstr("label L1 is placed twice"));
}

}  // namespace
}  // namespace zyfa::jit
