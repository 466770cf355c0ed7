// The memory units of a compute unit that its SIMDs share: LDS behind one path a SIMD pair, and the vector memory path.
//
// Requests come in order of time, and a request's service is settled when it is made.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "runtime/sim/timing/op_cost.h"

namespace zyfa::sim::timing {

struct Service {
  std::uint64_t start = 0, end = 0;  // of the unit
  std::uint64_t result = 0;          // the wave's counter goes down
};

// 3.1: a pair's path moves 128 bytes a clock each way, the array serves a phase a clock; 8 requests queue for a pair.
class LdsUnit {
 public:
  explicit LdsUnit(const Parameters& parameters)
      : latency_(parameters.lds_latency), pairs_{Pair(parameters.lds_queue), Pair(parameters.lds_queue)} {}
  // When a request of this SIMD finds room, `now` at the earliest. The SIMDs of a pair take turns at a full queue: who
  // asked in vain is remembered until it requests.
  std::uint64_t room(std::uint32_t simd, std::uint64_t now);
  Service request(std::uint32_t simd, std::uint64_t now, const OpCost& cost, std::uint32_t phases);
  // A direct-to-LDS load of `bytes` whose data arrives at `when`.
  void arrival(std::uint64_t when, std::uint32_t bytes) { arrivals_.push({when, bytes}); }
  [[nodiscard]] std::uint64_t busy() const { return static_cast<std::uint64_t>(busy_); }

 private:
  struct Pair {
    explicit Pair(std::uint32_t entries) : ends(entries, 0) {}
    std::vector<std::uint64_t> ends;  // of the last services; the oldest is at `next`
    std::size_t next = 0;
    double free = 0;
    std::uint32_t last = 0;  // SIMD of the last request, 0 or 1
    std::array<bool, 2> waiting{};
  };
  struct Arrival {
    std::uint64_t when = 0;
    std::uint32_t bytes = 0;
    friend bool operator>(const Arrival& a, const Arrival& b) { return a.when > b.when; }
  };
  void use_array(double start, double cycles);

  std::uint32_t latency_;
  std::array<Pair, kSimds / 2> pairs_;
  double array_free_ = 0, busy_ = 0;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

// 3.2: one path for the CU, a queue before it, and a limit on the bytes that are out.
class VmemUnit {
 public:
  explicit VmemUnit(const Parameters& parameters)
      : latency_(parameters.l2_latency), capacity_(parameters.vmem_in_flight_bytes), ends_(parameters.vmem_queue, 0) {}
  [[nodiscard]] std::uint64_t room(std::uint64_t now, std::uint32_t bytes);
  Service request(std::uint64_t now, const OpCost& cost, std::uint32_t bytes);
  [[nodiscard]] std::uint64_t busy() const { return static_cast<std::uint64_t>(busy_); }

 private:
  struct Outstanding {
    std::uint64_t result = 0;
    std::uint32_t bytes = 0;
  };
  std::uint32_t latency_, capacity_;
  std::vector<std::uint64_t> ends_;  // of the last services; the oldest is at next_
  std::size_t next_ = 0;
  double free_ = 0, busy_ = 0;
  std::deque<Outstanding> out_;
  std::uint64_t out_bytes_ = 0;
};

}  // namespace zyfa::sim::timing
