#include "cache/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

namespace zyfa::cache {
namespace {

constexpr std::string_view kSuffix = ".zyfa";
constexpr std::string_view kTemporaryPrefix = ".tmp-";
constexpr const char* kRejectedDirectory = "rejected";
constexpr const char* kLocksDirectory = "locks";
constexpr std::size_t kWriteChunk = 64 * 1024;

constexpr const char* kEntriesDirectory = "v1";
static_assert(kEntryVersion == 1, "name the directory of the entries after their version");

std::string file_name(const Hash128& name) { return to_hex(name) + std::string(kSuffix); }

std::optional<Hash128> name_of_file(std::string_view file) {
  if (!file.ends_with(kSuffix)) return std::nullopt;
  return hash_from_hex(file.substr(0, file.size() - kSuffix.size()));
}

tl::unexpected<EntryError> reject(EntryDefect defect, Error error) {
  return tl::unexpected(EntryError{defect, std::move(error)});
}

// Reads and checks the bytes of an open entry. Sizes are checked against the header before memory is taken.
EntryExpected<Entry> read_entry_file(int fd, const struct stat& status) {
  std::array<std::byte, kEntryHeaderBytes> header;
  const ssize_t got = read_full(fd, header);
  if (got < 0) return reject(EntryDefect::kUnreadable, os_error("cannot read the entry", errno));
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  const auto layout = check_entry_header(std::span(header).first(static_cast<std::size_t>(got)), file_size);
  if (!layout) return tl::unexpected(layout.error());

  Buffer file(static_cast<std::size_t>(layout->file_size()));
  const ssize_t size = read_full(fd, file.bytes());
  if (size < 0) return reject(EntryDefect::kUnreadable, os_error("cannot read the entry", errno));
  if (static_cast<std::uint64_t>(size) != layout->file_size()) {
    return reject(EntryDefect::kTruncated, Error{ErrorCode::kCorruptData, "the entry shrank while it was read", {}});
  }
  return Entry::decode(std::move(file));
}

}  // namespace

Store::Store(std::string root, LayerAccess access, UniqueFd root_fd, UniqueFd entries, PublishHook hook)
    : root_(std::move(root)),
      access_(access),
      root_fd_(std::move(root_fd)),
      entries_(std::move(entries)),
      hook_(std::move(hook)) {}

Expected<std::unique_ptr<Store>> Store::open(std::string root, LayerAccess access, PublishHook hook) {
  while (root.size() > 1 && root.back() == '/') root.pop_back();  // "x/" would follow a symlink x
  if (!root.starts_with('/')) {
    return make_error(ErrorCode::kInvalidArgument, "cache directory '" + root + "' is not an absolute path");
  }
  auto root_fd = open_checked_directory(AT_FDCWD, root, access, root);
  if (!root_fd && root_fd.error().code == ErrorCode::kNotFound && access == LayerAccess::kWritable) {
    if (Status made = make_directories(root); !made) return tl::unexpected(std::move(made.error()));
    root_fd = open_checked_directory(AT_FDCWD, root, access, root);
  }
  if (!root_fd) return tl::unexpected(std::move(root_fd.error()));

  const std::string name = kEntriesDirectory;
  const std::string path = root + "/" + name;
  if (access == LayerAccess::kWritable && ::mkdirat(root_fd->get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return tl::unexpected(os_error("cannot make the cache directory '" + path + "'", errno));
  }
  auto entries = open_checked_directory(root_fd->get(), name, access, path);
  if (!entries) return tl::unexpected(std::move(entries.error()));
  return std::unique_ptr<Store>(
      new Store(std::move(root), access, std::move(*root_fd), std::move(*entries), std::move(hook)));
}

EntryExpected<std::optional<Entry>> Store::read(const Key& key, const PayloadValidator& validator,
                                                OnReject on_reject) const {
  const auto same_key = [&key](const Entry& entry) -> std::optional<EntryError> {
    if (entry.key() == key.bytes) return std::nullopt;
    return key_mismatch(key.bytes, entry.key());
  };
  return read_checked(key.hash, same_key, validator, on_reject);
}

EntryExpected<std::optional<Entry>> Store::read_named(const Hash128& name, OnReject on_reject) const {
  const auto hashes_to_name = [&name](const Entry& entry) -> std::optional<EntryError> {
    const Hash128 found = hash128(as_bytes(entry.key()));
    if (found == name) return std::nullopt;
    return EntryError{EntryDefect::kKeyMismatch,
                      Error{ErrorCode::kCorruptData, "the entry's key belongs under the name " + to_hex(found), {}}};
  };
  return read_checked(name, hashes_to_name, nullptr, on_reject);
}

EntryExpected<std::optional<Entry>> Store::read_checked(const Hash128& name, const KeyCheck& key_check,
                                                        const PayloadValidator& validator, OnReject on_reject) const {
  const std::string file = file_name(name);
  const std::string path = root_ + "/" + kEntriesDirectory + "/" + file;
  const auto refuse = [&](EntryError error, const struct stat* status) {
    error.error.message = "cache entry '" + path + "': " + error.error.message;
    if (on_reject == OnReject::kSetAside && error.defect != EntryDefect::kUnreadable) {
      set_aside_file(file, error.defect, status);
    }
    return tl::unexpected(std::move(error));
  };
  const auto unsafe = [&](const struct stat& status) {
    return EntryError{EntryDefect::kUnsafeFile,
                      Error{ErrorCode::kCorruptData, "the file " + unsafe_reason(status, access_, path), {}}};
  };

  // O_NONBLOCK: a fifo in an entry's place must not block.
  const UniqueFd fd = open_at(entries_.get(), file.c_str(), O_RDONLY | O_NONBLOCK);
  struct stat status{};
  if (!fd.valid()) {
    const int code = errno;
    if (code == ENOENT || code == ESTALE) return std::optional<Entry>();
    if (::fstatat(entries_.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) {
      return refuse(unsafe(status), &status);
    }
    return refuse({EntryDefect::kUnreadable, os_error("cannot open the entry", code)}, nullptr);
  }
  if (::fstat(fd.get(), &status) != 0) {
    return refuse({EntryDefect::kUnreadable, os_error("cannot examine the entry", errno)}, nullptr);
  }
  if (!unsafe_reason(status, access_, path).empty()) return refuse(unsafe(status), &status);
  if (!S_ISREG(status.st_mode)) {
    return refuse({EntryDefect::kUnsafeFile, Error{ErrorCode::kCorruptData, "it is not a regular file", {}}}, &status);
  }

  EntryExpected<Entry> entry = read_entry_file(fd.get(), status);
  if (!entry) return refuse(std::move(entry.error()), &status);
  if (auto wrong_key = key_check(*entry)) return refuse(std::move(*wrong_key), &status);
  if (validator) {
    if (Status valid = validator(*entry); !valid) {
      return refuse({EntryDefect::kPayloadRejected, std::move(valid.error())}, &status);
    }
  }
  return std::optional<Entry>(std::move(*entry));
}

void Store::set_aside(const Hash128& name, EntryDefect defect) const {
  set_aside_file(file_name(name), defect, nullptr);
}

// With `expected`, only while the name still stands for that file: another process may have mended it meanwhile.
void Store::set_aside_file(const std::string& file, EntryDefect defect, const struct stat* expected) const {
  if (access_ != LayerAccess::kWritable) return;
  struct stat now{};
  if (::fstatat(entries_.get(), file.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (expected && (now.st_dev != expected->st_dev || now.st_ino != expected->st_ino)) return;
  ::mkdirat(entries_.get(), kRejectedDirectory, 0700);
  const std::string to = std::string(kRejectedDirectory) + "/" + file.substr(0, kHashHexDigits) + "." +
                         std::string(entry_defect_name(defect));
  if (::renameat(entries_.get(), file.c_str(), entries_.get(), to.c_str()) != 0) {
    ::unlinkat(entries_.get(), file.c_str(), 0);
  }
}

Status Store::step(PublishStep step) const { return hook_ ? hook_(step) : Status(); }

// An empty file under a name of its own, locked so that no sweep takes it.
Expected<UniqueFd> Store::create_temporary(std::string& name) const {
  static std::atomic<std::uint64_t> counter{0};
  while (true) {
    name = std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    UniqueFd fd = open_at(entries_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!fd.valid() && errno == EEXIST) continue;  // same process id in another container
    if (!fd.valid()) return tl::unexpected(os_error("cannot create a file in '" + root_ + "'", errno));
    struct stat status{};
    const bool locked = ::flock(fd.get(), LOCK_EX) == 0;
    if (locked && ::fstat(fd.get(), &status) == 0 && status.st_nlink == 0) continue;  // swept before it was locked
    return fd;
  }
}

Status Store::write_temporary(int fd, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    if (Status allowed = step(PublishStep::kWrite); !allowed) return allowed;
    const auto chunk = bytes.first(std::min(bytes.size(), kWriteChunk));
    if (const int code = write_full(fd, chunk)) {
      return tl::unexpected(os_error("cannot write a cache entry in '" + root_ + "'", code));
    }
    bytes = bytes.subspan(chunk.size());
  }
  if (Status allowed = step(PublishStep::kSync); !allowed) return allowed;
  if (::fsync(fd) != 0) return tl::unexpected(os_error("cannot sync a cache entry in '" + root_ + "'", errno));
  return {};
}

Status Store::publish(const Entry& entry) {
  if (access_ != LayerAccess::kWritable) {
    return make_error(ErrorCode::kInvalidArgument, "cache layer '" + root_ + "' is read-only");
  }
  std::call_once(sweep_once_, [this] { sweep_temporaries(); });

  if (Status allowed = step(PublishStep::kCreate); !allowed) return allowed;
  std::string temporary;
  const Expected<UniqueFd> fd = create_temporary(temporary);
  if (!fd) return tl::unexpected(fd.error());

  Status done = write_temporary(fd->get(), entry.file_bytes());
  if (done) done = step(PublishStep::kRename);
  const std::string file = file_name(hash128(as_bytes(entry.key())));
  if (done && ::renameat(entries_.get(), temporary.c_str(), entries_.get(), file.c_str()) != 0) {
    done = tl::unexpected(os_error("cannot rename a cache entry in '" + root_ + "'", errno));
  }
  if (!done) {
    ::unlinkat(entries_.get(), temporary.c_str(), 0);
    return done;
  }
  // The entry is whole and visible from here on; a directory that cannot be synced may lose it in a power cut, no more.
  if (Status allowed = step(PublishStep::kSyncDirectory); !allowed) return allowed;
  if (::fsync(entries_.get()) != 0) {
    return tl::unexpected(os_error("cannot sync the cache directory '" + root_ + "'", errno));
  }
  return step(PublishStep::kDone);
}

void Store::sweep_temporaries() const {
  std::vector<std::string> names;
  const Status walked = for_each_name(entries_.get(), [&names](const char* name) {
    if (std::string_view(name).starts_with(kTemporaryPrefix)) names.emplace_back(name);
  });
  if (!walked) return;
  for (const std::string& name : names) {
    const UniqueFd fd = open_at(entries_.get(), name.c_str(), O_RDONLY | O_NONBLOCK);
    // A lock that is free means the writer is gone; a live one holds it until the rename.
    if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(entries_.get(), name.c_str(), 0);
  }
}

std::pair<LockOutcome, ProcessLock> Store::lock(const Key& key, std::chrono::milliseconds limit) {
  std::call_once(locks_once_, [this] {
    ::mkdirat(entries_.get(), kLocksDirectory, 0700);
    auto opened = open_checked_directory(entries_.get(), kLocksDirectory, LayerAccess::kWritable, root_);
    if (opened) locks_ = std::move(*opened);
  });
  if (!locks_.valid()) return {LockOutcome::kUnavailable, ProcessLock()};
  return ProcessLock::acquire(locks_.get(), key.name(), limit);
}

Expected<std::vector<ListedEntry>> Store::list() const {
  std::vector<ListedEntry> entries;
  const Status walked = for_each_name(entries_.get(), [&](const char* name) {
    struct stat status{};
    const auto hash = name_of_file(name);
    if (!hash || ::fstatat(entries_.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    entries.push_back({to_hex(*hash), static_cast<std::uint64_t>(status.st_size)});
  });
  if (!walked) return tl::unexpected(walked.error());
  std::ranges::sort(entries, {}, &ListedEntry::name);
  return entries;
}

}  // namespace zyfa::cache
