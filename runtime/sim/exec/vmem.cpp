// Vector memory: buffer, global, flat and scratch loads, stores, atomics and direct-to-LDS loads
// (gfx950-isa.md 3.1, 3.2).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

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
using i64 = std::int64_t;

// arg: bytes of an access and how a part of a register is filled.
enum : u32 { kBytesMask = 0x1f, kSigned = 0x20, kD16 = 0x40, kD16Hi = 0x80 };

u32 extend(u32 value, u32 arg) {
  const u32 bytes = arg & kBytesMask;
  if (!(arg & kSigned)) return value;
  return bytes == 1 ? static_cast<u32>(static_cast<i32>(static_cast<std::int8_t>(value)))
                    : static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(value)));
}

// Reads `bytes` of lane `l`, component by component where a descriptor clips. False after a fault.
bool load_lane(Wave& w, const MicroOp& op, Locator& at, unsigned l, u32 bytes, void* to) {
  Located where = at.locate(l, 0, bytes);
  if (where.status == Located::kInside) {
    std::memcpy(to, where.host, bytes);
    return true;
  }
  if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, bytes, "reads"), false;
  auto* out = static_cast<u8*>(to);
  for (u32 c = 0; c < bytes; c += 4) {
    const u32 n = std::min(4u, bytes - c);
    where = at.locate(l, c, n);
    if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, n, "reads"), false;
    if (where.status == Located::kInside) {
      std::memcpy(out + c, where.host, n);
    } else {
      std::memset(out + c, 0, n);
    }
  }
  return true;
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
  Locator at(w, op);
  u32* d[Dwords];
  for (u32 k = 0; k < Dwords; ++k) d[k] = row(w, op.dst, k);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[Dwords];
    if (!load_lane(w, op, at, l, 4 * Dwords, value)) return;
    for (u32 k = 0; k < Dwords; ++k) d[k][l] = value[k];
  }
}
void load_small(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op);
  u32* d = row(w, op.dst);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value = 0;
    if (!load_lane(w, op, at, l, op.arg & kBytesMask, &value)) return;
    value = extend(value, op.arg);
    if (op.arg & kD16) value = (d[l] & 0xffff0000u) | (value & 0xffff);
    if (op.arg & kD16Hi) value = (d[l] & 0xffff) | (value << 16);
    d[l] = value;
  }
}
template <u32 Dwords>
void store(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op);
  const Operand& data = op.src[data_source(op)];
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[Dwords];
    for (u32 k = 0; k < Dwords; ++k) value[k] = row(w, data, k)[l];
    if (!store_lane(w, op, at, l, 4 * Dwords, value)) return;
  }
}
void store_small(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op);
  const u32* data = row(w, op.src[data_source(op)]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u32 value = op.arg & kD16Hi ? data[l] >> 16 : data[l];
    if (!store_lane(w, op, at, l, op.arg & kBytesMask, &value)) return;
  }
}

// LDS address = M0 + instruction offset + lane * 4 (16 for x3 and x4); the data lands when the wave waits for it.
void load_to_lds(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op);
  const u32 bytes = op.arg & kBytesMask;
  LdsDma& dma = push_dma(w);
  dma.mask = exec;
  dma.base = (w.s[kM0] & 0x3ffff) + static_cast<u32>(op.imm);
  dma.stride = bytes > 4 ? 16 : 4;
  dma.bytes = bytes < 4 ? 4 : bytes;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[4] = {};
    if (!load_lane(w, op, at, l, bytes, value)) return;
    if (bytes < 4) value[0] = extend(value[0], op.arg);
    std::memcpy(dma.data[l], value, sizeof(value));
  }
}

// One atomic at a time over all simulator threads.
std::mutex atomic_mutex;

// Lanes in ascending order. Clipped lanes do nothing and return 0.
template <typename T, auto F>
void atomic(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op);
  const Operand& data = op.src[data_source(op)];
  const bool wide = sizeof(T) == 8;
  const std::lock_guard lock(atomic_mutex);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u64 value = row(w, data)[l], compare = 0, old = 0;
    if (wide) value |= static_cast<u64>(row(w, data, 1)[l]) << 32;
    // Compare-and-swap: data first, then the value to compare with.
    if (data.count == (wide ? 4 : 2)) {
      compare = row(w, data, wide ? 2 : 1)[l];
      if (wide) compare |= static_cast<u64>(row(w, data, 3)[l]) << 32;
    }
    const Located where = at.locate(l, 0, sizeof(T));
    if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, sizeof(T), "updates");
    if (where.status == Located::kInside) {
      std::memcpy(&old, where.host, sizeof(T));
      const u64 next = raw_of(static_cast<T>(F(as<T>(old), as<T>(value), as<T>(compare))));
      std::memcpy(where.host, &next, sizeof(T));
    }
    if (op.returns) {
      row(w, op.dst)[l] = static_cast<u32>(old);
      if (wide) row(w, op.dst, 1)[l] = static_cast<u32>(old >> 32);
    }
  }
}

constexpr auto kCompareSwap = [](auto a, auto b, auto c) { return a == c ? b : a; };

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
#define LDS_LOADS(name, arg)                                                                   \
  {"buffer_load_" name, "=ars", &load_to_lds, Unit::kVmem, kLoad | kBuffer | kReadsM0, arg}, { \
    "global_load_lds_" name, "=ag", &load_to_lds, Unit::kVmem, kLoad | kGlobal | kReadsM0, arg \
  }
#define ATOMIC(name, T, F, bytes)                                                                        \
  {"buffer_atomic_" name, "=tars", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kBuffer, bytes},     \
      {"global_atomic_" name, "=atg", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kGlobal, bytes},  \
      {"global_atomic_" name, "t=atg", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kGlobal, bytes}, \
      {"flat_atomic_" name, "=at", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kFlat, bytes}, {     \
    "flat_atomic_" name, "t=at", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kFlat, bytes           \
  }
#define INTEGER_ATOMICS(suffix, U, S, bytes)                                                                          \
  ATOMIC("swap" suffix, U, kExchange, bytes), ATOMIC("cmpswap" suffix, U, kCompareSwap, bytes),                       \
      ATOMIC("add" suffix, U, kAdd, bytes), ATOMIC("sub" suffix, U, kSub, bytes),                                     \
      ATOMIC("smin" suffix, S, kMin, bytes), ATOMIC("umin" suffix, U, kMin, bytes),                                   \
      ATOMIC("smax" suffix, S, kMax, bytes), ATOMIC("umax" suffix, U, kMax, bytes),                                   \
      ATOMIC("and" suffix, U, kAnd, bytes), ATOMIC("or" suffix, U, kOr, bytes), ATOMIC("xor" suffix, U, kXor, bytes), \
      ATOMIC("inc" suffix, U, kInc, bytes), ATOMIC("dec" suffix, U, kDec, bytes)

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
    LDS_LOADS("dword", 4),
    LDS_LOADS("dwordx3", 12),
    LDS_LOADS("dwordx4", 16),
    LDS_LOADS("ubyte", 1),
    LDS_LOADS("sbyte", 1 | kSigned),
    LDS_LOADS("ushort", 2),
    LDS_LOADS("sshort", 2 | kSigned),
    INTEGER_ATOMICS("", u32, i32, 4),
    INTEGER_ATOMICS("_x2", u64, i64, 8),
    ATOMIC("add_f32", float, kAdd, 4),
    ATOMIC("add_f64", double, kAdd, 8),
    ATOMIC("min_f64", double, kMin, 8),
    ATOMIC("max_f64", double, kMax, 8),
};

}  // namespace

RowTable vector_memory_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
