#include "runtime/sim/crew.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <vector>

namespace zyfa::sim {
namespace {

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    return "no host memory";
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace

Status run_crew(unsigned threads, const std::function<void()>& work, const ThreadStarter& start) {
  std::mutex lock;
  std::exception_ptr failure;
  const std::function<void()> guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard hold(lock);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (unsigned i = 1; i < threads; ++i) {
      helpers.emplace_back();
      helpers.back() = start(guarded);
    }
  } catch (const std::system_error&) {
    // The host has no more threads.
  } catch (const std::bad_alloc&) {
    // Nor memory for one.
  }
  guarded();
  for (std::thread& t : helpers)
    if (t.joinable()) t.join();
  if (!failure) return {};
  return make_error(ErrorCode::kDeviceError, fmt::format("a simulator thread failed: {}", text_of(failure)));
}

}  // namespace zyfa::sim
