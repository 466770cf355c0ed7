// Conversions to and from the narrow formats with a scale, and the stochastically rounding ones (CDNA4 ISA guide 7.3
// and 12.11). Compiled once per host instruction set.
//
// The scale is the power of two in bits 30:23 of an f32 (255: NaN). Widening multiplies by it; narrowing divides, as in
// AMD's own host version of these conversions (amd_hip_ocp_host.hpp), or multiplies under SimNarrowScale::kMultiplies.
// Values are exact in double until the one rounding. FP16_OVFL governs fp8, bf8 and f16 results only; fp6 and fp4
// saturate. Denormals of the narrow formats, f16 and bf16 are kept, those of f32 follow MODE.
#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

// A narrow format: where numbers end, and the codes of NaN and of overflow without and with saturation.
struct Format {
  int mantissa, min_exp;
  u32 largest, nan, overflow, saturated;
  unsigned sign_bit, bits;
};
constexpr Format kFp8{3, -6, 0x7e, 0x7f, 0x7f, 0x7e, 7, 8};
constexpr Format kBf8{2, -14, 0x7b, 0x7f, 0x7c, 0x7b, 7, 8};
constexpr Format kFp6{3, 0, 0x1f, 0x1f, 0x1f, 0x1f, 5, 6};
constexpr Format kBf6{2, -2, 0x1f, 0x1f, 0x1f, 0x1f, 5, 6};
constexpr Format kFp4{1, 0, 0x7, 0x7, 0x7, 0x7, 3, 4};
constexpr Format kHalf{10, -14, 0x7bff, 0x7e00, 0x7c00, 0x7bff, 15, 16};
constexpr Format kBfloat{7, -126, 0x7f7f, 0x7fc0, 0x7f80, 0x7f7f, 15, 16};

enum class Wide { kF32, kF16, kBf16 };
constexpr int mantissa_of(Wide t) { return t == Wide::kF32 ? 23 : t == Wide::kF16 ? 10 : 7; }

ZYFA_SIM_INLINE double power2(int e) { return bits<double>(static_cast<u64>(1023 + e) << 52); }
ZYFA_SIM_INLINE u32 prng(u32 x) { return (x << 1) ^ (x >> 31 ? 197u : 0u); }

struct Scale {
  double factor;
  bool nan;
};
ZYFA_SIM_INLINE Scale narrowing_scale(const Wave& w, u32 s) {
  const int e = static_cast<int>((s >> 23) & 0xff) - 127;
  return {power2(w.rules.narrow_scale == SimNarrowScale::kMultiplies ? e : -e), e == 128};
}
ZYFA_SIM_INLINE Scale widening_scale(u32 s) {
  const int e = static_cast<int>((s >> 23) & 0xff) - 127;
  return {power2(e), e == 128};
}

template <Wide T>
ZYFA_SIM_INLINE double widen(const Wave& w, u32 x) {
  if constexpr (T == Wide::kF32) return static_cast<double>(f32(flush32(x, w.f32_in)));
  if constexpr (T == Wide::kF16) return static_cast<double>(from_f16(x & 0xffff));
  return static_cast<double>(from_bf16(x & 0xffff));
}

// Code of x: to nearest even, or stochastically: the value is cut to the mantissa of its source format, the upper bits
// of the seed are added below the bits that stay, and the rest is cut off.
template <Wide T>
ZYFA_SIM_INLINE u32 stochastic_code(u64 magnitude, const Format& f, u32 seed) {
  if (magnitude == 0) return 0;
  const int e = static_cast<int>(magnitude >> 52) - 1023;
  const int below = e < f.min_exp ? f.min_exp - e : 0;
  u64 m = ((magnitude & ((1ull << 52) - 1)) | (1ull << 52)) >> (52 - mantissa_of(T));
  m = below >= 32 ? 0 : m >> below;
  m += seed >> (32 - mantissa_of(T) + f.mantissa);
  m >>= mantissa_of(T) - f.mantissa;
  m += e >= f.min_exp ? static_cast<u64>(e - f.min_exp) << f.mantissa : 0;
  return m > f.largest ? f.largest + 1 : static_cast<u32>(m);
}
template <Wide T, bool Stochastic>
ZYFA_SIM_INLINE u32 encode(double x, const Scale& s, const Format& f, u32 seed, bool saturate) {
  const u64 b = bits<u64>(x);
  const u32 sign = static_cast<u32>(b >> 63) << f.sign_bit;
  if (x != x || s.nan) return sign | f.nan;
  const u64 magnitude = bits<u64>(x * s.factor) & 0x7fffffffffffffffull;
  const u32 over = saturate ? f.saturated : f.overflow;
  if (magnitude == 0x7ff0000000000000ull) return sign | over;
  if constexpr (Stochastic) {
    const u32 code = stochastic_code<T>(magnitude, f, seed);
    return sign | (code > f.largest ? over : code);
  } else {
    const u64 code = round_double(magnitude, f.mantissa, f.min_exp, Toward::kNearestEven);
    return sign | (code > f.largest ? over : static_cast<u32>(code));
  }
}

template <int F>
ZYFA_SIM_INLINE float decode(u32 code) {
  if constexpr (F == 0) return from_fp8(code & 0xff);
  if constexpr (F == 1) return from_bf8(code & 0xff);
  if constexpr (F == 2) return from_fp6(code & 0x3f);
  if constexpr (F == 3) return from_bf6(code & 0x3f);
  return from_fp4(code & 0xf);
}
constexpr Format kFormats[] = {kFp8, kBf8, kFp6, kBf6, kFp4};

// A narrow number times the scale as f32, f16 or bf16 bits, to nearest even; overflow gives infinity.
template <Wide T>
ZYFA_SIM_INLINE u32 rounded(const Wave& w, float x, const Scale& s) {
  constexpr Format kF = T == Wide::kF16 ? kHalf : kBfloat;
  if (x != x || s.nan) {
    const u32 sign = raw(x) >> 31;
    return T == Wide::kF32 ? (sign << 31) | 0x7fc00000u : (sign << 15) | kF.nan;
  }
  const double v = static_cast<double>(x) * s.factor;
  if constexpr (T == Wide::kF16) {
    HalfMode m = half_mode(w);
    m.round = 0;
    return half_of(v, m);
  }
  const u64 b = bits<u64>(v), magnitude = b & 0x7fffffffffffffffull;
  const u32 sign = static_cast<u32>(b >> 63);
  if constexpr (T == Wide::kBf16) {
    const u64 code =
        magnitude == 0x7ff0000000000000ull ? ~0ull : round_double(magnitude, 7, -126, Toward::kNearestEven);
    return (sign << 15) | (code > kF.largest ? kF.overflow : static_cast<u32>(code));
  }
  const u64 code = magnitude == 0x7ff0000000000000ull ? ~0ull : round_double(magnitude, 23, -126, Toward::kNearestEven);
  return flush32((sign << 31) | (code > 0x7f7fffff ? 0x7f800000u : static_cast<u32>(code)), w.f32_out);
}

// Replaces `width` bits of the old destination at `shift`.
ZYFA_SIM_INLINE u32 insert(u32 old, u32 value, unsigned shift, u32 mask) {
  return (old & ~(mask << shift)) | ((value & mask) << shift);
}

// Two values to 16 bits of fp8/bf8 (half by op_sel bit 3) or 8 bits of fp4 (byte by op_sel bits 3:2).
template <int F, Wide T>
void narrow_pair(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* b = T == Wide::kF32 ? fetch(w, op, 1, t[1]) : a;
  const u32* c = fetch(w, op, T == Wide::kF32 ? 2 : 1, t[2]);
  const u32* old = w.v[op.dst.index].lane;
  constexpr Format kF = kFormats[F];
  const unsigned shift = kF.bits == 4 ? 8 * ((op.op_sel >> 2) & 3) : (op.op_sel & 8) * 2;
  const u32 mask = kF.bits == 4 ? 0xff : 0xffff;
  for (unsigned l = 0; l < kLanes; ++l) {
    const Scale s = narrowing_scale(w, c[l]);
    const u32 lo = encode<T, false>(widen<T>(w, a[l]), s, kF, 0, w.fp16_ovfl());
    const u32 hi = encode<T, false>(widen<T>(w, T == Wide::kF32 ? b[l] : a[l] >> 16), s, kF, 0, w.fp16_ovfl());
    to.lane[l] = insert(old[l], lo | (hi << kF.bits), shift, mask);
  }
  close(w, op, Out{to.lane, false});
}
// One value to the byte that op_sel bits 3:2 name, stochastically rounded; Scaled: source 2 is the scale.
template <int F, Wide T, bool Scaled>
void narrow_stochastic(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* seed = fetch(w, op, 1, t[1]);
  const u32* c = Scaled ? fetch(w, op, 2, t[2]) : a;
  const u32* old = w.v[op.dst.index].lane;
  const unsigned shift = 8 * ((op.op_sel >> 2) & 3), half = T != Wide::kF32 && (op.op_sel & 1) ? 16 : 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const Scale s = Scaled ? narrowing_scale(w, c[l]) : Scale{1.0, false};
    const u32 code = encode<T, true>(widen<T>(w, a[l] >> half), s, kFormats[F], seed[l], w.fp16_ovfl());
    to.lane[l] = insert(old[l], code, shift, 0xff);
  }
  close(w, op, Out{to.lane, false});
}
// Two values to a byte of fp4; the second uses the next random number.
template <Wide T>
void narrow_stochastic_fp4(Wave& w, const MicroOp& op) {
  Temp t[4], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* b = T == Wide::kF32 ? fetch(w, op, 0, t[1], 1) : a;
  const u32* seed = fetch(w, op, 1, t[2]);
  const u32* c = fetch(w, op, 2, t[3]);
  const u32* old = w.v[op.dst.index].lane;
  const unsigned shift = 8 * ((op.op_sel >> 2) & 3);
  for (unsigned l = 0; l < kLanes; ++l) {
    const Scale s = narrowing_scale(w, c[l]);
    const u32 lo = encode<T, true>(widen<T>(w, a[l]), s, kFp4, seed[l], false);
    const u32 hi = encode<T, true>(widen<T>(w, T == Wide::kF32 ? b[l] : a[l] >> 16), s, kFp4, prng(seed[l]), false);
    to.lane[l] = insert(old[l], lo | (hi << 4), shift, 0xff);
  }
  close(w, op, Out{to.lane, false});
}
// v_cvt_sr_f16_f32, v_cvt_sr_bf16_f32: op_sel bit 3 picks the half, the other is kept.
template <bool Bfloat>
void stochastic_half(Wave& w, const MicroOp& op) {
  Temp t[2], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* seed = fetch(w, op, 1, t[1]);
  const u32* old = w.v[op.dst.index].lane;
  const Format f = Bfloat ? kBfloat : kHalf;
  const bool saturate = !Bfloat && w.fp16_ovfl();
  for (unsigned l = 0; l < kLanes; ++l) {
    const double x = widen<Wide::kF32>(w, a[l]);
    const bool infinite = (a[l] & 0x7fffffffu) == 0x7f800000u;
    u32 r = encode<Wide::kF32, true>(x, {1.0, false}, f, seed[l], saturate && !infinite);
    if (!Bfloat) r = flush_h(r, w.f16_out);
    to.lane[l] = insert(old[l], r, (op.op_sel & 8) * 2, 0xffff);
  }
  close(w, op, Out{to.lane, false});
}

// Register k of a tuple operand.
ZYFA_SIM_INLINE const u32* tuple(const Wave& w, const Operand& o, unsigned k) { return w.v[o.index + k].lane; }

// 32 values to 192 bits of fp6 or bf6. Interleaved: two sources of 16 f32 alternate.
template <int F, Wide T, bool Stochastic, bool Interleaved>
void narrow_32(Wave& w, const MicroOp& op) {
  Temp ts, tc;
  const u32* seed = Stochastic ? fetch(w, op, 1, ts) : nullptr;
  const u32* c = fetch(w, op, op.sources - 1u, tc);
  VectorReg out[6] = {};
  for (unsigned l = 0; l < kLanes; ++l) {
    const Scale s = narrowing_scale(w, c[l]);
    u32 random = Stochastic ? seed[l] : 0;
    for (unsigned k = 0; k < 32; ++k) {
      u32 x;
      if constexpr (Interleaved) {
        x = tuple(w, op.src[k % 2], k / 2)[l];
      } else {
        x = T == Wide::kF32 ? tuple(w, op.src[0], k)[l] : tuple(w, op.src[0], k / 2)[l] >> (16 * (k % 2));
      }
      const u32 code = encode<T, Stochastic>(widen<T>(w, x), s, kFormats[F], random, false);
      if (Stochastic) random = prng(random);
      const unsigned at = 6 * k;
      out[at / 32].lane[l] |= code << (at % 32);
      if (at % 32 > 26) out[at / 32 + 1].lane[l] |= code >> (32 - at % 32);
    }
  }
  for (unsigned k = 0; k < 6; ++k) close(w, op, Out{out[k].lane, false}, k);
}
// 192 bits of fp6 or bf6 to 32 values.
template <int F, Wide T>
void widen_32(Wave& w, const MicroOp& op) {
  Temp tc;
  const u32* c = fetch(w, op, 1, tc);
  constexpr unsigned kRegisters = T == Wide::kF32 ? 32 : 16;
  VectorReg out[kRegisters] = {};
  for (unsigned l = 0; l < kLanes; ++l) {
    const Scale s = widening_scale(c[l]);
    for (unsigned k = 0; k < 32; ++k) {
      const unsigned at = 6 * k;
      u32 code = tuple(w, op.src[0], at / 32)[l] >> (at % 32);
      if (at % 32 > 26) code |= tuple(w, op.src[0], at / 32 + 1)[l] << (32 - at % 32);
      const u32 r = rounded<T>(w, decode<F>(code), s);
      if (T == Wide::kF32) {
        out[k % kRegisters].lane[l] = r;
      } else {
        out[k / 2].lane[l] |= r << (16 * (k % 2));
      }
    }
  }
  for (unsigned k = 0; k < kRegisters; ++k) close(w, op, Out{out[k].lane, false}, k);
}

// Two narrow values (word by op_sel bit 0, byte of fp4 by op_sel bits 1:0) to a pair of f32 or a packed register.
template <int F, Wide T>
void widen_pair(Wave& w, const MicroOp& op) {
  Temp t[2], to[2];
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* c = fetch(w, op, 1, t[1]);
  constexpr unsigned kBits = kFormats[F].bits;
  const unsigned shift = kBits == 4 ? 8 * (op.op_sel & 3) : 16 * (op.op_sel & 1);
  for (unsigned l = 0; l < kLanes; ++l) {
    const Scale s = widening_scale(c[l]);
    const u32 lo = rounded<T>(w, decode<F>(a[l] >> shift), s);
    const u32 hi = rounded<T>(w, decode<F>(a[l] >> (shift + kBits)), s);
    to[0].lane[l] = T == Wide::kF32 ? lo : lo | (hi << 16);
    to[1].lane[l] = hi;
  }
  close(w, op, Out{to[0].lane, false}, 0);
  if (T == Wide::kF32) close(w, op, Out{to[1].lane, false}, 1);
}
// One narrow value (byte by op_sel bits 1:0) to f32, or to the half of the destination that op_sel bit 3 names.
template <int F, Wide T>
void widen_one(Wave& w, const MicroOp& op) {
  Temp t[2], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* c = fetch(w, op, 1, t[1]);
  const u32* old = w.v[op.dst.index].lane;
  const HalfPlace place = half_place(op);
  const unsigned shift = 8 * (op.op_sel & 3);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 r = rounded<T>(w, decode<F>(a[l] >> shift), widening_scale(c[l]));
    to.lane[l] = T == Wide::kF32 ? r : place_half(place, r, old[l]);
  }
  close(w, op, Out{to.lane, false});
}

constexpr u32 kPart = kOpSel | kPartialWrite;
#define ROW(name, sig, flags, ...) {"v_cvt_" name, sig, (&__VA_ARGS__), Unit::kValu, flags, 0}
#define SCALED(name, sig, flags, ...) ROW("scalef32_" name, sig, flags, __VA_ARGS__)
#define EIGHT_BITS(fmt, F)                                                                             \
  ROW("sr_" fmt "_f32", "i=fi", kFloatMods | kPart, narrow_stochastic<F, Wide::kF32, false>),          \
      SCALED("pk_" fmt "_f32", "i=fff", kFloatMods | kPart, narrow_pair<F, Wide::kF32>),               \
      SCALED("pk_" fmt "_f16", "i=qf", kPart, narrow_pair<F, Wide::kF16>),                             \
      SCALED("pk_" fmt "_bf16", "i=qf", kPart, narrow_pair<F, Wide::kBf16>),                           \
      SCALED("sr_" fmt "_f32", "i=fif", kFloatMods | kPart, narrow_stochastic<F, Wide::kF32, true>),   \
      SCALED("sr_" fmt "_f16", "i=hif", kFloatMods | kPart, narrow_stochastic<F, Wide::kF16, true>),   \
      SCALED("sr_" fmt "_bf16", "i=bif", kFloatMods | kPart, narrow_stochastic<F, Wide::kBf16, true>), \
      SCALED("pk_f32_" fmt, "p=if", kOpSel, widen_pair<F, Wide::kF32>),                                \
      SCALED("pk_f16_" fmt, "i=if", kOpSel, widen_pair<F, Wide::kF16>),                                \
      SCALED("pk_bf16_" fmt, "i=if", kOpSel, widen_pair<F, Wide::kBf16>),                              \
      SCALED("f32_" fmt, "f=if", kOpSel, widen_one<F, Wide::kF32>),                                    \
      SCALED("f16_" fmt, "i=if", kPart, widen_one<F, Wide::kF16>)
#define SIX_BITS(fmt, F)                                                                  \
  SCALED("2xpk16_" fmt "_f32", "t=ttf", 0, narrow_32<F, Wide::kF32, false, true>),        \
      SCALED("pk32_" fmt "_f16", "t=tf", 0, narrow_32<F, Wide::kF16, false, false>),      \
      SCALED("pk32_" fmt "_bf16", "t=tf", 0, narrow_32<F, Wide::kBf16, false, false>),    \
      SCALED("sr_pk32_" fmt "_f32", "t=tif", 0, narrow_32<F, Wide::kF32, true, false>),   \
      SCALED("sr_pk32_" fmt "_f16", "t=tif", 0, narrow_32<F, Wide::kF16, true, false>),   \
      SCALED("sr_pk32_" fmt "_bf16", "t=tif", 0, narrow_32<F, Wide::kBf16, true, false>), \
      SCALED("pk32_f32_" fmt, "t=tf", 0, widen_32<F, Wide::kF32>),                        \
      SCALED("pk32_f16_" fmt, "t=tf", 0, widen_32<F, Wide::kF16>),                        \
      SCALED("pk32_bf16_" fmt, "t=tf", 0, widen_32<F, Wide::kBf16>)

constexpr OpRow kRows[] = {
    EIGHT_BITS("fp8", 0),
    EIGHT_BITS("bf8", 1),
    SIX_BITS("fp6", 2),
    SIX_BITS("bf6", 3),
    SCALED("pk_fp4_f32", "i=fff", kFloatMods | kPart, narrow_pair<4, Wide::kF32>),
    SCALED("pk_fp4_f16", "i=qf", kPart, narrow_pair<4, Wide::kF16>),
    SCALED("pk_fp4_bf16", "i=qf", kPart, narrow_pair<4, Wide::kBf16>),
    SCALED("sr_pk_fp4_f32", "i=pif", kPart, narrow_stochastic_fp4<Wide::kF32>),
    SCALED("sr_pk_fp4_f16", "i=qif", kPart, narrow_stochastic_fp4<Wide::kF16>),
    SCALED("sr_pk_fp4_bf16", "i=qif", kPart, narrow_stochastic_fp4<Wide::kBf16>),
    SCALED("pk_f32_fp4", "p=if", kOpSel, widen_pair<4, Wide::kF32>),
    SCALED("pk_f16_fp4", "i=if", kOpSel, widen_pair<4, Wide::kF16>),
    SCALED("pk_bf16_fp4", "i=if", kOpSel, widen_pair<4, Wide::kBf16>),
    ROW("sr_f16_f32", "i=fi", kFloatMods | kPart, stochastic_half<false>),
    ROW("sr_bf16_f32", "i=fi", kFloatMods | kPart, stochastic_half<true>),
};

}  // namespace

RowTable scale_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
