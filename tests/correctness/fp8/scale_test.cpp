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

// An int8 count is worth 0.001 codes in real inputs; here up to a thousand, and a row is one key.
TEST(Fp8Scale, IntegerScoresOfAnyScale) {
  for (const KernelSpec& spec : variants()) {
    if (spec.element != schedules::ElementType::kInt8) continue;
    for (const float scale : {1e-3F, 0.01F, 0.1F, 1.0F, 30.0F, 100.0F, -3.0F}) {
      Fp8Case c{.query_length = 70, .key_length = 140, .spec = spec, .softmax_scale = scale};
      c.descales = Descales::kNone;
      const Fp8Outcome outcome = run(c);
      EXPECT_EQ(outcome.figures.mismatched_nan, 0) << describe(c) << " scale " << scale;
      EXPECT_LE(outcome.figures.relative_rms_percent, 4.0) << describe(c) << " scale " << scale;
      // Scores of up to 127^2 * 192 * scale, which fp32 holds to 2^-24.
      EXPECT_LE(outcome.figures.lse_max_abs, 0.09 + std::ldexp(127.0 * 127 * 192 * std::abs(scale), -23))
          << describe(c) << " scale " << scale;
    }
  }
}

// A head of zeros has an arbitrary descale. All keys weigh the same.
TEST(Fp8Scale, ZerosUnderAnyDescale) {
  for (const KernelSpec& spec : variants()) {
    for (const bool keys : {false, true}) {
      Fp8Case c{.query_length = 70, .key_length = 140, .spec = spec};
      c.change = [&](Fp8Inputs& in) {
        std::ranges::fill(keys ? in.k : in.q, std::uint8_t{0});
        std::ranges::fill(keys ? in.q_descale : in.k_descale, 0x1p20F);
      };
      const Fp8Outcome outcome = run(c);
      EXPECT_EQ(outcome.figures.mismatched_nan, 0) << describe(c);
      EXPECT_LE(outcome.figures.relative_rms_percent, 0.5) << describe(c);
      EXPECT_LE(outcome.figures.lse_max_abs, 0.01) << describe(c);
    }
  }
}

// Four of the eight queries see no key: O is 0 and LSE -inf there, as without the NaN.
TEST(Fp8Scale, RowsWithoutAKeyStayEmptyUnderANanDescale) {
  for (KernelSpec spec : variants()) {
    for (const NearKeys near : {NearKeys::kSame, NearKeys::kBf16}) {
      spec.near_keys = near;
      for (const float descale : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        for (const std::int64_t keys : {4, 0}) {
          Fp8Case c{.query_length = 8, .key_length = keys, .spec = spec};
          c.change = [&](Fp8Inputs& in) { std::ranges::fill(in.k_descale, descale); };
          const Fp8Outcome outcome = run(c);
          for (std::size_t row = 0; row < 8; ++row) {
            const bool empty = static_cast<std::int64_t>(row) < 8 - keys;
            if (!empty && near == NearKeys::kBf16) continue;  // sees its keys in BF16, without the descale
            for (std::size_t d = 0; d < 128; ++d) {
              const double o = reference::bf16_to_double(outcome.o[row * 128 + d]);
              EXPECT_TRUE(empty ? o == 0 : std::isnan(o)) << describe(c) << " row " << row << ": " << o;
            }
            EXPECT_TRUE(empty ? outcome.lse[row] == -std::numeric_limits<float>::infinity()
                              : std::isnan(outcome.lse[row]))
                << describe(c) << " row " << row << ": " << outcome.lse[row];
          }
        }
      }
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
