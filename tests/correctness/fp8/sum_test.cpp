// Both matrix products of the row sum, dense and sparse, in every variant of 8-bit attention: each agrees with fp64 and
// between placements, bit for bit, and the two differ by no more than the order of fp32 additions (docs/numerics.md).
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "runtime/sim/sim_device.h"
#include "schedules/select/select.h"
#include "tests/correctness/fp8/harness.h"

namespace zyfa::tests {
namespace {

using schedules::ElementType;
using schedules::KernelSpec;
using schedules::MaskKind;
using schedules::RowSum;

// As in sweep_test.cpp: the error of P.
constexpr double kMaxRmsPercent = 4.0;
constexpr double kMaxLse = 0.09;
// A relative error of the sum, for some roundings of 2^-24, and two ulps of the LSE, where its parts are added.
constexpr float kMaxSumDifference = 1e-6F, kMaxLseDifference = 0x1p-22F;

SimDevice& strict_device() {
  static const auto device = sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 1}).value();
  return *device;
}

struct Shape {
  std::int64_t queries, keys;
  double spread;  // 3: references move, and folded kernels take both paths
};

constexpr Shape kShapes[] = {{1, 1, 1.5}, {33, 129, 3.0}, {70, 300, 1.5}, {257, 257, 3.0}, {32, 640, 0.5}};

std::vector<KernelSpec> variants(MaskKind mask) {
  std::vector<KernelSpec> all = fp8_variants(128, mask);
  std::ranges::copy(fp8_variants(192, mask), std::back_inserter(all));
  return all;
}

void expect_sound(const Fp8Case& c, const reference::AttentionResult& expected, const Fp8Output& output) {
  const auto figures = fp8_error(c, expected, output).value();
  EXPECT_LE(figures.relative_rms_percent, kMaxRmsPercent) << describe(c);
  EXPECT_LE(figures.lse_max_abs, kMaxLse) << describe(c);
  EXPECT_EQ(figures.mismatched_nan, 0) << describe(c);
  EXPECT_EQ(figures.nonzero_empty, 0) << describe(c);
  EXPECT_TRUE(output.outside_untouched) << describe(c);
}

// Neighbours in BF16, or the same: O is divided by sums that differ in their last bits.
bool are_neighbours(std::uint16_t a, std::uint16_t b) {
  return std::abs(static_cast<int>(a) - static_cast<int>(b)) <= 1;
}

void expect_alike(const Fp8Case& c, const Fp8Output& a, const Fp8Output& b) {
  EXPECT_TRUE(std::ranges::equal(a.o, b.o, are_neighbours)) << describe(c);
  const auto close = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
           std::abs(x - y) <= kMaxSumDifference + kMaxLseDifference * std::abs(x) || (std::isnan(x) && std::isnan(y));
  };
  EXPECT_TRUE(std::ranges::equal(a.lse, b.lse, close)) << describe(c);
}

// Both sums of a case under the naive and the ping-pong placement.
void check_sums(Fp8Case c, const char* naive, const char* pingpong) {
  const Fp8Inputs in = make_fp8_inputs(c);
  const reference::AttentionResult expected = expected_fp8_attention(c, in).value();
  Fp8Output by_sum[2];
  for (const RowSum sum : {RowSum::kSparse, RowSum::kDense}) {
    c.spec.row_sum = sum;
    c.placement = naive;
    const Expected<Fp8Output> first = launch_fp8_case(c, in, strict_device());
    ASSERT_TRUE(first) << describe(c) << "\n" << to_string(first.error());
    expect_sound(c, expected, *first);
    c.placement = pingpong;
    const Expected<Fp8Output> second = launch_fp8_case(c, in, strict_device());
    ASSERT_TRUE(second) << describe(c) << "\n" << to_string(second.error());
    EXPECT_EQ(second->o, first->o) << describe(c);
    EXPECT_EQ(lse_bits(*second), lse_bits(*first)) << describe(c);
    by_sum[sum == RowSum::kDense ? 1 : 0] = *first;
  }
  expect_alike(c, by_sum[0], by_sum[1]);
}

class Fp8Sum : public testing::TestWithParam<MaskKind> {};

TEST_P(Fp8Sum, BothAgreeWithFp64AndBetweenPlacements) {
  std::size_t turn = 0;
  for (const KernelSpec& spec : variants(GetParam())) {
    for (const Shape& shape : {kShapes[turn % std::size(kShapes)], kShapes[(turn + 1) % std::size(kShapes)]}) {
      check_sums({.query_length = shape.queries,
                  .key_length = shape.keys,
                  .spec = spec,
                  .spread = shape.spread,
                  .seed = static_cast<std::uint32_t>(++turn)},
                 "fp8_naive", "fp8_pingpong");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Masks, Fp8Sum, testing::Values(MaskKind::kFull, MaskKind::kCausal),
                         [](const auto& info) { return std::string(schedules::name_of(info.param)); });

TEST(Fp8SumNear, BothTakeOverTheSumOfTheNearKeys) {
  std::uint32_t seed = 0;
  for (KernelSpec spec : fp8_variants(128, MaskKind::kCausal)) {
    spec.near_keys = schedules::NearKeys::kBf16;
    check_sums({.query_length = 70, .key_length = 700, .spec = spec, .seed = ++seed}, "fp8_near_naive",
               "fp8_near_pingpong");
  }
}

// A row that is NaN shares its column of the product with another.
TEST(Fp8SumNan, StaysInItsRow) {
  for (const KernelSpec& spec : fp8_variants(128, MaskKind::kFull)) {
    if (spec.element == ElementType::kInt8) continue;  // has no NaN in q
    Fp8Case c{.query_length = 40, .key_length = 300, .spec = spec};
    c.change = [](Fp8Inputs& in) { in.q_row(0, 5, 0)[3] = 0x7f; };
    check_sums(c, "fp8_naive", "fp8_pingpong");
  }
}

}  // namespace
}  // namespace zyfa::tests
