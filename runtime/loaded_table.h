// The kernels this process has ready to launch, by what compile() was asked for. A hit costs one shared lock and one
// hash, and allocates nothing.
//
// A row holds its device weakly: a kernel never keeps a device alive, and a row whose device is gone (or whose address
// another device has taken over) is dropped by the next insertion. The table itself is never destroyed, since kernels
// must not be unloaded after the device runtime's own exit handlers have run.
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/fork.h"
#include "runtime/kernel_store.h"
#include "runtime/launch.h"

namespace zyfa {

struct ReadyKernel {
  Kernel kernel;
  std::shared_ptr<LoadedKernel> loaded;  // null when compiled without a device
};

struct LoadedState {
  AttentionProblem problem;
  KernelShape shape;
  ReadyKernel attention;
  std::vector<ReadyKernel> helpers;  // by index of quantise_specs()
  std::weak_ptr<Device> device;
  std::shared_ptr<cache::Cache> cache;
  CompileTimes times;  // of all kernels together
};

class LoadedTable {
 public:
  struct KeyView {
    const AttentionProblem& problem;
    std::string_view placement, cache_path;
    CacheMode cache_mode;
    const Device* device;
  };

  [[nodiscard]] static LoadedTable& instance();

  // Null when absent, or when the row's device is not `device`.
  [[nodiscard]] std::shared_ptr<const LoadedState> find(const KeyView& key,
                                                        const std::shared_ptr<Device>& device) const;
  void insert(const KeyView& key, std::shared_ptr<const LoadedState> state);

  // For process_locks.cpp alone.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_in_parent() { mutex_.unlock(); }
  void renew_in_child() { cache::renew(mutex_); }  // not unlocked: it counts readers that do not exist here

 private:
  struct Key {
    AttentionProblem problem;
    std::string placement, cache_path;
    CacheMode cache_mode;
    const Device* device;
    [[nodiscard]] KeyView view() const { return {problem, placement, cache_path, cache_mode, device}; }
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const KeyView& key) const;
    std::size_t operator()(const Key& key) const { return (*this)(key.view()); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const { return (*this)(a.view(), b.view()); }
    bool operator()(const KeyView& a, const Key& b) const { return (*this)(a, b.view()); }
    bool operator()(const Key& a, const KeyView& b) const { return (*this)(a.view(), b); }
    bool operator()(const KeyView& a, const KeyView& b) const;
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const LoadedState>, Hash, Equal> rows_;
};

}  // namespace zyfa
