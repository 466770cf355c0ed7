// The kernel descriptor (gfx950-isa.md 5.1) between declaration, assembler directives and binary form.
#pragma once

#include <string>

#include "jit/object/code_object.h"
#include "jit/object/kernel_descriptor.h"
#include "zyfa/error.h"

namespace zyfa::jit {

inline constexpr std::string_view kTargetId = "amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-";

// Registers, LDS, workgroup size and arguments inside what gfx950 has. kInvalidArgument names the value and the limit.
[[nodiscard]] Status check_declaration(const KernelDeclaration& declaration);

// The descriptor and metadata that the declaration asks for. entry_offset and code_bytes stay 0.
[[nodiscard]] KernelImage expected_image(const KernelDeclaration& declaration);

// ".amdhsa_kernel ..." and ".amdgpu_metadata ..." for stock llvm-mc.
[[nodiscard]] std::string descriptor_directives(const KernelImage& image);
[[nodiscard]] std::string metadata_directives(const KernelImage& image);

// Every way in which the two images' descriptors and metadata differ, as "rsrc1 is 0x..., expected 0x...".
[[nodiscard]] std::vector<std::string> image_differences(const KernelImage& actual, const KernelImage& expected);

}  // namespace zyfa::jit
