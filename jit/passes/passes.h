// The passes that turn a listing of virtual registers into one that can be assembled, in the order they run:
// allocate -> insert_waits -> insert_wait_states -> align_loops. All but the last follow the control-flow graph of
// labels and branches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/isa/instruction.h"
#include "zyfa/error.h"

namespace zyfa::jit {

struct RegisterLimits {
  std::uint16_t vgprs = 256;  // arch VGPRs available (gfx950-isa.md 5.4: 256 at two waves a SIMD with no AGPRs)
  std::uint16_t agprs = 0;
  std::uint16_t sgprs = 100;  // s0..s99; VCC is separate
};

struct RegisterMapRow {
  std::string name;  // virtual tuple
  Bank bank;
  std::uint16_t physical;  // first register
  std::uint16_t count;
  std::uint32_t first_live, last_live;  // instruction indices in the listing given to allocate()
};

struct RegisterMap {
  std::vector<RegisterMapRow> rows;
  std::uint16_t vgprs_used = 0, agprs_used = 0, sgprs_used = 0;  // highest register + 1
  std::uint16_t vgpr_peak = 0, agpr_peak = 0, sgpr_peak = 0;     // most registers live at once: what no allocator beats
  std::uint32_t vgpr_peak_at = 0;                                // instruction index of the VGPR peak

  // The table a person reads: one row a tuple, sorted by bank and register, with live ranges, and the pressure peak.
  [[nodiscard]] std::string to_text() const;
};

// Fixed-size tuples, live ranges by dataflow over the CFG, first fit with alignment, reuse as soon as a tuple is dead.
// Pinned tuples keep their registers. Error kScheduleError when it does not fit: names the bank, the peak demand, the
// limit, and the tuples (with stages) alive at the peak. A use with no reaching definition is kCompileError.
[[nodiscard]] Expected<RegisterMap> allocate(Listing& listing, const RegisterLimits& limits);

// Inserts s_waitcnt before the first use of each memory result, counting (not draining) vmcnt and lgkmcnt
// (gfx950-isa.md 3.5), and turns kAwait into the s_waitcnt it needs, if any. Each inserted wait carries a comment that
// names what it waits for.
[[nodiscard]] Status insert_waits(Listing& listing);

// Inserts s_nop for the wait states of gfx950-isa.md section 4.
[[nodiscard]] Status insert_wait_states(Listing& listing);

// Makes every instruction of 8 or 16 bytes inside a loop start at a multiple of 8 bytes, on the premise that the kernel
// does: one at 4 mod 8 takes a cycle more (mi355x-timing.md 1.6). Costs no issue turn where a VALU instruction before
// it can take the long encoding or an s_nop be split in two, else a wait for nothing. Nothing may be inserted or
// removed afterwards.
void align_loops(Listing& listing);

}  // namespace zyfa::jit
