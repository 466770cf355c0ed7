// Scalar memory: s_load, s_buffer_load, clocks (gfx950-isa.md 3.5).
#include <cstring>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

u64 pair(const Wave& w, const Operand& o) {
  return scalar_value(w, o, 0) | (static_cast<u64>(scalar_value(w, o, 1)) << 32);
}

// Offset: the last source (immediate or SGPR), plus `offset:` when both are given. The low two address bits are
// ignored.
u64 offset_of(const Wave& w, const MicroOp& op) {
  const Operand& o = op.src[1];
  const u64 base = o.kind == OperandKind::kConst
                       ? static_cast<u64>(static_cast<std::int64_t>(static_cast<std::int32_t>(o.lo)))
                       : scalar_value(w, o, 0);
  return base + static_cast<u64>(static_cast<std::int64_t>(op.imm));
}

void load(Wave& w, const MicroOp& op) {
  const u64 address = (pair(w, op.src[0]) + offset_of(w, op)) & ~3ull;
  const std::byte* from = w.group->memory->find(address, 4ull * op.arg);
  if (from == nullptr) return raise_memory_fault(w, op, 0, address, 4 * op.arg, "reads");
  std::memcpy(&w.s[op.dst.index], from, 4ull * op.arg);
}

// Dwords at or beyond num_records read 0.
void buffer_load(Wave& w, const MicroOp& op) {
  const u64 base = pair(w, op.src[0]) & 0xffffffffffffull;
  const u64 offset = offset_of(w, op) & ~3ull;
  const u32 records = w.s[op.src[0].index + 2];
  for (u32 i = 0; i < op.arg; ++i) {
    const u64 at = offset + 4ull * i;
    u32 value = 0;
    if (at + 4 <= records) {
      const std::byte* from = w.group->memory->find(base + at, 4);
      if (from == nullptr) return raise_memory_fault(w, op, 0, base + at, 4, "reads");
      std::memcpy(&value, from, 4);
    }
    w.s[op.dst.index + i] = value;
  }
}

// The clock is the wave's instruction count: monotonic and the same on every run.
void clock(Wave& w, const MicroOp& op) { w.set_scalar64(op.dst.index, w.executed); }

constexpr OpRow kRows[] = {
    {"s_load_dword", "s=So", &load, Unit::kSmem, kLoad, 1},
    {"s_load_dwordx2", "s=So", &load, Unit::kSmem, kLoad, 2},
    {"s_load_dwordx4", "s=So", &load, Unit::kSmem, kLoad, 4},
    {"s_load_dwordx8", "s=So", &load, Unit::kSmem, kLoad, 8},
    {"s_load_dwordx16", "s=So", &load, Unit::kSmem, kLoad, 16},
    {"s_buffer_load_dword", "s=ro", &buffer_load, Unit::kSmem, kLoad, 1},
    {"s_buffer_load_dwordx2", "s=ro", &buffer_load, Unit::kSmem, kLoad, 2},
    {"s_buffer_load_dwordx4", "s=ro", &buffer_load, Unit::kSmem, kLoad, 4},
    {"s_buffer_load_dwordx8", "s=ro", &buffer_load, Unit::kSmem, kLoad, 8},
    {"s_buffer_load_dwordx16", "s=ro", &buffer_load, Unit::kSmem, kLoad, 16},
    {"s_memtime", "s=", &clock, Unit::kSmem, kLoad, 2},
    {"s_memrealtime", "s=", &clock, Unit::kSmem, kLoad, 2},
};

}  // namespace

RowTable scalar_memory_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
