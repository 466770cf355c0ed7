// DS instructions that move data between lanes and touch no LDS: permute, bpermute, swizzle (CDNA4 guide 12.12).
// A lane that EXEC excludes supplies 0 and receives nothing.
#include <bit>

#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// The lane is (address + offset) / 4; higher bits are ignored.
unsigned lane_of(u32 address, const MicroOp& op) { return ((address + static_cast<u32>(op.imm)) >> 2) & 63; }

void deliver(Wave& w, const MicroOp& op, const u32* out) {
  const u64 exec = w.exec();
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(exec, l)) row(w, op.dst)[l] = out[l];
}

void bpermute(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  u32 out[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    const unsigned from = lane_of(row(w, op.src[0])[l], op);
    out[l] = active(exec, from) ? row(w, op.src[1])[from] : 0;
  }
  deliver(w, op, out);
}
// Of several lanes that write one, the highest wins.
void permute(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  u32 out[kLanes] = {};
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(exec, l)) out[lane_of(row(w, op.src[0])[l], op)] = row(w, op.src[1])[l];
  deliver(w, op, out);
}

unsigned reverse5(unsigned x) {
  unsigned r = 0;
  for (unsigned b = 0; b < 5; ++b) r |= ((x >> b) & 1) << (4 - b);
  return r;
}

unsigned swizzle_source(unsigned l, u32 pattern) {
  const unsigned mask = pattern & 31;
  if (pattern >= 0xe000) return (l & 32) | (reverse5(l & 31) >> std::popcount(mask)) | (l & mask);  // FFT
  if (pattern >= 0xc000) {                                                                          // rotate
    const unsigned n = (pattern >> 5) & 31;
    const unsigned to = pattern & 0x400 ? l - n : l + n;
    return (l & 32) | (l & mask) | (to & ~mask & 31);
  }
  if (pattern & 0x8000) return (l & ~3u) | ((pattern >> (2 * (l & 3))) & 3);  // inside quads
  return (l & 32) | (((l & mask) | ((pattern >> 5) & 31)) ^ ((pattern >> 10) & 31));
}
// imm: the 16-bit pattern.
void swizzle(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  u32 out[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    const unsigned from = swizzle_source(l, static_cast<u32>(op.imm));
    out[l] = active(exec, from) ? row(w, op.src[0])[from] : 0;
  }
  deliver(w, op, out);
}

constexpr OpRow kRows[] = {
    {"ds_bpermute_b32", "t=tt", &bpermute, Unit::kLds, kLoad, 0},
    {"ds_permute_b32", "t=tt", &permute, Unit::kLds, kLoad, 0},
    {"ds_swizzle_b32", "t=t", &swizzle, Unit::kLds, kLoad, 0},
};

}  // namespace

RowTable lane_permute_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
