// NaN: in q or k it reaches exactly the rows that see it, for every place in a wave, a block and a head dim; in v the
// rows that see the key, and others only of a workgroup that meets the key's block; in bytes out of range nothing (the
// harness fills all of them with NaN).
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/harness.h"
#include "tests/reference/eight_bit.h"

namespace zyfa::tests {
namespace {

using schedules::ElementType;
using schedules::KernelSpec;
using schedules::MaskKind;

constexpr std::uint8_t kNans[] = {0x7f, 0xff};

std::vector<KernelSpec> variants(MaskKind mask) {
  std::vector<KernelSpec> all = fp8_variants(128, mask);
  std::ranges::copy(fp8_variants(192, mask), std::back_inserter(all));
  return all;
}
// int8 has no NaN in q and k.
std::vector<KernelSpec> e4m3_variants(MaskKind mask) {
  std::vector<KernelSpec> all = variants(mask);
  std::erase_if(all, [](const KernelSpec& spec) { return spec.element != ElementType::kFp8E4M3; });
  return all;
}

Fp8Outcome run(Fp8Case c) {
  static const auto device = sim::make_sim_device({.checks = SimChecks::kStrict}).value();
  if (c.placement.empty())
    c.placement = c.spec.near_keys == schedules::NearKeys::kBf16 ? "fp8_near_pingpong" : "fp8_pingpong";
  const Expected<Fp8Outcome> outcome = run_fp8_case(c, *device);
  EXPECT_TRUE(outcome) << describe(c) << "\n" << (outcome ? "" : to_string(outcome.error()));
  return outcome ? *outcome : Fp8Outcome{};
}

void expect_like_fp64(const Fp8Case& c) {
  const Fp8Outcome outcome = run(c);
  EXPECT_EQ(outcome.figures.mismatched_nan, 0) << describe(c) << ": NaN in the rows that see it, and in no other";
  EXPECT_LE(outcome.figures.relative_rms_percent, 4.0) << describe(c);
  EXPECT_LE(outcome.figures.lse_max_abs, 0.09) << describe(c);
}

TEST(Fp8Nan, InAQueryReachesItsRowOnly) {
  std::size_t turn = 0;
  for (const KernelSpec& spec : e4m3_variants(MaskKind::kFull)) {
    for (const std::int64_t row : {0, 37, 99}) {
      Fp8Case c{.query_length = 100, .key_length = 130, .spec = spec};
      const std::uint8_t nan = kNans[++turn % 2];
      c.change = [&](Fp8Inputs& in) { in.q_row(0, row, 0)[turn % 3 == 0 ? in.dim - 1 : 17] = nan; };
      // Negating q must keep it.
      if (turn % 4 == 0) c.softmax_scale = -c.softmax_scale;
      expect_like_fp64(c);
    }
  }
}

TEST(Fp8Nan, InAKeyReachesTheRowsThatSeeIt) {
  std::size_t turn = 0;
  for (const KernelSpec& spec : e4m3_variants(MaskKind::kCausal)) {
    for (const std::int64_t key : {0, 31, 70, 127, 129}) {
      Fp8Case c{.query_length = 100, .key_length = 130, .spec = spec};
      const std::uint8_t nan = kNans[++turn % 2];
      c.change = [&](Fp8Inputs& in) { in.k_row(0, key, 0)[turn % 3 == 0 ? in.dim - 1 : 5] = nan; };
      expect_like_fp64(c);
    }
  }
}

// Mixed precision: a key of the BF16 loop for all rows (5), for some (200, 330: the diagonal block) and the 8-bit loop
// for the rest; and a query.
TEST(Fp8Nan, BeforeAndInTheLoopBehindNearKeys) {
  for (KernelSpec spec : e4m3_variants(MaskKind::kCausal)) {
    spec.near_keys = schedules::NearKeys::kBf16;
    for (const std::int64_t token : {5, 200, 330}) {
      Fp8Case c{.query_length = 400, .key_length = 400, .spec = spec};
      c.change = [&](Fp8Inputs& in) { in.k_row(0, token, 0)[7] = 0x7f; };
      expect_like_fp64(c);
      c.change = [&](Fp8Inputs& in) { in.q_row(0, token, 0)[7] = 0x7f; };
      expect_like_fp64(c);
    }
  }
}

// Mixed precision, where no key is left for the 8-bit loop: what a scale of the codes is does not matter, also where
// the placement starts on keys past the end.
TEST(Fp8Nan, InADescaleThatNoKeyMeets) {
  for (KernelSpec spec : variants(MaskKind::kCausal)) {
    if (spec.form == schedules::ScoreForm::kFolded) continue;  // its descales are the quantiser's
    spec.near_keys = schedules::NearKeys::kBf16;
    Fp8Case c{.query_length = 33, .key_length = 64, .spec = spec};
    c.change = [](Fp8Inputs& in) { in.k_descale.assign(in.k_descale.size(), std::numeric_limits<float>::quiet_NaN()); };
    for (const char* placement : {"fp8_near_naive", "fp8_near_pingpong"}) {
      c.placement = placement;
      const Fp8Outcome outcome = run(c);
      ASSERT_FALSE(outcome.lse.empty()) << describe(c);
      for (const float lse : outcome.lse) EXPECT_TRUE(std::isfinite(lse)) << describe(c);
      for (const std::uint16_t o : outcome.o) EXPECT_TRUE(std::isfinite(reference::bf16_to_double(o))) << describe(c);
    }
  }
}

// A NaN key in every row's reach, at any place of the block, must not be lost by the maximum. The places go round over
// the variants.
TEST(Fp8Nan, NoPlaceInABlockLosesIt) {
  std::int64_t turn = 0;
  for (const KernelSpec& spec : e4m3_variants(MaskKind::kFull)) {
    for (std::int64_t key = turn++ % 6; key < 64; key += 6) {
      Fp8Case c{.query_length = 3, .key_length = 65, .spec = spec};
      c.change = [&](Fp8Inputs& in) { in.k_row(0, key, 0)[64] = 0x7f; };
      const Fp8Outcome outcome = run(c);
      EXPECT_EQ(outcome.figures.mismatched_nan, 0) << describe(c) << " key " << key;
      EXPECT_TRUE(std::isnan(outcome.lse[0])) << describe(c) << " key " << key;
    }
  }
}

// A descale that is NaN makes all rows of its heads NaN, and none of another head.
TEST(Fp8Nan, InADescale) {
  for (const KernelSpec& spec : variants(MaskKind::kFull)) {
    for (const int which : {0, 1, 2}) {
      Fp8Case c{.batch = 2, .query_length = 33, .key_length = 70, .heads = 4, .key_heads = 2, .spec = spec};
      c.change = [&](Fp8Inputs& in) {
        std::vector<float>& descales = which == 0 ? in.q_descale : which == 1 ? in.k_descale : in.v_descale;
        descales[2] = std::numeric_limits<float>::quiet_NaN();
      };
      expect_like_fp64(c);
    }
  }
}

TEST(Fp8Nan, InAValueReachesEveryRowThatSeesIt) {
  for (const KernelSpec& spec : variants(MaskKind::kFull)) {
    for (const std::int64_t key : {3, 69}) {
      Fp8Case c{.query_length = 40, .key_length = 70, .spec = spec};
      c.change = [&](Fp8Inputs& in) { in.v_row(0, key, 0)[17] = 0x7f; };
      expect_like_fp64(c);  // dim 17 of every row, and LSE of none
    }
  }
}

// Causal: key 300 is out of range of the workgroup of rows 0 to 255 and in range of the next.
TEST(Fp8Nan, InAValueStaysInWorkgroupsThatMeetItsBlock) {
  for (const KernelSpec& spec : variants(MaskKind::kCausal)) {
    Fp8Case c{.query_length = 400, .key_length = 400, .spec = spec};
    c.change = [&](Fp8Inputs& in) { std::fill_n(in.v_row(0, 300, 0), 128, std::uint8_t{0x7f}); };
    const Fp8Outcome outcome = run(c);
    for (std::size_t i = 0; i < 400; ++i) {
      const bool nan = std::isnan(reference::bf16_to_double(outcome.o[i * 128 + 9]));
      EXPECT_TRUE(i < 256 ? !nan : i < 300 || nan) << describe(c) << " row " << i;
      EXPECT_FALSE(std::isnan(outcome.lse[i])) << describe(c) << " row " << i;
    }
  }
}

// A masked NaN key shares its block with the last live one: key 64 of 65 is seen by the last row alone.
TEST(Fp8Nan, InAKeyBehindTheDiagonal) {
  for (const KernelSpec& spec : e4m3_variants(MaskKind::kCausal)) {
    Fp8Case c{.query_length = 65, .key_length = 65, .spec = spec};
    c.change = [](Fp8Inputs& in) { std::fill_n(in.k_row(0, 64, 0), in.dim, std::uint8_t{0xff}); };
    const Fp8Outcome outcome = run(c);
    EXPECT_EQ(outcome.figures.mismatched_nan, 0) << describe(c);
    EXPECT_TRUE(std::isnan(outcome.lse[64])) << describe(c);
  }
}

}  // namespace
}  // namespace zyfa::tests
