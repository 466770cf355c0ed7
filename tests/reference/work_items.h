// Numbered work items on several threads. Which thread does an item changes no result: items share nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace zyfa::reference {

// Calls make_worker() once in each thread and what it returns with every item of [0, items). `threads` = 0 means one
// per core.
template <typename MakeWorker>
void for_each_item(std::int64_t items, unsigned threads, const MakeWorker& make_worker) {
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    auto worker = make_worker();
    for (std::int64_t item = next++; item < items; item = next++) {
      worker(item);
    }
  };
  const std::int64_t cores = threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  // A second thread costs more than a problem of a few items.
  for (std::int64_t t = 1; t < std::min(cores, items / 4); ++t) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the threads there are do the work
    }
  }
  work();
  for (std::thread& helper : helpers) {
    helper.join();
  }
}

}  // namespace zyfa::reference
