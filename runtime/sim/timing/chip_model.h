// From the cycles of workgroups on a compute unit to the time of a launch on the whole MI355X: occupancy, how
// workgroups are dealt to XCDs and compute units, what memory must move, and, as a step of its own, the clock.
//
// Numbers are those of the timing reference (sections 0 and 3.3; gfx950-isa.md 3.3 and 6 for registers and LDS). What
// no source says is an assumption, named as such here and in docs/performance-model.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "zyfa/error.h"

namespace zyfa::sim::timing {

inline constexpr unsigned kXcds = 8, kCusPerXcd = 32, kCus = kXcds * kCusPerXcd;

// How many workgroups a compute unit holds at once, by each of its resources.
struct Occupancy {
  unsigned by_registers = 0, by_lds = 0, by_waves = 0;
  [[nodiscard]] unsigned resident() const;
  [[nodiscard]] std::string_view limit() const;  // "registers", "LDS" or "waves": the first that is as small as any
};
// `vgprs`: allocated to a wave, arch and accumulation. kInvalidArgument: a workgroup that no compute unit can hold.
[[nodiscard]] Expected<Occupancy> occupancy(unsigned waves, unsigned vgprs, unsigned lds_bytes);

// Workgroup n goes to XCD n mod 8, and there, in order, to the compute unit whose next slot is free first (among equals
// to one with the fewest workgroups, then to the lowest number). XCDs do not wait for one another.
struct ChipTime {
  std::uint64_t cycles = 0;      // until the last workgroup ends
  std::uint64_t first_idle = 0;  // a compute unit has no more work: from here on the tail
  std::uint64_t longest = 0;     // workgroup
  double busy = 0;               // share of the chip's workgroup slots x cycles that is used
  double imbalance = 0;          // the busiest XCD's work over the mean XCD's
};
// `cycles`: of every workgroup in launch order while `resident` share its compute unit.
[[nodiscard]] ChipTime deal_workgroups(const std::vector<double>& cycles, unsigned resident);

// Bytes of a launch over all workgroups.
struct ChipBytes {
  double requested = 0;  // by vector memory instructions: the L1 is taken to give no reuse
  double unique = 0;     // distinct bytes among them
};
// Least times that memory takes. Assumed: the L2 of an XCD fetches each byte once that any of its workgroups asks for
// (`most`: all XCDs ask for all bytes; `least`: no byte is asked for on two XCDs), the Infinity Cache keeps what is
// fetched twice where the launch's distinct bytes fit into it.
struct MemoryTimes {
  double l2_cycles = 0;                                  // 2 KB a clock and XCD
  double mall_seconds_least = 0, mall_seconds_most = 0;  // 17 TB/s
  double hbm_seconds = 0;                                // 8 TB/s
};
[[nodiscard]] MemoryTimes memory_times(const ChipBytes& bytes);

// Clock in GHz by the matrix pipe's busy share in percent, as power limits it: fits over BF16 attention kernels on
// MI355X (GLUON, timing reference 3.3), the joint fit as the other end of what is known, dies within 4%. For 8-bit
// kernels an extrapolation; operands that toggle less run faster. Never above the peak.
inline constexpr double kPeakGhz = 2.4, kLeastGhz = 0.1;
struct Clock {
  double ghz = 0, low = 0, high = 0;
};
[[nodiscard]] Clock power_clock(double busy_percent);
// kInvalidArgument: not above 0 and at most the peak.
[[nodiscard]] Expected<Clock> fixed_clock(double ghz);

}  // namespace zyfa::sim::timing
