// Where a lane of a vector memory instruction reads or writes.
#pragma once

#include <cstdint>

#include "runtime/sim/exec/group.h"

namespace zyfa::sim {

// The source that carries the data of a store or atomic: first for buffer instructions, second for the others.
inline unsigned data_source(const MicroOp& op) { return op.flags & kBuffer ? 0 : 1; }

struct Located {
  enum Status : std::uint8_t { kInside, kClipped, kFault };
  Status status = kInside;
  std::byte* host = nullptr;
  std::uint64_t address = 0;
  std::uint32_t lds = ~0u;  // LDS address of a flat access, or ~0
};

// Decodes the instruction's scalar operands once, then locates lanes. Holds the last buffer found.
class Locator {
 public:
  Locator(Wave& wave, const MicroOp& op);
  // `bytes` at `component` bytes from the lane's address. kClipped: a descriptor says out of range (for several dwords:
  // at least one of them), so that the caller asks again dword by dword.
  Located locate(unsigned lane, std::uint32_t component, std::uint32_t bytes);

 private:
  Located in_memory(std::uint64_t address, std::uint32_t bytes);
  Located in_scratch(unsigned lane, std::uint64_t offset, std::uint32_t bytes);
  Located buffer(unsigned lane, std::uint32_t component, std::uint32_t bytes);
  Located flat(unsigned lane, std::uint64_t address, std::uint32_t bytes);

  Wave& wave_;
  const MicroOp& op_;
  const std::uint32_t* low_ = nullptr;  // address register rows, nullptr: off
  const std::uint32_t* high_ = nullptr;
  std::uint64_t scalar_ = 0;  // base: SGPR pair, or buffer base + soffset
  std::uint32_t records_ = 0, stride_ = 0;
  bool bound_ = true;  // buffer: the descriptor has a format
  bool add_tid_ = false;
  const Region* region_ = nullptr;
};

}  // namespace zyfa::sim
