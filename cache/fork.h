// Caches over fork(). A child has the forking thread alone, so a lock held or a build run by any other thread would
// stay so for ever. The handlers of pthread_atfork() therefore hold the locks of every cache while the process forks,
// and give the child fresh ones and no running builds. Publishing in a child: publisher.h.
#pragma once

#include <new>

namespace zyfa::cache {

class ForkMember {
 public:
  ForkMember(const ForkMember&) = delete;
  ForkMember& operator=(const ForkMember&) = delete;

  virtual void lock_for_fork() = 0;
  virtual void unlock_in_parent() = 0;
  virtual void renew_in_child() = 0;

 protected:
  ForkMember() = default;
  ~ForkMember() = default;
  // Around the time a member can be used; no lock of its own may be held.
  void join_forks();
  void leave_forks();
};

// Installs the handlers. Handlers that are installed later run before these at a fork, so their locks may be held while
// a cache is made.
void install_fork_handlers();

// A fresh object in place of one whose state belongs to threads that do not exist here. Locks hold no resources.
template <typename Lock>
void renew(Lock& lock) {
  new (&lock) Lock;
}

}  // namespace zyfa::cache
