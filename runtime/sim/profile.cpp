#include "runtime/sim/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "runtime/sim/crew.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Grid = std::array<u32, 3>;

constexpr u64 kMostWorkgroups = u64{1} << 24;

Expected<timing::Parameters> parameters_of(std::span<const std::string> texts) {
  timing::Parameters parameters;
  for (const std::string& text : texts) {
    Expected<timing::Parameters> changed = timing::with_parameter_text(parameters, text);
    if (!changed) return changed;
    parameters = *changed;
  }
  return parameters;
}

Status check_figure(const char* name, double value) {
  if (value >= 0 && std::isfinite(value)) return {};
  return make_error(ErrorCode::kInvalidArgument,
                    fmt::format("ProfileOptions::{} is {}; allowed are 0 and finite positive numbers", name, value));
}

Status check_figures(const ProfileOptions& options) {
  if (Status good = check_figure("useful_flops", options.useful_flops); !good) return good;
  if (Status good = check_figure("unique_bytes", options.unique_bytes); !good) return good;
  if (options.threads == 0)
    return make_error(ErrorCode::kInvalidArgument, "ProfileOptions::threads is 0; at least 1 is needed");
  const auto& a = options.attention;
  if (a && (a->head_dim_qk == 0 || a->head_dim_v == 0 || a->queries_per_wave == 0)) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("ProfileOptions::attention has head dims {} and {} and {} queries a wave; all must "
                                  "be positive",
                                  a->head_dim_qk, a->head_dim_v, a->queries_per_wave));
  }
  if (!options.clock_ghz) return {};
  const Expected<timing::Clock> clock = timing::fixed_clock(*options.clock_ghz);
  return clock ? Status() : tl::unexpected(clock.error());
}

Expected<Grid> grid_of(const LaunchCapture& capture, const ProfileOptions& options) {
  Grid grid = capture.shape.grid;
  for (unsigned axis = 0; axis < 3; ++axis) {
    const u32 asked = options.grid[axis];
    if (asked == 0) continue;
    if (capture.shape.grid[axis] != 1 && asked != capture.shape.grid[axis]) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("a grid of {} workgroups on axis {}; {} were launched, and only one can stand for "
                                    "many",
                                    asked, axis, capture.shape.grid[axis]));
    }
    grid[axis] = asked;
  }
  const u64 plane = u64{grid[0]} * grid[1];
  if (plane > kMostWorkgroups || plane * grid[2] > kMostWorkgroups) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a grid of {} x {} x {} workgroups; at most {} are timed", grid[0], grid[1], grid[2],
                                  kMostWorkgroups));
  }
  return grid;
}

u64 steps_of(const timing::GroupTrace& group) {
  u64 steps = 0;
  for (const timing::WaveTrace& wave : group.waves) steps += wave.steps.size();
  return steps;
}

// Runs every recorded workgroup.
Expected<std::vector<ProfileGroup>> time_groups(const LaunchCapture& capture, unsigned resident,
                                                const timing::Parameters& parameters, unsigned threads) {
  std::vector<ProfileGroup> groups(capture.groups.size());
  std::vector<Status> states(groups.size());
  std::atomic<std::size_t> next{0};
  const Status ran = run_crew(static_cast<unsigned>(std::min<std::size_t>(threads, groups.size())), [&] {
    for (std::size_t i = next++; i < groups.size(); i = next++) {
      const Expected<timing::CuResult> result = run_group(capture, i, resident, timing::EventLog::kOff, parameters);
      if (!result) {
        states[i] = tl::unexpected(result.error());
        continue;
      }
      groups[i] = {capture.groups[i].id, steps_of(capture.groups[i]), result->cycles};
    }
  });
  if (!ran) return tl::unexpected(ran.error());
  for (const Status& state : states)
    if (!state) return tl::unexpected(state.error());
  return groups;
}

double matrix_percent(const LaunchProfile& profile) {
  for (const ProfileUnit& unit : profile.units)
    if (unit.name == "matrix") return 100 * (profile.loop ? unit.steady : unit.whole);
  return 0;
}

}  // namespace

std::vector<ProfileParameter> profile_parameter_list() {
  std::vector<ProfileParameter> list;
  for (const timing::ParameterInfo& p : timing::parameter_table()) {
    list.push_back({std::string(p.name), p.initial, p.low, p.high, std::string(p.unit), std::string(p.source),
                    std::string(p.meaning), p.evidence == timing::Evidence::kOpen});
  }
  return list;
}

Expected<timing::CuResult> run_group(const LaunchCapture& capture, std::size_t group, unsigned resident,
                                     timing::EventLog events, const timing::Parameters& parameters) {
  timing::CuRun run;
  run.program = &capture.kernel->program();
  run.groups.assign(resident, &capture.groups[group]);
  run.resident = resident;
  run.events = events;
  return timing::run_cu(run, parameters);
}

Status check_parameters(std::span<const std::string> parameters) {
  if (Expected<timing::Parameters> read = parameters_of(parameters); !read)
    return tl::unexpected(std::move(read.error()));
  return {};
}

Expected<LaunchProfile> make_profile(const LaunchCapture& capture, const ProfileOptions& options) {
  const Expected<timing::Parameters> parameters = parameters_of(options.parameters);
  if (!parameters) return tl::unexpected(parameters.error());
  if (Status good = check_figures(options); !good) return tl::unexpected(good.error());
  const Expected<Grid> grid = grid_of(capture, options);
  if (!grid) return tl::unexpected(grid.error());
  const Expected<timing::Occupancy> occupancy =
      timing::occupancy(static_cast<unsigned>(capture.groups.front().waves.size()),
                        capture.kernel->program().registers.rows, capture.lds_bytes);
  if (!occupancy) return tl::unexpected(occupancy.error());
  const u64 workgroups = u64{(*grid)[0]} * (*grid)[1] * (*grid)[2];
  const auto resident =
      static_cast<unsigned>(std::min<u64>(occupancy->resident(), (workgroups + timing::kCus - 1) / timing::kCus));

  LaunchProfile profile;
  profile.kernel = capture.kernel->symbol();
  profile.parameters = options.parameters;
  profile.toggles = capture.toggles;
  Expected<std::vector<ProfileGroup>> groups = time_groups(capture, resident, *parameters, options.threads);
  if (!groups) return tl::unexpected(groups.error());
  profile.groups = std::move(*groups);
  const auto longest = static_cast<std::size_t>(
      std::max_element(profile.groups.begin(), profile.groups.end(),
                       [](const ProfileGroup& a, const ProfileGroup& b) { return a.cycles < b.cycles; }) -
      profile.groups.begin());
  const Expected<timing::CuResult> run = run_group(capture, longest, resident, timing::EventLog::kOn, *parameters);
  if (!run) return tl::unexpected(run.error());
  describe_run(capture, longest, *run, options, profile);

  if (options.errors == ProfileOptions::Errors::kFromParameters) {
    auto sensitivity = measure_sensitivity(capture, resident, *parameters, options.threads);
    if (!sensitivity) return tl::unexpected(sensitivity.error());
    profile.sensitivity = std::move(*sensitivity);
  }
  if (options.corners == ProfileOptions::Corners::kAll) {
    auto corners = measure_corners(capture, longest, resident, *parameters, options);
    if (!corners) return tl::unexpected(corners.error());
    profile.corners = std::move(*corners);
  }
  std::vector<double> cycles;
  for (const ProfileGroup& group : profile.groups) cycles.push_back(static_cast<double>(group.cycles));
  Expected<ProfileChip> chip = describe_chip(capture, options, *grid, *occupancy, resident, cycles,
                                             matrix_percent(profile), relative_range(profile.sensitivity));
  if (!chip) return tl::unexpected(chip.error());
  profile.chip = std::move(*chip);
  return profile;
}

}  // namespace zyfa::sim
