// Waves of 64 queries in BF16 give the bits of waves of 32 on shapes in which the two blocks of a wave fare
// differently.
#include <gmock/gmock.h>

#include <bit>

#include "schedules/select/placements.h"
#include "tests/correctness/attention/harness.h"
#include "tests/correctness/schedules/wide_shapes.h"

namespace zyfa::tests {
namespace {

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return words;
}

class AttentionWide : public testing::TestWithParam<Lse> {};

TEST_P(AttentionWide, BitsOfWavesOf32Queries) {
  ASSERT_TRUE(complete(reach_of_all())) << "the shapes must reach what two blocks can meet";
  const auto device = SimDevice::create({.checks = SimChecks::kStrict, .threads = 2}).value();
  for (const WideShape& shape : kWideShapes) {
    // A spread at which the reference moves; a scale below 0 changes the sign of Q, of both blocks.
    for (const double scale : {0.0883883, -0.0883883}) {
      const Case c{.batch = 2,
                   .query_length = shape.queries,
                   .key_length = shape.keys,
                   .heads = shape.heads,
                   .key_heads = shape.key_heads,
                   .mask = shape.causal ? Mask::kCausal : Mask::kFull,
                   .spread = 3.0,
                   .softmax_scale = scale,
                   .lse = GetParam()};
      const Expected<Outcome> expected = run_case(c, device, std::string(schedules::kNaivePlacement));
      ASSERT_TRUE(expected) << describe(c) << "\n" << to_string(expected.error());
      for (const char* placement : {kBf16WideNaive, kBf16WideEach}) {
        const Expected<Outcome> outcome = run_case(c, device, placement);
        ASSERT_TRUE(outcome) << describe(c) << "\n" << placement << "\n" << to_string(outcome.error());
        EXPECT_EQ(outcome->o, expected->o) << describe(c) << "\n" << placement;
        EXPECT_EQ(bits(outcome->lse), bits(expected->lse)) << describe(c) << "\n" << placement;
        EXPECT_TRUE(outcome->outside_untouched) << describe(c) << "\n" << placement;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lse, AttentionWide, testing::Values(Lse::kWritten, Lse::kNone),
                         [](const auto& info) { return info.param == Lse::kWritten ? "lse" : "no_lse"; });

}  // namespace
}  // namespace zyfa::tests
