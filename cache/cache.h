// The kernel cache of one process: memory, then the writable layer, then the read-only layers in order, then the
// builder.
//
// The writable layer is asked before the read-only ones so that an entry that was healed there wins over a bad prebuilt
// one. Invariants:
//  - a key is built at most once at a time in this process, outside every lock; the build of one key never delays a hit
//  of
//    another. A failed build reaches all who wait for it and is forgotten.
//  - an entry is published after it was returned, on a background thread; flush() waits for that, the destructor too.
//  - no trouble with a layer ever fails a lookup: it is counted, told to the observer, and the key is built.
//  - a child made by fork() may use the cache at once, whatever the parent's threads were doing (fork.h); it knows no
//    running builds, and a key that the parent builds it waits for as any other process does.
// A builder must not ask the cache for the key it builds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/config.h"
#include "cache/entry.h"
#include "cache/fork.h"
#include "cache/key.h"
#include "cache/memory.h"
#include "cache/publisher.h"
#include "cache/store.h"
#include "zyfa/error.h"

namespace zyfa::cache {

enum class CacheEventKind : std::uint8_t {
  kLayerUnusable,      // a layer is missing, refused or cannot be opened; once a layer
  kNoWritableLayer,    // no directory is configured and none can be derived: memory only
  kNetworkFileSystem,  // the writable layer lies on one; locks and renames may be slow there
  kPublishFailed,      // the writable layer cannot be written: memory only; told once, counted always
  kEntryRejected,      // an entry failed a check; each time
  kLockTimedOut,       // another process built too long; this one builds as well
};

struct CacheEvent {
  CacheEventKind kind = CacheEventKind::kLayerUnusable;
  std::string layer;     // the layer's root, may be empty
  std::string key_name;  // 32 hex digits, or empty
  Error error;           // the sentence to log
};

struct CacheOptions {
  PayloadValidator validator;                           // on every entry read or built; none: all pass
  std::function<void(const CacheEvent&)> observer;      // from any thread; must not call the cache
  std::function<std::string(const Key&)> prewarm_hint;  // the line that would fill a miss, for kCacheMiss
  PublishHook publish_hook;                             // tests only
};

struct BuiltEntry {
  std::string metadata;  // encode_metadata()
  std::vector<std::byte> object;
};

using Builder = std::function<Expected<BuiltEntry>()>;

enum class CacheSource : std::uint8_t { kMemory, kDisk, kBuilt };

struct Lookup {
  std::shared_ptr<const Entry> entry;
  CacheSource source = CacheSource::kMemory;
  std::string layer;  // root of the layer it was read from; empty for memory and built
};

struct CacheStats {
  std::uint64_t memory_hits = 0, disk_hits = 0, joined = 0;  // joined: waited for another thread's build or read
  std::uint64_t misses = 0, builds = 0, build_failures = 0;
  std::uint64_t rejected = 0;  // entries that failed a check, in any layer
  std::uint64_t published = 0, publish_failures = 0;
  std::uint64_t lock_timeouts = 0, discarded = 0;
  std::chrono::nanoseconds build_time{0}, publish_time{0};  // sums
  std::vector<std::pair<std::string, std::uint64_t>> hits_by_layer;
};

class Cache final : private ForkMember {
 public:
  // Never fails: layers that cannot be used are told to the observer and left out.
  Cache(const CacheConfig& config, CacheOptions options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Memory or a layer; never builds and never waits for a build (for stream capture, and for `require`).
  // kCacheMiss: details name the key's fields, the layers that could not be used, and the prewarm hint.
  [[nodiscard]] Expected<Lookup> get(const Key& key);

  // As get(), but a miss is built; in CacheMode::kRequire the same as get(). Errors are the builder's or the
  // validator's.
  [[nodiscard]] Expected<Lookup> get_or_build(const Key& key, const Builder& build);

  // Forgets an entry that passed every check but that the device would not load: out of memory, set aside on disk, and
  // no read-only layer is asked for this key again. The next get_or_build() builds it.
  void discard(const Key& key);

  void flush();  // waits for pending publishes
  // The same, for a process that ends: what is built later is published by its caller.
  void finish();
  // A kernel of this cache was had from a table in front of it.
  void count_memory_hit() { counters_.memory_hits.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] CacheStats stats() const;
  [[nodiscard]] CacheMode mode() const { return mode_; }
  // In the order they are asked; pointers live as long as the cache.
  [[nodiscard]] std::vector<const Store*> layers() const;

 private:
  struct Layer {
    std::unique_ptr<Store> store;
    std::atomic<std::uint64_t> hits{0};
  };
  struct Counters {
    std::atomic<std::uint64_t> memory_hits{0}, disk_hits{0}, joined{0}, misses{0}, builds{0}, build_failures{0},
        rejected{0}, published{0}, publish_failures{0}, lock_timeouts{0}, discarded{0}, build_ns{0}, publish_ns{0};
  };
  struct Filled {
    Lookup lookup;
    ProcessLock lock;  // held until the entry is published
  };
  using Flight = std::shared_future<Expected<Lookup>>;

  void open_layer(const std::string& root, LayerAccess access, const PublishHook& hook);
  void tell(CacheEventKind kind, const std::string& layer, const std::string& key_name, Error error) const;
  [[nodiscard]] std::optional<Lookup> find_in_memory(const Key& key);
  [[nodiscard]] std::optional<Lookup> find_in_layers(const Key& key);
  [[nodiscard]] std::optional<Lookup> find_in_layer(Layer& layer, const Key& key);
  [[nodiscard]] Expected<Filled> fill(const Key& key, const Builder& build);
  [[nodiscard]] Expected<Filled> fill_or_report_throw(const Key& key, const Builder& build);
  [[nodiscard]] Expected<Lookup> run_builder(const Key& key, const Builder& build);
  [[nodiscard]] Expected<Lookup> lead(const Key& key, const Builder& build, std::promise<Expected<Lookup>> promise);
  void publish_later(const Key& key, Filled filled);
  void publish(const std::string& key_name, const Entry& entry);
  [[nodiscard]] tl::unexpected<Error> miss_error(const Key& key) const;
  [[nodiscard]] bool is_discarded(const Key& key) const;

  void lock_for_fork() override;
  void unlock_in_parent() override;
  void renew_in_child() override;

  CacheMode mode_;
  std::chrono::milliseconds lock_limit_;
  CacheOptions options_;
  std::vector<std::unique_ptr<Layer>> layers_;
  Store* writable_ = nullptr;  // into layers_, when one may be written
  std::vector<Error> unusable_;

  MemoryMap memory_;
  mutable std::mutex mutex_;  // flights_ and discarded_
  std::unordered_map<std::string, Flight> flights_;
  std::set<Hash128> discarded_;
  std::atomic<bool> publish_failure_told_{false};
  Counters counters_;
  Publisher publisher_;  // last: its destructor runs jobs that use the members above
};

}  // namespace zyfa::cache
