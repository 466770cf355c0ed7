// From a kernel specification to a verified code object: algorithm + placement -> listing -> passes -> assembler ->
// verifier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/select/kernel_spec.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

struct Algorithm;  // schedules/dsl/algorithm.h
struct Placement;  // schedules/select/placement.h

struct KernelInfo {
  std::string symbol;
  std::uint32_t waves = 0;       // of a workgroup; work-items = 64 x waves
  std::uint32_t query_tile = 0;  // queries of a workgroup; quantise families: tokens that it takes at a time
  std::uint32_t vgprs = 0, agprs = 0, sgprs = 0, lds_bytes = 0, kernarg_bytes = 0;
  std::uint32_t instructions = 0;
};

struct CompiledKernel {
  std::vector<std::byte> object;
  KernelInfo info;
  std::string register_map;    // text table
  std::string schedule_chart;  // text picture of prologue, loop phases and epilogue, from placement data
};

// What the kernel computes, in the stages that `placement` (not the specification's) can place: how many queries a wave
// has decides which there are.
[[nodiscard]] Expected<Algorithm> algorithm_of(const KernelSpec& spec, const Placement& placement);

// kScheduleError: the placement is malformed, illegal or does not fit the registers. kCompileError: assembler or
// verifier findings, each with its DSL origin.
[[nodiscard]] Expected<CompiledKernel> compile_kernel(const KernelSpec& spec);

}  // namespace zyfa::schedules
