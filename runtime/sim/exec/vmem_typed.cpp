// Typed buffer instructions: buffer_load/store_format_* and tbuffer_load/store_format_* (CDNA4 guide 9.1.3-9.1.5).
//
// tbuffer takes its formats from the instruction, buffer_*_format from the resource, which also selects the source of
// each register there. An element is in or out of range as a whole; out of range reads 0, or 1 where the resource
// selects the constant 1.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/exec/buffer_format.h"
#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// 0 selects zero, 2 and 3 are reserved.
constexpr u32 kSelOne = 1, kSelChannel = 4;  // and the three above

struct Typed {
  BufferFormat format;
  std::array<u8, 4> select{};  // by component of the instruction
  bool unbound = false;
};

// False after a fault.
bool decode(Wave& w, const MicroOp& op, Typed& t) {
  const u32* resource = &w.s[op.src[resource_source(op)].index];
  const u32 word3 = resource[3], components = op.arg & kBytesMask;
  // An invalid format in the resource is an unbound buffer, whatever the instruction says.
  t.unbound = ((word3 >> 15) & 0xf) == 0;
  const bool by_instruction = op.arg & kTypedByInstruction;
  const auto formats = static_cast<u32>(op.imm2);
  for (u32 k = 0; k < components; ++k) {
    t.select[k] = static_cast<u8>(by_instruction ? kSelChannel + k : (word3 >> (3 * k)) & 7);
    if (t.select[k] == 2 || t.select[k] == 3) {
      return raise_fault(w, op, 0,
                         fmt::format("component {} of the buffer resource selects {}; 0, 1 and 4 to 7 are defined", k,
                                     t.select[k])),
             false;
    }
  }
  if (t.unbound) return true;
  std::string reason = by_instruction ? decode_buffer_format(formats & 15, formats >> 4, t.format)
                                      : decode_buffer_format((word3 >> 15) & 15, (word3 >> 12) & 7, t.format);
  if (reason.empty() && (op.arg & (kD16 | kD16Hi)) && t.format.bits[0] == 32 && !t.format.integer() &&
      t.format.number != NumberFormat::kFloat)
    reason = "16-bit forms of 32-bit channels need a number format of uint, sint or float";
  if (!reason.empty()) return raise_fault(w, op, 0, std::move(reason)), false;
  return true;
}

// The value of the constant 1 in a register.
u32 one(const Typed& t) { return t.format.integer() ? 1 : 0x3f800000; }

bool load_element(Wave& w, const MicroOp& op, Locator& at, unsigned l, u32 bytes, u8* element) {
  for (u32 c = 0; c < bytes; c += 4) {
    const u32 n = std::min(4u, bytes - c);
    const Located where = at.locate(l, c, n);
    if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, n, "reads"), false;
    if (where.status == Located::kInside) std::memcpy(element + c, where.host, n);
  }
  return true;
}

// The register values of one lane, 32 bits each.
bool load_components(Wave& w, const MicroOp& op, const Typed& t, Locator& at, unsigned l, u32* value) {
  const u32 components = op.arg & kBytesMask;
  const bool out = t.unbound || at.out_of_range(l, t.format.bytes);
  u8 element[16] = {};
  if (!out && !load_element(w, op, at, l, t.format.bytes, element)) return false;
  for (u32 k = 0; k < components; ++k) {
    const u32 select = t.select[k], c = select - kSelChannel;
    value[k] = 0;
    if (select == kSelOne && !t.unbound) value[k] = one(t);
    if (select < kSelChannel || out || c >= t.format.channels) continue;
    u32 dword;
    std::memcpy(&dword, element + t.format.shift[c] / 32 * 4, 4);
    const u32 bits = t.format.bits[c] == 32 ? ~0u : (1u << t.format.bits[c]) - 1;
    value[k] = channel_to_register(t.format, c, (dword >> (t.format.shift[c] % 32)) & bits);
  }
  return true;
}

void load(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Typed t;
  if (exec == 0 || !decode(w, op, t)) return;
  Locator at(w, op, t.format.bytes);
  const u32 components = op.arg & kBytesMask;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    u32 value[4];
    if (!load_components(w, op, t, at, l, value)) return;
    if (!(op.arg & (kD16 | kD16Hi))) {
      for (u32 k = 0; k < components; ++k) row(w, op.dst, k)[l] = value[k];
      continue;
    }
    for (u32 k = 0; k < components; k += 2) {
      u32& d = row(w, op.dst, k / 2)[l];
      const u32 low = register_to_d16(t.format, value[k]);
      if (k + 1 < components) {
        d = low | (register_to_d16(t.format, value[k + 1]) << 16);
      } else {
        d = op.arg & kD16Hi ? into_high_half(w, d, low) : into_low_half(w, d, low);
      }
    }
  }
}

void load_to_lds(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  LdsDma& dma = push_dma(w);
  dma.mask = exec;
  dma.base = (w.s[kM0] & 0x3ffff) + static_cast<u32>(op.imm);
  dma.stride = dma.bytes = 4;
  Typed t;
  if (exec == 0 || !decode(w, op, t)) return;
  Locator at(w, op, t.format.bytes);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l) || static_cast<u64>(dma.base) + 4 * l + 4 > w.group->lds_bytes) continue;
    u32 value;
    if (!load_components(w, op, t, at, l, &value)) return;
    std::memcpy(dma.data[l], &value, 4);
  }
}

// Writes `n` bytes of an element in range.
bool store_bytes(Wave& w, const MicroOp& op, Locator& at, unsigned l, u32 offset, u32 n, const void* from) {
  const Located where = at.locate(l, offset, n);
  if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, n, "writes"), false;
  if (where.status == Located::kInside) std::memcpy(where.host, from, n);
  return true;
}

// Channels that the instruction supplies no data for keep their memory.
bool store_components(Wave& w, const MicroOp& op, const Typed& t, Locator& at, unsigned l, const u32* value) {
  const u32 components = op.arg & kBytesMask;
  u32 whole = 0, written = 0;
  for (u32 k = 0; k < components; ++k) {
    if (t.select[k] < kSelChannel) continue;
    const u32 c = t.select[k] - kSelChannel;
    if (c >= t.format.channels || ((written >> c) & 1)) continue;
    written |= 1u << c;
    const u32 bits = register_to_channel(t.format, c, value[k]);
    if (t.format.packed) {
      whole |= bits << t.format.shift[c];
    } else if (!store_bytes(w, op, at, l, t.format.shift[c] / 8u, t.format.bits[c] / 8u, &bits)) {
      return false;
    }
  }
  if (!t.format.packed || written == 0) return true;
  if (written != (1u << t.format.channels) - 1) {
    return raise_fault(w, op, l,
                       "stores only some of the channels that share a dword; what becomes of the others is "
                       "not documented"),
           false;
  }
  return store_bytes(w, op, at, l, 0, 4, &whole);
}

void store(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Typed t;
  if (exec == 0 || !decode(w, op, t) || t.unbound) return;
  Locator at(w, op, t.format.bytes);
  const u32 components = op.arg & kBytesMask;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l) || at.out_of_range(l, t.format.bytes)) continue;
    u32 value[4];
    for (u32 k = 0; k < components; ++k) {
      if (op.arg & (kD16 | kD16Hi)) {
        const u32 pair = row(w, op.src[0], k / 2)[l];
        value[k] = d16_to_register(t.format, (k & 1) || (op.arg & kD16Hi) ? pair >> 16 : pair);
      } else {
        value[k] = row(w, op.src[0], k)[l];
      }
    }
    if (!store_components(w, op, t, at, l, value)) return;
  }
}

#define TYPED(prefix, from)                                                                                             \
  {prefix "_load_format_x", "t=ars", &load, Unit::kVmem, kLoad | kBuffer, 1 | (from)},                                  \
      {prefix "_load_format_xy", "t=ars", &load, Unit::kVmem, kLoad | kBuffer, 2 | (from)},                             \
      {prefix "_load_format_xyz", "t=ars", &load, Unit::kVmem, kLoad | kBuffer, 3 | (from)},                            \
      {prefix "_load_format_xyzw", "t=ars", &load, Unit::kVmem, kLoad | kBuffer, 4 | (from)},                           \
      {prefix "_load_format_d16_x", "t=ars", &load, Unit::kVmem, kLoad | kBuffer | kPartialWrite, 1 | kD16 | (from)},   \
      {prefix "_load_format_d16_xy", "t=ars", &load, Unit::kVmem, kLoad | kBuffer, 2 | kD16 | (from)},                  \
      {prefix "_load_format_d16_xyz", "t=ars", &load, Unit::kVmem, kLoad | kBuffer | kPartialWrite, 3 | kD16 | (from)}, \
      {prefix "_load_format_d16_xyzw", "t=ars", &load, Unit::kVmem, kLoad | kBuffer, 4 | kD16 | (from)},                \
      {prefix "_store_format_x", "=tars", &store, Unit::kVmem, kStore | kBuffer, 1 | (from)},                           \
      {prefix "_store_format_xy", "=tars", &store, Unit::kVmem, kStore | kBuffer, 2 | (from)},                          \
      {prefix "_store_format_xyz", "=tars", &store, Unit::kVmem, kStore | kBuffer, 3 | (from)},                         \
      {prefix "_store_format_xyzw", "=tars", &store, Unit::kVmem, kStore | kBuffer, 4 | (from)},                        \
      {prefix "_store_format_d16_x", "=tars", &store, Unit::kVmem, kStore | kBuffer, 1 | kD16 | (from)},                \
      {prefix "_store_format_d16_xy", "=tars", &store, Unit::kVmem, kStore | kBuffer, 2 | kD16 | (from)},               \
      {prefix "_store_format_d16_xyz", "=tars", &store, Unit::kVmem, kStore | kBuffer, 3 | kD16 | (from)}, {            \
    prefix "_store_format_d16_xyzw", "=tars", &store, Unit::kVmem, kStore | kBuffer, 4 | kD16 | (from)                  \
  }

constexpr OpRow kRows[] = {
    TYPED("buffer", kTyped),
    TYPED("tbuffer", kTyped | kTypedByInstruction),
    {"buffer_load_format_d16_hi_x", "t=ars", &load, Unit::kVmem, kLoad | kBuffer | kPartialWrite, 1 | kD16Hi | kTyped},
    {"buffer_store_format_d16_hi_x", "=tars", &store, Unit::kVmem, kStore | kBuffer, 1 | kD16Hi | kTyped},
    {"buffer_load_format_x", "=ars", &load_to_lds, Unit::kVmem, kLoad | kBuffer | kReadsM0, 1 | kTyped},
};

}  // namespace

RowTable typed_buffer_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
