// What the cycle model predicts for a launch, as text and as JSON: `profile` and `simulate --profile`.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/cli.h"
#include "zyfa/profile.h"

namespace zyfa::tools {

// Workgroups that stand for a launch unless more are asked for.
inline constexpr std::uint64_t kRecordedWorkgroups = 5;

// `count` workgroups of a grid, evenly spaced in launch order with the first and the last; all when there are no more.
[[nodiscard]] std::vector<std::array<std::uint32_t, 3>> spaced_workgroups(const std::array<std::uint32_t, 3>& grid,
                                                                          std::uint64_t count);

[[nodiscard]] OrderedJson to_json(const LaunchProfile& profile);
[[nodiscard]] OrderedJson to_json(const std::vector<ProfileParameter>& parameters);

enum class SensitivityTable { kLeftOut, kPrinted };
void print_text(const LaunchProfile& profile, SensitivityTable sensitivity);
void print_text(const std::vector<ProfileParameter>& parameters);

}  // namespace zyfa::tools
