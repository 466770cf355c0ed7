#include "cache/memory.h"

#include <mutex>

namespace zyfa::cache {

std::shared_ptr<const Entry> MemoryMap::find(const Key& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = entries_.find(Name{key.hash, key.bytes});
  return found == entries_.end() ? nullptr : found->second;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): moved into the map
std::shared_ptr<const Entry> MemoryMap::insert(const Key& key, std::shared_ptr<const Entry> entry) {
  const std::unique_lock lock(mutex_);
  const std::string_view bytes = entry->key();
  return entries_.try_emplace(Name{key.hash, bytes}, std::move(entry)).first->second;
}

void MemoryMap::erase(const Key& key) {
  const std::unique_lock lock(mutex_);
  entries_.erase(Name{key.hash, key.bytes});
}

std::size_t MemoryMap::size() const {
  const std::shared_lock lock(mutex_);
  return entries_.size();
}

}  // namespace zyfa::cache
