// Vector compares: one lane mask into VCC or an SGPR pair, v_cmpx also into EXEC. Compiled once per host instruction
// set.
#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

enum class Relation { kF, kLt, kEq, kLe, kGt, kLg, kGe, kO, kU, kNge, kNlg, kNgt, kNle, kNeq, kNlt, kT };

template <Relation R, typename T>
ZYFA_SIM_INLINE bool holds(T a, T b) {
  switch (R) {
    case Relation::kF:
      return false;
    case Relation::kLt:
      return a < b;
    case Relation::kEq:
      return a == b;
    case Relation::kLe:
      return a <= b;
    case Relation::kGt:
      return a > b;
    case Relation::kLg:
      return a < b || a > b;
    case Relation::kGe:
      return a >= b;
    case Relation::kO:
      return a == a && b == b;
    case Relation::kU:
      return a != a || b != b;
    case Relation::kNge:
      return !(a >= b);
    case Relation::kNlg:
      return !(a < b || a > b);
    case Relation::kNgt:
      return !(a > b);
    case Relation::kNle:
      return !(a <= b);
    case Relation::kNeq:
      return !(a == b);
    case Relation::kNlt:
      return !(a < b);
    case Relation::kT:
      return true;
  }
  return false;
}

ZYFA_SIM_INLINE void finish(Wave& w, const MicroOp& op, u64 mask) {
  mask &= w.exec();
  w.set_scalar64(op.dst.index, mask);
  if (op.flags & kWritesExec) w.set_scalar64(kExecLo, mask);
}

template <Relation R, typename T>
void compare_32(Wave& w, const MicroOp& op) {
  Temp ta, tb, tm;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32 in = w.f32_in;
  u32* m = tm.lane;
  ZYFA_LANES {
    if constexpr (sizeof(T) == 4 && static_cast<T>(0.5f) != T(0)) {
      m[l] = holds<R, float>(f32(flush32(a[l], in)), f32(flush32(b[l], in)));
    } else {
      m[l] = holds<R, T>(static_cast<T>(a[l]), static_cast<T>(b[l]));
    }
  }
  finish(w, op, pack_mask(m));
}

template <Relation R, typename T>
void compare_64(Wave& w, const MicroOp& op) {
  Temp t[4], tm;
  const u32* al = fetch(w, op, 0, t[0]);
  const u32* ah = fetch(w, op, 0, t[1], 1);
  const u32* bl = fetch(w, op, 1, t[2]);
  const u32* bh = fetch(w, op, 1, t[3], 1);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 x = al[l] | (static_cast<u64>(ah[l]) << 32), y = bl[l] | (static_cast<u64>(bh[l]) << 32);
    if constexpr (static_cast<T>(0.5) != T(0)) {
      tm.lane[l] = holds<R, T>(bits<T>(flush64(x, w.f64_in)), bits<T>(flush64(y, w.f64_in)));
    } else {
      tm.lane[l] = holds<R, T>(static_cast<T>(x), static_cast<T>(y));
    }
  }
  finish(w, op, pack_mask(tm.lane));
}

template <Relation R, typename T>
void compare_16(Wave& w, const MicroOp& op) {
  Temp ta, tb, tm;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32 in = w.f16_in;
  for (unsigned l = 0; l < kLanes; ++l) {
    u32 x = a[l] & 0xffff, y = b[l] & 0xffff;
    if constexpr (static_cast<T>(0.5f) != T(0)) {
      x = (x & 0x7c00) ? x : x & in;
      y = (y & 0x7c00) ? y : y & in;
      tm.lane[l] = holds<R, float>(from_f16(x), from_f16(y));
    } else {
      tm.lane[l] = holds<R, T>(static_cast<T>(x), static_cast<T>(y));
    }
  }
  finish(w, op, pack_mask(tm.lane));
}

// Class bits: 0 sNaN, 1 qNaN, 2 -inf, 3 -normal, 4 -denormal, 5 -0, 6 +0, 7 +denormal, 8 +normal, 9 +inf.
ZYFA_SIM_INLINE u32 class_bit(bool negative, u64 exponent, u64 max_exponent, u64 fraction, bool quiet_bit) {
  if (exponent == max_exponent) {
    if (fraction) return quiet_bit ? 2 : 1;
    return negative ? 4 : 0x200;
  }
  if (exponent) return negative ? 8 : 0x100;
  if (fraction) return negative ? 0x10 : 0x80;
  return negative ? 0x20 : 0x40;
}
template <int Bits>
void compare_class(Wave& w, const MicroOp& op) {
  Temp ta, th, tb, tm;
  const u32* a = fetch(w, op, 0, ta);
  const u32* h = Bits == 64 ? fetch(w, op, 0, th, 1) : a;
  const u32* b = fetch(w, op, 1, tb);
  for (unsigned l = 0; l < kLanes; ++l) {
    u32 bit;
    if constexpr (Bits == 32) {
      bit = class_bit(a[l] >> 31, (a[l] >> 23) & 0xff, 0xff, a[l] & 0x7fffff, (a[l] >> 22) & 1);
    } else if constexpr (Bits == 16) {
      bit = class_bit((a[l] >> 15) & 1, (a[l] >> 10) & 0x1f, 0x1f, a[l] & 0x3ff, (a[l] >> 9) & 1);
    } else {
      const u64 x = a[l] | (static_cast<u64>(h[l]) << 32);
      bit = class_bit(x >> 63, (x >> 52) & 0x7ff, 0x7ff, x & 0xfffffffffffffull, (x >> 51) & 1);
    }
    tm.lane[l] = bit & b[l];
  }
  finish(w, op, pack_mask(tm.lane));
}

// The clamp bit asks for exceptions, which are not simulated (guide 6.5).
#define ROW(name, sig, fn, flags)                                \
  {"v_cmp_" name, sig, fn, Unit::kValu, (flags) | kIntClamp, 0}, \
      {"v_cmpx_" name, sig, fn, Unit::kValu, (flags) | kIntClamp | kWritesExec, 0}
#define FLOATS(rel, R)                                                         \
  ROW(rel "_f32", "m=ff", (&compare_32<Relation::R, float>), kFloatMods),      \
      ROW(rel "_f64", "m=dd", (&compare_64<Relation::R, double>), kFloatMods), \
      ROW(rel "_f16", "m=hh", (&compare_16<Relation::R, float>), kFloatMods)
#define INTS(rel, R)                                                        \
  ROW(rel "_i32", "m=ii", (&compare_32<Relation::R, i32>), 0),              \
      ROW(rel "_u32", "m=ii", (&compare_32<Relation::R, u32>), 0),          \
      ROW(rel "_i64", "m=ll", (&compare_64<Relation::R, i64>), 0),          \
      ROW(rel "_u64", "m=ll", (&compare_64<Relation::R, u64>), 0),          \
      ROW(rel "_i16", "m=ii", (&compare_16<Relation::R, std::int16_t>), 0), \
      ROW(rel "_u16", "m=ii", (&compare_16<Relation::R, u16>), 0)

constexpr OpRow kRows[] = {
    FLOATS("f", kF),
    FLOATS("lt", kLt),
    FLOATS("eq", kEq),
    FLOATS("le", kLe),
    FLOATS("gt", kGt),
    FLOATS("lg", kLg),
    FLOATS("ge", kGe),
    FLOATS("o", kO),
    FLOATS("u", kU),
    FLOATS("nge", kNge),
    FLOATS("nlg", kNlg),
    FLOATS("ngt", kNgt),
    FLOATS("nle", kNle),
    FLOATS("neq", kNeq),
    FLOATS("nlt", kNlt),
    FLOATS("tru", kT),
    INTS("f", kF),
    INTS("lt", kLt),
    INTS("eq", kEq),
    INTS("le", kLe),
    INTS("gt", kGt),
    INTS("ne", kLg),
    INTS("ge", kGe),
    INTS("t", kT),
    ROW("class_f32", "m=fi", &compare_class<32>, kFloatMods),
    ROW("class_f64", "m=di", &compare_class<64>, kFloatMods),
    ROW("class_f16", "m=hi", &compare_class<16>, kFloatMods),
};

}  // namespace

RowTable compare_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
