// What the parameters' ranges do: profile.h.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "runtime/sim/crew.h"
#include "runtime/sim/profile.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// About ten trips of an FP8 attention loop in 8 waves: beyond that, a sample says nothing more.
constexpr u64 kEnoughSteps = 30000;

std::size_t sample_of(const LaunchCapture& capture, unsigned resident) {
  std::size_t best = 0;
  u64 best_steps = 0;
  for (std::size_t i = 0; i < capture.groups.size(); ++i) {
    u64 steps = 0;
    for (const timing::WaveTrace& wave : capture.groups[i].waves) steps += wave.steps.size();
    steps *= resident;
    const bool enough = steps >= kEnoughSteps, had_enough = best_steps >= kEnoughSteps;
    if (enough == had_enough ? (enough ? steps < best_steps : steps > best_steps) : enough) {
      best = i;
      best_steps = steps;
    }
  }
  return best;
}

}  // namespace

Expected<std::vector<ProfileSensitivity>> measure_sensitivity(const LaunchCapture& capture, unsigned resident,
                                                              const timing::Parameters& parameters, unsigned threads) {
  const std::size_t sample = sample_of(capture, resident);
  const auto cycles_with = [&](const timing::Parameters& p) -> Expected<double> {
    const Expected<timing::CuResult> run = run_group(capture, sample, resident, timing::EventLog::kOff, p);
    if (!run) return tl::unexpected(run.error());
    return static_cast<double>(run->cycles);
  };
  const Expected<double> reference = cycles_with(parameters);
  if (!reference) return tl::unexpected(reference.error());

  const auto table = timing::parameter_table();
  std::vector<ProfileSensitivity> found(table.size());
  std::vector<Status> states(2 * table.size());
  std::atomic<std::size_t> next{0};
  const Status ran = run_crew(threads, [&] {
    for (std::size_t task = next++; task < states.size(); task = next++) {
      const timing::ParameterInfo& info = table[task / 2];
      const bool high = task % 2 != 0;
      timing::Parameters changed = parameters;
      changed.*info.member = high ? info.high : info.low;
      if (changed == parameters) continue;
      const Expected<double> cycles = cycles_with(changed);
      if (!cycles) {
        states[task] = tl::unexpected(cycles.error());
        continue;
      }
      // A sample that only ends takes no cycles, and no parameter changes that.
      if (*reference > 0) (high ? found[task / 2].at_high : found[task / 2].at_low) = *cycles / *reference - 1;
    }
  });
  if (!ran) return tl::unexpected(ran.error());
  for (const Status& state : states)
    if (!state) return tl::unexpected(state.error());
  for (std::size_t i = 0; i < table.size(); ++i) {
    found[i].parameter = table[i].name;
    found[i].value = parameters.*table[i].member;
    found[i].low = table[i].low;
    found[i].high = table[i].high;
    found[i].open = table[i].evidence == timing::Evidence::kOpen;
  }
  std::stable_sort(found.begin(), found.end(), [](const ProfileSensitivity& a, const ProfileSensitivity& b) {
    const auto size = [](const ProfileSensitivity& s) { return std::max(std::abs(s.at_low), std::abs(s.at_high)); };
    return size(a) > size(b);
  });
  return found;
}

ProfileRange relative_range(const std::vector<ProfileSensitivity>& sensitivity) {
  double faster = 0, slower = 0;
  for (const ProfileSensitivity& s : sensitivity) {
    if (!s.open) continue;
    const double least = std::min({s.at_low, s.at_high, 0.0}), most = std::max({s.at_low, s.at_high, 0.0});
    faster += least * least;
    slower += most * most;
  }
  return {1, std::max(0.0, 1 - std::sqrt(faster)), 1 + std::sqrt(slower)};
}

}  // namespace zyfa::sim
