// f64 arithmetic, conversions to and from f64, and the division helpers of both widths. Compiled once per host
// instruction set.
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

ZYFA_SIM_INLINE double f64(u64 x) { return bits<double>(x); }
ZYFA_SIM_INLINE u64 raw64(double x) { return x != x ? bits<u64>(x) | 0x8000000000000ull : bits<u64>(x); }

// The 64-bit value of source i in lane l, denormals by MODE.
struct Wide {
  const u32 *lo, *hi;
  u64 mask;
  ZYFA_SIM_INLINE double at(unsigned l) const { return f64(flush64(lo[l] | (static_cast<u64>(hi[l]) << 32), mask)); }
};

ZYFA_SIM_INLINE u64 quiet64(u64 x) { return x | 0x8000000000000ull; }
ZYFA_SIM_INLINE bool nan64(double x) { return x != x; }
// A NaN result is the first NaN source made quiet, else the positive default NaN (lanes.h, fix_nan).
ZYFA_SIM_INLINE u64 finish64(double r, double a, double b, double c) {
  if (!nan64(r)) return bits<u64>(r);
  return nan64(a)   ? quiet64(bits<u64>(a))
         : nan64(b) ? quiet64(bits<u64>(b))
         : nan64(c) ? quiet64(bits<u64>(c))
                    : 0x7ff8000000000000ull;
}

// Chooses: F gives a source as it is, or a NaN it has made quiet itself; it is told MODE.IEEE.
template <int N, bool Tied, auto F, bool Chooses = false>
void wide_op(Wave& w, const MicroOp& op) {
  Temp t[6], to[2];
  Wide s[3];
  for (unsigned i = 0; i < N; ++i) s[i] = {fetch(w, op, i, t[2 * i]), fetch(w, op, i, t[2 * i + 1], 1), w.f64_in};
  if (Tied) s[N] = {w.v[op.dst.index].lane, w.v[op.dst.index + 1].lane, w.f64_in};
  for (unsigned i = N + Tied; i < 3; ++i) s[i] = s[0];
  for (unsigned l = 0; l < kLanes; ++l) {
    const double a = s[0].at(l), b = s[1].at(l), c = s[2].at(l);
    u64 r;
    if constexpr (Chooses) {
      r = F(bits<u64>(a), bits<u64>(b), w.ieee());
    } else {
      r = flush64(finish64(F(a, b, c), a, b, c), w.f64_out);
    }
    to[0].lane[l] = static_cast<u32>(r);
    to[1].lane[l] = static_cast<u32>(r >> 32);
  }
  close_double(w, op, to[0].lane, to[1].lane);
}
// f64 source, 32-bit result.
template <auto F>
void narrow(Wave& w, const MicroOp& op) {
  Temp t[2], to;
  const Wide s{fetch(w, op, 0, t[0]), fetch(w, op, 0, t[1], 1), w.f64_in};
  const u32 out = op.dst.type == 'f' ? w.f32_out : ~0u;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 r = F(s.at(l));
    to.lane[l] = out == ~0u ? r : flush32(r, out);
  }
  close(w, op, Out{to.lane, false});
}
// 32-bit source, f64 result.
template <auto F>
void widen(Wave& w, const MicroOp& op) {
  Temp t, to[2];
  const u32* a = fetch(w, op, 0, t);
  const u32 in = op.src[0].type == 'f' ? w.f32_in : ~0u;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 r = raw64(F(flush32(a[l], in)));
    to[0].lane[l] = static_cast<u32>(r);
    to[1].lane[l] = static_cast<u32>(r >> 32);
  }
  close_double(w, op, to[0].lane, to[1].lane);
}
void ldexp_wide(Wave& w, const MicroOp& op) {
  Temp t[3], to[2];
  const Wide s{fetch(w, op, 0, t[0]), fetch(w, op, 0, t[1], 1), w.f64_in};
  const u32* e = fetch(w, op, 1, t[2]);
  for (unsigned l = 0; l < kLanes; ++l) {
    const i32 n = static_cast<i32>(e[l]);
    const u64 r = flush64(raw64(std::ldexp(s.at(l), n < -5000 ? -5000 : n > 5000 ? 5000 : n)), w.f64_out);
    to[0].lane[l] = static_cast<u32>(r);
    to[1].lane[l] = static_cast<u32>(r >> 32);
  }
  close_double(w, op, to[0].lane, to[1].lane);
}

// A NaN operand is ignored, +0 > -0; IEEE = 1 answers a signalling NaN with its quiet form.
template <bool Max>
ZYFA_SIM_INLINE u64 extreme64(u64 a, u64 b, bool ieee) {
  const double x = f64(a), y = f64(b);
  if (ieee && nan64(x) && quiet64(a) != a) return quiet64(a);
  if (ieee && nan64(y) && quiet64(b) != b) return quiet64(b);
  if (nan64(x)) return b;
  if (nan64(y)) return a;
  if (x == y) return Max ? a & b : a | b;
  return (Max ? x > y : x < y) ? a : b;
}
ZYFA_SIM_INLINE int exponent_of(double x) {
  int e = 0;
  if (std::isfinite(x)) static_cast<void>(std::frexp(x, &e));
  return e;
}
ZYFA_SIM_INLINE double mantissa_of(double x) {
  int e = 0;
  return std::isfinite(x) ? std::frexp(x, &e) : x;
}
ZYFA_SIM_INLINE double fraction(double x) {
  const double r = x - std::floor(x);
  return r > 0x1.fffffffffffffp-1 ? 0x1.fffffffffffffp-1 : r;
}

// Division: v_div_scale brings operands into range and sets a lane of VCC when v_div_fmas must scale back; v_div_fixup
// handles the special cases. After the guide, with two corrections that tinygrad's tests of RDNA hardware show and
// without which the quotients of AMD's division sequence come out wrong: v_div_fmas scales up when the quotient is 2 or
// more and down when it is less, by as much as v_div_scale did; and where both 1 / denominator and the quotient are
// denormal the denominator is scaled down.
template <typename T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr int kScale = 64, kFar = 96, kMinNormal = -126, kTiny = 23, kInfinite = 128;
};
template <>
struct Limits<double> {
  static constexpr int kScale = 128, kFar = 768, kMinNormal = -1022, kTiny = 53, kInfinite = 1024;
};
template <typename T>
ZYFA_SIM_INLINE int unbiased(T x) {
  if (x == 0) return Limits<T>::kMinNormal - 1;
  if (!std::isfinite(x)) return Limits<T>::kInfinite;
  const int e = std::ilogb(x);
  return e < Limits<T>::kMinNormal ? Limits<T>::kMinNormal - 1 : e;
}
template <typename T>
ZYFA_SIM_INLINE bool subnormal(T x) {
  return x != 0 && std::fabs(x) < std::ldexp(T(1), Limits<T>::kMinNormal);
}
ZYFA_SIM_INLINE int exponent_field(float x) { return static_cast<int>((raw(x) >> 23) & 0xff); }
ZYFA_SIM_INLINE int exponent_field(double x) { return static_cast<int>((bits<u64>(x) >> 52) & 0x7ff); }
// s0: the value to scale (either the denominator s1 or the numerator s2).
template <typename T>
ZYFA_SIM_INLINE T div_scale(T s0, T s1, T s2, bool& vcc) {
  vcc = false;
  const bool is_denominator =
      bits<std::conditional_t<sizeof(T) == 4, u32, u64>>(s0) == bits<std::conditional_t<sizeof(T) == 4, u32, u64>>(s1);
  const auto up = [](T x) { return std::ldexp(x, Limits<T>::kScale); };
  const auto down = [](T x) { return std::ldexp(x, -Limits<T>::kScale); };
  if (s2 == 0 || s1 == 0) {
    vcc = true;
    return std::numeric_limits<T>::quiet_NaN();
  }
  if (unbiased(s2) - unbiased(s1) >= Limits<T>::kFar) {
    vcc = true;
    return is_denominator ? up(s0) : s0;
  }
  if (subnormal(s1)) return up(s0);
  const bool tiny_reciprocal = subnormal(T(1) / s1), tiny_quotient = subnormal(s2 / s1) || s2 / s1 == 0;
  if (tiny_reciprocal && tiny_quotient) {
    vcc = true;
    return is_denominator ? down(s0) : s0;
  }
  if (tiny_reciprocal) return down(s0);
  if (tiny_quotient) {
    vcc = true;
    return is_denominator ? s0 : up(s0);
  }
  if (unbiased(s2) - Limits<T>::kMinNormal + 1 <= Limits<T>::kTiny) return up(s0);
  return s0;
}
// s0 quotient, s1 denominator, s2 numerator. Invalid divisions give the negative NaN; a quotient far below the smallest
// number is 0 whatever s0 is (V_DIV_FIXUP_F32/F64); a NaN quotient of numbers stands for an overflow.
template <typename T>
ZYFA_SIM_INLINE T div_fixup(T s0, T s1, T s2) {
  const bool negative = std::signbit(s1) != std::signbit(s2);
  constexpr int kUnderflow = sizeof(T) == 4 ? -150 : -1075;
  const T infinity = std::numeric_limits<T>::infinity();
  if (s2 != s2) return s2;
  if (s1 != s1) return s1;
  if ((s1 == 0 && s2 == 0) || (std::isinf(s1) && std::isinf(s2)))
    return std::copysign(std::numeric_limits<T>::quiet_NaN(), T(-1));
  if (s1 == 0 || std::isinf(s2)) return negative ? -infinity : infinity;
  if (std::isinf(s1) || s2 == 0) return negative ? -T(0) : T(0);
  if (exponent_field(s2) - exponent_field(s1) < kUnderflow) return negative ? -T(0) : T(0);
  if (s0 != s0) return negative ? -infinity : infinity;
  return negative ? -std::fabs(s0) : std::fabs(s0);
}

void div_scale_f32(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = fetch(w, op, i, t[i]);
  u64 mask = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    bool vcc;
    const auto at = [&](unsigned i) { return f32(flush32(s[i][l], w.f32_in)); };
    to.lane[l] = raw(div_scale(at(0), at(1), at(2), vcc));
    mask |= static_cast<u64>(vcc) << l;
  }
  close(w, op, Out{to.lane, false});
  w.set_scalar64(op.dst2.index, mask & w.exec());
}
void div_scale_f64(Wave& w, const MicroOp& op) {
  Temp t[6], to[2];
  Wide s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = {fetch(w, op, i, t[2 * i]), fetch(w, op, i, t[2 * i + 1], 1), ~0ull};
  u64 mask = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    bool vcc;
    const u64 r = raw64(div_scale(s[0].at(l), s[1].at(l), s[2].at(l), vcc));
    to[0].lane[l] = static_cast<u32>(r);
    to[1].lane[l] = static_cast<u32>(r >> 32);
    mask |= static_cast<u64>(vcc) << l;
  }
  close_double(w, op, to[0].lane, to[1].lane);
  w.set_scalar64(op.dst2.index, mask & w.exec());
}
// fma; in the lanes whose VCC bit is set times 2^64 or 2^-64 (2^128 or 2^-128), with one rounding.
void div_fmas_f32(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = fetch(w, op, i, t[i]);
  const u64 vcc = w.scalar64(kVccLo);
  const u32 round = w.mode & 3;
  for (unsigned l = 0; l < kLanes; ++l) {
    const auto at = [&](unsigned i) { return f32(flush32(s[i][l], w.f32_in)); };
    const float a = at(0), b = at(1), c = at(2);
    const double sum = sum_to_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c));
    const double up = exponent_field(c) > 127 ? 0x1p64 : 0x1p-64, r = (vcc >> l) & 1 ? sum * up : sum;
    const u64 magnitude = bits<u64>(r) & 0x7fffffffffffffffull;
    u32 result;
    if (r != r) {
      result = fix_nan(static_cast<float>(r), a, b, c);
    } else {
      const u32 sign = r < 0 || (r == 0 && std::signbit(r)) ? 0x80000000u : 0;
      const Toward direction = toward(round, sign != 0);
      const u64 code = magnitude == 0x7ff0000000000000ull ? ~0ull : round_double(magnitude, 23, -126, direction);
      const u32 over = magnitude != 0x7ff0000000000000ull && direction == Toward::kZero ? 0x7f7fffffu : 0x7f800000u;
      result = sign | (code > 0x7f7fffffu ? over : static_cast<u32>(code));
    }
    to.lane[l] = flush32(result, w.f32_out);
  }
  close(w, op, Out{to.lane, false});
}
// a * b + c times 2^-128. Where that is denormal the sum is rounded twice; it matters when the first rounding made a
// tie of it, which the rest of the exact sum decides.
ZYFA_SIM_INLINE double scaled_down(double a, double b, double c) {
  const double sum = std::fma(a, b, c), r = std::ldexp(sum, -128), lost = sum - std::ldexp(r, 128);
  if (!(std::fabs(r) < 0x1p-1022) || std::fabs(lost) != 0x1p-947) return r;
  const double p = a * b, e = std::fma(a, b, -p), s = p + c, part = s - p;
  const double rest = (s - sum) + ((p - (s - part)) + (c - part)) + e;
  // r lies on one side of the tie, the other candidate one unit beyond `lost`.
  const double other = r + (lost > 0 ? 0x1p-1074 : -0x1p-1074);
  return rest != 0 && (rest > 0) == (lost > 0) ? other : r;
}
void div_fmas_f64(Wave& w, const MicroOp& op) {
  Temp t[6], to[2];
  Wide s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = {fetch(w, op, i, t[2 * i]), fetch(w, op, i, t[2 * i + 1], 1), w.f64_in};
  const u64 vcc = w.scalar64(kVccLo);
  for (unsigned l = 0; l < kLanes; ++l) {
    const double a = s[0].at(l), b = s[1].at(l), c = s[2].at(l);
    double r = std::fma(a, b, c);
    if ((vcc >> l) & 1) r = exponent_field(c) > 1023 ? std::ldexp(r, 128) : scaled_down(a, b, c);
    const u64 x = flush64(finish64(r, a, b, c), w.f64_out);
    to[0].lane[l] = static_cast<u32>(x);
    to[1].lane[l] = static_cast<u32>(x >> 32);
  }
  close_double(w, op, to[0].lane, to[1].lane);
}
void div_fixup_f32(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned l = 0; l < kLanes; ++l) {
    const float r = div_fixup(f32(s[0][l]), f32(s[1][l]), f32(s[2][l]));
    to.lane[l] = r != r ? quiet(raw(r)) : raw(r);
  }
  close(w, op, Out{to.lane, false});
}
void div_fixup_f64(Wave& w, const MicroOp& op) {
  Temp t[6], to[2];
  Wide s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = {fetch(w, op, i, t[2 * i]), fetch(w, op, i, t[2 * i + 1], 1), ~0ull};
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 r = raw64(div_fixup(s[0].at(l), s[1].at(l), s[2].at(l)));
    to[0].lane[l] = static_cast<u32>(r);
    to[1].lane[l] = static_cast<u32>(r >> 32);
  }
  close_double(w, op, to[0].lane, to[1].lane);
}

ZYFA_SIM_INLINE u32 to_i32(double x) {
  return x != x               ? 0
         : x >= 2147483647.0  ? 0x7fffffffu
         : x <= -2147483648.0 ? 0x80000000u
                              : static_cast<u32>(static_cast<i32>(x));
}
ZYFA_SIM_INLINE u32 to_u32(double x) { return !(x > 0) ? 0 : x >= 4294967295.0 ? ~0u : static_cast<u32>(x); }

constexpr u32 kF = kFloatMods;
#define D1(name, unit, expr) \
  {name, "d=d", (&wide_op<1, false, ([](double a, double, double) { return expr; })>), unit, kF, 0}
#define D2(name, expr) \
  {name, "d=dd", (&wide_op<2, false, ([](double a, double b, double) { return expr; })>), Unit::kValu, kF, 0}

constexpr OpRow kRows[] = {
    D2("v_add_f64", a + b),
    D2("v_mul_f64", a* b),
    {"v_max_f64", "d=dd", (&wide_op<2, false, extreme64<true>, true>), Unit::kValu, kF, 0},
    {"v_min_f64", "d=dd", (&wide_op<2, false, extreme64<false>, true>), Unit::kValu, kF, 0},
    {"v_fma_f64", "d=ddd", (&wide_op<3, false, ([](double a, double b, double c) { return std::fma(a, b, c); })>),
     Unit::kValu, kF, 0},
    {"v_fmac_f64", "d=dd", (&wide_op<2, true, ([](double a, double b, double c) { return std::fma(a, b, c); })>),
     Unit::kValu, kF | kTied, 0},
    D1("v_rcp_f64", Unit::kTrans, 1.0 / a),
    D1("v_rsq_f64", Unit::kTrans, 1.0 / std::sqrt(a)),
    D1("v_sqrt_f64", Unit::kTrans, std::sqrt(a)),
    D1("v_trunc_f64", Unit::kValu, std::trunc(a)),
    D1("v_ceil_f64", Unit::kValu, std::ceil(a)),
    D1("v_floor_f64", Unit::kValu, std::floor(a)),
    D1("v_rndne_f64", Unit::kValu, __builtin_roundeven(a)),
    D1("v_fract_f64", Unit::kValu, fraction(a)),
    D1("v_frexp_mant_f64", Unit::kValu, mantissa_of(a)),
    {"v_ldexp_f64", "d=di", &ldexp_wide, Unit::kValu, kF, 0},
    {"v_frexp_exp_i32_f64", "i=d", &narrow<([](double a) { return static_cast<u32>(exponent_of(a)); })>, Unit::kValu,
     kF | kIntClamp, 0},
    {"v_cvt_f32_f64", "f=d", &narrow<([](double a) {
       const float r = static_cast<float>(a);
       return r != r ? quiet(raw(r)) : raw(r);
     })>,
     Unit::kValu, kF, 0},
    {"v_cvt_i32_f64", "i=d", &narrow<to_i32>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_u32_f64", "i=d", &narrow<to_u32>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_f64_f32", "d=f", &widen<([](u32 a) { return static_cast<double>(f32(a)); })>, Unit::kValu, kF, 0},
    {"v_cvt_f64_i32", "d=i", &widen<([](u32 a) { return static_cast<double>(static_cast<i32>(a)); })>, Unit::kValu, kF,
     0},
    {"v_cvt_f64_u32", "d=i", &widen<([](u32 a) { return static_cast<double>(a); })>, Unit::kValu, kF, 0},
    {"v_div_scale_f32", "f,m=fff", &div_scale_f32, Unit::kValu, kF, 0},
    {"v_div_scale_f64", "d,m=ddd", &div_scale_f64, Unit::kValu, kF, 0},
    {"v_div_fmas_f32", "f=fff", &div_fmas_f32, Unit::kValu, kF | kReadsVcc, 0},
    {"v_div_fmas_f64", "d=ddd", &div_fmas_f64, Unit::kValu, kF | kReadsVcc, 0},
    {"v_div_fixup_f32", "f=fff", &div_fixup_f32, Unit::kValu, kF, 0},
    {"v_div_fixup_f64", "d=ddd", &div_fixup_f64, Unit::kValu, kF, 0},
};

}  // namespace

RowTable double_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
