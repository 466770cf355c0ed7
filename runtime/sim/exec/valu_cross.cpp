// VALU instructions that move data between lanes or to scalar registers. Compiled once per host instruction set.
#include "runtime/sim/exec/lanes.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

// With no active lane, lane 0 is read.
void readfirstlane(Wave& w, const MicroOp& op) {
  Temp ta;
  const u32* a = fetch(w, op, 0, ta);
  const u64 exec = w.exec();
  w.s[op.dst.index] = a[exec ? __builtin_ctzll(exec) : 0];
}
void readlane(Wave& w, const MicroOp& op) {
  Temp ta;
  const u32* a = fetch(w, op, 0, ta);
  w.s[op.dst.index] = a[scalar_value(w, op.src[1], 0) & 63];
}
void writelane(Wave& w, const MicroOp& op) {
  w.v[op.dst.index].lane[scalar_value(w, op.src[1], 0) & 63] = scalar_value(w, op.src[0], 0);
}

// v_permlane32_swap: x lanes 32-63 <-> y lanes 0-31; v_permlane16_swap: x rows 1,3 <-> y rows 0,2 (gfx950-isa.md 2).
// A pair of lanes is exchanged when both are active.
template <unsigned Row>
void permlane_swap(Wave& w, const MicroOp& op) {
  u32 *x = w.v[op.dst.index].lane, *y = w.v[op.src[0].index].lane;
  const u64 exec = w.exec();
  for (unsigned base = 0; base < kLanes; base += 2 * Row) {
    for (unsigned i = 0; i < Row; ++i) {
      const unsigned hi = base + Row + i, lo = base + i;
      if (exec != ~0ull && !(((exec >> hi) & 1) && ((exec >> lo) & 1))) continue;
      const u32 t = x[hi];
      x[hi] = y[lo];
      y[lo] = t;
    }
  }
}

// Counts the mask bits below the lane.
template <bool High>
void mbcnt(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 below = (1ull << l) - 1;
    const u32 mask = High ? static_cast<u32>(below >> 32) : static_cast<u32>(below);
    out.p[l] = static_cast<u32>(__builtin_popcount(a[l] & mask)) + b[l];
  }
  close(w, op, out);
}

void nop(Wave&, const MicroOp&) {}

constexpr OpRow kRows[] = {
    {"v_readfirstlane_b32", "s=i", &readfirstlane, Unit::kValu, kReadlane | kCopies, 0},
    {"v_readlane_b32", "s=is", &readlane, Unit::kValu, kReadlane | kIgnoresExec | kCopies, 0},
    {"v_writelane_b32", "i=ss", &writelane, Unit::kValu, kReadlane | kIgnoresExec | kPartialWrite, 0},
    {"v_permlane32_swap_b32", "i=i", &permlane_swap<32>, Unit::kValu, kLaneSwap | kAllLanesNeeded, 0},
    {"v_permlane16_swap_b32", "i=i", &permlane_swap<16>, Unit::kValu, kLaneSwap | kAllLanesNeeded, 0},
    {"v_mbcnt_lo_u32_b32", "i=ii", &mbcnt<false>, Unit::kValu, 0, 0},
    {"v_mbcnt_hi_u32_b32", "i=ii", &mbcnt<true>, Unit::kValu, 0, 0},
    {"v_nop", "=", &nop, Unit::kValu, 0, 0},
};

}  // namespace

RowTable cross_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
