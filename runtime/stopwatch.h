// Durations in milliseconds.
#pragma once

#include <chrono>

namespace zyfa {

template <typename Rep, typename Period>
[[nodiscard]] double milliseconds(std::chrono::duration<Rep, Period> duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

class Stopwatch {
 public:
  // Since construction or the last lap.
  double lap() {
    const Clock::time_point now = Clock::now();
    const double passed = milliseconds(now - start_);
    start_ = now;
    return passed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace zyfa
