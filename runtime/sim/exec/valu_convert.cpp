// Conversions between number formats (gfx950-isa.md 2). Compiled once per host instruction set.
#include <cmath>

#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

// Integer result of a lane function.
template <auto F>
void convert_1(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  u32* d = out.p;
  ZYFA_LANES d[l] = F(a[l]);
  close(w, op, out);
}
// Source is f32: denormals flushed by MODE.
template <auto F>
void convert_f32(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in;
  u32* d = out.p;
  ZYFA_LANES d[l] = F(f32(flush32(a[l], in)));
  close(w, op, out);
}

// Truncation with saturation; NaN gives 0.
ZYFA_SIM_INLINE u32 to_i32(float x) {
  const float t = x != x ? 0.0f : x;
  return t >= 2147483648.0f ? 0x7fffffffu : t <= -2147483648.0f ? 0x80000000u : static_cast<u32>(static_cast<i32>(t));
}
ZYFA_SIM_INLINE u32 to_u32(float x) {
  const float t = x != x ? 0.0f : x;
  return t >= 4294967296.0f ? ~0u : t <= 0.0f ? 0u : static_cast<u32>(static_cast<u64>(t));
}
ZYFA_SIM_INLINE u32 nearest_i32(float x) { return to_i32(std::floor(x + 0.5f)); }
ZYFA_SIM_INLINE u32 floor_i32(float x) { return to_i32(std::floor(x)); }
constexpr auto kFromI32 = [](u32 a) { return raw(static_cast<float>(static_cast<i32>(a))); };
constexpr auto kFromU32 = [](u32 a) { return raw(static_cast<float>(a)); };

// Two f32 sources packed into one register.
template <auto F>
void pack_f32(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in, saturate = w.fp16_ovfl();
  u32* d = out.p;
  ZYFA_LANES d[l] = F(flush32(a[l], in), flush32(b[l], in), saturate);
  close(w, op, out);
}
constexpr auto kPackBf16 = [](u32 a, u32 b, u32) { return to_bf16(a) | (to_bf16(b) << 16); };
// To nearest even and toward zero, whatever FP_ROUND says.
template <bool ToZero>
void pack_f16(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in, om = w.f16_out, saturate = w.fp16_ovfl();
  u32* d = out.p;
  ZYFA_LANES {
    const u32 x = flush32(a[l], in), y = flush32(b[l], in);
    const u32 lo = ToZero ? to_f16_rtz(x) : to_f16(x, saturate), hi = ToZero ? to_f16_rtz(y) : to_f16(y, saturate);
    d[l] = flush_h(lo, om) | (flush_h(hi, om) << 16);
  }
  close(w, op, out);
}

// v_cvt_pk_fp8/bf8_f32: op_sel bit 3 picks the half of the destination; the other half is kept.
template <bool Bf8>
void pack_fp8(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  const u32* old = w.v[op.dst.index].lane;
  const u32 in = w.f32_in, saturate = w.fp16_ovfl();
  const u32 shift = op.op_sel & 8 ? 16 : 0, keep = op.op_sel & 8 ? 0xffffu : 0xffff0000u;
  u32* d = out.p;
  ZYFA_LANES {
    const u32 x = flush32(a[l], in), y = flush32(b[l], in);
    const u32 packed =
        Bf8 ? to_bf8(x, saturate) | (to_bf8(y, saturate) << 8) : to_fp8(x, saturate) | (to_fp8(y, saturate) << 8);
    d[l] = (old[l] & keep) | (packed << shift);
  }
  close(w, op, out);
}
// Rounds by MODE (the engine sets the host's rounding) or cuts off (SimCvtPkU8), clamps to 0..255, NaN gives 0;
// replaces one byte of source 2, or of the destination.
ZYFA_SIM_INLINE u32 byte_of(float x, bool truncates) {
  const float clamped = x > 0.0f ? (x < 255.0f ? x : 255.0f) : 0.0f;
  // Adding 1.5 * 2^23 rounds to an integer that stands in the low bits.
  return truncates ? static_cast<u32>(static_cast<i32>(clamped)) : raw(clamped + 12582912.0f) & 0xff;
}
template <bool Accumulates>
void pack_u8(Wave& w, const MicroOp& op) {
  Temp ta, tb, tc, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32* c = Accumulates ? w.v[op.dst.index].lane : fetch(w, op, 2, tc);
  const Out out = open(w, op, to);
  const u32 in = w.f32_in;
  const bool truncates = w.rules.cvt_pk_u8 == SimCvtPkU8::kTruncates;
  u32* d = out.p;
  if (truncates) {
    ZYFA_LANES {
      const u32 shift = 8 * (b[l] & 3);
      d[l] = (c[l] & ~(0xffu << shift)) | (byte_of(f32(flush32(a[l], in)), true) << shift);
    }
  } else {
    ZYFA_LANES {
      const u32 shift = 8 * (b[l] & 3);
      d[l] = (c[l] & ~(0xffu << shift)) | (byte_of(f32(flush32(a[l], in)), false) << shift);
    }
  }
  close(w, op, out);
}

// Two floats from packed 8-bit ones; op_sel[0] or SDWA picks the half.
template <auto F>
void unpack_fp8(Wave& w, const MicroOp& op) {
  Temp ta, to[2];
  const u32* a = fetch(w, op, 0, ta);
  const u32 shift = op.op_sel & 1 ? 16 : 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    to[0].lane[l] = raw(F((a[l] >> shift) & 0xff));
    to[1].lane[l] = raw(F((a[l] >> (shift + 8)) & 0xff));
  }
  close(w, op, Out{to[0].lane, false}, 0);
  close(w, op, Out{to[1].lane, false}, 1);
}
// v_cvt_f32_fp8/bf8: byte by op_sel (bit 1 the high half, bit 0 the odd byte, LLVM order op_sel:[lo,hi]) or SDWA.
template <auto F>
void unpack_byte(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  const u32 shift = 8 * (op.op_sel & 3);
  u32* d = out.p;
  ZYFA_LANES d[l] = raw(F((a[l] >> shift) & 0xff));
  close(w, op, out);
}
// Normalised integers of 16 bits, rounded by MODE (the engine sets the host's rounding); packed saturating integers.
ZYFA_SIM_INLINE u32 norm_i16(float x) {
  const double t = x != x ? 0.0 : x < -1.0f ? -1.0 : x > 1.0f ? 1.0 : static_cast<double>(x);
  return static_cast<u32>(static_cast<i32>(std::nearbyint(t * 32767.0))) & 0xffff;
}
ZYFA_SIM_INLINE u32 norm_u16(float x) {
  const double t = x > 0.0f ? (x < 1.0f ? static_cast<double>(x) : 1.0) : 0.0;
  return static_cast<u32>(std::nearbyint(t * 65535.0)) & 0xffff;
}
template <auto F>
void pack_norm_f32(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32 in = w.f32_in;
  for (unsigned l = 0; l < kLanes; ++l) to.lane[l] = F(f32(flush32(a[l], in))) | (F(f32(flush32(b[l], in))) << 16);
  close(w, op, Out{to.lane, false});
}
// One or two halves to 16-bit integers; op_sel picks the halves.
template <int N, auto F>
void ints_of_halves(Wave& w, const MicroOp& op) {
  Temp t[2], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* b = N == 2 ? fetch(w, op, 1, t[1]) : a;
  const u32 in = w.f16_in, sa = (op.op_sel & 1) * 16, sb = (op.op_sel >> 1 & 1) * 16;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 lo = F(from_f16(flush_h((a[l] >> sa) & 0xffff, in))) & 0xffff;
    to.lane[l] = N == 2 ? lo | (F(from_f16(flush_h((b[l] >> sb) & 0xffff, in))) << 16) : lo;
  }
  close(w, op, Out{to.lane, false});
}
// Truncation with saturation; NaN gives 0.
ZYFA_SIM_INLINE u32 trunc_i16(float x) {
  return static_cast<u32>(static_cast<i32>(x != x ? 0.0f : x < -32768.0f ? -32768.0f : x > 32767.0f ? 32767.0f : x));
}
ZYFA_SIM_INLINE u32 trunc_u16(float x) {
  return static_cast<u32>(static_cast<i32>(x > 0.0f ? (x < 65535.0f ? x : 65535.0f) : 0.0f));
}
ZYFA_SIM_INLINE u32 frexp_exp_half(float x) {
  int e = 0;
  if (x - x == 0.0f) static_cast<void>(std::frexp(x, &e));
  return static_cast<u32>(e);
}
template <auto F>
void pack_int(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  u32* d = out.p;
  for (unsigned l = 0; l < kLanes; ++l) d[l] = F(a[l]) | (F(b[l]) << 16);
  close(w, op, out);
}
ZYFA_SIM_INLINE u32 sat_u16(u32 a) { return a > 0xffff ? 0xffff : a; }
ZYFA_SIM_INLINE u32 sat_i16(u32 a) {
  const i32 x = static_cast<i32>(a);
  return static_cast<u32>(x < -32768 ? -32768 : x > 32767 ? 32767 : x) & 0xffff;
}

// f16 results by MODE (half_of), clamp and omod.
enum class ToHalf { kF32, kU16, kI16 };
template <ToHalf K>
void half_from(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const HalfMode mode = half_mode(w);
  const HalfModifiers modifiers = half_modifiers(w, op);
  if (K == ToHalf::kF32 && mode.round == 0 && !op.omod && !op.clamp) {
    const Out out = open(w, op, to);
    const u32 in = w.f32_in, om = mode.out, saturate = mode.saturate;
    u32* d = out.p;
    ZYFA_LANES d[l] = flush_h(to_f16(flush32(a[l], in), saturate), om);
    return close(w, op, out);
  }
  for (unsigned l = 0; l < kLanes; ++l) {
    u32 r;
    if constexpr (K == ToHalf::kF32) r = half_of_f32(flush32(a[l], w.f32_in), mode);
    if constexpr (K == ToHalf::kU16) r = half_of(static_cast<double>(a[l] & 0xffff), mode);
    if constexpr (K == ToHalf::kI16) r = half_of(static_cast<double>(static_cast<std::int16_t>(a[l])), mode);
    to.lane[l] = modify_half(r, modifiers);
  }
  close(w, op, Out{to.lane, false});
}
template <auto F>
void from_half(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  const u32 shift = op.op_sel & 1 ? 16 : 0, mask = w.f16_in;
  u32* d = out.p;
  ZYFA_LANES d[l] = F(flush_h((a[l] >> shift) & 0xffff, mask));
  close(w, op, out);
}
ZYFA_SIM_INLINE u32 f32_of_half(u32 h) {
  const float x = from_f16(h);
  return x != x ? raw(x) | 0x00400000u : raw(x);
}

constexpr u32 kF = kFloatMods;
constexpr OpRow kRows[] = {
    {"v_cvt_f32_i32", "f=i", &convert_1<kFromI32>, Unit::kValu, kF, 0},
    {"v_cvt_f32_u32", "f=i", &convert_1<kFromU32>, Unit::kValu, kF, 0},
    {"v_cvt_i32_f32", "i=f", &convert_f32<to_i32>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_u32_f32", "i=f", &convert_f32<to_u32>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_rpi_i32_f32", "i=f", &convert_f32<nearest_i32>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_flr_i32_f32", "i=f", &convert_f32<floor_i32>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_f32_ubyte0", "f=i", &convert_1<([](u32 a) { return raw(static_cast<float>(a & 0xff)); })>, Unit::kValu, kF,
     0},
    {"v_cvt_f32_ubyte1", "f=i", &convert_1<([](u32 a) { return raw(static_cast<float>((a >> 8) & 0xff)); })>,
     Unit::kValu, kF, 0},
    {"v_cvt_f32_ubyte2", "f=i", &convert_1<([](u32 a) { return raw(static_cast<float>((a >> 16) & 0xff)); })>,
     Unit::kValu, kF, 0},
    {"v_cvt_f32_ubyte3", "f=i", &convert_1<([](u32 a) { return raw(static_cast<float>(a >> 24)); })>, Unit::kValu, kF,
     0},
    {"v_cvt_f32_bf16", "f=b", &convert_1<([](u32 a) { return a << 16; })>, Unit::kValu, kF, 0},
    {"v_cvt_f16_f32", "h=f", &half_from<ToHalf::kF32>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_f32_f16", "f=h", &from_half<f32_of_half>, Unit::kValu, kF, 0},
    {"v_cvt_f16_u16", "h=i", &half_from<ToHalf::kU16>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_f16_i16", "h=i", &half_from<ToHalf::kI16>, Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_u16_f16", "i=h", (&ints_of_halves<1, trunc_u16>), Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_i16_f16", "i=h", (&ints_of_halves<1, trunc_i16>), Unit::kValu, kF | kIntClamp, 0},
    {"v_frexp_exp_i16_f16", "i=h", (&ints_of_halves<1, frexp_exp_half>), Unit::kValu, kF | kIntClamp, 0},
    {"v_cvt_norm_i16_f16", "i=h", (&ints_of_halves<1, norm_i16>), Unit::kValu, kF, 0},
    {"v_cvt_norm_u16_f16", "i=h", (&ints_of_halves<1, norm_u16>), Unit::kValu, kF, 0},
    {"v_cvt_pknorm_i16_f16", "i=hh", (&ints_of_halves<2, norm_i16>), Unit::kValu, kF | kOpSel, 0},
    {"v_cvt_pknorm_u16_f16", "i=hh", (&ints_of_halves<2, norm_u16>), Unit::kValu, kF | kOpSel, 0},
    {"v_cvt_pk_bf16_f32", "i=ff", &pack_f32<kPackBf16>, Unit::kValu, kF, 0},
    {"v_cvt_pk_f16_f32", "i=ff", &pack_f16<false>, Unit::kValu, kF, 0},
    {"v_cvt_pkrtz_f16_f32", "i=ff", &pack_f16<true>, Unit::kValu, kF, 0},
    {"v_cvt_pk_fp8_f32", "i=ff", &pack_fp8<false>, Unit::kValu, kF | kPartialWrite | kOpSel, 0},
    {"v_cvt_pk_bf8_f32", "i=ff", &pack_fp8<true>, Unit::kValu, kF | kPartialWrite | kOpSel, 0},
    {"v_cvt_pk_u8_f32", "i=fii", &pack_u8<false>, Unit::kValu, kF, 0},
    {"v_cvt_pkaccum_u8_f32", "i=fi", &pack_u8<true>, Unit::kValu, kF | kPartialWrite, 0},
    {"v_cvt_pk_f32_fp8", "p=i", &unpack_fp8<from_fp8>, Unit::kValu, kOpSel, 0},
    {"v_cvt_pk_f32_bf8", "p=i", &unpack_fp8<from_bf8>, Unit::kValu, kOpSel, 0},
    {"v_cvt_f32_fp8", "f=i", &unpack_byte<from_fp8>, Unit::kValu, kOpSel, 0},
    {"v_cvt_f32_bf8", "f=i", &unpack_byte<from_bf8>, Unit::kValu, kOpSel, 0},
    {"v_cvt_pknorm_i16_f32", "i=ff", &pack_norm_f32<norm_i16>, Unit::kValu, kF, 0},
    {"v_cvt_pknorm_u16_f32", "i=ff", &pack_norm_f32<norm_u16>, Unit::kValu, kF, 0},
    {"v_cvt_pk_u16_u32", "i=ii", &pack_int<sat_u16>, Unit::kValu, 0, 0},
    {"v_cvt_pk_i16_i32", "i=ii", &pack_int<sat_i16>, Unit::kValu, 0, 0},
};

}  // namespace

RowTable convert_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
