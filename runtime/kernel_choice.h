// From a problem to the specification of the kernel that serves it.
#pragma once

#include <string_view>

#include "schedules/select/kernel_spec.h"
#include "zyfa/problem.h"

namespace zyfa {

struct KernelChoice {
  std::string row;  // name of the table row; "custom" for a placement given as text
  schedules::KernelSpec spec;
};

// `placement`: empty for the table's choice, else a row's name or a placement's text form.
// kUnsupported with every reason; kScheduleError for a placement that cannot be read.
[[nodiscard]] Expected<KernelChoice> choose_kernel(const AttentionProblem& problem, std::string_view placement = {});

// The problem a specification was made from.
[[nodiscard]] AttentionProblem problem_of(const schedules::KernelSpec& spec);

}  // namespace zyfa
