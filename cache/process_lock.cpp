#include "cache/process_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace zyfa::cache {
namespace {

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{20};

// True when `file` is still what `name` stands for, not an unlinked predecessor.
bool still_named(int directory, const std::string& name, int file) {
  struct stat by_fd{}, by_name{};
  return ::fstat(file, &by_fd) == 0 && ::fstatat(directory, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
         by_fd.st_dev == by_name.st_dev && by_fd.st_ino == by_name.st_ino;
}

}  // namespace

ProcessLock& ProcessLock::operator=(ProcessLock&& other) noexcept {
  if (this != &other) {
    release();
    directory_ = other.directory_;
    name_ = std::move(other.name_);
    file_ = std::move(other.file_);
  }
  return *this;
}

std::pair<LockOutcome, ProcessLock> ProcessLock::acquire(int directory, std::string name,
                                                         std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  auto pause = kFirstPause;
  UniqueFd file;
  while (true) {
    if (!file.valid()) file = open_at(directory, name.c_str(), O_RDWR | O_CREAT, 0600);
    if (!file.valid()) return {LockOutcome::kUnavailable, ProcessLock()};
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (still_named(directory, name, file.get())) {
        return {LockOutcome::kHeld, ProcessLock(directory, std::move(name), std::move(file))};
      }
      file.reset();
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return {LockOutcome::kUnavailable, ProcessLock()};
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return {LockOutcome::kTimedOut, ProcessLock()};
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline - now));
    pause = std::min(pause * 2, kLongestPause);
  }
}

void ProcessLock::release() {
  if (!file_.valid()) return;
  ::unlinkat(directory_, name_.c_str(), 0);
  ::flock(file_.get(), LOCK_UN);  // closing is not enough: a child forked meanwhile has a copy
  file_.reset();
}

}  // namespace zyfa::cache
