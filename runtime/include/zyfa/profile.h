// Predicted timing of a launch that the simulator recorded: one compute unit by the cycle model, then the chip, then
// the clock. Everything here is *predicted*; docs/performance-model.md has the rules, their sources and their errors.
//
//   SimOptions options; options.capture = SimCapture{};        // records every workgroup
//   device->set_options(options); device->launch(...);
//   Expected<LaunchProfile> profile = device->last_profile({});
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zyfa/device.h"
#include "zyfa/error.h"
#include "zyfa/export.h"

namespace zyfa {

// A rule of the cycle model that sources leave open, as a number.
struct ProfileParameter {
  std::string name;
  std::uint32_t value = 0;  // default
  std::uint32_t low = 0, high = 0;
  std::string unit, source, meaning;  // source: section of the timing reference
  bool open = false;  // sources leave it open; else they settle it, and the range is for what-if questions
};
// All of them. Opens libzyfa_jit: kDeviceUnavailable.
[[nodiscard]] ZYFA_API Expected<std::vector<ProfileParameter>> profile_parameters();
// Whether ProfileOptions::parameters can be these. kInvalidArgument: names the value and what is allowed;
// kDeviceUnavailable as above.
[[nodiscard]] ZYFA_API Status check_profile_parameters(std::span<const std::string> parameters);

// What attention asks of the matrix pipe, for the useful part of its busy share: Q.K and P.V, not row sums.
struct ProfileAttention {
  std::uint32_t head_dim_qk = 0, head_dim_v = 0;
  std::uint32_t queries_per_wave = 0;
};

struct ProfileOptions {
  enum class Errors { kNone, kFromParameters };  // the model runs twice more for each parameter
  enum class Events { kNone, kLongest };         // of the recorded workgroup that takes longest
  enum class Corners { kNone, kAll };            // the model runs once more for each, on an excerpt

  std::vector<std::string> parameters = {};  // "name=value"; the others keep their defaults
  Errors errors = Errors::kFromParameters;
  Events events = Events::kNone;
  Corners corners = Corners::kNone;
  // Workgroups of the launch that the chip step times; 0: as launched. On an axis of one launched workgroup, that one
  // stands for all.
  std::array<std::uint32_t, 3> grid{};
  std::optional<ProfileAttention> attention = {};
  double useful_flops = 0;               // of the whole grid; 0: what the MFMAs execute
  double unique_bytes = 0;               // of the whole grid; 0: estimated from addresses
  std::optional<double> clock_ghz = {};  // nothing: by the matrix pipe's busy share (power)
  unsigned threads = 1;                  // of this host; results do not depend on it
};

// Prediction with the range that the open parameters' ranges give it, taken as independent of one another (root of the
// sum of squares). Without Errors::kFromParameters both ends equal the value.
struct ProfileRange {
  double value = 0, low = 0, high = 0;
};

struct ProfileShare {
  std::string name;
  double share = 0;  // 0 to 1
};

struct ProfileWave {
  std::uint32_t index = 0;  // in the workgroup
  std::uint32_t simd = 0;
  std::uint64_t start = 0, end = 0;  // cycles
  std::uint64_t instructions = 0;
  std::vector<ProfileShare> stalls;  // of the wave's time, by reason, largest first; zeros left out
};

// Steady state of the hottest loop.
struct ProfileLoop {
  std::uint64_t head = 0, tail = 0;  // offsets from the kernel's entry of its first instruction and its branch
  std::uint64_t trips = 0;           // of a wave, mean
  double cycles = 0;                 // a trip of a wave
  double instructions = 0;           // a trip of a wave
  double matrix_cycles = 0;          // a trip of a wave
  // That work meanwhile, in this loop or another; so cycles / waves_per_simd of a SIMD's time pay for a wave's trip.
  double waves_per_simd = 0;
  // Cycles before the first instruction of the loop and after the last, mean over waves. Iterations that a kernel does
  // behind its loop are in the latter.
  double prologue = 0, epilogue = 0;
  // With ProfileOptions::attention, else 0.
  std::uint32_t keys = 0;  // a trip
  double tile_cycles = 0;  // of a SIMD for 128 keys of a wave's queries
  double useful_busy = 0;  // matrix pipes of the SIMDs that have waves, Q.K and P.V only
};

struct ProfileUnit {
  std::string name;   // "matrix", "VALU", "TRANS", "LDS", "vector memory", "scalar"
  double steady = 0;  // busy share in the loop
  double whole = 0;   // busy share over the workgroup's run
};

struct ProfileGroup {
  std::array<std::uint32_t, 3> id{};
  std::uint64_t instructions = 0;
  std::uint64_t cycles = 0;  // with as many of its kind beside it as share a compute unit
};

// How far one parameter's range moves the cycles of the sample workgroup.
struct ProfileSensitivity {
  std::string parameter;
  std::uint32_t value = 0, low = 0, high = 0;
  double at_low = 0, at_high = 0;  // relative change
  bool open = false;               // as of ProfileParameter: others do not count in a range
};

// The loop at one combination of parameters.
struct ProfileCorner {
  std::vector<std::uint32_t> values;  // of each axis; empty: parameters as set
  double cycles = 0;                  // a trip of a wave
  double tile_cycles = 0;             // as of ProfileLoop
  double matrix_busy = 0;             // all MFMAs
  double useful_busy = 0;             // as of ProfileLoop
};

// The loop of the longest recorded workgroup at every combination of those values of open parameters that decide
// between schedules. Each is a replay of what comes before the loop and of a few trips from its middle.
struct ProfileCorners {
  struct Axis {
    std::string parameter;
    std::vector<std::uint32_t> values;
  };
  std::vector<Axis> axes;
  std::uint64_t trips = 0;             // of the excerpt
  ProfileCorner as_set;                // of the same excerpt
  std::vector<ProfileCorner> corners;  // worst first: by useful_busy, without ProfileOptions::attention by matrix_busy
};

struct ProfileChip {
  std::uint64_t workgroups = 0;
  unsigned resident = 0;       // on a compute unit at once
  std::string resident_limit;  // "registers", "LDS", "waves", "workgroups" (the launch has no more)
  ProfileRange cycles;         // of the launch
  double busy = 0;             // of the chip's workgroup slots
  double tail = 0;             // share of the cycles after the first compute unit ran out of work
  double imbalance = 0;        // busiest XCD's work over the mean
  std::uint64_t longest = 0;   // cycles of the longest workgroup
  double requested_bytes = 0, unique_bytes = 0;
  bool unique_estimated = false;
  double l2_cycles = 0, mall_seconds_least = 0, mall_seconds_most = 0, hbm_seconds = 0;
  std::string bound;  // "compute units", "L2", "Infinity Cache" or "HBM"
  ProfileRange clock_ghz;
  std::string clock_source;
  ProfileRange seconds;
  double flops = 0;
  std::string flops_kind;  // "useful" or "executed"
  ProfileRange tflops;
};

// One executed instruction of the workgroup that takes longest.
struct ProfileEvent {
  std::uint32_t wave = 0;                            // in `waves`
  std::uint32_t instruction = 0;                     // in `instructions`
  std::uint64_t issue = 0, unit_start = 0, end = 0;  // cycles
  std::uint32_t stalled = 0;                         // cycles before its issue
  std::uint32_t stall = 0;                           // in `stall_names`: the reason for most of them
};
struct ProfileInstruction {
  std::uint64_t offset = 0;  // from the kernel's entry
  std::string text;
  std::string stage, comment;  // the listing's, when the object carries one
};

struct LaunchProfile {
  std::string kernel;
  std::vector<std::string> parameters;     // those that were set
  std::vector<ProfileGroup> groups;        // recorded, in launch order
  std::array<std::uint32_t, 3> longest{};  // the recorded workgroup that the rest is about
  std::uint64_t cycles = 0;                // of it
  std::optional<ProfileLoop> loop;         // nothing when no loop runs three trips
  std::vector<ProfileUnit> units;
  std::vector<ProfileWave> waves;
  std::string critical;  // the unit that is busiest in the loop, or what waves wait for most
  SimToggles toggles;
  std::vector<ProfileSensitivity> sensitivity;  // largest first; with Errors::kFromParameters
  std::optional<ProfileCorners> corners;        // with Corners::kAll, when there is a loop
  ProfileChip chip;
  std::vector<ProfileEvent> events;  // with Events::kLongest, by issue
  std::vector<ProfileInstruction> instructions;
  std::vector<std::string> stall_names;
};

}  // namespace zyfa
