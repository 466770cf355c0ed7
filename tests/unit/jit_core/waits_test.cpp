// s_waitcnt insertion: hand-derived listings, and random programs run on a model of the two counters
// (gfx950-isa.md 3.5): no result is touched before it has arrived on any path, and no wait could be weaker.
#include <gmock/gmock.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "tests/unit/jit_core/builder.h"

namespace zyfa::jit {
namespace {

using test::at;
using test::Builder;
using test::offen;
using testing::ElementsAre;

std::vector<std::string> with_waits(Builder& b) {
  const Status status = insert_waits(b.listing);
  EXPECT_TRUE(status) << (status ? "" : to_string(status.error()));
  return test::text(b.listing);
}

TEST(Waits, CountsInsteadOfDraining) {
  Builder b;
  b(Op::kGlobalLoadDword, {vgpr(1), vgpr(0), sgpr(0, 2)});
  b(Op::kGlobalLoadDword, {vgpr(2), vgpr(0), sgpr(0, 2)});
  b(Op::kDsReadB32, {vgpr(3), vgpr(0)});
  b(Op::kDsReadB32, {vgpr(4), vgpr(0)});
  b(Op::kDsReadB32, {vgpr(5), vgpr(0)});
  b(Op::kVAddU32, {vgpr(6), vgpr(1), vgpr(0)});
  b(Op::kVAddU32, {vgpr(6), vgpr(3), vgpr(6)});
  b(Op::kVAddU32, {vgpr(6), vgpr(2), vgpr(5)});
  b(Op::kVAddU32, {vgpr(6), vgpr(4), vgpr(6)});
  EXPECT_THAT(with_waits(b),
              ElementsAre("global_load_dword v1, v0, s[0:1]", "global_load_dword v2, v0, s[0:1]", "ds_read_b32 v3, v0",
                          "ds_read_b32 v4, v0", "ds_read_b32 v5, v0", "s_waitcnt vmcnt(1)", "v_add_u32 v6, v1, v0",
                          "s_waitcnt lgkmcnt(2)", "v_add_u32 v6, v3, v6", "s_waitcnt vmcnt(0) lgkmcnt(0)",
                          "v_add_u32 v6, v2, v5", "v_add_u32 v6, v4, v6"));
}

TEST(Waits, StoresCountAndNeedNoWaitThemselves) {
  Builder b;
  b(Op::kGlobalLoadDword, {vgpr(1), vgpr(0), sgpr(0, 2)});
  b(Op::kGlobalStoreDword, {vgpr(0), vgpr(3), sgpr(0, 2)});
  b(Op::kVMovB32, {vgpr(3), Imm{0}});  // overwriting stored data needs no wait
  b(Op::kVMovB32, {vgpr(2), vgpr(1)});
  EXPECT_THAT(with_waits(b), ElementsAre("global_load_dword v1, v0, s[0:1]", "global_store_dword v0, v3, s[0:1]",
                                         "v_mov_b32 v3, 0", "s_waitcnt vmcnt(1)", "v_mov_b32 v2, v1"));
}

TEST(Waits, ScalarLoadsArriveInAnyOrder) {
  Builder b;
  b(Op::kDsReadB32, {vgpr(1), vgpr(0)});
  b(Op::kSLoadDword, {sgpr(4), sgpr(0, 2), Imm{0}});
  b(Op::kDsReadB32, {vgpr(2), vgpr(0)});
  b(Op::kVMovB32, {vgpr(3), vgpr(1)});
  b(Op::kVMovB32, {vgpr(3), sgpr(4)});
  EXPECT_THAT(with_waits(b), ElementsAre("ds_read_b32 v1, v0", "s_load_dword s4, s[0:1], 0", "ds_read_b32 v2, v0",
                                         "s_waitcnt lgkmcnt(0)", "v_mov_b32 v3, v1", "v_mov_b32 v3, s4"));
}

TEST(Waits, OverwritingAPendingResult) {
  Builder b;
  b(Op::kGlobalLoadDword, {vgpr(1), vgpr(0), sgpr(0, 2)});
  b(Op::kGlobalLoadDword, {vgpr(1), vgpr(0), sgpr(0, 2)});  // same counter, in order
  b(Op::kDsReadB32, {vgpr(1), vgpr(0)});                    // other counter
  b(Op::kVMovB32, {vgpr(1), Imm{0}});
  EXPECT_THAT(with_waits(b),
              ElementsAre("global_load_dword v1, v0, s[0:1]", "global_load_dword v1, v0, s[0:1]", "s_waitcnt vmcnt(0)",
                          "ds_read_b32 v1, v0", "s_waitcnt lgkmcnt(0)", "v_mov_b32 v1, 0"));
}

TEST(Waits, TokensOfDirectToLdsLoadsAndOfReads) {
  Builder b;
  b.stage("load@0");
  b(Op::kBufferLoadDwordLds, {vgpr(0), sgpr(4, 4), Imm{0}}, offen(), "K tile", 1);
  b(Op::kBufferLoadDwordLds, {vgpr(0), sgpr(4, 4), Imm{0}}, offen(), "V tile", 2);
  b(Op::kDsReadB32, {vgpr(1), vgpr(0)}, {}, "old K", 3);
  b.stage("qk@0");
  b.await({1});
  b(Op::kSBarrier, {});
  b.await({1});  // has completed
  b.await({2, 3});
  b(Op::kSBarrier, {});
  b.await({9});  // never issued
  EXPECT_THAT(with_waits(b),
              ElementsAre("buffer_load_dword v0, s[4:7], 0 offen lds", "buffer_load_dword v0, s[4:7], 0 offen lds",
                          "ds_read_b32 v1, v0", "s_waitcnt vmcnt(1)", "s_barrier", "s_waitcnt vmcnt(0) lgkmcnt(0)",
                          "s_barrier"));
  EXPECT_EQ(b.listing.code[3].comment, "wait: (K tile) for qk@0; vmcnt(1)");
  EXPECT_EQ(b.listing.code[3].origin.stage, "qk@0");
  EXPECT_EQ(b.listing.code[5].comment, "wait: (V tile), (old K) for qk@0; vmcnt(0) lgkmcnt(0)");
}

TEST(Waits, CommentsNameRegisterAndProducer) {
  Builder b;
  b(Op::kDsReadB128, {vgpr(4, 4), vgpr(0)}, {}, "K frag 3");
  b(Op::kDsReadB128, {vgpr(8, 4), vgpr(0)});
  b.stage("qk@1#0");
  b(Op::kVMfmaF32_16x16x32Bf16, {vgpr(12, 4), vgpr(4, 4), vgpr(8, 4), Imm{0}});
  with_waits(b);
  EXPECT_EQ(b.listing.code[2].comment, "wait: v[4:7] (K frag 3), v[8:11] (ds_read_b128) for qk@1#0; lgkmcnt(0)");
}

TEST(Waits, MergesWithWaitsThatTouch) {
  Builder b;
  b(Op::kGlobalLoadDword, {vgpr(1), vgpr(0), sgpr(0, 2)}, {}, {}, 1);
  b(Op::kDsReadB32, {vgpr(2), vgpr(0)});
  b.await({1});
  b(Op::kVMovB32, {vgpr(3), vgpr(2)});
  b(Op::kSWaitcnt, {Imm{0x0f70}});  // written by hand: kept
  EXPECT_THAT(with_waits(b), ElementsAre("global_load_dword v1, v0, s[0:1]", "ds_read_b32 v2, v0",
                                         "s_waitcnt vmcnt(0) lgkmcnt(0)", "v_mov_b32 v3, v2", "s_waitcnt vmcnt(0)"));
}

// The load at the end of a trip is one event old at the head of the next, the one before the loop two.
TEST(Waits, TakesTheYoungestOverTheBackEdge) {
  Builder b;
  const Label loop = b.listing.new_label();
  b(Op::kGlobalLoadDword, {vgpr(1), vgpr(0), sgpr(0, 2)});
  b(Op::kGlobalLoadDword, {vgpr(2), vgpr(0), sgpr(0, 2)});
  b(Op::kGlobalLoadDword, {vgpr(3), vgpr(0), sgpr(0, 2)});
  b.place(loop);
  b(Op::kVMovB32, {vgpr(4), vgpr(1)});
  b(Op::kGlobalLoadDword, {vgpr(1), vgpr(0), sgpr(0, 2)});
  b(Op::kGlobalStoreDword, {vgpr(0), vgpr(4), sgpr(0, 2)});
  b(Op::kSCbranchScc1, {loop});
  b(Op::kSEndpgm, {});
  const auto lines = with_waits(b);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[3], "L0:");
  EXPECT_EQ(lines[4], "s_waitcnt vmcnt(1)");
}

TEST(Waits, CapsAtWhatTheCountersHold) {
  Builder b;
  for (int i = 0; i < 20; ++i) b(Op::kDsReadB32, {vgpr(10 + static_cast<std::uint32_t>(i)), vgpr(0)});
  b(Op::kVMovB32, {vgpr(1), vgpr(10)});
  EXPECT_EQ(with_waits(b)[20], "s_waitcnt lgkmcnt(14)");
  Builder c;
  for (int i = 0; i < 70; ++i) {
    c(Op::kGlobalLoadDword, {vgpr(10 + static_cast<std::uint32_t>(i)), vgpr(0), sgpr(0, 2)});
  }
  c(Op::kVMovB32, {vgpr(1), vgpr(10)});
  EXPECT_EQ(with_waits(c)[70], "s_waitcnt vmcnt(62)");
}

// The two counters and what is outstanding on them. A fault is the index of the first instruction that touches a result
// that need not have arrived.
class CounterModel {
 public:
  // False when the instruction is a fault. `marks`: tokens that must have completed at it.
  bool step(const Instruction& instruction, const std::vector<Token>& marks) {
    if (instruction.op == Op::kSWaitcnt) {
      wait(static_cast<unsigned>(std::get<Imm>(instruction.operands[0]).value));
      return true;
    }
    const OpInfo& info = op_info(instruction.op);
    const bool lds = info.unit == Unit::kLds, smem = info.unit == Unit::kSmem, vmem = info.unit == Unit::kVmem;
    bool good = true;
    Event event{{}, instruction.moves, smem};
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Reg* reg = std::get_if<Reg>(&instruction.operands[i]);
      if (reg == nullptr) continue;
      const bool only_written = info.operands[i].role == Role::kDef;
      for (std::uint32_t r = reg->id; r < reg->id + reg->count; ++r) {
        const std::pair key{reg->bank, r};
        good = good && !(outstanding(vm_, key, false) && !(only_written && vmem));
        good = good && !(outstanding(lgkm_, key, false) && !(only_written && lds));
        good = good && !outstanding(lgkm_, key, true);
        if (info.operands[i].role != Role::kUse) event.registers.insert(key);
      }
    }
    for (const Token token : marks) {
      for (const auto* queue : {&vm_, &lgkm_}) {
        for (const Event& e : *queue) good = good && e.token != token;
      }
    }
    if (vmem) vm_.push_back(event);
    if (lds || smem) lgkm_.push_back(event);
    return good;
  }

 private:
  struct Event {
    std::set<std::pair<Bank, std::uint32_t>> registers;
    Token token;
    bool smem;
  };

  static bool outstanding(const std::deque<Event>& queue, const std::pair<Bank, std::uint32_t>& key, bool smem) {
    for (const Event& e : queue) {
      if (e.smem == smem && e.registers.contains(key)) return true;
    }
    return false;
  }

  void wait(unsigned simm) {
    const unsigned vm = (simm & 15) | (simm >> 14 & 3) << 4, lgkm = simm >> 8 & 15;
    while (vm_.size() > vm) vm_.pop_front();
    bool any_smem = false;
    for (const Event& e : lgkm_) any_smem = any_smem || e.smem;
    if (any_smem && lgkm != 0) return;
    while (lgkm_.size() > lgkm && lgkm != 15) lgkm_.pop_front();
  }

  std::deque<Event> vm_, lgkm_;
};

// "tokens 3 7" in a barrier's comment: what must have completed there.
std::vector<Token> marks_of(const Instruction& instruction) {
  std::vector<Token> out;
  if (!instruction.comment.starts_with("tokens")) return out;
  std::istringstream list(instruction.comment.substr(6));
  for (Token token = 0; list >> token;) out.push_back(token);
  return out;
}

Listing random_program(std::mt19937& rng, int length, bool branches) {
  Builder b;
  const auto reg = [&rng] { return vgpr(1 + rng() % 12); };
  std::vector<Label> labels, pending;
  for (int i = 0; i < length; ++i) {
    switch (rng() % (branches ? 13 : 10)) {
      case 0:
        b(Op::kGlobalLoadDword, {reg(), reg(), sgpr(0, 2)});
        break;
      case 1:
        b(Op::kBufferLoadDwordx4, {vgpr(2 * (rng() % 6), 4), vgpr(20), sgpr(4, 4), Imm{0}}, offen(), {}, rng() % 4);
        break;
      case 2:
        b(Op::kGlobalStoreDword, {reg(), reg(), sgpr(0, 2)});
        break;
      case 3:
        b(Op::kBufferLoadDwordLds, {vgpr(20), sgpr(4, 4), Imm{0}}, offen(), {}, 1 + rng() % 4);
        break;
      case 4:
      case 5:
        b(Op::kDsReadB32, {reg(), vgpr(20)}, {}, {}, rng() % 6);
        break;
      case 6:
        b(Op::kDsWriteB32, {vgpr(20), reg()});
        break;
      case 7:
        if (rng() % 3 == 0) b(Op::kSLoadDword, {sgpr(10 + rng() % 3), sgpr(0, 2), Imm{0}});
        break;
      case 8:
        b(Op::kVAddU32, {reg(), rng() % 4 == 0 ? sgpr(10 + rng() % 3) : reg(), reg()});
        break;
      case 9: {
        const Token first = 1 + rng() % 5, second = 1 + rng() % 5;
        b.await({first, second});
        b(Op::kSBarrier, {}, {}, "tokens " + std::to_string(first) + " " + std::to_string(second));
        break;
      }
      case 10:
        labels.push_back(b.listing.new_label());
        b.place(labels.back());
        break;
      case 11:
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

// Index of the first fault on a path, or -1.
int run_path(const Listing& listing, std::mt19937& rng, int steps) {
  std::map<std::uint32_t, std::size_t> place_of;
  for (std::size_t i = 0; i < listing.code.size(); ++i) {
    if (listing.code[i].op == Op::kLabel) place_of[std::get<Label>(listing.code[i].operands[0]).id] = i;
  }
  CounterModel model;
  std::size_t pc = 0;
  for (int step = 0; step < steps && pc < listing.code.size(); ++step) {
    const Instruction& instruction = listing.code[pc];
    if (!model.step(instruction, marks_of(instruction))) return static_cast<int>(pc);
    const bool branch = op_info(instruction.op).unit == Unit::kBranch;
    pc = branch && rng() % 2 == 0 ? place_of.at(std::get<Label>(instruction.operands[0]).id) : pc + 1;
  }
  return -1;
}

TEST(WaitsProperty, NothingIsTouchedBeforeItArrived) {
  std::mt19937 rng(7);
  int waits = 0;
  for (int round = 0; round < 300; ++round) {
    Listing listing = random_program(rng, 20 + static_cast<int>(rng() % 80), true);
    ASSERT_TRUE(insert_waits(listing));
    for (const Instruction& i : listing.code) waits += i.op == Op::kSWaitcnt;
    for (int path = 0; path < 10; ++path) {
      const int fault = run_path(listing, rng, 400);
      ASSERT_EQ(fault, -1) << "round " << round << ": " << print(listing.code[static_cast<std::size_t>(fault)]);
    }
  }
  EXPECT_GT(waits, 1000);
}

// On straight-line code each wait is the weakest that works, on each counter.
TEST(WaitsProperty, NoWaitCanBeWeaker) {
  std::mt19937 rng(11);
  int weakened = 0;
  for (int round = 0; round < 100; ++round) {
    Listing listing = random_program(rng, 40, false);
    ASSERT_TRUE(insert_waits(listing));
    ASSERT_EQ(run_path(listing, rng, 1000), -1);
    for (Instruction& instruction : listing.code) {
      if (instruction.op != Op::kSWaitcnt) continue;
      Imm& simm = std::get<Imm>(instruction.operands[0]);
      const Imm saved = simm;
      const int vm = (saved.value & 15) | (saved.value >> 14 & 3) << 4, lgkm = saved.value >> 8 & 15;
      if (vm < 62) {
        simm.value = (saved.value & ~0xc00f) | ((vm + 1) & 15) | (vm + 1) >> 4 << 14;
        EXPECT_NE(run_path(listing, rng, 1000), -1) << print(instruction) << " in round " << round;
        ++weakened;
      }
      if (lgkm < 14) {
        simm.value = (saved.value & ~0xf00) | (lgkm + 1) << 8;
        EXPECT_NE(run_path(listing, rng, 1000), -1) << print(instruction) << " in round " << round;
        ++weakened;
      }
      simm = saved;
    }
  }
  EXPECT_GT(weakened, 500);
}

}  // namespace
}  // namespace zyfa::jit
