// HipDevice on the recording HIP library of fake_hip.h: what it passes on, and which device is current when it does.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/runtime/fake_hip.h"
#include "zyfa/device.h"

namespace zyfa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HipDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("ZYFA_HIP_LIBRARY", ZYFA_FAKE_HIP, 1), 0);
    void* handle = dlopen(ZYFA_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    state_ = reinterpret_cast<FakeHipReset>(dlsym(handle, "fake_hip_reset"))();
  }

  std::shared_ptr<HipDevice> device(int ordinal = 0) {
    Expected<std::shared_ptr<HipDevice>> device = HipDevice::create(ordinal);
    EXPECT_TRUE(device) << to_string(device.error());
    return device.value_or(nullptr);
  }

  Error create_error(int ordinal = 0) {
    const Expected<std::shared_ptr<HipDevice>> device = HipDevice::create(ordinal);
    EXPECT_FALSE(device);
    return device ? Error{} : device.error();
  }

  fake_hip::State* state_ = nullptr;
  const std::vector<std::byte> object_{std::byte{0x7f}, std::byte{'E'}, std::byte{'L'}, std::byte{'F'}};
};

TEST_F(HipDeviceTest, names_itself_with_the_whole_architecture) {
  EXPECT_EQ(device()->name(), "hip:0 (gfx950:sramecc+:xnack-)");
}

TEST_F(HipDeviceTest, launch_passes_every_value_and_the_packed_arguments) {
  const auto hip = device();
  const auto kernel = hip->load(object_, "attention_forward");
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  EXPECT_EQ((*kernel)->symbol(), "attention_forward");
  EXPECT_THAT(state_->images, ElementsAre(object_.data()));
  const std::vector<std::byte> kernargs{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  int stream = 0;
  ASSERT_TRUE(hip->launch(**kernel, {.grid = {2, 3, 4}, .block = {512, 1, 1}, .dynamic_lds = 1024}, kernargs, &stream));
  ASSERT_EQ(state_->launches.size(), 1u);
  const fake_hip::Launch& launch = state_->launches.front();
  EXPECT_TRUE(launch.well_formed);
  EXPECT_EQ(launch.function, "attention_forward");
  EXPECT_THAT(launch.grid, ElementsAre(2, 3, 4));
  EXPECT_THAT(launch.block, ElementsAre(512, 1, 1));
  EXPECT_EQ(launch.shared, 1024u);
  EXPECT_EQ(launch.stream, &stream);
  EXPECT_EQ(launch.kernargs, kernargs);
  EXPECT_TRUE(state_->synchronized.empty());
  ASSERT_TRUE(hip->synchronize(&stream));
  EXPECT_THAT(state_->synchronized, ElementsAre(&stream));
}

TEST_F(HipDeviceTest, memory_goes_there_and_back_and_is_freed) {
  const auto hip = device();
  const Expected<DeviceAddress> address = hip->allocate(64);
  ASSERT_TRUE(address);
  EXPECT_EQ(*address % 256, 0u);
  ASSERT_TRUE(hip->write(*address, object_));
  std::vector<std::byte> back(object_.size());
  ASSERT_TRUE(hip->read(back, *address));
  EXPECT_EQ(back, object_);
  const Expected<DeviceAddress> empty = hip->allocate(0);
  ASSERT_TRUE(empty);
  EXPECT_NE(*empty, 0u);
  EXPECT_TRUE(hip->write(*empty, {}));
  hip->release(*empty);
  hip->release(*address);
  EXPECT_EQ(state_->allocations_alive, 0);
}

TEST_F(HipDeviceTest, works_on_its_own_device_and_restores_the_callers) {
  state_->device_count = 3;
  const auto hip = device(2);
  state_->current_device = 1;
  const auto kernel = hip->load(object_, "f");
  ASSERT_TRUE(kernel);
  ASSERT_TRUE(hip->launch(**kernel, {}, {}, nullptr));
  EXPECT_EQ(state_->launches.front().device, 2);
  EXPECT_EQ(state_->current_device, 1);
  state_->current_device = 2;
  state_->set_devices.clear();
  ASSERT_TRUE(hip->launch(**kernel, {}, {}, nullptr));
  EXPECT_TRUE(state_->set_devices.empty()) << "the device was current already";
}

TEST_F(HipDeviceTest, module_lives_as_long_as_its_kernel) {
  auto hip = device();
  auto kernel = hip->load(object_, "f");
  ASSERT_TRUE(kernel);
  hip.reset();
  EXPECT_EQ(state_->modules_alive, 1);
  *kernel = nullptr;
  EXPECT_EQ(state_->modules_alive, 0);
}

TEST_F(HipDeviceTest, an_unknown_symbol_is_not_found_and_leaves_no_module) {
  state_->known_function = "other";
  const auto kernel = device()->load(object_, "attention_forward");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(kernel.error().message, HasSubstr("no kernel 'attention_forward'"));
  EXPECT_EQ(state_->modules_alive, 0);
}

TEST_F(HipDeviceTest, load_errors_are_typed) {
  struct Row {
    int error;
    ErrorCode code;
  };
  const auto hip = device();
  state_->failing_call = "hipModuleLoadData";
  for (const Row& row :
       {Row{209, ErrorCode::kArchMismatch}, Row{200, ErrorCode::kCorruptData}, Row{2, ErrorCode::kDeviceError}}) {
    state_->failing_error = row.error;
    const auto kernel = hip->load(object_, "f");
    ASSERT_FALSE(kernel);
    EXPECT_EQ(kernel.error().code, row.code);
    EXPECT_THAT(kernel.error().message, HasSubstr("hipModuleLoadData failed: "));
    EXPECT_THAT(kernel.error().message, HasSubstr("(" + std::to_string(row.error) + ")"));
  }
}

TEST_F(HipDeviceTest, call_errors_carry_hips_own_text) {
  const auto hip = device();
  const auto kernel = hip->load(object_, "f");
  ASSERT_TRUE(kernel);
  state_->failing_error = 2;
  state_->failing_call = "hipMalloc";
  EXPECT_EQ(to_string(hip->allocate(1).error()), "device-error: hipMalloc failed: out of memory (2)");
  state_->failing_call = "hipModuleLaunchKernel";
  EXPECT_EQ(hip->launch(**kernel, {}, {}, nullptr).error().code, ErrorCode::kDeviceError);
  state_->failing_call = "hipMemcpy";
  EXPECT_EQ(hip->write(4096, {}).has_value(), true);
  std::byte byte{};
  EXPECT_EQ(hip->write(reinterpret_cast<DeviceAddress>(&byte), std::span(object_).first(1)).error().code,
            ErrorCode::kDeviceError);
  state_->failing_call = "hipStreamSynchronize";
  EXPECT_EQ(hip->synchronize(nullptr).error().code, ErrorCode::kDeviceError);
  state_->failing_call = "hipGetDevice";
  EXPECT_EQ(hip->synchronize(nullptr).error().code, ErrorCode::kDeviceError);
}

TEST_F(HipDeviceTest, kernels_of_other_devices_are_refused) {
  class Foreign final : public LoadedKernel {
    [[nodiscard]] std::string_view symbol() const override { return "foreign"; }
  };
  const Status status = device()->launch(Foreign(), {}, {}, nullptr);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(HipDeviceTest, create_refuses_other_architectures_and_absent_devices) {
  state_->architecture = "gfx942:sramecc+:xnack-";
  EXPECT_EQ(create_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(create_error().message, HasSubstr("is 'gfx942:sramecc+:xnack-'; zyfa's kernels run on gfx950"));
  state_->architecture = "gfx9500";
  EXPECT_EQ(create_error().code, ErrorCode::kDeviceUnavailable);
  state_->architecture = "gfx950:sramecc+:xnack-";
  for (int ordinal : {-1, 1}) {
    EXPECT_EQ(create_error(ordinal).code, ErrorCode::kDeviceUnavailable);
    EXPECT_THAT(create_error(ordinal).message, HasSubstr("no HIP device " + std::to_string(ordinal)));
  }
  state_->failing_call = "hipGetDeviceCount";
  state_->failing_error = 100;
  EXPECT_EQ(create_error().code, ErrorCode::kDeviceUnavailable);
  EXPECT_THAT(create_error().message, HasSubstr("no ROCm-capable device is detected (100)"));
}

}  // namespace
}  // namespace zyfa
