// The prediction for a recorded launch (zyfa/profile.h), put together from the cycle model's parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/sim/launch_capture.h"
#include "runtime/sim/timing/chip_model.h"
#include "runtime/sim/timing/cu_model.h"
#include "zyfa/profile.h"

namespace zyfa::sim {

// kInvalidArgument: a parameter or an option, named with what is allowed.
[[nodiscard]] Expected<LaunchProfile> make_profile(const LaunchCapture& capture, const ProfileOptions& options);

// As ProfileOptions::parameters. kInvalidArgument: names the value and what is allowed.
[[nodiscard]] Status check_parameters(std::span<const std::string> parameters);
[[nodiscard]] std::vector<ProfileParameter> profile_parameter_list();

// The parts, each a pure function.

// One recorded workgroup, `resident` times on one compute unit.
[[nodiscard]] Expected<timing::CuResult> run_group(const LaunchCapture& capture, std::size_t group, unsigned resident,
                                                   timing::EventLog events, const timing::Parameters& parameters);

// Loop, units, waves and what limits them, from the run of the longest workgroup with its events.
void describe_run(const LaunchCapture& capture, std::size_t group, const timing::CuResult& run,
                  const ProfileOptions& options, LaunchProfile& profile);

// A figure of every workgroup of `grid` in launch order from those of the recorded ones. What lies between is
// interpolated: by the instructions that a workgroup executed where all ran, else along the axis on which the recorded
// ones differ (along their number when they differ on several). An axis of one launched workgroup stands for all.
[[nodiscard]] std::vector<double> spread_over_grid(const LaunchCapture& capture,
                                                   const std::array<std::uint32_t, 3>& grid,
                                                   const std::vector<double>& recorded);

// The chip step. `relative`: low and high end of the cycles over their value.
[[nodiscard]] Expected<ProfileChip> describe_chip(const LaunchCapture& capture, const ProfileOptions& options,
                                                  const std::array<std::uint32_t, 3>& grid,
                                                  const timing::Occupancy& occupancy, unsigned resident,
                                                  const std::vector<double>& cycles, double busy_percent,
                                                  const ProfileRange& relative);

// What every parameter's range does to the cycles of a sample: the smallest recorded workgroup that executes enough to
// have a steady state, else the largest.
[[nodiscard]] Expected<std::vector<ProfileSensitivity>> measure_sensitivity(const LaunchCapture& capture,
                                                                            unsigned resident,
                                                                            const timing::Parameters& parameters,
                                                                            unsigned threads);
// Of the open parameters, as independent of one another.
[[nodiscard]] ProfileRange relative_range(const std::vector<ProfileSensitivity>& sensitivity);

// What a recorded workgroup executed before the loop with this head (an index into Program::ops), then whole trips from
// the middle of the loop: at least `least_trips`, more until there are `least_steps`. All of it when not every wave
// makes as many. `trips` is what was taken, 0 for all.
struct LoopExcerpt {
  timing::GroupTrace trace;
  std::uint64_t trips = 0;
};
[[nodiscard]] LoopExcerpt loop_excerpt(const timing::GroupTrace& group, std::uint32_t head, std::uint64_t least_trips,
                                       std::uint64_t least_steps);

// The loop of one recorded workgroup at every corner, ProfileCorners. nullopt when it has none.
[[nodiscard]] Expected<std::optional<ProfileCorners>> measure_corners(const LaunchCapture& capture, std::size_t group,
                                                                      unsigned resident,
                                                                      const timing::Parameters& parameters,
                                                                      const ProfileOptions& options);

}  // namespace zyfa::sim
