// Error figures against values worked out by hand.
#include "tests/reference/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace zyfa::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kInfinityF = std::numeric_limits<float>::infinity();

// One batch, two tokens, one head, two dims.
AttentionResult expected() { return {1, 2, 1, 2, {3.0, 0.0, 0.0, 4.0}, {0.5, 1.0}}; }

ErrorFigures figures(const AttentionResult& reference, const std::vector<double>& o, const std::vector<float>& lse) {
  std::vector<std::uint16_t> bits;
  for (const double value : o) {
    bits.push_back(double_to_bf16(value));
  }
  const Expected<ErrorFigures> result = compare(reference, dense_view(bits.data(), 1, 2, 1, 2), lse);
  EXPECT_TRUE(result.has_value());
  return result.value_or(ErrorFigures{});
}

TEST(Compare, EqualIsZero) {
  const ErrorFigures f = figures(expected(), {3.0, 0.0, 0.0, 4.0}, {0.5F, 1.0F});
  EXPECT_EQ(f.relative_rms_percent, 0.0);
  EXPECT_EQ(f.max_abs, 0.0);
  EXPECT_EQ(f.lse_max_abs, 0.0);
  EXPECT_EQ(f.mismatched_nan, 0);
  EXPECT_EQ(f.nonzero_empty, 0);
}

TEST(Compare, RelativeRmsByHand) {
  // Errors 0, 0, -1, 0: norm of the reference is 5, so 20%.
  const ErrorFigures f = figures(expected(), {3.0, 0.0, -1.0, 4.0}, {0.25F, 1.125F});
  EXPECT_DOUBLE_EQ(f.relative_rms_percent, 20.0);
  EXPECT_EQ(f.max_abs, 1.0);
  EXPECT_EQ(f.worst_token, 1);
  EXPECT_EQ(f.worst_dim, 0);
  EXPECT_EQ(f.lse_max_abs, 0.25);
}

TEST(Compare, NanMismatchIsCountedNotAveraged) {
  AttentionResult reference = expected();
  reference.o[1] = std::nan("");
  ErrorFigures f = figures(reference, {3.0, std::nan(""), 0.0, 4.0}, {});
  EXPECT_EQ(f.mismatched_nan, 0);
  EXPECT_EQ(f.relative_rms_percent, 0.0);
  f = figures(reference, {std::nan(""), 1.0, 0.0, 4.0}, {0.5F, std::nanf("")});
  EXPECT_EQ(f.mismatched_nan, 3);
}

TEST(Compare, EmptyRowsMustBeExactlyZero) {
  AttentionResult reference = expected();
  reference.lse[0] = -kInfinity;
  reference.o[0] = reference.o[1] = 0.0;
  ErrorFigures f = figures(reference, {0.0, -0.0, 0.0, 4.0}, {-kInfinityF, 1.0F});
  EXPECT_EQ(f.nonzero_empty, 0);
  EXPECT_EQ(f.lse_max_abs, 0.0);
  f = figures(reference, {1e-30, std::nan(""), 0.0, 4.0}, {-100.0F, 1.0F});
  EXPECT_EQ(f.nonzero_empty, 2);
  EXPECT_EQ(f.lse_max_abs, kInfinity);
}

TEST(Compare, ErrorOverAZeroReferenceIsInfinite) {
  AttentionResult reference = expected();
  reference.o.assign(4, 0.0);
  EXPECT_EQ(figures(reference, {0.0, 0.0, 1.0, 0.0}, {}).relative_rms_percent, kInfinity);
  EXPECT_EQ(figures(reference, {0.0, 0.0, 0.0, 0.0}, {}).relative_rms_percent, 0.0);
}

TEST(Compare, ShapesMustAgree) {
  const std::vector<std::uint16_t> bits(8, 0);
  EXPECT_FALSE(compare(expected(), dense_view(bits.data(), 1, 2, 2, 2), {}).has_value());
  const std::vector<float> lse(3, 0.0F);
  EXPECT_FALSE(compare(expected(), dense_view(bits.data(), 1, 2, 1, 2), lse).has_value());
}

// Two heads of two tokens, dim 1; batches add to one figure.
AttentionResult two_heads(const std::vector<double>& o, const std::vector<double>& lse) { return {1, 2, 2, 1, o, lse}; }

TEST(CompareByHead, RmsByHand) {
  // Head 0 holds elements 0 and 2: error 1 of norm 5. Head 1: errors 0.
  const AttentionResult reference = two_heads({3, 7, 4, 8}, {0, 0, 0, 0});
  EXPECT_EQ(relative_rms_by_head(reference, two_heads({3, 7, 5, 8}, {})), (std::vector<double>{20.0, 0.0}));
  const std::vector<double> odd = relative_rms_by_head(two_heads({0, 1, 0, 1}, {}), two_heads({1, 1, 0, NAN}, {}));
  EXPECT_EQ(odd[0], kInfinity);
  EXPECT_TRUE(std::isnan(odd[1]));
  const AttentionResult batches{2, 1, 1, 1, {3, 4}, {}};
  EXPECT_EQ(relative_rms_by_head(batches, {2, 1, 1, 1, {3, 3}, {}}), (std::vector<double>{20.0}));
}

TEST(CompareByHead, LseByHand) {
  const AttentionResult reference = two_heads({}, {1.0, 2.0, -kInfinity, 4.0});
  const LseErrors errors = lse_errors(reference, two_heads({}, {1.5, 1.25, -kInfinity, 4.0}));
  EXPECT_DOUBLE_EQ(errors.mean, -0.25 / 3);
  EXPECT_DOUBLE_EQ(errors.mean_abs, 1.25 / 3);
  EXPECT_EQ(errors.max_abs, 0.75);
  EXPECT_EQ(lse_errors(reference, two_heads({}, {1.0, 2.0, 3.0, 4.0})).max_abs, kInfinity);
  EXPECT_TRUE(std::isnan(lse_errors(reference, two_heads({}, {NAN, 2.0, -kInfinity, 4.0})).max_abs));
  EXPECT_EQ(lse_errors(two_heads({}, {}), two_heads({}, {})).mean, 0.0);
}

TEST(CompareByHead, BitsToResult) {
  const std::vector<std::uint16_t> bits{double_to_bf16(1.5), double_to_bf16(-2.0)};
  const std::vector<float> lse{0.25F};
  const AttentionResult result = to_result(dense_view(bits.data(), 1, 1, 1, 2), lse);
  EXPECT_EQ(result.o, (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ(result.lse, (std::vector<double>{0.25}));
}

}  // namespace
}  // namespace zyfa::reference
