// What a cache entry says of its kernel beside the object: all that a launch needs, so that a disk hit needs no LLVM,
// and what a person asks about. Stored as named pairs (cache/entry.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "schedules/compile.h"
#include "zyfa/error.h"

namespace zyfa {

struct KernelMetadata {
  schedules::KernelInfo info;
  std::string llvm_version;
  std::string assembler;  // back end that made the object: "llvm-mc"
  std::string register_map = {}, schedule_chart = {};
};

[[nodiscard]] std::string encode(const KernelMetadata& metadata);
// kCorruptData: names the pair that is missing or out of range.
[[nodiscard]] Expected<KernelMetadata> decode_kernel_metadata(std::span<const std::byte> bytes);

}  // namespace zyfa
