// Addresses, buffers, registers and EXEC: mutants that the verifier or strict mode must catch, and those that show in
// the result alone.
#include <algorithm>

#include "jit/isa/op_info.h"
#include "tests/correctness/schedules/mutants.h"

namespace zyfa::tests {
namespace {

using jit::Imm;
using jit::Instruction;
using jit::Listing;
using jit::Op;

constexpr std::uint32_t kUnused = 252;  // first of four registers that the kernel never writes

// The same place in the other copy of the LDS tile that `address` is in.
std::int32_t other_copy(std::int32_t address) {
  const schedules::Plan& plan = original_plan();
  for (const schedules::Tile& tile : plan.algorithm->tiles) {
    if (tile.space != schedules::TileSpace::kLds) continue;
    for (const std::uint32_t copy : {0U, 1U}) {
      const std::int32_t at = address - static_cast<std::int32_t>(plan.lds_offset(tile.name, copy));
      if (at < 0 || at >= static_cast<std::int32_t>(tile.lds_bytes)) continue;
      return static_cast<std::int32_t>(plan.lds_offset(tile.name, 1 - copy)) + at;
    }
  }
  ADD_FAILURE() << "no LDS tile holds byte " << address;
  return address;
}

// What the address register of an LDS read holds for lane 0, beside its offset.
std::int32_t read_base(const Instruction& i) {
  return i.op == Op::kDsReadB128 ? 0 : static_cast<std::int32_t>(original_plan().lds_offset("v_first", 0));
}

bool is_lds_read(const Instruction& i) { return i.op == Op::kDsReadB128 || i.op == Op::kDsReadB64TrB16; }

// The branch back.
std::size_t last_of_loop() {
  std::size_t last = 0;
  std::set<std::uint32_t> placed;
  for (std::size_t i = 0; i < original_listing().code.size(); ++i) {
    const Instruction& instruction = original_listing().code[i];
    const jit::Label* label = jit::label_of(instruction);
    if (label == nullptr) continue;
    if (instruction.op == Op::kLabel)
      placed.insert(label->id);
    else if (placed.contains(label->id))
      last = i;
  }
  return last;
}

using AddressMutants = Mutants;

// Direct-to-LDS data lands in another copy of its tile.
TEST_F(AddressMutants, WrongLoadAddress) {
  expect_all_caught(positions([](const Instruction& i) {
                      return i.op == Op::kSAddU32 && std::get<jit::Reg>(i.operands[0]) == jit::m0();
                    }),
                    [](Listing& l, std::size_t i) {
                      std::int32_t& to = std::get<Imm>(l.code[i].operands[2]).value;
                      to = other_copy(to);
                    },
                    {"lds-in-flight", "lds-race", "uninitialised-register"});
}

// An LDS read of the other copy of its tile: one that another wave may be filling. Behind the loop nobody fills any,
// and the copy holds the iteration before: that shows in the result.
TEST_F(AddressMutants, ReadsTheOtherCopyOfItsTile) {
  const auto mutate = [](Listing& l, std::size_t i) {
    const std::int32_t base = read_base(l.code[i]);
    l.code[i].mods.offset = other_copy(base + l.code[i].mods.offset) - base;
  };
  std::vector<std::size_t> loop = some(positions(is_lds_read), 8);
  const auto behind = std::ranges::upper_bound(loop, last_of_loop());
  const std::vector<std::size_t> last_trips(behind, loop.end());
  loop.erase(behind, loop.end());
  expect_all_caught(loop, mutate, {"lds-in-flight", "lds-race", "uninitialised-register"});
  expect_all_noticed(last_trips, mutate);
}

// The LDS offsets of two loads of a tile exchanged: both copies are filled in the wrong order.
TEST_F(AddressMutants, ExchangedTileCopies) {
  const auto at = positions(
      [](const Instruction& i) { return i.op == Op::kSAddU32 && std::get<jit::Reg>(i.operands[0]) == jit::m0(); });
  expect_all_caught({at.begin(), at.begin() + 2},
                    [&](Listing& l, std::size_t i) {
                      std::swap(std::get<Imm>(l.code[i].operands[2]).value,
                                std::get<Imm>(l.code[at[at[0] == i ? 4 : 5]].operands[2]).value);
                    },
                    {"lds-in-flight"});
}

TEST_F(AddressMutants, LdsBaseOffByADword) {
  expect_all_caught(positions([](const Instruction& i) {
                      return i.op == Op::kSAddU32 && std::get<jit::Reg>(i.operands[0]) == jit::m0();
                    }),
                    [](Listing& l, std::size_t i) { std::get<Imm>(l.code[i].operands[2]).value += 4; },
                    {"lds-misaligned"});
}

TEST_F(AddressMutants, LdsReadOffByADword) {
  expect_all_caught(some(positions(is_lds_read), 8), [](Listing& l, std::size_t i) { l.code[i].mods.offset += 4; },
                    {"lds-misaligned"});
}

TEST_F(AddressMutants, LdsReadBeyondTheAllocation) {
  expect_all_caught(some(positions(Op::kDsReadB64TrB16), 8),
                    [](Listing& l, std::size_t i) { l.code[i].mods.offset |= 0xff00; }, {"lds-out-of-bounds"});
}

TEST_F(AddressMutants, GlobalLoadOffByTwoBytes) {
  expect_all_caught(positions(Op::kBufferLoadDwordx4), [](Listing& l, std::size_t i) { l.code[i].mods.offset += 2; },
                    {"memory-misaligned"});
}

// A tile of which one wave's part is not loaded: never written the first time, the tile before it later on.
TEST_F(AddressMutants, DroppedLoad) { expect_all_noticed(positions(Op::kBufferLoadDwordx4Lds), erase); }

// A product takes a fragment from registers that nobody wrote.
TEST_F(AddressMutants, UnwrittenSource) {
  expect_all_caught(some(positions(Op::kVMfmaF32_32x32x16Bf16), 4),
                    [](Listing& l, std::size_t i) { l.code[i].operands[1] = jit::vgpr(kUnused, 4); },
                    {"uninitialised", "uninitialised-register"});
}

// Lanes switched off before instructions that need them all, and on again behind.
TEST_F(AddressMutants, InactiveLanes) {
  expect_all_caught(some(positions([](const Instruction& i) {
                           return i.op == Op::kVMfmaF32_32x32x16Bf16 || i.op == Op::kVPermlane32Swap ||
                                  i.op == Op::kDsReadB64TrB16;
                         }),
                         4),
                    [](Listing& l, std::size_t i) {
                      insert(l, i + 1, {make(Op::kSMovB64, {jit::exec(), Imm{-1}})});
                      insert(l, i, {make(Op::kSMovB64, {jit::exec(), Imm{0x7fffffff}})});
                    },
                    {"exec-mask"});
}

// A fragment read lands elsewhere, so that a product takes what the trip before left: every register is defined and
// waited for, and only the values are wrong. Strict mode cannot see that; the comparison of results does.
TEST_F(AddressMutants, SwappedDestinationRegister) {
  expect_all_noticed(some(positions(Op::kDsReadB128), 4),
                     [](Listing& l, std::size_t i) { l.code[i].operands[0] = jit::vgpr(kUnused, 4); });
}

// Constants of the address arithmetic one off: another lane's data, aligned and in bounds.
TEST_F(AddressMutants, LaneAddressOffByOne) {
  std::vector<std::size_t> at;
  for (const std::size_t i : positions([](const Instruction& x) { return x.origin.stage == "setup"; })) {
    const Instruction& x = original_listing().code[i];
    const bool shift_or_mask = x.op == Op::kVLshlrevB32 || x.op == Op::kVLshrrevB32 || x.op == Op::kVAndB32;
    if (shift_or_mask && std::holds_alternative<Imm>(x.operands[1])) at.push_back(i);
  }
  expect_all_noticed(at, [](Listing& l, std::size_t i) { std::get<Imm>(l.code[i].operands[1]).value -= 1; });
}

}  // namespace
}  // namespace zyfa::tests
