// Descales at the ends of fp32: none of the kernel's products of them may leave the range before the result does.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/harness.h"
#include "tests/reference/eight_bit.h"

namespace zyfa::tests {
namespace {

using schedules::KernelSpec;
using schedules::MaskKind;
using schedules::NearKeys;

std::vector<KernelSpec> variants() {
  std::vector<KernelSpec> all = fp8_variants(128, MaskKind::kCausal);
  std::ranges::copy(fp8_variants(192, MaskKind::kCausal), std::back_inserter(all));
  return all;
}

Fp8Outcome run(Fp8Case c) {
  static const auto device = sim::make_sim_device({.checks = SimChecks::kStrict}).value();
  c.placement = c.spec.near_keys == NearKeys::kBf16 ? "fp8_near_pingpong" : "fp8_pingpong";
  const Expected<Fp8Outcome> outcome = run_fp8_case(c, *device);
  EXPECT_TRUE(outcome) << describe(c) << "\n" << (outcome ? "" : to_string(outcome.error()));
  return outcome ? *outcome : Fp8Outcome{};
}

// 2^-114 over a row sum of thousands is a denormal; the values times 2^-114 are none.
TEST(Fp8Scale, ASmallDescaleOfValues) {
  for (KernelSpec spec : variants()) {
    for (const NearKeys near : {NearKeys::kSame, NearKeys::kBf16}) {
      spec.near_keys = near;
      Fp8Case c{.query_length = 400, .key_length = 400, .spec = spec, .spread = 0.5};
      c.change = [](Fp8Inputs& in) { std::ranges::fill(in.v_descale, 0x1p-114F); };
      const Fp8Outcome outcome = run(c);
      EXPECT_EQ(outcome.figures.mismatched_nan, 0) << describe(c);
      EXPECT_LE(outcome.figures.relative_rms_percent, 5.0) << describe(c);
    }
  }
}

TEST(Fp8Scale, ALargeDescaleOfValues) {
  for (KernelSpec spec : variants()) {
    for (const NearKeys near : {NearKeys::kSame, NearKeys::kBf16}) {
      spec.near_keys = near;
      Fp8Case c{.query_length = 400, .key_length = 400, .spec = spec, .spread = 0.5};
      c.change = [](Fp8Inputs& in) { std::ranges::fill(in.v_descale, 0x1p+114F); };
      const Fp8Outcome outcome = run(c);
      EXPECT_EQ(outcome.figures.mismatched_nan, 0) << describe(c);
      EXPECT_LE(outcome.figures.relative_rms_percent, 5.0) << describe(c);
    }
  }
}

// Every score would be infinite, or 0 times it.
TEST(Fp8Scale, AnInfiniteDescaleOfKeysMakesEveryRowNan) {
  for (const KernelSpec& spec : variants()) {
    Fp8Case c{.query_length = 70, .key_length = 70, .spec = spec};
    c.change = [](Fp8Inputs& in) { std::ranges::fill(in.k_descale, std::numeric_limits<float>::infinity()); };
    const Fp8Outcome outcome = run(c);
    for (const std::uint16_t o : outcome.o) {
      ASSERT_TRUE(std::isnan(reference::bf16_to_double(o))) << describe(c);
    }
    for (const float lse : outcome.lse) ASSERT_TRUE(std::isnan(lse)) << describe(c);
  }
}

}  // namespace
}  // namespace zyfa::tests
