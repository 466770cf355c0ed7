// Number formats of gfx950 and their conversions (gfx950-isa.md 1.2 and 2): OCP fp8/bf8, MX fp6/bf6/fp4, f16, bf16.
// Branch-free where it runs in lane loops. Internal linkage: compiled per instruction set.
#pragma once

#include "runtime/sim/exec/lanes.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

ZYFA_SIM_INLINE float scale2(int e) { return f32(static_cast<u32>(127 + e) << 23); }

// E4M3FN: bias 7, 0x7f is NaN.
ZYFA_SIM_INLINE float from_fp8(u32 x) {
  const float magnitude = f32((x & 0x7f) << 20) * scale2(120);
  const u32 r = (x & 0x7f) == 0x7f ? 0x7fc00000u : raw(magnitude);
  return f32(r | ((x & 0x80) << 24));
}
// E5M2: bias 15, has infinities.
ZYFA_SIM_INLINE float from_bf8(u32 x) {
  const u32 m = x & 0x7f;
  const float magnitude = f32(m << 21) * scale2(112);
  const u32 r = m > 0x7c ? 0x7fc00000u : m == 0x7c ? 0x7f800000u : raw(magnitude);
  return f32(r | ((x & 0x80) << 24));
}
// E2M3, E3M2 and E2M1: no special values.
ZYFA_SIM_INLINE float from_fp6(u32 x) { return f32(raw(f32((x & 0x1f) << 20) * scale2(126)) | ((x & 0x20) << 26)); }
ZYFA_SIM_INLINE float from_bf6(u32 x) { return f32(raw(f32((x & 0x1f) << 21) * scale2(124)) | ((x & 0x20) << 26)); }
ZYFA_SIM_INLINE float from_fp4(u32 x) { return f32(raw(f32((x & 0x7) << 22) * scale2(126)) | ((x & 0x8) << 28)); }

ZYFA_SIM_INLINE float from_bf16(u32 x) { return f32(x << 16); }
ZYFA_SIM_INLINE float from_f16(u32 x) {
  const u32 m = x & 0x7fff;
  const u32 normal = raw(f32(m << 13) * scale2(112));
  const u32 special = 0x7f800000u | ((m & 0x3ff) << 13);
  return f32((m >= 0x7c00 ? special : normal) | ((x & 0x8000) << 16));
}

// RNE; a NaN keeps its upper payload and becomes quiet.
ZYFA_SIM_INLINE u32 to_bf16(u32 x) {
  const u32 rounded = (x + 0x7fffu + ((x >> 16) & 1)) >> 16;
  const u32 nan = (x >> 16) | 0x40u;
  return (x & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
}

// Rounds the magnitude of a float to `mantissa` bits with smallest exponent `min_exp` (RNE), as the code
// exponent_field << mantissa | fraction, without looking at overflow. bias = 1 - min_exp.
ZYFA_SIM_INLINE u32 round_code(u32 magnitude, int mantissa, int min_exp) {
  // Adding 2^(min_exp + 23 - mantissa) aligns subnormal results; normals round in integer arithmetic.
  const float aligner = scale2(min_exp + 23 - mantissa);
  const u32 small = raw(f32(magnitude) + aligner) - raw(aligner);
  const int shift = 23 - mantissa;
  const u32 rounded = magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
  const u32 large = (rounded >> shift) - (static_cast<u32>(127 + min_exp - 1) << mantissa);
  return magnitude < (static_cast<u32>(127 + min_exp) << 23) ? small : large;
}

// RNE to E4M3FN. Overflow after rounding (above 448): NaN, or 448 when `saturate` (MODE.FP16_OVFL); same for infinity.
ZYFA_SIM_INLINE u32 to_fp8(u32 x, u32 saturate) {
  const u32 m = x & 0x7fffffffu;
  const u32 code = round_code(m, 3, -6);
  const u32 over = saturate ? 0x7eu : 0x7fu;
  const u32 r = m > 0x7f800000u ? 0x7fu : (m >= 0x43f00000u || code > 0x7e) ? over : code;
  return r | ((x >> 24) & 0x80);
}
ZYFA_SIM_INLINE u32 to_bf8(u32 x, u32 saturate) {
  const u32 m = x & 0x7fffffffu;
  const u32 code = round_code(m, 2, -14);
  const u32 over = saturate ? 0x7bu : 0x7cu;
  const u32 r = m > 0x7f800000u ? 0x7fu : (m >= 0x47800000u || code > 0x7b) ? over : code;
  return r | ((x >> 24) & 0x80);
}
// RNE to f16 with subnormals; overflow to infinity, or to 65504 when `saturate`.
ZYFA_SIM_INLINE u32 to_f16(u32 x, u32 saturate) {
  const u32 m = x & 0x7fffffffu;
  const u32 code = round_code(m, 10, -14);
  const u32 over = saturate && m != 0x7f800000u ? 0x7bffu : 0x7c00u;
  const u32 nan = 0x7e00u | ((m >> 13) & 0x3ff);
  const u32 r = m > 0x7f800000u ? nan : (m >= 0x47800000u || code > 0x7bff) ? over : code;
  return r | ((x >> 16) & 0x8000);
}
// Toward zero; overflow gives the largest finite value.
ZYFA_SIM_INLINE u32 to_f16_rtz(u32 x) {
  const u32 m = x & 0x7fffffffu;
  u32 r;
  if (m > 0x7f800000u) {
    r = 0x7e00u | ((m >> 13) & 0x3ff);
  } else if (m == 0x7f800000u) {
    r = 0x7c00u;
  } else if (m >= 0x47800000u) {
    r = 0x7bffu;
  } else if (m >= 0x38800000u) {
    r = (m - 0x38000000u) >> 13;
  } else {
    const u32 e = m >> 23;
    r = e < 102 ? 0 : ((m & 0x7fffffu) | 0x800000u) >> (126 - e);
  }
  return r | ((x >> 16) & 0x8000);
}

// How a magnitude is rounded once its sign is known.
enum class Toward : u32 { kNearestEven, kAway, kZero };
ZYFA_SIM_INLINE Toward toward(u32 fp_round, bool negative) {
  if (fp_round == 0) return Toward::kNearestEven;
  return fp_round != 3 && (fp_round == 1) != negative ? Toward::kAway : Toward::kZero;
}
// Magnitude bits of a finite double to the code exponent_field << mantissa | fraction of a narrower format, without
// looking at overflow. Integer arithmetic only: the host's rounding mode does not matter.
ZYFA_SIM_INLINE u64 round_double(u64 magnitude, int mantissa, int min_exp, Toward to) {
  if (magnitude == 0) return 0;
  const int e = static_cast<int>(magnitude >> 52) - 1023;
  const u64 f = (magnitude & ((1ull << 52) - 1)) | (1ull << 52);
  const int cut = 52 - mantissa + (e < min_exp ? min_exp - e : 0), shift = cut < 63 ? cut : 63;
  const u64 kept = f >> shift, rest = f & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  const bool up =
      to == Toward::kNearestEven ? rest > half || (rest == half && (kept & 1)) : to == Toward::kAway && rest;
  return kept + u64{up} + (e >= min_exp ? static_cast<u64>(e - min_exp) << mantissa : 0);
}
// f16 by MODE: FP_ROUND bits 3:2, FP16_OVFL, output denormals.
struct HalfMode {
  u32 round;
  bool saturate;
  u32 in, out;
};
ZYFA_SIM_INLINE HalfMode half_mode(const Wave& w) { return {(w.mode >> 2) & 3, w.fp16_ovfl(), w.f16_in, w.f16_out}; }
ZYFA_SIM_INLINE u32 flush_h(u32 x, u32 mask) { return (x & 0x7c00) ? x : x & mask; }
// x is a number or an infinity. An infinity stays one under FP16_OVFL, only overflow becomes the largest number.
ZYFA_SIM_INLINE u32 half_of(double x, const HalfMode& m) {
  const u64 b = bits<u64>(x);
  const u32 sign = static_cast<u32>(b >> 48) & 0x8000;
  const u64 magnitude = b & 0x7fffffffffffffffull;
  if (magnitude == 0x7ff0000000000000ull) return sign | 0x7c00;
  const Toward to = toward(m.round, sign != 0);
  const u64 code = round_double(magnitude, 10, -14, to);
  const u32 over = m.saturate || to == Toward::kZero ? 0x7bff : 0x7c00;
  return flush_h(sign | (code > 0x7bff ? over : static_cast<u32>(code)), m.out);
}
ZYFA_SIM_INLINE bool is_nan_half(u32 h) { return (h & 0x7fff) > 0x7c00; }
ZYFA_SIM_INLINE u32 quiet_half(u32 h) { return (h & 0xffff) | 0x200; }
ZYFA_SIM_INLINE u32 half_of_f32(u32 x, const HalfMode& m) {
  if ((x & 0x7fffffffu) > 0x7f800000u) return ((x >> 16) & 0x8000) | 0x7e00 | ((x >> 13) & 0x3ff);
  return half_of(static_cast<double>(f32(x)), m);
}
// Number nearest to a + b, or the neighbour with an odd last bit when the sum is not exact: rounding it again to a much
// narrower format is right in every direction.
ZYFA_SIM_INLINE double sum_to_odd(double a, double b) {
  const double s = a + b, part = s - a, error = (a - (s - part)) + (b - part);
  const u64 r = bits<u64>(s);
  if (error == 0 || error != error || (r & 1)) return s;
  return bits<double>((error > 0) == (s > 0) ? r + 1 : r - 1);
}

}  // namespace
}  // namespace zyfa::sim::ZYFA_SIM_ISA
