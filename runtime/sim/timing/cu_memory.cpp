#include "runtime/sim/timing/cu_memory.h"

#include <algorithm>
#include <cmath>

namespace zyfa::sim::timing {
namespace {

constexpr double kDmaBytes = 128;     // a clock: writes use 32 banks (3.1)
constexpr double kAddressCycles = 4;  // of any vector memory instruction: 64 addresses at 16 a clock (1.1)

std::uint64_t whole(double cycles) { return static_cast<std::uint64_t>(std::ceil(cycles)); }

}  // namespace

std::uint64_t LdsUnit::room(std::uint32_t simd, std::uint64_t now) {
  Pair& pair = pairs_[simd / 2];
  const std::uint32_t self = simd % 2;
  const bool yields = pair.waiting[1 - self] && pair.last == self;
  const std::uint64_t at = pair.ends[(pair.next + (yields ? 1 : 0)) % pair.ends.size()];
  if (at > now) pair.waiting[self] = true;
  return std::max(now, at);
}

void LdsUnit::use_array(double start, double cycles) {
  array_free_ = std::max(array_free_, start) + cycles;
  busy_ += cycles;
}

Service LdsUnit::request(std::uint32_t simd, std::uint64_t now, const OpCost& cost, std::uint32_t phases) {
  while (!arrivals_.empty() && arrivals_.top().when <= now) {
    use_array(static_cast<double>(arrivals_.top().when), arrivals_.top().bytes / kDmaBytes);
    arrivals_.pop();
  }
  Pair& pair = pairs_[simd / 2];
  const double n = std::max(phases, 1U);  // lane permutes have no phases of their own and pass through the crossbar
  const double start = std::max(static_cast<double>(now), pair.free);
  use_array(start, n * cost.array_cycles);
  pair.free = std::max(start + std::min<double>(n * cost.pair_cycles, cost.pair_most), array_free_);
  pair.last = simd % 2;
  pair.waiting[pair.last] = false;
  const Service service{whole(start), whole(pair.free), whole(pair.free) + latency_};
  pair.ends[pair.next] = service.end;
  pair.next = (pair.next + 1) % pair.ends.size();
  return service;
}

std::uint64_t VmemUnit::room(std::uint64_t now, std::uint32_t bytes) {
  while (!out_.empty() && out_.front().result <= now) {
    out_bytes_ -= out_.front().bytes;
    out_.pop_front();
  }
  std::uint64_t at = std::max(now, ends_[next_]);
  std::uint64_t rest = out_bytes_;
  for (const Outstanding& o : out_) {
    if (rest + bytes <= capacity_) break;
    rest -= o.bytes;
    at = std::max(at, o.result);
  }
  return at;
}

Service VmemUnit::request(std::uint64_t now, const OpCost& cost, std::uint32_t bytes) {
  const double start = std::max(static_cast<double>(now), free_);
  const double cycles = std::max(kAddressCycles, bytes * static_cast<double>(cost.path_cycles));
  free_ = start + cycles;
  busy_ += cycles;
  const Service service{whole(start), whole(free_), whole(free_) + latency_};
  ends_[next_] = service.end;
  next_ = (next_ + 1) % ends_.size();
  out_.push_back({service.result, bytes});
  out_bytes_ += bytes;
  return service;
}

}  // namespace zyfa::sim::timing
