// zyfa/cache.h: statistics and flush over the process's caches.
#include <utility>

#include "runtime/kernel_store.h"
#include "runtime/stopwatch.h"
#include "zyfa/cache.h"

namespace zyfa {

Expected<CacheStatistics> cache_statistics(const CacheOptions& options) {
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  cache::CacheStats stats = (*cache)->stats();
  return CacheStatistics{.memory_hits = stats.memory_hits,
                         .disk_hits = stats.disk_hits,
                         .joined = stats.joined,
                         .misses = stats.misses,
                         .builds = stats.builds,
                         .build_failures = stats.build_failures,
                         .rejected = stats.rejected,
                         .discarded = stats.discarded,
                         .lock_timeouts = stats.lock_timeouts,
                         .published = stats.published,
                         .publish_failures = stats.publish_failures,
                         .build_ms = milliseconds(stats.build_time),
                         .publish_ms = milliseconds(stats.publish_time),
                         .by_layer = std::move(stats.hits_by_layer)};
}

Status flush_cache(const CacheOptions& options) {
  Expected<std::shared_ptr<cache::Cache>> cache = open_cache(options);
  if (!cache) return tl::unexpected(std::move(cache.error()));
  (*cache)->flush();
  return {};
}

}  // namespace zyfa
