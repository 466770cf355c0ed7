#include "runtime/loaded_table.h"

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace zyfa {
namespace {

// Same device now as when the row was made: an expired device's address may have been given to another.
bool same_device(const std::weak_ptr<Device>& row, const std::shared_ptr<Device>& asked) {
  return !row.owner_before(asked) && !asked.owner_before(row);
}

}  // namespace

LoadedTable& LoadedTable::instance() {
  static auto* table = new LoadedTable;
  return *table;
}

std::size_t LoadedTable::Hash::operator()(const KeyView& key) const {
  const AttentionProblem& problem = key.problem;
  std::size_t hash = std::hash<const Device*>()(key.device);
  const auto mix = [&hash](std::size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29); };
  mix(static_cast<std::size_t>(problem.dtype) | static_cast<std::size_t>(problem.mask) << 8 |
      static_cast<std::size_t>(problem.lse) << 16 | static_cast<std::size_t>(key.cache_mode) << 24);
  const Fp8Options& fp8 = problem.fp8;
  std::size_t options = static_cast<std::size_t>(problem.compute) | static_cast<std::size_t>(problem.length) << 1;
  for (const std::size_t option :
       {static_cast<std::size_t>(fp8.probability), static_cast<std::size_t>(fp8.scaling),
        static_cast<std::size_t>(fp8.form), static_cast<std::size_t>(fp8.scores),
        static_cast<std::size_t>(fp8.near_keys), static_cast<std::size_t>(fp8.rotation),
        static_cast<std::size_t>(fp8.smoothing), static_cast<std::size_t>(fp8.scales),
        static_cast<std::size_t>(fp8.byte_rounding), static_cast<std::size_t>(fp8.row_sum)}) {
    options = options << 2 | option;
  }
  mix(options);
  mix(problem.head_dim_qk | static_cast<std::size_t>(problem.head_dim_v) << 32);
  mix(std::hash<std::string_view>()(key.placement));
  mix(std::hash<std::string_view>()(key.cache_path));
  return hash;
}

bool LoadedTable::Equal::operator()(const KeyView& a, const KeyView& b) const {
  return a.device == b.device && a.cache_mode == b.cache_mode && a.problem == b.problem && a.placement == b.placement &&
         a.cache_path == b.cache_path;
}

std::shared_ptr<const LoadedState> LoadedTable::find(const KeyView& key, const std::shared_ptr<Device>& device) const {
  const std::shared_lock lock(mutex_);
  const auto row = rows_.find(key);
  if (row == rows_.end() || !same_device(row->second->device, device)) return nullptr;
  return row->second;
}

void LoadedTable::insert(const KeyView& key, std::shared_ptr<const LoadedState> state) {
  std::vector<std::shared_ptr<const LoadedState>> dropped;  // unloads outside the lock
  const std::lock_guard lock(mutex_);
  std::erase_if(rows_, [&](const auto& row) {
    const bool gone = row.second->attention.loaded != nullptr && row.second->device.expired();
    if (gone) dropped.push_back(row.second);
    return gone;
  });
  rows_.insert_or_assign(
      Key{key.problem, std::string(key.placement), std::string(key.cache_path), key.cache_mode, key.device},
      std::move(state));
}

}  // namespace zyfa
