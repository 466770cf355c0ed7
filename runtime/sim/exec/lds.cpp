// LDS reads and writes: plain, sub-dword, read2/write2, addressed by lane, transposed (gfx950-isa.md 3.3, 3.4).
#include "runtime/sim/exec/lds_access.h"
#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {

__attribute__((noinline)) void load_clipped(const Group& g, std::uint32_t address, std::uint32_t bytes, void* to) {
  auto* out = static_cast<std::uint8_t*>(to);
  for (std::uint32_t i = 0; i < bytes; ++i)
    out[i] = static_cast<std::uint64_t>(address) + i < g.lds_bytes ? g.lds[address + i] : 0;
}
__attribute__((noinline)) void store_clipped(Group& g, std::uint32_t address, std::uint32_t bytes, const void* from) {
  const auto* in = static_cast<const std::uint8_t*>(from);
  for (std::uint32_t i = 0; i < bytes; ++i)
    if (static_cast<std::uint64_t>(address) + i < g.lds_bytes) g.lds[address + i] = in[i];
}

// CDNA4 guide, DS_READ_ADDTID_B32: 16 bits of M0.
void lds_addresses(const Wave& w, const MicroOp& op, std::uint32_t* address) {
  if (op.flags & kReadsM0) {
    for (unsigned l = 0; l < kLanes; ++l) address[l] = (w.s[kM0] & 0xffff) + 4 * l;
  } else if (op.sources == 0) {
    std::memset(address, 0, kLanes * sizeof(std::uint32_t));
  } else {
    std::memcpy(address, w.v[op.src[0].index].lane, kLanes * sizeof(std::uint32_t));
  }
}

namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

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
    load_lds(g, a[l] + static_cast<u32>(op.imm), 4 * Dwords, value);
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
    load_lds(*w.group, a[l] + static_cast<u32>(op.imm), bytes, &value);
    if (op.arg & kSigned) {
      value = bytes == 1 ? static_cast<u32>(static_cast<i32>(static_cast<std::int8_t>(value)))
                         : static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(value)));
    }
    if (op.arg & kD16) value = into_low_half(w, d[l], value);
    if (op.arg & kD16Hi) value = into_high_half(w, d[l], value);
    d[l] = value;
  }
}

template <u32 Dwords>
void write(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  Group& g = *w.group;
  const u32* d[Dwords];
  for (u32 k = 0; k < Dwords; ++k) d[k] = row(w, op.src[1], k);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[Dwords];
    for (u32 k = 0; k < Dwords; ++k) value[k] = d[k][l];
    store_lds(g, a[l] + static_cast<u32>(op.imm), 4 * Dwords, value);
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
    store_lds(*w.group, a[l] + static_cast<u32>(op.imm), op.arg & 0xf, &value);
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
    load_lds(*w.group, base + static_cast<u32>(op.imm) * op.arg, 4 * Dwords, value);
    load_lds(*w.group, base + static_cast<u32>(op.imm2) * op.arg, 4 * Dwords, value + Dwords);
    for (u32 k = 0; k < 2 * Dwords; ++k) row(w, op.dst, k)[l] = value[k];
  }
}
// Two equal offsets mean one write, of the first data (CDNA4 guide 11.3.1).
template <u32 Dwords>
void write2(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const u32* a = row(w, op.src[0]);
  const u32 writes = op.imm == op.imm2 ? 1 : 2;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    for (u32 h = 0; h < writes; ++h) {
      u32 value[Dwords];
      for (u32 k = 0; k < Dwords; ++k) value[k] = row(w, op.src[1 + h], k)[l];
      store_lds(*w.group, a[l] + static_cast<u32>(h ? op.imm2 : op.imm) * op.arg, 4 * Dwords, value);
    }
  }
}

void read_by_lane(Wave& w, const MicroOp& op) {
  u32 address[kLanes];
  lds_addresses(w, op, address);
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(w.exec(), l)) load_lds(*w.group, address[l] + static_cast<u32>(op.imm), 4, row(w, op.dst) + l);
}
void write_by_lane(Wave& w, const MicroOp& op) {
  u32 address[kLanes];
  lds_addresses(w, op, address);
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(w.exec(), l)) store_lds(*w.group, address[l] + static_cast<u32>(op.imm), 4, row(w, op.src[0]) + l);
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
      if (active(exec, g + l)) load_lds(*w.group, a[g + l] + static_cast<u32>(op.imm), kBytes, matrix + l * kBytes);
    u32 out[kDwords + 1][16] = {};
    if constexpr (32 % Bits == 0) {
      constexpr u32 kPerDword = 32 / Bits;
      for (u32 k = 0; k < kDwords; ++k) {
        for (u32 i = 0; i < kPerDword; ++i)
          for (u32 l = 0; l < 16; ++l) out[k][l] |= element<Bits>(matrix, 16 * (kPerDword * k + i) + l) << (Bits * i);
      }
    } else {
      for (u32 n = 0; n < kItems; ++n) {
        const u32 word = n * Bits / 32, shift = n * Bits % 32;
        for (u32 l = 0; l < 16; ++l) {
          const u32 value = element<Bits>(matrix, 16 * n + l);
          out[word][l] |= value << shift;
          if (shift + Bits > 32) out[word + 1][l] |= value >> (32 - shift);
        }
      }
    }
    for (u32 k = 0; k < kDwords; ++k) {
      u32* d = row(w, op.dst, k) + g;
      for (unsigned l = 0; l < 16; ++l)
        if (active(exec, g + l)) d[l] = out[k][l];
    }
  }
}
void nothing(Wave&, const MicroOp&) {}

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
    {"ds_read_addtid_b32", "t=", &read_by_lane, Unit::kLds, kLoad | kReadsM0, 4},
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
    {"ds_write_addtid_b32", "=t", &write_by_lane, Unit::kLds, kStore | kReadsM0, 4},
    {"ds_nop", "=", &nothing, Unit::kLds, 0, 0},
};

}  // namespace

RowTable lds_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
