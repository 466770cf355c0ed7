// Alignment of long instructions in loops: hand-counted listings, and random ones against a count of their own.
// Sizes are tested against LLVM MC in tests/golden/jit_core.
#include <gmock/gmock.h>

#include <random>

#include "jit/isa/size.h"
#include "tests/unit/jit_core/builder.h"

namespace zyfa::jit {
namespace {

using test::Builder;
using testing::ElementsAre;

std::vector<std::string> aligned(Builder& b) {
  align_loops(b.listing);
  return test::text(b.listing);
}

void long_one(Builder& b) { b(Op::kVMax3F32, {vgpr(0), vgpr(1), vgpr(2), vgpr(3)}); }
void short_one(Builder& b) { b(Op::kVAddF32, {vgpr(0), vgpr(1), vgpr(2)}); }
constexpr const char* kLong = "v_max3_f32 v0, v1, v2, v3";
constexpr const char* kShort = "v_add_f32 v0, v1, v2";
constexpr const char* kWait = "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)";  // the largest of each counter
constexpr const char* kLengthened = "v_add_f32_e64 v0, v1, v2";

TEST(AlignLoops, LengthensTheNearestInstructionAtAMultipleOfEight) {
  Builder b;
  const Label top = b.listing.new_label();
  b.place(top);
  b(Op::kVMovB32, {vgpr(4), vgpr(5)}, {}, "first");            // 0
  b(Op::kSSetprio, {Imm{1}});                                  // 4
  b(Op::kVMulF32, {vgpr(0), vgpr(1), vgpr(2)}, {}, "second");  // 8
  b(Op::kVAddF32, {vgpr(0), vgpr(1), vgpr(2)});                // 12
  b(Op::kSSetprio, {Imm{0}});                                  // 16
  long_one(b);                                                 // 20
  b(Op::kSCbranchScc1, {top});
  EXPECT_THAT(aligned(b), ElementsAre("L0:", "v_mov_b32 v4, v5", "s_setprio 1", "v_mul_f32_e64 v0, v1, v2", kShort,
                                      "s_setprio 0", kLong, "s_cbranch_scc1 L0"));
  EXPECT_EQ(b.listing.code[3].comment, "second");
}

TEST(AlignLoops, OutsideLoopsNothingChanges) {
  Builder b;
  const Label ahead = b.listing.new_label();
  short_one(b);
  long_one(b);
  b(Op::kSCbranchScc1, {ahead});
  long_one(b);
  b.place(ahead);
  long_one(b);
  EXPECT_THAT(aligned(b), ElementsAre(kShort, kLong, "s_cbranch_scc1 L0", kLong, "L0:", kLong));
}

// The long instruction before the loop ends at 12, so that the loop's own stands at 4 mod 8; what precedes it is long.
TEST(AlignLoops, AddsAWaitForNothingBeforeTheLoop) {
  Builder b;
  const Label top = b.listing.new_label();
  b(Op::kSSetprio, {Imm{1}});
  long_one(b);
  b.place(top);
  b.stage("pv@0");
  long_one(b);
  b(Op::kSCbranchScc1, {top});
  EXPECT_THAT(aligned(b), ElementsAre("s_setprio 1", kLong, kWait, "L0:", kLong, "s_cbranch_scc1 L0"));
  EXPECT_EQ(b.listing.code[2].comment, "aligns the loop to 8 bytes");
  EXPECT_EQ(b.listing.code[2].origin.stage, "pv@0");
}

TEST(AlignLoops, AddsAWaitForNothingWhereNothingCanGrow) {
  Builder b;
  const Label top = b.listing.new_label();
  b.place(top);
  long_one(b);
  b(Op::kVMovB32, {vgpr(4), FloatImm{3.0f}});     // holds a literal: 8 bytes
  b(Op::kVReadfirstlaneB32, {sgpr(0), vgpr(0)});  // one encoding
  b(Op::kVMulF32, {vgpr(0), vgpr(1), vgpr(2)});   // at 4 mod 8: its long form would be as bad
  b(Op::kSSetprio, {Imm{1}});
  long_one(b);
  b(Op::kSCbranchScc1, {top});
  EXPECT_THAT(aligned(b), ElementsAre("L0:", kLong, "v_mov_b32 v4, 0x40400000", "v_readfirstlane_b32 s0, v0",
                                      "v_mul_f32 v0, v1, v2", "s_setprio 1", kWait, kLong, "s_cbranch_scc1 L0"));
  EXPECT_EQ(b.listing.code[6].comment, "aligns the next instruction to 8 bytes");
}

TEST(AlignLoops, SplitsAnNopOfSeveralStates) {
  Builder b;
  const Label top = b.listing.new_label();
  b.place(top);
  b(Op::kSNop, {Imm{7}}, {}, "hazard");
  long_one(b);
  b(Op::kSNop, {Imm{0}});
  long_one(b);
  b(Op::kSCbranchScc1, {top});
  EXPECT_THAT(aligned(b),
              ElementsAre("L0:", "s_nop 6", "s_nop 0", kLong, "s_nop 0", kWait, kLong, "s_cbranch_scc1 L0"));
  EXPECT_EQ(b.listing.code[1].comment, "hazard");
  EXPECT_EQ(b.listing.code[2].comment, "hazard");
}

// What stands before the loop may grow: it costs the loop nothing at all.
TEST(AlignLoops, LooksBackPastLabels) {
  Builder b;
  const Label top = b.listing.new_label();
  const Label skip = b.listing.new_label();
  short_one(b);
  b.place(top);
  long_one(b);
  b(Op::kVMovB32, {vgpr(4), vgpr(5)});
  b(Op::kSCbranchScc0, {skip});
  b(Op::kSSetprio, {Imm{1}});
  b.place(skip);
  long_one(b);
  b(Op::kSBranch, {top});
  EXPECT_THAT(aligned(b), ElementsAre(kLengthened, "L0:", kLong, "v_mov_b32_e64 v4, v5", "s_cbranch_scc0 L1",
                                      "s_setprio 1", "L1:", kLong, "s_branch L0"));
}

TEST(AlignLoops, RandomListings) {
  std::mt19937 random(1);
  int lengthened = 0, added = 0;
  for (int round = 0; round < 400; ++round) {
    Builder b;
    std::vector<Label> open;
    std::size_t states = 0;
    for (int i = 0; i < 60; ++i) {
      switch (random() % 9) {
        case 0:
          open.push_back(b.listing.new_label());
          b.place(open.back());
          break;
        case 1:
          if (!open.empty()) {
            b(Op::kSCbranchScc1, {open.back()});
            open.pop_back();
          }
          break;
        case 2:
          states += 1 + static_cast<std::size_t>(i % 3);
          b(Op::kSNop, {Imm{i % 3}});
          break;
        case 3:
          b(Op::kVMfmaScaleF32_32x32x64F8f6f4, {vgpr(0, 16), vgpr(16, 8), vgpr(24, 8), Imm{0}, vgpr(40), vgpr(41)});
          break;
        case 4:
          b(Op::kVPermlane32Swap, {vgpr(0), vgpr(1)});
          break;
        case 5:
          b(Op::kVExpF32, {vgpr(0), i % 2 == 0 ? Operand{vgpr(1)} : Operand{Imm{1000}}});
          break;
        case 6:
          long_one(b);
          break;
        default:
          short_one(b);
          break;
      }
    }
    const std::vector<Instruction> before = b.listing.code;
    align_loops(b.listing);
    const std::vector<Instruction>& after = b.listing.code;

    // The same instructions in order, with the same wait states, but for waits for nothing.
    std::vector<std::string> kept, expected;
    std::size_t states_after = 0;
    for (const Instruction& instruction : before) {
      if (instruction.op != Op::kSNop) expected.push_back(print(instruction));
    }
    for (Instruction instruction : after) {
      if (instruction.op == Op::kSNop) {
        states_after += static_cast<std::size_t>(std::get<Imm>(instruction.operands[0]).value) + 1;
        continue;
      }
      if (instruction.op == Op::kSWaitcnt) {
        EXPECT_EQ(print(instruction), kWait);
        ++added;
        continue;
      }
      lengthened += instruction.mods.long_form ? 1 : 0;
      instruction.mods.long_form = false;
      kept.push_back(print(instruction));
    }
    EXPECT_EQ(kept, expected);
    EXPECT_EQ(states_after, states);

    // For every backward branch, what stands between its label and it.
    std::vector<std::uint32_t> at;
    std::uint32_t offset = 0;
    for (const Instruction& instruction : after) {
      at.push_back(offset);
      offset += encoded_size(instruction);
    }
    for (std::size_t end = 0; end < after.size(); ++end) {
      if (after[end].op != Op::kSCbranchScc1) continue;
      const std::uint32_t id = std::get<Label>(after[end].operands[0]).id;
      for (std::size_t i = end; after[i].op != Op::kLabel || std::get<Label>(after[i].operands[0]).id != id; --i) {
        if (encoded_size(after[i]) > 4) {
          EXPECT_EQ(at[i] % 8, 0u) << "round " << round << ": " << print(after[i]);
        }
      }
    }
  }
  EXPECT_GT(lengthened, 100);
  EXPECT_GT(added, 100);
}

}  // namespace
}  // namespace zyfa::jit
