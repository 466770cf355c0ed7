// Exhaustive sweep of small shapes in strict mode, both shipped placements, against fp64 attention and each other.
#include <gmock/gmock.h>

#include "schedules/select/placements.h"
#include "tests/correctness/attention/harness.h"

namespace zyfa::tests {
namespace {

constexpr std::int64_t kLengths[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300};

// P and O are rounded to bf16 (2^-9 each); small results average little, so the bound is above the 0.25% of long rows.
constexpr double kRelativeRmsPercent = 0.45;
constexpr double kLseError = 1e-4;

std::shared_ptr<SimDevice> strict_device() {
  static const Expected<std::shared_ptr<SimDevice>> device =
      SimDevice::create({.checks = SimChecks::kStrict, .threads = 2});
  EXPECT_TRUE(device) << (device ? "" : to_string(device.error()));
  return device ? *device : nullptr;
}

void expect_right(const Case& c, const Expected<Outcome>& outcome) {
  ASSERT_TRUE(outcome) << describe(c) << "\n" << to_string(outcome.error());
  EXPECT_LE(outcome->figures.relative_rms_percent, kRelativeRmsPercent) << describe(c);
  EXPECT_LE(outcome->figures.lse_max_abs, kLseError) << describe(c);
  EXPECT_EQ(outcome->figures.mismatched_nan, 0) << describe(c);
  EXPECT_EQ(outcome->figures.nonzero_empty, 0) << describe(c);
  EXPECT_TRUE(outcome->outside_untouched) << describe(c);
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return words;
}

struct Heads {
  std::int64_t query, key;
};

class Sweep : public testing::TestWithParam<std::tuple<Mask, Heads, std::int64_t>> {};

TEST_P(Sweep, AgreesWithFp64AndBetweenPlacements) {
  const auto& [mask, heads, query_length] = GetParam();
  const std::shared_ptr<SimDevice> device = strict_device();
  ASSERT_NE(device, nullptr);
  for (const std::int64_t key_length : kLengths) {
    Case c{.query_length = query_length,
           .key_length = key_length,
           .heads = heads.query,
           .key_heads = heads.key,
           .mask = mask};
    c.seed = static_cast<std::uint32_t>(query_length * 1009 + key_length * 7 + heads.query);
    c.batch = key_length % 3 == 0 ? 2 : 1;
    // Scores over a wide range make the running reference move often.
    c.spread = key_length % 2 == 0 ? 1.0 : 3.0;
    const Expected<Outcome> naive = run_case(c, device, std::string(schedules::kNaivePlacement));
    expect_right(c, naive);
    const Expected<Outcome> pingpong = run_case(c, device, "pingpong");
    const Expected<Outcome> wide = run_case(c, device, "wide");
    for (const Expected<Outcome>* other : {&pingpong, &wide}) {
      expect_right(c, *other);
      if (HasFatalFailure()) return;
      EXPECT_EQ(naive->o, (*other)->o) << describe(c) << ": the same arithmetic order must give the same bits";
      EXPECT_EQ(bits(naive->lse), bits((*other)->lse)) << describe(c);
    }
    if (heads.query != 1) continue;
    c.lse = Lse::kNone;
    const Expected<Outcome> without_lse = run_case(c, device, "pingpong");
    ASSERT_TRUE(without_lse) << describe(c) << "\n" << to_string(without_lse.error());
    EXPECT_EQ(without_lse->o, pingpong->o) << describe(c);
    EXPECT_TRUE(without_lse->outside_untouched) << describe(c);
  }
}

std::string name_of(const testing::TestParamInfo<Sweep::ParamType>& info) {
  const auto& [mask, heads, length] = info.param;
  return std::string(mask == Mask::kCausal ? "causal" : "full") + "_h" + std::to_string(heads.query) + "to" +
         std::to_string(heads.key) + "_sq" + std::to_string(length);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Sweep,
                         testing::Combine(testing::Values(Mask::kFull, Mask::kCausal),
                                          testing::Values(Heads{1, 1}, Heads{3, 1}, Heads{8, 2}, Heads{5, 1}),
                                          testing::ValuesIn(kLengths)),
                         name_of);

}  // namespace
}  // namespace zyfa::tests
