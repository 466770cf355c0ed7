// One directory of entries.
//
//   <root>/                     0700 when this library makes it
//   <root>/v1/                  entries of format version 1 (kEntryVersion)
//   <root>/v1/<32 hex>.zyfa     one entry, named by the hash of its key; flat: kernels number some thousands at most
//   <root>/v1/.tmp-*            an entry being written; its writer holds a flock on it
//   <root>/v1/rejected/         entries set aside, <32 hex>.<defect>
//   <root>/v1/locks/            per-key lock files of running builds (process_lock.h)
//
// Publish: O_EXCL temporary in v1/, write, fsync, rename over the entry, fsync the directory. So a reader sees the old
// entry, none, or the whole new one. Temporaries of writers that died are swept by the next writer that can lock them.
// Read: read(), never mmap; every check of entry.h, then the whole key, then the caller's validator.
// Safety: a root, v1/ or entry that is a symlink, foreign-owned, or writable by group or others is refused; a read-only
// layer may also belong to root. All work goes through directory descriptors that were checked after opening. File
// times carry no meaning here. Nothing in an entry holds a path: a tree may be moved or copied.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/directory.h"
#include "cache/entry.h"
#include "cache/file.h"
#include "cache/key.h"
#include "cache/process_lock.h"
#include "zyfa/error.h"

namespace zyfa::cache {

// What to do with an entry that fails a check: set it aside (writable layers only), or leave it where it is.
enum class OnReject : std::uint8_t { kSetAside, kLeave };

// Decides whether a sound entry's object and metadata may be used; its error becomes EntryDefect::kPayloadRejected.
using PayloadValidator = std::function<Status(const Entry&)>;

// The moments of a publish, each named before it happens (kDone: after the last). kWrite comes once a chunk.
enum class PublishStep : std::uint8_t { kCreate, kWrite, kSync, kRename, kSyncDirectory, kDone };

// For tests: called at each step; an error it returns is taken as the operating system's.
using PublishHook = std::function<Status(PublishStep)>;

struct ListedEntry {
  std::string name;  // 32 hex digits
  std::uint64_t size = 0;
};

class Store {
 public:
  // Makes a writable root (and its parent, nothing above) when missing. kNotFound: a read-only root that does not exist
  // or holds no v1/. kIoError, or kInvalidArgument for a root that is refused, with the sentence that says how to mend
  // it.
  [[nodiscard]] static Expected<std::unique_ptr<Store>> open(std::string root, LayerAccess access,
                                                             PublishHook hook = nullptr);

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] LayerAccess access() const { return access_; }
  // "nfs", "cifs", ... when the root lies on a network file system, else empty.
  [[nodiscard]] std::string network_file_system() const { return cache::network_file_system(root_fd_.get()); }

  // Empty optional: no such entry. An error: there is one, but it was refused (and set aside, if asked and possible).
  [[nodiscard]] EntryExpected<std::optional<Entry>> read(const Key& key, const PayloadValidator& validator,
                                                         OnReject on_reject) const;
  // The same by file name, for tools; the key in the entry must hash to the name.
  [[nodiscard]] EntryExpected<std::optional<Entry>> read_named(const Hash128& name, OnReject on_reject) const;

  // kIoError: nothing is published and no temporary remains. Safe from any number of threads and processes.
  [[nodiscard]] Status publish(const Entry& entry);
  // Moves the entry of this key to rejected/, if there is one.
  void set_aside(const Hash128& name, EntryDefect defect) const;

  [[nodiscard]] std::pair<LockOutcome, ProcessLock> lock(const Key& key, std::chrono::milliseconds limit);

  [[nodiscard]] Expected<std::vector<ListedEntry>> list() const;  // sorted by name

 private:
  using KeyCheck = std::function<std::optional<EntryError>(const Entry&)>;

  Store(std::string root, LayerAccess access, UniqueFd root_fd, UniqueFd entries, PublishHook hook);
  [[nodiscard]] EntryExpected<std::optional<Entry>> read_checked(const Hash128& name, const KeyCheck& key_check,
                                                                 const PayloadValidator& validator,
                                                                 OnReject on_reject) const;
  void set_aside_file(const std::string& file, EntryDefect defect, const struct stat* expected) const;
  [[nodiscard]] Status step(PublishStep step) const;
  [[nodiscard]] Expected<UniqueFd> create_temporary(std::string& name) const;
  [[nodiscard]] Status write_temporary(int fd, std::span<const std::byte> bytes) const;
  void sweep_temporaries() const;

  std::string root_;
  LayerAccess access_;
  UniqueFd root_fd_;
  UniqueFd entries_;  // v1/
  UniqueFd locks_;    // v1/locks/, opened by the first lock()
  std::once_flag locks_once_;
  std::once_flag sweep_once_;
  PublishHook hook_;
};

}  // namespace zyfa::cache
