// The loop at the corners of what sources leave open: profile.h.
#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "runtime/sim/crew.h"
#include "runtime/sim/profile.h"
#include "runtime/sim/timing/steady.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using timing::Parameters;

// The middle half of four trips is two; 30,000 steps are ten trips of a 64-key loop in 8 waves.
constexpr u64 kLeastTrips = 4, kLeastSteps = 30000;

struct Axis {
  std::string_view parameter;
  u32 Parameters::* member;
  std::array<u32, 3> values;
  unsigned count;
};

// What the timing reference gives as alternatives (1.1, 1.3, 1.5, 2.2, 2.3, 3.1) and as loaded round trips (3.2).
constexpr Axis kAxes[] = {
    {"hold_other_wave", &Parameters::hold_other_wave, {0, 1}, 2},
    {"pk_matrix_cycles", &Parameters::pk_matrix_cycles, {0, 4, 5}, 3},
    {"cvt_pk_u8_cycles", &Parameters::cvt_pk_u8_cycles, {4, 8}, 2},
    {"permlane_cycles", &Parameters::permlane_cycles, {8, 20}, 2},
    {"barrier_cycles", &Parameters::barrier_cycles, {20, 80}, 2},
    {"waitcnt_cycles", &Parameters::waitcnt_cycles, {0, 4}, 2},
    {"tr_b8_bytes_per_clock", &Parameters::tr_b8_bytes_per_clock, {163, 256}, 2},
    {"l2_latency", &Parameters::l2_latency, {600, 1500}, 2},
    {"shared_memory_port", &Parameters::shared_memory_port, {0, 1}, 2},
};

struct Corner {
  Parameters parameters;
  std::vector<u32> values;
};

std::vector<Corner> all_corners(const Parameters& parameters) {
  std::vector<Corner> corners{{parameters, {}}};
  for (const Axis& axis : kAxes) {
    std::vector<Corner> more;
    for (const Corner& corner : corners) {
      for (unsigned i = 0; i < axis.count; ++i) {
        Corner& next = more.emplace_back(corner);
        next.parameters.*axis.member = axis.values[i];
        next.values.push_back(axis.values[i]);
      }
    }
    corners = std::move(more);
  }
  return corners;
}

// Indices of the steps at the loop's head.
std::vector<std::size_t> passes_of(const timing::WaveTrace& wave, u32 head) {
  std::vector<std::size_t> passes;
  for (std::size_t i = 0; i < wave.steps.size(); ++i)
    if (wave.steps[i].op == head) passes.push_back(i);
  return passes;
}

Expected<std::optional<u32>> head_of(const LaunchCapture& capture, std::size_t group, unsigned resident,
                                     const Parameters& parameters) {
  const Expected<timing::CuResult> run = run_group(capture, group, resident, timing::EventLog::kOn, parameters);
  if (!run) return tl::unexpected(run.error());
  const Expected<timing::SteadyLoop> loop = timing::steady_loop(capture.kernel->program(), *run);
  return loop ? std::optional(loop->head) : std::nullopt;
}

Expected<ProfileCorner> run_corner(const LaunchCapture& excerpt, unsigned resident, const Corner& corner,
                                   const ProfileOptions& options) {
  const Expected<timing::CuResult> run = run_group(excerpt, 0, resident, timing::EventLog::kOn, corner.parameters);
  if (!run) return tl::unexpected(run.error());
  LaunchProfile profile;
  describe_run(excerpt, 0, *run, {.attention = options.attention}, profile);
  if (!profile.loop) return make_error(ErrorCode::kInternal, "the excerpt of a loop has no loop");
  return ProfileCorner{corner.values, profile.loop->cycles, profile.loop->tile_cycles, profile.units.front().steady,
                       profile.loop->useful_busy};
}

}  // namespace

LoopExcerpt loop_excerpt(const timing::GroupTrace& group, u32 head, u64 least_trips, u64 least_steps) {
  std::vector<std::vector<std::size_t>> passes;
  u64 most = ~u64{0}, steps = 0;
  for (const timing::WaveTrace& wave : group.waves) {
    passes.push_back(passes_of(wave, head));
    const u64 trips = passes.back().empty() ? 0 : passes.back().size() - 1;
    most = std::min(most, trips);
    if (trips != 0) steps += (passes.back().back() - passes.back().front()) / trips;
  }
  if (most < least_trips) return {group, 0};
  const u64 trips = std::min(most, std::max(least_trips, (least_steps + steps - 1) / steps));

  LoopExcerpt excerpt{{group.id, {}}, trips};
  for (std::size_t w = 0; w < group.waves.size(); ++w) {
    const auto at = [&](std::size_t i) { return group.waves[w].steps.begin() + static_cast<std::ptrdiff_t>(i); };
    const std::size_t from = (passes[w].size() - 1 - trips) / 2;
    timing::WaveTrace& wave = excerpt.trace.waves.emplace_back();
    wave.steps.assign(at(0), at(passes[w].front()));
    // The head once more ends the last trip.
    wave.steps.insert(wave.steps.end(), at(passes[w][from]), at(passes[w][from + trips] + 1));
  }
  return excerpt;
}

Expected<std::optional<ProfileCorners>> measure_corners(const LaunchCapture& capture, std::size_t group,
                                                        unsigned resident, const Parameters& parameters,
                                                        const ProfileOptions& options) {
  const Expected<std::optional<u32>> head = head_of(capture, group, resident, parameters);
  if (!head) return tl::unexpected(head.error());
  if (!*head) return std::nullopt;
  LoopExcerpt part = loop_excerpt(capture.groups[group], **head, kLeastTrips, kLeastSteps);
  LaunchCapture excerpt;
  excerpt.kernel = capture.kernel;
  excerpt.shape = capture.shape;
  excerpt.lds_bytes = capture.lds_bytes;
  excerpt.groups.push_back(std::move(part.trace));

  std::vector<Corner> corners = all_corners(parameters);
  corners.push_back({parameters, {}});
  ProfileCorners result;
  result.trips = part.trips;
  for (const Axis& axis : kAxes)
    result.axes.push_back({std::string(axis.parameter), {axis.values.begin(), axis.values.begin() + axis.count}});
  result.corners.resize(corners.size());
  std::vector<Status> states(corners.size());
  std::atomic<std::size_t> next{0};
  const Status ran = run_crew(options.threads, [&] {
    for (std::size_t i = next++; i < corners.size(); i = next++) {
      Expected<ProfileCorner> corner = run_corner(excerpt, resident, corners[i], options);
      if (corner) {
        result.corners[i] = std::move(*corner);
      } else {
        states[i] = tl::unexpected(corner.error());
      }
    }
  });
  if (!ran) return tl::unexpected(ran.error());
  for (const Status& state : states)
    if (!state) return tl::unexpected(state.error());
  result.as_set = std::move(result.corners.back());
  result.corners.pop_back();
  const auto worth = [&](const ProfileCorner& c) { return options.attention ? c.useful_busy : c.matrix_busy; };
  std::stable_sort(result.corners.begin(), result.corners.end(),
                   [&](const ProfileCorner& a, const ProfileCorner& b) { return worth(a) < worth(b); });
  return result;
}

}  // namespace zyfa::sim
