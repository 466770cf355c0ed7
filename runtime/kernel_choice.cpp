// Support, selection and explanation: all three read the same table (schedules/select/select.h).
#include "runtime/kernel_choice.h"

#include <algorithm>
#include <optional>

#include "schedules/select/select.h"

namespace zyfa {
namespace {

using schedules::ElementType;
using schedules::KernelSpec;
using schedules::LseOutput;
using schedules::MaskKind;
using schedules::Row;

std::optional<ElementType> element_of(DType dtype) {
  if (dtype == DType::kBf16) return ElementType::kBf16;
  return std::nullopt;
}

std::optional<MaskKind> mask_of(Mask mask) {
  switch (mask) {
    case Mask::kFull:
      return MaskKind::kFull;
    case Mask::kCausal:
      return MaskKind::kCausal;
    case Mask::kWindow:
      break;
  }
  return std::nullopt;
}

std::string word(DType dtype) {
  const std::string text = to_string(AttentionProblem{.dtype = dtype});
  return text.substr(0, text.find(','));
}

std::string word(Mask mask) {
  const std::string text = to_string(AttentionProblem{.mask = mask});
  return text.substr(text.rfind(',') + 1);
}

// "128" or "128, 192": the values some row that satisfies `row_matches` takes for a head dim.
template <typename Field, typename Match>
std::string supported_dims(Field field, Match row_matches) {
  std::vector<std::uint32_t> dims;
  for (const Row& row : schedules::kernel_table()) {
    if (row.use == schedules::RowUse::kSelected && (row.*field).has_value() && row_matches(row)) {
      dims.push_back(*(row.*field));
    }
  }
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  std::string text;
  for (std::uint32_t dim : dims) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return text;
}

template <typename Field>
bool some_row_takes(Field field, std::uint32_t value) {
  return std::ranges::any_of(schedules::kernel_table(), [&](const Row& row) {
    return row.use == schedules::RowUse::kSelected && (!(row.*field).has_value() || *(row.*field) == value);
  });
}

template <typename Field>
void check_dim(std::string_view name, std::uint32_t value, Field field, std::vector<std::string>& reasons) {
  if (some_row_takes(field, value)) return;
  reasons.push_back(std::string(name) + " " + std::to_string(value) +
                    " is not supported; supported: " + supported_dims(field, [](const Row&) { return true; }));
}

// Meaningful only when the dtype and the mask have a counterpart.
KernelSpec spec_of(const AttentionProblem& problem) {
  KernelSpec spec;
  spec.element = element_of(problem.dtype).value_or(ElementType::kBf16);
  spec.head_dim_qk = problem.head_dim_qk;
  spec.head_dim_v = problem.head_dim_v;
  spec.mask = mask_of(problem.mask).value_or(MaskKind::kFull);
  spec.lse = problem.lse == Lse::kWritten ? LseOutput::kWritten : LseOutput::kNone;
  return spec;
}

tl::unexpected<Error> refuse(const AttentionProblem& problem, std::vector<std::string> reasons) {
  return make_error(ErrorCode::kUnsupported, "no kernel for the problem " + to_string(problem), std::move(reasons));
}

}  // namespace

Support supports(const AttentionProblem& problem) {
  Support support;
  if (!element_of(problem.dtype)) {
    support.reasons.push_back("dtype " + word(problem.dtype) + " is not supported; supported: bf16");
  }
  check_dim("head_dim_qk", problem.head_dim_qk, &Row::head_dim_qk, support.reasons);
  check_dim("head_dim_v", problem.head_dim_v, &Row::head_dim_v, support.reasons);
  if (!mask_of(problem.mask)) {
    support.reasons.push_back("mask " + word(problem.mask) + " is not supported; supported: full, causal");
  }
  if (problem.compute != Compute::kInput) support.reasons.push_back("compute=fp8 is not supported yet");
  if (support.reasons.empty() && schedules::select_row(schedules::kernel_table(), spec_of(problem)) == nullptr) {
    support.reasons.push_back("each value is supported, but not this combination of them");
  }
  return support;
}

Expected<KernelChoice> choose_kernel(const AttentionProblem& problem, std::string_view placement) {
  if (Support support = supports(problem); !support) return refuse(problem, std::move(support.reasons));
  KernelChoice choice{"custom", spec_of(problem)};
  if (placement.empty()) {
    const Row* row = schedules::select_row(schedules::kernel_table(), choice.spec);
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

AttentionProblem problem_of(const KernelSpec& spec) {
  return {.dtype = DType::kBf16,
          .head_dim_qk = spec.head_dim_qk,
          .head_dim_v = spec.head_dim_v,
          .mask = spec.mask == MaskKind::kCausal ? Mask::kCausal : Mask::kFull,
          .lse = spec.lse == LseOutput::kWritten ? Lse::kWritten : Lse::kNone};
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
  const Row* chosen = schedules::select_row(schedules::kernel_table(), spec);
  text += "rows, most specific first:\n";
  for (const Row& row : schedules::kernel_table()) {
    text += "  " + std::string(row.name) + ": ";
    if (&row == chosen) {
      text += "chosen\n";
    } else if (std::string reason = row.mismatch(spec); !reason.empty()) {
      text += "passed over, " + reason + "\n";
    } else if (row.use == schedules::RowUse::kByName) {
      text += "matches, used only when asked for by name\n";
    } else {
      text += "matches, but a row above it does too\n";
    }
  }
  Expected<std::string> placement = schedules::resolve_placement(chosen->placement);
  text += "schedule: " + (placement ? *placement : to_string(placement.error())) + "\n";
  return text;
}

}  // namespace zyfa
