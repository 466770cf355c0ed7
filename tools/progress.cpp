#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>

namespace zyfa::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kQuietSeconds = 2, kRefreshSeconds = 0.2;
constexpr std::size_t kColumns = 20;

struct Bar {
  std::uint64_t total = 0;
  Clock::time_point start;
  double drawn = 0;  // seconds after start

  void update(std::uint64_t ended, std::uint64_t workgroups) {
    if (ended == 0 && workgroups != total) {
      total = workgroups;
      start = Clock::now();
      drawn = 0;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (ended == workgroups) {
      if (drawn != 0) {
        fmt::print(stderr, "\r\033[K");
      }
      total = 0;
    } else if (seconds >= kQuietSeconds && seconds - drawn >= kRefreshSeconds) {
      drawn = seconds;
      fmt::print(stderr, "\r\033[K{}", progress_text(ended, workgroups, seconds));
    }
  }
};

}  // namespace

std::string progress_text(std::uint64_t ended, std::uint64_t workgroups, double seconds) {
  const double share = workgroups == 0 ? 1 : static_cast<double>(ended) / static_cast<double>(workgroups);
  const auto full = static_cast<std::size_t>(share * kColumns);
  std::string text = fmt::format("[{}{}] {} of {} workgroups, {:.0f} s", std::string(full, '#'),
                                 std::string(kColumns - full, '.'), ended, workgroups, seconds);
  if (ended != 0 && ended < workgroups) {
    text += fmt::format(", about {:.0f} s left", seconds / share - seconds);
  }
  return text;
}

std::function<void(std::uint64_t, std::uint64_t)> simulation_progress() {
  if (::isatty(STDERR_FILENO) == 0) {
    return {};
  }
  return [bar = std::make_shared<Bar>()](std::uint64_t ended, std::uint64_t workgroups) {
    bar->update(ended, workgroups);
  };
}

std::function<void(const std::string&)> step_progress() {
  if (::isatty(STDERR_FILENO) == 0) {
    return {};
  }
  return [](const std::string& what) { fmt::print(stderr, "\r\033[K{}", what); };
}

}  // namespace zyfa::tools
