// HipDevice over the entry points of hip_api.h. Every call first makes its device current for the calling thread and
// puts the caller's device back afterwards.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/hip/hip_api.h"
#include "zyfa/device.h"

namespace zyfa {
namespace {

using hip::HipApi;
using ApiPtr = std::shared_ptr<const HipApi>;

class CurrentDevice {
 public:
  CurrentDevice(const HipApi& api, int ordinal) : api_(api) {
    status_ = api.check(api.hipGetDevice(&previous_), "hipGetDevice");
    if (!status_ || previous_ == ordinal) return;
    status_ = api.check(api.hipSetDevice(ordinal), "hipSetDevice");
    changed_ = status_.has_value();
  }
  ~CurrentDevice() {
    if (changed_) (void)api_.hipSetDevice(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const HipApi& api_;
  Status status_;
  int previous_ = 0;
  bool changed_ = false;
};

class HipKernel final : public LoadedKernel {
 public:
  HipKernel(ApiPtr api, int ordinal, hip::HipModule module, std::string symbol)
      : api_(std::move(api)), ordinal_(ordinal), module_(module), symbol_(std::move(symbol)) {}
  ~HipKernel() override {
    const CurrentDevice current(*api_, ordinal_);  // tried even when it fails: there is nobody to tell
    (void)api_->hipModuleUnload(module_);
  }
  HipKernel(const HipKernel&) = delete;
  HipKernel& operator=(const HipKernel&) = delete;

  Status find_function() {
    const hip::HipError error = api_->hipModuleGetFunction(&function_, module_, symbol_.c_str());
    if (error == hip::kErrorNotFound) {
      return make_error(ErrorCode::kNotFound, "the code object has no kernel '" + symbol_ + "'");
    }
    return api_->check(error, "hipModuleGetFunction");
  }

  [[nodiscard]] std::string_view symbol() const override { return symbol_; }
  [[nodiscard]] hip::HipFunction function() const { return function_; }

 private:
  ApiPtr api_;
  int ordinal_;
  hip::HipModule module_;
  std::string symbol_;
  hip::HipFunction function_ = nullptr;
};

class HipDeviceImpl final : public HipDevice {
 public:
  HipDeviceImpl(ApiPtr api, int ordinal, std::string architecture)
      : api_(std::move(api)), ordinal_(ordinal), architecture_(std::move(architecture)) {}

  [[nodiscard]] std::string name() const override {
    return "hip:" + std::to_string(ordinal_) + " (" + architecture_ + ")";
  }

  Expected<DeviceAddress> allocate(std::size_t bytes) override {
    const CurrentDevice current(*api_, ordinal_);
    if (!current.status()) return tl::unexpected(current.status().error());
    // hipMalloc gives null for 0 bytes; one byte keeps the address unique and not null. Its addresses are 4096-aligned.
    void* memory = nullptr;
    if (Status status = api_->check(api_->hipMalloc(&memory, bytes == 0 ? 1 : bytes), "hipMalloc"); !status) {
      return tl::unexpected(std::move(status.error()));
    }
    return reinterpret_cast<DeviceAddress>(memory);
  }

  void release(DeviceAddress address) override {
    const CurrentDevice current(*api_, ordinal_);
    (void)api_->hipFree(reinterpret_cast<void*>(address));
  }

  Status write(DeviceAddress to, std::span<const std::byte> from) override {
    return copy(reinterpret_cast<void*>(to), from.data(), from.size(), hip::kMemcpyHostToDevice);
  }

  Status read(std::span<std::byte> to, DeviceAddress from) override {
    return copy(to.data(), reinterpret_cast<const void*>(from), to.size(), hip::kMemcpyDeviceToHost);
  }

  Expected<std::shared_ptr<LoadedKernel>> load(std::span<const std::byte> object, std::string_view symbol) override {
    const CurrentDevice current(*api_, ordinal_);
    if (!current.status()) return tl::unexpected(current.status().error());
    hip::HipModule module = nullptr;
    const hip::HipError error = api_->hipModuleLoadData(&module, object.data());
    if (Status status = api_->check(error, "hipModuleLoadData"); !status) {
      Error failure = std::move(status.error());
      if (error == hip::kErrorNoBinaryForGpu) failure.code = ErrorCode::kArchMismatch;
      if (error == hip::kErrorInvalidImage) failure.code = ErrorCode::kCorruptData;
      return tl::unexpected(std::move(failure));
    }
    auto kernel = std::make_shared<HipKernel>(api_, ordinal_, module, std::string(symbol));
    if (Status status = kernel->find_function(); !status) return tl::unexpected(std::move(status.error()));
    return kernel;
  }

  Status launch(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const std::byte> kernargs,
                Stream stream) override {
    const auto* loaded = dynamic_cast<const HipKernel*>(&kernel);
    if (loaded == nullptr) {
      return make_error(ErrorCode::kInvalidArgument,
                        "kernel '" + std::string(kernel.symbol()) + "' was loaded by another device, not by " + name());
    }
    const CurrentDevice current(*api_, ordinal_);
    if (!current.status()) return current.status();
    std::size_t size = kernargs.size();
    // HIP copies the segment; it takes the pointer as void* but does not write to it.
    std::array<void*, 5> extra{hip::kLaunchParamBufferPointer, const_cast<std::byte*>(kernargs.data()),
                               hip::kLaunchParamBufferSize, &size, hip::kLaunchParamEnd};
    return api_->check(api_->hipModuleLaunchKernel(loaded->function(), shape.grid[0], shape.grid[1], shape.grid[2],
                                                   shape.block[0], shape.block[1], shape.block[2], shape.dynamic_lds,
                                                   static_cast<hip::HipStream>(stream), nullptr, extra.data()),
                       "hipModuleLaunchKernel");
  }

  Status synchronize(Stream stream) override {
    const CurrentDevice current(*api_, ordinal_);
    if (!current.status()) return current.status();
    return api_->check(api_->hipStreamSynchronize(static_cast<hip::HipStream>(stream)), "hipStreamSynchronize");
  }

 private:
  Status copy(void* to, const void* from, std::size_t bytes, int kind) {
    if (bytes == 0) return {};
    const CurrentDevice current(*api_, ordinal_);
    if (!current.status()) return current.status();
    return api_->check(api_->hipMemcpy(to, from, bytes, kind), "hipMemcpy");
  }

  ApiPtr api_;
  int ordinal_;
  std::string architecture_;
};

tl::unexpected<Error> unavailable(Error error) {
  error.code = ErrorCode::kDeviceUnavailable;
  return tl::unexpected(std::move(error));
}

}  // namespace

Expected<std::shared_ptr<HipDevice>> HipDevice::create(int ordinal) {
  Expected<ApiPtr> api = hip::load_hip();
  if (!api) return tl::unexpected(std::move(api.error()));
  int count = 0;
  if (Status status = (*api)->check((*api)->hipGetDeviceCount(&count), "hipGetDeviceCount"); !status) {
    return unavailable(std::move(status.error()));
  }
  if (ordinal < 0 || ordinal >= count) {
    return make_error(ErrorCode::kDeviceUnavailable, "there is no HIP device " + std::to_string(ordinal) + "; " +
                                                         (*api)->path + " sees " + std::to_string(count));
  }
  Expected<std::string> architecture = hip::architecture_of(**api, ordinal);
  if (!architecture) return unavailable(std::move(architecture.error()));
  if (*architecture != "gfx950" && !architecture->starts_with("gfx950:")) {
    return make_error(ErrorCode::kDeviceUnavailable, "HIP device " + std::to_string(ordinal) + " is '" + *architecture +
                                                         "'; zyfa's kernels run on gfx950 (MI355X) only");
  }
  return std::make_shared<HipDeviceImpl>(std::move(*api), ordinal, std::move(*architecture));
}

}  // namespace zyfa
