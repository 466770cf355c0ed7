// Waits, wait states, barriers and what an instruction in flight still needs: mutants that the verifier or strict mode
// must catch, with a message that names the instruction.
#include "tests/correctness/schedules/mutants.h"

namespace zyfa::tests {
namespace {

using jit::Imm;
using jit::Instruction;
using jit::Listing;
using jit::Op;
using jit::Reg;

bool is_phase_barrier(const Instruction& i) { return i.op == Op::kSBarrier && i.origin.stage == "phase"; }

std::uint32_t immediate(const Listing& listing, std::size_t i) {
  return static_cast<std::uint32_t>(std::get<Imm>(listing.code[i].operands[0]).value);
}

// Fields of s_waitcnt: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8 (gfx950-isa.md 3.5).
constexpr std::uint32_t kMostVm = 63, kMostLgkm = 15;
std::uint32_t vmcnt(std::uint32_t simm) { return (simm & 15) | ((simm >> 10) & 0x30); }
std::uint32_t lgkmcnt(std::uint32_t simm) { return (simm >> 8) & 15; }
std::uint32_t with(std::uint32_t simm, std::uint32_t vm, std::uint32_t lgkm) {
  return (simm & ~0xcf0fu) | (vm & 15) | ((vm & 0x30) << 10) | (lgkm << 8);
}
void set_immediate(Listing& listing, std::size_t i, std::uint32_t value) {
  std::get<Imm>(listing.code[i].operands[0]).value = static_cast<std::int32_t>(value);
}

TEST_F(Mutants, TheOriginalIsClean) {
  const Verdict verdict = judge(original_listing());
  EXPECT_FALSE(verdict.caught()) << verdict.verifier << verdict.strict;
  EXPECT_EQ(verdict.failure, "");
  EXPECT_TRUE(verdict.same_result);
}

TEST_F(Mutants, RemovedWait) { expect_all_caught(positions(Op::kSWaitcnt), erase, {"missing-wait", "lds-in-flight"}); }

TEST_F(Mutants, VmcntOneTooLarge) {
  expect_all_caught(positions([](const Instruction& i) {
                      return i.op == Op::kSWaitcnt &&
                             vmcnt(static_cast<std::uint32_t>(std::get<Imm>(i.operands[0]).value)) != kMostVm;
                    }),
                    [](Listing& l, std::size_t i) {
                      const std::uint32_t simm = immediate(l, i);
                      set_immediate(l, i, with(simm, vmcnt(simm) + 1, lgkmcnt(simm)));
                    },
                    {"missing-wait", "lds-in-flight", "lds-race", "barrier"});
}

TEST_F(Mutants, LgkmcntOneTooLarge) {
  expect_all_caught(positions([](const Instruction& i) {
                      return i.op == Op::kSWaitcnt &&
                             lgkmcnt(static_cast<std::uint32_t>(std::get<Imm>(i.operands[0]).value)) != kMostLgkm;
                    }),
                    [](Listing& l, std::size_t i) {
                      const std::uint32_t simm = immediate(l, i);
                      set_immediate(l, i, with(simm, vmcnt(simm), lgkmcnt(simm) + 1));
                    },
                    {"missing-wait"});
}

TEST_F(Mutants, RemovedWaitStates) { expect_all_caught(positions(Op::kSNop), erase, {"wait-states"}); }

TEST_F(Mutants, OneWaitStateLess) {
  expect_all_caught(
      positions([](const Instruction& i) { return i.op == Op::kSNop && std::get<Imm>(i.operands[0]).value > 0; }),
      [](Listing& l, std::size_t i) { set_immediate(l, i, immediate(l, i) - 1); }, {"wait-states"});
}

TEST_F(Mutants, RemovedBarrier) { expect_all_caught(positions(is_phase_barrier), erase, {"lds-race"}); }

// Without the extra barrier of one group the groups run in step, or never meet again.
TEST_F(Mutants, RemovedStagger) {
  expect_all_caught(positions([](const Instruction& i) {
                      return i.op == Op::kSBarrier && (i.origin.stage == "stagger" || i.origin.stage == "unstagger");
                    }),
                    erase, {"divergent-barrier"});
}

// A barrier before the wait that should precede it.
TEST_F(Mutants, BarrierBeforeItsWait) {
  std::vector<std::size_t> at;
  for (const std::size_t i : positions(is_phase_barrier)) {
    if (original_listing().code[i - 1].op == Op::kSWaitcnt) at.push_back(i);
  }
  expect_all_caught(at, [](Listing& l, std::size_t i) { std::swap(l.code[i - 1], l.code[i]); }, {"lds-race"});
}

// One wave of eight does not stop at a barrier. s7 is the number of the wave.
// The SGPR that holds the wave's number: the compare that staggers the groups reads it.
Reg wave_register(const Listing& l) {
  for (const Instruction& i : l.code) {
    if (i.op == Op::kSCmpGeI32 && i.comment == "this wave's group?") return std::get<Reg>(i.operands[0]);
  }
  ADD_FAILURE() << "no compare of the wave's number";
  return jit::sgpr(0);
}

TEST_F(Mutants, BarrierThatOneWaveSkips) {
  expect_all_caught(positions(is_phase_barrier),
                    [](Listing& l, std::size_t i) {
                      const jit::Label behind = l.new_label();
                      insert(l, i + 1, {make(Op::kLabel, {behind})});
                      insert(l, i,
                             {make(Op::kSCmpEqU32, {wave_register(l), Imm{7}}), make(Op::kSCbranchScc1, {behind})});
                    },
                    {"lds-race", "divergent-barrier"});
}

// Registers that an instruction in flight still reads or has yet to write.
TEST_F(Mutants, AccumulatorOverwrittenAtOnce) {
  expect_all_caught(some(positions(Op::kVMfmaF32_32x32x16Bf16), 4),
                    [](Listing& l, std::size_t i) {
                      const Reg d = std::get<Reg>(l.code[i].operands[0]);
                      insert(l, i + 1, {make(Op::kVMovB32, {d.sub(15), Imm{0}})});
                    },
                    {"wait-states"});
}

TEST_F(Mutants, StoreDataOverwrittenAtOnce) {
  expect_all_caught(positions(Op::kBufferStoreDwordx4),
                    [](Listing& l, std::size_t i) {
                      const Reg data = std::get<Reg>(l.code[i].operands[0]);
                      insert(l, i + 1, {make(Op::kVMovB32, {data.sub(3), Imm{0}})});
                    },
                    {"wait-states"});
}

TEST_F(Mutants, LoadedRegisterOverwrittenAtOnce) {
  expect_all_caught(some(positions([](const Instruction& i) {
                           return i.op == Op::kDsReadB128 || i.op == Op::kDsReadB64TrB16 ||
                                  i.op == Op::kBufferLoadDwordx4;
                         }),
                         6),
                    [](Listing& l, std::size_t i) {
                      const Reg d = std::get<Reg>(l.code[i].operands[0]);
                      insert(l, i + 1, {make(Op::kVMovB32, {d.sub(1), Imm{0}})});
                    },
                    {"missing-wait"});
}

}  // namespace
}  // namespace zyfa::tests
