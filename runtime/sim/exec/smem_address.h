// Addresses of scalar memory instructions (CDNA4 guide 8.2.1.1): base + inst_offset + SGPR offset, where the low two
// bits of every component count as 0. Scratch forms multiply the SGPR offset by 64.
#pragma once

#include <cstdint>

#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {

// A buffer resource as scalar instructions see it: stride only scales the number of records.
struct ScalarBuffer {
  std::uint64_t base = 0, offset = 0, size = 0;
  [[nodiscard]] bool inside(unsigned dword) const { return offset + 4ull * dword < size; }
  [[nodiscard]] std::uint64_t at(unsigned dword) const { return (base + offset + 4ull * dword) & 0xffffffffffffull; }
};

std::uint64_t scalar_pair(const Wave& wave, const Operand& operand);
// `base` is the source that holds the base; the offset follows it.
std::uint64_t scalar_offset(const Wave& wave, const MicroOp& op, unsigned base);
std::uint64_t scalar_address(const Wave& wave, const MicroOp& op, unsigned base);
ScalarBuffer scalar_buffer(const Wave& wave, const MicroOp& op, unsigned base);

}  // namespace zyfa::sim
