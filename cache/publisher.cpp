#include "cache/publisher.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace zyfa::cache {

struct Publisher::State {
  std::mutex mutex;
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
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->work.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
}

bool Publisher::in_owner_process() const { return ::getpid() == owner_; }

void Publisher::enqueue(Job job) {
  if (!in_owner_process()) {
    job();
    return;
  }
  const std::lock_guard lock(state_->mutex);
  if (!state_->thread.joinable()) state_->thread = std::thread([state = state_.get()] { state->run(); });
  state_->jobs.push_back(std::move(job));
  ++state_->enqueued;
  state_->work.notify_one();
}

void Publisher::drain() {
  if (!in_owner_process()) return;
  std::unique_lock lock(state_->mutex);
  const std::uint64_t target = state_->enqueued;
  state_->finished.wait(lock, [&] { return state_->done >= target; });
}

}  // namespace zyfa::cache
