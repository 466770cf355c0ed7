// From a problem to the specification of the kernel that serves it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/select/kernel_spec.h"
#include "schedules/select/select.h"
#include "zyfa/problem.h"

namespace zyfa {

struct KernelChoice {
  std::string row;  // name of the table row; "custom" for a placement given as text
  schedules::KernelSpec spec;
};

// `placement`: empty for the table's choice, else a row's name or a placement's text form.
// kUnsupported with every reason; kScheduleError for a placement that cannot be read.
[[nodiscard]] Expected<KernelChoice> choose_kernel(const AttentionProblem& problem, std::string_view placement = {});

// The kernels that launch() runs before attention, by index of quantise_specs(); none unless Compute::kFp8. The problem
// is supported.
[[nodiscard]] std::vector<KernelChoice> choose_helpers(const AttentionProblem& problem);

// Whether the multiplications are done in 8 bits: FP8 inputs, or inputs that our kernels quantise.
[[nodiscard]] constexpr bool computes_fp8(const AttentionProblem& problem) {
  return problem.dtype == DType::kFp8E4M3 || problem.compute == Compute::kFp8;
}

// The attention kernel's specification, without placement. Values that have no counterpart are left default:
// supports() refuses them.
[[nodiscard]] schedules::KernelSpec spec_of(const AttentionProblem& problem);

// The executable reference of an attention kernel that the table has: the naive placement's row.
[[nodiscard]] const schedules::Row* reference_row(const schedules::KernelSpec& spec);

// A problem that needs the kernel. Several problems share kernels: this is the one with FP8 inputs where there is one.
[[nodiscard]] AttentionProblem problem_of(const schedules::KernelSpec& spec);

// As the table has it.
[[nodiscard]] constexpr schedules::SequenceLength length_of(const AttentionProblem& problem) {
  return problem.length == SequenceLength::kShort ? schedules::SequenceLength::kShort
                                                  : schedules::SequenceLength::kLong;
}

// For a person: an attention kernel's problem, or "quantise k fp8e4m3,d=128,hadamard".
[[nodiscard]] std::string describe(const schedules::KernelSpec& spec);

// supports() by a table of the caller's.
[[nodiscard]] Support supports(const AttentionProblem& problem, std::span<const schedules::Row> table);

}  // namespace zyfa
