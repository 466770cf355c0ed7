// The host quantiser: the rotation against its matrix, scales by hand, the folded power of two, and what is not a
// number.
#include "tests/reference/quantise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace zyfa::reference {
namespace {

using testing::Each;
using Bits = std::vector<std::uint16_t>;

constexpr std::uint16_t kNan = 0x7fc0, kInfinity = 0x7f80;

// (-1)^popcount(i & j) / sqrt(n) within the piece of falling powers of two that holds dimension i.
double entry(std::size_t dim, std::size_t i, std::size_t j) {
  std::size_t first = 0;
  for (std::size_t size = std::bit_floor(dim); first + size <= i; size = std::bit_floor(dim - first)) {
    first += size;
  }
  const std::size_t size = std::bit_floor(dim - first);
  if (j < first || j >= first + size) {
    return 0.0;
  }
  const int sign = std::popcount((i - first) & (j - first)) % 2 == 0 ? 1 : -1;
  return sign / std::sqrt(static_cast<double>(size));
}

TEST(Rotate, IsTheMatrixOfItsDefinition) {
  for (const std::size_t dim : {1U, 2U, 3U, 64U, 128U, 192U}) {
    for (std::size_t j = 0; j < dim; ++j) {
      std::vector<double> unit(dim);
      unit[j] = 1.0;
      rotate(unit);
      for (std::size_t i = 0; i < dim; ++i) {
        EXPECT_NEAR(unit[i], entry(dim, i, j), 1e-15) << dim << " " << i << " " << j;
      }
    }
  }
}

TEST(Rotate, KeepsProductsAndIsItsOwnInverse) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const std::size_t dim : {128U, 192U}) {
    std::vector<double> a(dim), b(dim);
    double before = 0, after = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      a[i] = normal(random), b[i] = normal(random);
      before += a[i] * b[i];
    }
    const std::vector<double> original = a;
    rotate(a), rotate(b);
    for (std::size_t i = 0; i < dim; ++i) {
      after += a[i] * b[i];
    }
    EXPECT_NEAR(before, after, 1e-12);
    rotate(a);
    for (std::size_t i = 0; i < dim; ++i) {
      EXPECT_NEAR(a[i], original[i], 1e-13);
    }
  }
}

struct Inputs {
  Bits q, k, v;
  AttentionCase problem;
};

Inputs random_inputs(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t key_heads,
                     std::int64_t dim, double scale = 0.1) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  Inputs in;
  const auto fill = [&](Bits& bits, std::int64_t count, double spread) {
    for (std::int64_t i = 0; i < count * dim; ++i) {
      // Heads differ in size, so that a scale of the wrong head shows.
      bits.push_back(double_to_bf16(normal(random) * spread * static_cast<double>(1 + i / dim % count)));
    }
    return dense_view(bits.data(), batch, tokens, count / (batch * tokens), dim);
  };
  in.problem.q = fill(in.q, batch * tokens * heads, 1.0);
  in.problem.k = fill(in.k, batch * tokens * key_heads, 2.0);
  in.problem.v = fill(in.v, batch * tokens * key_heads, 0.5);
  in.problem.softmax_scale = scale;
  return in;
}

double largest(const Bf16View& view, std::int64_t b, std::int64_t first_head, std::int64_t heads) {
  double result = 0;
  for (std::int64_t t = 0; t < view.tokens; ++t) {
    for (std::int64_t h = first_head; h < first_head + heads; ++h) {
      for (std::int64_t d = 0; d < view.dim; ++d) {
        result = std::max(result, std::abs(bf16_to_double(view.row(b, t, h)[d])));
      }
    }
  }
  return result;
}

TEST(Quantise, ScalesAreOfTheKeyHead) {
  const Inputs in = random_inputs(2, 5, 6, 2, 8);
  const QuantisedInputs codes = quantise(in.problem, {.rotation = Rotation::kNone});
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 2; ++h) {
      const auto i = static_cast<std::size_t>(b * 2 + h);
      EXPECT_EQ(codes.q.descales[i], static_cast<float>(largest(in.problem.q, b, h * 3, 3) / 448.0));
      EXPECT_EQ(codes.k.descales[i], static_cast<float>(largest(in.problem.k, b, h, 1) / 448.0));
      EXPECT_EQ(codes.v.descales[i], static_cast<float>(largest(in.problem.v, b, h, 1) / 448.0));
    }
  }
  const QuantisedInputs integers = quantise(in.problem, {.rotation = Rotation::kNone, .scores = CodeType::kInt8});
  EXPECT_EQ(integers.k.descales[3], static_cast<float>(largest(in.problem.k, 1, 1, 1) / 127.0));
  EXPECT_EQ(integers.v.bytes, codes.v.bytes);  // v stays E4M3
  const QuantisedInputs tensor = quantise(in.problem, {.rotation = Rotation::kNone, .scope = ScaleScope::kTensor});
  const double all = std::max(largest(in.problem.k, 0, 0, 2), largest(in.problem.k, 1, 0, 2));
  EXPECT_THAT(tensor.k.descales, Each(static_cast<float>(all / 448.0)));
}

// Half a step of the format: 1/16 of the value in E4M3's normal range and 2^-10 of the scale below, 1/2 of int8's
// scale.
TEST(Quantise, DequantisedValuesAreWithinHalfAStep) {
  for (const std::int64_t dim : {128, 192}) {
    for (const CodeType type : {CodeType::kE4m3, CodeType::kInt8}) {
      const Inputs in = random_inputs(1, 9, 2, 1, dim);
      const QuantisedInputs codes = quantise(in.problem, {.scores = type});
      const std::vector<double> values = dequantise(codes.q);
      for (std::int64_t row = 0; row < 18; ++row) {
        std::vector<double> exact;
        for (std::int64_t d = 0; d < dim; ++d) {
          exact.push_back(bf16_to_double(in.q[static_cast<std::size_t>(row * dim + d)]));
        }
        rotate(exact);
        for (std::size_t d = 0; d < exact.size(); ++d) {
          const double scale = codes.q.descales[0];
          const double step =
              type == CodeType::kInt8 ? scale / 2 : std::max(std::abs(exact[d]) / 16, std::ldexp(scale, -10));
          EXPECT_LE(std::abs(values[static_cast<std::size_t>(row * dim) + d] - exact[d]), step * (1 + 1e-6));
        }
      }
    }
  }
}

TEST(Quantise, FoldedScaleMakesAPowerOfTwoAndIsTheNextLarger) {
  for (const double scale : {0.08838834764831845, -0.3, 1.0, 0.0}) {
    const Inputs in = random_inputs(2, 4, 4, 2, 16, scale);
    const QuantisedInputs plain = quantise(in.problem, {}), folded = quantise(in.problem, {.form = ScoreForm::kFolded});
    EXPECT_EQ(folded.k.bytes, plain.k.bytes);
    for (std::size_t i = 0; i < 4; ++i) {
      const double used = scale == 0.0 ? 1.0 : std::abs(scale);
      const double factor = 8 * 1.4426950408889634 * used * folded.q.descales[i] * folded.k.descales[i];
      EXPECT_NEAR(std::log2(factor), std::round(std::log2(factor)), 3e-7);
      EXPECT_GE(folded.q.descales[i], plain.q.descales[i] * (1 - 1e-6));
      EXPECT_LT(folded.q.descales[i], plain.q.descales[i] * 2);
    }
  }
}

TEST(Quantise, ZeroHeadsAndNoTokensHaveScaleOne) {
  Inputs in = random_inputs(1, 3, 2, 2, 4, 1.0);
  for (Bits* bits : {&in.q, &in.k, &in.v}) {
    std::fill(bits->begin(), bits->end(), 0);
  }
  const QuantisedInputs zero = quantise(in.problem, {});
  for (const Codes* codes : {&zero.q, &zero.k, &zero.v}) {
    EXPECT_THAT(codes->descales, Each(1.0F));
    EXPECT_THAT(codes->bytes, Each(0));
  }
  // 8 log2(e) = 11.54, so the nearest power of two above is 16.
  const QuantisedInputs folded = quantise(in.problem, {.form = ScoreForm::kFolded});
  EXPECT_THAT(folded.q.descales, Each(static_cast<float>(16 / (8 * 1.4426950408889634))));
  in.problem.q.tokens = in.problem.k.tokens = in.problem.v.tokens = 0;
  const QuantisedInputs none = quantise(in.problem, {});
  EXPECT_THAT(none.k.descales, testing::ElementsAre(1.0F, 1.0F));
  EXPECT_TRUE(none.k.bytes.empty());
}

TEST(Quantise, NotANumber) {
  for (const std::uint16_t poison : {kNan, kInfinity}) {
    Inputs in = random_inputs(1, 3, 2, 2, 4);
    in.k[5] = poison;  // token 0, head 1
    const QuantisedInputs plain = quantise(in.problem, {.rotation = Rotation::kNone});
    EXPECT_EQ(plain.k.bytes[5] & 0x7f, 0x7f);
    EXPECT_TRUE(std::isfinite(plain.k.descales[1]));
    const std::vector<double> values = dequantise(plain.k);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::isnan(values[i]), i == 5) << i;
    }
    const QuantisedInputs integers = quantise(in.problem, {.rotation = Rotation::kNone, .scores = CodeType::kInt8});
    EXPECT_FALSE(std::isnan(integers.k.descales[0]));
    EXPECT_TRUE(std::isnan(integers.k.descales[1]));
    // Rotated, the poison reaches its whole row and no other.
    const std::vector<double> rotated = dequantise(quantise(in.problem, {}).k);
    for (std::size_t i = 0; i < rotated.size(); ++i) {
      EXPECT_EQ(std::isnan(rotated[i]), i >= 4 && i < 8) << i;
    }
  }
}

TEST(Quantise, SmoothingTakesTheMeanKeyOfAHead) {
  // One head of dim 2: keys (3, 1) and (5, 1), mean (4, 1).
  Inputs in;
  for (const double value : {3.0, 1.0, 5.0, 1.0}) {
    in.k.push_back(double_to_bf16(value));
  }
  in.q = in.v = in.k;
  in.problem = {dense_view(in.q.data(), 1, 2, 1, 2), dense_view(in.k.data(), 1, 2, 1, 2),
                dense_view(in.v.data(), 1, 2, 1, 2), Mask::kFull, 1.0};
  const QuantisedInputs codes = quantise(in.problem, {.rotation = Rotation::kNone, .smoothing = Smoothing::kMean});
  EXPECT_EQ(codes.k.descales[0], static_cast<float>(1.0 / 448.0));
  const std::vector<double> k = dequantise(codes.k);
  EXPECT_NEAR(k[0], -1.0, 1e-6);
  EXPECT_EQ(k[1], 0.0);
  EXPECT_NEAR(k[2], 1.0, 1e-6);
  EXPECT_NEAR(dequantise(codes.v)[2], 5.0, 1e-6);  // v keeps its mean
}

}  // namespace
}  // namespace zyfa::reference
