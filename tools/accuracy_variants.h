// The variants that `zyfa-jit accuracy` compares: every combination of the FP8 options that change numbers, BF16, and
// the rule of peer kernels, which only the host model computes.
#pragma once

#include <string>
#include <vector>

#include "tests/reference/probability.h"
#include "tests/reference/quantise.h"
#include "zyfa/problem.h"

namespace zyfa::tools {

struct AccuracyVariant {
  enum class Kind { kBf16, kFp8, kPeer };

  Kind kind = Kind::kFp8;
  Fp8Options options = {};  // kFp8: the form is never kAuto. kPeer: those of the quantiser count

  // "bf16", "peer", or the words of the five options: "p=lean,blocks,form=folded,qk=fp8,near=fp8".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::vector<std::string> words() const;
};

// bf16, all 32 combinations of p, blocks, form, qk and near with the other options of `common`, and peer.
[[nodiscard]] std::vector<AccuracyVariant> accuracy_variants(const Fp8Options& common);

// Those that have all words of at least one filter, a comma-separated list; all when there is no filter.
// kInvalidArgument: a word that no variant has, or a filter that leaves none.
[[nodiscard]] Expected<std::vector<AccuracyVariant>> filter_variants(const std::vector<AccuracyVariant>& variants,
                                                                     const std::vector<std::string>& filters);

// What the host quantiser and the host model do for an FP8 variant.
[[nodiscard]] reference::QuantiserOptions quantiser_options(const AccuracyVariant& variant);
[[nodiscard]] reference::ProbabilityRule probability_rule(const AccuracyVariant& variant);
// BF16 for the first 64 keys, those of a workgroup's diagonal, and the 64 before. The BF16 loop leaves the row maximum
// as the reference.
[[nodiscard]] reference::NearBlocks near_blocks(const AccuracyVariant& variant);

}  // namespace zyfa::tools
