#include "cache/cache.h"

#include <exception>
#include <tuple>
#include <utility>

namespace zyfa::cache {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
}

}  // namespace

Cache::Cache(const CacheConfig& config, CacheOptions options)
    : mode_(config.mode), lock_limit_(config.lock_limit), options_(std::move(options)) {
  join_forks();
  if (mode_ == CacheMode::kOff) return;
  const LayerAccess access = mode_ == CacheMode::kNormal ? LayerAccess::kWritable : LayerAccess::kReadOnly;
  if (!config.writable_layer.empty()) {
    open_layer(config.writable_layer, access, options_.publish_hook);
  } else if (mode_ == CacheMode::kNormal) {
    tell(CacheEventKind::kNoWritableLayer, {}, {},
         Error{ErrorCode::kNotFound,
               "no cache directory: none of ZYFA_CACHE_PATH, XDG_CACHE_HOME and HOME names one, so kernels are kept in "
               "memory only",
               {}});
  }
  for (const std::string& root : config.read_only_layers) open_layer(root, LayerAccess::kReadOnly, nullptr);
}

Cache::~Cache() { leave_forks(); }

// Nested as in get_or_build(): the memory's lock inside the cache's.
void Cache::lock_for_fork() {
  mutex_.lock();
  memory_.lock_for_fork();
}

void Cache::unlock_in_parent() {
  memory_.unlock_in_parent();
  mutex_.unlock();
}

void Cache::renew_in_child() {
  memory_.renew_in_child();
  flights_.clear();  // their leaders do not exist here
  renew(mutex_);
}

void Cache::open_layer(const std::string& root, LayerAccess access, const PublishHook& hook) {
  auto store = Store::open(root, access, hook);
  if (!store) {
    unusable_.push_back(store.error());
    tell(CacheEventKind::kLayerUnusable, root, {}, std::move(store.error()));
    return;
  }
  layers_.push_back(std::make_unique<Layer>());
  layers_.back()->store = std::move(*store);
  if (access != LayerAccess::kWritable) return;
  writable_ = layers_.back()->store.get();
  if (const std::string kind = writable_->network_file_system(); !kind.empty()) {
    tell(CacheEventKind::kNetworkFileSystem, root, {},
         Error{ErrorCode::kIoError,
               "cache directory '" + root + "' lies on a network file system (" + kind +
                   "): set ZYFA_CACHE_PATH to a local directory for speed",
               {}});
  }
}

void Cache::tell(CacheEventKind kind, const std::string& layer, const std::string& key_name, Error error) const {
  if (options_.observer) options_.observer(CacheEvent{kind, layer, key_name, std::move(error)});
}

std::optional<Lookup> Cache::find_in_memory(const Key& key) {
  std::shared_ptr<const Entry> entry = memory_.find(key);
  if (!entry) return std::nullopt;
  counters_.memory_hits.fetch_add(1, std::memory_order_relaxed);
  return Lookup{std::move(entry), CacheSource::kMemory, {}};
}

std::optional<Lookup> Cache::find_in_layer(Layer& layer, const Key& key) {
  const OnReject on_reject = layer.store.get() == writable_ ? OnReject::kSetAside : OnReject::kLeave;
  EntryExpected<std::optional<Entry>> read = layer.store->read(key, options_.validator, on_reject);
  if (!read) {
    ++counters_.rejected;
    tell(CacheEventKind::kEntryRejected, layer.store->root(), key.name(), std::move(read.error().error));
    return std::nullopt;
  }
  if (!*read) return std::nullopt;
  ++counters_.disk_hits;
  ++layer.hits;
  return Lookup{memory_.insert(key, std::make_shared<const Entry>(std::move(**read))), CacheSource::kDisk,
                layer.store->root()};
}

std::optional<Lookup> Cache::find_in_layers(const Key& key) {
  const bool writable_only = is_discarded(key);
  for (const auto& layer : layers_) {
    if (writable_only && layer->store.get() != writable_) continue;
    if (auto found = find_in_layer(*layer, key)) return found;
  }
  return std::nullopt;
}

Expected<Lookup> Cache::get(const Key& key) {
  if (auto found = find_in_memory(key)) return std::move(*found);
  if (auto found = find_in_layers(key)) return std::move(*found);
  ++counters_.misses;
  return miss_error(key);
}

Expected<Lookup> Cache::get_or_build(const Key& key, const Builder& build) {
  if (mode_ == CacheMode::kRequire) return get(key);
  if (auto found = find_in_memory(key)) return std::move(*found);

  std::promise<Expected<Lookup>> promise;
  {
    std::unique_lock lock(mutex_);
    if (auto found = find_in_memory(key)) return std::move(*found);  // a flight landed meanwhile
    const auto [flight, is_leader] = flights_.try_emplace(key.bytes);
    if (!is_leader) {
      const Flight joined = flight->second;
      lock.unlock();
      ++counters_.joined;
      return joined.get();
    }
    flight->second = promise.get_future().share();
  }
  return lead(key, build, std::move(promise));
}

Expected<Lookup> Cache::lead(const Key& key, const Builder& build, std::promise<Expected<Lookup>> promise) {
  Expected<Filled> filled = fill_or_report_throw(key, build);
  const Expected<Lookup> result = filled ? Expected<Lookup>(filled->lookup) : tl::unexpected(filled.error());
  {
    const std::lock_guard lock(mutex_);
    flights_.erase(key.bytes);
  }
  promise.set_value(result);
  if (filled && filled->lookup.source == CacheSource::kBuilt && writable_) {
    try {
      publish_later(key, std::move(*filled));
    } catch (...) {                  // out of memory
      ++counters_.publish_failures;  // the kernel itself is sound and in memory
    }
  }
  return result;
}

// Whatever the builder throws must reach the waiters as an error, or they would wait for ever.
Expected<Cache::Filled> Cache::fill_or_report_throw(const Key& key, const Builder& build) {
  try {
    return fill(key, build);
  } catch (const std::exception& thrown) {
    return make_error(ErrorCode::kInternal, std::string("building a kernel threw: ") + thrown.what());
  } catch (...) {
    return make_error(ErrorCode::kInternal, "building a kernel threw something that is not a std::exception");
  }
}

Expected<Cache::Filled> Cache::fill(const Key& key, const Builder& build) {
  if (auto found = find_in_layers(key)) return Filled{std::move(*found), {}};
  Filled filled;
  if (writable_) {
    LockOutcome outcome = LockOutcome::kUnavailable;
    std::tie(outcome, filled.lock) = writable_->lock(key, lock_limit_);
    if (outcome == LockOutcome::kTimedOut) {
      ++counters_.lock_timeouts;
      tell(CacheEventKind::kLockTimedOut, writable_->root(), key.name(),
           Error{ErrorCode::kIoError,
                 "another process has been building this kernel for " + std::to_string(lock_limit_.count()) +
                     " ms; building it here as well",
                 {}});
    }
    // Another process may have published it since the first look, or while this one waited.
    if (auto found = find_in_layer(*layers_.front(), key)) return Filled{std::move(*found), {}};
  }
  ++counters_.misses;
  Expected<Lookup> built = run_builder(key, build);
  if (!built) return tl::unexpected(std::move(built.error()));
  filled.lookup = std::move(*built);
  return filled;
}

Expected<Lookup> Cache::run_builder(const Key& key, const Builder& build) {
  const auto fail = [this](Error error) {
    ++counters_.build_failures;
    return tl::unexpected(std::move(error));
  };
  const Clock::time_point start = Clock::now();
  Expected<BuiltEntry> built = build();
  counters_.build_ns += nanoseconds_since(start);
  if (!built) return fail(std::move(built.error()));
  Expected<Entry> entry = Entry::encode(key.bytes, as_bytes(built->metadata), built->object);
  if (!entry) return fail(std::move(entry.error()));
  if (options_.validator) {
    if (Status valid = options_.validator(*entry); !valid) return fail(std::move(valid.error()));
  }
  ++counters_.builds;
  return Lookup{memory_.insert(key, std::make_shared<const Entry>(std::move(*entry))), CacheSource::kBuilt, {}};
}

void Cache::publish_later(const Key& key, Filled filled) {
  // A std::function must be copyable, which a lock is not.
  auto held = std::make_shared<Filled>(std::move(filled));
  publisher_.enqueue([this, name = key.name(), held] {
    try {
      publish(name, *held->lookup.entry);
    } catch (...) {
      ++counters_.publish_failures;
    }
    held->lock.release();
  });
}

void Cache::publish(const std::string& key_name, const Entry& entry) {
  const Clock::time_point start = Clock::now();
  Status published = writable_->publish(entry);
  counters_.publish_ns += nanoseconds_since(start);
  if (published) {
    ++counters_.published;
    return;
  }
  ++counters_.publish_failures;
  if (publish_failure_told_.exchange(true)) return;
  published.error().message += "; kernels stay in memory only and will be built again by the next process";
  tell(CacheEventKind::kPublishFailed, writable_->root(), key_name, std::move(published.error()));
}

tl::unexpected<Error> Cache::miss_error(const Key& key) const {
  Error error{
      ErrorCode::kCacheMiss, "kernel " + key.name() + " is in no cache layer, and building it is not allowed here", {}};
  if (const auto decoded = decode_key(as_bytes(key.bytes))) error.details = describe(*decoded);
  for (const auto& layer : layers_) error.details.push_back("asked: " + layer->store->root());
  for (const Error& unusable : unusable_) error.details.push_back("unusable: " + unusable.message);
  if (options_.prewarm_hint) error.details.push_back(options_.prewarm_hint(key));
  return tl::unexpected(std::move(error));
}

bool Cache::is_discarded(const Key& key) const {
  const std::lock_guard lock(mutex_);
  return discarded_.contains(key.hash);
}

void Cache::discard(const Key& key) {
  flush();  // or a pending publish would bring it back
  {
    const std::lock_guard lock(mutex_);
    discarded_.insert(key.hash);
  }
  ++counters_.discarded;
  memory_.erase(key);
  if (writable_) writable_->set_aside(key.hash, EntryDefect::kPayloadRejected);
}

void Cache::flush() { publisher_.drain(); }

void Cache::finish() { publisher_.stop(); }

CacheStats Cache::stats() const {
  CacheStats stats;
  stats.memory_hits = counters_.memory_hits;
  stats.disk_hits = counters_.disk_hits;
  stats.joined = counters_.joined;
  stats.misses = counters_.misses;
  stats.builds = counters_.builds;
  stats.build_failures = counters_.build_failures;
  stats.rejected = counters_.rejected;
  stats.published = counters_.published;
  stats.publish_failures = counters_.publish_failures;
  stats.lock_timeouts = counters_.lock_timeouts;
  stats.discarded = counters_.discarded;
  stats.build_time = std::chrono::nanoseconds(counters_.build_ns);
  stats.publish_time = std::chrono::nanoseconds(counters_.publish_ns);
  for (const auto& layer : layers_) stats.hits_by_layer.emplace_back(layer->store->root(), layer->hits.load());
  return stats;
}

std::vector<const Store*> Cache::layers() const {
  std::vector<const Store*> stores;
  for (const auto& layer : layers_) stores.push_back(layer->store.get());
  return stores;
}

}  // namespace zyfa::cache
