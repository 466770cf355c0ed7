// Floating-point VALU instructions of 32 bits, packed pairs and transcendental ones (gfx950-isa.md 2).
// Compiled once per host instruction set.
#include <cmath>

#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

template <auto F>
void f32_1(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in, om = w.f32_out;
  u32* d = out.p;
  ZYFA_LANES {
    const float x = f32(flush32(a[l], in));
    d[l] = flush32(fix_nan(F(x), x, x), om);
  }
  close(w, op, out);
}

template <auto F>
void f32_2(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in, om = w.f32_out;
  u32* d = out.p;
  ZYFA_LANES {
    const float x = f32(flush32(a[l], in)), y = f32(flush32(b[l], in));
    d[l] = flush32(fix_nan(F(x, y), x, y), om);
  }
  close(w, op, out);
}

// d = a * b + c with one rounding; C is where the addend comes from.
enum class Addend { kSource2, kDestination, kSource1AsAddend };
template <Addend C>
void fma_f32(Wave& w, const MicroOp& op) {
  Temp ta, tb, tc, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, C == Addend::kSource1AsAddend ? 2 : 1, tb);
  const u32* c = C == Addend::kDestination ? w.v[op.dst.index].lane
                 : C == Addend::kSource2   ? fetch(w, op, 2, tc)
                                           : fetch(w, op, 1, tc);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in, om = w.f32_out;
  u32* d = out.p;
  ZYFA_LANES {
    const float x = f32(flush32(a[l], in)), y = f32(flush32(b[l], in)), z = f32(flush32(c[l], in));
    d[l] = flush32(fix_nan(__builtin_fmaf(x, y, z), x, y, z), om);
  }
  close(w, op, out);
}

// v_max/v_min: a NaN operand is ignored, +0 > -0; IEEE = 1 answers a signalling NaN with its quiet form.
template <bool Max>
ZYFA_SIM_INLINE u32 number_extreme(u32 a, u32 b) {
  const float x = f32(a), y = f32(b);
  const u32 zeros = Max ? (a & b) : (a | b);  // of +0 and -0
  const bool first = Max ? x > y : x < y;
  const u32 ordered = x == y ? zeros : first ? a : b;
  return x != x ? b : y != y ? a : ordered;
}
// Equal values have equal bits but for zeros, so AND / OR of them picks the sign alone.
ZYFA_SIM_INLINE u32 signalling(u32 x) { return (x & 0x7fffffffu) > 0x7f800000u && !(x & 0x00400000u); }

template <bool Max>
ZYFA_SIM_INLINE u32 extreme(u32 a, u32 b, u32 ieee) {
  const u32 r = number_extreme<Max>(a, b);
  const u32 sa = signalling(a) & ieee, sb = signalling(b) & ieee;
  return sa ? quiet(a) : sb ? quiet(b) : r;
}

template <bool Max>
void extreme_2(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in, ieee = w.ieee();
  u32* d = out.p;
  if (ieee) {
    ZYFA_LANES d[l] = extreme<Max>(flush32(a[l], in), flush32(b[l], in), 1);
  } else {
    ZYFA_LANES d[l] = number_extreme<Max>(flush32(a[l], in), flush32(b[l], in));
  }
  close(w, op, out);
}

enum class Three { kMax, kMin, kMedian, kMaximum, kMinimum };
template <Three K>
ZYFA_SIM_INLINE u32 three(u32 a, u32 b, u32 c, u32 ieee, u32 dx10) {
  if constexpr (K == Three::kMax) return extreme<true>(extreme<true>(a, b, ieee), c, ieee);
  if constexpr (K == Three::kMin) return extreme<false>(extreme<false>(a, b, ieee), c, ieee);
  if constexpr (K == Three::kMedian) {
    const u32 any_nan = u32{f32(a) != f32(a)} | u32{f32(b) != f32(b)} | u32{f32(c) != f32(c)};
    const u32 lowest = extreme<false>(extreme<false>(a, b, ieee), c, ieee);
    // The operand that equals the largest is left out; the larger of the two others is the median.
    const float top = f32(number_extreme<true>(number_extreme<true>(a, b), c));
    const bool first = top == f32(a), second = top == f32(b);
    const u32 median = number_extreme<true>(first ? b : a, first || second ? c : b);
    return any_nan ? lowest : median;
  }
  // IEEE-2019 maximum/minimum: NaN propagates; DX10_CLAMP turns it into 0.
  constexpr bool kMax = K == Three::kMaximum;
  const u32 r = number_extreme<kMax>(number_extreme<kMax>(a, b), c);
  const float x = f32(a), y = f32(b), z = f32(c);
  const u32 nan = dx10 ? 0u : x != x ? quiet(a) : y != y ? quiet(b) : quiet(c);
  const u32 any_nan = u32{x != x} | u32{y != y} | u32{z != z};
  return any_nan ? nan : r;
}
template <Three K>
void three_f32(Wave& w, const MicroOp& op) {
  Temp ta, tb, tc, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32* c = fetch(w, op, 2, tc);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in, ieee = w.ieee(), dx10 = w.dx10_clamp();
  u32* d = out.p;
  if (ieee) {
    ZYFA_LANES d[l] = three<K>(flush32(a[l], in), flush32(b[l], in), flush32(c[l], in), 1, dx10);
  } else {
    ZYFA_LANES d[l] = three<K>(flush32(a[l], in), flush32(b[l], in), flush32(c[l], in), 0, dx10);
  }
  close(w, op, out);
}

// Packed pairs: the low result takes dword op_sel[i] of source i, the high one dword op_sel_hi[i].
template <int N, auto F>
void packed_f32(Wave& w, const MicroOp& op) {
  Temp t[2][3], to[2];
  const u32* s[2][3] = {};
  u32 flip[2][3] = {};
  for (unsigned i = 0; i < N; ++i) {
    s[0][i] = fetch(w, op, i, t[0][i], (op.op_sel >> i) & 1);
    s[1][i] = fetch(w, op, i, t[1][i], (op.op_sel_hi >> i) & 1);
    flip[0][i] = ((op.neg_lo >> i) & 1) << 31;
    flip[1][i] = ((op.neg_hi >> i) & 1) << 31;
  }
  const u32 in = w.f32_in, om = w.f32_out;
  for (unsigned h = 0; h < 2; ++h) {
    const u32 *a = s[h][0], *b = s[h][1], *c = N == 3 ? s[h][2] : s[h][1];
    const u32 fa = flip[h][0], fb = flip[h][1], fc = flip[h][2];
    u32* d = to[h].lane;
    ZYFA_LANES {
      const float x = f32(flush32(a[l] ^ fa, in)), y = f32(flush32(b[l] ^ fb, in)), z = f32(flush32(c[l] ^ fc, in));
      d[l] = flush32(fix_nan(F(x, y, z), x, y, N == 3 ? z : x), om);
    }
  }
  for (unsigned h = 0; h < 2; ++h) close(w, op, Out{to[h].lane, false}, h);
}

// 2^x in double: |error| below 1e-15 relative, so that one rounding to f32 is right but for exact near-ties.
ZYFA_SIM_INLINE double exp2_double(double x) {
  const double shifter = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double n = (x + shifter) - shifter;
  const double t = (x - n) * 0.69314718055994530942;  // |t| <= 0.3466
  double p = 1.0 / 479001600.0;
  p = p * t + 1.0 / 39916800.0;
  p = p * t + 1.0 / 3628800.0;
  p = p * t + 1.0 / 362880.0;
  p = p * t + 1.0 / 40320.0;
  p = p * t + 1.0 / 5040.0;
  p = p * t + 1.0 / 720.0;
  p = p * t + 1.0 / 120.0;
  p = p * t + 1.0 / 24.0;
  p = p * t + 1.0 / 6.0;
  p = p * t + 0.5;
  p = p * t + 1.0;
  p = p * t + 1.0;
  // n + 1023 sits in the low bits of the shifted sum.
  const u64 exponent = (bits<u64>(n + (shifter + 1023.0)) & 0x7ff) << 52;
  return p * bits<double>(exponent);
}
ZYFA_SIM_INLINE float exp2_f32(float a) {
  const bool low = !(a >= -126.0f), high = a >= 128.0f;
  const double x = (low | high) ? 0.0 : static_cast<double>(a);
  const float r = static_cast<float>(exp2_double(x));
  return a != a ? a : low ? 0.0f : high ? __builtin_inff() : r;
}

// log2(x) of a positive normal float, in double.
ZYFA_SIM_INLINE double log2_double(u32 x) {
  // The exponent is chosen so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const u32 biased = x - 0x3f3504f3u;
  const i32 e = static_cast<i32>(biased) >> 23;
  const double m = static_cast<double>(f32(x - (static_cast<u32>(e) << 23)));
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  p = p * z + 1.0;
  return static_cast<double>(e) + s * p * 2.88539008177792681472;
}
ZYFA_SIM_INLINE float log2_f32(float a) {
  const u32 x = raw(a);
  const bool normal = a > 0.0f && a < __builtin_inff();
  const float r = static_cast<float>(log2_double(normal ? x : 0x3f800000u));
  const float negative = f32(0xffc00000u);
  return a != a ? a : a == 0.0f ? -__builtin_inff() : a < 0.0f ? negative : a == __builtin_inff() ? a : r;
}

// Denormal inputs and results are flushed whatever MODE says; those of sine and cosine follow MODE.
template <auto F, bool Mode = false>
void trans_f32(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  const u32 in = Mode ? w.f32_in : 0x80000000u, om = Mode ? w.f32_out : 0x80000000u;
  u32* d = out.p;
  ZYFA_LANES {
    const float x = f32(flush32(a[l], in));
    const float r = F(x);
    d[l] = flush32(x != x ? quiet(raw(x)) : raw(r), om);
  }
  close(w, op, out);
}
ZYFA_SIM_INLINE float rcp(float x) { return 1.0f / x; }
ZYFA_SIM_INLINE float invalid() { return f32(0xffc00000u); }
ZYFA_SIM_INLINE float rsq(float x) {
  return x < 0.0f ? invalid() : static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
}
ZYFA_SIM_INLINE float root(float x) { return x < 0.0f ? invalid() : __builtin_sqrtf(x); }
// The argument counts revolutions; -0 stays -0, whole negative numbers give +0 (V_SIN_F32 examples of the guide).
ZYFA_SIM_INLINE float sine(float x) {
  if (!(std::fabs(x) < __builtin_inff())) return invalid();
  const double y = static_cast<double>(x);
  return x == 0.0f ? x : static_cast<float>(std::sin((y - std::floor(y)) * 6.28318530717958647692));
}
ZYFA_SIM_INLINE float cosine(float x) {
  if (!(std::fabs(x) < __builtin_inff())) return invalid();
  const double y = static_cast<double>(x);
  return static_cast<float>(std::cos((y - std::floor(y)) * 6.28318530717958647692));
}
ZYFA_SIM_INLINE float fraction(float x) {
  const float r = x - std::floor(x);
  return r > 0x1.fffffep-1f ? 0x1.fffffep-1f : r;
}

ZYFA_SIM_INLINE float scale_by(float x, i32 e) { return std::ldexp(x, e); }
void ldexp_f32(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  for (unsigned l = 0; l < kLanes; ++l) {
    const float x = f32(flush32(a[l], w.f32_in));
    const i32 e = static_cast<i32>(b[l]);
    out.p[l] = flush32(fix_nan(scale_by(x, e < -1000 ? -1000 : e > 1000 ? 1000 : e), x, x), w.f32_out);
  }
  close(w, op, out);
}
ZYFA_SIM_INLINE bool is_finite(float x) { return std::fabs(x) < __builtin_inff(); }
void frexp_exp_f32(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  for (unsigned l = 0; l < kLanes; ++l) {
    const float x = f32(flush32(a[l], w.f32_in));
    int e = 0;
    if (is_finite(x)) static_cast<void>(std::frexp(x, &e));
    out.p[l] = static_cast<u32>(e);
  }
  close(w, op, out);
}
void frexp_mant_f32(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  for (unsigned l = 0; l < kLanes; ++l) {
    const float x = f32(flush32(a[l], w.f32_in));
    int e = 0;
    out.p[l] = x != x ? quiet(raw(x)) : raw(is_finite(x) ? std::frexp(x, &e) : x);
  }
  close(w, op, out);
}

constexpr auto kAdd = [](float a, float b) { return a + b; };
constexpr auto kSub = [](float a, float b) { return a - b; };
constexpr auto kSubrev = [](float a, float b) { return b - a; };
constexpr auto kMul = [](float a, float b) { return a * b; };
constexpr auto kMulLegacy = [](float a, float b) { return (a == 0.0f || b == 0.0f) ? 0.0f : a * b; };
constexpr auto kPkAdd = [](float a, float b, float) { return a + b; };
constexpr auto kPkMul = [](float a, float b, float) { return a * b; };
constexpr auto kPkFma = [](float a, float b, float c) { return __builtin_fmaf(a, b, c); };

constexpr u32 kF = kFloatMods;
constexpr OpRow kRows[] = {
    {"v_add_f32", "f=ff", &f32_2<kAdd>, Unit::kValu, kF, 0},
    {"v_sub_f32", "f=ff", &f32_2<kSub>, Unit::kValu, kF, 0},
    {"v_subrev_f32", "f=ff", &f32_2<kSubrev>, Unit::kValu, kF, 0},
    {"v_mul_f32", "f=ff", &f32_2<kMul>, Unit::kValu, kF, 0},
    {"v_mul_legacy_f32", "f=ff", &f32_2<kMulLegacy>, Unit::kValu, kF, 0},
    {"v_fma_f32", "f=fff", &fma_f32<Addend::kSource2>, Unit::kValu, kF, 0},
    {"v_fmac_f32", "f=ff", &fma_f32<Addend::kDestination>, Unit::kValu, kF | kTied, 0},
    {"v_fmaak_f32", "f=fff", &fma_f32<Addend::kSource2>, Unit::kValu, kF, 0},
    {"v_fmamk_f32", "f=fff", &fma_f32<Addend::kSource2>, Unit::kValu, kF, 0},
    {"v_max_f32", "f=ff", &extreme_2<true>, Unit::kValu, kF, 0},
    {"v_min_f32", "f=ff", &extreme_2<false>, Unit::kValu, kF, 0},
    {"v_max3_f32", "f=fff", &three_f32<Three::kMax>, Unit::kValu, kF, 0},
    {"v_min3_f32", "f=fff", &three_f32<Three::kMin>, Unit::kValu, kF, 0},
    {"v_med3_f32", "f=fff", &three_f32<Three::kMedian>, Unit::kValu, kF, 0},
    {"v_maximum3_f32", "f=fff", &three_f32<Three::kMaximum>, Unit::kValu, kF, 0},
    {"v_minimum3_f32", "f=fff", &three_f32<Three::kMinimum>, Unit::kValu, kF, 0},
    {"v_pk_add_f32", "p=pp", &packed_f32<2, kPkAdd>, Unit::kValu, kF | kPacked, 0},
    {"v_pk_mul_f32", "p=pp", &packed_f32<2, kPkMul>, Unit::kValu, kF | kPacked, 0},
    {"v_pk_fma_f32", "p=ppp", &packed_f32<3, kPkFma>, Unit::kValu, kF | kPacked, 0},
    {"v_exp_f32", "f=f", &trans_f32<exp2_f32>, Unit::kTrans, kF, 0},
    {"v_exp_legacy_f32", "f=f", &trans_f32<exp2_f32>, Unit::kTrans, kF, 0},
    {"v_log_f32", "f=f", &trans_f32<log2_f32>, Unit::kTrans, kF, 0},
    {"v_log_legacy_f32", "f=f", &trans_f32<log2_f32>, Unit::kTrans, kF, 0},
    {"v_rcp_f32", "f=f", &trans_f32<rcp>, Unit::kTrans, kF, 0},
    {"v_rcp_iflag_f32", "f=f", &trans_f32<rcp>, Unit::kTrans, kF, 0},
    {"v_rsq_f32", "f=f", &trans_f32<rsq>, Unit::kTrans, kF, 0},
    {"v_sqrt_f32", "f=f", &trans_f32<root>, Unit::kTrans, kF, 0},
    {"v_sin_f32", "f=f", (&trans_f32<sine, true>), Unit::kTrans, kF, 0},
    {"v_cos_f32", "f=f", (&trans_f32<cosine, true>), Unit::kTrans, kF, 0},
    {"v_fract_f32", "f=f", &f32_1<fraction>, Unit::kValu, kF, 0},
    {"v_trunc_f32", "f=f", &f32_1<[](float x) { return __builtin_truncf(x); }>, Unit::kValu, kF, 0},
    {"v_ceil_f32", "f=f", &f32_1<[](float x) { return __builtin_ceilf(x); }>, Unit::kValu, kF, 0},
    {"v_floor_f32", "f=f", &f32_1<[](float x) { return __builtin_floorf(x); }>, Unit::kValu, kF, 0},
    {"v_rndne_f32", "f=f", &f32_1<[](float x) { return __builtin_roundevenf(x); }>, Unit::kValu, kF, 0},
    {"v_ldexp_f32", "f=fi", &ldexp_f32, Unit::kValu, kF, 0},
    {"v_frexp_exp_i32_f32", "i=f", &frexp_exp_f32, Unit::kValu, kF | kIntClamp, 0},
    {"v_frexp_mant_f32", "f=f", &frexp_mant_f32, Unit::kValu, kF, 0},
};

}  // namespace

RowTable float_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
