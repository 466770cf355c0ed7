// The entries this process holds, found by the key's hash and told apart by the whole key. Entries stay until dropped:
// their kernels are loaded. A hit takes a shared lock, so hits do not wait for one another. The three functions for a
// fork are called as ForkMember's (fork.h).
#pragma once

#include <memory>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "cache/entry.h"
#include "cache/fork.h"
#include "cache/key.h"

namespace zyfa::cache {

class MemoryMap {
 public:
  [[nodiscard]] std::shared_ptr<const Entry> find(const Key& key) const;
  // Keeps the entry already there, if any; returns the one that is kept.
  std::shared_ptr<const Entry> insert(const Key& key, std::shared_ptr<const Entry> entry);
  void erase(const Key& key);
  [[nodiscard]] std::size_t size() const;

  void lock_for_fork() { mutex_.lock(); }
  void unlock_in_parent() { mutex_.unlock(); }
  void renew_in_child() { renew(mutex_); }  // not unlocked: it counts readers that do not exist here

 private:
  // Bytes of a stored name point into the entry it names.
  struct Name {
    Hash128 hash;
    std::string_view bytes;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const { return static_cast<std::size_t>(name.hash.low); }
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<Name, std::shared_ptr<const Entry>, NameHash> entries_;
};

}  // namespace zyfa::cache
