// What the cache tests share: throw-away directories, keys and objects made from a number, recorded events, child
// processes.
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache/cache.h"

namespace zyfa::cache {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = testing::TempDir() + "/zyfa-cache-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = std::filesystem::canonical(pattern);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] std::string path(const std::string& name = {}) const { return name.empty() ? path_ : path_ / name; }

 private:
  std::filesystem::path path_;
};

inline Key key_of(std::uint64_t number) {
  return KeyBuilder(1).add_string("target", "gfx950:sramecc+:xnack-").add_u64("number", number).build().value();
}

// Bytes that depend on every bit of the number, so that one object can never pass for another.
inline std::vector<std::byte> object_of(std::uint64_t number, std::size_t size = 2048) {
  std::vector<std::byte> object(size);
  std::uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& value : object) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    value = std::byte(state >> 56);
  }
  return object;
}

inline Entry entry_of(std::uint64_t number, std::size_t size = 2048) {
  return Entry::encode(key_of(number).bytes, as_bytes("metadata"), object_of(number, size)).value();
}

inline Builder builder_of(std::uint64_t number, std::size_t size = 2048) {
  return [number, size]() -> Expected<BuiltEntry> { return BuiltEntry{"metadata", object_of(number, size)}; };
}

inline bool holds(const Entry& entry, const std::vector<std::byte>& object) {
  return std::ranges::equal(entry.object(), object);
}

inline CacheConfig config_for(const std::string& writable, std::vector<std::string> read_only = {}) {
  CacheConfig config;
  config.writable_layer = writable;
  config.read_only_layers = std::move(read_only);
  return config;
}

inline std::string entry_path(const std::string& root, const Key& key) { return root + "/v1/" + key.name() + ".zyfa"; }

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, std::string_view bytes) {
  std::filesystem::remove(path);  // truncating a file in place makes ext4 flush it
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
}

inline std::size_t count_files(const std::string& directory, std::string_view prefix) {
  std::size_t count = 0;
  if (!std::filesystem::exists(directory)) return 0;
  for (const auto& item : std::filesystem::directory_iterator(directory)) {
    count += item.path().filename().string().starts_with(prefix) ? 1 : 0;
  }
  return count;
}

class EventLog {
 public:
  [[nodiscard]] std::function<void(const CacheEvent&)> observer() {
    return [this](const CacheEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
  }
  [[nodiscard]] std::vector<CacheEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<CacheEvent> events_;
};

// While it lives no thread can be started: the default stack is larger than any address space.
class NoNewThreads {
 public:
  NoNewThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    ::pthread_attr_init(&huge);
    ::pthread_attr_setstacksize(&huge, std::size_t{1} << 52);
    ::pthread_setattr_default_np(&huge);
    ::pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_;
};

// A child that runs `body` and exits with what it returns. Only from a single-threaded test.
inline pid_t start_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

struct ChildEnd {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  rusage usage{};
};

inline ChildEnd wait_for(pid_t child) {
  int status = 0;
  ChildEnd end;
  while (::wait4(child, &status, 0, &end.usage) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

inline int exit_code_of(const std::function<int()>& body) { return wait_for(start_child(body)).exit_code; }

}  // namespace zyfa::cache
