// supports(): every reason why a problem has no kernel. What problem.h rules out is told here; what merely has no
// kernel in this version is told by the rows of the table.
#include <algorithm>
#include <functional>

#include "runtime/kernel_choice.h"

namespace zyfa {
namespace {

using schedules::ElementType;
using schedules::Family;
using schedules::KernelSpec;
using schedules::OneOf;
using schedules::Row;

std::string word(DType dtype) {
  const std::string text = to_string(AttentionProblem{.dtype = dtype});
  return text.substr(0, text.find(','));
}

std::string word(Mask mask) {
  const std::string text = to_string(AttentionProblem{.mask = mask});
  return text.substr(text.rfind(',') + 1);
}

class Checker {
 public:
  Checker(const AttentionProblem& problem, std::span<const Row> table)
      : problem_(problem), options_(problem.fp8), spec_(spec_of(problem)) {
    for (const Row& row : table) {
      if (row.use == schedules::RowUse::kSelected) rows_.push_back(&row);
    }
  }

  Support check() && {
    check_types();
    check_dim("head_dim_qk", problem_.head_dim_qk, &Row::head_dim_qk);
    check_dim("head_dim_v", problem_.head_dim_v, &Row::head_dim_v);
    if (problem_.mask == Mask::kWindow) {
      reject("mask " + word(problem_.mask) + " is not supported; supported: full, causal");
    }
    check_scope();
    check_combinations();
    check_option("p", spec_.probability, &Row::probability);
    check_option("block exponents", spec_.block_exponents, &Row::block_exponents);
    check_option("form", spec_.form, &Row::form);
    check_option("near keys", spec_.near_keys, &Row::near_keys);
    if (support_.reasons.empty() && std::ranges::none_of(rows_, [&](const Row* row) {
          return row->mismatch(spec_, length_of(problem_)).empty();
        })) {
      reject("each value is supported, but not this combination of them");
    }
    return std::move(support_);
  }

 private:
  void reject(std::string reason) { support_.reasons.push_back(std::move(reason)); }

  [[nodiscard]] bool has_element(ElementType element) const {
    return std::ranges::any_of(
        rows_, [&](const Row* row) { return row->family == Family::kAttentionForward && row->element.takes(element); });
  }

  // Rows for the problem's element type; all attention rows when it has none.
  [[nodiscard]] std::vector<const Row*> candidates() const {
    const bool known = problem_.dtype != DType::kFp16 && has_element(spec_.element);
    std::vector<const Row*> result;
    for (const Row* row : rows_) {
      if (row->family == Family::kAttentionForward && (!known || row->element.takes(spec_.element))) {
        result.push_back(row);
      }
    }
    return result;
  }

  void check_types() {
    const bool fp8 = has_element(ElementType::kFp8E4M3);
    if (problem_.dtype == DType::kFp16 || (problem_.dtype == DType::kFp8E4M3 && !fp8)) {
      reject("dtype " + word(problem_.dtype) + " is not supported; supported: " + (fp8 ? "bf16, fp8e4m3" : "bf16"));
    }
    if (problem_.compute != Compute::kFp8) return;
    if (problem_.dtype != DType::kBf16) {
      reject("compute=fp8 quantises bf16 inputs; it does not take dtype " + word(problem_.dtype));
    }
    const auto quantises = [](const Row* row) { return row->family == Family::kQuantise; };
    if (!fp8 || std::ranges::none_of(rows_, quantises)) {
      reject("compute=fp8 is not supported by this version");
    } else if (!has_element(spec_.element)) {
      reject("qk=int8 is not supported; supported: qk=fp8");
    }
  }

  void check_dim(std::string_view name, std::uint32_t value, OneOf<std::uint32_t> Row::* field) {
    std::vector<std::uint32_t> allowed;
    for (const Row* row : candidates()) {
      if ((row->*field).takes(value)) return;
      for (std::uint32_t dim : (row->*field).values()) allowed.push_back(dim);
    }
    std::ranges::sort(allowed);
    allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
    std::string text;
    for (std::uint32_t dim : allowed) text += (text.empty() ? "" : ", ") + std::to_string(dim);
    reject(std::string(name) + " " + std::to_string(value) + " is not supported; supported: " + text);
  }

  template <typename T>
  void check_option(std::string_view name, T value, OneOf<T> Row::* field) {
    std::string allowed;
    for (const Row* row : candidates()) {
      if ((row->*field).takes(value)) return;
      for (T one : (row->*field).values()) {
        if (allowed.find(schedules::word_of(one)) != std::string::npos) continue;
        allowed.append(allowed.empty() ? "" : ", ").append(schedules::word_of(one));
      }
    }
    reject(std::string(name) + " " + std::string(schedules::word_of(value)) +
           " is not supported; supported: " + allowed);
  }

  // Options that are given where they mean nothing.
  void check_scope() {
    const bool fp8 = computes_fp8(problem_), quantises = problem_.compute == Compute::kFp8;
    const auto need = [&](bool given, bool holds, std::string_view option, std::string_view needed) {
      if (given && !holds) reject(std::string(option) + " needs " + std::string(needed));
    };
    constexpr std::string_view kFp8 = "FP8: fp8e4m3 inputs, or bf16 inputs and compute=fp8";
    need(options_.probability != Probability::kLean, fp8, "p=exact", kFp8);
    need(options_.scaling != BlockScaling::kBlocks, fp8, "unscaled", kFp8);
    need(options_.form == ScoreForm::kFolded, fp8, "form=folded", kFp8);
    need(options_.form == ScoreForm::kMultiplyAdd, fp8, "form=fma", kFp8);
    need(options_.row_sum == RowSum::kSparse, fp8, "sum=sparse", kFp8);
    need(options_.row_sum == RowSum::kDense, fp8, "sum=dense", kFp8);
    need(options_.byte_rounding != ByteRounding::kNearest, fp8, "u8=truncate", kFp8);
    constexpr std::string_view kQuantiser = "compute=fp8: it is an option of the quantiser and its inputs";
    need(options_.scores != ScoreType::kFp8, quantises, "qk=int8", kQuantiser);
    need(options_.near_keys != NearKeys::kFp8, quantises, "near=bf16", kQuantiser);
    need(options_.rotation != Rotation::kHadamard, quantises, "no-rotate", kQuantiser);
    need(options_.smoothing != KeySmoothing::kNone, quantises, "smooth-k", kQuantiser);
    need(options_.scales != ScaleGranularity::kHead, quantises, "scales=tensor", kQuantiser);
  }

  // Options that exclude each other.
  void check_combinations() {
    const bool exact = options_.probability == Probability::kExact;
    const auto clash = [&](bool both, std::string_view option, std::string_view other, std::string_view why) {
      if (both) reject(std::string(option) + " does not go with " + std::string(other) + ": " + std::string(why));
    };
    const bool folded = options_.form == ScoreForm::kFolded;
    clash(folded && exact, "form=folded", "p=exact", "it is a form of lean probabilities");
    clash(folded && options_.scores == ScoreType::kInt8, "form=folded", "qk=int8",
          "the integer matrix product has no scale operand");
    clash(options_.byte_rounding == ByteRounding::kTruncate && exact, "u8=truncate", "p=exact",
          "exact probabilities use no v_cvt_pk_u8_f32");
    const bool smooth = options_.smoothing == KeySmoothing::kMean;
    constexpr std::string_view kShift = "it shifts every score of a row by a constant";
    clash(smooth && problem_.lse == Lse::kWritten, "smooth-k", "lse", kShift);
    clash(smooth && options_.near_keys == NearKeys::kBf16, "smooth-k", "near=bf16", kShift);
  }

  const AttentionProblem& problem_;
  const Fp8Options& options_;
  KernelSpec spec_;
  std::vector<const Row*> rows_;
  Support support_;
};

}  // namespace

Support supports(const AttentionProblem& problem, std::span<const Row> table) {
  return Checker(problem, table).check();
}

Support supports(const AttentionProblem& problem) { return supports(problem, schedules::kernel_table()); }

}  // namespace zyfa
