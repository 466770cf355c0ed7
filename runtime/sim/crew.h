// Several host threads doing one piece of work: the simulator's launches.
#pragma once

#include <functional>
#include <thread>

#include "zyfa/error.h"

namespace zyfa::sim {

// Starts a thread or throws std::system_error, like the constructor of std::thread.
using ThreadStarter = std::function<std::thread(const std::function<void()>&)>;

// Runs `work` once on the caller's thread and once on each of up to `threads` - 1 others, and waits for all. Threads
// that the host refuses are done without: `work` shares out what there is to do. An exception leaving `work` on any
// thread is kDeviceError; the first wins.
[[nodiscard]] Status run_crew(
    unsigned threads, const std::function<void()>& work,
    const ThreadStarter& start = [](const std::function<void()>& run) { return std::thread(run); });

}  // namespace zyfa::sim
