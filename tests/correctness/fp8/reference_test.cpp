// The running reference of a row: inputs that move it on every block, or for one row of a wave only, against the model
// and fp64; and whatever the scores, no probability code above 126 (448) is ever formed, since 127 is NaN and 128 and
// more are negative.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "runtime/sim/sim_device.h"
#include "tests/correctness/fp8/code_watch.h"
#include "tests/correctness/fp8/model.h"

namespace zyfa::tests {
namespace {

using schedules::ElementType;
using schedules::KernelSpec;

constexpr std::int64_t kTile = 128;  // keys under one decision

std::uint8_t code_of(double value, ElementType element) {
  return element == ElementType::kInt8 ? static_cast<std::uint8_t>(reference::double_to_int8(value))
                                       : reference::double_to_e4m3(value);
}

// Which rows a rise concerns.
enum class Rising { kEveryRow, kOneRow };

// Key j scores `sixteenths` / 16 binades for a rising row, exactly in every variant: raw scores are sixteenths, sums of
// 8 * parts within +-16 and a fine part; int8 spends 32 steps a sixteenth, since its scores lose digits where a step is
// a large part of a code (docs/numerics.md). Other rows score 0 throughout.
struct Scores {
  std::vector<int> sixteenths = {};  // of key j
  Rising rising = Rising::kEveryRow;
  std::int64_t row = 5;  // kOneRow
  bool int8 = false;
  static constexpr int kDims = 32;

  Fp8Case make(const KernelSpec& spec) const {
    Fp8Case c{.query_length = 40, .key_length = static_cast<std::int64_t>(sixteenths.size()), .spec = spec};
    c.descales = Descales::kNone;
    c.softmax_scale = static_cast<float>(std::numbers::ln2 / (int8 ? 512 : 16));
    c.change = [*this](Fp8Inputs& in) {
      const ElementType element = int8 ? ElementType::kInt8 : ElementType::kFp8E4M3;
      std::ranges::fill(in.q, std::uint8_t{0});
      std::ranges::fill(in.k, std::uint8_t{0});
      for (std::int64_t i = 0; i < in.query_length; ++i) {
        if (rising == Rising::kOneRow && i != row) continue;
        for (int d = 0; d < kDims; ++d)
          in.q_row(0, i, 0)[d] = code_of((d < kDims - 1 ? 8 : 1) * (int8 ? 8 : 1), element);
      }
      for (std::int64_t j = 0; j < in.key_length; ++j) {
        int left = sixteenths[static_cast<std::size_t>(j)];
        const int fine = ((left % 8) + 8) % 8;
        left = (left - fine) / 8;
        std::uint8_t* key = in.k_row(0, j, 0);
        for (int d = 0; d < kDims - 1; ++d) {
          const int part = std::clamp(left, -16, 16);
          key[d] = code_of(part * (int8 ? 4 : 1), element);
          left -= part;
        }
        ASSERT_EQ(left, 0) << "the score does not fit the dims";
        key[kDims - 1] = code_of(fine * (int8 ? 4 : 1), element);
      }
    };
    return c;
  }
};

std::vector<KernelSpec> all_variants() {
  std::vector<KernelSpec> all = fp8_variants(128, schedules::MaskKind::kFull);
  std::ranges::copy(fp8_variants(192, schedules::MaskKind::kFull), std::back_inserter(all));
  return all;
}

struct Checked {
  WatchedCodes codes;
  ModelledAttention model;
};

constexpr double kMaxModelRmsPercent = 0.35;  // O to BF16 is 0.165%
constexpr double kMaxRmsPercent = 8.0;        // a Lean code alone, the worst

Checked check(const Fp8Case& from, const char* placement) {
  Checked checked;
  Fp8Case c = from;
  c.placement = placement;
  const auto device = sim::make_sim_device({.checks = SimChecks::kStrict}).value();
  SimOptions options = device->options();
  options.watches = watch_codes(checked.codes, WatchValues::kCodes);
  EXPECT_TRUE(device->set_options(options));
  const Fp8Inputs in = make_fp8_inputs(c);
  const Expected<Fp8Output> output = launch_fp8_case(c, in, *device);
  EXPECT_TRUE(output) << describe(c) << "\n" << (output ? "" : to_string(output.error()));
  if (!output) return checked;
  checked.model = modelled_attention(c, in);
  const auto rule = fp8_error(c, checked.model.result, *output).value();
  EXPECT_LE(rule.relative_rms_percent, kMaxModelRmsPercent) << describe(c);
  const auto exact = fp8_error(c, expected_fp8_attention(c, in).value(), *output).value();
  EXPECT_LE(exact.relative_rms_percent, kMaxRmsPercent) << describe(c);
  EXPECT_LE(exact.lse_max_abs, 0.09) << describe(c);
  EXPECT_EQ(exact.mismatched_nan, 0) << describe(c);
  EXPECT_GT(checked.codes.total(), 0U) << describe(c);
  EXPECT_LE(checked.codes.largest(), 126) << describe(c);
  return checked;
}

Fp8Case make(Scores scores, const KernelSpec& spec) {
  scores.int8 = spec.element == ElementType::kInt8;
  return scores.make(spec);
}

// When a tile is visited: the first one first, then from the last to the second (schedules/attention/fp8.h).
int visit(int tile, int tiles) { return tile == 0 ? 0 : tiles - tile; }

// The code of a probability whose score is the reference: at 2^6 where a near path leaves room above it, else at 2^8.
int code_of_reference(const KernelSpec& spec) {
  const bool two_paths =
      spec.form == schedules::ScoreForm::kFolded && spec.block_exponents == schedules::BlockExponents::kUsed;
  return two_paths ? 103 : 119;
}

// 8 tiles whose maxima, as they are visited, rise by almost 9 binades, and by a little over 4: always more than the
// window. (Whole binades are left to the rounding of the scale.)
TEST(Fp8Reference, MovesOnEveryTile) {
  constexpr int kTiles = 8;
  for (const KernelSpec& spec : all_variants()) {
    for (const int rise : {143, 66}) {
      for (const Rising rising : {Rising::kEveryRow, Rising::kOneRow}) {
        Scores scores{.rising = rising};
        for (int j = 0; j < kTiles * kTile; ++j) {
          // The last key of a tile tops it, the others lie up to 4 binades below.
          scores.sixteenths.push_back(rise * visit(j / kTile, kTiles) - (j % kTile == kTile - 1 ? 0 : 1 + j * 37 % 64));
        }
        const Fp8Case c = make(scores, spec);
        const Checked checked = check(c, "fp8_pingpong");
        // Queries 0..31 and 32..39, which only rise when every row does.
        EXPECT_EQ(checked.model.moves, (kTiles - 1) * (rising == Rising::kEveryRow ? 2 : 1)) << describe(c);
        EXPECT_GE(checked.codes.largest(), code_of_reference(spec)) << describe(c);
      }
    }
  }
}

// Maxima just inside and outside of the windows of 0.8, 2.8 and 4 binades, and around 8.
TEST(Fp8Reference, EdgesOfTheWindow) {
  int highest = 0;
  for (const KernelSpec& spec : all_variants()) {
    for (const int rise : {12, 13, 44, 45, 63, 65, 127, 128, 129}) {
      Scores scores{.rising = Rising::kEveryRow};
      for (int j = 0; j < 3 * kTile; ++j) {
        const int at = visit(j / kTile, 3);
        scores.sixteenths.push_back(at == 0 ? -(j % 5) : at == 1 ? rise - j % 7 : rise - j % 90);
      }
      const Fp8Case c = make(scores, spec);
      const Checked checked = check(c, "fp8_pingpong");
      highest = std::max(highest, checked.codes.largest());
    }
  }
  EXPECT_GE(highest, 125) << "the window must have been used";
}

// Maxima that walk at random, in steps that fall on both sides of every window, and random scores within the block.
TEST(Fp8Reference, RandomWalks) {
  std::mt19937 random(17);
  for (const KernelSpec& spec : all_variants()) {
    for (const Rising rising : {Rising::kEveryRow, Rising::kOneRow}) {
      Scores scores{.rising = rising, .row = static_cast<std::int64_t>(random() % 32)};
      int level = 0;
      for (int block = 0; block < 12; ++block) {
        level += static_cast<int>(random() % 230) - 70;
        level = std::clamp(level, -1500, 1500);
        for (int j = 0; j < kTile / 2; ++j) scores.sixteenths.push_back(level - static_cast<int>(random() % 200));
      }
      check(make(scores, spec), "fp8_naive");
    }
  }
}

// Gaussian scores of several spreads, up to where the softmax is an argmax.
TEST(Fp8Reference, NoCodeAbove126OfRandomScores) {
  for (const KernelSpec& spec : all_variants()) {
    for (const double spread : {0.5, 3.0, 30.0}) {
      Fp8Case c{.query_length = 40, .key_length = 500, .spec = spec};
      c.spread = spread;
      const Checked checked = check(c, "fp8_pingpong");
      EXPECT_GE(checked.codes.largest(), code_of_reference(spec)) << describe(c);
    }
  }
}

}  // namespace
}  // namespace zyfa::tests
