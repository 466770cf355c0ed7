// Bytes of LDS by address, and the addresses of an LDS instruction. Out of range: reads give 0 and writes are dropped,
// byte by byte (gfx950-isa.md 3.3). M0 is no bound: LLVM never sets it for LDS instructions.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/sim/exec/group.h"

namespace zyfa::sim {

inline bool inside_lds(const Group& g, std::uint32_t address, std::uint32_t bytes) {
  return address <= g.lds_bytes && bytes <= g.lds_bytes - address;
}

void load_clipped(const Group& g, std::uint32_t address, std::uint32_t bytes, void* to);
void store_clipped(Group& g, std::uint32_t address, std::uint32_t bytes, const void* from);

inline void load_lds(const Group& g, std::uint32_t address, std::uint32_t bytes, void* to) {
  if (inside_lds(g, address, bytes)) {
    std::memcpy(to, g.lds + address, bytes);
  } else {
    load_clipped(g, address, bytes, to);
  }
}
inline void store_lds(Group& g, std::uint32_t address, std::uint32_t bytes, const void* from) {
  if (inside_lds(g, address, bytes)) {
    std::memcpy(g.lds + address, from, bytes);
  } else {
    store_clipped(g, address, bytes, from);
  }
}

// Addresses of all lanes of an instruction of Unit::kLds before its offsets: a register, M0 + 4 * lane (ADDTID forms)
// or 0 (append, consume).
void lds_addresses(const Wave& wave, const MicroOp& op, std::uint32_t* address);

}  // namespace zyfa::sim
