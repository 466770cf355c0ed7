// Live ranges of virtual tuples.
//
// Values are followed by 32-bit register, so a tuple written piece by piece is live from its first piece on and a loop
// that rewrites every piece carries nothing round its back edge. Time runs in slots: instruction i reads in slot 2i and
// writes in slot 2i+1, so a result may reuse a register whose last use is the same instruction; an instruction that may
// write before it has read everything (MFMA, gfx950-isa.md 1.2) holds its result from slot 2i on.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/isa/instruction.h"
#include "jit/passes/cfg.h"
#include "zyfa/error.h"

namespace zyfa::jit {

struct Segment {
  std::uint32_t begin, end;  // slots, end exclusive
};

// Sorted, disjoint segments; empty for a tuple that never occurs.
using LiveRange = std::vector<Segment>;

[[nodiscard]] bool intersect(const LiveRange& a, const LiveRange& b);

struct Liveness {
  std::vector<LiveRange> ranges;              // by tuple id
  std::vector<std::uint32_t> first_mentions;  // by tuple id: first instruction that names it, to name its stage
};

// kCompileError: a register is read that no path defines. Pinned tuples are defined at entry.
[[nodiscard]] Expected<Liveness> analyse_liveness(const Listing& listing, const Cfg& cfg);

}  // namespace zyfa::jit
