#include "cache/publisher.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace zyfa::cache {

struct Publisher::State {
  std::mutex mutex;
  std::mutex joining;  // so that two callers may stop
  std::condition_variable work;
  std::condition_variable finished;
  std::deque<Job> jobs;
  std::uint64_t enqueued = 0, done = 0;
  bool stopping = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [this] { return stopping || !jobs.empty(); });
      if (jobs.empty()) return;
      {
        const Job job = std::move(jobs.front());
        jobs.pop_front();
        lock.unlock();
        job();
      }
      lock.lock();
      ++done;
      finished.notify_all();
    }
  }
};

Publisher::Publisher() : owner_(::getpid()), state_(std::make_unique<State>()) {}

Publisher::~Publisher() {
  if (!in_owner_process()) {
    // Copies of the parent's mutex and thread handle, in whatever state the fork found them: not to be touched.
    static_cast<void>(state_.release());
    return;
  }
  stop();
}

bool Publisher::in_owner_process() const { return ::getpid() == owner_; }

void Publisher::enqueue(Job job) {
  if (!in_owner_process() || !hand_over(job)) job();
}

// False, with the job untouched, when no thread takes jobs.
bool Publisher::hand_over(Job& job) {
  const std::lock_guard lock(state_->mutex);
  if (state_->stopping) return false;
  if (!state_->thread.joinable()) {
    try {
      state_->thread = std::thread([state = state_.get()] { state->run(); });
    } catch (const std::system_error&) {
      return false;
    }
  }
  state_->jobs.push_back(std::move(job));
  ++state_->enqueued;
  state_->work.notify_one();
  return true;
}

void Publisher::stop() {
  if (!in_owner_process()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->work.notify_all();
  const std::lock_guard lock(state_->joining);
  if (state_->thread.joinable()) state_->thread.join();
}

void Publisher::drain() {
  if (!in_owner_process()) return;
  std::unique_lock lock(state_->mutex);
  const std::uint64_t target = state_->enqueued;
  state_->finished.wait(lock, [&] { return state_->done >= target; });
}

}  // namespace zyfa::cache
