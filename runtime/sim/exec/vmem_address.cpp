// Descriptors and the less frequent address spaces of vector memory instructions: see vmem_address.h.
#include "runtime/sim/exec/vmem_address.h"

#include <algorithm>

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// The descriptor of gfx9 has no field for it; LLVM's and Mesa's scratch descriptors assume 4 bytes.
constexpr u32 kElementSize = 4;

u64 pair(const Wave& w, const Operand& o) {
  return scalar_value(w, o, 0) | (static_cast<u64>(scalar_value(w, o, 1)) << 32);
}

}  // namespace

Locator::Locator(Wave& w, const MicroOp& op, u32 bytes) : wave_(w), op_(op) {
  // Guide 9.1.7 ignores the low two bits of dwords and wider. Scratch is named as supporting them (10.5).
  if (w.rules.unaligned == SimUnaligned::kTruncated && bytes >= 4) keep_ = ~3ull;
  if (op.flags & kBuffer) {
    decode_resource();
    return;
  }
  const Operand& a = op.src[0];
  if (a.kind == OperandKind::kVgpr) {
    low_ = w.v[a.index].lane;
    if (a.count > 1) high_ = w.v[a.index + 1].lane;
  }
  space_ = op.flags & kScratch ? Space::kScratch : op.flags & kFlat ? Space::kFlat : Space::kGlobal;
  if (op.flags & (kGlobal | kScratch)) {
    const Operand& s = op.src[op.sources - 1];
    if (s.kind != OperandKind::kNone) scalar_ = op.flags & kGlobal ? pair(w, s) : scalar_value(w, s, 0);
  }
}

// [data,] address, resource, soffset.
void Locator::decode_resource() {
  const unsigned resource = resource_source(op_);
  const Operand& a = op_.src[resource - 1];
  if (a.kind == OperandKind::kVgpr) {
    u32 row = a.index;
    if (op_.idxen) index_ = wave_.v[row++].lane;
    if (op_.offen) low_ = wave_.v[row].lane;
  }
  const unsigned r = op_.src[resource].index;
  const u32 word1 = wave_.s[r + 1], word3 = wave_.s[r + 3];
  const u64 soffset = scalar_value(wave_, op_.src[resource + 1], 0);
  scalar_ = (wave_.s[r] | (static_cast<u64>(word1 & 0xffff) << 32)) + soffset;
  stride_ = (word1 >> 16) & 0x3fff;
  records_ = wave_.s[r + 2];
  add_tid_ = (word3 >> 23) & 1;
  const u32 data_format = (word3 >> 15) & 0xf;
  // Private buffers: the data format holds more of the stride, except for typed instructions (guide 9.1.5 table 45).
  const bool long_stride = add_tid_ && !(op_.arg & kTyped);
  if (long_stride) stride_ |= data_format << 14;
  const bool swizzle = word1 >> 31;
  space_ = swizzle ? Space::kSwizzled : Space::kLinear;
  index_stride_ = 8u << ((word3 >> 21) & 3);
  if (data_format == 0 && !long_stride) {
    check_ = Check::kUnbound;
  } else if (add_tid_ && !op_.idxen) {
    check_ = Check::kNone;
  } else if (op_.idxen && stride_ != 0) {
    check_ = Check::kIndex;
  } else if (wave_.rules.soffset == SimSoffset::kChecked) {
    checked_ = soffset;
  }
}

bool Locator::plain(u64 exec, u32 bytes, PlainAccess& access) {
  static constexpr u32 kZeros[kLanes] = {};
  const bool raw = space_ == Space::kLinear && check_ == Check::kOffset && index_ == nullptr && !add_tid_;
  if (!(raw || (space_ == Space::kGlobal && high_ == nullptr)) || keep_ != ~0ull || exec == 0) return false;
  const u32* offsets = low_ ? low_ : kZeros;
  u32 least = ~0u, most = 0;
  if (exec == ~0ull) {
    for (unsigned l = 0; l < kLanes; ++l) {
      least = std::min(least, offsets[l]);
      most = std::max(most, offsets[l]);
    }
  } else {
    for (u64 rest = exec; rest != 0; rest &= rest - 1) {
      const u32 x = offsets[__builtin_ctzll(rest)];
      least = std::min(least, x);
      most = std::max(most, x);
    }
  }
  const u64 imm = static_cast<u64>(static_cast<std::int64_t>(op_.imm));
  if (raw && imm + most + bytes + checked_ > records_) return false;
  const Located first = in_memory(scalar_ + imm + least, bytes);
  if (first.status != Located::kInside) return false;
  const u64 span = static_cast<u64>(most) - least + bytes;
  if (span > region_->size - (first.address - region_->address)) return false;
  access = {first.host, offsets, least};
  return true;
}

Located Locator::in_scratch(unsigned lane, u32 offset, u32 bytes) {
  Group& g = *wave_.group;
  if (offset > g.scratch_bytes || bytes > g.scratch_bytes - offset)
    return {Located::kFault, nullptr, (static_cast<u64>(kPrivateHigh) << 32) + offset};
  auto* base = reinterpret_cast<std::byte*>(g.scratch.data());
  return {Located::kInside, base + (static_cast<u64>(wave_.id) * kLanes + lane) * g.scratch_bytes + offset, offset};
}

// Guide 9.1.5.2: `index stride` elements of consecutive indices lie side by side. No unit is larger than an element.
Located Locator::swizzled(unsigned lane, u32 component, u32 bytes) {
  if (clipped(lane, component, bytes)) return {Located::kClipped, nullptr, scalar_ + offset(lane)};
  if (bytes > kElementSize) return {Located::kClipped, nullptr, scalar_ + offset(lane)};
  const u64 i = index(lane), o = (offset(lane) & keep_) + component;
  const u64 within = ((i / index_stride_) * stride_ + o / kElementSize * kElementSize) * index_stride_ +
                     (i % index_stride_) * kElementSize + o % kElementSize;
  return in_memory((scalar_ + within) & 0xffffffffffffull, bytes);
}

Located Locator::flat(unsigned lane, u32 component, u32 bytes) {
  const u64 address = flat_address(lane);
  const u32 high = static_cast<u32>(address >> 32);
  if (high == kSharedHigh) {
    Group& g = *wave_.group;
    const u32 at = static_cast<u32>(address) + component;
    if (at > g.lds_bytes || bytes > g.lds_bytes - at) return {Located::kFault, nullptr, address + component};
    return {Located::kInside, reinterpret_cast<std::byte*>(g.lds) + at, address + component, at};
  }
  if (high == kPrivateHigh) return in_scratch(lane, static_cast<u32>(address) + component, bytes);
  return in_memory((address & keep_) + component, bytes);
}

u64 flat_lds_lanes(const Wave& w, const MicroOp& op, u32* address) {
  const Operand& a = op.src[0];
  const u32 *low = w.v[a.index].lane, *high = w.v[a.index + 1].lane;
  u64 mask = 0;
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctzll(rest));
    const u64 at = (low[l] | (static_cast<u64>(high[l]) << 32)) + static_cast<u32>(op.imm);
    if (static_cast<u32>(at >> 32) != kSharedHigh) continue;
    address[l] = static_cast<u32>(at);
    mask |= 1ull << l;
  }
  return mask;
}

}  // namespace zyfa::sim
