// The few POSIX file calls the store needs, with interrupted calls repeated and errors as sentences.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "zyfa/error.h"

namespace zyfa::cache {

// Owns a file descriptor; -1 means none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

// kIoError "<what>: <the system's reason>".
[[nodiscard]] Error os_error(std::string what, int code);

// openat with O_CLOEXEC | O_NOFOLLOW added. Invalid and errno set on failure.
[[nodiscard]] UniqueFd open_at(int directory, const char* name, int flags, mode_t mode = 0);

// Bytes read from the start of the file until `to` is full or the file ends; -1 and errno on failure.
[[nodiscard]] ssize_t read_full(int fd, std::span<std::byte> to);

// 0, or the errno of the write that failed.
[[nodiscard]] int write_full(int fd, std::span<const std::byte> from);

}  // namespace zyfa::cache
