// Byte-exact watch over a workgroup's LDS in strict mode: who read and wrote each byte since the last barrier, which
// bytes a direct-to-LDS load still has to write, and which were never written.
//
// Two accesses of different waves to one byte, at least one a write, are a race unless a barrier lies between the end
// of the first (its counter waited for) and the second: accesses in flight count again after a barrier.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/strict_races.h"

namespace zyfa::sim {

enum class LdsConflict : std::uint8_t {
  kNone,
  kRace,      // another wave accessed the byte in this interval, one of the two writing it
  kInFlight,  // a direct-to-LDS load of this wave, or one from before the barrier, has not been waited for
};
// Whether a direct-to-LDS load was issued since the last barrier or before it.
enum class DmaAge : std::uint8_t { kNew, kCarried };

struct LdsVerdict {
  LdsConflict conflict = LdsConflict::kNone;
  std::uint32_t other = 0;  // kInFlight: the wave that loads
  std::uint32_t byte = 0;   // first byte concerned
};

class LdsShadow {
 public:
  void reset(std::uint32_t bytes);
  // The common case, for all lanes of an instruction: aligned and inside of LDS, of bytes that no other wave touched
  // since the barrier in a way that conflicts; reads and atomics of bytes written before. Returns the lanes of which
  // that is not so and nothing was entered: ask the functions below.
  std::uint64_t enter_quietly(std::uint32_t wave, LdsUse use, std::uint64_t lanes, const std::uint32_t* address,
                              std::uint32_t offset, std::uint32_t bytes);
  // Accesses of [address, address + bytes), which lie inside of LDS.
  LdsVerdict read(std::uint32_t wave, std::uint32_t address, std::uint32_t bytes);
  LdsVerdict write(std::uint32_t wave, std::uint32_t address, std::uint32_t bytes);
  LdsVerdict atomic(std::uint32_t wave, std::uint32_t address, std::uint32_t bytes);
  // A direct-to-LDS load of `wave` will write / has written these bytes.
  LdsVerdict begin_dma(std::uint32_t wave, std::uint32_t address, std::uint32_t bytes, DmaAge age);
  void end_dma(std::uint32_t wave, std::uint32_t address, std::uint32_t bytes);
  // All bytes written at least once; `mark_written` after a write has landed.
  [[nodiscard]] bool written(std::uint32_t address, std::uint32_t bytes) const;
  [[nodiscard]] std::uint32_t first_unwritten(std::uint32_t address, std::uint32_t bytes) const;
  void mark_written(std::uint32_t address, std::uint32_t bytes);
  // All waves have arrived: forgets this interval. Accesses still in flight are entered again by the caller.
  void barrier();

 private:
  static constexpr std::uint8_t kDma = 0x80, kCarried = 0x40, kWave = 0x3f;
  template <LdsUse Use>
  std::uint64_t enter_as(std::uint32_t wave, std::uint64_t lanes, const std::uint32_t* address, std::uint32_t offset,
                         std::uint32_t bytes);
  LdsVerdict check(std::uint32_t wave, std::uint32_t address, std::uint32_t bytes, bool is_write, bool is_atomic) const;
  void touch(std::uint32_t address, std::uint32_t bytes) {
    low_ = address < low_ ? address : low_;
    high_ = address + bytes > high_ ? address + bytes : high_;
  }

  // Per byte: 0, or wave + 1; kDma is set while a load to it is in flight, kCarried too when from before the barrier.
  // Readers: 0xff for several waves.
  std::vector<std::uint8_t> writer_, reader_, atomic_, valid_;
  std::uint32_t low_ = ~0u, high_ = 0;  // bytes touched since the barrier
  bool any_atomic_ = false;
};

}  // namespace zyfa::sim
