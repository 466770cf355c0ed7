// Mixed precision: the near keys in BF16 before the 8-bit loop, in every variant and around the edges of both ranges.
#include <gtest/gtest.h>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/harness.h"

namespace zyfa::tests {
namespace {

using schedules::BlockExponents;
using schedules::ElementType;
using schedules::KernelSpec;
using schedules::MaskKind;
using schedules::ProbabilityRule;
using schedules::ScoreForm;

std::vector<KernelSpec> all_variants() {
  std::vector<KernelSpec> all;
  for (const std::uint32_t dim : {128U, 192U}) {
    for (const ElementType element : {ElementType::kFp8E4M3, ElementType::kInt8}) {
      for (const ProbabilityRule rule : {ProbabilityRule::kLean, ProbabilityRule::kExact}) {
        for (const BlockExponents exponents : {BlockExponents::kUsed, BlockExponents::kNone}) {
          for (const ScoreForm form : {ScoreForm::kMultiplyAdd, ScoreForm::kFolded}) {
            if (form == ScoreForm::kFolded && (element == ElementType::kInt8 || rule == ProbabilityRule::kExact)) {
              continue;
            }
            KernelSpec spec = fp8_spec();
            spec.head_dim_qk = dim;
            spec.mask = schedules::MaskKind::kCausal;
            spec.element = element;
            spec.probability = rule;
            spec.block_exponents = exponents;
            spec.form = form;
            spec.near_keys = schedules::NearKeys::kBf16;
            all.push_back(spec);
          }
        }
      }
    }
  }
  return all;
}

struct Shape {
  std::int64_t queries, keys;
  MaskKind mask;
};

// Rounding O and the near inputs to BF16 gives 0.3%; the 8-bit keys as in smoke_test.cpp.
constexpr double kMaxRmsPercent = 2.0;
constexpr double kMaxLse = 0.09;

TEST(Fp8Near, EveryVariantUnderEveryPlacement) {
  const auto device = sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 2}).value();
  const Shape shapes[] = {{70, 700, MaskKind::kCausal}, {300, 300, MaskKind::kCausal}, {33, 201, MaskKind::kFull}};
  for (const KernelSpec& variant : all_variants()) {
    for (const Shape& shape : shapes) {
      Fp8Outcome naive;
      std::vector<const char*> placements{"fp8_near_naive", "fp8_near_pingpong", "fp8_near_pingpong_packed"};
      if (variant.head_dim_qk == 128) placements.push_back("fp8_near_wide");
      for (const char* placement : placements) {
        Fp8Case c{.batch = 1,
                  .query_length = shape.queries,
                  .key_length = shape.keys,
                  .heads = 2,
                  .key_heads = 1,
                  .spec = variant,
                  .placement = placement};
        c.spec.mask = shape.mask;
        const Expected<Fp8Outcome> outcome = run_fp8_case(c, *device);
        ASSERT_TRUE(outcome) << describe(c) << "\n" << to_string(outcome.error());
        EXPECT_LT(outcome->figures.relative_rms_percent, kMaxRmsPercent) << describe(c);
        EXPECT_LT(outcome->figures.lse_max_abs, kMaxLse) << describe(c);
        EXPECT_EQ(outcome->figures.mismatched_nan, 0) << describe(c);
        EXPECT_TRUE(outcome->outside_untouched) << describe(c);
        if (naive.o.empty()) naive = *outcome;
        EXPECT_EQ(outcome->o, naive.o) << describe(c);
        EXPECT_EQ(outcome->lse, naive.lse) << describe(c);
      }
    }
  }
}

}  // namespace
}  // namespace zyfa::tests
