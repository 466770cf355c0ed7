// Builds and runs small kernels on the simulated device, for the tests of the simulator only.
// Kernels come from assembly text (in-process LLVM MC and lld) or from OpenCL C or C++ (clang-22 as a process).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sim/sim_device.h"
#include "zyfa/device.h"

namespace zyfa::sim_test {

using Bytes = std::vector<std::byte>;

struct AsmOptions {
  unsigned vgprs = 128;  // arch VGPRs; AGPRs follow
  unsigned agprs = 0;
  unsigned lds = 0;
  unsigned kernarg = 64;
  unsigned workgroup = 64;         // most work-items
  std::string_view metadata = {};  // more lines for the kernel's map
  bool fp16_overflow = false;
  unsigned denorm32 = 0;  // 0 flush, 3 keep
  unsigned round32 = 0;
  bool dx10_clamp = false, ieee = false;
  SimRules rules{};                      // of the device that run_vector() makes
  SimChecks checks = SimChecks::kPlain;  // likewise
};

// Assembles `body` as kernel "k": s[0:1] kernel arguments, s2, s3, s4 workgroup ids, v0 packed work-item ids.
// s_endpgm is appended. Fails the test and returns nothing on a diagnostic.
Bytes assemble_kernel(std::string_view body, const AsmOptions& options = {});

// clang-22 for gfx950; nullopt when it is not installed. Diagnostics fail the test.
std::optional<Bytes> compile_opencl(std::string_view source, std::string_view flags = "-O2");
// The same for C++ without a library.
std::optional<Bytes> compile_cpp(std::string_view source, std::string_view flags = "-O2");

// Fails the test when `status` is an error.
void check(const Status& status);

// A buffer of device memory, released with the object.
template <typename T>
class Buffer {
 public:
  Buffer(SimDevice& device, const std::vector<T>& values) : device_(device), count_(values.size()) {
    address_ = device_.allocate(count_ * sizeof(T)).value();
    check(device_.write(address_, std::as_bytes(std::span(values))));
  }
  ~Buffer() { device_.release(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  [[nodiscard]] DeviceAddress address() const { return address_; }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    check(device_.read(std::as_writable_bytes(std::span(values)), address_));
    return values;
  }

 private:
  SimDevice& device_;
  std::size_t count_;
  DeviceAddress address_ = 0;
};

// Kernel arguments with natural alignment.
class Args {
 public:
  template <typename T>
  Args& add(const T& value) {
    const std::size_t at = (bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  template <typename T>
  Args& add(const Buffer<T>& buffer) {
    return add(buffer.address());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

std::shared_ptr<SimDevice> make_device(SimChecks checks = SimChecks::kPlain, unsigned threads = 1);

// Loads and launches; returns the status of the first step that fails.
Status run(SimDevice& device, std::span<const std::byte> object, std::string_view kernel, const LaunchShape& shape,
           const Args& args);

// Runs one wave of: registers v10, v11, ... filled from `inputs` (64 dwords each), `code`, registers v40, v41, ...
// stored. Returns `outputs` blocks of 64 dwords. s[20:29] are free; VCC and EXEC may be changed freely.
std::vector<std::array<std::uint32_t, 64>> run_vector(std::string_view code,
                                                      const std::vector<std::array<std::uint32_t, 64>>& inputs,
                                                      unsigned outputs, const AsmOptions& options = {});

// Same lane value in all lanes, or value(lane).
std::array<std::uint32_t, 64> splat(std::uint32_t value);
template <typename F>
std::array<std::uint32_t, 64> by_lane(F&& value) {
  std::array<std::uint32_t, 64> a{};
  for (std::uint32_t l = 0; l < 64; ++l) a[l] = value(l);
  return a;
}

}  // namespace zyfa::sim_test
