// Selection and explanation: both read the table (schedules/select/select.h), as supports() does (support.cpp).
#include "runtime/kernel_choice.h"

#include <utility>

#include "runtime/quantise_plan.h"

namespace zyfa {
namespace {

using schedules::ElementType;
using schedules::Family;
using schedules::KernelSpec;
using schedules::Operand;
using schedules::Row;

tl::unexpected<Error> refuse(const AttentionProblem& problem, std::vector<std::string> reasons) {
  return make_error(ErrorCode::kUnsupported, "no kernel for the problem " + to_string(problem), std::move(reasons));
}

schedules::ScoreForm form_of(const AttentionProblem& problem) {
  const Fp8Options& options = problem.fp8;
  const bool folds = problem.compute == Compute::kFp8 && options.probability == Probability::kLean &&
                     options.scores == ScoreType::kFp8;
  switch (options.form) {
    case ScoreForm::kAuto:
      return folds ? schedules::ScoreForm::kFolded : schedules::ScoreForm::kMultiplyAdd;
    case ScoreForm::kFolded:
      return schedules::ScoreForm::kFolded;
    case ScoreForm::kMultiplyAdd:
      break;
  }
  return schedules::ScoreForm::kMultiplyAdd;
}

AttentionProblem quantised_problem_of(const KernelSpec& spec) {
  AttentionProblem problem{.head_dim_qk = spec.head_dim_qk, .compute = Compute::kFp8};
  if (spec.operand == Operand::kValue) problem.head_dim_v = spec.head_dim_qk;
  const bool rotatable = spec.operand != Operand::kValue;
  if (rotatable && spec.rotation == schedules::Rotation::kNone) problem.fp8.rotation = Rotation::kNone;
  if (spec.smoothing == schedules::Smoothing::kMean) problem.fp8.smoothing = KeySmoothing::kMean;
  if (spec.scales == schedules::ScaleScope::kTensor) problem.fp8.scales = ScaleGranularity::kTensor;
  if (spec.element == ElementType::kInt8) {
    problem.fp8.scores = ScoreType::kInt8;
  } else if (spec.family == Family::kQuantise && spec.operand == Operand::kQuery &&
             spec.feeds == schedules::ScoreForm::kMultiplyAdd) {
    problem.fp8.form = ScoreForm::kMultiplyAdd;
  }
  return problem;
}

// What is usual anyway is no choice, so that a kernel has one key.
schedules::RowSum row_sum_of(const Fp8Options& options, const KernelSpec& spec) {
  using schedules::RowSum;
  if (options.row_sum == zyfa::RowSum::kAuto) return RowSum::kAuto;
  const RowSum wanted = options.row_sum == zyfa::RowSum::kDense ? RowSum::kDense : RowSum::kSparse;
  return wanted == schedules::usual_row_sum(spec) ? RowSum::kAuto : wanted;
}

}  // namespace

KernelSpec spec_of(const AttentionProblem& problem) {
  KernelSpec spec;
  spec.head_dim_qk = problem.head_dim_qk;
  spec.head_dim_v = problem.head_dim_v;
  if (problem.mask == Mask::kCausal) spec.mask = schedules::MaskKind::kCausal;
  if (problem.lse == Lse::kWritten) spec.lse = schedules::LseOutput::kWritten;
  if (!computes_fp8(problem)) return spec;
  const Fp8Options& options = problem.fp8;
  spec.element = options.scores == ScoreType::kInt8 ? ElementType::kInt8 : ElementType::kFp8E4M3;
  if (options.probability == Probability::kExact) spec.probability = schedules::ProbabilityRule::kExact;
  if (options.scaling == BlockScaling::kNone) spec.block_exponents = schedules::BlockExponents::kNone;
  spec.form = form_of(problem);
  if (options.near_keys == NearKeys::kBf16) spec.near_keys = schedules::NearKeys::kBf16;
  if (options.byte_rounding == ByteRounding::kTruncate) spec.byte_rounding = schedules::ByteRounding::kTruncate;
  spec.row_sum = row_sum_of(options, spec);
  return spec;
}

AttentionProblem problem_of(const KernelSpec& spec) {
  if (spec.family != Family::kAttentionForward) return quantised_problem_of(spec);
  AttentionProblem problem{.head_dim_qk = spec.head_dim_qk, .head_dim_v = spec.head_dim_v};
  if (spec.mask == schedules::MaskKind::kCausal) problem.mask = Mask::kCausal;
  if (spec.lse == schedules::LseOutput::kWritten) problem.lse = Lse::kWritten;
  if (spec.element == ElementType::kBf16) return problem;
  Fp8Options& options = problem.fp8;
  if (spec.probability == schedules::ProbabilityRule::kExact) options.probability = Probability::kExact;
  if (spec.block_exponents == schedules::BlockExponents::kNone) options.scaling = BlockScaling::kNone;
  if (spec.byte_rounding == schedules::ByteRounding::kTruncate) options.byte_rounding = ByteRounding::kTruncate;
  if (spec.near_keys == schedules::NearKeys::kBf16) options.near_keys = NearKeys::kBf16;
  if (spec.row_sum != schedules::RowSum::kAuto) {
    options.row_sum = spec.row_sum == schedules::RowSum::kDense ? RowSum::kDense : RowSum::kSparse;
  }
  if (spec.element == ElementType::kInt8) options.scores = ScoreType::kInt8;
  if (options.near_keys == NearKeys::kBf16 || options.scores == ScoreType::kInt8) {
    problem.compute = Compute::kFp8;
  } else {
    problem.dtype = DType::kFp8E4M3;
  }
  if (form_of(problem) != spec.form) {
    options.form = spec.form == schedules::ScoreForm::kFolded ? ScoreForm::kFolded : ScoreForm::kMultiplyAdd;
  }
  return problem;
}

std::string describe(const KernelSpec& spec) {
  if (spec.family == Family::kAttentionForward) return to_string(problem_of(spec));
  std::string text(schedules::name_of(spec.family));
  text.append(" ").append(schedules::name_of(spec.operand)).append(" ").append(schedules::name_of(spec.element));
  text += ",d=" + std::to_string(spec.head_dim_qk);
  if (spec.rotation == schedules::Rotation::kHadamard) text += ",rotate";
  if (spec.smoothing == schedules::Smoothing::kMean) text += ",smooth-k";
  if (spec.scales == schedules::ScaleScope::kTensor) text += ",scales=tensor";
  if (spec.feeds == schedules::ScoreForm::kFolded) text += ",form=folded";
  return text;
}

Expected<KernelChoice> choose_kernel(const AttentionProblem& problem, std::string_view placement) {
  if (Support support = supports(problem); !support) return refuse(problem, std::move(support.reasons));
  KernelChoice choice{"custom", spec_of(problem)};
  if (placement.empty()) {
    const Row* row = schedules::select_row(schedules::kernel_table(), choice.spec, length_of(problem));
    choice.row = row->name;
    placement = row->placement;
  } else if (const Row* row = schedules::find_row(schedules::kernel_table(), placement)) {
    if (std::string reason = row->mismatch(choice.spec); !reason.empty()) {
      return refuse(problem, {"schedule " + std::string(row->name) + ": " + reason});
    }
    choice.row = row->name;
  }
  Expected<std::string> canonical = schedules::resolve_placement(placement);
  if (!canonical) return tl::unexpected(std::move(canonical.error()));
  choice.spec.placement = std::move(*canonical);
  return choice;
}

std::vector<KernelChoice> choose_helpers(const AttentionProblem& problem) {
  std::vector<KernelChoice> helpers;
  if (problem.compute != Compute::kFp8) return helpers;
  for (KernelSpec& spec : quantise_specs(problem)) {
    const Row* row = schedules::select_row(schedules::kernel_table(), spec);
    helpers.push_back({row == nullptr ? "none" : std::string(row->name), std::move(spec)});
  }
  return helpers;
}

const Row* reference_row(const KernelSpec& spec) {
  for (const Row& row : schedules::kernel_table()) {
    if (row.use == schedules::RowUse::kByName && row.name.ends_with("naive") && row.mismatch(spec).empty()) return &row;
  }
  return nullptr;
}

Expected<Selection> select(const AttentionProblem& problem) {
  Expected<KernelChoice> choice = choose_kernel(problem);
  if (!choice) return tl::unexpected(std::move(choice.error()));
  return Selection{std::move(choice->row), std::move(choice->spec.placement)};
}

std::string explain(const AttentionProblem& problem) {
  std::string text = "problem: " + to_string(problem) + "\n";
  if (const Support support = supports(problem); !support) {
    text += "refused:\n";
    for (const std::string& reason : support.reasons) text += "  " + reason + "\n";
    return text;
  }
  const KernelSpec spec = spec_of(problem);
  const schedules::SequenceLength length = length_of(problem);
  const Row* chosen = schedules::select_row(schedules::kernel_table(), spec, length);
  text += "rows, most specific first:\n";
  for (const Row& row : schedules::kernel_table()) {
    if (row.family != spec.family) continue;
    text += "  " + std::string(row.name) + ": ";
    if (&row == chosen) {
      text += "chosen\n";
    } else if (row.use == schedules::RowUse::kByName && row.mismatch(spec).empty()) {
      text += "matches, used only when asked for by name\n";
    } else if (std::string reason = row.mismatch(spec, length); !reason.empty()) {
      text += "passed over, " + reason + "\n";
    } else {
      text += "matches, but a row above it does too\n";
    }
  }
  Expected<std::string> placement = schedules::resolve_placement(chosen->placement);
  text += "schedule: " + (placement ? *placement : to_string(placement.error())) + "\n";
  const std::vector<KernelChoice> helpers = choose_helpers(problem);
  if (!helpers.empty()) text += "kernels that run before it:\n";
  for (const KernelChoice& helper : helpers) {
    text += "  " + describe(helper.spec) + ", row " + helper.row + ", schedule " + helper.spec.placement + "\n";
  }
  return text;
}

}  // namespace zyfa
