// Libraries that are missing, foreign or of another build: a typed error that says which and where it was looked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "zyfa/device.h"
#include "zyfa/inspect.h"

namespace zyfa {
namespace {

using ::testing::HasSubstr;

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

Error sim_error() {
  const Expected<std::shared_ptr<SimDevice>> device = SimDevice::create();
  EXPECT_FALSE(device);
  return device ? Error{} : device.error();
}

Error hip_error() {
  const Expected<std::shared_ptr<HipDevice>> device = HipDevice::create();
  EXPECT_FALSE(device);
  return device ? Error{} : device.error();
}

TEST(JitLibrary, absent) {
  const Environment set("ZYFA_JIT_LIBRARY", "/nonexistent/libzyfa_jit.so");
  EXPECT_EQ(sim_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(sim_error().message, HasSubstr("libzyfa_jit, which is not installed"));
  EXPECT_THAT(sim_error().details, ::testing::ElementsAre("tried /nonexistent/libzyfa_jit.so"));
  EXPECT_EQ(verify_object({}).error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_EQ(dump_object({}, Dump::kIsa).error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_EQ(version_info().llvm, "");
}

TEST(JitLibrary, no_shared_object) {
  const Environment set("ZYFA_JIT_LIBRARY", ZYFA_SOURCE_DIR "/CMakeLists.txt");
  EXPECT_EQ(sim_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(sim_error().message, HasSubstr("cannot be opened"));
}

TEST(JitLibrary, another_shared_object) {
  const Environment set("ZYFA_JIT_LIBRARY", ZYFA_FAKE_HIP);
  EXPECT_EQ(sim_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(sim_error().message, HasSubstr("has no zyfa_jit_service_v1"));
}

TEST(JitLibrary, of_another_build) {
  const Environment set("ZYFA_JIT_LIBRARY", ZYFA_FOREIGN_JIT);
  EXPECT_EQ(sim_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(sim_error().message, HasSubstr("generator id is 00000000000000000000000000000000, ours "));
  EXPECT_THAT(sim_error().message, HasSubstr(version_info().generator));
}

TEST(HipLibrary, absent) {
  const Environment set("ZYFA_HIP_LIBRARY", "/nonexistent/libamdhip64.so");
  EXPECT_EQ(hip_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(hip_error().message, HasSubstr("ZYFA_HIP_LIBRARY names /nonexistent/libamdhip64.so"));
}

TEST(HipLibrary, lacks_an_entry_point) {
  const Environment set("ZYFA_HIP_LIBRARY", ZYFA_FOREIGN_JIT);
  EXPECT_EQ(hip_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(hip_error().message, HasSubstr("is no usable HIP runtime: it has no hip"));
}

// Without a GPU: the real runtime's own words where it is installed, else the names that were tried.
TEST(HipLibrary, on_this_machine_gives_a_device_or_says_why_not) {
  const Expected<std::shared_ptr<HipDevice>> device = HipDevice::create();
  if (device) {
    EXPECT_THAT((*device)->name(), ::testing::StartsWith("hip:0 (gfx950"));
    return;
  }
  EXPECT_EQ(device.error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(to_string(device.error()),
              ::testing::AnyOf(HasSubstr("hipGetDeviceCount failed: "), HasSubstr("tried libamdhip64.so.7"),
                               HasSubstr("run on gfx950 (MI355X) only"), HasSubstr("there is no HIP device 0")));
}

}  // namespace
}  // namespace zyfa
