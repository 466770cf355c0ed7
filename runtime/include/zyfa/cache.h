// Where compiled kernels are kept. Lookup order: memory of this process, then each layer of the disk cache, then JIT.
#pragma once

#include <cstdint>
#include <string>

namespace zyfa {

enum class CacheMode : std::uint8_t {
  kFromEnvironment,  // ZYFA_CACHE = normal | readonly | off | require; normal when unset
  kNormal,           // read all layers, publish to the writable one
  kReadOnly,         // read, never write
  kOff,              // neither: every kernel new to this process is built
  kRequire,          // as kReadOnly, and a miss is kCacheMiss instead of a build
};

struct CacheOptions {
  // Colon-separated directories: read-only layers, then the writable one. Empty: ZYFA_CACHE_PATH, else
  // $XDG_CACHE_HOME/zyfa, else ~/.cache/zyfa.
  std::string path = {};
  CacheMode mode = CacheMode::kFromEnvironment;
  bool operator==(const CacheOptions&) const = default;
};

}  // namespace zyfa
