// The parts of 8-bit attention, one file each: setup, loads, matrix, reference, probabilities, finish.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "schedules/attention/forward.h"
#include "schedules/attention/kernel_setup.h"
#include "schedules/attention/operand_tile.h"
#include "schedules/attention/output.h"
#include "schedules/dsl/stage_writer.h"
#include "schedules/select/kernel_spec.h"

namespace zyfa::schedules::fp8 {

inline constexpr std::uint32_t kValueRowBytes = 128;
inline constexpr std::uint32_t kStepDims = 64;  // of the head dim in one 32x32x64 MFMA
inline constexpr std::uint32_t kKeyBlocks = kKeyTile / 32;
// An iteration takes 128 keys, in two blocks of 64, "a" and "b", under one decision about the reference.
inline constexpr std::uint32_t kHalves = kIterationKeys / kKeyTile;

// The largest probability of a block under its exponent lies at most at 2^8, so that e4m3 spends its codes from 2^-6
// up.
inline constexpr float kTopBinades = 8.0F;
// How far codes reach above that: 126 = 448 = 2^8.8 is the last.
inline constexpr float kTopSlack = 0.8F;
// Folded with two paths: the row's reference lies at 2^6, which leaves 2.8 binades in which rows may rise on the near
// path before their reference has to move. Whole binades, so that the maximum itself is a code without error.
inline constexpr float kNearBinades = 6.0F;
// With an exponent in every block the reference is a matter of fp32's range alone.
inline constexpr float kExponentSlack = 4.0F;
// Exponents stay in E8M0's range with room: 2^-119 of the reference is nothing.
inline constexpr float kLeastExponent = -119.0F;
// A folded block takes the far path when a live row's maximum lies below this code: its smaller probabilities would
// meet the codes below 8, which lose accuracy (docs/numerics.md); or so far below that nothing it adds is seen.
inline constexpr float kNearLeastCode = 64.0F;
inline constexpr float kNoReference = -3.0e38F;  // of a row that has seen no key; finite, so that -inf minus it is -inf
inline constexpr std::int32_t kUnitExponent = 127;  // E8M0 code of 1
inline constexpr std::int32_t kIntegerStart =
    0x4b400000;  // 12582912.0F: an int32 accumulator n above it reads 12582912 + n
inline constexpr float kIntegerZero = 12582912.0F;

// key_position is biased so that one signed comparison tells what lies past the end (negative before the bias) from
// what lies below a limit.
inline constexpr std::int32_t kPositionBias = std::numeric_limits<std::int32_t>::min();

struct Variant {
  std::uint32_t head_dim = 128;  // of q and k
  MaskKind mask = MaskKind::kFull;
  LseOutput lse = LseOutput::kNone;
  ElementType scores = ElementType::kFp8E4M3;
  ProbabilityRule probability = ProbabilityRule::kLean;
  BlockExponents exponents = BlockExponents::kUsed;
  ScoreForm form = ScoreForm::kMultiplyAdd;
  ByteRounding rounding = ByteRounding::kNearest;
  RowSum row_sum = RowSum::kSparse;  // not kAuto
  bool near = false;                 // a BF16 loop over the near keys runs first (near.h)

  [[nodiscard]] std::uint32_t steps() const { return head_dim / kStepDims; }
  [[nodiscard]] bool lean() const { return probability == ProbabilityRule::kLean; }
  [[nodiscard]] bool folded() const { return form == ScoreForm::kFolded; }
  [[nodiscard]] bool integer() const { return scores == ElementType::kInt8; }
  // Folded kernels choose at run time; these have an exponent for every block.
  [[nodiscard]] bool always_exponents() const { return exponents == BlockExponents::kUsed && !folded(); }
  [[nodiscard]] bool dense_sum() const { return row_sum == RowSum::kDense; }
  // Of a row-sum product's four result registers, those that hold a part of the lane's query: sparse rows of ones take
  // half of each four keys.
  [[nodiscard]] std::uint16_t product_parts() const { return dense_sum() ? 1 : 2; }
  // Of row_sum: a query's sum alone, or the accumulator of the products.
  [[nodiscard]] std::uint16_t sum_registers() const { return always_exponents() ? 1 : 4; }
  // Those that hold a part of the sum.
  [[nodiscard]] std::uint16_t sum_parts() const { return always_exponents() ? 1 : product_parts(); }
  [[nodiscard]] bool uses_exponents() const { return exponents == BlockExponents::kUsed; }
  // A near path without exponents and a far path with them, chosen at run time.
  [[nodiscard]] bool two_paths() const { return uses_exponents() && folded(); }
  // Units of a binade.
  [[nodiscard]] float units() const { return lean() ? 8.0F : 1.0F; }
  // What stands for a probability of 1 before conversion: the e4m3 code that makes the mean relative error zero
  // (docs/numerics.md), half a code more where conversion truncates; exact: 2^0.
  [[nodiscard]] float one() const {
    constexpr float kUnbiased = 55.543F;
    if (!lean()) return 0.0F;
    return rounding == ByteRounding::kNearest ? kUnbiased : kUnbiased + 0.5F;
  }
  // Of integer scores: up to here the accumulator's start is taken off a score with the reference, which rounds by up
  // to 1.5 scales (12582912 * scale has an ulp of one): 0.05 codes, 0.4%. Above, each score loses it first.
  [[nodiscard]] float widest_scale() const { return units() * 0x1p-8F; }
  // Where a block's largest probability comes out at most under its exponent, in units.
  [[nodiscard]] float top() const { return one() + units() * kTopBinades; }
  // First key of the lowest iteration besides the one at key 0; behind near keys, which are block 0 and the last ones,
  // of the lowest.
  [[nodiscard]] std::uint32_t second_key() const { return near ? kKeyTile : kIterationKeys; }
  // Binades above 1 at which a probability stands whose score is the row's reference.
  [[nodiscard]] float reference_binades() const {
    if (always_exponents()) return 0.0F;
    return two_paths() ? kNearBinades : kTopBinades;
  }
  // The same in units.
  [[nodiscard]] float reference_top() const { return one() + units() * reference_binades(); }
  // How far a block may rise above the reference before that moves, in binades.
  [[nodiscard]] float slack() const {
    return always_exponents() ? kExponentSlack : kTopBinades + kTopSlack - reference_binades();
  }
};

// Name of a tile of one half of an iteration.
[[nodiscard]] inline std::string of_half(std::string_view tile, std::uint32_t half) {
  return std::string(tile) + (half == 0 ? "_a" : "_b");
}

[[nodiscard]] forward::OperandTile key_tile(const Variant& v);
[[nodiscard]] forward::OperandTile value_tile();

SetupRest setup(StageWriter& w, const Variant& v);
void load_keys(StageWriter& w, const Variant& v, std::uint32_t half);
void load_values(StageWriter& w, const Variant& v, std::uint32_t half);
void read_keys(StageWriter& w, const Variant& v, std::uint32_t half);
void read_values(StageWriter& w, const Variant& v, std::uint32_t half);
void scores(StageWriter& w, const Variant& v, std::uint32_t half);
void mask(StageWriter& w, const Variant& v, std::uint32_t half);
void row_maximum(StageWriter& w, const Variant& v);
void move_reference(StageWriter& w, const Variant& v);
void exponents(StageWriter& w, const Variant& v);
void probabilities(StageWriter& w, const Variant& v, std::uint32_t half);
void accumulate(StageWriter& w, const Variant& v, std::uint32_t half);
void sum_half(StageWriter& w, const Variant& v, std::uint32_t half);
void add_sums(StageWriter& w, const Variant& v);
void finish(StageWriter& w, const Variant& v);

// Score form: the state of a row that blocks are measured against, from its reference (in units).
void follow_reference(StageWriter& w, const Variant& v);

// Integer scores: to `to` when the scale is not above widest_scale().
void branch_if_narrow(StageWriter& w, const Variant& v, jit::Label to);

}  // namespace zyfa::schedules::fp8
