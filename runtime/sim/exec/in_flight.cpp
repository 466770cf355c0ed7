// Counters and landing of memory operations: see in_flight.h.
#include "runtime/sim/exec/in_flight.h"

#include <algorithm>
#include <cstring>

#include "runtime/sim/exec/random.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Operations that return in any order are kept apart up to this number, although lgkmcnt counts to 15 only: which of
// them have returned is unknown. Scalar loads do not reach it without overwriting one another.
constexpr std::size_t kMostUnordered = 128;

void merge(u32* row, const u32* from, u64 mask, u32 bits) {
  if (mask == ~0ull && bits == ~0u) {
    std::memcpy(row, from, kLanes * sizeof(u32));
    return;
  }
  for (unsigned l = 0; l < kLanes; ++l)
    if ((mask >> l) & 1) row[l] = (row[l] & ~bits) | (from[l] & bits);
}

void land_dma(Group& g, const LdsDma& dma) {
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!((dma.mask >> l) & 1)) continue;
    const u64 at = static_cast<u64>(dma.base) + static_cast<u64>(l) * dma.stride;
    if (at + dma.bytes <= g.lds_bytes) std::memcpy(g.lds + at, dma.data[l], dma.bytes);
  }
}

}  // namespace

LdsDma& push_dma(Wave& w) {
  DmaQueue& q = w.group->dma[w.id];
  if (q.slots.empty()) q.slots.resize(DmaQueue::kSlots);
  return q.at(q.count++);
}

void InFlight::start(u64 number) {
  queues_.assign(group_.waves.size(), {});
  for (std::size_t i = 0; i < queues_.size(); ++i) queues_[i].random = mix(seed_, number, i);
  free_.clear();
  for (std::size_t i = 0; i < pool_.size(); ++i) free_.push_back(static_cast<u32>(i));
}

u32 InFlight::take_entry() {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<FlightOp>());
    return static_cast<u32>(pool_.size() - 1);
  }
  const u32 entry = free_.back();
  free_.pop_back();
  return entry;
}

void InFlight::make_room(Wave& w, const MicroOp& op) {
  Queues& q = queues_[w.id];
  if (op.unit == Unit::kVmem && q.vm.size() >= kVmcntMax) wait(w, kVmcntMax - 1, kLgkmcntMax);
  if (op.unit == Unit::kLds && q.lds.size() >= kLgkmcntMax) wait(w, kVmcntMax, kLgkmcntMax - 1);
  if (q.unordered.size() >= kMostUnordered) release(w, q.unordered, kMostUnordered - 1, false);
}

void InFlight::keep_destination(Wave& w, FlightOp& f) {
  for (unsigned k = 0; k < f.count; ++k) {
    if (f.scalar) {
      f.scalar_data[k] = w.s[f.first + k];
    } else {
      f.data[k] = w.v[f.first + k];
    }
  }
}

u32 InFlight::issue(Wave& w, const MicroOp& op) {
  make_room(w, op);
  Queues& q = queues_[w.id];
  const u32 entry = take_entry();
  FlightOp& f = *pool_[entry];
  f.op = &op;
  f.scalar = op.unit == Unit::kSmem;
  f.delivered = false;
  f.needs_vm = op.unit == Unit::kVmem;
  f.first = op.dst.index;
  f.count = (op.flags & kLoad) && op.dst.kind != OperandKind::kNone ? op.dst.count : 0;
  // A FLAT store counts on lgkmcnt too, but nothing of it arrives.
  f.needs_lgkm = op.unit != Unit::kVmem || ((op.flags & kFlat) && f.count != 0);
  f.mask = w.exec();
  if (f.needs_vm) q.vm.push_back(entry);
  if (op.unit == Unit::kLds) q.lds.push_back(entry);
  if (f.needs_lgkm && op.unit != Unit::kLds) q.unordered.push_back(entry);
  if (withholds(op)) keep_destination(w, f);
  return entry;
}

void InFlight::executed(Wave& w, u32 entry) {
  FlightOp& f = *pool_[entry];
  if (!withholds(*f.op)) {
    f.count = 0;  // the registers hold the result
    deliver(w, f);
    return;
  }
  for (unsigned k = 0; k < f.count; ++k) {
    if (f.scalar) {
      std::swap(f.scalar_data[k], w.s[f.first + k]);
    } else {
      std::swap(f.data[k], w.v[f.first + k]);
    }
  }
}

void InFlight::deliver(Wave& w, FlightOp& f) {
  if (f.delivered) return;
  f.delivered = true;
  if (f.op->lds) {
    DmaQueue& q = group_.dma[w.id];
    land_dma(group_, q.at(q.landed++));
    return;
  }
  const u32 bits = w.rules.d16 == SimD16::kClearsHalf ? ~0u : f.op->dst_bits;
  for (unsigned k = 0; k < f.count; ++k) {
    if (f.scalar) {
      w.s[f.first + k] = f.scalar_data[k];
    } else {
      merge(w.v[f.first + k].lane, f.data[k].lane, f.mask, bits);
    }
  }
}

void InFlight::retire(Wave& w, u32 entry) {
  FlightOp& f = *pool_[entry];
  deliver(w, f);
  DmaQueue& q = group_.dma[w.id];
  const LdsDma* dma = f.op->lds ? &q.at(0) : nullptr;
  if (observer_ != nullptr) observer_->retired(w, entry, f, dma);
  if (dma != nullptr) {
    q.head = (q.head + 1) % DmaQueue::kSlots;
    --q.count;
    --q.landed;
  }
  free_.push_back(entry);
}

// Completes the oldest operations of a queue until `keep` remain; one retires when no counter holds it back.
void InFlight::release(Wave& w, std::vector<u32>& queue, std::size_t keep, bool vm) {
  if (queue.size() <= keep) return;
  const std::size_t n = queue.size() - keep;
  for (std::size_t i = 0; i < n; ++i) {
    FlightOp& f = *pool_[queue[i]];
    (vm ? f.needs_vm : f.needs_lgkm) = false;
    if (!f.needs_vm && !f.needs_lgkm) retire(w, queue[i]);
  }
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(n));
}

void InFlight::wait(Wave& w, unsigned vmcnt, unsigned lgkmcnt) {
  Queues& q = queues_[w.id];
  if (vmcnt < kVmcntMax) release(w, q.vm, vmcnt, true);
  // LDS operations complete in order; scalar loads in any order, so only 0 says something about them (3.5).
  if (lgkmcnt < kLgkmcntMax) release(w, q.lds, lgkmcnt, false);
  if (lgkmcnt == 0) release(w, q.unordered, 0, false);
}

void InFlight::deliver_oldest(Wave& w, const std::vector<u32>& queue) {
  for (const u32 entry : queue) {
    if (pool_[entry]->delivered) continue;
    deliver(w, *pool_[entry]);
    return;
  }
}

void InFlight::arrive(Wave& w) {
  Queues& q = queues_[w.id];
  const u64 r = next_random(q.random);
  // One in four instructions sees the oldest operation of a queue arrive.
  if ((r & 3) == 0) deliver_oldest(w, q.vm);
  if ((r & 12) == 0) deliver_oldest(w, q.lds);
  if ((r & 48) == 0 && !q.unordered.empty()) deliver(w, *pool_[q.unordered[(r >> 32) % q.unordered.size()]]);
}

}  // namespace zyfa::sim
