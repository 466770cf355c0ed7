// Checks launch arguments and packs them into the kernel-argument segment. Pure: no device, no allocation on success.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/quantise_plan.h"
#include "schedules/select/kernel_args.h"
#include "zyfa/attention.h"

namespace zyfa {

struct KernelShape {
  std::uint32_t waves = 1;       // of a workgroup
  std::uint32_t query_tile = 1;  // queries of a workgroup
};

struct PreparedLaunch {
  // Compute::kFp8: these run before, in this order.
  std::array<QuantiseLaunch, kMaxQuantiseLaunches> quantisation{};
  std::size_t quantise_count = 0;
  LaunchShape shape;
  schedules::AttentionForwardArgs args;
};

// Nothing when there is no work (B, H or Sq of 0). kInvalidArgument as documented at Attention::launch().
[[nodiscard]] Expected<std::optional<PreparedLaunch>> prepare_launch(const AttentionProblem& problem,
                                                                     const KernelShape& kernel, const LaunchArgs& args);

// As Attention::workspace_bytes(): looks at shapes and strides, not at addresses.
[[nodiscard]] Expected<std::size_t> workspace_bytes(const AttentionProblem& problem, const LaunchArgs& args);

// ceil(2^31 / ratio): see kernel_args.h. `ratio` from 1 to 32768.
[[nodiscard]] constexpr std::uint32_t head_ratio_magic(std::uint32_t ratio) {
  return static_cast<std::uint32_t>(((std::uint64_t{1} << 31) + ratio - 1) / ratio);
}

}  // namespace zyfa
