// Where a lane of a vector memory instruction reads or writes (gfx950-isa.md 3.1, 3.2; CDNA4 guide 9.1.5, 10.3-10.5).
//
// The scalar operands and the descriptor are decoded once for an instruction; what runs for each lane is inline.
#pragma once

#include <cstdint>

#include "runtime/sim/exec/group.h"

namespace zyfa::sim {

// OpRow::arg of vector memory instructions: bytes of a lane's access, or components of a typed one, and how a part of
// a register is filled.
enum : std::uint32_t {
  kBytesMask = 0x1f,
  kSigned = 0x20,
  kD16 = 0x40,    // 16 bits: the low half of the register, or packed components
  kD16Hi = 0x80,  // the high half
  kTyped = 0x100,
  kTypedByInstruction = 0x200,  // tbuffer: imm2 is data format | number format << 4
};

// The source that carries the data of a store or atomic: first for buffer instructions, second for the others.
inline unsigned data_source(const MicroOp& op) { return op.flags & kBuffer ? 0 : 1; }
// The source that holds a buffer resource.
inline unsigned resource_source(const MicroOp& op) { return op.sources == 4 ? 2 : 1; }

// Bits 63:32 of a flat address that lies in LDS or in private memory.
inline constexpr std::uint32_t kSharedHigh = 0x00010000, kPrivateHigh = 0x00020000;

struct Located {
  enum Status : std::uint8_t { kInside, kClipped, kFault };
  Status status = kInside;
  std::byte* host = nullptr;
  std::uint64_t address = 0;
  std::uint32_t lds = ~0u;  // LDS address of a flat access, or ~0
};

// All active lanes inside one region of device memory: lane l is at host + offset[l] - first.
struct PlainAccess {
  std::byte* host = nullptr;
  const std::uint32_t* offset = nullptr;
  std::uint32_t first = 0;
  [[nodiscard]] std::byte* at(unsigned lane) const { return host + (offset[lane] - first); }
};

class Locator {
 public:
  // `bytes` a lane transfers as one unit: decides alignment where a rule asks for it.
  Locator(Wave& wave, const MicroOp& op, std::uint32_t bytes);

  // `bytes` at `component` bytes from the lane's address. kClipped for several dwords: at least one of them is out of
  // range or elsewhere, so that the caller asks again dword by dword; for at most one dword: out of range.
  Located locate(unsigned lane, std::uint32_t component, std::uint32_t bytes) {
    switch (space_) {
      case Space::kLinear:
        return linear(lane, component, bytes);
      case Space::kSwizzled:
        return swizzled(lane, component, bytes);
      case Space::kGlobal:
        return in_memory((flat_address(lane) & keep_) + component, bytes);
      case Space::kScratch:
        return in_scratch(lane, scratch_offset(lane) + component, bytes);
      case Space::kFlat:
        return flat(lane, component, bytes);
    }
    return {};
  }

  // Typed accesses and atomics are in or out of range as a whole (guide 9.1.5.1 note 3).
  [[nodiscard]] bool out_of_range(unsigned lane, std::uint32_t bytes) const {
    return (space_ == Space::kLinear || space_ == Space::kSwizzled) && clipped(lane, 0, bytes);
  }

  // True when every active lane lies inside one buffer of the device and, by a raw descriptor, in range.
  bool plain(std::uint64_t exec, std::uint32_t bytes, PlainAccess& access);

 private:
  enum class Space : std::uint8_t { kLinear, kSwizzled, kGlobal, kScratch, kFlat };
  enum class Check : std::uint8_t { kOffset, kIndex, kNone, kUnbound };

  void decode_resource();

  [[nodiscard]] std::uint64_t index(unsigned lane) const { return (index_ ? index_[lane] : 0) + (add_tid_ ? lane : 0); }
  [[nodiscard]] std::uint64_t offset(unsigned lane) const {
    return static_cast<std::uint32_t>(op_.imm) + static_cast<std::uint64_t>(low_ ? low_[lane] : 0);
  }
  [[nodiscard]] bool clipped(unsigned lane, std::uint32_t component, std::uint32_t bytes) const {
    switch (check_) {
      case Check::kOffset:
        // By the start of the last dword.
        return offset(lane) + component + (bytes > 4 ? bytes - 4 : 0) + checked_ >= records_;
      case Check::kIndex:
        return index(lane) >= records_;
      case Check::kNone:
        return false;
      case Check::kUnbound:
        return true;
    }
    return true;
  }
  Located linear(unsigned lane, std::uint32_t component, std::uint32_t bytes) {
    if (clipped(lane, component, bytes)) return {Located::kClipped, nullptr, scalar_ + offset(lane)};
    const std::uint64_t address = scalar_ + index(lane) * stride_ + offset(lane);
    return in_memory(((address & keep_) + component) & 0xffffffffffffull, bytes);
  }
  [[nodiscard]] std::uint64_t flat_address(unsigned lane) const {
    const std::uint64_t vector = (low_ ? low_[lane] : 0) | (high_ ? static_cast<std::uint64_t>(high_[lane]) << 32 : 0);
    return scalar_ + vector + static_cast<std::uint64_t>(static_cast<std::int64_t>(op_.imm));
  }
  [[nodiscard]] std::uint32_t scratch_offset(unsigned lane) const {
    return static_cast<std::uint32_t>(scalar_ + (low_ ? low_[lane] : 0) + static_cast<std::uint32_t>(op_.imm));
  }
  Located in_memory(std::uint64_t address, std::uint32_t bytes) {
    if (region_ == nullptr || address < region_->address || address - region_->address >= region_->size)
      region_ = wave_.group->memory->region_of(address);
    const Region* r = region_;
    if (r == nullptr || bytes > r->size || address - r->address > r->size - bytes)
      return {Located::kFault, nullptr, address};
    return {Located::kInside, r->bytes.get() + (address - r->address), address};
  }
  Located in_scratch(unsigned lane, std::uint32_t offset, std::uint32_t bytes);
  Located swizzled(unsigned lane, std::uint32_t component, std::uint32_t bytes);
  Located flat(unsigned lane, std::uint32_t component, std::uint32_t bytes);

  Wave& wave_;
  const MicroOp& op_;
  Space space_ = Space::kGlobal;
  Check check_ = Check::kOffset;
  const std::uint32_t* low_ = nullptr;    // offset of a buffer, low dword of an address; nullptr: none
  const std::uint32_t* high_ = nullptr;   // high dword of an address
  const std::uint32_t* index_ = nullptr;  // buffers
  std::uint64_t scalar_ = 0;              // base: SGPR pair, or buffer base + soffset
  std::uint64_t keep_ = ~0ull;            // address bits that count
  std::uint64_t checked_ = 0;             // soffset, when it takes part in the range check
  std::uint32_t records_ = 0, stride_ = 0, index_stride_ = 0;
  bool add_tid_ = false;
  const Region* region_ = nullptr;
};

// LDS addresses of the active lanes of a FLAT instruction, before execution; the result is the mask of those that lie
// in LDS. The others' entries are left alone.
std::uint64_t flat_lds_lanes(const Wave& wave, const MicroOp& op, std::uint32_t* address);

}  // namespace zyfa::sim
