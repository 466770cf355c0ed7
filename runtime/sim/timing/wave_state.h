// A resident wave as the cycle model sees it: its place in its trace, when it may go on, and what it waits for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "runtime/sim/timing/cu_model.h"
#include "runtime/sim/timing/op_cost.h"

namespace zyfa::sim::timing {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// Results a wave still waits for: vmcnt or lgkmcnt. Those of LDS and vector memory come in order; scalar loads may
// overtake, so results are kept by time.
class Counter {
 public:
  void expire(std::uint64_t now) {
    while (size_ > 0 && at(0).time <= now) {
      first_ = (first_ + 1) % kRing;
      --size_;
    }
  }
  void add(std::uint64_t time, Stall stall) {
    std::uint32_t i = size_++;
    for (; i > 0 && at(i - 1).time > time; --i) at(i) = at(i - 1);
    at(i) = {time, stall};
  }
  // When at most `left` are outstanding, and what the last of the others is.
  struct Release {
    std::uint64_t time = 0;
    Stall stall = Stall::kNone;
  };
  [[nodiscard]] Release release(std::uint32_t left) const {
    if (size_ <= left) return {};
    return ring_[(first_ + size_ - left - 1) % kRing];
  }
  [[nodiscard]] std::uint64_t latest() const { return size_ == 0 ? 0 : ring_[(first_ + size_ - 1) % kRing].time; }

 private:
  static constexpr std::uint32_t kRing = 64;
  Release& at(std::uint32_t i) { return ring_[(first_ + i) % kRing]; }
  std::array<Release, kRing> ring_{};
  std::uint32_t first_ = 0, size_ = 0;
};

// The last vector results, for LDS instructions that take their address from one.
class RecentResults {
 public:
  void add(std::uint32_t row, std::uint32_t count, std::uint64_t time) {
    recent_[next_] = {row, count, time};
    next_ = (next_ + 1) % recent_.size();
  }
  // `delay` after the last of them that wrote one of these rows; 0 when it is long ago.
  [[nodiscard]] std::uint64_t usable(std::uint32_t row, std::uint32_t count, std::uint32_t delay) const {
    std::uint64_t time = 0;
    for (const Result& r : recent_)
      if (row < r.row + r.count && r.row < row + count) time = std::max(time, r.time + delay);
    return time;
  }

 private:
  struct Result {
    std::uint32_t row = 0, count = 0;
    std::uint64_t time = 0;
  };
  std::array<Result, 3> recent_{};  // at one every 4 cycles they cover valu_to_lds_cycles
  std::size_t next_ = 0;
};

struct WaveState {
  const Step* step = nullptr;
  const Step* end = nullptr;
  std::uint32_t slot = 0;   // in CuResult::waves
  std::uint32_t group = 0;  // in launch order
  std::uint32_t simd = 0;
  std::uint32_t priority = 0;
  std::uint64_t ready = 0;        // its previous instruction lets it go on
  std::uint64_t fetch = 0;        // the instruction buffer holds its head, to within a turn
  std::uint64_t plain_from = 0;   // vector instructions after its own MFMA
  std::uint64_t packed_from = 0;  // packed ones
  std::uint64_t memory_from = 0;  // LDS and VMEM
  std::uint64_t issued = 0;       // after its last instruction that took part in arbitration; 0: none yet
  std::uint64_t arrived = 0;      // at its last barrier
  bool at_barrier = false;
  std::uint64_t earliest = 0;  // its next visit; kNever: at a barrier, or ended
  Counter vm, lgkm;
  RecentResults results;
  // Of the instruction at the head.
  std::uint64_t seen = 0;  // up to here its stall is accounted for
  Stall reason = Stall::kNone;
  std::array<std::uint32_t, kStalls> stalls{};
  std::uint32_t stalled = 0;
  std::size_t barrier_event = 0;
};

}  // namespace zyfa::sim::timing
