// s_nop insertion over the control-flow graph: hand-counted listings, and random programs whose every backward path is
// walked by a checker of its own. The numbers themselves are tested against LLVM in tests/golden/jit_core.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "jit/isa/facts.h"
#include "jit/isa/hazards.h"
#include "tests/unit/jit_core/builder.h"

namespace zyfa::jit {
namespace {

using test::Builder;
using test::offen;
using testing::ElementsAre;

std::vector<std::string> with_states(Builder& b) {
  const Status status = insert_wait_states(b.listing);
  EXPECT_TRUE(status) << (status ? "" : to_string(status.error()));
  return test::text(b.listing);
}

TEST(WaitStates, CountsWhatStandsBetween) {
  Builder b;
  b(Op::kVMfmaF32_16x16x32Bf16, {vgpr(0, 4), vgpr(4, 4), vgpr(8, 4), Imm{0}});
  b(Op::kVMovB32, {vgpr(20), Imm{0}});
  b(Op::kSNop, {Imm{2}});
  b(Op::kVAddF32, {vgpr(21), vgpr(3), vgpr(20)});  // 8 needed, 1 + 3 there
  EXPECT_THAT(with_states(b), ElementsAre("v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], 0", "v_mov_b32 v20, 0",
                                          "s_nop 2", "s_nop 3", "v_add_f32 v21, v3, v20"));
  EXPECT_EQ(b.listing.code[3].comment,
            "hazard: MFMA result read by VALU, 8 wait states after v_mfma_f32_16x16x32_bf16");
}

TEST(WaitStates, TwentyStatesTakeTwoNops) {
  Builder b;
  b.stage("softmax@0");
  b(Op::kVMfmaF32_32x32x64F8f6f4, {vgpr(0, 16), vgpr(16, 8), vgpr(24, 8), Imm{0}});
  b(Op::kVExpF32, {vgpr(40), vgpr(0)});
  b(Op::kVAddF32, {vgpr(41), vgpr(40), vgpr(41)});
  EXPECT_THAT(with_states(b), ElementsAre("v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], 0", "s_nop 15",
                                          "s_nop 3", "v_exp_f32 v40, v0", "s_nop 0", "v_add_f32 v41, v40, v41"));
  EXPECT_EQ(b.listing.code[1].origin.stage, "softmax@0");
}

// gfx950-isa.md 4.5: LLVM looks back 19 states only; with 19 instructions between, 1 more is still needed.
TEST(WaitStates, LooksBackTwentyStates) {
  Builder b;
  b(Op::kVMfmaF32_32x32x64F8f6f4, {vgpr(0, 16), vgpr(16, 8), vgpr(24, 8), Imm{0}});
  for (int i = 0; i < 19; ++i) b(Op::kSSetprio, {Imm{0}});
  b(Op::kVMovB32, {vgpr(40), vgpr(0)});
  EXPECT_EQ(with_states(b)[20], "s_nop 0");
}

TEST(WaitStates, LabelsAndAwaitsAreNoStates) {
  Builder b;
  const Label label = b.listing.new_label();
  b(Op::kVExpF32, {vgpr(0), vgpr(1)});
  b.place(label);
  b(Op::kVMovB32, {vgpr(2), vgpr(0)});
  EXPECT_THAT(with_states(b), ElementsAre("v_exp_f32 v0, v1", "L0:", "s_nop 0", "v_mov_b32 v2, v0"));
}

// The shorter of two paths into a block counts: through the branch 1 state, by falling through 3.
TEST(WaitStates, TakesTheShortestPath) {
  Builder b;
  const Label join = b.listing.new_label();
  b(Op::kVCmpGtF32, {sgpr(8, 2), vgpr(0), vgpr(1)});
  b(Op::kSCbranchScc1, {join});
  b(Op::kVMovB32, {vgpr(5), Imm{1}});
  b(Op::kVMovB32, {vgpr(6), Imm{1}});
  b.place(join);
  b(Op::kGlobalStoreDword, {vgpr(2), vgpr(3), sgpr(8, 2)});  // 5 after VALU wrote the address
  const auto lines = with_states(b);
  EXPECT_EQ(lines[5], "s_nop 3");
}

TEST(WaitStates, FollowsTheBackEdge) {
  Builder b;
  const Label loop = b.listing.new_label();
  b.place(loop);
  b(Op::kVMovB32, {vgpr(2), vgpr(0)});
  b(Op::kVExpF32, {vgpr(0), vgpr(1)});
  b(Op::kSBranch, {loop});
  EXPECT_THAT(with_states(b), ElementsAre("L0:", "v_mov_b32 v2, v0", "v_exp_f32 v0, v1", "s_branch L0"));
  Builder c;
  const Label again = c.listing.new_label();
  c.place(again);
  c(Op::kVMovB32, {vgpr(20), vgpr(15)});
  c(Op::kVMfmaF32_32x32x16Bf16, {vgpr(0, 16), vgpr(16, 4), vgpr(24, 4), Imm{0}});
  c(Op::kSCbranchScc1, {again});
  EXPECT_THAT(with_states(c),
              ElementsAre("L0:", "s_nop 10", "v_mov_b32 v20, v15",
                          "v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[24:27], 0", "s_cbranch_scc1 L0"));
}

TEST(WaitStates, M0BeforeDirectToLdsLoads) {
  Builder b;
  b(Op::kSMovB32, {m0(), Imm{1024}});
  b(Op::kBufferLoadDwordLds, {vgpr(0), sgpr(4, 4), Imm{0}}, offen());
  b(Op::kSMovB32, {m0(), Imm{2048}});
  b(Op::kSAddU32, {sgpr(8), m0(), Imm{1}});
  b(Op::kDsReadB32, {vgpr(1), vgpr(0)});
  EXPECT_THAT(with_states(b), ElementsAre("s_mov_b32 m0, 0x400", "s_nop 0", "buffer_load_dword v0, s[4:7], 0 offen lds",
                                          "s_mov_b32 m0, 0x800", "s_add_u32 s8, m0, 1", "ds_read_b32 v1, v0"));
}

TEST(WaitStates, WideStoreDataOverwritten) {
  Builder b;
  b(Op::kBufferStoreDwordx4, {vgpr(0, 4), vgpr(8), sgpr(4, 4), Imm{0}}, offen());
  b(Op::kVMovB32, {vgpr(3), Imm{0}});
  b(Op::kBufferStoreDwordx4, {vgpr(0, 4), vgpr(8), sgpr(4, 4), sgpr(2)}, offen());
  b(Op::kVMovB32, {vgpr(3), Imm{0}});
  const auto lines = with_states(b);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[1], "s_nop 1");
}

// Walks back from every instruction over every path; the first unmet requirement, or "".
class PathChecker {
 public:
  explicit PathChecker(const Listing& listing) : listing_(listing) {
    std::map<std::uint32_t, std::size_t> place_of;
    for (std::size_t i = 0; i < listing.code.size(); ++i) {
      if (listing.code[i].op == Op::kLabel) place_of[std::get<Label>(listing.code[i].operands[0]).id] = i;
      facts_.push_back(facts_of(listing.code[i]));
    }
    before_.resize(listing.code.size());
    for (std::size_t i = 0; i < listing.code.size(); ++i) {
      const Op op = listing.code[i].op;
      if (op_info(op).unit == Unit::kBranch)
        before_[place_of.at(std::get<Label>(listing.code[i].operands[0]).id)].push_back(i);
      if (op != Op::kSBranch && op != Op::kSEndpgm && i + 1 < listing.code.size()) before_[i + 1].push_back(i);
    }
  }

  std::string first_fault() {
    for (consumer_ = 0; consumer_ < listing_.code.size(); ++consumer_) {
      best_.assign(listing_.code.size(), 99);
      if (std::string fault = walk(consumer_, 0); !fault.empty()) return fault;
    }
    return "";
  }

 private:
  std::string walk(std::size_t from, int distance) {
    if (distance >= 24) return "";
    for (const std::size_t p : before_[from]) {
      if (best_[p] <= distance) continue;
      best_[p] = distance;
      const Hazard hazard = wait_states_required(facts_[p], facts_[consumer_]);
      if (hazard.states > distance) {
        return print(listing_.code[p]) + " -> " + print(listing_.code[consumer_]) + ": " + std::string(hazard.rule);
      }
      if (std::string fault = walk(p, distance + facts_[p].nop_states); !fault.empty()) return fault;
    }
    return "";
  }

  const Listing& listing_;
  std::vector<InstFacts> facts_;
  std::vector<std::vector<std::size_t>> before_;
  std::size_t consumer_ = 0;
  std::vector<int> best_;  // shortest distance at which an instruction was met
};

Listing random_program(std::mt19937& rng, int length, bool branches) {
  Builder b;
  const auto reg = [&rng] { return vgpr(rng() % 40); };
  const auto quad = [&rng] { return vgpr(2 * (rng() % 18), 4); };
  std::vector<Label> labels, pending;
  for (int i = 0; i < length; ++i) {
    switch (rng() % (branches ? 14 : 11)) {
      case 0:
        b(Op::kVMfmaF32_32x32x16Bf16, {vgpr(16 * (rng() % 2), 16), vgpr(40, 4), vgpr(44, 4), Imm{0}});
        break;
      case 1: {
        const Reg d = vgpr(16 * (rng() % 2), 16);
        b(Op::kVMfmaF32_32x32x64F8f6f4, {d, vgpr(48, 8), vgpr(56, 8), d});
        break;
      }
      case 2:
        b(Op::kVMfmaF32_16x16x32Bf16, {vgpr(64, 4), vgpr(40, 4), vgpr(44, 4), quad()});
        break;
      case 3:
        b(Op::kVMovB32, {vgpr(40 + rng() % 8), reg()});
        break;
      case 4:
        b(Op::kVExpF32, {reg(), reg()});
        break;
      case 5: {
        const std::uint32_t r = rng() % 40;
        b(Op::kVPermlane32Swap, {vgpr(r), vgpr((r + 1 + rng() % 30) % 40)});
        break;
      }
      case 6:
        b(Op::kVReadfirstlaneB32, {sgpr(4 + rng() % 4), reg()});
        break;
      case 7:
        b(Op::kBufferStoreDwordx4, {quad(), vgpr(70), sgpr(4, 4), Imm{0}}, offen());
        break;
      case 8:
        b(Op::kDsReadB128, {quad(), vgpr(70)});
        break;
      case 9:
        b(Op::kVAddF32, {reg(), sgpr(4 + rng() % 4), reg()});
        break;
      case 10:
        b(Op::kSSetprio, {Imm{0}});
        break;
      case 11:
        labels.push_back(b.listing.new_label());
        b.place(labels.back());
        break;
      case 12:
        if (!labels.empty()) b(Op::kSCbranchScc1, {labels[rng() % labels.size()]});
        break;
      default:
        if (rng() % 2 == 0 || pending.empty()) {
          pending.push_back(b.listing.new_label());
          b(Op::kSCbranchScc0, {pending.back()});
        } else {
          b.place(pending.back());
          pending.pop_back();
        }
        break;
    }
  }
  for (const Label label : pending) b.place(label);
  b(Op::kSEndpgm, {});
  return std::move(b.listing);
}

TEST(WaitStatesProperty, EveryPathHasItsStates) {
  std::mt19937 rng(3);
  int faulty_before = 0;
  for (int round = 0; round < 200; ++round) {
    Listing listing = random_program(rng, 20 + static_cast<int>(rng() % 100), true);
    faulty_before += PathChecker(listing).first_fault().empty() ? 0 : 1;
    ASSERT_TRUE(insert_wait_states(listing));
    ASSERT_EQ(PathChecker(listing).first_fault(), "") << "round " << round;
  }
  EXPECT_GT(faulty_before, 150);
}

TEST(WaitStatesProperty, NoStateIsTooManyOnStraightLines) {
  std::mt19937 rng(5);
  int shortened = 0;
  for (int round = 0; round < 100; ++round) {
    Listing listing = random_program(rng, 40, false);
    ASSERT_TRUE(insert_wait_states(listing));
    for (std::size_t i = 0; i < listing.code.size(); ++i) {
      if (listing.code[i].op != Op::kSNop) continue;
      Listing shorter = listing;
      Imm& states = std::get<Imm>(shorter.code[i].operands[0]);
      if (states.value == 0) {
        shorter.code.erase(shorter.code.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        --states.value;
      }
      EXPECT_NE(PathChecker(shorter).first_fault(), "") << print(listing.code[i]) << " in round " << round;
      ++shortened;
    }
  }
  EXPECT_GT(shortened, 300);
}

}  // namespace
}  // namespace zyfa::jit
