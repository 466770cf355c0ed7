// Bytes that memory instructions move, worked out from the operation and EXEC before it executes.
#pragma once

#include <cstdint>

#include "runtime/sim/exec/lds_banks.h"
#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {

// Bytes that active lanes ask for, also those that a range check drops. A direct-to-LDS load counts its memory side
// under global_read (scratch_read) and what it writes to LDS under lds_dma. Read-modify-writes of LDS and memory count
// under `atomics`, as lane operations, and nowhere else. Typed accesses count whole elements of the format.
struct MemoryTraffic {
  std::uint64_t lds_read = 0, lds_written = 0;
  std::uint64_t global_read = 0, global_written = 0;
  std::uint64_t lds_dma = 0;
  std::uint64_t scalar_read = 0;  // a wave's, not a lane's; scalar stores count as global_written
  std::uint64_t scratch_read = 0, scratch_written = 0;
  std::uint64_t atomics = 0;

  MemoryTraffic& operator+=(const MemoryTraffic& t);
  friend bool operator==(const MemoryTraffic&, const MemoryTraffic&) = default;
};

// Nothing for instructions other than LDS, VMEM and SMEM.
MemoryTraffic traffic_of(const Wave& wave, const MicroOp& op);

// An LDS instruction's access: 0, 1 or 2 elements of `bytes` a lane.
struct LdsShape {
  LdsAccessKind kind = LdsAccessKind::kRead;
  std::uint8_t elements = 0;
  std::uint8_t bytes = 0;
};
LdsShape lds_shape_of(const MicroOp& op);

}  // namespace zyfa::sim
