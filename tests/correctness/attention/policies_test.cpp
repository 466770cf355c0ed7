// Our kernels in strict mode under every landing and interleaving policy, and under every reading of every rule on
// which sources disagree: no finding, the same bits whatever the policy, right against fp64 whatever the rule.
#include <gmock/gmock.h>

#include "runtime/io/sim_text.h"
#include "schedules/select/placements.h"
#include "tests/correctness/attention/harness.h"

namespace zyfa::tests {
namespace {

// Ragged against the 128-query and 64-key tiles, more than one of each, and GQA.
const std::vector<Case> kCases{
    {.query_length = 257, .key_length = 300, .heads = 2, .key_heads = 1, .mask = Mask::kCausal, .seed = 1},
    {.query_length = 130, .key_length = 450, .heads = 2, .key_heads = 2, .mask = Mask::kFull, .seed = 2},
    {.query_length = 33, .key_length = 65, .heads = 8, .key_heads = 1, .mask = Mask::kCausal, .seed = 3},
};

class Policies : public testing::TestWithParam<std::string> {
 protected:
  static Expected<Outcome> run(const Case& c, const SimOptions& options) {
    auto device = SimDevice::create(options);
    if (!device) return tl::unexpected<Error>(device.error());
    return run_case(c, *device, GetParam());
  }
  static SimOptions strict() { return {.checks = SimChecks::kStrict, .threads = 2}; }
};

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return words;
}

TEST_P(Policies, GiveTheSameBits) {
  const std::vector<std::string> landings{"late", "latest", "early", "random:1", "random:2", "random:3"};
  const std::vector<std::string> interleaves{"round-robin", "to-barrier", "random:4", "random:5"};
  for (const Case& c : kCases) {
    const Expected<Outcome> expected = run(c, strict());
    ASSERT_TRUE(expected) << describe(c) << "\n" << to_string(expected.error());
    for (const std::string& landing : landings) {
      for (const std::string& interleave : interleaves) {
        SimOptions options = strict();
        ASSERT_TRUE(io::set_landing(landing, options).has_value());
        ASSERT_TRUE(io::set_interleave(interleave, options).has_value());
        const Expected<Outcome> outcome = run(c, options);
        ASSERT_TRUE(outcome) << describe(c) << " " << landing << " " << interleave << "\n"
                             << to_string(outcome.error());
        EXPECT_EQ(outcome->o, expected->o) << describe(c) << " " << landing << " " << interleave;
        EXPECT_EQ(bits(outcome->lse), bits(expected->lse)) << describe(c) << " " << landing << " " << interleave;
      }
    }
  }
}

// The accumulation model alone may change bits; the others must not.
TEST_P(Policies, RightUnderEveryReadingOfEveryRule) {
  for (const Case& c : kCases) {
    const Expected<Outcome> expected = run(c, strict());
    ASSERT_TRUE(expected) << describe(c) << "\n" << to_string(expected.error());
    for (const io::OtherRule& other : io::other_rules({})) {
      SimOptions options = strict();
      options.rules = other.rules;
      const Expected<Outcome> outcome = run(c, options);
      ASSERT_TRUE(outcome) << describe(c) << " " << other.text << "\n" << to_string(outcome.error());
      EXPECT_LE(outcome->figures.relative_rms_percent, 0.45) << describe(c) << " " << other.text;
      EXPECT_LE(outcome->figures.lse_max_abs, 1e-4) << describe(c) << " " << other.text;
      const bool may_differ = other.text.starts_with("accumulation=");
      EXPECT_TRUE(may_differ || outcome->o == expected->o) << other.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, Policies,
                         testing::Values(std::string(schedules::kNaivePlacement), std::string("pingpong"),
                                         std::string("wide")),
                         [](const auto& info) { return info.index == 0 ? "naive" : info.param; });

}  // namespace
}  // namespace zyfa::tests
