// Address rules of buffer, global, flat and scratch instructions (gfx950-isa.md 3.1, 3.2).
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Apertures: bits 63:32 of a flat address that lies in LDS or in private memory.
constexpr u32 kSharedHigh = 0x00010000, kPrivateHigh = 0x00020000;

u64 pair(const Wave& w, const Operand& o) {
  return scalar_value(w, o, 0) | (static_cast<u64>(scalar_value(w, o, 1)) << 32);
}

}  // namespace

Locator::Locator(Wave& w, const MicroOp& op) : wave_(w), op_(op) {
  const bool buffer = op.flags & kBuffer;
  // Buffer: [data,] address, resource, soffset. Others: address, [data,] [saddr].
  const unsigned address = buffer && op.sources == 4 ? 1 : 0;
  const Operand& a = op.src[address];
  if (a.kind == OperandKind::kVgpr) {
    low_ = w.v[a.index].lane;
    if (a.count > 1) high_ = w.v[a.index + 1].lane;
  }
  if (buffer) {
    const unsigned r = op.src[address + 1].index;
    const u32 word1 = w.s[r + 1], word3 = w.s[r + 3];
    scalar_ = (w.s[r] | (static_cast<u64>(word1 & 0xffff) << 32)) + scalar_value(w, op.src[address + 2], 0);
    stride_ = (word1 >> 16) & 0x3fff;
    records_ = w.s[r + 2];
    bound_ = ((word3 >> 15) & 0xf) != 0;
    add_tid_ = (word3 >> 23) & 1;
    return;
  }
  if (op.flags & (kGlobal | kScratch)) {
    const Operand& s = op.src[op.sources - 1];
    if (s.kind != OperandKind::kNone) scalar_ = op.flags & kGlobal ? pair(w, s) : scalar_value(w, s, 0);
  }
}

Located Locator::in_memory(u64 address, u32 bytes) {
  if (region_ == nullptr || address < region_->address || address - region_->address >= region_->size)
    region_ = wave_.group->memory->region_of(address);
  const Region* r = region_;
  if (r == nullptr || bytes > r->size || address - r->address > r->size - bytes)
    return {Located::kFault, nullptr, address};
  return {Located::kInside, r->bytes.get() + (address - r->address), address};
}

Located Locator::in_scratch(unsigned lane, u64 offset, u32 bytes) {
  Group& g = *wave_.group;
  if (offset > g.scratch_bytes || bytes > g.scratch_bytes - offset)
    return {Located::kFault, nullptr, (static_cast<u64>(kPrivateHigh) << 32) + offset};
  auto* base = reinterpret_cast<std::byte*>(g.scratch.data());
  return {Located::kInside, base + (static_cast<u64>(wave_.id) * kLanes + lane) * g.scratch_bytes + offset, offset};
}

Located Locator::buffer(unsigned lane, u32 component, u32 bytes) {
  u64 offset = static_cast<u32>(op_.imm), index = 0;
  if (op_.idxen) index = low_[lane];
  if (op_.offen) offset += op_.idxen ? high_[lane] : low_[lane];
  if (add_tid_) index += lane;
  offset += component;
  // Raw buffers clip every dword by its own offset; soffset is no part of the check. Structured ones clip by index.
  const bool structured = op_.idxen && stride_ != 0;
  const u64 last = bytes > 4 ? offset + bytes - 4 : offset;
  if (!bound_ || (structured ? index >= records_ : last >= records_))
    return {Located::kClipped, nullptr, scalar_ + offset};
  return in_memory((scalar_ + index * stride_ + offset) & 0xffffffffffffull, bytes);
}

Located Locator::flat(unsigned lane, u64 address, u32 bytes) {
  const u32 high = static_cast<u32>(address >> 32);
  if (high == kSharedHigh) {
    Group& g = *wave_.group;
    const u32 at = static_cast<u32>(address);
    if (at > g.lds_bytes || bytes > g.lds_bytes - at) return {Located::kFault, nullptr, address};
    return {Located::kInside, reinterpret_cast<std::byte*>(g.lds) + at, address, at};
  }
  if (high == kPrivateHigh) return in_scratch(lane, static_cast<u32>(address), bytes);
  return in_memory(address, bytes);
}

Located Locator::locate(unsigned lane, u32 component, u32 bytes) {
  if (op_.flags & kBuffer) return buffer(lane, component, bytes);
  const u64 offset = static_cast<u64>(static_cast<std::int64_t>(op_.imm)) + component;
  if (op_.flags & kScratch)
    return in_scratch(lane, static_cast<u32>(scalar_ + (low_ ? low_[lane] : 0) + offset), bytes);
  const u64 vector = low_ ? low_[lane] | (high_ ? static_cast<u64>(high_[lane]) << 32 : 0) : 0;
  if (op_.flags & kFlat) return flat(lane, vector + offset, bytes);
  return in_memory(scalar_ + vector + offset, bytes);
}

}  // namespace zyfa::sim
