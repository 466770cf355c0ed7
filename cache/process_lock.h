// A per-key lock between processes: flock on a file of its own, with a time limit. Only an optimisation, so that one
// process builds while the others wait; correctness rests on the atomic rename in the store alone. The kernel drops the
// lock of a process that dies, so there is nothing stale to judge. The holder unlinks the file before it lets go; a
// waiter that then gets the lock of an unlinked file sees so and starts over.
#pragma once

#include <chrono>
#include <string>

#include "cache/file.h"

namespace zyfa::cache {

enum class LockOutcome {
  kHeld,
  kTimedOut,     // another process held it for the whole time limit
  kUnavailable,  // the file system has no locks or cannot be written: go on without one
};

class ProcessLock {
 public:
  ProcessLock() = default;
  ProcessLock(ProcessLock&&) noexcept = default;
  ProcessLock& operator=(ProcessLock&& other) noexcept;
  ~ProcessLock() { release(); }

  // Takes the lock `name` in `directory`, which must stay open while the lock is held. Sleeps between tries, never
  // spins.
  [[nodiscard]] static std::pair<LockOutcome, ProcessLock> acquire(int directory, std::string name,
                                                                   std::chrono::milliseconds limit);
  [[nodiscard]] bool held() const { return file_.valid(); }
  void release();

 private:
  ProcessLock(int directory, std::string name, UniqueFd file)
      : directory_(directory), name_(std::move(name)), file_(std::move(file)) {}

  int directory_ = -1;
  std::string name_;
  UniqueFd file_;
};

}  // namespace zyfa::cache
