#include "tests/correctness/schedules/mutants.h"

#include <algorithm>
#include <iterator>

#include "jit/isa/op_info.h"
#include "jit/llvm/assembler.h"
#include "jit/passes/passes.h"
#include "jit/verify/verifier.h"
#include "runtime/sim/sim_device.h"
#include "schedules/attention/forward.h"
#include "schedules/dsl/build.h"
#include "schedules/dsl/lower.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/select.h"

namespace zyfa::tests {
namespace {

using jit::Instruction;
using jit::Listing;

constexpr const char* kSymbol = "mutant";
constexpr std::uint32_t kWaves = 8, kQueryTile = 256;

struct Kernel {
  Listing listing;
  jit::KernelDeclaration declaration;
};

const Kernel& original() {
  static const Kernel kernel = [] {
    const schedules::Plan& plan = original_plan();
    Kernel made;
    made.listing = schedules::build_listing(plan, kSymbol).value();
    jit::allocate(made.listing, {}).value();
    EXPECT_TRUE(jit::insert_waits(made.listing));
    EXPECT_TRUE(jit::insert_wait_states(made.listing));
    made.declaration =
        schedules::lower(plan, {.symbol = kSymbol, .kernarg_bytes = sizeof(schedules::AttentionForwardArgs)})
            .value()
            .declaration;
    made.declaration.vgprs = 256;  // so that a mutant may name a register that the kernel never writes
    return made;
  }();
  return kernel;
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

// "wait-states at 0x120 ..." -> "wait-states".
std::string kind_of(std::string message) {
  constexpr std::string_view kWarning = "warning: ";
  if (message.starts_with(kWarning)) message.erase(0, kWarning.size());
  return message.substr(0, message.find(' '));
}

std::string describe(std::size_t i) {
  const Instruction& instruction = original().listing.code[i];
  return "instruction " + std::to_string(i) + " `" + jit::print(instruction) + "` (" + instruction.comment + ") of " +
         instruction.origin.stage;
}

}  // namespace

const schedules::Plan& original_plan() {
  static const auto algorithm = schedules::attention_forward(probe_spec({}), {}).value();
  static const auto placement =
      schedules::parse_placement(schedules::find_row(schedules::kernel_table(), "pingpong")->placement).value();
  static const auto plan = schedules::make_plan(algorithm, placement).value();
  return plan;
}

const Listing& original_listing() { return original().listing; }

std::vector<std::size_t> positions(const std::function<bool(const Instruction&)>& wanted) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < original().listing.code.size(); ++i) {
    if (wanted(original().listing.code[i])) found.push_back(i);
  }
  return found;
}
std::vector<std::size_t> positions(jit::Op op) {
  return positions([op](const Instruction& i) { return i.op == op; });
}

std::vector<std::size_t> some(const std::vector<std::size_t>& all, std::size_t n) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < all.size(); i += n) kept.push_back(all[i]);
  return kept;
}

Verdict Mutants::judge(const Listing& mutant) {
  Verdict verdict;
  const auto object = jit::assemble(mutant, original().declaration);
  if (!object) {
    verdict.failure = to_string(object.error());
    return verdict;
  }
  const auto report = jit::verify_object(jit::read_code_object(*object).value());
  if (!report) {
    verdict.failure = to_string(report.error());
    return verdict;
  }
  if (!report->findings.empty()) verdict.verifier = jit::to_string(report->findings.front());
  const auto words = probe_.run(*object, kSymbol, kWaves, kQueryTile);
  if (words) {
    const std::vector<SimFinding> warnings = probe_.findings();
    if (!warnings.empty()) verdict.strict = sim::to_string(warnings.front());
    if (original_result_.empty()) {
      original_result_ =
          probe_.run(jit::assemble(original().listing, original().declaration).value(), kSymbol, kWaves, kQueryTile)
              .value();
    }
    verdict.same_result = *words == original_result_;
  } else if (words.error().code == ErrorCode::kStrictFinding) {
    verdict.strict = words.error().details.empty() ? words.error().message : words.error().details.front();
  } else {
    verdict.failure = to_string(words.error());
    const std::vector<SimFinding> findings = probe_.findings();
    if (!findings.empty()) verdict.strict = sim::to_string(findings.front());
  }
  return verdict;
}

void Mutants::expect_all_caught(const std::vector<std::size_t>& at, const Mutation& mutate,
                                const std::set<std::string>& kinds) {
  ASSERT_FALSE(at.empty());
  std::size_t by_verifier = 0, by_strict = 0, by_both = 0;
  std::set<std::string> seen;
  for (const std::size_t i : at) {
    Listing mutant = original().listing;
    mutate(mutant, i);
    const Verdict v = judge(mutant);
    EXPECT_TRUE(v.caught()) << describe(i) << ": " << (v.failure.empty() ? "ran without a finding" : v.failure);
    for (const std::string& message : {v.verifier, v.strict}) {
      if (message.empty()) continue;
      EXPECT_TRUE(names_an_instruction(message)) << message;
      seen.insert(kind_of(message));
      EXPECT_TRUE(kinds.contains(kind_of(message))) << describe(i) << ": " << message;
    }
    by_both += !v.verifier.empty() && !v.strict.empty() ? 1 : 0;
    by_verifier += !v.verifier.empty() && v.strict.empty() ? 1 : 0;
    by_strict += v.verifier.empty() && !v.strict.empty() ? 1 : 0;
  }
  EXPECT_EQ(seen, kinds);
  RecordProperty("mutants", std::to_string(at.size()));
  RecordProperty("by_both", std::to_string(by_both));
  RecordProperty("by_verifier", std::to_string(by_verifier));
  RecordProperty("by_strict", std::to_string(by_strict));
  std::string list;
  for (const std::string& kind : seen) list += " " + kind;
  std::printf("%zu mutants: %zu caught by both, %zu by the verifier alone, %zu by strict mode alone:%s\n", at.size(),
              by_both, by_verifier, by_strict, list.c_str());
}

void Mutants::expect_all_noticed(const std::vector<std::size_t>& at, const Mutation& mutate) {
  ASSERT_FALSE(at.empty());
  std::size_t caught = 0, failed = 0, differ = 0;
  for (const std::size_t i : at) {
    Listing mutant = original().listing;
    mutate(mutant, i);
    const Verdict v = judge(mutant);
    EXPECT_TRUE(v.caught() || !v.failure.empty() || !v.same_result) << describe(i) << ": passed unnoticed";
    caught += v.caught() ? 1 : 0;
    failed += !v.caught() && !v.failure.empty() ? 1 : 0;
    differ += !v.caught() && v.failure.empty() && !v.same_result ? 1 : 0;
  }
  RecordProperty("mutants", std::to_string(at.size()));
  std::printf("%zu mutants: %zu caught by the verifier or strict mode, %zu failed, %zu gave another result\n",
              at.size(), caught, failed, differ);
}

Instruction make(jit::Op op, std::vector<jit::Operand> operands) {
  Instruction made;
  made.op = op;
  made.operands = std::move(operands);
  return made;
}
void erase(Listing& listing, std::size_t i) {
  listing.code.erase(listing.code.begin() + static_cast<std::ptrdiff_t>(i));
}
void insert(Listing& listing, std::size_t before, std::vector<Instruction> code) {
  listing.code.insert(listing.code.begin() + static_cast<std::ptrdiff_t>(before), std::make_move_iterator(code.begin()),
                      std::make_move_iterator(code.end()));
}

}  // namespace zyfa::tests
