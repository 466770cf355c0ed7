// Mutants of our own pingpong kernel: one planted fault each, made in the final listing so that the assembler's own
// checks see nothing odd, and judged by the static verifier, by strict mode and by the result.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "jit/isa/instruction.h"
#include "schedules/dsl/plan.h"
#include "tests/correctness/schedules/attention_probe.h"

namespace zyfa::tests {

const schedules::Plan& original_plan();
const jit::Listing& original_listing();
// Places of the original's instructions.
std::vector<std::size_t> positions(const std::function<bool(const jit::Instruction&)>& wanted);
std::vector<std::size_t> positions(jit::Op op);
// Every nth of places that are all alike.
std::vector<std::size_t> some(const std::vector<std::size_t>& all, std::size_t n);

struct Verdict {
  std::string verifier, strict;  // the first finding, or empty
  std::string failure;           // anything else that went wrong
  bool same_result = false;      // as the original's
  [[nodiscard]] bool caught() const { return !verifier.empty() || !strict.empty(); }
};

class Mutants : public testing::Test {
 protected:
  using Mutation = std::function<void(jit::Listing&, std::size_t)>;

  Verdict judge(const jit::Listing& mutant);
  // Applies `mutate` at each place; the verifier or strict mode must catch every mutant, by a finding of one of `kinds`
  // that names an instruction, and each kind must occur. Prints which caught how many.
  void expect_all_caught(const std::vector<std::size_t>& at, const Mutation& mutate,
                         const std::set<std::string>& kinds);
  // The same, but that a wrong result is enough: what no checker of one instruction can see.
  void expect_all_noticed(const std::vector<std::size_t>& at, const Mutation& mutate);

 private:
  // Two workgroups that see 509 and 633 keys, 4 and 5 iterations that end with keys that count: a loop of two copies
  // has a last trip after each.
  AttentionProbe probe_{380, 633};
  std::vector<std::uint32_t> original_result_;
};

jit::Instruction make(jit::Op op, std::vector<jit::Operand> operands);
void erase(jit::Listing& listing, std::size_t i);
void insert(jit::Listing& listing, std::size_t before, std::vector<jit::Instruction> code);

}  // namespace zyfa::tests
