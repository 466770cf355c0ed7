// Attention in double precision but for the rounding of its probabilities: a model of each rule of docs/numerics.md, so
// that a rule's error is known without any kernel. Scores, sums and products are not rounded.
//
// Scores x = (q . k) * softmax_scale * log2(e). Keys are taken in blocks of 64 from key 0. With R the row's reference
// and e the block's exponent, the probability is 2^e * round(2^(x - R - e)); the output is divided by the row sum.
//   kBlocks: e = ceil(block maximum - R - 8)      kNone: e = -8 for the whole row: its largest probability rounds at
//   2^8 Lean:    e4m3 code = round(8 (x - R - e) + constant), at least 0 Exact:   nearest e4m3 of 2^(x - R - e)
// near keys are taken from unquantised inputs, their probabilities rounded to BF16 and summed before that rounding, as
// the BF16 kernel does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/reference/attention.h"
#include "tests/reference/eight_bit.h"

namespace zyfa::reference {

// Mean relative error 0 over a binade (docs/numerics.md derives it), and the smallest largest error.
inline constexpr double kLeanConstant = 55.543;
inline constexpr double kLeanMinimaxConstant = 55.63;

// Relative errors of Lean codes over the normal range (codes 8 to 126), against 2^x.
struct LeanError {
  double least = 0, largest = 0;  // signed
  double mean = 0, rms = 0;       // x uniform over a binade
};
// By quadrature over one binade: the error has period 1 in x. `constant` lies in (55, 56).
[[nodiscard]] LeanError lean_error(double constant);
// The same of rounding 2^x to the nearest e4m3.
[[nodiscard]] LeanError exact_error();
// Largest relative error of a code: the two ends of the x that give it.
[[nodiscard]] double lean_code_error(std::uint8_t code, double constant);

struct ProbabilityRule {
  enum class Rounding { kNone, kLean, kExact };
  enum class Scaling { kBlocks, kNone };
  // The row maximum as it is, or rounded down to an integer, which makes block exponents those of absolute scores.
  enum class Reference { kRowMaximum, kInteger };
  enum class RowSum { kRounded, kUnrounded };

  Rounding rounding = Rounding::kLean;
  Scaling scaling = Scaling::kBlocks;
  double constant = kLeanConstant;
  ByteRounding byte_rounding = ByteRounding::kNearestEven;  // truncation adds 0.5 before it
  Reference reference = Reference::kRowMaximum;
  RowSum row_sum = RowSum::kRounded;
  int top = 8;  // binades of e4m3 above 1 that the largest probability reaches
};

// P in [0, 1] relative to the final row maximum, rounded to e4m3, and the sum of what was not rounded.
inline constexpr ProbabilityRule kPeerRule = {.rounding = ProbabilityRule::Rounding::kExact,
                                              .scaling = ProbabilityRule::Scaling::kNone,
                                              .row_sum = ProbabilityRule::RowSum::kUnrounded,
                                              .top = 0};

// Which 64-key blocks come from the unquantised inputs: the first block, and under the causal mask, for each `queries`
// queries, all from `diagonal` - 1 blocks before the one that holds the last key that the first of them sees.
struct NearBlocks {
  bool first = false;
  int diagonal = 0;           // 0: none
  std::int64_t queries = 32;  // a multiple of 32
  // With `first`: one block more where the others would be an odd number: the last of them.
  bool even_rest = false;
};

// Rounded attention over `inputs`, in rows of doubles (dequantised codes). `near_inputs` has the same shapes, not
// looked at unless `near` asks for blocks. One result a rule. Errors as attention().
[[nodiscard]] Expected<std::vector<AttentionResult>> rounded_attention(const DoubleCase& inputs,
                                                                       std::span<const ProbabilityRule> rules,
                                                                       NearBlocks near = {},
                                                                       const AttentionCase* near_inputs = nullptr,
                                                                       unsigned threads = 0);

}  // namespace zyfa::reference
