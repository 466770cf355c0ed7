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

tl::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  return make_error(ErrorCode::kInvalidArgument, "problem '" + std::string(text) + "': " + std::string(why));
}

struct Parts {
  std::optional<DType> dtype;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> dims;
  std::optional<Mask> mask;
  std::optional<Lse> lse;
};

// Empty on success, else what is wrong with the word.
std::string take_word(std::string_view word, Parts& parts) {
  const auto once = [&]<typename T>(std::optional<T>& part, T value) {
    if (part) return "the word '" + std::string(word) + "' repeats or contradicts an earlier one";
    part = value;
    return std::string();
  };
  if (const auto dtype = value_of(kDTypes, word)) return once(parts.dtype, *dtype);
  if (const auto mask = value_of(kMasks, word)) return once(parts.mask, *mask);
  if (word == "lse") return once(parts.lse, Lse::kWritten);
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
         "'; allowed: bf16, fp16, fp8e4m3, d=N, d=N/M, full, causal, window, lse";
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
  return AttentionProblem{.dtype = *parts.dtype,
                          .head_dim_qk = parts.dims->first,
                          .head_dim_v = parts.dims->second,
                          .mask = parts.mask.value_or(Mask::kFull),
                          .lse = parts.lse.value_or(Lse::kNone)};
}

std::string to_string(const AttentionProblem& problem) {
  std::string text(text_of(kDTypes, problem.dtype));
  text += ",d=" + std::to_string(problem.head_dim_qk);
  if (problem.head_dim_v != problem.head_dim_qk) text += "/" + std::to_string(problem.head_dim_v);
  text += ",";
  text += text_of(kMasks, problem.mask);
  if (problem.lse == Lse::kWritten) text += ",lse";
  return text;
}

}  // namespace zyfa
