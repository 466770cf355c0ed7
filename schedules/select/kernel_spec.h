// Everything that fixes the machine code of one kernel: family, types, shapes that are compile-time, and the placement.
// Pure data; no DSL, no LLVM. runtime/ makes one from a problem by select(); schedules/ turns one into a listing.
#pragma once

#include <cstdint>
#include <string>

namespace zyfa::schedules {

enum class Family : std::uint8_t { kAttentionForward };
enum class ElementType : std::uint8_t { kBf16 };
enum class MaskKind : std::uint8_t { kFull, kCausal };
enum class LseOutput : std::uint8_t { kNone, kWritten };

struct KernelSpec {
  Family family = Family::kAttentionForward;
  ElementType element = ElementType::kBf16;
  std::uint32_t head_dim_qk = 128, head_dim_v = 128;
  MaskKind mask = MaskKind::kFull;
  LseOutput lse = LseOutput::kNone;
  std::string placement = {};  // canonical text form (placement.h)
  bool operator==(const KernelSpec&) const = default;
};

}  // namespace zyfa::schedules
