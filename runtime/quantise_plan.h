// What Compute::kFp8 needs before the attention kernel: which quantise kernels, in which order, with which arguments,
// and where the quantised inputs lie in the caller's workspace. Pure; nothing is allocated at launch time.
//
// Workspace, each part at a multiple of kWorkspaceAlignment: codes of q, k and v (dense [B, S, H, D], a byte an
// element), their descales (float [B, Hk], q's too), and the partial statistics of each.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "schedules/select/kernel_spec.h"
#include "schedules/select/quantise_args.h"
#include "zyfa/attention.h"

namespace zyfa {

inline constexpr std::size_t kWorkspaceAlignment = 256;
inline constexpr std::size_t kMaxQuantiseLaunches = 6;

// The kernels that launches need, in launch order, with the table's placements; empty unless Compute::kFp8.
[[nodiscard]] std::vector<schedules::KernelSpec> quantise_specs(const AttentionProblem& problem);

// 0 unless Compute::kFp8, and when there is no output. Addresses and strides are not looked at. kInvalidArgument:
// extents that are negative, do not fit together, or ask for more than the 48-bit address space.
[[nodiscard]] Expected<std::size_t> quantise_workspace_bytes(const AttentionProblem& problem, const LaunchArgs& args);

struct QuantiseLaunch {
  std::size_t kernel = 0;  // index into quantise_specs()
  LaunchShape shape;
  schedules::QuantiseArgs args;
};

struct QuantisePlan {
  std::array<QuantiseLaunch, kMaxQuantiseLaunches> launches;
  std::size_t count = 0;                        // 0 when there is no output
  TensorView q, k, v;                           // codes, dense
  DescaleView q_descale, k_descale, v_descale;  // [B, Hk]
};

// For arguments that launch() accepts, the workspace among them. Errors as quantise_workspace_bytes().
[[nodiscard]] Expected<QuantisePlan> plan_quantisation(const AttentionProblem& problem, const LaunchArgs& args);

}  // namespace zyfa
