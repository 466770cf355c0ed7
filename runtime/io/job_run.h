// Runs a job on a device: buffers up, arguments packed, launch, buffers down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/io/job.h"
#include "zyfa/device.h"
#include "zyfa/error.h"
#include "zyfa/inspect.h"

namespace zyfa::io {

// The kernel-argument segment. `buffers` has the device address of every buffer argument in order. An argument sits at
// its own offset, else where the metadata's argument of the same index (hidden ones not counted) does, else at the next
// naturally aligned offset. The segment is the metadata's size or ends with the last argument, whichever is larger.
// Hidden arguments that a compiler adds (block counts, group sizes, grid dimensions, dynamic LDS) are filled from the
// launch shape; the other hidden ones are 0.
// kInvalidArgument: a value larger than the metadata's argument, or two arguments that overlap.
[[nodiscard]] Expected<std::vector<std::byte>> pack_arguments(const Job& job, const ObjectKernel& kernel,
                                                              std::span<const DeviceAddress> buffers);

// A buffer that a job stores, after the run.
struct JobOutput {
  const JobArgument* argument = nullptr;  // of the job
  ElementType type = ElementType::kU8;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

// Reads the buffer files and runs the kernel; the buffers that have "write", in the order of the arguments. Nothing is
// stored. Errors: of the files, of Device::load() and of Device::launch().
[[nodiscard]] Expected<std::vector<JobOutput>> execute_job(const Job& job, std::span<const std::byte> object,
                                                           const ObjectKernel& kernel, Device& device);
[[nodiscard]] Status store_outputs(const std::vector<JobOutput>& outputs);

// Reads the buffer files, runs the kernel, and stores the buffers that have "write". Nothing is stored unless the
// kernel ran. Errors as execute_job().
[[nodiscard]] Status run_job(const Job& job, std::span<const std::byte> object, const ObjectKernel& kernel,
                             Device& device);

}  // namespace zyfa::io
