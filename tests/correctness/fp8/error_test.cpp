// The size of the error of P alone (fp64 on the dequantised inputs): on Gaussian rows that of its rounding rule, and on
// the sink family of DESIGN.md section 5 small with block exponents and large without.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/harness.h"
#include "tests/reference/eight_bit.h"
#include "tests/reference/probability.h"

namespace zyfa::tests {
namespace {

using schedules::BlockExponents;
using schedules::ElementType;
using schedules::KernelSpec;
using schedules::ProbabilityRule;

SimDevice& device() {
  static const auto device = sim::make_sim_device().value();
  return *device;
}

// Values without a mean: the relative error of O is that of a probability. Scores spread over several binades.
TEST(Fp8Error, OfGaussianRowsIsThatOfTheRule) {
  const double lean = 100 * reference::lean_error(reference::kLeanConstant).rms;
  const double exact = 100 * reference::exact_error().rms;
  double sums[2] = {0, 0};
  std::vector<KernelSpec> all = fp8_variants(128, schedules::MaskKind::kFull);
  std::ranges::copy(fp8_variants(192, schedules::MaskKind::kFull), std::back_inserter(all));
  for (const KernelSpec& spec : all) {
    Fp8Case c{.query_length = 64, .key_length = 1024, .spec = spec, .placement = "fp8_pingpong"};
    c.spread = 1.3;
    const Fp8Inputs in = make_fp8_inputs(c);
    const Fp8Output output = launch_fp8_case(c, in, device()).value();
    const reference::AttentionResult expected = expected_fp8_attention(c, in).value();
    const auto figures = fp8_error(c, expected, output).value();
    double mean = 0;
    for (std::size_t i = 0; i < expected.lse.size(); ++i) {
      mean += (output.lse[i] - expected.lse[i]) / static_cast<double>(expected.lse.size());
    }
    const bool is_lean = spec.probability == ProbabilityRule::kLean;
    const double rule = is_lean ? lean : exact;
    // A key that dominates its row has a code of its own, at the reference, and hides its error in the sum.
    EXPECT_LE(figures.relative_rms_percent, 1.1 * rule) << describe(c);
    EXPECT_GE(figures.relative_rms_percent, 0.5 * rule) << describe(c);
    EXPECT_LE(std::abs(mean), 0.005) << describe(c);
    EXPECT_LE(figures.lse_max_abs, 0.09) << describe(c);
    sums[is_lean ? 0 : 1] += figures.relative_rms_percent / (is_lean ? 12 : 8);
    std::printf("%-60s O %.3f%% (rule %.3f%%), LSE mean %+.5f largest %.4f\n", describe(c).substr(0, 60).c_str(),
                figures.relative_rms_percent, rule, mean, figures.lse_max_abs);
  }
  std::printf("lean %.3f%%, exact %.3f%%: ratio %.3f\n", sums[0], sums[1], sums[0] / sums[1]);
}

// As activations are: values with a mean, which normalisation by the rounded sum keeps.
TEST(Fp8Error, OfValuesWithAMeanIsBelowOnePercent) {
  for (const KernelSpec& spec : fp8_variants(128, schedules::MaskKind::kFull)) {
    Fp8Case c{.query_length = 64, .key_length = 1024, .spec = spec, .placement = "fp8_pingpong"};
    c.spread = 1.3;
    c.change = [](Fp8Inputs& in) {
      std::mt19937 random(4);
      std::normal_distribution<double> normal(1.0, 1.0);
      for (std::uint8_t& code : in.v) code = reference::double_to_e4m3(normal(random));
    };
    const auto outcome = run_fp8_case(c, device());
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    EXPECT_LE(outcome->figures.relative_rms_percent, 0.8) << describe(c);
    std::printf("%-60s O %.3f%%\n", describe(c).substr(0, 60).c_str(), outcome->figures.relative_rms_percent);
  }
}

struct Sink {
  int binades;
  std::int64_t keys;
  int spread;  // tail scores lie within +- this many 128ths of a binade
};

// Raw scores are 128ths of a binade. The sink's value is the smallest number, the tail's have mean 1.
Fp8Case sink_case(const KernelSpec& spec, const Sink& sink) {
  Fp8Case c{.query_length = 4, .key_length = sink.keys, .spec = spec, .placement = "fp8_naive"};
  c.descales = Descales::kNone;
  c.softmax_scale = std::numbers::ln2_v<float> / 128;
  c.change = [sink](Fp8Inputs& in) {
    std::mt19937 random(11);
    std::normal_distribution<double> normal(1.0, 1.0);
    for (std::uint8_t& code : in.v) code = reference::double_to_e4m3(normal(random));
    std::fill_n(in.v_row(0, 0, 0), 128, std::uint8_t{1});
    std::ranges::fill(in.q, std::uint8_t{0});
    std::ranges::fill(in.k, std::uint8_t{0});
    for (std::int64_t i = 0; i < in.query_length; ++i) {
      in.q_row(0, i, 0)[0] = reference::double_to_e4m3(128);
      in.q_row(0, i, 0)[1] = reference::double_to_e4m3(8);
      in.q_row(0, i, 0)[2] = reference::double_to_e4m3(1);
      in.q_row(0, i, 0)[3] = reference::double_to_e4m3(128);  // 25 binades have no code: 16 + 9
    }
    in.k_row(0, 0, 0)[0] = reference::double_to_e4m3(16);
    in.k_row(0, 0, 0)[3] = reference::double_to_e4m3(sink.binades - 16);
    for (std::int64_t j = 1; j < in.key_length && sink.spread > 0; ++j) {
      const int x = static_cast<int>(random() % static_cast<unsigned>(2 * sink.spread)) - sink.spread;
      const int fine = ((x % 8) + 8) % 8;
      in.k_row(0, j, 0)[1] = reference::double_to_e4m3((x - fine) / 8);
      in.k_row(0, j, 0)[2] = reference::double_to_e4m3(fine);
    }
  };
  return c;
}

// With block exponents what is lost is the 63 keys that share the sink's block; without, e4m3 ends 18 binades below.
TEST(Fp8Error, OfATailFarBelowASink) {
  std::vector<KernelSpec> all = fp8_variants(128, schedules::MaskKind::kFull);
  std::erase_if(all, [](const KernelSpec& spec) { return spec.element != ElementType::kFp8E4M3; });
  for (const KernelSpec& spec : all) {
    for (const Sink& sink : {Sink{18, 4096, 0}, Sink{19, 4096, 64}, Sink{21, 8192, 64}, Sink{25, 32768, 0}}) {
      const Fp8Case c = sink_case(spec, sink);
      const auto outcome = run_fp8_case(c, device());
      ASSERT_TRUE(outcome) << to_string(outcome.error());
      const double error = outcome->figures.relative_rms_percent;
      std::printf("sink %d binades above %ld keys +-%d/128: %-50s %.3f%%\n", sink.binades, sink.keys, sink.spread,
                  describe(c).substr(0, 50).c_str(), error);
      if (spec.block_exponents == BlockExponents::kUsed) {
        EXPECT_LE(error, 2.0) << describe(c);
      } else {
        EXPECT_GE(error, 20.0) << describe(c);
      }
      EXPECT_LE(outcome->figures.lse_max_abs, 0.09) << describe(c);
    }
  }
}

}  // namespace
}  // namespace zyfa::tests
