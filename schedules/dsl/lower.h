// From a plan to a verified code object: listing -> registers -> waits -> wait states -> assembler -> static verifier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "jit/object/kernel_descriptor.h"
#include "schedules/dsl/plan.h"
#include "zyfa/error.h"

namespace zyfa::schedules {

struct LoweredKernel {
  std::vector<std::byte> object;
  jit::KernelDeclaration declaration;  // as stated in the object
  std::uint32_t instructions = 0;
  std::string register_map;  // text table
};

// `symbol`, `arguments`, `kernarg_bytes` and modes of `request` are taken; registers, LDS and workgroup size are filled
// in.
// kScheduleError: does not fit the registers. kCompileError: assembler or verifier findings, each with its DSL origin.
[[nodiscard]] Expected<LoweredKernel> lower(const Plan& plan, jit::KernelDeclaration request);

}  // namespace zyfa::schedules
