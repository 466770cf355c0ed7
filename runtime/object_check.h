// Decides whether the bytes of a cache entry may be loaded as the kernel its metadata describes. No LLVM.
#pragma once

#include "cache/entry.h"
#include "runtime/kernel_metadata.h"
#include "schedules/select/kernel_spec.h"
#include "zyfa/error.h"

namespace zyfa {

// ELF machine and flags, target, and descriptor = metadata note = entry metadata for the named kernel, whose arguments
// are those of the family. kArchMismatch, kCorruptData: each names the value found and the one expected.
[[nodiscard]] Status check_object(std::span<const std::byte> object, const KernelMetadata& metadata,
                                  schedules::Family family);

// The same for a whole entry, whose key tells the family: what cache::CacheOptions::validator takes.
[[nodiscard]] Status check_entry(const cache::Entry& entry);

}  // namespace zyfa
