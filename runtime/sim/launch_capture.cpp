#include "runtime/sim/launch_capture.h"

#include <fmt/format.h>

#include <algorithm>

namespace zyfa::sim {

Expected<std::optional<CapturePlan>> plan_capture(const SimCapture& capture, const LaunchShape& shape,
                                                  std::string_view kernel) {
  if (!capture.kernel.empty() && capture.kernel != kernel) return std::optional<CapturePlan>();
  CapturePlan plan;
  plan.all = capture.workgroups.empty();
  plan.skips_others = capture.others == SimCapture::Others::kSkipped;
  const auto& grid = shape.grid;
  for (const auto& id : capture.workgroups) {
    if (id[0] >= grid[0] || id[1] >= grid[1] || id[2] >= grid[2]) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("workgroup ({}, {}, {}) is to be recorded; the grid has {} x {} x {} workgroups",
                                    id[0], id[1], id[2], grid[0], grid[1], grid[2]));
    }
    plan.groups.push_back(id[0] + std::uint64_t{grid[0]} * (id[1] + std::uint64_t{grid[1]} * id[2]));
  }
  std::sort(plan.groups.begin(), plan.groups.end());
  plan.groups.erase(std::unique(plan.groups.begin(), plan.groups.end()), plan.groups.end());
  return std::optional<CapturePlan>(std::move(plan));
}

}  // namespace zyfa::sim
