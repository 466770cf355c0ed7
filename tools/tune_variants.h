// zyfa-jit tune --variants: a walk for each variant of a problem's numerics that the user asks to compare, and what
// each best placement costs beside the error of its variant.
#pragma once

#include <string>
#include <vector>

#include "tools/cli.h"
#include "zyfa/problem.h"
#include "zyfa/tune.h"

namespace zyfa::tools {

struct VariantsRequest {
  AttentionProblem problem;       // fixes every option that `axes` does not name
  std::vector<std::string> axes;  // of p, blocks, form, qk, near, sum
  TuneOptions tune;               // of each walk; no starts: each variant's own
  std::string logs;               // folder, a log for each variant; empty: none
  OutputForm form = OutputForm::kText;
};

// The exit code. Within a variant placements give the same bits, so that its error is that of any of them: measured on
// the simulator, Gaussian values, against fp64. A variant whose P alone errs by more than the largest error of its
// codes (docs/numerics.md) is refused.
[[nodiscard]] int compare_variants(const VariantsRequest& request);

}  // namespace zyfa::tools
