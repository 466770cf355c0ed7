// Runs publishes on one background thread, started by the first of them, so that nobody who waits for a kernel waits
// for a disk. The destructor finishes what is queued. A process that dies first loses unpublished entries and nothing
// else.
//
// In a child made by fork() the thread does not exist: jobs run at once in the caller, and the parent's queue is left
// alone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace zyfa::cache {

class Publisher {
 public:
  using Job = std::function<void()>;

  Publisher();
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  void enqueue(Job job);
  // Returns when every job enqueued before the call has run.
  void drain();

 private:
  struct State;
  [[nodiscard]] bool in_owner_process() const;

  pid_t owner_;
  std::unique_ptr<State> state_;
};

}  // namespace zyfa::cache
