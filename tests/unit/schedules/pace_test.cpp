// Merging by the cycles of the first stream's MFMAs, counted by hand.
#include "schedules/dsl/pace.h"

#include <gmock/gmock.h>

#include "tests/unit/schedules/instructions.h"

namespace zyfa::schedules {
namespace {

using jit::Imm;
using jit::Instruction;
using jit::Op;
using jit::vgpr;
using testing::ElementsAre;

Instruction exponential(std::string comment) { return make(Op::kVExpF32, {vgpr(0), vgpr(0)}, std::move(comment)); }
Instruction read(std::string comment) {
  return make(Op::kDsReadB128, {vgpr(0, 4), vgpr(9), Imm{0}}, std::move(comment));
}

std::vector<std::string> names(std::vector<WeightedCode> streams) { return comments(pace(std::move(streams))); }

TEST(Pace, FollowsTheMatrixCyclesNotTheCount) {
  // Thirds of the matrix time: the long MFMA has two.
  EXPECT_THAT(names({{{scaled_product("M"), bf16_product("m")}, 1},
                     {{move("0"), move("1"), move("2"), move("3"), move("4"), move("5")}, 1}}),
              ElementsAre("M", "0", "1", "2", "3", "m", "4", "5"));
}

TEST(Pace, ATranscendentalTakesTwoTurns) {
  EXPECT_THAT(names({{{bf16_product("m"), bf16_product("n")}, 1},
                     {{exponential("e"), exponential("f"), move("0"), move("1"), move("2"), move("3")}, 1}}),
              ElementsAre("m", "e", "f", "n", "0", "1", "2", "3"));
}

TEST(Pace, AWeightIsHaste) {
  EXPECT_THAT(names({{{bf16_product("m"), bf16_product("n")}, 1}, {{move("0"), move("1"), move("2"), move("3")}, 2}}),
              ElementsAre("m", "0", "1", "2", "3", "n"));
}

TEST(Pace, WhatNeedsNoVectorPortFillsAnMfmasHold) {
  EXPECT_THAT(
      names({{{bf16_product("m"), bf16_product("n")}, 1}, {{move("0"), move("1")}, 1}, {{read("r"), read("s")}, 1}}),
      ElementsAre("m", "r", "0", "n", "s", "1"));
}

TEST(Pace, OtherInstructionsOfTheFirstStreamCountForNothing) {
  EXPECT_THAT(names({{{move("x"), bf16_product("m"), move("y"), bf16_product("n"), move("z")}, 1},
                     {{move("0"), move("1")}, 1}}),
              ElementsAre("x", "m", "0", "y", "n", "1", "z"));
}

// A region that a branch skips is no work, and stays whole.
TEST(Pace, SkippedRegionsTakeNoTime) {
  const jit::Label rare{3};
  std::vector<Instruction> guarded{
      make(Op::kSCbranchScc0, {rare}, "branch"), move("inside"), move("inside"), move("inside"),
      make(Op::kLabel, {rare}, "label"),         move("after")};
  EXPECT_THAT(names({{{bf16_product("m"), bf16_product("n")}, 1}, {std::move(guarded), 1}}),
              ElementsAre("m", "branch", "inside", "inside", "inside", "label", "n", "after"));
}

TEST(Pace, WithoutMatrixWorkOneComesAfterTheOther) {
  EXPECT_THAT(names({{{move("a"), move("b")}, 1}, {{move("0"), move("1")}, 1}}), ElementsAre("a", "b", "0", "1"));
  EXPECT_THAT(names({{{}, 1}, {{move("0")}, 1}, {{}, 1}}), ElementsAre("0"));
  EXPECT_THAT(names({{{bf16_product("m")}, 1}, {{}, 1}}), ElementsAre("m"));
}

}  // namespace
}  // namespace zyfa::schedules
