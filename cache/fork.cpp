#include "cache/fork.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace zyfa::cache {
namespace {

struct Members {
  std::mutex mutex;
  std::vector<ForkMember*> all;
};

// Never destroyed: the process may fork while it exits.
Members& members() {
  static auto* members = new Members;
  return *members;
}

void lock_all() {
  members().mutex.lock();
  for (ForkMember* member : members().all) member->lock_for_fork();
}

void unlock_all() {
  for (ForkMember* member : members().all) member->unlock_in_parent();
  members().mutex.unlock();
}

void renew_all() {
  for (ForkMember* member : members().all) member->renew_in_child();
  renew(members().mutex);
}

}  // namespace

void install_fork_handlers() {
  // Fails for want of memory only; forking is then as unsafe as without it.
  [[maybe_unused]] static const int installed = ::pthread_atfork(lock_all, unlock_all, renew_all);
}

void ForkMember::join_forks() {
  install_fork_handlers();
  const std::lock_guard lock(members().mutex);
  members().all.push_back(this);
}

void ForkMember::leave_forks() {
  const std::lock_guard lock(members().mutex);
  std::erase(members().all, this);
}

}  // namespace zyfa::cache
