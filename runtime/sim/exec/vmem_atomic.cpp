// Atomics of vector memory instructions: buffer, global and flat (gfx950-isa.md 3.2; CDNA4 guide 9.2, 10.3.1).
// Lanes in ascending order, each in or out of range as a whole; clipped lanes do nothing and return 0.
#include <cstring>
#include <type_traits>

#include "runtime/sim/exec/float_atomics.h"
#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

template <typename T, auto F>
void atomic(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  Locator at(w, op, sizeof(T));
  const Operand& data = op.src[data_source(op)];
  constexpr unsigned kDwords = sizeof(T) / 4;
  const AtomicDenormals in_memory = memory_denormals(w), in_lds = lds_denormals(w);
  const std::lock_guard lock(memory_atomics());
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u64 value = lane_value<T>(w, data, l);
    const u64 compare = data.count == 2 * kDwords ? lane_value<T>(w, data, l, kDwords) : 0;
    u64 old = 0;
    if (!at.out_of_range(l, sizeof(T))) {
      const Located where = at.locate(l, 0, sizeof(T));
      if (where.status == Located::kFault) return raise_memory_fault(w, op, l, where.address, sizeof(T), "updates");
      if (where.status == Located::kClipped)
        return raise_fault(w, op, l, "a 64-bit atomic in a swizzled buffer, whose elements have 4 bytes");
      std::memcpy(&old, where.host, sizeof(T));
      u64 next;
      if constexpr (std::is_invocable_v<decltype(F), T, T, T, const AtomicDenormals&>) {
        next = F(as<T>(old), as<T>(value), as<T>(compare), where.lds == ~0u ? in_memory : in_lds);
      } else {
        next = raw_of(static_cast<T>(F(as<T>(old), as<T>(value), as<T>(compare))));
      }
      std::memcpy(where.host, &next, sizeof(T));
    }
    if (op.returns) set_lane_value<T>(w, op.dst, l, old);
  }
}

#define ATOMIC(name, T, F, bytes)                                                                        \
  {"buffer_atomic_" name, "=tars", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kBuffer, bytes},     \
      {"global_atomic_" name, "=atg", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kGlobal, bytes},  \
      {"global_atomic_" name, "t=atg", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kGlobal, bytes}, \
      {"flat_atomic_" name, "=at", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kFlat, bytes}, {     \
    "flat_atomic_" name, "t=at", (&atomic<T, F>), Unit::kVmem, kAtomic | kStore | kFlat, bytes           \
  }

constexpr OpRow kRows[] = {
    ZYFA_SIM_INTEGER_ATOMICS(ATOMIC, "", u32, i32, 4),
    ZYFA_SIM_INTEGER_ATOMICS(ATOMIC, "_x2", u64, i64, 8),
    ATOMIC("add_f32", u32, kAddF32, 4),
    ATOMIC("pk_add_f16", u32, kPkAddF16, 4),
    ATOMIC("pk_add_bf16", u32, kPkAddBf16, 4),
    ATOMIC("add_f64", u64, kAddF64, 8),
    ATOMIC("min_f64", u64, kMinF64, 8),
    ATOMIC("max_f64", u64, kMaxF64, 8),
};

}  // namespace

RowTable vector_atomic_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
