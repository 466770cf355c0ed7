#include "runtime/process_locks.h"

#include <pthread.h>

#include "cache/fork.h"
#include "runtime/loaded_table.h"

namespace zyfa {
namespace {

void lock_all() {
  ProcessLocks& locks = process_locks();
  locks.caches.lock();
  locks.build_entry.lock();
  locks.builds.lock();
  locks.jit_library.lock();
  LoadedTable::instance().lock_for_fork();
}

void unlock_all() {
  ProcessLocks& locks = process_locks();
  LoadedTable::instance().unlock_in_parent();
  locks.jit_library.unlock();
  locks.builds.unlock();
  locks.build_entry.unlock();
  locks.caches.unlock();
}

void renew_all() {
  LoadedTable::instance().renew_in_child();
  cache::renew(process_locks());
}

ProcessLocks* make_locks() {
  cache::install_fork_handlers();  // before ours: a cache is made under `caches`
  // Fails for want of memory only; forking is then as unsafe as without it.
  static_cast<void>(::pthread_atfork(lock_all, unlock_all, renew_all));
  return new ProcessLocks;
}

}  // namespace

ProcessLocks& process_locks() {
  static ProcessLocks* const locks = make_locks();
  return *locks;
}

std::shared_lock<std::shared_mutex> enter_build() {
  const std::lock_guard entry(process_locks().build_entry);
  return std::shared_lock(process_locks().builds);
}

}  // namespace zyfa
