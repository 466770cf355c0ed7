// Bank conflicts of LDS instructions: how many phases an access takes and how many more cycles its conflicts cost
// (gfx950-isa.md 3.3). Pure: addresses in, counts out.
//
// Hardware serves the lanes of an instruction in phases. Two lanes of one phase conflict when they touch different
// dwords of one bank; lanes that touch the same dword share it. bank = (address / 4) mod banks. A phase without
// conflicts counts one cycle here, one with n different dwords in its fullest bank counts n: the unit is the service of
// a phase (256 bytes over 64 banks, 128 over 32), not the clock.
//
// Measured on gfx950 (HipKittens): ds_read_b128, ds_read_b64, ds_read_b96, ds_write_b64. Assumed, by the measured ones
// nearest to them:
// - reads of a dword or less: 64 banks, all 64 lanes in one phase: the 256 bytes that a phase of b64 and b128 moves;
// - transposed reads: as the plain read of their width (their throughput is the same, mi355x-timing.md 3.1);
// - writes of a dword or less: 32 banks, 2 phases of 32 consecutive lanes: the 128 bytes of a phase of ds_write_b64;
//   ds_write_b96 and b128: 32 banks, 8 phases of 8 consecutive lanes;
// - read2 and write2: two accesses of one element, one after the other;
// - atomics: as a write of their width, except that lanes which update the same dword do not share it.
#pragma once

#include <cstdint>

#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {

enum class LdsAccessKind : std::uint8_t { kRead, kWrite, kTransposedRead, kAtomic, kRead2, kWrite2 };

struct LdsCost {
  std::uint32_t phases = 0;        // that serve at least one active lane
  std::uint32_t extra_cycles = 0;  // beyond one a phase
  [[nodiscard]] std::uint32_t cycles() const { return phases + extra_cycles; }
};

// `bytes` a lane (1 to 16; of one element for kRead2 and kWrite2) at address[l] of the lanes in `mask`. `second` holds
// the other element's addresses of kRead2 and kWrite2.
LdsCost lds_cost(LdsAccessKind kind, std::uint32_t bytes, std::uint64_t mask, const std::uint32_t* address,
                 const std::uint32_t* second = nullptr);

// The same of an instruction before execution; nothing for those that touch no LDS.
LdsCost lds_cost_of(const Wave& wave, const MicroOp& op);

}  // namespace zyfa::sim
