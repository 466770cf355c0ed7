// Scalar loads and clocks (gfx950-isa.md 3.5; CDNA4 guide 8.2).
#include <cstring>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/rows.h"
#include "runtime/sim/exec/smem_address.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

void load(Wave& w, const MicroOp& op) {
  const u64 address = scalar_address(w, op, 0);
  const std::byte* from = w.group->memory->find(address, 4ull * op.arg);
  if (from == nullptr) return raise_memory_fault(w, op, 0, address, 4 * op.arg, "reads");
  std::memcpy(&w.s[op.dst.index], from, 4ull * op.arg);
}

// Dwords out of range read 0.
void buffer_load(Wave& w, const MicroOp& op) {
  const ScalarBuffer buffer = scalar_buffer(w, op, 0);
  u32 value[16];
  for (u32 i = 0; i < op.arg; ++i) {
    value[i] = 0;
    if (!buffer.inside(i)) continue;
    const std::byte* from = w.group->memory->find(buffer.at(i), 4);
    if (from == nullptr) return raise_memory_fault(w, op, 0, buffer.at(i), 4, "reads");
    std::memcpy(&value[i], from, 4);
  }
  std::memcpy(&w.s[op.dst.index], value, 4ull * op.arg);
}

// The clock is the wave's instruction count: monotonic and the same on every run.
void clock(Wave& w, const MicroOp& op) { w.set_scalar64(op.dst.index, w.executed); }

constexpr OpRow kRows[] = {
    {"s_load_dword", "s=So", &load, Unit::kSmem, kLoad, 1},
    {"s_load_dwordx2", "s=So", &load, Unit::kSmem, kLoad, 2},
    {"s_load_dwordx4", "s=So", &load, Unit::kSmem, kLoad, 4},
    {"s_load_dwordx8", "s=So", &load, Unit::kSmem, kLoad, 8},
    {"s_load_dwordx16", "s=So", &load, Unit::kSmem, kLoad, 16},
    {"s_scratch_load_dword", "s=So", &load, Unit::kSmem, kLoad | kScratch, 1},
    {"s_scratch_load_dwordx2", "s=So", &load, Unit::kSmem, kLoad | kScratch, 2},
    {"s_scratch_load_dwordx4", "s=So", &load, Unit::kSmem, kLoad | kScratch, 4},
    {"s_buffer_load_dword", "s=ro", &buffer_load, Unit::kSmem, kLoad | kBuffer, 1},
    {"s_buffer_load_dwordx2", "s=ro", &buffer_load, Unit::kSmem, kLoad | kBuffer, 2},
    {"s_buffer_load_dwordx4", "s=ro", &buffer_load, Unit::kSmem, kLoad | kBuffer, 4},
    {"s_buffer_load_dwordx8", "s=ro", &buffer_load, Unit::kSmem, kLoad | kBuffer, 8},
    {"s_buffer_load_dwordx16", "s=ro", &buffer_load, Unit::kSmem, kLoad | kBuffer, 16},
    {"s_memtime", "s=", &clock, Unit::kSmem, kLoad, 2},
    {"s_memrealtime", "s=", &clock, Unit::kSmem, kLoad, 2},
};

}  // namespace

u64 scalar_pair(const Wave& w, const Operand& o) {
  return scalar_value(w, o, 0) | (static_cast<u64>(scalar_value(w, o, 1)) << 32);
}

u64 scalar_offset(const Wave& w, const MicroOp& op, unsigned base) {
  const Operand& o = op.src[base + 1];
  if (o.kind == OperandKind::kConst)
    return static_cast<u64>(static_cast<std::int64_t>(static_cast<std::int32_t>(o.lo))) & ~3ull;
  const u64 value = scalar_value(w, o, 0) & ~3u;
  const u64 scaled = op.flags & kScratch ? 64 * value : value;
  return scaled + (static_cast<u64>(static_cast<std::int64_t>(op.imm)) & ~3ull);
}

u64 scalar_address(const Wave& w, const MicroOp& op, unsigned base) {
  return (scalar_pair(w, op.src[base]) & ~3ull) + scalar_offset(w, op, base);
}

ScalarBuffer scalar_buffer(const Wave& w, const MicroOp& op, unsigned base) {
  const u32* resource = &w.s[op.src[base].index];
  ScalarBuffer b;
  b.base = (resource[0] | (static_cast<u64>(resource[1] & 0xffff) << 32)) & ~3ull;
  b.offset = scalar_offset(w, op, base);
  const u32 stride = (resource[1] >> 16) & 0x3fff;
  b.size = static_cast<u64>(resource[2]) * (stride == 0 ? 1 : stride);
  return b;
}

RowTable scalar_memory_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
