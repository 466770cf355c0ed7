// What small sweeps do not reach: real activations, NaN and infinity, scales, repeated launches, extreme strides.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/correctness/attention/harness.h"

namespace zyfa::tests {
namespace {

std::shared_ptr<SimDevice> device_with(SimChecks checks, unsigned threads) {
  const Expected<std::shared_ptr<SimDevice>> device = SimDevice::create({.checks = checks, .threads = threads});
  EXPECT_TRUE(device) << (device ? "" : to_string(device.error()));
  return *device;
}

TEST(AttentionEdges, RepeatedLaunchesAndThreadCountsGiveTheSameBits) {
  Case c{.batch = 2, .query_length = 333, .key_length = 517, .heads = 4, .key_heads = 2, .mask = Mask::kCausal};
  const auto first = run_case(c, device_with(SimChecks::kPlain, 1), "");
  ASSERT_TRUE(first) << to_string(first.error());
  for (const unsigned threads : {1U, 2U, 2U}) {
    const auto again = run_case(c, device_with(SimChecks::kPlain, threads), "");
    ASSERT_TRUE(again);
    EXPECT_EQ(first->o, again->o);
    EXPECT_EQ(std::memcmp(first->lse.data(), again->lse.data(), 4 * first->lse.size()), 0);
  }
}

// Where the rows lie must not matter: packed and strided views of the same data.
TEST(AttentionEdges, StridesDoNotChangeBits) {
  Case c{.batch = 2, .query_length = 200, .key_length = 300, .heads = 2, .key_heads = 1, .mask = Mask::kCausal};
  const auto device = device_with(SimChecks::kPlain, 2);
  const auto strided = run_case(c, device, "");
  c.layout = Layout::kPacked;
  const auto packed = run_case(c, device, "");
  ASSERT_TRUE(strided && packed);
  EXPECT_EQ(strided->o, packed->o);
}

// A sequence gives the same bits alone and as the first of a batch of three.
TEST(AttentionEdges, BatchDoesNotChangeBits) {
  Case alone{.query_length = 150, .key_length = 150, .heads = 1, .key_heads = 1, .mask = Mask::kCausal};
  alone.reuse_batch = true;
  Case batch = alone;
  batch.batch = 3;
  const auto device = device_with(SimChecks::kPlain, 2);
  const auto one = run_case(alone, device, "");
  const auto three = run_case(batch, device, "");
  ASSERT_TRUE(one && three);
  for (std::size_t b = 0; b < 3; ++b) {
    EXPECT_TRUE(
        std::equal(one->o.begin(), one->o.end(), three->o.begin() + static_cast<std::ptrdiff_t>(b * one->o.size())));
  }
}

class Scales : public testing::TestWithParam<double> {};

TEST_P(Scales, AnyFiniteScaleIsRight) {
  Case c{.query_length = 70, .key_length = 150, .heads = 2, .key_heads = 1, .mask = Mask::kCausal};
  c.softmax_scale = GetParam();
  const auto outcome = run_case(c, device_with(SimChecks::kStrict, 2), "");
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_LE(outcome->figures.relative_rms_percent, 0.45);
  EXPECT_EQ(outcome->figures.mismatched_nan, 0);
  EXPECT_LE(outcome->figures.lse_max_abs, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Values, Scales, testing::Values(0.0, -0.0883883, 1.0, 1e-6, -2.5));

// Queries and keys of 2^55 under a scale of 2^-113.5: the scores are those of an ordinary row.
TEST(AttentionEdges, ASmallScaleOfLargeInputs) {
  Case c{.query_length = 70, .key_length = 150, .heads = 2, .key_heads = 1, .mask = Mask::kCausal};
  c.spread = 0x1p55;
  c.softmax_scale = 0x1.6a09e6p-114;
  const auto outcome = run_case(c, device_with(SimChecks::kStrict, 2), "");
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_LE(outcome->figures.relative_rms_percent, 0.45);
  EXPECT_LE(outcome->figures.lse_max_abs, 1e-3);
}

// Poisons one element of one input and tells which output rows may, and which must, turn NaN.
TEST(AttentionEdges, NanInQueryReachesItsRowOnly) {
  Case c{.query_length = 100, .key_length = 130, .heads = 1, .key_heads = 1, .mask = Mask::kFull};
  c.poison = {Operand::kQuery, 37, std::numeric_limits<double>::quiet_NaN()};
  const auto outcome = run_case(c, device_with(SimChecks::kStrict, 2), "");
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(outcome->figures.mismatched_nan, 0) << "row 37 is NaN in O and LSE, all others are not";
}

TEST(AttentionEdges, NanInKeyReachesTheRowsThatSeeIt) {
  Case c{.query_length = 100, .key_length = 100, .heads = 1, .key_heads = 1, .mask = Mask::kCausal};
  c.poison = {Operand::kKey, 70, std::numeric_limits<double>::quiet_NaN()};
  const auto outcome = run_case(c, device_with(SimChecks::kStrict, 2), "");
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(outcome->figures.mismatched_nan, 0) << "rows 70.. see key 70, rows before it must not";
}

// V's NaN may reach every row of a block that holds the key in range (DESIGN.md 5), so only rows of other waves' blocks
// and the rows that surely see it are checked: full attention, every row sees it.
TEST(AttentionEdges, NanInValueReachesEveryRowThatSeesIt) {
  Case c{.query_length = 40, .key_length = 70, .heads = 1, .key_heads = 1, .mask = Mask::kFull};
  c.poison = {Operand::kValue, 69, std::numeric_limits<double>::quiet_NaN()};
  const auto outcome = run_case(c, device_with(SimChecks::kStrict, 2), "");
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(outcome->figures.mismatched_nan, 0);
}

// Causal with fewer keys than queries: rows 0..37 see no key. They are 0 whatever stands in the values; rows that see
// only earlier keys may get the NaN of a later key of the block, and are left out here by placing it in the first key.
TEST(AttentionEdges, NanInValueDoesNotReachARowThatSeesNoKey) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Case c{.query_length = 40, .key_length = 2, .heads = 1, .key_heads = 1, .mask = Mask::kCausal};
    c.poison = {Operand::kValue, 0, value};
    const auto outcome = run_case(c, device_with(SimChecks::kStrict, 2), "");
    ASSERT_TRUE(outcome) << to_string(outcome.error());
    EXPECT_EQ(outcome->figures.nonzero_empty, 0);
    EXPECT_EQ(outcome->figures.mismatched_nan, 0);
    EXPECT_TRUE(std::all_of(outcome->o.begin(), outcome->o.begin() + 38 * 128, [](std::uint16_t x) { return x == 0; }));
  }
}

TEST(AttentionEdges, LargeScoresStayFinite) {
  Case c{.query_length = 64, .key_length = 256, .heads = 1, .key_heads = 1, .mask = Mask::kFull};
  c.spread = 60.0;  // scores of several thousand
  const auto outcome = run_case(c, device_with(SimChecks::kStrict, 2), "");
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(outcome->figures.mismatched_nan, 0);
  EXPECT_LE(outcome->figures.relative_rms_percent, 0.45);
}

// Strides whose products pass 2^31 and 2^32 bytes: tokens just below the 64 MiB limit, heads and batches further apart.
// The gaps are mapped memory that nobody touches.
struct Spread {
  const char* name;
  std::int64_t token_stride, head_stride, batch_stride;  // elements
};

class ExtremeStrides : public testing::TestWithParam<Spread> {};

TEST_P(ExtremeStrides, AgreesWithPacked) {
  Case packed{.batch = 2, .query_length = 70, .key_length = 80, .heads = 2, .key_heads = 2, .mask = Mask::kCausal};
  packed.layout = Layout::kPacked;
  const auto device = device_with(SimChecks::kStrict, 2);
  const auto expected = run_case(packed, device, "");
  ASSERT_TRUE(expected) << to_string(expected.error());
  for (const char* placement : {"pingpong", "wide"}) {  // 32 rows of q under one base address, and 64
    const Spread& strides = GetParam();
    const auto spread =
        run_spread(packed, device, placement, strides.token_stride, strides.head_stride, strides.batch_stride);
    ASSERT_TRUE(spread) << placement << ": " << to_string(spread.error());
    EXPECT_EQ(*spread, expected->o) << placement;
  }
}

constexpr std::int64_t kMi = 1 << 20;
INSTANTIATE_TEST_SUITE_P(Strides, ExtremeStrides,
                         testing::Values(Spread{"tokens", 32 * kMi - 8, 128, 4096 * kMi},
                                         Spread{"heads", 256, 3000 * kMi + 8, 128},
                                         Spread{"batches", 256, 128, 5000 * kMi + 24}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace zyfa::tests
