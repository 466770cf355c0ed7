// What the last recording launch of a device left: traces, toggles, and how much every workgroup executed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/sim/exec/capture.h"
#include "runtime/sim/loaded_kernel.h"

namespace zyfa::sim {

struct LaunchCapture {
  std::shared_ptr<const SimKernel> kernel;
  LaunchShape shape;
  std::uint32_t lds_bytes = 0;                // of a workgroup, static and dynamic
  std::vector<timing::GroupTrace> groups;     // recorded workgroups, in launch order
  std::vector<std::uint64_t> instructions{};  // of every workgroup in launch order, all waves; 0: it did not run
  SimToggles toggles;
};

// What a launch records. nullopt when it is of another kernel; kInvalidArgument for a workgroup outside of the grid.
[[nodiscard]] Expected<std::optional<CapturePlan>> plan_capture(const SimCapture& capture, const LaunchShape& shape,
                                                                std::string_view kernel);

}  // namespace zyfa::sim
