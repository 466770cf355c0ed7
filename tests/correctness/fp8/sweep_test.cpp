// Exhaustive small shapes under strict mode: every pair of sequence lengths around the edges of the 64-key blocks, the
// waves of 32 and 64 queries and the 128- and 256-query workgroups, for several head counts and both masks; the
// variants of 8-bit attention and the head dims go round over the shapes. All inputs are views with NaN codes in every
// unused byte. Placements must agree bit for bit, with fp64 within the error of P, and with the model of their rule
// within rounding.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/model.h"

namespace zyfa::tests {
namespace {

using schedules::KernelSpec;
using schedules::MaskKind;

constexpr std::int64_t kLengths[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300};

std::array<const char*, 4> placements(std::uint32_t head_dim_qk) {
  return {"fp8_naive", "fp8_pingpong", "fp8_pingpong_packed", head_dim_qk == 128 ? "fp8_wide" : "fp8_wide_192"};
}

// A code is off by at most 8%, 3.7% rms; many keys average that down.
constexpr double kMaxRmsPercent = 4.0;
constexpr double kMaxLse = 0.09;
// O's rounding to BF16 is 0.165% rms; of few rows one probability whose code lies at a half shows.
constexpr double kMaxRuleRmsPercent = 0.5;
constexpr double kMaxRuleRmsPercentOfFewRows = 1.2;

SimDevice& strict_device() {
  static const auto device = sim::make_sim_device({.checks = SimChecks::kStrict, .threads = 1}).value();
  return *device;
}

struct Heads {
  std::int64_t query, key;
};

class Fp8Sweep : public testing::TestWithParam<std::tuple<MaskKind, Heads, std::int64_t>> {};

TEST_P(Fp8Sweep, AgreesWithFp64AndBetweenPlacements) {
  const auto& [mask, heads, query_length] = GetParam();
  std::size_t turn = static_cast<std::size_t>(std::ranges::find(kLengths, query_length) - kLengths) * 7 +
                     static_cast<std::size_t>(heads.query);
  std::vector<KernelSpec> variants = fp8_variants(128, mask);
  std::ranges::copy(fp8_variants(192, mask), std::back_inserter(variants));
  for (const std::int64_t key_length : kLengths) {
    KernelSpec spec = variants[turn % variants.size()];
    if (turn % 3 == 0) spec.lse = schedules::LseOutput::kNone;
    Fp8Case c{.batch = key_length % 3 == 0 && heads.query < 7 ? 2 : 1,
              .query_length = query_length,
              .key_length = key_length,
              .heads = heads.query,
              .key_heads = heads.key,
              .spec = spec,
              // Scores over a wide range move the running reference.
              .spread = turn % 2 == 0 ? 1.5 : 3.0,
              .seed = static_cast<std::uint32_t>(query_length * 1009 + key_length * 7 + heads.query)};
    c.descales = turn % 5 == 0 ? Descales::kOne : Descales::kPerHead;
    ++turn;
    const Fp8Inputs in = make_fp8_inputs(c);
    // One head: all placements, bit for bit. More: one of them, in turn.
    const bool all = heads.query == 1;
    Fp8Output first;
    const auto names = placements(spec.head_dim_qk);
    for (std::size_t p = 0; p < (all ? names.size() : 1); ++p) {
      c.placement = names[all ? p : turn % names.size()];
      const Expected<Fp8Output> output = launch_fp8_case(c, in, strict_device());
      ASSERT_TRUE(output) << describe(c) << "\n" << to_string(output.error());
      EXPECT_TRUE(output->outside_untouched) << describe(c);
      if (p == 0) first = *output;
      EXPECT_EQ(output->o, first.o) << describe(c) << ": the same arithmetic order must give the same bits";
      EXPECT_EQ(lse_bits(*output), lse_bits(first)) << describe(c);
    }
    const auto exact = fp8_error(c, expected_fp8_attention(c, in).value(), first).value();
    EXPECT_LE(exact.relative_rms_percent, kMaxRmsPercent) << describe(c);
    EXPECT_LE(exact.lse_max_abs, kMaxLse) << describe(c);
    const auto rule = fp8_error(c, modelled_attention(c, in).result, first).value();
    EXPECT_LE(rule.relative_rms_percent, query_length < 31 ? kMaxRuleRmsPercentOfFewRows : kMaxRuleRmsPercent)
        << describe(c);
    EXPECT_EQ(exact.mismatched_nan, 0) << describe(c);
    EXPECT_EQ(exact.nonzero_empty, 0) << describe(c);
  }
}

std::string name_of(const testing::TestParamInfo<Fp8Sweep::ParamType>& info) {
  const auto& [mask, heads, length] = info.param;
  return std::string(mask == MaskKind::kCausal ? "causal" : "full") + "_h" + std::to_string(heads.query) + "to" +
         std::to_string(heads.key) + "_sq" + std::to_string(length);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Fp8Sweep,
                         testing::Combine(testing::Values(MaskKind::kFull, MaskKind::kCausal),
                                          testing::Values(Heads{1, 1}, Heads{3, 1}, Heads{7, 1}, Heads{2, 2}),
                                          testing::ValuesIn(kLengths)),
                         name_of);

}  // namespace
}  // namespace zyfa::tests
