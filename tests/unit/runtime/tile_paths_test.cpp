// The share of tiles on each path, from what a simulated device counted.
#include <gtest/gtest.h>

#include "zyfa/inspect.h"
#include "zyfa/profile.h"

namespace zyfa {
namespace {

// A device of which only the counts are asked.
class CountingDevice final : public SimDevice {
 public:
  explicit CountingDevice(std::vector<SimInstructionCount> counts) : counts_(std::move(counts)) {}

  [[nodiscard]] std::string name() const override { return "counting"; }
  [[nodiscard]] Expected<DeviceAddress> allocate(std::size_t) override { return 0; }
  void release(DeviceAddress) override {}
  [[nodiscard]] Status write(DeviceAddress, std::span<const std::byte>) override { return {}; }
  [[nodiscard]] Status read(std::span<std::byte>, DeviceAddress) override { return {}; }
  [[nodiscard]] Expected<std::shared_ptr<LoadedKernel>> load(std::span<const std::byte>, std::string_view) override {
    return nullptr;
  }
  [[nodiscard]] Status launch(const LoadedKernel&, const LaunchShape&, std::span<const std::byte>, Stream) override {
    return {};
  }
  [[nodiscard]] Status synchronize(Stream) override { return {}; }
  [[nodiscard]] SimOptions options() const override { return {}; }
  [[nodiscard]] Status set_options(const SimOptions&) override { return {}; }
  [[nodiscard]] SimStatistics last_statistics() const override { return {}; }
  [[nodiscard]] std::vector<SimInstructionCount> last_instruction_counts() const override { return counts_; }
  [[nodiscard]] std::vector<SimFinding> last_findings() const override { return {}; }
  [[nodiscard]] SimToggles last_toggles() const override { return {}; }
  [[nodiscard]] Expected<LaunchProfile> last_profile(const ProfileOptions&) const override {
    return make_error(ErrorCode::kNotFound, "nothing was recorded");
  }

 private:
  std::vector<SimInstructionCount> counts_;
};

SimInstructionCount ran(std::uint64_t executed, const char* comment) {
  return {.instruction = "s_nop 0", .executed = executed, .comment = comment};
}

TEST(TilePaths, sum_the_marked_instructions_alone) {
  const CountingDevice device({ran(1, ""), ran(10, "near path"), ran(2, "far path"), ran(40, "near path, twice"),
                               ran(5, "near path"), ran(7, "stage exp")});
  const std::optional<TilePaths> paths = last_tile_paths(device);
  ASSERT_TRUE(paths);
  EXPECT_EQ(paths->near, 15u);
  EXPECT_EQ(paths->far, 2u);
}

TEST(TilePaths, of_a_path_never_taken_are_zero) {
  const std::optional<TilePaths> paths = last_tile_paths(CountingDevice({ran(3, "far path")}));
  ASSERT_TRUE(paths);
  EXPECT_EQ(paths->near, 0u);
  EXPECT_EQ(paths->far, 3u);
}

TEST(TilePaths, are_nothing_without_marks_or_counts) {
  EXPECT_FALSE(last_tile_paths(CountingDevice({ran(3, "stage exp")})));
  EXPECT_FALSE(last_tile_paths(CountingDevice({})));
}

}  // namespace
}  // namespace zyfa
