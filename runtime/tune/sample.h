// Inputs of one attention problem on a simulated device, and what kernels make of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "zyfa/attention.h"
#include "zyfa/device.h"

namespace zyfa::tune_detail {

struct SampleShape {
  std::int64_t queries = 0, keys = 0, heads = 1;  // one key head
};

class Sample {
 public:
  // Gaussian values, the same for the same shape and problem.
  static Expected<std::unique_ptr<Sample>> create(const AttentionProblem& problem, const SampleShape& shape,
                                                  const SimOptions& options);
  ~Sample();
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  // Kernels are neither read from the disk cache nor written to it.
  Expected<std::shared_ptr<Attention>> compile(const AttentionProblem& problem, std::string_view placement);
  // Output and LSE, bit for bit.
  Expected<std::vector<std::byte>> launch(const Attention& attention);
  [[nodiscard]] SimDevice& device() { return *device_; }

 private:
  explicit Sample(std::shared_ptr<SimDevice> device) : device_(std::move(device)) {}
  Expected<DeviceAddress> upload(const std::vector<std::byte>& bytes);
  Status upload_inputs(const AttentionProblem& problem, const SampleShape& shape);

  std::shared_ptr<SimDevice> device_;
  std::vector<DeviceAddress> allocations_;
  LaunchArgs args_;
  std::size_t o_bytes_ = 0, lse_bytes_ = 0;
};

}  // namespace zyfa::tune_detail
