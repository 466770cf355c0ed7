// Mutants of the shipped 8-bit kernels, one planted fault each in the final listing: a wait, a wait state or a barrier
// taken away must be caught by the static verifier or by strict mode.
#include <gmock/gmock.h>

#include <functional>
#include <map>

#include "jit/isa/instruction.h"
#include "jit/isa/op_info.h"
#include "jit/llvm/assembler.h"
#include "jit/passes/passes.h"
#include "jit/verify/verifier.h"
#include "runtime/sim/sim_device.h"
#include "schedules/attention/fp8.h"
#include "schedules/dsl/build.h"
#include "schedules/dsl/lower.h"
#include "schedules/select/kernel_args.h"
#include "schedules/select/select.h"
#include "tests/correctness/fp8/model.h"
#include "tests/correctness/fp8/path_check.h"

namespace zyfa::tests {
namespace {

using jit::Imm;
using jit::Instruction;
using jit::Listing;
using jit::Op;
using schedules::RowSum;
using schedules::ScoreForm;

constexpr const char* kSymbol = "mutant";

struct Kernel {
  std::string name;
  ScoreForm form;
  RowSum sum;
  const char* row = "fp8_pingpong";
};

class Fp8Mutants : public testing::TestWithParam<Kernel> {
 protected:
  using Mutation = std::function<void(Listing&, std::size_t)>;

  void SetUp() override {
    case_ = {.query_length = 243, .key_length = 907, .spec = fp8_spec()};
    case_.spec.mask = schedules::MaskKind::kCausal;
    case_.spec.form = GetParam().form;
    case_.spec.row_sum = GetParam().sum;
    case_.spread = 3.0;
    inputs_ = make_fp8_inputs(case_);
    const auto placement =
        schedules::parse_placement(schedules::find_row(schedules::kernel_table(), GetParam().row)->placement).value();
    waves_ = placement.waves;
    query_tile_ = placement.queries * placement.waves;
    const auto algorithm = schedules::attention_forward_fp8(case_.spec, placement).value();
    const auto plan = schedules::make_plan(algorithm, placement).value();
    original_ = schedules::build_listing(plan, kSymbol).value();
    jit::allocate(original_, {.agprs = static_cast<std::uint16_t>(placement.queries == 64 ? 256 : 0)}).value();
    ASSERT_TRUE(jit::insert_waits(original_));
    ASSERT_TRUE(jit::insert_wait_states(original_));
    declaration_ = schedules::lower(plan, {.symbol = kSymbol, .kernarg_bytes = sizeof(schedules::AttentionForwardArgs)})
                       .value()
                       .declaration;
  }

  // The first finding, or empty.
  std::string judge(const Listing& mutant) {
    const auto object = jit::assemble(mutant, declaration_);
    if (!object) return "not assembled: " + to_string(object.error());
    const auto report = jit::verify_object(jit::read_code_object(*object).value());
    if (!report) return to_string(report.error());
    if (!report->findings.empty()) return jit::to_string(report->findings.front());
    const Expected<Fp8Output> output =
        launch_fp8_object(case_, inputs_, {*object, kSymbol, waves_, query_tile_}, *device_);
    const std::vector<SimFinding> findings = device_->last_findings();
    if (!findings.empty()) return sim::to_string(findings.front());
    return output ? std::string() : to_string(output.error());
  }

  // And runs through all that mutants are made of.
  void expect_clean_original() {
    ASSERT_EQ(judge(original_), "");
    expect_row_sum(GetParam().sum, *device_);
    if (GetParam().form == ScoreForm::kFolded) expect_both_paths(modelled_attention(case_, inputs_), *device_);
  }

  void expect_all_caught(const std::function<bool(const Instruction&)>& wanted, const Mutation& mutate) {
    expect_clean_original();
    if (HasFailure()) return;
    std::map<std::string, int> kinds;
    int mutants = 0;
    for (std::size_t i = 0; i < original_.code.size(); ++i) {
      if (!wanted(original_.code[i])) continue;
      Listing mutant = original_;
      mutate(mutant, i);
      ++mutants;
      const std::string finding = judge(mutant);
      EXPECT_FALSE(finding.empty()) << "instruction " << i << " `" << jit::print(original_.code[i]) << "` ("
                                    << original_.code[i].comment << ") of " << original_.code[i].origin.stage;
      ++kinds[finding.substr(0, finding.find(' '))];
    }
    EXPECT_GT(mutants, 0);
    std::printf("%d mutants:", mutants);
    for (const auto& [kind, count] : kinds) std::printf(" %s %d", kind.c_str(), count);
    std::printf("\n");
  }

  static void erase(Listing& listing, std::size_t i) {
    listing.code.erase(listing.code.begin() + static_cast<std::ptrdiff_t>(i));
  }

  std::uint32_t waves_ = 0, query_tile_ = 0;
  Fp8Case case_;
  Fp8Inputs inputs_;
  Listing original_;
  jit::KernelDeclaration declaration_;
  std::shared_ptr<SimDevice> device_ =
      sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 2, .counts = SimCounts::kByInstruction}).value();
};

TEST_P(Fp8Mutants, TheOriginalIsClean) { expect_clean_original(); }

TEST_P(Fp8Mutants, RemovedWait) {
  expect_all_caught([](const Instruction& i) { return i.op == Op::kSWaitcnt; }, erase);
}

TEST_P(Fp8Mutants, RemovedWaitStates) {
  expect_all_caught([](const Instruction& i) { return i.op == Op::kSNop; }, erase);
}

TEST_P(Fp8Mutants, OneWaitStateLess) {
  expect_all_caught([](const Instruction& i) { return i.op == Op::kSNop && std::get<Imm>(i.operands[0]).value > 0; },
                    [](Listing& l, std::size_t i) { --std::get<Imm>(l.code[i].operands[0]).value; });
}

TEST_P(Fp8Mutants, RemovedBarrier) {
  expect_all_caught([](const Instruction& i) { return i.op == Op::kSBarrier; }, erase);
}

INSTANTIATE_TEST_SUITE_P(Forms, Fp8Mutants,
                         testing::Values(Kernel{"folded", ScoreForm::kFolded, RowSum::kSparse},
                                         Kernel{"folded_dense", ScoreForm::kFolded, RowSum::kDense},
                                         Kernel{"fma", ScoreForm::kMultiplyAdd, RowSum::kDense},
                                         Kernel{"wide", ScoreForm::kFolded, RowSum::kSparse, "fp8_wide"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace zyfa::tests
