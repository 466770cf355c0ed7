// Values of hidden kernel arguments: what a launch knows of itself (gfx950-isa.md 5.3; LLVM AMDGPU usage, code object
// version 5). Header only: readers of job files use it without the simulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "zyfa/device.h"

namespace zyfa::sim {

// `name` as the metadata gives it ("hidden_block_count_x"); 0 for those a launch has nothing to say about.
inline std::uint64_t hidden_value(std::string_view name, const LaunchShape& launch) {
  const auto axis = [&](std::string_view stem) -> std::optional<std::size_t> {
    if (name.size() != stem.size() + 1 || !name.starts_with(stem)) return std::nullopt;
    const char c = name.back();
    return c >= 'x' && c <= 'z' ? std::optional<std::size_t>(c - 'x') : std::nullopt;
  };
  if (const auto i = axis("hidden_block_count_")) return launch.grid[*i];
  if (const auto i = axis("hidden_group_size_")) return launch.block[*i];
  const auto extends = [&](std::size_t i) { return launch.grid[i] > 1 || launch.block[i] > 1; };
  if (name == "hidden_grid_dims") return extends(2) ? 3 : extends(1) ? 2 : 1;
  return name == "hidden_dynamic_lds_size" ? launch.dynamic_lds : 0;
}

}  // namespace zyfa::sim
