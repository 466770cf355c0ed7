// The locks of this library that every thread of the process shares, and what fork() does to them.
//
// A child has the forking thread alone: a lock that another thread held would stay locked, and a build that another
// thread ran would leave LLVM's globals in the middle. So fork() first waits for running builds (some tens of
// milliseconds) and holds these locks while the process forks; the child gets fresh ones. The caches' own:
// cache/fork.h. Nothing here is ever destroyed: kernels may be compiled while the process exits.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace zyfa {

// In the order in which a thread may take several.
struct ProcessLocks {
  std::mutex caches;         // kernel_store.cpp: the list of open caches
  std::mutex build_entry;    // so that builds that follow one another do not keep a fork waiting
  std::shared_mutex builds;  // shared by each build
  std::mutex jit_library;    // jit_loader.cpp
};

[[nodiscard]] ProcessLocks& process_locks();

// To be held while a kernel is built.
[[nodiscard]] std::shared_lock<std::shared_mutex> enter_build();

}  // namespace zyfa
