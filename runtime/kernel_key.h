// The cache key of a kernel: which canonical fields fix its machine code (cache/key.h has their byte grammar).
//
// Fields, in this order: target, code_object_version, then those of KernelSpec (the placement as "schedule"),
// argument_layout (of the family), generator. Nothing of the environment enters, so equal problems give equal keys
// everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/key.h"
#include "schedules/select/kernel_spec.h"
#include "zyfa/error.h"

namespace zyfa {

inline constexpr std::uint32_t kKeySchema = 1;
inline constexpr std::uint64_t kCodeObjectVersion = 5;
inline constexpr std::string_view kTarget = "gfx950:sramecc+:xnack-";

// What a key holds besides the specification. Tests give other values; the library uses this_build().
struct KeyEnvironment {
  std::uint32_t schema = kKeySchema;
  std::string target;
  std::uint64_t code_object_version = 0;
  std::uint64_t argument_layout = 0;  // of attention kernels
  std::uint64_t quantise_layout = 0;  // of quantise kernels
  std::string generator;

  [[nodiscard]] static KeyEnvironment this_build();
};

// The generator id of this build: a hash over the sources of jit/ and schedules/ and the LLVM version.
[[nodiscard]] std::string_view generator_id();

[[nodiscard]] Expected<cache::Key> make_key(const schedules::KernelSpec& spec,
                                            const KeyEnvironment& environment = KeyEnvironment::this_build());

struct KeyContents {
  schedules::KernelSpec spec;
  std::string generator;
};
// kCorruptData: a field is missing or holds a word this version does not know.
[[nodiscard]] Expected<KeyContents> read_key(std::string_view key_bytes);

}  // namespace zyfa
