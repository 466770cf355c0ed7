// Memory instructions in flight: which operations each counter of a wave still holds, and when their results arrive.
//
// A load executes at issue; its result is withheld and delivered by the landing policy (SimLanding): when the wave
// waits for it or its counter has no room for another (hardware holds back what would count past 63 or 15), at issue,
// or at a random instruction between. vmcnt and LDS operations arrive in order, scalar and FLAT ones on lgkmcnt in any
// (gfx950-isa.md 3.5). An operation is retired once its wave has waited for it, delivered or not: that is what strict
// mode goes by, which is told through the observer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/sim/exec/group.h"
#include "zyfa/device.h"

namespace zyfa::sim {

struct FlightOp {
  const MicroOp* op = nullptr;
  bool needs_vm = false, needs_lgkm = false;
  bool scalar = false, delivered = false;
  std::uint16_t first = 0;
  std::uint8_t count = 0;  // destination registers
  std::uint64_t mask = 0;  // lanes that receive data
  std::array<VectorReg, 4> data;
  std::array<std::uint32_t, 16> scalar_data;
};

class FlightObserver {
 public:
  virtual ~FlightObserver() = default;
  // Nothing holds the operation back any more; `dma` is its data when it is a direct-to-LDS load.
  virtual void retired(Wave& wave, std::uint32_t entry, const FlightOp& op, const LdsDma* dma) = 0;
};

class InFlight {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  InFlight(Group& group, SimLanding landing, std::uint64_t seed) : group_(group), landing_(landing), seed_(seed) {}
  void observe(FlightObserver* observer) { observer_ = observer; }

  // A new workgroup; `number` tells it apart for the random policy.
  void start(std::uint64_t number);
  // Before execution: room in the counters, the old contents of the destination. The entry stays until retired.
  std::uint32_t issue(Wave& wave, const MicroOp& op);
  // After execution: withholds the result, or delivers it.
  void executed(Wave& wave, std::uint32_t entry);
  // s_waitcnt; a full counter as operand means no wait.
  void wait(Wave& wave, unsigned vmcnt, unsigned lgkmcnt);
  // Random policy: what arrives before the wave's next instruction.
  void advance(Wave& wave) {
    if (landing_ == SimLanding::kRandom) arrive(wave);
  }

  // The result of `op` is not there yet when it has executed.
  [[nodiscard]] bool withholds(const MicroOp& op) const {
    return (op.flags & kLoad) && landing_ != SimLanding::kEarly &&
           (landing_ != SimLanding::kLate || op.unit != Unit::kLds);
  }
  [[nodiscard]] const FlightOp& at(std::uint32_t entry) const { return *pool_[entry]; }
  // LDS operations of a wave that it has not waited for, oldest first.
  [[nodiscard]] const std::vector<std::uint32_t>& lds_queue(std::uint32_t wave) const { return queues_[wave].lds; }
  // The same of scalar and FLAT loads.
  [[nodiscard]] const std::vector<std::uint32_t>& unordered_queue(std::uint32_t wave) const {
    return queues_[wave].unordered;
  }

 private:
  struct Queues {
    std::vector<std::uint32_t> vm, lds, unordered;  // unordered: scalar and FLAT loads on lgkmcnt
    std::uint64_t random = 0;
  };

  std::uint32_t take_entry();
  void make_room(Wave& wave, const MicroOp& op);
  void keep_destination(Wave& wave, FlightOp& f);
  void deliver(Wave& wave, FlightOp& f);
  void deliver_oldest(Wave& wave, const std::vector<std::uint32_t>& queue);
  void arrive(Wave& wave);
  void retire(Wave& wave, std::uint32_t entry);
  void release(Wave& wave, std::vector<std::uint32_t>& queue, std::size_t keep, bool vm);

  Group& group_;
  SimLanding landing_;
  std::uint64_t seed_;
  FlightObserver* observer_ = nullptr;
  std::vector<Queues> queues_;
  std::vector<std::unique_ptr<FlightOp>> pool_;
  std::vector<std::uint32_t> free_;
};

}  // namespace zyfa::sim
