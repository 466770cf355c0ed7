// Pairs of conflicting LDS instructions: see strict_races.h.
#include "runtime/sim/exec/strict_races.h"

#include <algorithm>

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

u64 pair_key(const MicroOp& earlier, const MicroOp& later) {
  return (static_cast<u64>(earlier.offset) << 32) | later.offset;
}

bool conflict(LdsUse a, LdsUse b) {
  if (a == LdsUse::kRead && b == LdsUse::kRead) return false;
  return !(a == LdsUse::kAtomic && b == LdsUse::kAtomic);
}

// Every byte of an access inside of LDS, until `use` says stop by returning true; then its lane and byte.
template <typename Use>
bool any_byte(const LdsAccess& a, u32 lds_bytes, Use&& use) {
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!((a.mask >> l) & 1)) continue;
    for (unsigned chunk = 0; chunk < a.chunks; ++chunk) {
      const u32 from = a.at(l, chunk);
      if (static_cast<u64>(from) + a.bytes > lds_bytes) continue;
      for (u32 byte = from; byte < from + a.bytes; ++byte)
        if (use(l, byte)) return true;
    }
  }
  return false;
}

}  // namespace

void LdsAccessLog::reset() {
  count_ = 0;
  seen_.clear();
}

void LdsAccessLog::add(const LdsAccess& access) {
  if (accesses_.empty()) accesses_.reserve(kMost);  // entries are large: they are never moved
  if (count_ == accesses_.size() && count_ < kMost) accesses_.emplace_back();
  accesses_[count_++ % kMost] = access;
}

std::vector<RacePair> LdsAccessLog::new_races(const LdsAccess& later, u32 lds_bytes) {
  std::vector<RacePair> pairs;
  bool marked = false;
  for (std::size_t i = 0; i < std::min(count_, kMost); ++i) {
    const LdsAccess& earlier = accesses_[i];
    if (earlier.wave == later.wave || !conflict(earlier.use, later.use)) continue;
    const u64 key = pair_key(*earlier.op, *later.op);
    if (seen_.contains(key)) continue;
    if (!marked) {
      touched_.assign(lds_bytes / 64 + 1, 0);
      any_byte(later, lds_bytes, [&](unsigned, u32 byte) { return touched_[byte / 64] |= 1ull << (byte % 64), false; });
      marked = true;
    }
    u32 common = 0;
    const bool overlap = any_byte(earlier, lds_bytes, [&](unsigned, u32 byte) {
      common = byte;
      return ((touched_[byte / 64] >> (byte % 64)) & 1) != 0;
    });
    if (!overlap) continue;
    seen_.insert(key);
    RacePair pair{&earlier, 0, common};
    any_byte(later, lds_bytes, [&](unsigned lane, u32 byte) { return pair.lane = lane, byte == common; });
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace zyfa::sim
