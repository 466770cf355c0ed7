// Runs publishes on one background thread, started by the first of them, so that nobody who waits for a kernel waits
// for a disk. stop() and the destructor finish what is queued. A process that dies first loses unpublished entries and
// nothing else.
//
// Where there is no thread, jobs run at once in the caller: in a child made by fork() (the parent's queue is left
// alone), after stop(), and when the system gives no thread. A job must not throw.
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
  // Runs what is queued and ends the thread.
  void stop();
  // Returns when every job enqueued before the call has run.
  void drain();

 private:
  struct State;
  [[nodiscard]] bool in_owner_process() const;
  [[nodiscard]] bool hand_over(Job& job);

  pid_t owner_;
  std::unique_ptr<State> state_;
};

}  // namespace zyfa::cache
