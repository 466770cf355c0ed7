#include "tools/accuracy_variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/io/file.h"
#include "tools/cli.h"

namespace zyfa::tools {
namespace {

constexpr std::int64_t kWorkgroupQueries = 256;  // of our mixed kernels, whose waves take the same keys

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::vector<std::string> AccuracyVariant::words() const {
  if (kind != Kind::kFp8) {
    return {kind == Kind::kBf16 ? "bf16" : "peer"};
  }
  std::vector<std::string> words{options.probability == Probability::kLean ? "p=lean" : "p=exact",
                                 options.scaling == BlockScaling::kBlocks ? "blocks" : "unscaled",
                                 options.form == ScoreForm::kFolded ? "form=folded" : "form=fma",
                                 options.scores == ScoreType::kFp8 ? "qk=fp8" : "qk=int8",
                                 options.near_keys == NearKeys::kFp8 ? "near=fp8" : "near=bf16"};
  if (options.row_sum != RowSum::kAuto) {
    words.emplace_back(options.row_sum == RowSum::kDense ? "sum=dense" : "sum=sparse");
  }
  return words;
}

std::string AccuracyVariant::name() const { return fmt::format("{}", fmt::join(words(), ",")); }

std::vector<AccuracyVariant> accuracy_variants(const Fp8Options& common) {
  std::vector<AccuracyVariant> result{{AccuracyVariant::Kind::kBf16, {}}};
  for (const NearKeys near_keys : {NearKeys::kFp8, NearKeys::kBf16}) {
    for (const ScoreType scores : {ScoreType::kFp8, ScoreType::kInt8}) {
      for (const Probability probability : {Probability::kLean, Probability::kExact}) {
        for (const ScoreForm form : {ScoreForm::kFolded, ScoreForm::kMultiplyAdd}) {
          for (const BlockScaling scaling : {BlockScaling::kBlocks, BlockScaling::kNone}) {
            Fp8Options options = common;
            options.probability = probability;
            options.scaling = scaling;
            options.form = form;
            options.scores = scores;
            options.near_keys = near_keys;
            result.push_back({AccuracyVariant::Kind::kFp8, options});
          }
        }
      }
    }
  }
  Fp8Options peer = common;
  peer.form = ScoreForm::kMultiplyAdd;
  result.push_back({AccuracyVariant::Kind::kPeer, peer});
  return result;
}

Expected<std::vector<AccuracyVariant>> filter_variants(const std::vector<AccuracyVariant>& variants,
                                                       const std::vector<std::string>& filters) {
  if (filters.empty()) {
    return variants;
  }
  std::vector<std::string> known;
  for (const AccuracyVariant& variant : variants) {
    for (const std::string& word : variant.words()) {
      if (!has(known, word)) {
        known.push_back(word);
      }
    }
  }
  std::vector<bool> chosen(variants.size());
  for (const std::string& filter : filters) {
    const std::vector<std::string> wanted = comma_words(filter);
    for (const std::string& word : wanted) {
      if (!has(known, word)) {
        return make_error(ErrorCode::kInvalidArgument, fmt::format("no variant has the word {}; words are {}",
                                                                   io::quote(word), fmt::join(known, ", ")));
      }
    }
    bool any = false;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const std::vector<std::string> words = variants[i].words();
      if (std::ranges::all_of(wanted, [&](const std::string& word) { return has(words, word); })) {
        any = chosen[i] = true;
      }
    }
    if (!any) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("no variant has all words of {}: they exclude each other", io::quote(filter)));
    }
  }
  std::vector<AccuracyVariant> result;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (chosen[i]) {
      result.push_back(variants[i]);
    }
  }
  return result;
}

reference::QuantiserOptions quantiser_options(const AccuracyVariant& variant) {
  const Fp8Options& o = variant.options;
  return {
      .rotation = o.rotation == Rotation::kHadamard ? reference::Rotation::kHadamard : reference::Rotation::kNone,
      .scores = o.scores == ScoreType::kInt8 ? reference::CodeType::kInt8 : reference::CodeType::kE4m3,
      .form = o.form == ScoreForm::kFolded ? reference::ScoreForm::kFolded : reference::ScoreForm::kMultiplyAdd,
      .smoothing = o.smoothing == KeySmoothing::kMean ? reference::Smoothing::kMean : reference::Smoothing::kNone,
      .scope = o.scales == ScaleGranularity::kTensor ? reference::ScaleScope::kTensor : reference::ScaleScope::kHead};
}

reference::ProbabilityRule probability_rule(const AccuracyVariant& variant) {
  if (variant.kind == AccuracyVariant::Kind::kPeer) {
    return reference::kPeerRule;
  }
  using Rule = reference::ProbabilityRule;
  const Fp8Options& o = variant.options;
  return {.rounding = o.probability == Probability::kLean ? Rule::Rounding::kLean : Rule::Rounding::kExact,
          .scaling = o.scaling == BlockScaling::kBlocks ? Rule::Scaling::kBlocks : Rule::Scaling::kNone,
          .byte_rounding = o.byte_rounding == ByteRounding::kTruncate ? reference::ByteRounding::kTruncate
                                                                      : reference::ByteRounding::kNearestEven};
}

reference::NearBlocks near_blocks(const AccuracyVariant& variant) {
  if (variant.kind == AccuracyVariant::Kind::kPeer || variant.options.near_keys == NearKeys::kFp8) {
    return {};
  }
  return {.first = true, .diagonal = 2, .queries = kWorkgroupQueries, .even_rest = true};
}

}  // namespace zyfa::tools
