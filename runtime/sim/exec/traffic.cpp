// Bytes by instruction: see traffic.h.
#include "runtime/sim/exec/traffic.h"

#include <bit>

#include "runtime/sim/exec/buffer_format.h"
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Bytes of an element of a typed access; 0 for an unbound buffer or an unknown format.
u32 element_bytes(const Wave& w, const MicroOp& op) {
  const u32 word3 = w.s[op.src[resource_source(op)].index + 3u], data_format = (word3 >> 15) & 15;
  const auto formats = static_cast<u32>(op.imm2);
  BufferFormat f;
  const bool by_instruction = op.arg & kTypedByInstruction;
  const bool known = (by_instruction ? decode_buffer_format(formats & 15, formats >> 4, f)
                                     : decode_buffer_format(data_format, (word3 >> 12) & 7, f))
                         .empty();
  return known && data_format != 0 ? f.bytes : 0;
}

void lds_traffic(const Wave& w, const MicroOp& op, MemoryTraffic& t) {
  const LdsShape shape = lds_shape_of(op);
  if (shape.elements == 0) return;
  const u64 lanes = static_cast<u64>(std::popcount(w.exec()));
  const u64 elements = shape.elements == 2 && op.imm == op.imm2 ? 1 : shape.elements;
  if (op.flags & kAtomic) {
    // Append and consume are one operation of the wave.
    t.atomics = elements * (op.sources == 0 ? lanes != 0 : lanes);
  } else {
    (op.flags & kStore ? t.lds_written : t.lds_read) = lanes * elements * shape.bytes;
  }
}

// Active lanes of a FLAT access by the memory they reach.
struct FlatLanes {
  u64 lds = 0, scratch = 0, global = 0;
};
FlatLanes flat_lanes(const Wave& w, const MicroOp& op) {
  FlatLanes n;
  const Operand& a = op.src[0];
  const u32 *low = w.v[a.index].lane, *high = w.v[a.index + 1].lane;
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    const u64 at = (low[l] | (static_cast<u64>(high[l]) << 32)) + static_cast<u32>(op.imm);
    const auto top = static_cast<u32>(at >> 32);
    ++(top == kSharedHigh ? n.lds : top == kPrivateHigh ? n.scratch : n.global);
  }
  return n;
}

void vector_traffic(const Wave& w, const MicroOp& op, MemoryTraffic& t) {
  if (!(op.flags & (kLoad | kStore))) return;  // cache maintenance
  const u64 lanes = static_cast<u64>(std::popcount(w.exec()));
  if (op.flags & kAtomic) {
    t.atomics = lanes;
    return;
  }
  const u64 bytes = op.arg & kTyped ? element_bytes(w, op) : op.arg & kBytesMask;
  if (op.flags & kFlat) {
    const FlatLanes n = flat_lanes(w, op);
    const bool store = op.flags & kStore;
    (store ? t.lds_written : t.lds_read) = n.lds * bytes;
    (store ? t.scratch_written : t.scratch_read) = n.scratch * bytes;
    (store ? t.global_written : t.global_read) = n.global * bytes;
    return;
  }
  if (op.flags & kStore) {
    (op.flags & kScratch ? t.scratch_written : t.global_written) = lanes * bytes;
    return;
  }
  (op.flags & kScratch ? t.scratch_read : t.global_read) = lanes * bytes;
  if (op.lds) t.lds_dma = lanes * (op.arg & kTyped || bytes < 4 ? 4 : bytes);
}

}  // namespace

MemoryTraffic& MemoryTraffic::operator+=(const MemoryTraffic& t) {
  lds_read += t.lds_read;
  lds_written += t.lds_written;
  global_read += t.global_read;
  global_written += t.global_written;
  lds_dma += t.lds_dma;
  scalar_read += t.scalar_read;
  scratch_read += t.scratch_read;
  scratch_written += t.scratch_written;
  atomics += t.atomics;
  return *this;
}

LdsShape lds_shape_of(const MicroOp& op) {
  LdsShape s;
  if (op.unit != Unit::kLds || op.arg == 0) return s;  // arg 0: permutes, swizzle, nop
  // arg: the bytes of an element with flags above them; two-address forms have their offsets' scale there instead,
  // which is never the size of what they return.
  const bool atomic = op.flags & kAtomic, read = !(op.flags & kStore), returns = op.dst.kind != OperandKind::kNone;
  const u32 small = op.arg & 0xf;
  const unsigned data = op.flags & kReadsM0 ? 0 : 1;  // first source behind the address
  if (small == 1 || small == 2) {
    s.elements = 1;
    s.bytes = static_cast<u8>(small);
  } else if (returns) {
    s.elements = op.arg == 4u * op.dst.count ? 1 : 2;
    s.bytes = static_cast<u8>(4 * op.dst.count / s.elements);
  } else {
    s.elements = atomic || op.sources != 3 ? 1 : 2;
    s.bytes = static_cast<u8>(4 * op.src[data].count);
  }
  const bool two = s.elements == 2;
  if (atomic) {
    s.kind = LdsAccessKind::kAtomic;
  } else if (!read) {
    s.kind = two ? LdsAccessKind::kWrite2 : LdsAccessKind::kWrite;
  } else if (op.flags & kAllLanesNeeded) {
    s.kind = LdsAccessKind::kTransposedRead;
  } else {
    s.kind = two ? LdsAccessKind::kRead2 : LdsAccessKind::kRead;
  }
  return s;
}

MemoryTraffic traffic_of(const Wave& w, const MicroOp& op) {
  MemoryTraffic t;
  switch (op.unit) {
    case Unit::kLds:
      lds_traffic(w, op, t);
      break;
    case Unit::kVmem:
      vector_traffic(w, op, t);
      break;
    case Unit::kSmem:
      if (op.flags & kAtomic) {
        t.atomics = 1;
      } else if (op.flags & kStore) {
        t.global_written = op.arg;
      } else if (op.sources != 0) {  // clocks read no memory
        t.scalar_read = 4ull * op.arg;
      }
      break;
    default:
      break;
  }
  return t;
}

}  // namespace zyfa::sim
