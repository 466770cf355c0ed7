// Rows of all kinds, for every variant and head dim, against fp64: a sink, equal scores, huge scores, one live key,
// none, -0 and subnormal codes, every byte code, and scales and descales of every size and sign.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/harness.h"
#include "tests/reference/eight_bit.h"

namespace zyfa::tests {
namespace {

using schedules::BlockExponents;
using schedules::ElementType;
using schedules::KernelSpec;
using schedules::MaskKind;
using schedules::ScoreForm;

// Makes a raw score a number of binades; the score scale is a power of two in every unit, as folded kernels need.
constexpr float kBinade = std::numbers::ln2_v<float>;
// Rounding to BF16 alone, where all probabilities round alike; a Lean code is off by 8% at most.
constexpr double kBf16RmsPercent = 0.3, kLeanRmsPercent = 5.0;
constexpr double kMaxLse = 0.09;

std::uint8_t code_of(double value, ElementType element) {
  return element == ElementType::kInt8 ? static_cast<std::uint8_t>(reference::double_to_int8(value))
                                       : reference::double_to_e4m3(value);
}

struct Ran {
  Fp8Inputs in;
  Fp8Output output;
  reference::AttentionResult expected;
  reference::ErrorFigures figures;
};

class Fp8Rows : public testing::TestWithParam<std::tuple<std::uint32_t, MaskKind>> {
 protected:
  static std::vector<KernelSpec> variants() { return fp8_variants(std::get<0>(GetParam()), std::get<1>(GetParam())); }
  static std::vector<KernelSpec> e4m3_variants() {
    std::vector<KernelSpec> all = variants();
    std::erase_if(all, [](const KernelSpec& spec) { return spec.element != ElementType::kFp8E4M3; });
    return all;
  }
  static bool causal() { return std::get<1>(GetParam()) == MaskKind::kCausal; }

  Ran run(Fp8Case c) {
    if (c.placement.empty()) c.placement = "fp8_pingpong";
    Ran ran{.in = make_fp8_inputs(c), .output = {}, .expected = {}, .figures = {}};
    Expected<Fp8Output> output = launch_fp8_case(c, ran.in, *device_);
    EXPECT_TRUE(output) << describe(c) << "\n" << (output ? "" : to_string(output.error()));
    ran.expected = expected_fp8_attention(c, ran.in).value();
    if (!output) return ran;
    ran.output = std::move(*output);
    ran.figures = fp8_error(c, ran.expected, ran.output).value();
    EXPECT_TRUE(ran.output.outside_untouched) << describe(c);
    return ran;
  }

  Ran expect_right(const Fp8Case& c, double rms_percent, double lse) {
    Ran ran = run(c);
    EXPECT_EQ(ran.figures.mismatched_nan, 0) << describe(c);
    EXPECT_EQ(ran.figures.nonzero_empty, 0) << describe(c);
    EXPECT_LE(ran.figures.relative_rms_percent, rms_percent) << describe(c);
    EXPECT_LE(ran.figures.lse_max_abs, lse) << describe(c);
    return ran;
  }

  // Raw scores are binades: no descales.
  static Fp8Case binades(const KernelSpec& spec, std::int64_t queries, std::int64_t keys) {
    Fp8Case c{.query_length = queries, .key_length = keys, .spec = spec};
    c.descales = Descales::kNone;
    c.softmax_scale = kBinade;
    return c;
  }

  std::shared_ptr<SimDevice> device_ = sim::make_sim_device({.checks = SimChecks::kStrict}).value();
};

void clear(std::vector<std::uint8_t>& codes) { std::ranges::fill(codes, std::uint8_t{0}); }

// Query 1 in dim 0, and small integers in dims 1 to 8 of q and k, so that the rest scores within some binades.
void small_scores(Fp8Inputs& in, ElementType element) {
  std::mt19937 random(3);
  clear(in.q), clear(in.k);
  const auto draw = [&] { return code_of(static_cast<double>(random() % 3) - 1, element); };
  for (std::int64_t i = 0; i < in.query_length; ++i) {
    in.q_row(0, i, 0)[0] = code_of(1, element);
    std::generate_n(in.q_row(0, i, 0) + 1, 8, draw);
  }
  for (std::int64_t j = 0; j < in.key_length; ++j) std::generate_n(in.k_row(0, j, 0) + 1, 8, draw);
}

// The sink takes every weight: O is its value.
TEST_P(Fp8Rows, SinkThirtyBinadesAbove) {
  for (const KernelSpec& spec : variants()) {
    for (const std::int64_t sink : {0, 129}) {
      Fp8Case c = binades(spec, 70, 200);
      c.change = [&](Fp8Inputs& in) {
        small_scores(in, spec.element);
        in.k_row(0, sink, 0)[0] = code_of(30, spec.element);
      };
      expect_right(c, kLeanRmsPercent, kMaxLse);
    }
  }
}

// Its value is zero and so are those of its block: what is left of the other blocks, 30 binades below, must be right.
TEST_P(Fp8Rows, TailBelowASinkOfValueZero) {
  for (const KernelSpec& spec : variants()) {
    if (spec.block_exponents == BlockExponents::kNone) continue;
    Fp8Case c = binades(spec, 70, 200);
    c.change = [&](Fp8Inputs& in) {
      small_scores(in, spec.element);
      in.k_row(0, 0, 0)[0] = code_of(30, spec.element);
      for (std::int64_t j = 0; j < 64; ++j) std::fill_n(in.v_row(0, j, 0), 128, std::uint8_t{0});
    };
    const Ran ran = expect_right(c, kLeanRmsPercent, kMaxLse);
    EXPECT_GT(ran.figures.max_abs, 0) << "the tail gives O, and its probabilities are rounded";
  }
}

TEST_P(Fp8Rows, EqualScores) {
  for (const KernelSpec& spec : variants()) {
    Fp8Case c = binades(spec, 70, 333);
    c.change = [&](Fp8Inputs& in) {
      clear(in.q), clear(in.k);
      for (std::int64_t i = 0; i < in.query_length; ++i) in.q_row(0, i, 0)[3] = code_of(i % 3 - 1.0, spec.element);
      for (std::int64_t j = 0; j < in.key_length; ++j) in.k_row(0, j, 0)[3] = code_of(7, spec.element);
    };
    expect_right(c, kBf16RmsPercent, 1e-5);
  }
}

// Scores x within +-16,000 binades and raw scores within +-65,000. Float32 leaves 2^-10 of them in LSE (1/8-binade
// units about 2^17), int8 1/2 of a unit (docs/numerics.md).
TEST_P(Fp8Rows, ScoresOverTenThousand) {
  for (const KernelSpec& spec : variants()) {
    Fp8Case c = binades(spec, 70, 300);
    c.softmax_scale = kBinade / 4;
    c.change = [&](Fp8Inputs& in) {
      std::mt19937 random(5);
      clear(in.q), clear(in.k);
      for (std::int64_t i = 0; i < in.query_length; ++i) {
        for (int d = 0; d < 4; ++d) in.q_row(0, i, 0)[d] = code_of(i % 2 == 0 ? 127 : -127, spec.element);
      }
      for (std::int64_t j = 0; j < in.key_length; ++j) {
        for (int d = 0; d < 4; ++d) {
          in.k_row(0, j, 0)[d] = code_of(static_cast<double>(random() % 255) - 127, spec.element);
        }
      }
      in.k_row(0, 0, 0)[1] = code_of(127, spec.element);
    };
    const Ran ran = expect_right(c, kLeanRmsPercent, kMaxLse);
    EXPECT_GT(std::ranges::max(ran.expected.lse), 5000 * std::numbers::ln2) << "the scores are not large";
  }
}

// O is the value, to the bit: weights sum to one.
TEST_P(Fp8Rows, OneLiveKey) {
  for (const KernelSpec& spec : variants()) {
    for (const std::int64_t queries : {1, 40}) {
      Fp8Case c = binades(spec, queries, causal() ? queries : 1);
      c.softmax_scale = kBinade / 8;
      const Ran ran = run(c);
      ASSERT_EQ(ran.output.o.size(), static_cast<std::size_t>(queries * 128));
      for (int d = 0; d < 128; ++d) {
        EXPECT_EQ(reference::bf16_to_double(ran.output.o[static_cast<std::size_t>(d)]), ran.expected.o_row(0, 0, 0)[d])
            << describe(c);
      }
      EXPECT_NEAR(ran.output.lse[0], ran.expected.lse[0], 1e-4 + 1e-6 * std::abs(ran.expected.lse[0]));
    }
  }
}

// No key at all; or fewer keys than queries under the causal mask, with NaN and infinity in what the row does not see.
TEST_P(Fp8Rows, NoLiveKey) {
  for (const KernelSpec& spec : variants()) {
    for (const std::int64_t keys : {0, 3}) {
      if (keys != 0 && !causal()) continue;
      Fp8Case c = binades(spec, 70, keys);
      c.change = [&](Fp8Inputs& in) {
        for (std::int64_t j = 0; j < keys; ++j) std::fill_n(in.v_row(0, j, 0), 128, std::uint8_t{0x7f});
      };
      const Ran ran = run(c);
      for (std::int64_t i = 0; i < 70 - keys; ++i) {
        const auto o = ran.output.o.begin() + i * 128;
        ASSERT_TRUE(std::all_of(o, o + 128, [](std::uint16_t x) { return x == 0; })) << describe(c) << " row " << i;
        ASSERT_EQ(ran.output.lse[static_cast<std::size_t>(i)], -std::numeric_limits<float>::infinity());
      }
      for (std::size_t i = static_cast<std::size_t>(70 - keys); i < 70; ++i) {
        EXPECT_TRUE(std::isfinite(ran.output.lse[i]));
        EXPECT_TRUE(std::isnan(reference::bf16_to_double(ran.output.o[i * 128])));
      }
    }
  }
}

// +-0 and the subnormals of e4m3 through all three operands (int8: V), the scale such that they matter.
TEST_P(Fp8Rows, ZerosAndSubnormals) {
  for (const KernelSpec& spec : variants()) {
    Fp8Case c = binades(spec, 70, 150);
    const bool int8 = spec.element == ElementType::kInt8;
    c.softmax_scale = int8 ? kBinade / 64 : kBinade * 1024;
    c.change = [&](Fp8Inputs& in) {
      std::mt19937 random(9);
      const auto draw = [&] { return static_cast<std::uint8_t>(random() % 8 + 128 * (random() % 2)); };
      std::ranges::generate(in.v, draw);
      if (int8) return;
      std::ranges::generate(in.q, draw);
      std::ranges::generate(in.k, draw);
    };
    expect_right(c, kLeanRmsPercent, kMaxLse);
  }
}

// All 254 numbers (int8: 256) of q against those of k, all 254 of v; q's and k's NaN codes are in the NaN test.
TEST_P(Fp8Rows, EveryByteCode) {
  for (const KernelSpec& spec : variants()) {
    const bool int8 = spec.element == ElementType::kInt8;
    for (const float sign : {1.0F, -1.0F}) {
      Fp8Case c = binades(spec, 256, 256);
      c.softmax_scale = sign * kBinade / (int8 ? 256 : 1024);
      c.change = [&](Fp8Inputs& in) {
        clear(in.q), clear(in.k);
        const auto number = [&](std::int64_t n) {
          const auto code = static_cast<std::uint8_t>(n);
          // Negating -128 is not possible in int8; the quantiser never forms it (kernels with a negative scale need
          // so).
          if (int8) return code == 0x80 && sign < 0 ? std::uint8_t{0x81} : code;
          return (code & 0x7f) == 0x7f ? std::uint8_t{0} : code;
        };
        for (std::int64_t i = 0; i < 256; ++i) {
          in.q_row(0, i, 0)[i % 100] = number(i);
          in.q_row(0, i, 0)[100] = number(i);
          std::fill_n(in.k_row(0, i, 0), 101, number(i * 7 + 3));
          for (std::int64_t d = 0; d < 128; ++d) {
            const auto code = static_cast<std::uint8_t>(i + 2 * d);
            in.v_row(0, i, 0)[d] = (code & 0x7f) == 0x7f ? std::uint8_t{0} : code;
          }
        }
      };
      expect_right(c, kLeanRmsPercent, kMaxLse);
    }
  }
}

TEST_P(Fp8Rows, ScalesOfEverySizeAndSign) {
  for (const KernelSpec& spec : variants()) {
    for (const float scale : {-0.0883883F, 1e-30F, -1e-6F, 0.7F, 0.0F}) {
      Fp8Case c{.query_length = 70, .key_length = 150, .heads = 2, .key_heads = 1, .spec = spec};
      c.softmax_scale = scale;
      c.spread = 1.5;
      if (scale == 0) c.descales = Descales::kNone;
      const Ran ran =
          expect_right(c, scale == 0 || std::abs(scale) < 1e-5F ? kBf16RmsPercent : kLeanRmsPercent, kMaxLse);
      EXPECT_TRUE(std::isfinite(ran.output.lse.back()));
    }
  }
}

// Powers of two, so that folded kernels keep their promise. Products of huge and tiny ones are ordinary scales.
TEST_P(Fp8Rows, DescalesOfEverySizeAndSign) {
  struct Given {
    float q, k, v;
  };
  const float huge = std::ldexp(1.0F, 66), tiny = std::ldexp(1.0F, -66);
  for (const KernelSpec& spec : variants()) {
    for (const Given& given :
         {Given{0, 1, 1}, Given{1, 0, 1}, Given{1, 1, 0}, Given{0, 0, 0}, Given{-1, 1, 1}, Given{1, -2, -1},
          Given{-1, -1, 0.37F}, Given{huge, tiny, huge}, Given{tiny, huge, tiny}, Given{tiny, tiny, -huge}}) {
      Fp8Case c = binades(spec, 40, 150);
      c.spread = 1.5;
      c.softmax_scale = kBinade / (spec.element == ElementType::kInt8 ? 8192 : 32);
      c.change = [&](Fp8Inputs& in) { in.q_descale = {given.q}, in.k_descale = {given.k}, in.v_descale = {given.v}; };
      SCOPED_TRACE(testing::Message() << "descales " << given.q << " " << given.k << " " << given.v);
      const Ran ran = expect_right(c, kLeanRmsPercent, kMaxLse);
      if (given.v == 0) {
        EXPECT_TRUE(std::ranges::all_of(ran.output.o, [](std::uint16_t x) { return (x & 0x7fff) == 0; }));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Fp8Rows,
                         testing::Combine(testing::Values(128U, 192U),
                                          testing::Values(MaskKind::kFull, MaskKind::kCausal)),
                         [](const auto& info) {
                           return "d" + std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == MaskKind::kCausal ? "_causal" : "_full");
                         });

}  // namespace
}  // namespace zyfa::tests
