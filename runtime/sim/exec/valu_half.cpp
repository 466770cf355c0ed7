// f16 arithmetic: scalar halves with op_sel, packed pairs, mixed precision and dot products (gfx950-isa.md 2).
// Compiled once per host instruction set.
//
// Sums and products of two halves are exact in f32 or round there without harm (24 >= 2 * 11 + 2 bits); the fused forms
// go through double with round-to-odd, so that the final rounding to f16 is the only one.
#include <cmath>

#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

ZYFA_SIM_INLINE u32 flush_h(u32 x, u32 mask) { return (x & 0x7c00) ? x : x & mask; }

// Float nearest to x, or when x lies between two floats the one with an odd last bit: rounding it again is harmless.
ZYFA_SIM_INLINE float odd_float(double x) {
  const float f = static_cast<float>(x);
  const double back = static_cast<double>(f);
  if (back == x || x != x || std::fabs(f) == __builtin_inff()) return f;
  u32 r = raw(f);
  if (r & 1) return f;
  const bool away = std::fabs(back) > std::fabs(x);
  r = away ? r - 1 : r + 1;
  return f32(r);
}

struct HalfMode {
  u32 in, out, saturate;
};
ZYFA_SIM_INLINE u32 finish_half(float r, const HalfMode& m) {
  const u32 h = r != r ? 0x7e00u : to_f16(raw(r), m.saturate);
  return flush_h(h, m.out);
}

// D = F(a, b, c) on floats of the chosen halves; op_sel bit 3 writes the upper half and keeps the lower.
template <int N, bool Tied, auto F>
void half_op(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  const u32* old = w.v[op.dst.index].lane;
  if (Tied) s[N] = old;
  for (unsigned i = N + Tied; i < 3; ++i) s[i] = s[0];
  const HalfMode mode{w.f16_in, w.f16_out, w.fp16_ovfl()};
  const bool high = op.op_sel & 8;
  for (unsigned l = 0; l < kLanes; ++l) {
    float x[3];
    for (unsigned i = 0; i < 3; ++i) {
      const u32 shift = (i < N && ((op.op_sel >> i) & 1)) ? 16 : 0;
      x[i] = from_f16(flush_h((s[i][l] >> shift) & 0xffff, mode.in));
    }
    const u32 r = finish_half(F(x[0], x[1], x[2]), mode);
    to.lane[l] = high ? (old[l] & 0xffff) | (r << 16) : r;
  }
  close(w, op, Out{to.lane, false});
}

// Packed halves: op_sel / op_sel_hi choose, neg_lo / neg_hi negate.
template <int N, auto F>
void packed_half(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned i = N; i < 3; ++i) s[i] = s[0];
  const HalfMode mode{w.f16_in, w.f16_out, w.fp16_ovfl()};
  for (unsigned l = 0; l < kLanes; ++l) {
    u32 packed = 0;
    for (unsigned h = 0; h < 2; ++h) {
      float x[3];
      for (unsigned i = 0; i < 3; ++i) {
        const u32 sel = h ? op.op_sel_hi : op.op_sel, neg = h ? op.neg_hi : op.neg_lo;
        const u32 bits16 = (s[i][l] >> (((sel >> i) & 1) * 16)) & 0xffff;
        x[i] = from_f16(flush_h(bits16 ^ (((neg >> i) & 1) << 15), mode.in));
      }
      u32 r = finish_half(F(x[0], x[1], x[2]), mode);
      if (op.clamp) r = (r & 0x8000) || (r & 0x7fff) > 0x7c00 ? 0 : r > 0x3c00 ? 0x3c00 : r;
      packed |= r << (16 * h);
    }
    to.lane[l] = packed;
  }
  close(w, op, Out{to.lane, false});
}

ZYFA_SIM_INLINE float fused(float a, float b, float c) {
  return odd_float(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}
// A NaN operand is ignored; +0 > -0.
ZYFA_SIM_INLINE float max_number(float a, float b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return f32(raw(a) & raw(b));
  return a > b ? a : b;
}
ZYFA_SIM_INLINE float min_number(float a, float b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return f32(raw(a) | raw(b));
  return a < b ? a : b;
}
ZYFA_SIM_INLINE float median(float a, float b, float c) {
  if (a != a || b != b || c != c) return min_number(min_number(a, b), c);
  return max_number(min_number(a, b), min_number(max_number(a, b), c));
}
ZYFA_SIM_INLINE float exp2_h(float a) { return odd_float(std::exp2(static_cast<double>(a))); }
ZYFA_SIM_INLINE float log2_h(float a) { return odd_float(std::log2(static_cast<double>(a))); }
ZYFA_SIM_INLINE float scale_h(float a, int e) { return odd_float(std::ldexp(static_cast<double>(a), e)); }
void ldexp_half(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const HalfMode mode{w.f16_in, w.f16_out, w.fp16_ovfl()};
  for (unsigned l = 0; l < kLanes; ++l) {
    const float x = from_f16(flush_h(a[l] & 0xffff, mode.in));
    to.lane[l] = finish_half(scale_h(x, static_cast<std::int16_t>(b[l])), mode);
  }
  close(w, op, Out{to.lane, false});
}

// Sources of the mixed forms: f32, or a half of f16 when op_sel_hi says so; abs/neg arrive as neg_hi/neg_lo.
enum class MixTo { kF32, kLow, kHigh };
template <MixTo To>
void mix(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = fetch(w, op, i, t[i]);
  const u32* old = w.v[op.dst.index].lane;
  for (unsigned l = 0; l < kLanes; ++l) {
    float x[3];
    for (unsigned i = 0; i < 3; ++i) {
      u32 v = s[i][l];
      if ((op.op_sel_hi >> i) & 1) v = raw(from_f16(flush_h((v >> (((op.op_sel >> i) & 1) * 16)) & 0xffff, w.f16_in)));
      x[i] = f32(flush32(v, w.f32_in));
    }
    const u32 r = fix_nan(__builtin_fmaf(x[0], x[1], x[2]), x[0], x[1], x[2]);
    if constexpr (To == MixTo::kF32) {
      to.lane[l] = flush32(r, w.f32_out);
    } else {
      const u32 h = flush_h(to_f16(r, w.fp16_ovfl()), w.f16_out);
      to.lane[l] = To == MixTo::kLow ? (old[l] & 0xffff0000u) | h : (old[l] & 0xffff) | (h << 16);
    }
  }
  close(w, op, Out{to.lane, false});
}

// v_dot2: two exact products and the addend, one f32 fma after the other; denormal inputs are kept (gfx950-isa.md 2).
template <bool Tied, auto Decode>
void dot2(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* b = fetch(w, op, 1, t[1]);
  const u32* c = Tied ? w.v[op.dst.index].lane : fetch(w, op, 2, t[2]);
  for (unsigned l = 0; l < kLanes; ++l) {
    const float low = __builtin_fmaf(Decode(a[l] & 0xffff), Decode(b[l] & 0xffff), f32(c[l]));
    const float r = __builtin_fmaf(Decode(a[l] >> 16), Decode(b[l] >> 16), low);
    to.lane[l] = r != r ? 0x7fc00000u : raw(r);
  }
  close(w, op, Out{to.lane, false});
}

#define H1(name, unit, expr) \
  {name, "h=h", (&half_op<1, false, ([](float a, float, float) { return expr; })>), unit, kFloatMods | kOpSel, 0}
#define H2(name, expr)                                                                                      \
  {name, "h=hh", (&half_op<2, false, ([](float a, float b, float) { return expr; })>), Unit::kValu, kFloatMods | kOpSel, \
   0}
#define H3(name, expr)                                        \
  {name,                                                      \
   "h=hhh",                                                   \
   (&half_op<3, false, ([](float a, float b, float c) { return expr; })>), \
   Unit::kValu,                                               \
   kFloatMods | kOpSel,                                       \
   0}
#define P2(name, expr)                                                \
  {name,                                                              \
   "q=qq",                                                            \
   (&packed_half<2, ([](float a, float b, float) { return expr; })>), \
   Unit::kValu,                                                       \
   kFloatMods | kPacked | kIntClamp,                                  \
   0}

constexpr OpRow kRows[] = {
    H2("v_add_f16", a + b),
    H2("v_sub_f16", a - b),
    H2("v_subrev_f16", b - a),
    H2("v_mul_f16", a* b),
    H2("v_max_f16", max_number(a, b)),
    H2("v_min_f16", min_number(a, b)),
    H3("v_fma_f16", fused(a, b, c)),
    H3("v_mad_f16", fused(a, b, c)),
    H3("v_max3_f16", max_number(max_number(a, b), c)),
    H3("v_min3_f16", min_number(min_number(a, b), c)),
    H3("v_med3_f16", median(a, b, c)),
    {"v_fmac_f16", "h=hh", (&half_op<2, true, ([](float a, float b, float c) { return fused(a, b, c); })>), Unit::kValu,
     kFloatMods | kOpSel | kTied, 0},
    H1("v_rcp_f16", Unit::kTrans, odd_float(1.0 / static_cast<double>(a))),
    H1("v_sqrt_f16", Unit::kTrans, odd_float(std::sqrt(static_cast<double>(a)))),
    H1("v_rsq_f16", Unit::kTrans, odd_float(1.0 / std::sqrt(static_cast<double>(a)))),
    H1("v_exp_f16", Unit::kTrans, exp2_h(a)),
    H1("v_log_f16", Unit::kTrans, log2_h(a)),
    H1("v_trunc_f16", Unit::kValu, __builtin_truncf(a)),
    H1("v_ceil_f16", Unit::kValu, __builtin_ceilf(a)),
    H1("v_floor_f16", Unit::kValu, __builtin_floorf(a)),
    H1("v_rndne_f16", Unit::kValu, __builtin_rintf(a)),
    {"v_ldexp_f16", "h=hi", &ldexp_half, Unit::kValu, kFloatMods, 0},
    P2("v_pk_add_f16", a + b),
    P2("v_pk_mul_f16", a* b),
    P2("v_pk_max_f16", max_number(a, b)),
    P2("v_pk_min_f16", min_number(a, b)),
    {"v_pk_fma_f16", "q=qqq", (&packed_half<3, fused>), Unit::kValu, kFloatMods | kPacked | kIntClamp, 0},
    {"v_fma_mix_f32", "f=fff", &mix<MixTo::kF32>, Unit::kValu, kFloatMods | kOpSel, 0},
    {"v_fma_mixlo_f16", "i=fff", &mix<MixTo::kLow>, Unit::kValu, kFloatMods | kOpSel | kPartialWrite, 0},
    {"v_fma_mixhi_f16", "i=fff", &mix<MixTo::kHigh>, Unit::kValu, kFloatMods | kOpSel | kPartialWrite, 0},
    {"v_dot2_f32_f16", "f=qqf", (&dot2<false, from_f16>), Unit::kValu, kDot, 0},
    {"v_dot2_f32_bf16", "f=qqf", (&dot2<false, from_bf16>), Unit::kValu, kDot, 0},
    {"v_dot2c_f32_f16", "f=qq", (&dot2<true, from_f16>), Unit::kValu, kDot | kTied, 0},
    {"v_dot2c_f32_bf16", "f=qq", (&dot2<true, from_bf16>), Unit::kValu, kDot | kTied, 0},
};

}  // namespace

RowTable half_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
