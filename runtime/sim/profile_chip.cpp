// From recorded workgroups to the launch: profile.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "runtime/sim/profile.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Grid = std::array<u32, 3>;

u64 number_of(const Grid& id, const Grid& grid) { return id[0] + u64{grid[0]} * (id[1] + u64{grid[1]} * id[2]); }

// Where a workgroup stands among the recorded ones.
class Scale {
 public:
  explicit Scale(const LaunchCapture& capture) : capture_(capture) {
    const auto& ran = capture.instructions;
    by_instructions_ = !ran.empty() && std::find(ran.begin(), ran.end(), 0) == ran.end();
    unsigned differing = 0;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const u32 first = capture.groups.front().id[axis];
      if (std::all_of(capture.groups.begin(), capture.groups.end(), [&](const auto& g) { return g.id[axis] == first; }))
        continue;
      ++differing;
      axis_ = axis;
    }
    if (differing > 1) axis_ = kNumber;
  }
  [[nodiscard]] bool proportional() const { return by_instructions_; }
  [[nodiscard]] double operator()(const Grid& id) const {
    const u64 number = number_of(id, capture_.shape.grid);
    if (by_instructions_) return static_cast<double>(capture_.instructions[number]);
    return axis_ == kNumber ? static_cast<double>(number) : id[axis_];
  }

 private:
  static constexpr unsigned kNumber = 3;
  const LaunchCapture& capture_;
  bool by_instructions_ = false;
  unsigned axis_ = 0;
};

// Piecewise linear; outside of the known points constant, or in proportion to x.
double interpolate(const std::map<double, double>& points, double x, bool proportional) {
  const auto above = points.lower_bound(x);
  if (above != points.end() && above->first == x) return above->second;
  if (above == points.begin() || above == points.end()) {
    const auto& end = above == points.end() ? *points.rbegin() : *points.begin();
    return proportional && end.first > 0 ? end.second * x / end.first : end.second;
  }
  const auto below = std::prev(above);
  return below->second + (above->second - below->second) * (x - below->first) / (above->first - below->first);
}

// Of one recorded workgroup.
struct GroupWork {
  double requested = 0;  // bytes of vector memory
  double flops = 0;
};

// Distinct bytes of the recorded workgroups: instructions that start at the same address and ask for as much move the
// same bytes.
struct RecordedWork {
  std::vector<double> requested, flops;  // by recorded workgroup
  double unique = 0;
};

RecordedWork work_of(const LaunchCapture& capture) {
  const std::vector<MicroOp>& ops = capture.kernel->program().ops;
  std::unordered_map<u64, u32> largest;  // bytes asked for, by first address
  RecordedWork work;
  for (const timing::GroupTrace& group : capture.groups) {
    GroupWork sum;
    for (const timing::WaveTrace& wave : group.waves) {
      std::size_t access = 0;
      for (const timing::Step& step : wave.steps) {
        const MicroOp& op = ops[step.op];
        sum.flops += op.flops;
        if (op.unit != Unit::kVmem || !(op.flags & (kLoad | kStore))) continue;
        sum.requested += step.work;
        u32& known = largest[wave.addresses[access++]];
        known = std::max(known, step.work);
      }
    }
    work.requested.push_back(sum.requested);
    work.flops.push_back(sum.flops);
  }
  for (const auto& [address, bytes] : largest) work.unique += bytes;
  return work;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// Time of the launch and what bounds it.
struct Bound {
  double seconds = 0;
  const char* name = "compute units";
};
Bound slowest(double cu_cycles, const timing::MemoryTimes& memory, double mall_seconds, double ghz) {
  Bound bound{cu_cycles / (ghz * 1e9)};
  const auto at_least = [&](double seconds, const char* name) {
    if (seconds > bound.seconds) bound = {seconds, name};
  };
  at_least(memory.l2_cycles / (ghz * 1e9), "L2");
  at_least(mall_seconds, "Infinity Cache");
  at_least(memory.hbm_seconds, "HBM");
  return bound;
}

}  // namespace

std::vector<double> spread_over_grid(const LaunchCapture& capture, const Grid& grid,
                                     const std::vector<double>& recorded) {
  const Scale scale(capture);
  std::map<double, std::pair<double, u32>> sums;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    auto& [sum, count] = sums[scale(capture.groups[i].id)];
    sum += recorded[i];
    ++count;
  }
  std::map<double, double> points;
  for (const auto& [x, sum] : sums) points[x] = sum.first / sum.second;
  std::map<u64, double> exact;
  for (std::size_t i = 0; i < recorded.size(); ++i)
    exact[number_of(capture.groups[i].id, capture.shape.grid)] = recorded[i];

  const Grid& launched = capture.shape.grid;
  std::vector<double> values;
  values.reserve(std::size_t{grid[0]} * grid[1] * grid[2]);
  for (u32 z = 0; z < grid[2]; ++z) {
    for (u32 y = 0; y < grid[1]; ++y) {
      for (u32 x = 0; x < grid[0]; ++x) {
        const Grid id{std::min(x, launched[0] - 1), std::min(y, launched[1] - 1), std::min(z, launched[2] - 1)};
        const auto known = exact.find(number_of(id, launched));
        values.push_back(known != exact.end() ? known->second : interpolate(points, scale(id), scale.proportional()));
      }
    }
  }
  return values;
}

Expected<ProfileChip> describe_chip(const LaunchCapture& capture, const ProfileOptions& options, const Grid& grid,
                                    const timing::Occupancy& occupancy, unsigned resident,
                                    const std::vector<double>& cycles, double busy_percent,
                                    const ProfileRange& relative) {
  ProfileChip chip;
  const std::vector<double> all = spread_over_grid(capture, grid, cycles);
  const timing::ChipTime time = timing::deal_workgroups(all, resident);
  chip.workgroups = all.size();
  chip.resident = resident;
  chip.resident_limit = resident < occupancy.resident() ? "workgroups" : occupancy.limit();
  chip.busy = time.busy;
  chip.imbalance = time.imbalance;
  chip.longest = time.longest;
  chip.tail = time.cycles == 0 ? 0 : 1 - static_cast<double>(time.first_idle) / static_cast<double>(time.cycles);
  const auto value = static_cast<double>(time.cycles);
  chip.cycles = {value, value * relative.low, value * relative.high};

  const RecordedWork work = work_of(capture);
  timing::ChipBytes bytes;
  bytes.requested = sum_of(spread_over_grid(capture, grid, work.requested));
  chip.unique_estimated = options.unique_bytes == 0;
  const double share = static_cast<double>(all.size()) / static_cast<double>(capture.groups.size());
  bytes.unique = std::min(chip.unique_estimated ? work.unique * share : options.unique_bytes, bytes.requested);
  const timing::MemoryTimes memory = timing::memory_times(bytes);
  chip.requested_bytes = bytes.requested;
  chip.unique_bytes = bytes.unique;
  chip.l2_cycles = memory.l2_cycles;
  chip.mall_seconds_least = memory.mall_seconds_least;
  chip.mall_seconds_most = memory.mall_seconds_most;
  chip.hbm_seconds = memory.hbm_seconds;

  timing::Clock clock = timing::power_clock(busy_percent);
  chip.clock_source = fmt::format(
      "power: fit over BF16 attention kernels on MI355X at {:.1f}% matrix busy; operand values are not in it",
      busy_percent);
  if (options.clock_ghz) {
    const Expected<timing::Clock> fixed = timing::fixed_clock(*options.clock_ghz);
    if (!fixed) return tl::unexpected(fixed.error());
    clock = *fixed;
    chip.clock_source = "fixed";
  }
  chip.clock_ghz = {clock.ghz, clock.low, clock.high};
  const Bound bound = slowest(chip.cycles.value, memory, memory.mall_seconds_most, clock.ghz);
  chip.bound = bound.name;
  chip.seconds = {bound.seconds, slowest(chip.cycles.low, memory, memory.mall_seconds_least, clock.high).seconds,
                  slowest(chip.cycles.high, memory, memory.mall_seconds_most, clock.low).seconds};
  chip.flops_kind = options.useful_flops != 0 ? "useful" : "executed";
  chip.flops = options.useful_flops != 0 ? options.useful_flops : sum_of(spread_over_grid(capture, grid, work.flops));
  const auto rate = [&](double seconds) { return seconds > 0 ? chip.flops / seconds / 1e12 : 0; };
  chip.tflops = {rate(chip.seconds.value), rate(chip.seconds.high), rate(chip.seconds.low)};
  return chip;
}

}  // namespace zyfa::sim
