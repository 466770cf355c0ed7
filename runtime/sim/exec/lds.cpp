// LDS instructions: reads, writes, read2/write2, transposed reads, atomics, lane permutes (gfx950-isa.md 3.3, 3.4).
// Out-of-range reads give 0 and writes are dropped, byte by byte.
#include <cstring>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

bool inside(const Group& g, u32 address, u32 bytes) { return address <= g.lds_bytes && bytes <= g.lds_bytes - address; }

__attribute__((noinline)) void load_clipped(const Group& g, u32 address, u32 bytes, void* to) {
  auto* out = static_cast<u8*>(to);
  for (u32 i = 0; i < bytes; ++i) out[i] = static_cast<u64>(address) + i < g.lds_bytes ? g.lds[address + i] : 0;
}
void load_bytes(const Group& g, u32 address, u32 bytes, void* to) {
  if (inside(g, address, bytes)) {
    std::memcpy(to, g.lds + address, bytes);
  } else {
    load_clipped(g, address, bytes, to);
  }
}
__attribute__((noinline)) void store_clipped(Group& g, u32 address, u32 bytes, const void* from) {
  const auto* in = static_cast<const u8*>(from);
  for (u32 i = 0; i < bytes; ++i) {
    if (static_cast<u64>(address) + i < g.lds_bytes) g.lds[address + i] = in[i];
  }
}
void store_bytes(Group& g, u32 address, u32 bytes, const void* from) {
  if (inside(g, address, bytes)) {
    std::memcpy(g.lds + address, from, bytes);
  } else {
    store_clipped(g, address, bytes, from);
  }
}

template <u32 Dwords>
void read(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  const Group& g = *w.group;
  u32* d[Dwords];
  for (u32 k = 0; k < Dwords; ++k) d[k] = row(w, op.dst, k);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[Dwords];
    load_bytes(g, a[l] + static_cast<u32>(op.imm), 4 * Dwords, value);
    for (u32 k = 0; k < Dwords; ++k) d[k][l] = value[k];
  }
}

// Sub-dword reads; arg: bytes | sign << 4 | half << 5 (1 low kept high, 2 high kept low).
enum : u32 { kSigned = 0x10, kD16 = 0x20, kD16Hi = 0x40 };
void read_small(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  const u32 bytes = op.arg & 0xf;
  u32* d = row(w, op.dst);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value = 0;
    load_bytes(*w.group, a[l] + static_cast<u32>(op.imm), bytes, &value);
    if (op.arg & kSigned) {
      value = bytes == 1 ? static_cast<u32>(static_cast<i32>(static_cast<std::int8_t>(value)))
                         : static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(value)));
    }
    if (op.arg & kD16) value = (d[l] & 0xffff0000u) | (value & 0xffff);
    if (op.arg & kD16Hi) value = (d[l] & 0xffff) | (value << 16);
    d[l] = value;
  }
}

template <u32 Dwords>
void write(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[Dwords];
    for (u32 k = 0; k < Dwords; ++k) value[k] = row(w, op.src[1], k)[l];
    store_bytes(*w.group, a[l] + static_cast<u32>(op.imm), 4 * Dwords, value);
  }
}
// arg: bytes, kD16Hi when the data is in the upper half.
void write_small(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  const u32* data = row(w, op.src[1]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u32 value = op.arg & kD16Hi ? data[l] >> 16 : data[l];
    store_bytes(*w.group, a[l] + static_cast<u32>(op.imm), op.arg & 0xf, &value);
  }
}

// Offsets of read2/write2 count elements; the st64 forms count 64 elements. arg: stride in bytes.
template <u32 Dwords>
void read2(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[2 * Dwords];
    const u32 base = a[l];
    load_bytes(*w.group, base + static_cast<u32>(op.imm) * op.arg, 4 * Dwords, value);
    load_bytes(*w.group, base + static_cast<u32>(op.imm2) * op.arg, 4 * Dwords, value + Dwords);
    for (u32 k = 0; k < 2 * Dwords; ++k) row(w, op.dst, k)[l] = value[k];
  }
}
template <u32 Dwords>
void write2(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    for (u32 h = 0; h < 2; ++h) {
      u32 value[Dwords];
      for (u32 k = 0; k < Dwords; ++k) value[k] = row(w, op.src[1 + h], k)[l];
      store_bytes(*w.group, a[l] + static_cast<u32>(h ? op.imm2 : op.imm) * op.arg, 4 * Dwords, value);
    }
  }
}

// Transposed reads: inside each group of 16 lanes the loaded bits are a row-major matrix of 16 columns of `Bits`-bit
// elements; lane j receives column j, top to bottom (gfx950-isa.md 3.4).
template <u32 Bits>
u32 element(const u8* matrix, u32 number) {
  if constexpr (Bits == 16)
    return static_cast<u32>(matrix[2 * number]) | (static_cast<u32>(matrix[2 * number + 1]) << 8);
  if constexpr (Bits == 8) return matrix[number];
  const u32 bit = number * Bits;
  const u32 two = static_cast<u32>(matrix[bit / 8]) | (static_cast<u32>(matrix[bit / 8 + 1]) << 8);
  return (two >> (bit % 8)) & ((1u << Bits) - 1);
}
template <u32 Bits>
void read_transposed(Wave& w, const MicroOp& op) {
  constexpr u32 kBytes = Bits == 6 ? 12 : 8, kItems = kBytes * 8 / Bits, kDwords = kBytes / 4;
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  for (unsigned g = 0; g < kLanes; g += 16) {
    alignas(16) u8 matrix[16 * kBytes + 1] = {};
    for (unsigned l = 0; l < 16; ++l)
      if (active(exec, g + l)) load_bytes(*w.group, a[g + l] + static_cast<u32>(op.imm), kBytes, matrix + l * kBytes);
    u32 out[kDwords + 1][16] = {};
    for (u32 n = 0; n < kItems; ++n) {
      const u32 word = n * Bits / 32, shift = n * Bits % 32;
      for (u32 l = 0; l < 16; ++l) {
        const u32 value = element<Bits>(matrix, 16 * n + l);
        out[word][l] |= value << shift;
        if (shift + Bits > 32) out[word + 1][l] |= value >> (32 - shift);
      }
    }
    for (u32 k = 0; k < kDwords; ++k) {
      for (unsigned l = 0; l < 16; ++l)
        if (active(exec, g + l)) row(w, op.dst, k)[g + l] = out[k][l];
    }
  }
}

// Lanes in ascending order; the old value is returned when the row has a destination. Out of range: 0 and no effect.
template <typename T, auto F>
void atomic(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u32 address = row(w, op.src[0])[l] + static_cast<u32>(op.imm);
    u64 old = 0, data = row(w, op.src[1])[l], second = 0;
    if (sizeof(T) == 8) data |= static_cast<u64>(row(w, op.src[1], 1)[l]) << 32;
    if (op.sources > 2) {
      second = row(w, op.src[2])[l];
      if (sizeof(T) == 8) second |= static_cast<u64>(row(w, op.src[2], 1)[l]) << 32;
    }
    if (inside(*w.group, address, sizeof(T))) {
      load_bytes(*w.group, address, sizeof(T), &old);
      const u64 next = raw_of(static_cast<T>(F(as<T>(old), as<T>(data), as<T>(second))));
      store_bytes(*w.group, address, sizeof(T), &next);
    }
    if (op.dst.kind != OperandKind::kNone) {
      row(w, op.dst)[l] = static_cast<u32>(old);
      if (sizeof(T) == 8) row(w, op.dst, 1)[l] = static_cast<u32>(old >> 32);
    }
  }
}

// Lane = (address + offset) / 4 modulo 64. bpermute reads from it (0 when that lane is inactive), permute writes to it.
void bpermute(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  u32 out[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    const unsigned from = ((row(w, op.src[0])[l] + static_cast<u32>(op.imm)) >> 2) & 63;
    out[l] = active(exec, from) ? row(w, op.src[1])[from] : 0;
  }
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(exec, l)) row(w, op.dst)[l] = out[l];
}
void permute(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  u32 out[kLanes] = {};
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(exec, l)) out[((row(w, op.src[0])[l] + static_cast<u32>(op.imm)) >> 2) & 63] = row(w, op.src[1])[l];
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(exec, l)) row(w, op.dst)[l] = out[l];
}
// imm: the 16-bit pattern. Bit 15 set: quad permutation, else 32-lane and/or/xor masks.
void swizzle(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32 pattern = static_cast<u32>(op.imm);
  u32 out[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    unsigned from;
    if (pattern & 0x8000) {
      from = (l & ~3u) | ((pattern >> (2 * (l & 3))) & 3);
    } else {
      from = (l & ~31u) | ((((l & 31) & (pattern & 31)) | ((pattern >> 5) & 31)) ^ ((pattern >> 10) & 31));
    }
    out[l] = active(exec, from) ? row(w, op.src[0])[from] : 0;
  }
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(exec, l)) row(w, op.dst)[l] = out[l];
}
void nothing(Wave&, const MicroOp&) {}

constexpr auto kRsub = [](auto a, auto b, auto) { return b - a; };
// ds_cmpst: the first data operand is compared, the second stored.
constexpr auto kCompareStore = [](auto a, auto b, auto c) { return a == b ? c : a; };

#define ATOMIC(stem, rtn, T, bytes, F, data)                                            \
  {"ds_" stem, "=a" data, (&atomic<T, F>), Unit::kLds, kAtomic | kStore, bytes}, {      \
    "ds_" rtn, "t=a" data, (&atomic<T, F>), Unit::kLds, kAtomic | kStore | kLoad, bytes \
  }
#define INTEGER_ATOMICS(u, s, b, U, S, bytes)                                                                      \
  ATOMIC("add_" u, "add_rtn_" u, U, bytes, kAdd, "t"), ATOMIC("sub_" u, "sub_rtn_" u, U, bytes, kSub, "t"),        \
      ATOMIC("rsub_" u, "rsub_rtn_" u, U, bytes, kRsub, "t"), ATOMIC("inc_" u, "inc_rtn_" u, U, bytes, kInc, "t"), \
      ATOMIC("dec_" u, "dec_rtn_" u, U, bytes, kDec, "t"), ATOMIC("min_" s, "min_rtn_" s, S, bytes, kMin, "t"),    \
      ATOMIC("max_" s, "max_rtn_" s, S, bytes, kMax, "t"), ATOMIC("min_" u, "min_rtn_" u, U, bytes, kMin, "t"),    \
      ATOMIC("max_" u, "max_rtn_" u, U, bytes, kMax, "t"), ATOMIC("and_" b, "and_rtn_" b, U, bytes, kAnd, "t"),    \
      ATOMIC("or_" b, "or_rtn_" b, U, bytes, kOr, "t"), ATOMIC("xor_" b, "xor_rtn_" b, U, bytes, kXor, "t"),       \
      ATOMIC("cmpst_" b, "cmpst_rtn_" b, U, bytes, kCompareStore, "tt"), {                                         \
    "ds_wrxchg_rtn_" b, "t=at", (&atomic<U, kExchange>), Unit::kLds, kAtomic | kStore | kLoad, bytes               \
  }

constexpr OpRow kRows[] = {
    {"ds_read_b32", "t=a", &read<1>, Unit::kLds, kLoad, 4},
    {"ds_read_b64", "t=a", &read<2>, Unit::kLds, kLoad, 8},
    {"ds_read_b96", "t=a", &read<3>, Unit::kLds, kLoad, 12},
    {"ds_read_b128", "t=a", &read<4>, Unit::kLds, kLoad, 16},
    {"ds_read_u8", "t=a", &read_small, Unit::kLds, kLoad, 1},
    {"ds_read_i8", "t=a", &read_small, Unit::kLds, kLoad, 1 | kSigned},
    {"ds_read_u16", "t=a", &read_small, Unit::kLds, kLoad, 2},
    {"ds_read_i16", "t=a", &read_small, Unit::kLds, kLoad, 2 | kSigned},
    {"ds_read_u8_d16", "t=a", &read_small, Unit::kLds, kLoad | kPartialWrite, 1 | kD16},
    {"ds_read_i8_d16", "t=a", &read_small, Unit::kLds, kLoad | kPartialWrite, 1 | kD16 | kSigned},
    {"ds_read_u16_d16", "t=a", &read_small, Unit::kLds, kLoad | kPartialWrite, 2 | kD16},
    {"ds_read_u8_d16_hi", "t=a", &read_small, Unit::kLds, kLoad | kPartialWrite, 1 | kD16Hi},
    {"ds_read_i8_d16_hi", "t=a", &read_small, Unit::kLds, kLoad | kPartialWrite, 1 | kD16Hi | kSigned},
    {"ds_read_u16_d16_hi", "t=a", &read_small, Unit::kLds, kLoad | kPartialWrite, 2 | kD16Hi},
    {"ds_read2_b32", "t=a", &read2<1>, Unit::kLds, kLoad, 4},
    {"ds_read2_b64", "t=a", &read2<2>, Unit::kLds, kLoad, 8},
    {"ds_read2st64_b32", "t=a", &read2<1>, Unit::kLds, kLoad, 256},
    {"ds_read2st64_b64", "t=a", &read2<2>, Unit::kLds, kLoad, 512},
    {"ds_read_b64_tr_b16", "t=a", &read_transposed<16>, Unit::kLds, kLoad | kAllLanesNeeded, 8},
    {"ds_read_b64_tr_b8", "t=a", &read_transposed<8>, Unit::kLds, kLoad | kAllLanesNeeded, 8},
    {"ds_read_b64_tr_b4", "t=a", &read_transposed<4>, Unit::kLds, kLoad | kAllLanesNeeded, 8},
    {"ds_read_b96_tr_b6", "t=a", &read_transposed<6>, Unit::kLds, kLoad | kAllLanesNeeded, 12},
    {"ds_write_b32", "=at", &write<1>, Unit::kLds, kStore, 4},
    {"ds_write_b64", "=at", &write<2>, Unit::kLds, kStore, 8},
    {"ds_write_b96", "=at", &write<3>, Unit::kLds, kStore, 12},
    {"ds_write_b128", "=at", &write<4>, Unit::kLds, kStore, 16},
    {"ds_write_b8", "=at", &write_small, Unit::kLds, kStore, 1},
    {"ds_write_b16", "=at", &write_small, Unit::kLds, kStore, 2},
    {"ds_write_b8_d16_hi", "=at", &write_small, Unit::kLds, kStore, 1 | kD16Hi},
    {"ds_write_b16_d16_hi", "=at", &write_small, Unit::kLds, kStore, 2 | kD16Hi},
    {"ds_write2_b32", "=att", &write2<1>, Unit::kLds, kStore, 4},
    {"ds_write2_b64", "=att", &write2<2>, Unit::kLds, kStore, 8},
    {"ds_write2st64_b32", "=att", &write2<1>, Unit::kLds, kStore, 256},
    {"ds_write2st64_b64", "=att", &write2<2>, Unit::kLds, kStore, 512},
    {"ds_bpermute_b32", "t=tt", &bpermute, Unit::kLds, kLoad, 0},
    {"ds_permute_b32", "t=tt", &permute, Unit::kLds, kLoad, 0},
    {"ds_swizzle_b32", "t=t", &swizzle, Unit::kLds, kLoad, 0},
    {"ds_nop", "=", &nothing, Unit::kLds, 0, 0},
    INTEGER_ATOMICS("u32", "i32", "b32", u32, i32, 4),
    INTEGER_ATOMICS("u64", "i64", "b64", u64, i64, 8),
    ATOMIC("add_f32", "add_rtn_f32", float, 4, kAdd, "t"),
    ATOMIC("min_f32", "min_rtn_f32", float, 4, kMin, "t"),
    ATOMIC("max_f32", "max_rtn_f32", float, 4, kMax, "t"),
    ATOMIC("add_f64", "add_rtn_f64", double, 8, kAdd, "t"),
};

}  // namespace

RowTable lds_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
