#include "cache/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace zyfa::cache {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Error os_error(std::string what, int code) {
  return Error{ErrorCode::kIoError, std::move(what) + ": " + std::generic_category().message(code), {}};
}

UniqueFd open_at(int directory, const char* name, int flags, mode_t mode) {
  int fd = -1;
  do {
    fd = ::openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
  } while (fd < 0 && errno == EINTR);
  return UniqueFd(fd);
}

ssize_t read_full(int fd, std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = ::pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

int write_full(int fd, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t put = ::write(fd, from.data(), from.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    if (put == 0) return EIO;
    from = from.subspan(static_cast<std::size_t>(put));
  }
  return 0;
}

}  // namespace zyfa::cache
