// The AMDGPU metadata note (MessagePack, gfx950-isa.md 5.3).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "jit/object/code_object.h"
#include "zyfa/error.h"

namespace zyfa::jit {

struct KernelMetadata {
  std::string symbol;  // with ".kd"
  KernelImage image;   // metadata fields only
};

struct Metadata {
  std::string target;
  std::vector<KernelMetadata> kernels;
};

// Any bytes are safe; kCorruptData when they are not a MessagePack map of the documented shape. Unknown keys are passed
// over.
[[nodiscard]] Expected<Metadata> read_metadata(std::span<const std::byte> note);

}  // namespace zyfa::jit
