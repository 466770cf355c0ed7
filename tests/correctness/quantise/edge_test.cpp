// Values at the edges: zeros, infinities, NaN, the smallest and largest numbers, ties, scales of every size; and the
// checker itself on planted faults.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "tests/correctness/quantise/harness.h"
#include "tests/reference/attention.h"

namespace zyfa::tests {
namespace {

using testing::HasSubstr;

constexpr double kLog2E = 1.4426950408889634;
constexpr Shape kShape{.batch = 2, .queries = 21, .keys = 35, .heads = 4, .key_heads = 2};

std::uint16_t bf16(double value) { return reference::double_to_bf16(value); }

void fill_head(HostTensor& t, std::int64_t b, std::int64_t h, std::uint16_t bits) {
  for (std::int64_t s = 0; s < t.tokens; ++s) std::fill_n(t.row(b, s, h), t.dim, bits);
}

Outputs outputs_of(const AttentionProblem& problem, const Inputs& inputs) {
  static Machine machine = strict_machine();
  const auto outputs = run(machine, problem, inputs);
  EXPECT_TRUE(outputs) << to_string(outputs.error());
  return outputs.value_or(Outputs{});
}

Outputs checked(const AttentionProblem& problem, const Inputs& inputs) {
  const Outputs outputs = outputs_of(problem, inputs);
  EXPECT_EQ(check(problem, inputs, outputs), "") << to_string(problem);
  return outputs;
}

std::vector<AttentionProblem> element_types_and_rotations() {
  std::vector<AttentionProblem> problems;
  for (const std::uint32_t dim : {128U, 192U}) {
    for (const ScoreType type : {ScoreType::kFp8, ScoreType::kInt8}) {
      for (const Rotation rotation : {Rotation::kHadamard, Rotation::kNone}) {
        problems.push_back(fp8_problem(dim));
        problems.back().fp8 = {.scores = type, .rotation = rotation};
      }
    }
  }
  return problems;
}

TEST(QuantiseCheck, SeesPlantedFaults) {
  const AttentionProblem problem = fp8_problem();
  const Inputs inputs = gaussian_inputs(problem, kShape, 1);
  const Outputs right = checked(problem, inputs);
  const auto fault = [&](auto change) {
    Outputs wrong = right;
    change(wrong);
    return check(problem, inputs, wrong);
  };
  EXPECT_THAT(fault([](Outputs& o) { ++o.q.codes[1000]; }), HasSubstr("q code 1000"));
  EXPECT_THAT(fault([](Outputs& o) { o.k.codes[77] ^= 0x80; }), HasSubstr("k code 77"));
  EXPECT_THAT(fault([](Outputs& o) { o.v.codes[5] = 0x7f; }), HasSubstr("v code 5"));
  EXPECT_THAT(fault([](Outputs& o) { o.q.descales[3] *= 1.000002F; }), HasSubstr("q descale 3"));
  EXPECT_THAT(fault([](Outputs& o) { o.q.descales[3] *= 2; }), HasSubstr("q descale 3"));
  EXPECT_THAT(fault([](Outputs& o) { o.padding_untouched = false; }), HasSubstr("behind the codes"));
  EXPECT_THAT(fault([](Outputs& o) { o.warnings = 1; }), HasSubstr("strict warnings"));
}

TEST(QuantiseEdge, AllZeroHeads) {
  for (const AttentionProblem& problem : element_types_and_rotations()) {
    Inputs inputs = gaussian_inputs(problem, kShape, 2);
    for (HostTensor* t : {&inputs.q, &inputs.k, &inputs.v}) {
      fill_head(*t, 0, 0, 0x0000);
      fill_head(*t, 0, 1, 0x8000);  // -0
    }
    const Outputs outputs = checked(problem, inputs);
    EXPECT_EQ(outputs.k.descales[0], 1.0F);
    EXPECT_EQ(outputs.k.descales[1], 1.0F);
    EXPECT_EQ(outputs.v.descales[1], 1.0F);
    EXPECT_NE(outputs.v.descales[2], 1.0F);
  }
}

TEST(QuantiseEdge, NoKeys) {
  for (const KeySmoothing smoothing : {KeySmoothing::kNone, KeySmoothing::kMean}) {
    AttentionProblem problem = fp8_problem();
    problem.fp8.smoothing = smoothing;
    const Outputs outputs = checked(problem, gaussian_inputs(problem, {.queries = 5, .keys = 0, .heads = 2}, 3));
    EXPECT_THAT(outputs.k.descales, testing::Each(1.0F));
    EXPECT_THAT(outputs.v.descales, testing::Each(1.0F));
  }
}

// Where values are not finite the codes are NaN and the others keep theirs; with int8 scores the head's descale is NaN.
TEST(QuantiseEdge, NanAndInfinity) {
  for (AttentionProblem problem : element_types_and_rotations()) {
    for (const KeySmoothing smoothing : {KeySmoothing::kNone, KeySmoothing::kMean}) {
      problem.fp8.smoothing = smoothing;
      Inputs inputs = gaussian_inputs(problem, kShape, 4);
      for (HostTensor* t : {&inputs.q, &inputs.k, &inputs.v}) {
        t->row(0, 3, 0)[17] = 0x7fc0;
        t->row(0, 9, 0)[90] = 0x7f80;
        t->row(0, 9, 0)[91] = 0xff80;
        t->row(1, 20, 1)[t->dim - 1] = 0xff80;
        t->row(1, 20, 1)[0] = 0xffff;
      }
      const Outputs outputs = checked(problem, inputs);
      const bool integers = problem.fp8.scores == ScoreType::kInt8;
      for (const std::size_t head : {0U, 3U}) {
        EXPECT_EQ(std::isnan(outputs.k.descales[head]), integers);
        EXPECT_FALSE(std::isnan(outputs.v.descales[head]));
      }
      EXPECT_EQ(std::isnan(outputs.q.descales[0]), integers);
      EXPECT_FALSE(std::isnan(outputs.k.descales[1]));
      EXPECT_TRUE(std::isnan(e4m3_value(outputs.v.codes[3 * 2 * 128 + 17])));
      EXPECT_FALSE(std::isnan(e4m3_value(outputs.v.codes[3 * 2 * 128 + 18])));
    }
  }
}

TEST(QuantiseEdge, NothingFinite) {
  for (AttentionProblem problem : element_types_and_rotations()) {
    for (const KeySmoothing smoothing : {KeySmoothing::kNone, KeySmoothing::kMean}) {
      problem.fp8.smoothing = smoothing;
      Inputs inputs = gaussian_inputs(problem, kShape, 5);
      for (HostTensor* t : {&inputs.q, &inputs.k, &inputs.v}) {
        for (std::int64_t h = 0; h < t->heads; ++h) fill_head(*t, 0, h, h % 2 == 0 ? 0x7f80 : 0x7fff);
      }
      const Outputs outputs = checked(problem, inputs);
      EXPECT_EQ(outputs.v.descales[0], 1.0F);
      EXPECT_TRUE(std::isnan(e4m3_value(outputs.v.codes[0])));
    }
  }
}

// bf16 reaches from 2^-133 to 3.39e38; a descale stays at least 2^-120.
TEST(QuantiseEdge, SmallestAndLargestNumbers) {
  for (const AttentionProblem& problem : element_types_and_rotations()) {
    Inputs inputs = gaussian_inputs(problem, kShape, 6);
    for (HostTensor* t : {&inputs.q, &inputs.k, &inputs.v}) {
      for (std::int64_t s = 0; s < t->tokens; ++s) {
        for (std::int64_t d = 0; d < t->dim; ++d) {
          const bool negative = (s * t->dim + d) % 7 < 3;
          const auto sign = static_cast<std::uint16_t>(negative ? 0x8000 : 0);
          // Heads 0 and 1 of one batch are subnormal, the first head of the other one large throughout.
          t->row(0, s, 0)[d] = static_cast<std::uint16_t>(sign | (d % 128));
          t->row(0, s, 1)[d] = static_cast<std::uint16_t>(sign | (d == 5 ? 1 : 0));
          t->row(1, s, 0)[d] = static_cast<std::uint16_t>(sign | 0x7f7f);
          t->row(1, s, 1)[d] = static_cast<std::uint16_t>(sign | (d % 2 == 0 ? 0x7f7f : 0x3f80));
        }
      }
    }
    const Outputs outputs = checked(problem, inputs);
    EXPECT_EQ(outputs.v.descales[0], 0x1p-120F);
    EXPECT_NE(outputs.v.codes[126], 0) << "a subnormal value is not lost";
    for (const Quantised* part : {&outputs.q, &outputs.k, &outputs.v}) {
      for (const float descale : part->descales) EXPECT_TRUE(std::isnormal(descale));
    }
  }
}

// No finite value becomes NaN, and the head's largest one meets the largest code (folded form: half of it at least).
TEST(QuantiseEdge, TheScaleFitsTheLargestValue) {
  for (const ScoreForm form : {ScoreForm::kFolded, ScoreForm::kMultiplyAdd}) {
    AttentionProblem problem = fp8_problem();
    problem.fp8.form = form;
    for (std::uint32_t seed = 10; seed < 20; ++seed) {
      const Shape shape{.queries = 40, .keys = 40, .heads = 2, .key_heads = 2};
      const Outputs outputs = checked(problem, gaussian_inputs(problem, shape, seed));
      for (const auto part : {&Outputs::q, &Outputs::k, &Outputs::v}) {
        for (std::size_t head = 0; head < 2; ++head) {
          double most = 0;
          const std::vector<std::uint8_t>& codes = (outputs.*part).codes;
          for (std::size_t at = 0; at < codes.size(); ++at) {
            ASSERT_FALSE(std::isnan(e4m3_value(codes[at])));
            if (at / 128 % 2 == head) most = std::max(most, std::abs(e4m3_value(codes[at])));
          }
          const bool folded = part == &Outputs::q && form == ScoreForm::kFolded;
          EXPECT_GE(most, folded ? 224.0 : 448.0);
        }
      }
    }
  }
}

// 8 log2(e) |softmax_scale| s_q s_k is a power of two for every scale and head.
TEST(QuantiseEdge, FoldedScalesMakeAPowerOfTwo) {
  const AttentionProblem problem = fp8_problem();
  Machine machine = strict_machine();
  for (const float scale : {0.08838835F, -0.08838835F, 1.0F, 0.0F, 0.0721688F, 3e-5F, -1e-30F, 1e-44F, 1e20F, 2e38F}) {
    Inputs inputs = gaussian_inputs(problem, {.queries = 18, .keys = 33, .heads = 6, .key_heads = 3}, 30);
    inputs.softmax_scale = scale;
    const auto outputs = run(machine, problem, inputs);
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    // The kernel gets scale * log2(e) as a float, which at 1e-44 is far from the product.
    const float packed = static_cast<float>(std::abs(static_cast<double>(scale)) * kLog2E);
    const double unit = 8.0 * (packed == 0 ? kLog2E : static_cast<double>(packed));
    for (std::size_t head = 0; head < 3; ++head) {
      const double product = unit * outputs->q.descales[head] * outputs->k.descales[head];
      EXPECT_LE(std::abs(std::remainder(std::log2(product), 1.0)), 1e-6) << scale << " head " << head;
    }
    if (std::abs(scale) > 1e-38F || scale == 0) {
      EXPECT_EQ(check(problem, inputs, *outputs), "") << scale;
    }
  }
}

// With a largest value of 448 2^n (127 2^n) the scale is 2^n, so that products are exact: every code comes back, and
// ties round to even.
TEST(QuantiseEdge, TiesRoundToEven) {
  AttentionProblem problem = fp8_problem();
  problem.fp8 = {.form = ScoreForm::kMultiplyAdd, .scores = ScoreType::kInt8, .rotation = Rotation::kNone};
  Inputs inputs = gaussian_inputs(problem, {.queries = 4, .keys = 5}, 40);
  for (std::int64_t d = 0; d < 128; ++d) {
    const auto code = static_cast<std::uint8_t>(d);
    inputs.v.row(0, 0, 0)[d] = bf16(code == 0x7f ? 0 : 4 * e4m3_value(code));
    inputs.v.row(0, 1, 0)[d] = bf16(code == 0x7f ? 0 : -4 * e4m3_value(code));
    // Half way to the next code, with a bf16's 8 bits to spare.
    const double next = e4m3_value(static_cast<std::uint8_t>(code + 1));
    inputs.v.row(0, 2, 0)[d] = bf16(code >= 0x7e ? 0 : 2 * (e4m3_value(code) + next));
    inputs.v.row(0, 3, 0)[d] = inputs.v.row(0, 4, 0)[d] = bf16(1.0);
    for (std::int64_t s = 0; s < 5; ++s) {
      inputs.k.row(0, s, 0)[d] = bf16(0.25 * (static_cast<double>(d) - 0.0));
      if (s == 1) inputs.k.row(0, s, 0)[d] = bf16(-0.25 * static_cast<double>(d));
      if (s == 2) inputs.k.row(0, s, 0)[d] = bf16(d < 64 ? 0.25 * (static_cast<double>(d) + 0.5) : 0);
      if (s == 3) inputs.k.row(0, s, 0)[d] = bf16(d < 64 ? -0.25 * (static_cast<double>(d) + 0.5) : 0);
    }
  }
  const Outputs outputs = checked(problem, inputs);
  EXPECT_EQ(outputs.v.descales[0], 4.0F);
  EXPECT_EQ(outputs.k.descales[0], 0.25F);
  for (std::size_t d = 0; d < 127; ++d) {
    const auto code = static_cast<std::uint8_t>(d);
    EXPECT_EQ(outputs.v.codes[d], code);
    EXPECT_EQ(e4m3_value(outputs.v.codes[128 + d]), -e4m3_value(code));
    if (d < 126) {
      EXPECT_EQ(outputs.v.codes[256 + d], d % 2 == 0 ? d : d + 1);
    }
    EXPECT_EQ(static_cast<std::int8_t>(outputs.k.codes[d]), static_cast<int>(d));
    EXPECT_EQ(static_cast<std::int8_t>(outputs.k.codes[128 + d]), -static_cast<int>(d));
    if (d < 64) {
      const int even = static_cast<int>(d % 2 == 0 ? d : d + 1);
      EXPECT_EQ(static_cast<std::int8_t>(outputs.k.codes[256 + d]), even);
      EXPECT_EQ(static_cast<std::int8_t>(outputs.k.codes[384 + d]), -even);
    }
  }
}

// A smoothed key head loses its mean: what is constant over the tokens does not reach the codes or the scale.
TEST(QuantiseEdge, SmoothingTakesTheMeanAway) {
  AttentionProblem problem = fp8_problem();
  problem.fp8 = {.form = ScoreForm::kMultiplyAdd, .smoothing = KeySmoothing::kMean};
  const Shape shape{.queries = 3, .keys = 64};
  Inputs inputs = gaussian_inputs(problem, shape, 50);
  for (std::int64_t s = 0; s < 64; ++s) {
    for (std::int64_t d = 0; d < 128; ++d) inputs.k.row(0, s, 0)[d] = bf16(64.0 + (s % 2 == 0 ? 0.5 : -0.5));
  }
  // After rotation dim 0 holds sqrt(128) times the value and the others nothing.
  const Outputs outputs = checked(problem, inputs);
  EXPECT_NEAR(outputs.k.descales[0], 0.5 * std::sqrt(128.0) / 448, 1e-6);
  for (std::size_t s = 0; s < 64; ++s) {
    EXPECT_EQ(e4m3_value(outputs.k.codes[128 * s]), s % 2 == 0 ? 448 : -448);
    EXPECT_EQ(e4m3_value(outputs.k.codes[128 * s + 1]), 0);
  }
}

TEST(QuantiseEdge, StridesBeyond32Bits) {
  const AttentionProblem problem = fp8_problem();
  Machine machine = strict_machine();
  const Inputs inputs =
      gaussian_inputs(problem, {.batch = 2, .queries = 35, .keys = 20, .heads = 4, .key_heads = 2}, 60);
  // Token strides just below 2^26 bytes; heads and batches further apart than 2^31 and 2^32 bytes.
  const Strides strides[] = {{(std::int64_t{1} << 25) - 8, std::int64_t{3} << 31, std::int64_t{1} << 35},
                             {std::int64_t{1} << 14, 128, std::int64_t{3} << 31},
                             {512, std::int64_t{1} << 32, 0}};
  for (const Strides& s : strides) {
    Inputs shared = inputs;
    if (s.batch == 0) {
      for (HostTensor* t : {&shared.q, &shared.k, &shared.v}) {
        std::copy_n(t->bits.begin(), t->bits.size() / 2,
                    t->bits.begin() + static_cast<std::ptrdiff_t>(t->bits.size() / 2));
      }
    }
    const auto outputs = run_spread(machine, problem, shared, s);
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    EXPECT_EQ(check(problem, shared, *outputs), "");
  }
}

}  // namespace
}  // namespace zyfa::tests
