// One fixed attention problem on the strict simulated device: runs a code object and returns its output words.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schedules/select/kernel_spec.h"
#include "zyfa/device.h"

namespace zyfa::tests {

template <typename T>
Expected<DeviceAddress> upload(SimDevice& device, const std::vector<T>& data) {
  Expected<DeviceAddress> address = device.allocate(data.size() * sizeof(T));
  if (!address) return address;
  if (Status s = device.write(*address, std::as_bytes(std::span(data))); !s) return tl::unexpected(s.error());
  return address;
}

// bf16 bits of normally distributed values.
std::vector<std::uint16_t> gaussian(std::size_t count, double spread, std::uint32_t seed);

std::shared_ptr<SimDevice> strict_device();

// Causal, LSE written: the specification that the probe's problem needs.
schedules::KernelSpec probe_spec(std::string placement);

class AttentionProbe {
 public:
  // Queries for both groups of an 8-wave workgroup (rows 0..127 and 128..255), the last tile ragged.
  explicit AttentionProbe(std::uint32_t queries = 243, std::uint32_t keys = 523);
  // O as packed bf16 pairs, then the LSE words.
  Expected<std::vector<std::uint32_t>> run(std::span<const std::byte> object, const std::string& symbol,
                                           std::uint32_t waves, std::uint32_t query_tile);
  // Of the last run; warnings where it succeeded.
  [[nodiscard]] std::vector<SimFinding> findings() const { return device_->last_findings(); }

 private:
  std::uint32_t queries_, keys_;
  std::shared_ptr<SimDevice> device_;
  DeviceAddress q_ = 0, k_ = 0, v_ = 0;
};

}  // namespace zyfa::tests
