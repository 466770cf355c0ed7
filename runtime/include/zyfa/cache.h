// Where compiled kernels are kept. Lookup order: memory of this process, then each layer of the disk cache, then JIT.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "zyfa/error.h"
#include "zyfa/export.h"

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

// Counts of this process and cache since its first use.
struct CacheStatistics {
  std::uint64_t memory_hits = 0;  // compile() calls and inner look-ups that memory answered
  std::uint64_t disk_hits = 0;
  std::uint64_t joined = 0;  // waited for another thread's build or read
  std::uint64_t misses = 0, builds = 0, build_failures = 0;
  std::uint64_t rejected = 0;       // entries that failed a check and were set aside
  std::uint64_t discarded = 0;      // sound entries that a device refused to load
  std::uint64_t lock_timeouts = 0;  // waits for another process's build that were given up
  std::uint64_t published = 0, publish_failures = 0;
  double build_ms = 0, publish_ms = 0;                          // sums
  std::vector<std::pair<std::string, std::uint64_t>> by_layer;  // directory, disk hits; in the order they are asked
};
// kInvalidArgument: ZYFA_CACHE, ZYFA_CACHE_PATH or the options are malformed.
[[nodiscard]] ZYFA_API Expected<CacheStatistics> cache_statistics(const CacheOptions& options = {});

// Waits until every kernel built so far is on disk (or could not be written). Leaving main() normally waits too.
[[nodiscard]] ZYFA_API Status flush_cache(const CacheOptions& options = {});

}  // namespace zyfa
