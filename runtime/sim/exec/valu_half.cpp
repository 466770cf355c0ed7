// f16 arithmetic: scalar halves with op_sel, packed pairs, mixed precision and dot products (CDNA4 ISA
// guide 12.7-12.11). Compiled once per host instruction set.
//
// Values are computed in double, exactly or rounded to odd, and rounded once to f16 by MODE in integer arithmetic
// (half_of), so the host stays in round-to-nearest. A NaN source gives its quiet form.
#include <cmath>

#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

ZYFA_SIM_INLINE double half_value(u32 h) { return static_cast<double>(from_f16(h)); }

// NaN result of up to three sources: the first NaN made quiet, 0 when there is none.
ZYFA_SIM_INLINE u32 half_nan(u32 a, u32 b, u32 c) {
  return is_nan_half(a) ? quiet_half(a) : is_nan_half(b) ? quiet_half(b) : is_nan_half(c) ? quiet_half(c) : 0;
}
ZYFA_SIM_INLINE u32 finish_half(double r, u32 nan, const HalfMode& m) {
  return nan ? nan : r != r ? 0x7e00u : half_of(r, m);
}
// The unfused forms flush denormals whatever MODE says ("denormals are flushed", V_MAD_F16) and round the product.
ZYFA_SIM_INLINE HalfMode unfused_mode(const Wave& w) {
  HalfMode m = half_mode(w);
  m.in = m.out = 0x8000;
  return m;
}

// An exact zero is the sum of opposites: +0, but -0 when rounding down, which is the zero of the negated sum.
ZYFA_SIM_INLINE double rounded_zero(double r, double negated, const HalfMode& m) {
  return r == 0 && m.round == 2 ? -negated : r;
}

// Functions on halves: u32 F(a, b, c, mode, ieee) on bit patterns whose denormals are flushed.
enum class Kind { kOther, kSum, kFused };
template <auto F, Kind K = Kind::kOther>
struct Arithmetic {
  static ZYFA_SIM_INLINE u32 run(u32 ha, u32 hb, u32 hc, const HalfMode& m, u32) {
    const double a = half_value(ha), b = half_value(hb), c = half_value(hc);
    double r = F(a, b, c);
    if constexpr (K == Kind::kSum) r = rounded_zero(r, F(-a, -b, c), m);
    if constexpr (K == Kind::kFused) r = rounded_zero(r, F(-a, b, -c), m);
    return finish_half(r, half_nan(ha, hb, hc), m);
  }
};
ZYFA_SIM_INLINE double product(double a, double b) { return a * b; }
ZYFA_SIM_INLINE u32 unfused(u32 a, u32 b, u32 c, const HalfMode& m, u32) {
  const u32 nan = half_nan(a, b, c);
  const u32 p = finish_half(product(half_value(a), half_value(b)), nan, m);
  if (is_nan_half(p)) return p;
  const double x = half_value(p), y = half_value(c);
  return finish_half(rounded_zero(x + y, -x - y, m), 0, m);
}

// v_max/v_min: a NaN operand is ignored, +0 > -0; IEEE = 1 answers a signalling NaN with its quiet form.
ZYFA_SIM_INLINE bool signalling_half(u32 h) { return is_nan_half(h) && !(h & 0x200); }
template <bool Max>
ZYFA_SIM_INLINE u32 extreme_half(u32 a, u32 b, u32 ieee) {
  if (ieee && signalling_half(a)) return quiet_half(a);
  if (ieee && signalling_half(b)) return quiet_half(b);
  if (is_nan_half(a)) return b;
  if (is_nan_half(b)) return a;
  const float x = from_f16(a), y = from_f16(b);
  if (x == y) return Max ? a & b : a | b;
  return (Max ? x > y : x < y) ? a : b;
}
template <bool Max>
ZYFA_SIM_INLINE u32 max_min(u32 a, u32 b, u32, const HalfMode&, u32 ieee) {
  return extreme_half<Max>(a, b, ieee);
}
template <bool Max>
ZYFA_SIM_INLINE u32 max_min3(u32 a, u32 b, u32 c, const HalfMode&, u32 ieee) {
  return extreme_half<Max>(extreme_half<Max>(a, b, ieee), c, ieee);
}
// The operand that equals the largest is left out; the larger of the two others is the median.
ZYFA_SIM_INLINE u32 median_half(u32 a, u32 b, u32 c, const HalfMode&, u32 ieee) {
  if (half_nan(a, b, c)) return extreme_half<false>(extreme_half<false>(a, b, ieee), c, ieee);
  const float top = from_f16(extreme_half<true>(extreme_half<true>(a, b, 0), c, 0));
  if (top == from_f16(a)) return extreme_half<true>(b, c, 0);
  if (top == from_f16(b)) return extreme_half<true>(a, c, 0);
  return extreme_half<true>(a, b, 0);
}
// IEEE-2019 maximum/minimum of three: NaN propagates, DX10_CLAMP turns it into 0.
template <bool Max>
ZYFA_SIM_INLINE u32 propagating3(u32 a, u32 b, u32 c, u32 dx10) {
  const u32 nan = half_nan(a, b, c);
  if (nan) return dx10 ? 0 : nan;
  return extreme_half<Max>(extreme_half<Max>(a, b, 0), c, 0);
}
// s0 quotient, s1 denominator, s2 numerator.
ZYFA_SIM_INLINE u32 div_fixup_half(u32 a, u32 b, u32 c, const HalfMode&, u32) {
  const u32 sign = (b ^ c) & 0x8000, denominator = b & 0x7fff, numerator = c & 0x7fff;
  if (is_nan_half(c)) return quiet_half(c);
  if (is_nan_half(b)) return quiet_half(b);
  if ((denominator == 0 && numerator == 0) || (denominator == 0x7c00 && numerator == 0x7c00)) return 0xfe00;
  if (denominator == 0 || numerator == 0x7c00) return sign | 0x7c00;
  if (denominator == 0x7c00 || numerator == 0) return sign;
  return sign | (a & 0x7fff);
}
ZYFA_SIM_INLINE u32 frexp_mant_half(u32 a, u32, u32, const HalfMode& m, u32) {
  if (is_nan_half(a)) return quiet_half(a);
  if ((a & 0x7c00) == 0x7c00) return a;
  int e = 0;
  return half_of(std::frexp(half_value(a), &e), m);
}
constexpr double kTwoPi = 6.28318530717958647692;
// The argument counts revolutions; -0 stays -0 but whole negative numbers give +0 (V_SIN_F16 examples of the guide).
ZYFA_SIM_INLINE double sine(double x) {
  return std::fabs(x) < __builtin_inf() ? (x == 0 ? x : std::sin((x - std::floor(x)) * kTwoPi)) : -__builtin_nan("");
}
ZYFA_SIM_INLINE double cosine(double x) {
  return std::fabs(x) < __builtin_inf() ? std::cos((x - std::floor(x)) * kTwoPi) : -__builtin_nan("");
}
// Invalid operands of these give the negative NaN (V_SIN_F16, V_SQRT_F16 examples).
template <auto F>
struct Transcendental {
  static ZYFA_SIM_INLINE u32 run(u32 a, u32, u32, const HalfMode& mode, u32) {
    if (is_nan_half(a)) return quiet_half(a);
    HalfMode m = mode;
    m.round = 0;
    const double r = F(half_value(a));
    return r != r ? 0xfe00u : half_of(r, m);
  }
};
// Largest f16 below 1, as for f32: x - floor(x) may round up to 1.
ZYFA_SIM_INLINE double fraction(double x) {
  const double r = x - std::floor(x);
  return r > 0x1.ffcp-1 ? 0x1.ffcp-1 : r;
}

// D = F(a, b, c) on the chosen halves.
template <int N, bool Tied, bool Unfused, auto F>
void half_op(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  const u32* old = w.v[op.dst.index].lane;
  if (Tied) s[N] = old;
  for (unsigned i = N + Tied; i < 3; ++i) s[i] = s[0];
  const HalfMode mode = Unfused ? unfused_mode(w) : half_mode(w);
  const HalfModifiers modifiers = half_modifiers(w, op);
  const HalfPlace place = half_place(op);
  const u32 ieee = w.ieee();
  u32 shift[3];
  for (unsigned i = 0; i < 3; ++i) shift[i] = i < N && ((op.op_sel >> i) & 1) ? 16 : 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    u32 x[3];
    for (unsigned i = 0; i < 3; ++i) x[i] = flush_h((s[i][l] >> shift[i]) & 0xffff, mode.in);
    to.lane[l] = place_half(place, modify_half(F(x[0], x[1], x[2], mode, ieee), modifiers), old[l]);
  }
  close(w, op, Out{to.lane, false});
}

// Packed halves: op_sel / op_sel_hi choose, neg_lo / neg_hi negate.
template <int N, bool Tied, auto F>
void packed_half(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  if (Tied) s[N] = w.v[op.dst.index].lane;
  for (unsigned i = N + Tied; i < 3; ++i) s[i] = s[0];
  const HalfMode mode = half_mode(w);
  const HalfModifiers modifiers{0, op.clamp, w.dx10_clamp(), false};
  const u32 flags = w.ieee() | (w.dx10_clamp() ? 2u : 0u);
  const u32 sel_hi = Tied ? 7u : op.op_sel_hi, sel_lo = Tied ? 0u : op.op_sel;
  for (unsigned l = 0; l < kLanes; ++l) {
    u32 packed = 0;
    for (unsigned h = 0; h < 2; ++h) {
      u32 x[3];
      for (unsigned i = 0; i < 3; ++i) {
        const u32 sel = h ? sel_hi : sel_lo, neg = h ? op.neg_hi : op.neg_lo;
        const u32 bits16 = (s[i][l] >> (((sel >> i) & 1) * 16)) & 0xffff;
        x[i] = flush_h(bits16 ^ (((neg >> i) & 1) << 15), mode.in);
      }
      packed |= modify_half(F(x[0], x[1], x[2], mode, flags), modifiers) << (16 * h);
    }
    to.lane[l] = packed;
  }
  close(w, op, Out{to.lane, false});
}

constexpr auto kAdd = [](double a, double b, double) { return a + b; };
constexpr auto kSub = [](double a, double b, double) { return a - b; };
constexpr auto kSubrev = [](double a, double b, double) { return b - a; };
constexpr auto kMul = [](double a, double b, double) { return a * b; };
constexpr auto kFused = [](double a, double b, double c) { return sum_to_odd(product(a, b), c); };

void ldexp_half(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const HalfMode mode = half_mode(w);
  const HalfModifiers modifiers = half_modifiers(w, op);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 x = flush_h(a[l] & 0xffff, mode.in);
    const i32 n = static_cast<std::int16_t>(b[l]);
    const double r = std::ldexp(half_value(x), n < -100 ? -100 : n > 100 ? 100 : n);
    to.lane[l] = modify_half(finish_half(r, half_nan(x, x, x), mode), modifiers);
  }
  close(w, op, Out{to.lane, false});
}

// Sources of the mixed forms: f32, or a half of f16 when op_sel_hi says so; abs/neg are printed on the operands and act
// on the f32 value. An inline constant has its value in either format. The sum is rounded to f32 by FP_ROUND bits 1:0
// (the engine sets the host's mode) and then to f16.
enum class MixTo { kF32, kLow, kHigh };
template <MixTo To>
void mix(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  bool halves[3];
  for (unsigned i = 0; i < 3; ++i) {
    s[i] = fetch(w, op, i, t[i]);
    halves[i] = ((op.op_sel_hi >> i) & 1) && op.src[i].kind != OperandKind::kConst;
  }
  const u32* old = w.v[op.dst.index].lane;
  const HalfMode mode = half_mode(w);
  const HalfModifiers modifiers = half_modifiers(w, op);
  for (unsigned l = 0; l < kLanes; ++l) {
    float x[3];
    for (unsigned i = 0; i < 3; ++i) {
      u32 v = s[i][l];
      if (halves[i]) v = raw(from_f16(flush_h((v >> (((op.op_sel >> i) & 1) * 16)) & 0xffff, mode.in)));
      if (op.src[i].abs) v &= 0x7fffffffu;
      if (op.src[i].neg) v ^= 0x80000000u;
      x[i] = f32(flush32(v, w.f32_in));
    }
    const u32 r = fix_nan(__builtin_fmaf(x[0], x[1], x[2]), x[0], x[1], x[2]);
    if constexpr (To == MixTo::kF32) {
      to.lane[l] = flush32(r, w.f32_out);
    } else {
      const u32 h = modify_half(half_of_f32(r, mode), modifiers);
      to.lane[l] = To == MixTo::kLow ? (old[l] & 0xffff0000u) | h : (old[l] & 0xffff) | (h << 16);
    }
  }
  close(w, op, Out{to.lane, false});
}

// v_dot2: exact products, rounded sums in the order of the guide; rounding is to nearest and denormal inputs are kept
// (gfx950-isa.md 2). neg_lo/neg_hi negate the halves of the first two sources; the accumulating forms have NEG and ABS
// in their place (guide, V_DOT2C_F32_BF16).
enum class DotOrder { kAddendFirst, kAddendLast };
template <bool Tied, DotOrder Order, auto Decode>
void dot2(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* b = fetch(w, op, 1, t[1]);
  const u32* c = Tied ? w.v[op.dst.index].lane : fetch(w, op, 2, t[2]);
  u32 flip[2];
  for (unsigned i = 0; i < 2; ++i) {
    const u32 lo = Tied ? op.src[i].neg : (op.neg_lo >> i) & 1, hi = Tied ? op.src[i].abs : (op.neg_hi >> i) & 1;
    flip[i] = (lo << 15) | (hi << 31);
  }
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 x = a[l] ^ flip[0], y = b[l] ^ flip[1];
    const float x0 = Decode(x & 0xffff), y0 = Decode(y & 0xffff), x1 = Decode(x >> 16), y1 = Decode(y >> 16);
    const float sum = Order == DotOrder::kAddendFirst ? __builtin_fmaf(x1, y1, __builtin_fmaf(x0, y0, f32(c[l])))
                                                      : __builtin_fmaf(x1, y1, x0 * y0) + f32(c[l]);
    to.lane[l] = sum != sum ? 0x7fc00000u : raw(sum);
  }
  if (op.clamp) modify_floats(w, op, to.lane);
  close(w, op, Out{to.lane, false});
}

constexpr u32 kH = kFloatMods | kIntClamp;           // clamp and omod are applied by the handler
constexpr u32 kKeeps = kH | kOpSel | kPartialWrite;  // the other half of the destination is kept
#define H1(name, expr)                                                                                   \
  {name,        "h=h", (&half_op<1, false, false, Arithmetic<([](double a, double, double) { return expr; })>::run>), \
   Unit::kValu, kH,    0}
#define HT(name, expr) \
  {name, "h=h", (&half_op<1, false, false, Transcendental<([](double a) { return expr; })>::run>), Unit::kTrans, kH, 0}
#define H2(name, ...) {name, "h=hh", (&half_op<2, false, false, __VA_ARGS__>), Unit::kValu, kH, 0}
#define H3(name, flags, ...) {name, "h=hhh", (&half_op<3, false, false, __VA_ARGS__>), Unit::kValu, flags, 0}
#define P2(name, ...) \
  {name, "q=qq", (&packed_half<2, false, __VA_ARGS__>), Unit::kValu, kFloatMods | kPacked | kIntClamp, 0}
#define P3(name, ...) \
  {name, "q=qqq", (&packed_half<3, false, __VA_ARGS__>), Unit::kValu, kFloatMods | kPacked | kIntClamp, 0}
#define DOT(name, tied, order, decode)                       \
  {name,                                                     \
   tied ? "f=qq" : "f=qqf",                                  \
   (&dot2<tied, DotOrder::order, decode>),                   \
   Unit::kValu,                                              \
   kDot | kIntClamp | (tied ? kTied | kFloatMods : kPacked), \
   0}

template <bool Max>
constexpr auto kPropagating3 =
    [](u32 a, u32 b, u32 c, const HalfMode&, u32 flags) { return propagating3<Max>(a, b, c, flags & 2); };
template <bool Max>
constexpr auto kPackedExtreme =
    [](u32 a, u32 b, u32, const HalfMode&, u32 flags) { return extreme_half<Max>(a, b, flags & 1); };

constexpr OpRow kRows[] = {
    H2("v_add_f16", Arithmetic<kAdd, Kind::kSum>::run),
    H2("v_sub_f16", Arithmetic<kSub, Kind::kSum>::run),
    H2("v_subrev_f16", Arithmetic<kSubrev, Kind::kSum>::run),
    H2("v_mul_f16", Arithmetic<kMul>::run),
    H2("v_max_f16", max_min<true>),
    H2("v_min_f16", max_min<false>),
    H3("v_fma_f16", kKeeps, Arithmetic<kFused, Kind::kFused>::run),
    H3("v_fma_legacy_f16", kH, Arithmetic<kFused, Kind::kFused>::run),
    {"v_mad_f16", "h=hhh", (&half_op<3, false, true, unfused>), Unit::kValu, kKeeps, 0},
    {"v_mad_legacy_f16", "h=hhh", (&half_op<3, false, true, unfused>), Unit::kValu, kH, 0},
    {"v_mac_f16", "h=hh", (&half_op<2, true, true, unfused>), Unit::kValu, kH | kTied, 0},
    {"v_madak_f16", "h=hhh", (&half_op<3, false, true, unfused>), Unit::kValu, kH, 0},
    {"v_madmk_f16", "h=hhh", (&half_op<3, false, true, unfused>), Unit::kValu, kH, 0},
    H3("v_max3_f16", kKeeps, max_min3<true>),
    H3("v_min3_f16", kKeeps, max_min3<false>),
    H3("v_med3_f16", kKeeps, median_half),
    H3("v_div_fixup_f16", kKeeps, div_fixup_half),
    H3("v_div_fixup_legacy_f16", kH, div_fixup_half),
    HT("v_rcp_f16", 1.0 / a),
    HT("v_sqrt_f16", std::sqrt(a)),
    HT("v_rsq_f16", 1.0 / std::sqrt(a)),
    HT("v_exp_f16", std::exp2(a)),
    HT("v_log_f16", std::log2(a)),
    HT("v_sin_f16", sine(a)),
    HT("v_cos_f16", cosine(a)),
    H1("v_trunc_f16", std::trunc(a)),
    H1("v_ceil_f16", std::ceil(a)),
    H1("v_floor_f16", std::floor(a)),
    H1("v_rndne_f16", __builtin_roundeven(a)),
    H1("v_fract_f16", fraction(a)),
    {"v_frexp_mant_f16", "h=h", (&half_op<1, false, false, frexp_mant_half>), Unit::kValu, kH, 0},
    {"v_ldexp_f16", "h=hi", &ldexp_half, Unit::kValu, kH, 0},
    P2("v_pk_add_f16", Arithmetic<kAdd, Kind::kSum>::run),
    P2("v_pk_mul_f16", Arithmetic<kMul>::run),
    P2("v_pk_max_f16", kPackedExtreme<true>),
    P2("v_pk_min_f16", kPackedExtreme<false>),
    P3("v_pk_fma_f16", Arithmetic<kFused, Kind::kFused>::run),
    P3("v_pk_maximum3_f16", kPropagating3<true>),
    P3("v_pk_minimum3_f16", kPropagating3<false>),
    {"v_pk_fmac_f16", "q=qq", (&packed_half<2, true, Arithmetic<kFused, Kind::kFused>::run>), Unit::kValu, kTied, 0},
    {"v_fma_mix_f32", "f=xxx", &mix<MixTo::kF32>, Unit::kValu, kFloatMods | kOpSel, 0},
    {"v_fma_mixlo_f16", "i=xxx", &mix<MixTo::kLow>, Unit::kValu, kH | kOpSel | kPartialWrite, 0},
    {"v_fma_mixhi_f16", "i=xxx", &mix<MixTo::kHigh>, Unit::kValu, kH | kOpSel | kPartialWrite, 0},
    DOT("v_dot2_f32_f16", false, kAddendFirst, from_f16),
    DOT("v_dot2_f32_bf16", false, kAddendLast, from_bf16),
    DOT("v_dot2c_f32_f16", true, kAddendFirst, from_f16),
    DOT("v_dot2c_f32_bf16", true, kAddendFirst, from_bf16),
};

}  // namespace

RowTable half_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
