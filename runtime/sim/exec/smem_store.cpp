// Scalar stores and atomics and cache maintenance by address (CDNA4 guide 8.2). Memory is written at once: there is no
// scalar cache whose lines would have to be written back or could be discarded.
#include <cstring>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"
#include "runtime/sim/exec/smem_address.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

// arg: bytes.
void store(Wave& w, const MicroOp& op) {
  const u64 address = scalar_address(w, op, 1);
  std::byte* to = w.group->memory->find(address, op.arg);
  if (to == nullptr) return raise_memory_fault(w, op, 0, address, op.arg, "writes");
  std::memcpy(to, &w.s[op.src[0].index], op.arg);
}

void buffer_store(Wave& w, const MicroOp& op) {
  const ScalarBuffer buffer = scalar_buffer(w, op, 1);
  for (u32 i = 0; i < op.arg / 4; ++i) {
    if (!buffer.inside(i)) continue;
    std::byte* to = w.group->memory->find(buffer.at(i), 4);
    if (to == nullptr) return raise_memory_fault(w, op, 0, buffer.at(i), 4, "writes");
    std::memcpy(to, &w.s[op.src[0].index + i], 4);
  }
}

template <typename T, auto F>
void atomic(Wave& w, const MicroOp& op) {
  u64 value = 0, compare = 0, old = 0;
  const Operand& data = op.src[0];
  std::memcpy(&value, &w.s[data.index], sizeof(T));
  if (data.count == sizeof(T) / 2) std::memcpy(&compare, &w.s[data.index + sizeof(T) / 4], sizeof(T));
  u64 address;
  bool inside = true;
  if (op.flags & kBuffer) {
    const ScalarBuffer buffer = scalar_buffer(w, op, 1);
    address = buffer.at(0);
    inside = buffer.inside(sizeof(T) / 4 - 1);
  } else {
    address = scalar_address(w, op, 1);
  }
  if (inside) {
    const std::lock_guard lock(memory_atomics());
    std::byte* at = w.group->memory->find(address, sizeof(T));
    if (at == nullptr) return raise_memory_fault(w, op, 0, address, sizeof(T), "updates");
    std::memcpy(&old, at, sizeof(T));
    const u64 next = raw_of(static_cast<T>(F(as<T>(old), as<T>(value), as<T>(compare))));
    std::memcpy(at, &next, sizeof(T));
  }
  if (op.returns) std::memcpy(&w.s[op.dst.index], &old, sizeof(T));
}

void nothing(Wave&, const MicroOp&) {}

#define ATOMIC(name, T, F, bytes)                                                                    \
  {"s_atomic_" name, "=uSo", (&atomic<T, F>), Unit::kSmem, kAtomic | kStore, bytes}, {               \
    "s_buffer_atomic_" name, "=uro", (&atomic<T, F>), Unit::kSmem, kAtomic | kStore | kBuffer, bytes \
  }

constexpr OpRow kRows[] = {
    {"s_store_dword", "=uSo", &store, Unit::kSmem, kStore, 4},
    {"s_store_dwordx2", "=uSo", &store, Unit::kSmem, kStore, 8},
    {"s_store_dwordx4", "=uSo", &store, Unit::kSmem, kStore, 16},
    {"s_scratch_store_dword", "=uSo", &store, Unit::kSmem, kStore | kScratch, 4},
    {"s_scratch_store_dwordx2", "=uSo", &store, Unit::kSmem, kStore | kScratch, 8},
    {"s_scratch_store_dwordx4", "=uSo", &store, Unit::kSmem, kStore | kScratch, 16},
    {"s_buffer_store_dword", "=uro", &buffer_store, Unit::kSmem, kStore | kBuffer, 4},
    {"s_buffer_store_dwordx2", "=uro", &buffer_store, Unit::kSmem, kStore | kBuffer, 8},
    {"s_buffer_store_dwordx4", "=uro", &buffer_store, Unit::kSmem, kStore | kBuffer, 16},
    ZYFA_SIM_INTEGER_ATOMICS(ATOMIC, "", u32, i32, 4),
    ZYFA_SIM_INTEGER_ATOMICS(ATOMIC, "_x2", u64, i64, 8),
    {"s_dcache_discard", "=So", &nothing, Unit::kSmem, 0, 0},
    {"s_dcache_discard_x2", "=So", &nothing, Unit::kSmem, 0, 0},
    {"s_dcache_inv_vol", "=", &nothing, Unit::kOther, 0, 0},
    {"s_dcache_wb_vol", "=", &nothing, Unit::kOther, 0, 0},
};

}  // namespace

RowTable scalar_store_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
