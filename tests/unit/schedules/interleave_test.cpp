// Merging by weight, and the runs that must stay whole.
#include "schedules/dsl/interleave.h"

#include <gmock/gmock.h>

#include "jit/isa/op_info.h"
#include "tests/unit/schedules/instructions.h"

namespace zyfa::schedules {
namespace {

using jit::Imm;
using jit::Instruction;
using jit::Op;
using jit::sgpr;
using jit::vgpr;
using testing::ElementsAre;

TEST(Interleave, TakesByWeightAndThenWhatIsLeft) {
  const auto merged = interleave(
      {{{move("a0"), move("a1"), move("a2")}, 1}, {{move("b0"), move("b1"), move("b2"), move("b3"), move("b4")}, 2}});
  EXPECT_THAT(comments(merged), ElementsAre("a0", "b0", "b1", "a1", "b2", "b3", "a2", "b4"));
}

TEST(Interleave, KeepsCarryAndSelectTogether) {
  std::vector<Instruction> carry{make(Op::kSAddU32, {sgpr(0), sgpr(0), Imm{1}}, "add"), move("between"),
                                 make(Op::kSAddcU32, {sgpr(1), sgpr(1), Imm{0}}, "addc"), move("after")};
  const auto merged = interleave({{std::move(carry), 1}, {{move("b0"), move("b1")}, 1}});
  EXPECT_THAT(comments(merged), ElementsAre("add", "between", "addc", "b0", "after", "b1"));
}

TEST(Interleave, KeepsM0WithItsLoad) {
  std::vector<Instruction> load{make(Op::kSMovB32, {jit::m0(), Imm{64}}, "m0"),
                                make(Op::kBufferLoadDwordx4Lds, {vgpr(1), sgpr(4, 4), Imm{0}}, "load")};
  const auto merged = interleave({{std::move(load), 1}, {{move("b0")}, 1}});
  EXPECT_THAT(comments(merged), ElementsAre("m0", "load", "b0"));
}

TEST(Interleave, KeepsASkippedRegionWhole) {
  const jit::Label skip{7};
  std::vector<Instruction> guarded{make(Op::kSCmpGtI32, {sgpr(0), Imm{0}}, "cmp"),
                                   make(Op::kSCbranchScc0, {skip}, "branch"), move("inside"),
                                   make(Op::kLabel, {skip}, "label"), move("after")};
  const auto merged = interleave({{{move("b0"), move("b1"), move("b2")}, 1}, {std::move(guarded), 1}});
  EXPECT_THAT(comments(merged), ElementsAre("b0", "cmp", "branch", "inside", "label", "b1", "after", "b2"));
}

// Between them some lanes are off: an instruction of another stream must not come there.
TEST(Interleave, KeepsNarrowedExecTogether) {
  std::vector<Instruction> narrowed{make(Op::kSLshrB64, {jit::exec(), Imm{-1}, Imm{32}}, "narrow"), move("inside"),
                                    make(Op::kSMovB64, {jit::exec(), Imm{-1}}, "all"), move("after")};
  const auto merged = interleave({{std::move(narrowed), 1}, {{move("b0"), move("b1")}, 1}});
  EXPECT_THAT(comments(merged), ElementsAre("narrow", "inside", "all", "b0", "after", "b1"));
}

TEST(Interleave, VccAsAnOperandCounts) {
  std::vector<Instruction> select{make(Op::kVCmpGtF32, {jit::vcc(), vgpr(0), vgpr(1)}, "cmp"), move("x"),
                                  make(Op::kVCndmaskB32, {vgpr(2), vgpr(0), vgpr(1), jit::vcc()}, "select")};
  EXPECT_THAT(glued_to_next(select), ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace zyfa::schedules
