// LDS in strict mode: bounds, alignment, definedness, races between waves, loads in flight, barriers.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/sim/exec/lds_access.h"
#include "runtime/sim/exec/strict.h"
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

void fill(LdsAccess& a, const Wave& wave, const MicroOp& op, const StrictOp& s) {
  a.op = &op;
  a.wave = wave.id;
  a.use = s.lds_atomic ? LdsUse::kAtomic : s.lds_write ? LdsUse::kWrite : LdsUse::kRead;
  a.chunks = s.lds_chunks;
  a.bytes = s.lds_bytes;
  a.offset = s.lds_offset;
  if (op.flags & kFlat) {
    a.mask = flat_lds_lanes(wave, op, a.address.data());
    return;
  }
  a.mask = wave.exec();
  lds_addresses(wave, op, a.address.data());
}
LdsAccess access_of(const Wave& wave, const MicroOp& op, const LdsDma& dma) {
  LdsAccess a;
  a.op = &op;
  a.wave = wave.id;
  a.use = LdsUse::kWrite;
  a.chunks = 1;
  a.bytes = static_cast<std::uint8_t>(dma.bytes);
  a.mask = dma.mask;
  for (unsigned l = 0; l < kLanes; ++l) a.address[l] = dma.base + l * dma.stride;
  return a;
}

// The first lane and byte of `a` that lie in [low, high).
std::optional<std::pair<unsigned, u64>> first_within(const LdsAccess& a, u64 low, u64 high) {
  for (unsigned chunk = 0; chunk < a.chunks; ++chunk) {
    for (unsigned l = 0; l < kLanes; ++l) {
      const u64 at = a.at(l, chunk);
      if (((a.mask >> l) & 1) && at + a.bytes > low && at < high) return std::pair(l, at);
    }
  }
  return std::nullopt;
}

unsigned first_lane(u64 mask) { return static_cast<unsigned>(__builtin_ctzll(mask)); }

const char* verb(LdsUse use) {
  switch (use) {
    case LdsUse::kRead:
      return "read";
    case LdsUse::kWrite:
      return "wrote";
    case LdsUse::kAtomic:
      return "updated atomically";
  }
  return "";
}

}  // namespace

void Strict::report_in_flight(const Wave& wave, const MicroOp& op, unsigned lane, const LdsVerdict& v) {
  report(wave, op, "lds-in-flight", lane,
         fmt::format(
             "LDS byte {}: touches a byte that a direct-to-LDS load of wave {} has yet to write; its wave must wait "
             "for vmcnt first",
             v.byte, v.other));
}

void Strict::report_races(const Wave& wave, const MicroOp& op, const LdsAccess& access) {
  if (log_.incomplete()) {
    report(wave, op, "lds-race", first_lane(access.mask),
           fmt::format("meets an access of another wave, among the last {} LDS instructions or before them, with no "
                       "barrier between",
                       LdsAccessLog::kMost));
  }
  for (const RacePair& pair : log_.new_races(access, group_.lds_bytes)) {
    const LdsAccess& earlier = *pair.earlier;
    add_finding(wave, op, "lds-race", pair.lane,
                fmt::format("LDS byte {}: {} what wave {} {} at +0x{:x} (`{}`) with no barrier between", pair.byte,
                            access.use == LdsUse::kRead ? "reads" : "overwrites", earlier.wave, verb(earlier.use),
                            offset_of(*earlier.op), text_of(*earlier.op)));
  }
}

LdsVerdict Strict::enter(u32 wave, const StrictOp& s, u32 address) {
  if (s.lds_atomic) return shadow_.atomic(wave, address, s.lds_bytes);
  return s.lds_write ? shadow_.write(wave, address, s.lds_bytes) : shadow_.read(wave, address, s.lds_bytes);
}

void Strict::check_lds(Wave& wave, const MicroOp& op, const StrictOp& s, Pending& p) {
  fill(p.access, wave, op, s);
  if (p.access.mask == 0) return;
  bool conflict = false;
  for (unsigned chunk = 0; chunk < s.lds_chunks; ++chunk) {
    u64 lanes = p.access.mask;
    lanes = shadow_.enter_quietly(wave.id, p.access.use, lanes, p.access.address.data(),
                                  static_cast<u32>(s.lds_offset[chunk]), s.lds_bytes);
    for (; lanes != 0; lanes &= lanes - 1) {
      const unsigned l = first_lane(lanes);
      const u32 address = p.access.at(l, chunk);
      if (static_cast<u64>(address) + s.lds_bytes > group_.lds_bytes) {
        report(wave, op, "lds-out-of-bounds", l,
               fmt::format("{} bytes at LDS address {}, the workgroup has {}", s.lds_bytes, address, group_.lds_bytes));
        continue;
      }
      if ((address & (s.lds_align - 1u)) != 0) {
        report(wave, op, "lds-misaligned", l,
               fmt::format("LDS address {} of a {}-byte access must be a multiple of {}", address, s.lds_bytes,
                           s.lds_align));
      }
      const LdsVerdict verdict = enter(wave.id, s, address);
      if (s.lds_write) {
        shadow_.mark_written(address, s.lds_bytes);
      } else if (!shadow_.written(address, s.lds_bytes)) {
        if (p.lane_valid == ~0ull) p.unwritten_byte = shadow_.first_unwritten(address, s.lds_bytes);
        p.lane_valid &= ~(1ull << l);
        if (s.lds_atomic) {
          report(wave, op, "uninitialised-register", l,
                 fmt::format("updates LDS byte {}, which nobody wrote", p.unwritten_byte));
        }
      }
      conflict |= verdict.conflict == LdsConflict::kRace;
      if (verdict.conflict == LdsConflict::kInFlight) report_in_flight(wave, op, l, verdict);
    }
  }
  // Transposed reads mix the lanes of a group of 16.
  if ((op.flags & kAllLanesNeeded) && p.lane_valid != ~0ull) {
    for (unsigned g = 0; g < 4; ++g)
      if (((p.lane_valid >> (16 * g)) & 0xffff) != 0xffff) p.lane_valid &= ~(0xffffull << (16 * g));
  }
  if (conflict) report_races(wave, op, p.access);
  if (waves_.size() > 1) log_.add(p.access);
}

void Strict::own_reads_in_flight(Wave& wave, const MicroOp& op, const LdsDma& dma) {
  // Runs of active lanes: what lies between them stays.
  for (u64 left = dma.mask; left != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    const auto lanes = static_cast<unsigned>(std::countr_one(left >> first));
    left &= lanes + first >= kLanes ? 0 : ~u64{0} << (first + lanes);
    const u64 low = dma.base + u64{first} * dma.stride;
    const u64 high = low + u64{lanes - 1} * dma.stride + dma.bytes;
    for (const auto* queue : {&flight_.lds_queue(wave.id), &flight_.unordered_queue(wave.id)}) {
      for (const u32 entry : *queue) {
        const MicroOp& reader = *flight_.at(entry).op;
        if (strict_of(reader).lds_chunks == 0) continue;
        const auto met = first_within(pool_[entry]->access, low, high);
        if (!met) continue;
        report(wave, op, "lds-in-flight", met->first,
               fmt::format("overwrites LDS byte {} while `{}` at +0x{:x} of the same wave has not been waited for",
                           met->second, text_of(reader), offset_of(reader)));
        return;
      }
    }
  }
}

void Strict::check_dma(Wave& wave, const MicroOp& op) {
  DmaQueue& q = group_.dma[wave.id];
  LdsDma& d = q.at(q.count - 1);
  d.op = &op;
  check_dma_base(wave, op, d);
  own_reads_in_flight(wave, op, d);
  bool conflict = false;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 at = d.base + u64{l} * d.stride;
    if (!((d.mask >> l) & 1)) continue;
    if (at + d.bytes > group_.lds_bytes) {
      report(wave, op, "lds-out-of-bounds", l,
             fmt::format("{} bytes at LDS address {}, the workgroup has {}", d.bytes, at, group_.lds_bytes));
      continue;
    }
    const LdsVerdict v = shadow_.begin_dma(wave.id, static_cast<u32>(at), d.bytes, DmaAge::kNew);
    conflict |= v.conflict == LdsConflict::kRace;
    if (v.conflict == LdsConflict::kInFlight) report_in_flight(wave, op, l, v);
  }
  const LdsAccess access = access_of(wave, op, d);
  if (conflict) report_races(wave, op, access);
  log_.add(access);
}

// Accesses still in flight may happen in the new interval too.
void Strict::enter_again(Wave& wave, const Pending& p) {
  const StrictOp& s = *p.strict;
  if (s.lds_chunks == 0 || p.access.mask == 0) return;
  for (unsigned chunk = 0; chunk < s.lds_chunks; ++chunk) {
    for (unsigned l = 0; l < kLanes; ++l) {
      const u32 address = p.access.at(l, chunk);
      if (((p.access.mask >> l) & 1) && static_cast<u64>(address) + s.lds_bytes <= group_.lds_bytes)
        static_cast<void>(enter(wave.id, s, address));
    }
  }
  log_.add(p.access);
}

void Strict::enter_again(Wave& wave, const LdsDma& d) {
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 at = d.base + u64{l} * d.stride;
    if (((d.mask >> l) & 1) && at + d.bytes <= group_.lds_bytes)
      static_cast<void>(shadow_.begin_dma(wave.id, static_cast<u32>(at), d.bytes, DmaAge::kCarried));
  }
  log_.add(access_of(wave, *d.op, d));
}

void Strict::barrier() {
  shadow_.barrier();
  log_.barrier();
  bool some_ended = false;
  for (const Wave& w : group_.waves) some_ended |= w.state == sim::WaveState::kEnded;
  for (Wave& w : group_.waves) {
    if (w.state != sim::WaveState::kBarrier) continue;
    if (some_ended) {
      report(w, plan_.program->ops[w.pc - 1], "divergent-barrier", 0,
             "waits at a barrier that other waves ended without reaching");
    }
    for (const auto* queue : {&flight_.lds_queue(w.id), &flight_.unordered_queue(w.id)})
      for (const u32 entry : *queue) enter_again(w, *pool_[entry]);
    DmaQueue& q = group_.dma[w.id];
    for (u32 i = 0; i < q.count; ++i) enter_again(w, q.at(i));
  }
}

}  // namespace zyfa::sim
