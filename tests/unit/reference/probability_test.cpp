// Rules of rounded probabilities: the error bounds that docs/numerics.md derives, and attention worked out by hand.
#include "tests/reference/probability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

namespace zyfa::reference {
namespace {

using Rounding = ProbabilityRule::Rounding;
using Scaling = ProbabilityRule::Scaling;
using Doubles = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The error of every Lean code from 8 to 126 against the 2^x at the two ends of its interval, written out here.
double largest_normal_error(double constant) {
  double largest = 0;
  for (int code = 8; code <= 126; ++code) {
    const double value = std::ldexp(1.0 + code % 8 / 8.0, code / 8 - 7);
    for (const double edge : {-0.5, 0.5}) {
      largest = std::max(largest, std::abs(value / std::exp2((code + edge - constant) / 8) - 1));
    }
  }
  return largest;
}

TEST(LeanRule, LargestErrorOverTheNormalRange) {
  EXPECT_LE(largest_normal_error(kLeanConstant), 0.080);
  EXPECT_GT(largest_normal_error(kLeanConstant), 0.079);
  EXPECT_LE(largest_normal_error(kLeanMinimaxConstant), 0.073);
  EXPECT_GT(largest_normal_error(kLeanMinimaxConstant), 0.072);
  // No constant does better than the minimax one.
  for (double constant = 55.0; constant < 56.0; constant += 0.001) {
    EXPECT_GE(largest_normal_error(constant), largest_normal_error(kLeanMinimaxConstant) - 2e-4) << constant;
  }
  for (const double constant : {kLeanConstant, kLeanMinimaxConstant, 55.5, 55.66}) {
    const LeanError error = lean_error(constant);
    EXPECT_NEAR(std::max(error.largest, -error.least), largest_normal_error(constant), 1e-4);
    double by_code = 0;
    for (int code = 8; code <= 126; ++code) {
      by_code = std::max(by_code, lean_code_error(static_cast<std::uint8_t>(code), constant));
    }
    EXPECT_NEAR(by_code, largest_normal_error(constant), 1e-12);
  }
}

// The mean of value / 2^x over a binade in closed form: code n holds for a width of 1/8 in x, over which the integral
// of 2^-x is 2^-x0 (2^(1/16) - 2^(-1/16)) / ln 2 around its middle x0 = (n - c) / 8.
double mean_error(double constant) {
  double sum = 0;
  for (int code = 56; code < 64; ++code) {
    const double middle = (code - constant) / 8;
    sum +=
        (1.0 + code % 8 / 8.0) * std::exp2(-middle) * (std::exp2(1.0 / 16) - std::exp2(-1.0 / 16)) / std::numbers::ln2;
  }
  return sum - 1;
}

TEST(LeanRule, TheConstantHasNoMeanError) {
  EXPECT_LT(std::abs(mean_error(kLeanConstant)), 5e-5);
  EXPECT_GT(mean_error(kLeanMinimaxConstant), 0.007);
  EXPECT_LT(mean_error(55.536), -5e-4);
  for (const double constant : {kLeanConstant, kLeanMinimaxConstant, 55.536, 55.66}) {
    EXPECT_NEAR(lean_error(constant).mean, mean_error(constant), 1e-5);
  }
}

TEST(LeanRule, CodesBelowEightLoseAccuracy) {
  // Code 1 stands for 2^-9 but is given for x up to (1.5 - c) / 8.
  EXPECT_NEAR(lean_code_error(1, kLeanConstant), 1 - std::exp2(-9 - (1.5 - kLeanConstant) / 8), 1e-12);
  EXPECT_NEAR(lean_code_error(1, kLeanConstant), 0.79, 0.005);
  for (std::uint8_t code = 1; code < 8; ++code) {
    EXPECT_GT(lean_code_error(code, kLeanConstant), lean_code_error(code + 1, kLeanConstant));
  }
}

TEST(ExactRule, OneSeventeenth) {
  EXPECT_NEAR(exact_error().largest, 1.0 / 17, 1e-4);
  EXPECT_NEAR(exact_error().least, -1.0 / 17, 1e-4);
  EXPECT_LE(std::max(exact_error().largest, -exact_error().least), 1.0 / 17);
}

// One head of dim 1 with scores x (log2 units) for a single query.
struct Row {
  Doubles x, v;
  Mask mask = Mask::kFull;
};

AttentionResult run(const Row& row, const ProbabilityRule& rule) {
  const Doubles q{1.0};
  const auto keys = static_cast<std::int64_t>(row.x.size());
  const DoubleCase problem{dense_double_view(q.data(), 1, 1, 1, 1), dense_double_view(row.x.data(), 1, keys, 1, 1),
                           dense_double_view(row.v.data(), 1, keys, 1, 1), row.mask, std::numbers::ln2};
  const auto results = rounded_attention(problem, std::span(&rule, 1));
  EXPECT_TRUE(results.has_value());
  return results ? results->front() : AttentionResult{};
}

TEST(RoundedAttention, LeanByHand) {
  // Top: t = 8 * 8 + c = 119.543, code 120 = 256. One and a half binades below: 107.543, code 108 = 96; exactly 90.5.
  const AttentionResult result = run({{5.0, 3.5}, {1.0, 3.0}}, {});
  EXPECT_NEAR(result.o[0], (256.0 + 3.0 * 96.0) / 352.0, 1e-12);
  EXPECT_NEAR(result.lse[0], std::log(352.0 / 256.0) + 5.0 * std::numbers::ln2, 1e-12);
  const AttentionResult other = run({{5.0, 3.5}, {1.0, 3.0}}, {.constant = 56.0});  // codes 120 and 108
  EXPECT_NEAR(other.o[0], result.o[0], 1e-12);
}

TEST(RoundedAttention, TruncationAddsAHalfFirst) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> score(-12.0, 0.0);
  Row row;
  for (int i = 0; i < 200; ++i) {
    row.x.push_back(score(random));
    row.v.push_back(score(random));
  }
  EXPECT_EQ(run(row, {}).o, run(row, {.byte_rounding = ByteRounding::kTruncate}).o);
}

TEST(RoundedAttention, ExactAndPeerByHand) {
  // 2^(8 - 1.5) = 90.5 rounds to 88 (step 8, tie at 92).
  const Row row{{5.0, 3.5}, {1.0, 3.0}};
  EXPECT_NEAR(run(row, {.rounding = Rounding::kExact}).o[0], (256.0 + 3.0 * 88.0) / 344.0, 1e-12);
  // 2^-1.5 = 0.3536 rounds to 0.34375; the sum is that of what was not rounded.
  const AttentionResult peer = run(row, kPeerRule);
  EXPECT_NEAR(peer.o[0], (1.0 + 3.0 * 0.34375) / (1.0 + std::exp2(-1.5)), 1e-12);
  EXPECT_NEAR(peer.lse[0], std::log(std::exp2(5.0) + std::exp2(3.5)), 1e-12);
  EXPECT_NEAR(run(row, {.rounding = Rounding::kNone}).lse[0], std::log(std::exp2(5.0) + std::exp2(3.5)), 1e-12);
}

// 64 keys 20 binades above 64 others: block exponents keep the second block, one reference drops it.
TEST(RoundedAttention, BlockExponents) {
  Row row;
  for (int j = 0; j < 128; ++j) {
    row.x.push_back(j < 64 ? 0.0 : -20.0);
    row.v.push_back(j < 64 ? 0.0 : 1.0);
  }
  const double exact = std::exp2(-20.0) / (1 + std::exp2(-20.0));
  for (const Rounding rounding : {Rounding::kLean, Rounding::kExact}) {
    EXPECT_NEAR(run(row, {.rounding = rounding}).o[0] / exact, 1.0, 1e-12);
    EXPECT_EQ(run(row, {.rounding = rounding, .scaling = Scaling::kNone}).o[0], 0.0);
  }
  // A gap of 13 binades is within one reference's range, 8 above 1 and 6 below.
  row.x.assign(64, 0.0);
  row.x.resize(128, -13.0);
  EXPECT_NEAR(run(row, {.scaling = Scaling::kNone}).o[0], std::exp2(-13.0) / (1 + std::exp2(-13.0)), 1e-12);
}

// With exponents of absolute scores the largest probability is rounded like any other.
TEST(RoundedAttention, IntegerReferenceRoundsTheLargest) {
  // Block exponent ceil(5.5 - 5 - 8) = -7: t = 8 * 7.5 + c = 115.543, code 116 = 192 where 2^7.5 = 181.
  const AttentionResult result = run({{5.5}, {1.0}}, {.reference = ProbabilityRule::Reference::kInteger});
  EXPECT_NEAR(result.lse[0], (5 - 7) * std::numbers::ln2 + std::log(192.0), 1e-12);
  EXPECT_NEAR(run({{5.5}, {1.0}}, {}).lse[0], 5.5 * std::numbers::ln2, 1e-12);
}

struct Problem {
  Doubles q, k, v;
  std::vector<std::uint16_t> bits;
  DoubleCase rows;
};

Problem random_problem(std::int64_t batch, std::int64_t sq, std::int64_t sk, std::int64_t heads, std::int64_t key_heads,
                       Mask mask) {
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  Problem p;
  const auto fill = [&](Doubles& data, std::int64_t count) {
    data.resize(static_cast<std::size_t>(count));
    for (double& value : data) {
      value = bf16_to_double(double_to_bf16(normal(random)));
    }
    return data.data();
  };
  p.rows = {dense_double_view(fill(p.q, batch * sq * heads * 8), batch, sq, heads, 8),
            dense_double_view(fill(p.k, batch * sk * key_heads * 8), batch, sk, key_heads, 8),
            dense_double_view(fill(p.v, batch * sk * key_heads * 5), batch, sk, key_heads, 5), mask, 0.7};
  return p;
}

TEST(RoundedAttention, WithoutRoundingIsAttention) {
  for (const Mask mask : {Mask::kFull, Mask::kCausal}) {
    for (const auto& [sq, sk] : {std::pair<std::int64_t, std::int64_t>{70, 150}, {150, 70}, {1, 1}, {33, 64}, {5, 0}}) {
      const Problem p = random_problem(2, sq, sk, 4, 2, mask);
      const ProbabilityRule rules[] = {{.rounding = Rounding::kNone},
                                       {.rounding = Rounding::kNone, .scaling = Scaling::kNone}};
      const auto rounded = rounded_attention(p.rows, rules, {}, nullptr, 2);
      const auto exact = attention(p.rows);
      ASSERT_TRUE(rounded && exact);
      for (const AttentionResult& result : *rounded) {
        for (std::size_t i = 0; i < exact->o.size(); ++i) {
          ASSERT_NEAR(result.o[i], exact->o[i], 1e-12);
        }
        for (std::size_t i = 0; i < exact->lse.size(); ++i) {
          ASSERT_TRUE(result.lse[i] == exact->lse[i] || std::abs(result.lse[i] - exact->lse[i]) < 1e-12);
        }
      }
    }
  }
}

// What a block's probabilities are rounded to bounds the output: it is an average with weights off by at most 8%.
TEST(RoundedAttention, ErrorOfTheOutputIsWithinTheRule) {
  const Problem p = random_problem(1, 64, 300, 2, 1, Mask::kCausal);
  Doubles size(p.v.size());
  std::transform(p.v.begin(), p.v.end(), size.begin(), [](double v) { return std::abs(v); });
  DoubleCase absolute = p.rows;
  absolute.v.data = size.data();
  const ProbabilityRule rules[] = {{}, {.rounding = Rounding::kExact}};
  const auto rounded = rounded_attention(p.rows, rules);
  const auto exact = attention(p.rows), bound = attention(absolute);
  ASSERT_TRUE(rounded && exact && bound);
  for (std::size_t rule = 0; rule < 2; ++rule) {
    const double largest = rule == 0 ? 0.08 : 1.0 / 17;
    double worst = 0;
    for (std::size_t i = 0; i < exact->o.size(); ++i) {
      const double error = std::abs((*rounded)[rule].o[i] - exact->o[i]);
      EXPECT_LE(error, 2 * largest / (1 - largest) * bound->o[i] + 1e-4);
      worst = std::max(worst, error);
    }
    EXPECT_GT(worst, 1e-4);  // something was rounded
    for (std::size_t i = 0; i < exact->lse.size(); ++i) {
      EXPECT_NEAR((*rounded)[rule].lse[i], exact->lse[i], -std::log(1 - largest));
    }
  }
}

TEST(RoundedAttention, NearBlocksComeFromTheUnquantisedInputs) {
  // Two blocks of keys; the rows of doubles hold another v than the bfloat16 inputs, so the output tells the source.
  const Doubles q(128, 0.0), k(128, 0.0), v(128, 1.0);
  const std::vector<std::uint16_t> zero(128, 0), two(128, double_to_bf16(2.0));
  const DoubleCase rows{dense_double_view(q.data(), 1, 128, 1, 1), dense_double_view(k.data(), 1, 128, 1, 1),
                        dense_double_view(v.data(), 1, 128, 1, 1), Mask::kCausal, 1.0};
  const AttentionCase bf16{dense_view(zero.data(), 1, 128, 1, 1), dense_view(zero.data(), 1, 128, 1, 1),
                           dense_view(two.data(), 1, 128, 1, 1), Mask::kCausal, 1.0};
  const ProbabilityRule rule;
  const auto output = [&](NearBlocks near, std::size_t token) {
    const auto results = rounded_attention(rows, std::span(&rule, 1), near, &bf16);
    EXPECT_TRUE(results.has_value());
    return results ? results->front().o[token] : 0.0;
  };
  EXPECT_NEAR(output({}, 127), 1.0, 1e-12);
  EXPECT_NEAR(output({.first = true}, 0), 2.0, 1e-12);
  EXPECT_NEAR(output({.first = true}, 127), 1.5, 1e-12);         // half of the keys
  EXPECT_NEAR(output({.diagonal = 1}, 63), 2.0, 1e-12);          // its only block
  EXPECT_NEAR(output({.diagonal = 1}, 64), 66.0 / 65.0, 1e-12);  // 64 keys of 1, one of 2
  EXPECT_NEAR(output({.diagonal = 2}, 127), 2.0, 1e-12);
  EXPECT_NEAR(output({.diagonal = 1, .queries = 128}, 127), 2.0, 1e-12);  // from the block of query 0 on
  EXPECT_NEAR(output({.diagonal = 1, .queries = 64}, 127), 1.5, 1e-12);
  EXPECT_NEAR(output({.first = true, .even_rest = true}, 127), 2.0, 1e-12);  // one block is left: it is near too
  EXPECT_FALSE(rounded_attention(rows, std::span(&rule, 1), {.first = true}, nullptr).has_value());
}

TEST(RoundedAttention, RowsThatSeeNothingAndNan) {
  Problem p = random_problem(1, 5, 2, 1, 1, Mask::kCausal);
  const ProbabilityRule rule;
  auto results = rounded_attention(p.rows, std::span(&rule, 1));
  ASSERT_TRUE(results);
  EXPECT_EQ(results->front().lse[0], -kInfinity);
  EXPECT_EQ(results->front().o[0], 0.0);
  p.q[4 * 8] = std::nan("");  // the last row
  results = rounded_attention(p.rows, std::span(&rule, 1));
  ASSERT_TRUE(results);
  EXPECT_TRUE(std::isnan(results->front().o[4 * 5]));
  EXPECT_TRUE(std::isnan(results->front().lse[4]));
  EXPECT_FALSE(std::isnan(results->front().o[3 * 5]));
}

TEST(RoundedAttention, ShapesMustFit) {
  Problem p = random_problem(1, 2, 2, 3, 1, Mask::kFull);
  p.rows.k.dim = 7;
  const ProbabilityRule rule;
  const auto results = rounded_attention(p.rows, std::span(&rule, 1));
  ASSERT_FALSE(results);
  EXPECT_THAT(results.error().message, testing::HasSubstr("k [1, 2, 1, 7]"));
}

TEST(RoundedAttention, ThreadsDoNotChangeTheBits) {
  const Problem p = random_problem(2, 150, 150, 4, 2, Mask::kCausal);
  const ProbabilityRule rules[] = {{}, kPeerRule};
  const auto one = rounded_attention(p.rows, rules, {}, nullptr, 1),
             many = rounded_attention(p.rows, rules, {}, nullptr, 4);
  ASSERT_TRUE(one && many);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*one)[i].o, (*many)[i].o);
    EXPECT_EQ((*one)[i].lse, (*many)[i].lse);
  }
}

}  // namespace
}  // namespace zyfa::reference
