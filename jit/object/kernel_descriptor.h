// What a code object must declare about its kernel: registers, LDS, kernel arguments (gfx950-isa.md 5).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zyfa::jit {

struct KernelArgument {
  std::string name;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  bool is_pointer = false;  // global_buffer, else by_value
  bool operator==(const KernelArgument&) const = default;
};

struct KernelDeclaration {
  std::string symbol;
  std::uint32_t vgprs = 0;  // arch VGPRs used
  std::uint32_t agprs = 0;
  std::uint32_t sgprs = 0;      // without VCC and reserved
  std::uint32_t lds_bytes = 0;  // at most 163840
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t workgroup_size = 0;
  bool workgroup_id_x = true, workgroup_id_y = true, workgroup_id_z = true;
  bool fp16_overflow = false;
  bool f32_denormals = false;  // kept, else flushed
  std::vector<KernelArgument> arguments = {};
};

}  // namespace zyfa::jit
