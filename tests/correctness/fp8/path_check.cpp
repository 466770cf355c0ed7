#include "tests/correctness/fp8/path_check.h"

#include <gmock/gmock.h>

#include <string_view>

#include "zyfa/inspect.h"

namespace zyfa::tests {
namespace {

constexpr double kLeastFarShare = 0.25;

std::uint64_t executed(const SimDevice& device, std::string_view mnemonic) {
  std::uint64_t sum = 0;
  for (const SimInstructionCount& count : device.last_instruction_counts()) {
    if (count.instruction.starts_with(mnemonic)) sum += count.executed;
  }
  return sum;
}

}  // namespace

void expect_both_paths(const ModelledAttention& model, const SimDevice& device) {
  const std::optional<TilePaths> paths = last_tile_paths(device);
  ASSERT_TRUE(paths) << "no tile was counted";
  EXPECT_EQ(paths->far, static_cast<std::uint64_t>(model.far));
  EXPECT_GT(paths->near, 0U);
  EXPECT_GE(static_cast<double>(paths->far), kLeastFarShare * static_cast<double>(paths->near + paths->far));
}

void expect_row_sum(schedules::RowSum sum, const SimDevice& device) {
  const std::uint64_t dense = executed(device, "v_mfma_f32_16x16x128_f8f6f4");
  const std::uint64_t sparse = executed(device, "v_smfmac_f32_16x16x128_fp8_fp8");
  const bool wants_dense = sum == schedules::RowSum::kDense;
  EXPECT_GT(wants_dense ? dense : sparse, 0U);
  EXPECT_EQ(wants_dense ? sparse : dense, 0U);
}

}  // namespace zyfa::tests
