// The text form of a problem.
#include "zyfa/problem.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace zyfa {
namespace {

constexpr std::uint32_t kMaxHeadDim = 65536;  // keeps the text form sane; supports() decides what has a kernel

template <typename Enum>
struct Word {
  std::string_view text;
  Enum value;
};
constexpr Word<DType> kDTypes[] = {{"bf16", DType::kBf16}, {"fp16", DType::kFp16}, {"fp8e4m3", DType::kFp8E4M3}};
constexpr Word<Mask> kMasks[] = {{"full", Mask::kFull}, {"causal", Mask::kCausal}, {"window", Mask::kWindow}};
constexpr Word<Lse> kLse[] = {{"lse", Lse::kWritten}};
constexpr Word<Compute> kComputes[] = {{"compute=fp8", Compute::kFp8}};
constexpr Word<SequenceLength> kLengths[] = {{"length=long", SequenceLength::kLong},
                                             {"length=short", SequenceLength::kShort}};
constexpr Word<Probability> kProbabilities[] = {{"p=lean", Probability::kLean}, {"p=exact", Probability::kExact}};
constexpr Word<BlockScaling> kScalings[] = {{"blocks", BlockScaling::kBlocks}, {"unscaled", BlockScaling::kNone}};
constexpr Word<ScoreForm> kForms[] = {{"form=folded", ScoreForm::kFolded}, {"form=fma", ScoreForm::kMultiplyAdd}};
constexpr Word<ScoreType> kScoreTypes[] = {{"qk=fp8", ScoreType::kFp8}, {"qk=int8", ScoreType::kInt8}};
constexpr Word<NearKeys> kNearKeys[] = {{"near=fp8", NearKeys::kFp8}, {"near=bf16", NearKeys::kBf16}};
constexpr Word<RowSum> kRowSums[] = {
    {"sum=auto", RowSum::kAuto}, {"sum=sparse", RowSum::kSparse}, {"sum=dense", RowSum::kDense}};
constexpr Word<Rotation> kRotations[] = {{"rotate", Rotation::kHadamard}, {"no-rotate", Rotation::kNone}};
constexpr Word<KeySmoothing> kSmoothings[] = {{"smooth-k", KeySmoothing::kMean}};
constexpr Word<ScaleGranularity> kScales[] = {{"scales=head", ScaleGranularity::kHead},
                                              {"scales=tensor", ScaleGranularity::kTensor}};
constexpr Word<ByteRounding> kByteRoundings[] = {{"u8=nearest", ByteRounding::kNearest},
                                                 {"u8=truncate", ByteRounding::kTruncate}};

template <typename Enum, std::size_t n>
std::optional<Enum> value_of(const Word<Enum> (&words)[n], std::string_view text) {
  for (const auto& word : words) {
    if (word.text == text) return word.value;
  }
  return std::nullopt;
}

template <typename Enum, std::size_t n>
std::string_view text_of(const Word<Enum> (&words)[n], Enum value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  return "unknown";
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::uint32_t> head_dim(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > kMaxHeadDim) {
    return std::nullopt;
  }
  return value;
}

tl::unexpected<Error> refuse(std::string_view text, std::string_view why,
                             ErrorCode code = ErrorCode::kInvalidArgument) {
  return make_error(code, "problem '" + std::string(text) + "': " + std::string(why));
}

struct Parts {
  std::optional<DType> dtype;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> dims;
  std::optional<Mask> mask;
  std::optional<Lse> lse;
  std::optional<Compute> compute;
  std::optional<SequenceLength> length;
  std::optional<Probability> probability;
  std::optional<BlockScaling> scaling;
  std::optional<ScoreForm> form;
  std::optional<ScoreType> scores;
  std::optional<NearKeys> near_keys;
  std::optional<RowSum> row_sum;
  std::optional<Rotation> rotation;
  std::optional<KeySmoothing> smoothing;
  std::optional<ScaleGranularity> scales;
  std::optional<ByteRounding> byte_rounding;
  std::string_view fp8_word;  // the first option of FP8, for messages
};

// Empty on success, else what is wrong with the word.
std::string take_word(std::string_view word, Parts& parts) {
  const auto once = [&]<typename T>(std::optional<T>& part, T value) {
    if (part) return "the word '" + std::string(word) + "' repeats or contradicts an earlier one";
    part = value;
    return std::string();
  };
  std::optional<std::string> outcome;
  const auto offer = [&](const auto& words, auto& part) {
    if (outcome) return false;
    if (const auto value = value_of(words, word)) outcome = once(part, *value);
    return outcome.has_value();
  };
  offer(kDTypes, parts.dtype);
  offer(kMasks, parts.mask);
  offer(kLse, parts.lse);
  offer(kComputes, parts.compute);
  offer(kLengths, parts.length);
  if (offer(kProbabilities, parts.probability) || offer(kScalings, parts.scaling) || offer(kForms, parts.form) ||
      offer(kScoreTypes, parts.scores) || offer(kNearKeys, parts.near_keys) || offer(kRowSums, parts.row_sum) ||
      offer(kRotations, parts.rotation) || offer(kSmoothings, parts.smoothing) || offer(kScales, parts.scales) ||
      offer(kByteRoundings, parts.byte_rounding)) {
    if (parts.fp8_word.empty()) parts.fp8_word = word;
  }
  if (outcome) return *outcome;
  if (word.starts_with("d=")) {
    const std::string_view dims = word.substr(2);
    const auto slash = dims.find('/');
    const auto qk = head_dim(dims.substr(0, slash));
    const auto v = slash == std::string_view::npos ? qk : head_dim(dims.substr(slash + 1));
    if (!qk || !v) {
      return "'" + std::string(word) + "' is no head dim; write d=N or d=N/M with 1 to " + std::to_string(kMaxHeadDim);
    }
    return once(parts.dims, std::pair(*qk, *v));
  }
  return "unknown word '" + std::string(word) +
         "'; allowed: bf16, fp16, fp8e4m3, d=N, d=N/M, full, causal, window, lse, compute=fp8, length=long, "
         "length=short, and for FP8 p=lean, p=exact, blocks, unscaled, form=folded, form=fma, qk=fp8, qk=int8, "
         "near=fp8, near=bf16, sum=auto, sum=sparse, sum=dense, rotate, no-rotate, "
         "smooth-k, scales=head, scales=tensor, u8=nearest, u8=truncate";
}

}  // namespace

Expected<AttentionProblem> parse_problem(std::string_view text) {
  Parts parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (std::string wrong = take_word(trim(text.substr(at, comma - at)), parts); !wrong.empty()) {
      return refuse(text, wrong);
    }
    at = comma + 1;
  }
  if (!parts.dtype) return refuse(text, "the element type is missing; add bf16, fp16 or fp8e4m3");
  if (!parts.dims) return refuse(text, "the head dim is missing; add d=N or d=N/M");
  const Fp8Options defaults;
  AttentionProblem problem{.dtype = *parts.dtype,
                           .head_dim_qk = parts.dims->first,
                           .head_dim_v = parts.dims->second,
                           .mask = parts.mask.value_or(Mask::kFull),
                           .lse = parts.lse.value_or(Lse::kNone),
                           .compute = parts.compute.value_or(Compute::kInput),
                           .fp8 = {.probability = parts.probability.value_or(defaults.probability),
                                   .scaling = parts.scaling.value_or(defaults.scaling),
                                   .form = parts.form.value_or(defaults.form),
                                   .scores = parts.scores.value_or(defaults.scores),
                                   .near_keys = parts.near_keys.value_or(defaults.near_keys),
                                   .row_sum = parts.row_sum.value_or(defaults.row_sum),
                                   .rotation = parts.rotation.value_or(defaults.rotation),
                                   .smoothing = parts.smoothing.value_or(defaults.smoothing),
                                   .scales = parts.scales.value_or(defaults.scales),
                                   .byte_rounding = parts.byte_rounding.value_or(defaults.byte_rounding)},
                           .length = parts.length.value_or(SequenceLength::kLong)};
  // Such words would leave no trace in the problem, so supports() could not tell of them, as it does of the others.
  const bool fp8 = problem.dtype == DType::kFp8E4M3 || problem.compute == Compute::kFp8;
  if (!fp8 && !parts.fp8_word.empty() && problem.fp8 == defaults) {
    return refuse(
        text,
        "the word '" + std::string(parts.fp8_word) + "' is for FP8; use it with fp8e4m3, or with bf16 and compute=fp8",
        ErrorCode::kUnsupported);
  }
  return problem;
}

std::string to_string(const AttentionProblem& problem) {
  std::string text(text_of(kDTypes, problem.dtype));
  text += ",d=" + std::to_string(problem.head_dim_qk);
  if (problem.head_dim_v != problem.head_dim_qk) text += "/" + std::to_string(problem.head_dim_v);
  text += ",";
  text += text_of(kMasks, problem.mask);
  const auto add = [&text](const auto& words, auto value, auto usual) {
    if (value != usual) text.append(",").append(text_of(words, value));
  };
  const Fp8Options &fp8 = problem.fp8, usual;
  add(kLse, problem.lse, Lse::kNone);
  add(kComputes, problem.compute, Compute::kInput);
  add(kLengths, problem.length, SequenceLength::kLong);
  add(kProbabilities, fp8.probability, usual.probability);
  add(kScalings, fp8.scaling, usual.scaling);
  add(kForms, fp8.form, usual.form);
  add(kScoreTypes, fp8.scores, usual.scores);
  add(kNearKeys, fp8.near_keys, usual.near_keys);
  add(kRowSums, fp8.row_sum, usual.row_sum);
  add(kRotations, fp8.rotation, usual.rotation);
  add(kSmoothings, fp8.smoothing, usual.smoothing);
  add(kScales, fp8.scales, usual.scales);
  add(kByteRoundings, fp8.byte_rounding, usual.byte_rounding);
  return text;
}

}  // namespace zyfa
