// A kernel of a code object, decoded and placed in simulated memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "jit/object/code_object.h"
#include "runtime/sim/exec/engine.h"
#include "runtime/sim/exec/memory.h"
#include "runtime/sim/exec/program.h"
#include "zyfa/device.h"

namespace zyfa::sim {

// Memory shared by the device and its loaded kernels; launches hold the lock shared, changes hold it alone.
struct DeviceMemory {
  mutable std::shared_mutex lock;
  Memory space;
};

class SimKernel : public LoadedKernel, public std::enable_shared_from_this<SimKernel> {
 public:
  // Errors as Device::load().
  static Expected<std::shared_ptr<SimKernel>> load(std::shared_ptr<DeviceMemory> memory, std::vector<std::byte> object,
                                                   std::string_view symbol);
  ~SimKernel() override;

  [[nodiscard]] std::string_view symbol() const override { return image_.name; }
  [[nodiscard]] const DeviceMemory* memory() const { return memory_.get(); }
  [[nodiscard]] const Program& program() const { return program_; }
  // The listing's comment, stage and source of a micro-operation; empty when the object carries none.
  // Of a micro-operation; null when the object carries no listing for it.
  [[nodiscard]] const jit::ListingNote* note(std::size_t op) const;

  // Checks the shape and fills everything but the checks; `kernargs` and `packet` are device addresses.
  Expected<LaunchPlan> plan(const LaunchShape& shape, std::span<const std::byte> kernargs,
                            DeviceAddress kernarg_address, DeviceAddress packet_address) const;
  // Register uses for strict mode, derived at the first strict launch.
  const StrictTable& strict_table() const;
  // Those of `tallies` (by micro-operation) that ran.
  [[nodiscard]] std::vector<SimInstructionCount> instruction_counts(const std::vector<InstructionTally>& tallies) const;
  // The kernel argument segment: the caller's bytes, then hidden arguments that the metadata asks for.
  std::vector<std::byte> kernarg_segment(const LaunchShape& shape, std::span<const std::byte> kernargs) const;

 private:
  SimKernel() = default;
  Status place_segments();
  void collect_origins();

  std::shared_ptr<DeviceMemory> memory_;
  jit::CodeObject object_;
  jit::KernelImage image_;
  Program program_;
  DeviceAddress base_ = 0;          // of the loaded segments
  std::uint64_t code_address_ = 0;  // device address of the text section
  std::vector<std::string> origins_;
  std::size_t first_listed_ = 0;  // micro-operation of the listing's first instruction
  mutable std::once_flag strict_once_;
  mutable StrictTable strict_table_;
};

}  // namespace zyfa::sim
