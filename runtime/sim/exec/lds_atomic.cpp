// LDS atomics, exchanges and counters (CDNA4 guide 9.2, 11.3, 12.12).
// Lanes in ascending order; the old value is returned when the row has a destination. An access that lies outside of
// the allocation in part has no effect and returns 0.
#include <fmt/format.h>

#include <bit>
#include <type_traits>

#include "runtime/sim/exec/float_atomics.h"
#include "runtime/sim/exec/lds_access.h"
#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

template <typename T, auto F>
void atomic(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  const AtomicDenormals flush = lds_denormals(w);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u32 address = row(w, op.src[0])[l] + static_cast<u32>(op.imm);
    const u64 data = lane_value<T>(w, op.src[1], l), second = op.sources > 2 ? lane_value<T>(w, op.src[2], l) : 0;
    u64 old = 0;
    if (inside_lds(*w.group, address, sizeof(T))) {
      load_lds(*w.group, address, sizeof(T), &old);
      u64 next;
      if constexpr (std::is_invocable_v<decltype(F), T, T, T, const AtomicDenormals&>) {
        next = F(as<T>(old), as<T>(data), as<T>(second), flush);
      } else {
        next = raw_of(static_cast<T>(F(as<T>(old), as<T>(data), as<T>(second))));
      }
      store_lds(*w.group, address, sizeof(T), &next);
    }
    if (op.dst.kind != OperandKind::kNone) set_lane_value<T>(w, op.dst, l, old);
  }
}

// Both old values are read before the new ones are written; two equal offsets mean one exchange, with the first data.
// arg: stride in bytes.
template <typename T>
void exchange2(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  constexpr unsigned kDwords = sizeof(T) / 4;
  const bool two = op.imm != op.imm2;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u32 base = row(w, op.src[0])[l];
    const u32 address[2] = {base + static_cast<u32>(op.imm) * op.arg, base + static_cast<u32>(op.imm2) * op.arg};
    const u64 data[2] = {lane_value<T>(w, op.src[1], l), lane_value<T>(w, op.src[2], l)};
    u64 old[2] = {};
    for (unsigned h = 0; h < 2; ++h)
      if (inside_lds(*w.group, address[h], sizeof(T))) load_lds(*w.group, address[h], sizeof(T), &old[h]);
    for (unsigned h = 0; h < (two ? 2u : 1u); ++h)
      if (inside_lds(*w.group, address[h], sizeof(T))) store_lds(*w.group, address[h], sizeof(T), &data[h]);
    for (unsigned h = 0; h < 2; ++h) set_lane_value<T>(w, op.dst, l, old[h], h * kDwords);
  }
}

// Each half is written when its top bit is set, without that bit.
void conditional_exchange(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!active(exec, l)) continue;
    const u32 address = (row(w, op.src[0])[l] + static_cast<u32>(op.imm)) & ~7u;
    if (address > 0xffff) {
      return raise_fault(w, op, l,
                         fmt::format("LDS address {}: the CDNA4 guide cuts this instruction's address at 16 bits, of "
                                     "what lies above it says nothing",
                                     address));
    }
    for (unsigned h = 0; h < 2; ++h) {
      const u32 data = row(w, op.src[1], h)[l];
      u32 old = 0;
      if (inside_lds(*w.group, address, 8)) {
        load_lds(*w.group, address + 4 * h, 4, &old);
        const u32 next = data & 0x7fffffffu;
        if (data >> 31) store_lds(*w.group, address + 4 * h, 4, &next);
      }
      row(w, op.dst, h)[l] = old;
    }
  }
}

// Adds the number of active lanes once; every lane receives the old value.
template <bool Append>
void count_lanes(Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  if (exec == 0) return;
  if ((w.s[kM0] & 0xffff) != 0) {
    return raise_fault(w, op, 0,
                       fmt::format("M0 is 0x{:x}: the CDNA4 guide addresses the counter by the instruction's offset "
                                   "alone, LLVM adds M0; only 0 in its low 16 bits is the same for both",
                                   w.s[kM0]));
  }
  const u32 address = static_cast<u32>(op.imm);
  u32 old = 0;
  if (inside_lds(*w.group, address, 4)) {
    load_lds(*w.group, address, 4, &old);
    const u32 lanes = static_cast<u32>(std::popcount(exec));
    const u32 next = Append ? old + lanes : old - lanes;
    store_lds(*w.group, address, 4, &next);
  }
  for (unsigned l = 0; l < kLanes; ++l)
    if (active(exec, l)) row(w, op.dst)[l] = old;
}

constexpr auto kRsub = [](auto a, auto b, auto) { return b - a; };
// ds_cmpst: the first data operand is compared, the second stored.
constexpr auto kCompareStore = [](auto a, auto b, auto c) { return a == b ? c : a; };
constexpr auto kMaskOr = [](auto a, auto b, auto c) { return (a & ~b) | c; };
constexpr auto kWrap = [](auto a, auto b, auto c) { return a >= b ? a - b : a + c; };

#define RETURNING(name, T, bytes, F, data) \
  {"ds_" name, "t=a" data, (&atomic<T, F>), Unit::kLds, kAtomic | kStore | kLoad, bytes}
#define ATOMIC(stem, rtn, T, bytes, F, data) \
  {"ds_" stem, "=a" data, (&atomic<T, F>), Unit::kLds, kAtomic | kStore, bytes}, RETURNING(rtn, T, bytes, F, data)
#define INTEGER_ATOMICS(u, s, b, U, S, bytes)                                                                      \
  ATOMIC("add_" u, "add_rtn_" u, U, bytes, kAdd, "t"), ATOMIC("sub_" u, "sub_rtn_" u, U, bytes, kSub, "t"),        \
      ATOMIC("rsub_" u, "rsub_rtn_" u, U, bytes, kRsub, "t"), ATOMIC("inc_" u, "inc_rtn_" u, U, bytes, kInc, "t"), \
      ATOMIC("dec_" u, "dec_rtn_" u, U, bytes, kDec, "t"), ATOMIC("min_" s, "min_rtn_" s, S, bytes, kMin, "t"),    \
      ATOMIC("max_" s, "max_rtn_" s, S, bytes, kMax, "t"), ATOMIC("min_" u, "min_rtn_" u, U, bytes, kMin, "t"),    \
      ATOMIC("max_" u, "max_rtn_" u, U, bytes, kMax, "t"), ATOMIC("and_" b, "and_rtn_" b, U, bytes, kAnd, "t"),    \
      ATOMIC("or_" b, "or_rtn_" b, U, bytes, kOr, "t"), ATOMIC("xor_" b, "xor_rtn_" b, U, bytes, kXor, "t"),       \
      ATOMIC("mskor_" b, "mskor_rtn_" b, U, bytes, kMaskOr, "tt"),                                                 \
      ATOMIC("cmpst_" b, "cmpst_rtn_" b, U, bytes, kCompareStore, "tt"),                                           \
      RETURNING("wrxchg_rtn_" b, U, bytes, kExchange, "t")
#define EXCHANGE2(name, T, stride) {"ds_" name, "t=att", &exchange2<T>, Unit::kLds, kAtomic | kStore | kLoad, stride}

constexpr OpRow kRows[] = {
    INTEGER_ATOMICS("u32", "i32", "b32", u32, i32, 4),
    INTEGER_ATOMICS("u64", "i64", "b64", u64, i64, 8),
    RETURNING("wrap_rtn_b32", u32, 4, kWrap, "tt"),
    ATOMIC("add_f32", "add_rtn_f32", u32, 4, kAddF32, "t"),
    ATOMIC("min_f32", "min_rtn_f32", u32, 4, kMinF32, "t"),
    ATOMIC("max_f32", "max_rtn_f32", u32, 4, kMaxF32, "t"),
    ATOMIC("cmpst_f32", "cmpst_rtn_f32", u32, 4, kCompareStoreF32, "tt"),
    ATOMIC("add_f64", "add_rtn_f64", u64, 8, kAddF64, "t"),
    ATOMIC("min_f64", "min_rtn_f64", u64, 8, kMinF64, "t"),
    ATOMIC("max_f64", "max_rtn_f64", u64, 8, kMaxF64, "t"),
    ATOMIC("cmpst_f64", "cmpst_rtn_f64", u64, 8, kCompareStoreF64, "tt"),
    ATOMIC("pk_add_f16", "pk_add_rtn_f16", u32, 4, kPkAddF16, "t"),
    ATOMIC("pk_add_bf16", "pk_add_rtn_bf16", u32, 4, kPkAddBf16, "t"),
    EXCHANGE2("wrxchg2_rtn_b32", u32, 4),
    EXCHANGE2("wrxchg2_rtn_b64", u64, 8),
    EXCHANGE2("wrxchg2st64_rtn_b32", u32, 256),
    EXCHANGE2("wrxchg2st64_rtn_b64", u64, 512),
    {"ds_condxchg32_rtn_b64", "t=at", &conditional_exchange, Unit::kLds, kAtomic | kStore | kLoad, 8},
    {"ds_append", "t=", &count_lanes<true>, Unit::kLds, kAtomic | kStore | kLoad, 4},
    {"ds_consume", "t=", &count_lanes<false>, Unit::kLds, kAtomic | kStore | kLoad, 4},
};

}  // namespace

RowTable lds_atomic_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
