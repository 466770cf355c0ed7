// Planted faults in our own pingpong kernel: each must be caught by the static verifier or by strict mode, with a
// message that names the instruction. A mutant is made from the final listing, so that the assembler's own checks see
// nothing odd.
#include <gmock/gmock.h>

#include <functional>

#include "jit/isa/op_info.h"
#include "jit/llvm/assembler.h"
#include "jit/passes/passes.h"
#include "jit/verify/verifier.h"
#include "schedules/attention/forward.h"
#include "schedules/dsl/build.h"
#include "schedules/dsl/lower.h"
#include "schedules/select/placements.h"
#include "tests/correctness/schedules/attention_probe.h"

namespace zyfa::tests {
namespace {

using jit::Instruction;
using jit::Listing;
using jit::Op;

constexpr const char* kSymbol = "mutant";

struct Kernel {
  Listing listing;
  jit::KernelDeclaration declaration;
};

const Kernel& original() {
  static const Kernel kernel = [] {
    const auto algorithm = schedules::attention_forward(probe_spec({})).value();
    const auto placement = schedules::parse_placement(schedules::kPingpongPlacement).value();
    const auto plan = schedules::make_plan(algorithm, placement).value();
    Kernel made;
    made.listing = schedules::build_listing(plan, kSymbol).value();
    jit::allocate(made.listing, {}).value();
    EXPECT_TRUE(jit::insert_waits(made.listing));
    EXPECT_TRUE(jit::insert_wait_states(made.listing));
    made.declaration = schedules::lower(plan, {.symbol = kSymbol, .kernarg_bytes = 168}).value().declaration;
    made.declaration.vgprs = 256;  // so that a mutant may name a register that the kernel never writes
    return made;
  }();
  return kernel;
}

std::vector<std::size_t> positions(const std::function<bool(const Instruction&)>& wanted) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < original().listing.code.size(); ++i) {
    if (wanted(original().listing.code[i])) found.push_back(i);
  }
  return found;
}

// Whether a message quotes an instruction, by its mnemonic, and tells its offset.
bool names_an_instruction(const std::string& message) {
  const std::size_t quote = message.find('`');
  if (quote == std::string::npos || message.find("0x") == std::string::npos) return false;
  const std::string_view rest = std::string_view(message).substr(quote + 1);
  return std::any_of(original().listing.code.begin(), original().listing.code.end(), [&](const Instruction& i) {
    const std::string_view mnemonic = jit::op_info(i.op).mnemonic;
    return !mnemonic.empty() && rest.starts_with(mnemonic);
  });
}

enum class Caught { kNo, kVerifier, kStrict };

struct Verdict {
  Caught by = Caught::kNo;
  std::string message;
};

Verdict judge(const Listing& mutant, AttentionProbe& probe) {
  const auto object = jit::assemble(mutant, original().declaration);
  if (!object) return {Caught::kNo, to_string(object.error())};
  const auto report = jit::verify_object(jit::read_code_object(*object).value());
  if (!report) return {Caught::kNo, to_string(report.error())};
  if (!report->findings.empty()) return {Caught::kVerifier, jit::to_string(report->findings.front())};
  const auto words = probe.run(*object, kSymbol, 8);
  if (!words && words.error().code == ErrorCode::kStrictFinding) {
    return {Caught::kStrict, words.error().details.empty() ? words.error().message : words.error().details.front()};
  }
  return {Caught::kNo, words ? "ran without a finding" : to_string(words.error())};
}

class Mutants : public testing::Test {
 protected:
  // Applies `mutate` at each position and expects every mutant to be caught.
  void expect_all_caught(const std::vector<std::size_t>& at, const std::function<void(Listing&, std::size_t)>& mutate) {
    ASSERT_FALSE(at.empty());
    std::size_t by_verifier = 0, by_strict = 0;
    for (const std::size_t i : at) {
      Listing mutant = original().listing;
      mutate(mutant, i);
      const Verdict verdict = judge(mutant, probe_);
      const Instruction& instruction = original().listing.code[i];
      EXPECT_NE(verdict.by, Caught::kNo) << "instruction " << i << " `" << jit::print(instruction) << "` ("
                                         << instruction.comment << ") of " << instruction.origin.stage << ": "
                                         << verdict.message;
      if (verdict.by != Caught::kNo) {
        EXPECT_TRUE(names_an_instruction(verdict.message)) << verdict.message;
      }
      by_verifier += verdict.by == Caught::kVerifier ? 1 : 0;
      by_strict += verdict.by == Caught::kStrict ? 1 : 0;
    }
    RecordProperty("mutants", std::to_string(at.size()));
    RecordProperty("by_verifier", std::to_string(by_verifier));
    RecordProperty("by_strict", std::to_string(by_strict));
    std::printf("%zu mutants: %zu caught by the verifier, %zu by strict mode\n", at.size(), by_verifier, by_strict);
  }

  AttentionProbe probe_;
};

void erase(Listing& listing, std::size_t i) {
  listing.code.erase(listing.code.begin() + static_cast<std::ptrdiff_t>(i));
}

TEST_F(Mutants, TheOriginalIsClean) {
  const Verdict verdict = judge(original().listing, probe_);
  EXPECT_EQ(verdict.by, Caught::kNo) << verdict.message;
  EXPECT_EQ(verdict.message, "ran without a finding");
}

TEST_F(Mutants, RemovedWait) {
  expect_all_caught(positions([](const Instruction& i) { return i.op == Op::kSWaitcnt; }), erase);
}

TEST_F(Mutants, RemovedWaitStates) {
  expect_all_caught(positions([](const Instruction& i) { return i.op == Op::kSNop; }), erase);
}

TEST_F(Mutants, RemovedBarrier) {
  expect_all_caught(positions([](const Instruction& i) { return i.op == Op::kSBarrier && i.origin.stage == "phase"; }),
                    erase);
}

// Without the extra barrier of one group the groups run in step, or never meet again.
TEST_F(Mutants, RemovedStagger) {
  expect_all_caught(positions([](const Instruction& i) {
                      return i.op == Op::kSBarrier && (i.origin.stage == "stagger" || i.origin.stage == "unstagger");
                    }),
                    erase);
}

// Direct-to-LDS data lands in another copy of its tile.
TEST_F(Mutants, WrongLoadAddress) {
  expect_all_caught(
      positions(
          [](const Instruction& i) { return i.op == Op::kSAddU32 && std::get<jit::Reg>(i.operands[0]) == jit::m0(); }),
      [](Listing& listing, std::size_t i) { std::get<jit::Imm>(listing.code[i].operands[2]).value ^= 0x4000; });
}

// A product takes a fragment from registers that nobody wrote.
TEST_F(Mutants, SwappedSourceRegister) {
  expect_all_caught(positions([](const Instruction& i) { return i.op == Op::kVMfmaF32_32x32x16Bf16; }),
                    [](Listing& listing, std::size_t i) { listing.code[i].operands[1] = jit::vgpr(252, 4); });
}

// A fragment read lands elsewhere, so that a product takes what the trip before left: every register is defined and
// waited for, and only the values are wrong. Strict mode cannot see that; the comparison of results does.
TEST_F(Mutants, SwappedDestinationRegisterChangesTheResult) {
  const auto clean = probe_.run(jit::assemble(original().listing, original().declaration).value(), kSymbol, 8);
  ASSERT_TRUE(clean);
  for (const std::size_t i : positions([](const Instruction& x) { return x.op == Op::kDsReadB128; })) {
    Listing mutant = original().listing;
    mutant.code[i].operands[0] = jit::vgpr(252, 4);
    const auto object = jit::assemble(mutant, original().declaration);
    ASSERT_TRUE(object);
    const bool verified = jit::verify_object(jit::read_code_object(*object).value()).value().findings.empty();
    const auto words = probe_.run(*object, kSymbol, 8);
    EXPECT_TRUE(!verified || !words || *words != *clean) << jit::print(original().listing.code[i]);
  }
}

// An LDS read of the other copy of its tile: one that another wave may be filling.
TEST_F(Mutants, WrongLdsOffset) {
  expect_all_caught(
      positions([](const Instruction& i) { return i.op == Op::kDsReadB128 || i.op == Op::kDsReadB64TrB16; }),
      [](Listing& listing, std::size_t i) { listing.code[i].mods.offset ^= 0x4000; });
}

}  // namespace
}  // namespace zyfa::tests
