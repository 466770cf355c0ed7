#include "runtime/sim/timing/chip_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

namespace zyfa::sim::timing {
namespace {

// gfx950-isa.md 3.3 and 6.
constexpr unsigned kSimdsOfCu = 4, kRegistersOfSimd = 512, kRegisterGranule = 8, kWavesOfSimd = 8;
constexpr unsigned kLdsOfCu = 163840, kLdsGranule = 1280;
// Timing reference 3.2.
constexpr double kL2BytesPerCycle = 2048.0 * kXcds, kMallBytesPerSecond = 17e12, kHbmBytesPerSecond = 8e12;
constexpr double kMallBytes = 256.0 * 1024 * 1024;

constexpr unsigned round_up(unsigned value, unsigned granule) { return (value + granule - 1) / granule * granule; }

// A place for one workgroup on a compute unit, in the order in which places are taken.
struct Slot {
  double free_at = 0;
  unsigned number = 0;  // on its compute unit: lower ones everywhere are taken before higher ones
  unsigned cu = 0;
  friend auto operator<=>(const Slot& a, const Slot& b) {
    return std::partial_ordering(std::tie(a.free_at, a.number, a.cu) <=> std::tie(b.free_at, b.number, b.cu));
  }
};

struct XcdTime {
  double end = 0, work = 0;
  double first_idle = 0;
};

XcdTime run_xcd(const std::vector<double>& cycles, unsigned xcd, unsigned resident) {
  std::priority_queue<Slot, std::vector<Slot>, std::greater<>> slots;
  for (unsigned number = 0; number < resident; ++number)
    for (unsigned cu = 0; cu < kCusPerXcd; ++cu) slots.push({0, number, cu});
  std::array<double, kCusPerXcd> end{};
  XcdTime time;
  for (std::size_t n = xcd; n < cycles.size(); n += kXcds) {
    Slot slot = slots.top();
    slots.pop();
    slot.free_at += cycles[n];
    end[slot.cu] = std::max(end[slot.cu], slot.free_at);
    time.work += cycles[n];
    slots.push(slot);
  }
  time.end = *std::max_element(end.begin(), end.end());
  time.first_idle = *std::min_element(end.begin(), end.end());
  return time;
}

Clock bounded(double ghz, double low, double high) {
  return {std::min(ghz, kPeakGhz), std::min(low, kPeakGhz), std::min(high, kPeakGhz)};
}

}  // namespace

unsigned Occupancy::resident() const { return std::min({by_registers, by_lds, by_waves}); }

std::string_view Occupancy::limit() const {
  return by_registers == resident() ? "registers" : by_lds == resident() ? "LDS" : "waves";
}

Expected<Occupancy> occupancy(unsigned waves, unsigned vgprs, unsigned lds_bytes) {
  const unsigned granules = std::max(round_up(vgprs, kRegisterGranule), kRegisterGranule);
  Occupancy result;
  result.by_waves = waves == 0 ? 0 : kSimdsOfCu * kWavesOfSimd / waves;
  result.by_registers = waves == 0 ? 0 : kSimdsOfCu * std::min(kWavesOfSimd, kRegistersOfSimd / granules) / waves;
  result.by_lds = lds_bytes == 0 ? result.by_waves : kLdsOfCu / round_up(lds_bytes, kLdsGranule);
  if (result.resident() == 0) {
    return make_error(
        ErrorCode::kInvalidArgument,
        fmt::format("a workgroup of {} waves with {} VGPRs each and {} bytes of LDS does not fit on a compute unit: it "
                    "has {} VGPRs for each of {} SIMDs, room for {} waves, and {} bytes of LDS",
                    waves, vgprs, lds_bytes, kRegistersOfSimd, kSimdsOfCu, kSimdsOfCu * kWavesOfSimd, kLdsOfCu));
  }
  return result;
}

ChipTime deal_workgroups(const std::vector<double>& cycles, unsigned resident) {
  ChipTime time;
  if (cycles.empty() || resident == 0) return time;
  std::array<XcdTime, kXcds> xcds;
  for (unsigned x = 0; x < kXcds; ++x) xcds[x] = run_xcd(cycles, x, resident);
  double end = 0, work = 0, most_work = 0, first_idle = xcds[0].first_idle;
  for (const XcdTime& x : xcds) {
    end = std::max(end, x.end);
    first_idle = std::min(first_idle, x.first_idle);
    most_work = std::max(most_work, x.work);
    work += x.work;
  }
  time.cycles = static_cast<std::uint64_t>(end);
  time.first_idle = static_cast<std::uint64_t>(first_idle);
  time.longest = static_cast<std::uint64_t>(*std::max_element(cycles.begin(), cycles.end()));
  time.busy = end == 0 ? 0 : work / (end * kCus * resident);
  time.imbalance = work == 0 ? 0 : most_work * kXcds / work;
  return time;
}

MemoryTimes memory_times(const ChipBytes& bytes) {
  const double unique = std::min(bytes.unique, bytes.requested);
  const double fetched = std::min(bytes.requested, unique * kXcds);
  MemoryTimes times;
  times.l2_cycles = bytes.requested / kL2BytesPerCycle;
  times.mall_seconds_least = unique / kMallBytesPerSecond;
  times.mall_seconds_most = fetched / kMallBytesPerSecond;
  times.hbm_seconds = (unique <= kMallBytes ? unique : fetched) / kHbmBytesPerSecond;
  return times;
}

Clock power_clock(double busy_percent) {
  constexpr double kDieToDie = 0.04;
  const double attention = (2493.5 - 9.8 * busy_percent) / 1000, joint = (2714.0 - 12.4 * busy_percent) / 1000;
  return bounded(attention, std::min(attention, joint) * (1 - kDieToDie), std::max(attention, joint) * (1 + kDieToDie));
}

Expected<Clock> fixed_clock(double ghz) {
  if (!(ghz >= kLeastGhz && ghz <= kPeakGhz)) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a clock of {} GHz; allowed are {} to {} GHz", ghz, kLeastGhz, kPeakGhz));
  }
  return Clock{ghz, ghz, ghz};
}

}  // namespace zyfa::sim::timing
