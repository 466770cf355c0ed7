// v_cvt_pk_u8_f32 may round or truncate on the machine: a kernel built for either is right on the machine it was built
// for, and a mismatch shows as the bias of half a code in LSE, ln 2 / 16.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/code_watch.h"
#include "tests/correctness/fp8/model.h"
#include "tests/reference/probability.h"

namespace zyfa::tests {
namespace {

using reference::ByteRounding;
using schedules::KernelSpec;

std::vector<KernelSpec> lean_variants() {
  std::vector<KernelSpec> all = fp8_variants(128, schedules::MaskKind::kFull);
  std::erase_if(all, [](const KernelSpec& s) { return s.probability != schedules::ProbabilityRule::kLean; });
  return all;
}

struct Launched {
  Fp8Output output;
  WatchedCodes watched;
};

Launched run(Fp8Case c, ByteRounding built_for, ByteRounding machine) {
  Launched result;
  c.placement = "fp8_naive";
  c.spec.byte_rounding =
      built_for == ByteRounding::kNearestEven ? schedules::ByteRounding::kNearest : schedules::ByteRounding::kTruncate;
  SimOptions options{.checks = SimChecks::kStrict};
  options.rules.cvt_pk_u8 = machine == ByteRounding::kNearestEven ? SimCvtPkU8::kRounds : SimCvtPkU8::kTruncates;
  options.watches = watch_codes(result.watched, WatchValues::kCodesAndConverted);
  const auto device = sim::make_sim_device(options).value();
  const Expected<Fp8Output> output = launch_fp8_case(c, make_fp8_inputs(c), *device);
  EXPECT_TRUE(output) << describe(c) << "\n" << (output ? "" : to_string(output.error()));
  if (output) result.output = *output;
  return result;
}

// Every value to be converted is half a code more, to the rounding of float32; so the codes are the same but where the
// value lies at a half, and O and LSE are the same bits where no code differs.
TEST(Fp8Rounding, KernelsForEitherMachineFormTheSameCodes) {
  constexpr double kFloat = 1.0 / 4096;  // scores of some hundred units, some roundings
  std::uint64_t compared = 0, differing = 0, same_outputs = 0;
  for (const KernelSpec& spec : lean_variants()) {
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      Fp8Case c{.query_length = 32, .key_length = 300, .spec = spec, .seed = seed};
      const Launched nearest = run(c, ByteRounding::kNearestEven, ByteRounding::kNearestEven);
      const Launched truncating = run(c, ByteRounding::kTruncate, ByteRounding::kTruncate);
      ASSERT_EQ(nearest.watched.converted.size(), truncating.watched.converted.size()) << describe(c);
      ASSERT_FALSE(nearest.watched.converted.empty());
      std::uint64_t differ = 0;
      for (std::size_t i = 0; i < nearest.watched.converted.size(); ++i) {
        const double t = nearest.watched.converted[i], u = truncating.watched.converted[i];
        if (t < -1) {
          EXPECT_LT(u, 0.0) << describe(c) << ": both are code 0";
          continue;
        }
        EXPECT_NEAR(u, t + 0.5, kFloat) << describe(c) << " conversion " << i;
        const int code = reference::double_to_byte(t, ByteRounding::kNearestEven);
        const int other = reference::double_to_byte(u, ByteRounding::kTruncate);
        ++compared;
        if (code == other) continue;
        ++differ;
        EXPECT_EQ(std::abs(code - other), 1) << describe(c) << " conversion " << i << ": " << t << " and " << u;
        EXPECT_NEAR(t - std::floor(t), 0.5, kFloat) << describe(c) << " conversion " << i;
      }
      differing += differ;
      std::uint64_t multiplied_differ = 0;
      for (std::size_t i = 0; i < nearest.watched.codes.size(); ++i) {
        multiplied_differ += nearest.watched.codes[i] != truncating.watched.codes[i] ? 1 : 0;
      }
      EXPECT_EQ(multiplied_differ, differ) << describe(c) << ": what is multiplied is what was converted";
      if (differ != 0) continue;
      ++same_outputs;
      EXPECT_EQ(nearest.output.o, truncating.output.o) << describe(c);
    }
  }
  std::printf("%lu codes compared, %lu differ; %lu of 18 runs without any\n", compared, differing, same_outputs);
  EXPECT_LE(differing, compared / 1000);
  EXPECT_GE(same_outputs, 3U);
}

double mean_lse_error(const Fp8Case& c, const Launched& ran) {
  const reference::AttentionResult expected = expected_fp8_attention(c, make_fp8_inputs(c)).value();
  double sum = 0;
  for (std::size_t i = 0; i < expected.lse.size(); ++i) sum += ran.output.lse[i] - expected.lse[i];
  return sum / static_cast<double>(expected.lse.size());
}

TEST(Fp8Rounding, AMismatchIsABiasOfHalfACode) {
  constexpr double kHalfCode = std::numbers::ln2 / 16;
  for (const KernelSpec& spec : lean_variants()) {
    Fp8Case c{.query_length = 64, .key_length = 1024, .spec = spec};
    c.spread = 1.3;
    using enum ByteRounding;
    EXPECT_NEAR(mean_lse_error(c, run(c, kNearestEven, kNearestEven)), 0, 0.005) << describe(c);
    EXPECT_NEAR(mean_lse_error(c, run(c, kTruncate, kTruncate)), 0, 0.005) << describe(c);
    EXPECT_NEAR(mean_lse_error(c, run(c, kNearestEven, kTruncate)), -kHalfCode, 0.008) << describe(c);
    EXPECT_NEAR(mean_lse_error(c, run(c, kTruncate, kNearestEven)), kHalfCode, 0.008) << describe(c);
  }
}

// And the output follows the model of the pair, matched or not.
TEST(Fp8Rounding, EveryPairFollowsItsModel) {
  for (const KernelSpec& spec : lean_variants()) {
    for (const ByteRounding built_for : {ByteRounding::kNearestEven, ByteRounding::kTruncate}) {
      for (const ByteRounding machine : {ByteRounding::kNearestEven, ByteRounding::kTruncate}) {
        Fp8Case c{.query_length = 64, .key_length = 300, .spec = spec};
        const Launched ran = run(c, built_for, machine);
        c.spec.byte_rounding = built_for == ByteRounding::kNearestEven ? schedules::ByteRounding::kNearest
                                                                       : schedules::ByteRounding::kTruncate;
        const auto model = modelled_attention(c, make_fp8_inputs(c), machine);
        const auto figures = fp8_error(c, model.result, ran.output).value();
        EXPECT_LE(figures.relative_rms_percent, 0.35) << describe(c);
      }
    }
  }
}

}  // namespace
}  // namespace zyfa::tests
