// Vector memory: buffer, global, flat and scratch loads, stores and direct-to-LDS loads (gfx950-isa.md 3.1, 3.2).
#include <algorithm>
#include <cstring>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

u32 extend(u32 value, u32 arg) {
  const u32 bytes = arg & kBytesMask;
  if (!(arg & kSigned)) return value;
  return bytes == 1 ? static_cast<u32>(static_cast<i32>(static_cast<std::int8_t>(value)))
                    : static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(value)));
}

// Component by component where a descriptor clips. False after a fault.
__attribute__((noinline)) bool load_pieces(Wave& w, const MicroOp& op, Locator& at, unsigned l, u32 bytes, u8* out) {
  for (u32 c = 0; c < bytes; c += 4) {
    const u32 n = std::min(4u, bytes - c);
    const Located where = at.locate(l, c, n);
    if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, n, "reads"), false;
    if (where.status == Located::kInside) {
      std::memcpy(out + c, where.host, n);
    } else {
      std::memset(out + c, 0, n);
    }
  }
  return true;
}
bool load_lane(Wave& w, const MicroOp& op, Locator& at, unsigned l, u32 bytes, void* to) {
  const Located where = at.locate(l, 0, bytes);
  if (where.status == Located::kInside) {
    std::memcpy(to, where.host, bytes);
    return true;
  }
  if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, bytes, "reads"), false;
  return load_pieces(w, op, at, l, bytes, static_cast<u8*>(to));
}
bool store_lane(Wave& w, const MicroOp& op, Locator& at, unsigned l, u32 bytes, const void* from) {
  Located where = at.locate(l, 0, bytes);
  if (where.status == Located::kInside) {
    std::memcpy(where.host, from, bytes);
    return true;
  }
  if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, bytes, "writes"), false;
  for (u32 c = 0; c < bytes; c += 4) {
    const u32 n = std::min(4u, bytes - c);
    where = at.locate(l, c, n);
    if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, n, "writes"), false;
    if (where.status == Located::kInside) std::memcpy(where.host, static_cast<const u8*>(from) + c, n);
  }
  return true;
}

template <u32 Dwords>
void load(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op, 4 * Dwords);
  u32* d[Dwords];
  for (u32 k = 0; k < Dwords; ++k) d[k] = row(w, op.dst, k);
  u32 value[Dwords];
  if (PlainAccess p; at.plain(exec, 4 * Dwords, p)) {
    for (unsigned l = 0; l < kLanes; ++l) {
      if (!active(exec, l)) continue;
      std::memcpy(value, p.at(l), sizeof(value));
      for (u32 k = 0; k < Dwords; ++k) d[k][l] = value[k];
    }
    return;
  }
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    if (!load_lane(w, op, at, l, 4 * Dwords, value)) return;
    for (u32 k = 0; k < Dwords; ++k) d[k][l] = value[k];
  }
}
void load_small(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op, op.arg & kBytesMask);
  u32* d = row(w, op.dst);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value = 0;
    if (!load_lane(w, op, at, l, op.arg & kBytesMask, &value)) return;
    value = extend(value, op.arg);
    if (op.arg & kD16) value = into_low_half(w, d[l], value);
    if (op.arg & kD16Hi) value = into_high_half(w, d[l], value);
    d[l] = value;
  }
}
template <u32 Dwords>
void store(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op, 4 * Dwords);
  const Operand& data = op.src[data_source(op)];
  const u32* d[Dwords];
  for (u32 k = 0; k < Dwords; ++k) d[k] = row(w, data, k);
  u32 value[Dwords];
  if (PlainAccess p; at.plain(exec, 4 * Dwords, p)) {
    for (unsigned l = 0; l < kLanes; ++l) {
      if (!active(exec, l)) continue;
      for (u32 k = 0; k < Dwords; ++k) value[k] = d[k][l];
      std::memcpy(p.at(l), value, sizeof(value));
    }
    return;
  }
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    for (u32 k = 0; k < Dwords; ++k) value[k] = d[k][l];
    if (!store_lane(w, op, at, l, 4 * Dwords, value)) return;
  }
}
void store_small(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op, op.arg & kBytesMask);
  const u32* data = row(w, op.src[data_source(op)]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u32 value = op.arg & kD16Hi ? data[l] >> 16 : data[l];
    if (!store_lane(w, op, at, l, op.arg & kBytesMask, &value)) return;
  }
}

// LDS address = M0 + instruction offset + lane * 4 (16 for x3 and x4); the data lands when the wave waits for it.
// Lanes whose LDS address lies outside of the allocation do not read either (CDNA4 guide 9.1.9.1).
template <u32 Bytes>
void load_to_lds(Wave& w, const MicroOp& op) {
  constexpr u32 kLanded = Bytes < 4 ? 4 : Bytes;
  const u64 exec = w.exec();
  Locator at(w, op, Bytes);
  LdsDma& dma = push_dma(w);
  dma.mask = exec;
  // The flat encodings count M0 in dwords (guide 10.3).
  dma.base = (w.s[kM0] & (op.flags & kBuffer ? 0x3ffffu : 0x3fffcu)) + static_cast<u32>(op.imm);
  dma.stride = Bytes > 4 ? 16 : 4;
  dma.bytes = kLanded;
  const u32 lds_bytes = w.group->lds_bytes;
  const bool inside = static_cast<u64>(dma.base) + (kLanes - 1) * dma.stride + kLanded <= lds_bytes;
  if constexpr (Bytes >= 4) {
    if (PlainAccess p; inside && at.plain(exec, Bytes, p)) {
      for (unsigned l = 0; l < kLanes; ++l)
        if (active(exec, l)) std::memcpy(dma.data[l], p.at(l), Bytes);
      return;
    }
  }
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    if (!inside && static_cast<u64>(dma.base) + l * dma.stride + kLanded > lds_bytes) continue;
    u32 value[4] = {};
    if (!load_lane(w, op, at, l, Bytes, value)) return;
    if (Bytes < 4) value[0] = extend(value[0], op.arg);
    std::memcpy(dma.data[l], value, sizeof(value));
  }
}

// The same operation as buffer, global, flat and scratch instruction.
#define LOADS(name, fn, flags, arg)                                                   \
  {"buffer_load_" name, "t=ars", fn, Unit::kVmem, kLoad | kBuffer | (flags), arg},    \
      {"global_load_" name, "t=ag", fn, Unit::kVmem, kLoad | kGlobal | (flags), arg}, \
      {"flat_load_" name, "t=a", fn, Unit::kVmem, kLoad | kFlat | (flags), arg}, {    \
    "scratch_load_" name, "t=ag", fn, Unit::kVmem, kLoad | kScratch | (flags), arg    \
  }
#define STORES(name, fn, arg)                                                 \
  {"buffer_store_" name, "=tars", fn, Unit::kVmem, kStore | kBuffer, arg},    \
      {"global_store_" name, "=atg", fn, Unit::kVmem, kStore | kGlobal, arg}, \
      {"flat_store_" name, "=at", fn, Unit::kVmem, kStore | kFlat, arg}, {    \
    "scratch_store_" name, "=atg", fn, Unit::kVmem, kStore | kScratch, arg    \
  }
#define LDS_LOADS(name, bytes, arg)                                                                   \
  {"buffer_load_" name, "=ars", &load_to_lds<bytes>, Unit::kVmem, kLoad | kBuffer | kReadsM0, arg}, { \
    "global_load_lds_" name, "=ag", &load_to_lds<bytes>, Unit::kVmem, kLoad | kGlobal | kReadsM0, arg \
  }
#define SCRATCH_LDS_LOAD(name, bytes, arg) \
  {"scratch_load_lds_" name, "=ag", &load_to_lds<bytes>, Unit::kVmem, kLoad | kScratch | kReadsM0, arg}

constexpr OpRow kRows[] = {
    LOADS("dword", &load<1>, 0, 4),
    LOADS("dwordx2", &load<2>, 0, 8),
    LOADS("dwordx3", &load<3>, 0, 12),
    LOADS("dwordx4", &load<4>, 0, 16),
    LOADS("ubyte", &load_small, 0, 1),
    LOADS("sbyte", &load_small, 0, 1 | kSigned),
    LOADS("ushort", &load_small, 0, 2),
    LOADS("sshort", &load_small, 0, 2 | kSigned),
    LOADS("ubyte_d16", &load_small, kPartialWrite, 1 | kD16),
    LOADS("ubyte_d16_hi", &load_small, kPartialWrite, 1 | kD16Hi),
    LOADS("sbyte_d16", &load_small, kPartialWrite, 1 | kD16 | kSigned),
    LOADS("sbyte_d16_hi", &load_small, kPartialWrite, 1 | kD16Hi | kSigned),
    LOADS("short_d16", &load_small, kPartialWrite, 2 | kD16),
    LOADS("short_d16_hi", &load_small, kPartialWrite, 2 | kD16Hi),
    STORES("dword", &store<1>, 4),
    STORES("dwordx2", &store<2>, 8),
    STORES("dwordx3", &store<3>, 12),
    STORES("dwordx4", &store<4>, 16),
    STORES("byte", &store_small, 1),
    STORES("byte_d16_hi", &store_small, 1 | kD16Hi),
    STORES("short", &store_small, 2),
    STORES("short_d16_hi", &store_small, 2 | kD16Hi),
    LDS_LOADS("dword", 4, 4),
    LDS_LOADS("dwordx3", 12, 12),
    LDS_LOADS("dwordx4", 16, 16),
    LDS_LOADS("ubyte", 1, 1),
    LDS_LOADS("sbyte", 1, 1 | kSigned),
    LDS_LOADS("ushort", 2, 2),
    LDS_LOADS("sshort", 2, 2 | kSigned),
    SCRATCH_LDS_LOAD("dword", 4, 4),
    SCRATCH_LDS_LOAD("ubyte", 1, 1),
    SCRATCH_LDS_LOAD("sbyte", 1, 1 | kSigned),
    SCRATCH_LDS_LOAD("ushort", 2, 2),
    SCRATCH_LDS_LOAD("sshort", 2, 2 | kSigned),
};

}  // namespace

RowTable vector_memory_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
