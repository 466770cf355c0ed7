// The LDS accesses of a workgroup since the last barrier, kept so that a race can name both of its instructions: every
// pair (earlier, later) of instructions of different waves that touch one byte, at least one of them writing, with no
// barrier between.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {

enum class LdsUse : std::uint8_t { kRead, kWrite, kAtomic };

// One LDS instruction of a wave, or the LDS side of a direct-to-LDS load: up to two chunks of `bytes` a lane.
struct LdsAccess {
  const MicroOp* op = nullptr;
  std::uint32_t wave = 0;
  LdsUse use = LdsUse::kRead;
  std::uint8_t chunks = 0, bytes = 0;
  std::array<std::int32_t, 2> offset{};
  std::uint64_t mask = 0;  // lanes
  std::array<std::uint32_t, kLanes> address{};

  [[nodiscard]] std::uint32_t at(unsigned lane, unsigned chunk) const {
    return address[lane] + static_cast<std::uint32_t>(offset[chunk]);
  }
};

struct RacePair {
  const LdsAccess* earlier = nullptr;
  unsigned lane = 0;       // of the later access
  std::uint32_t byte = 0;  // first in lane order that both touch
};

class LdsAccessLog {
 public:
  // Of an interval the last kMost accesses are kept: code without barriers may make any number.
  static constexpr std::size_t kMost = 1024;

  void reset();  // a new workgroup: the pairs reported so far are forgotten too
  void barrier() { count_ = 0; }
  void add(const LdsAccess& access);
  // Accesses of this interval were forgotten, so a race may lack its other side.
  [[nodiscard]] bool incomplete() const { return count_ > kMost; }
  // Conflicts of `later` with logged accesses of other waves, one for each instruction that no pair was returned for
  // yet.
  std::vector<RacePair> new_races(const LdsAccess& later, std::uint32_t lds_bytes);

 private:
  std::vector<LdsAccess> accesses_;         // a ring; the last count_ (at most all) are of this interval
  std::size_t count_ = 0;                   // accesses of this interval, forgotten ones too
  std::unordered_set<std::uint64_t> seen_;  // pairs of text offsets
  std::vector<std::uint64_t> touched_;      // a bit for each byte of LDS that `later` touches
};

}  // namespace zyfa::sim
