// Everything that fixes the machine code of one kernel: family, types, shapes that are compile-time, and the placement.
// Pure data; no DSL, no LLVM. runtime/ makes one from a problem by select(); schedules/ turns one into a listing.
#pragma once

#include <cstdint>
#include <string>

namespace zyfa::schedules {

// kQuantiseStatistics reads BF16 q, k or v and writes partial maxima (and sums); kQuantise turns them into 8-bit codes.
enum class Family : std::uint8_t { kAttentionForward, kQuantiseStatistics, kQuantise };
enum class ElementType : std::uint8_t { kBf16, kFp8E4M3, kInt8 };
enum class MaskKind : std::uint8_t { kFull, kCausal };
enum class LseOutput : std::uint8_t { kNone, kWritten };

// FP8 attention (zyfa/problem.h tells what each means).
enum class ProbabilityRule : std::uint8_t { kLean, kExact };
enum class BlockExponents : std::uint8_t { kUsed, kNone };
enum class ScoreForm : std::uint8_t { kMultiplyAdd, kFolded };
enum class NearKeys : std::uint8_t { kSame, kBf16 };
// The matrix product that adds up the rounded P; kAuto: usual_row_sum().
enum class RowSum : std::uint8_t { kAuto, kSparse, kDense };
enum class ByteRounding : std::uint8_t { kNearest, kTruncate };

// Quantisation.
enum class Operand : std::uint8_t { kQuery, kKey, kValue };
enum class Rotation : std::uint8_t { kNone, kHadamard };
enum class Smoothing : std::uint8_t { kNone, kMean };
enum class ScaleScope : std::uint8_t { kHead, kTensor };

struct KernelSpec {
  Family family = Family::kAttentionForward;
  // Attention: of K and Q as the matrix unit takes them (V and P are e4m3 for both 8-bit types). Quantise: of the codes
  // written.
  ElementType element = ElementType::kBf16;
  std::uint32_t head_dim_qk = 128, head_dim_v = 128;  // quantise: head_dim_qk alone, of the operand
  MaskKind mask = MaskKind::kFull;
  LseOutput lse = LseOutput::kNone;
  // 8-bit attention; defaults elsewhere.
  ProbabilityRule probability = ProbabilityRule::kLean;
  BlockExponents block_exponents = BlockExponents::kUsed;
  ScoreForm form = ScoreForm::kMultiplyAdd;
  NearKeys near_keys = NearKeys::kSame;
  RowSum row_sum = RowSum::kAuto;
  ByteRounding byte_rounding = ByteRounding::kNearest;
  // Quantise families; defaults elsewhere.
  Operand operand = Operand::kQuery;
  Rotation rotation = Rotation::kNone;
  Smoothing smoothing = Smoothing::kNone;
  ScaleScope scales = ScaleScope::kHead;
  ScoreForm feeds = ScoreForm::kMultiplyAdd;  // form of the attention kernel the codes are for: folded fixes Q's scale
  std::string placement = {};                 // canonical text form (placement.h)
  bool operator==(const KernelSpec&) const = default;
};

// Dense where each block is summed by itself, since a sparse product adds to what its result held and needs that
// cleared; sparse where sums accumulate, in half the cycles.
[[nodiscard]] constexpr RowSum usual_row_sum(const KernelSpec& spec) {
  const bool by_block = spec.block_exponents == BlockExponents::kUsed && spec.form == ScoreForm::kMultiplyAdd;
  return by_block ? RowSum::kDense : RowSum::kSparse;
}

// Never kAuto.
[[nodiscard]] constexpr RowSum row_sum_of(const KernelSpec& spec) {
  return spec.row_sum == RowSum::kAuto ? usual_row_sum(spec) : spec.row_sum;
}

}  // namespace zyfa::schedules
