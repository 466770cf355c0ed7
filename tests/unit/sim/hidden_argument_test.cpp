// Hidden kernel arguments by hand (LLVM AMDGPU usage, code object version 5).
#include "runtime/sim/hidden_argument.h"

#include <gtest/gtest.h>

namespace zyfa::sim {
namespace {

TEST(HiddenArgument, SizesOfTheLaunch) {
  const LaunchShape shape{.grid = {5, 6, 7}, .block = {64, 2, 3}, .dynamic_lds = 4096};
  EXPECT_EQ(hidden_value("hidden_block_count_x", shape), 5u);
  EXPECT_EQ(hidden_value("hidden_block_count_z", shape), 7u);
  EXPECT_EQ(hidden_value("hidden_group_size_x", shape), 64u);
  EXPECT_EQ(hidden_value("hidden_group_size_y", shape), 2u);
  EXPECT_EQ(hidden_value("hidden_dynamic_lds_size", shape), 4096u);
}

TEST(HiddenArgument, OthersAndMalformedNamesAreZero) {
  const LaunchShape shape{.grid = {5, 6, 7}, .block = {64, 2, 3}};
  for (const char* name : {"", "hidden_", "hidden_remainder_x", "hidden_global_offset_y", "hidden_block_count_",
                           "hidden_block_count_w", "hidden_block_count_xx", "hidden_group_size_"}) {
    EXPECT_EQ(hidden_value(name, shape), 0u) << name;
  }
}

// Axes of more than one work-item; their number may exceed 32 bits.
TEST(HiddenArgument, DimensionsOfTheGrid) {
  EXPECT_EQ(hidden_value("hidden_grid_dims", {.grid = {9, 1, 1}}), 1u);
  EXPECT_EQ(hidden_value("hidden_grid_dims", {.grid = {9, 2, 1}}), 2u);
  EXPECT_EQ(hidden_value("hidden_grid_dims", {.grid = {1, 1, 1}, .block = {64, 1, 2}}), 3u);
  EXPECT_EQ(hidden_value("hidden_grid_dims", {.grid = {1, 1u << 31, 1}, .block = {64, 2, 1}}), 2u);
  EXPECT_EQ(hidden_value("hidden_grid_dims", {.grid = {1, 1, 1u << 30}, .block = {1, 1, 4}}), 3u);
}

}  // namespace
}  // namespace zyfa::sim
