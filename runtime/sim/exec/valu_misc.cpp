// VALU instructions of narrow use: cube maps, sums of absolute differences, packing, pseudo-random numbers, argument
// reduction (CDNA4 ISA guide 12.7-12.11). Compiled once per host instruction set.
#include "runtime/sim/exec/formats.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

template <int N, auto F>
void lanes_32(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned i = N; i < 3; ++i) s[i] = s[0];
  for (unsigned l = 0; l < kLanes; ++l) to.lane[l] = F(s[0][l], s[1][l], s[2][l]);
  close(w, op, Out{to.lane, false});
}

// The major axis of (x, y, z): 2 z, 1 y, 0 x; later axes win ties.
ZYFA_SIM_INLINE int major_axis(float x, float y, float z) {
  const float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  return az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
}
ZYFA_SIM_INLINE float cube_id(float x, float y, float z) {
  const int axis = major_axis(x, y, z);
  const bool negative = (axis == 2 ? z : axis == 1 ? y : x) < 0.0f;
  return static_cast<float>(2 * axis + negative);
}
ZYFA_SIM_INLINE float cube_s(float x, float y, float z) {
  const int axis = major_axis(x, y, z);
  if (axis == 2) return z < 0.0f ? -x : x;
  if (axis == 1) return x;
  return x < 0.0f ? z : -z;
}
ZYFA_SIM_INLINE float cube_t(float x, float y, float z) { return major_axis(x, y, z) == 1 ? (y < 0.0f ? -z : z) : -y; }
ZYFA_SIM_INLINE float cube_ma(float x, float y, float z) {
  const int axis = major_axis(x, y, z);
  return 2.0f * (axis == 2 ? z : axis == 1 ? y : x);
}
template <auto F>
void cube(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned l = 0; l < kLanes; ++l) {
    float x[3];
    for (unsigned i = 0; i < 3; ++i) x[i] = f32(flush32(s[i][l], w.f32_in));
    const float r = F(x[0], x[1], x[2]);
    to.lane[l] = flush32(r != r ? quiet(raw(r)) : raw(r), w.f32_out);
  }
  close(w, op, Out{to.lane, false});
}

ZYFA_SIM_INLINE u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
// Sum of the byte differences; Masked leaves out bytes that are 0 in the reference `b`.
template <bool Masked>
ZYFA_SIM_INLINE u32 bytes_sad(u32 a, u32 b) {
  u32 sum = 0;
  for (unsigned j = 0; j < 32; j += 8) {
    const u32 x = (a >> j) & 0xff, y = (b >> j) & 0xff;
    sum += Masked && y == 0 ? 0 : distance(x, y);
  }
  return sum;
}
ZYFA_SIM_INLINE u32 saturate(u64 x, u64 most, bool clamp) { return static_cast<u32>(clamp && x > most ? most : x); }

enum class Sad { kU8, kHiU8, kMaskedU8, kU16, kU32 };
template <Sad K>
void sad(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 a = s[0][l], b = s[1][l];
    u64 d;
    if constexpr (K == Sad::kU8) d = bytes_sad<false>(a, b);
    if constexpr (K == Sad::kHiU8) d = static_cast<u64>(bytes_sad<false>(a, b)) << 16;
    if constexpr (K == Sad::kMaskedU8) d = bytes_sad<true>(a, b);
    if constexpr (K == Sad::kU16) d = distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16);
    if constexpr (K == Sad::kU32) d = distance(a, b);
    to.lane[l] = saturate(d + s[2][l], 0xffffffffu, op.clamp);
  }
  close(w, op, Out{to.lane, false});
}
// Four differences of the 4-byte windows at bytes 0 to 3 of an 8-byte source; accumulators of 16 bits in a pair.
template <bool Masked>
void quad_sad_16(Wave& w, const MicroOp& op) {
  Temp t[5], to[2];
  const u32 *al = fetch(w, op, 0, t[0]), *ah = fetch(w, op, 0, t[1], 1), *b = fetch(w, op, 1, t[2]);
  const u32* c[2] = {fetch(w, op, 2, t[3]), fetch(w, op, 2, t[4], 1)};
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 a = al[l] | (static_cast<u64>(ah[l]) << 32);
    for (unsigned k = 0; k < 2; ++k) {
      u32 packed = 0;
      for (unsigned h = 0; h < 2; ++h) {
        const u32 d = bytes_sad<Masked>(static_cast<u32>(a >> (8 * (2 * k + h))), b[l]);
        packed |= (saturate(static_cast<u64>(d) + ((c[k][l] >> (16 * h)) & 0xffff), 0xffff, op.clamp) & 0xffff)
                  << (16 * h);
      }
      to[k].lane[l] = packed;
    }
  }
  for (unsigned k = 0; k < 2; ++k) close(w, op, Out{to[k].lane, false}, k);
}
// The same with accumulators of 32 bits in four registers.
void quad_sad_32(Wave& w, const MicroOp& op) {
  Temp t[7], to[4];
  const u32 *al = fetch(w, op, 0, t[0]), *ah = fetch(w, op, 0, t[1], 1), *b = fetch(w, op, 1, t[2]);
  for (unsigned k = 0; k < 4; ++k) {
    const u32* c = fetch(w, op, 2, t[3 + k], k);
    for (unsigned l = 0; l < kLanes; ++l) {
      const u64 a = al[l] | (static_cast<u64>(ah[l]) << 32);
      const u64 d = bytes_sad<true>(static_cast<u32>(a >> (8 * k)), b[l]);
      to[k].lane[l] = saturate(d + c[l], 0xffffffffu, op.clamp);
    }
  }
  for (unsigned k = 0; k < 4; ++k) close(w, op, Out{to[k].lane, false}, k);
}

// 2/pi after the point, most significant bits first: 1201 bits, then zeros.
constexpr u64 kTwoOverPi[20] = {
    0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull,
    0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull, 0x3991d639835339f4ull,
    0x9c845f8bbdf9283bull, 0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull,
    0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b0000ull, 0};
// The 53 bits at `shift`, scaled to their place and down by the exponent of the argument; toward zero.
ZYFA_SIM_INLINE u64 trig_preop(u64 x, u32 segment) {
  const int exponent = static_cast<int>((x >> 52) & 0x7ff);
  const unsigned shift = (segment & 31) * 53 + static_cast<unsigned>(exponent > 1077 ? exponent - 1077 : 0);
  const unsigned word = shift / 64, bit = shift % 64;
  if (word >= 19) return 0;
  const u64 window = bit ? (kTwoOverPi[word] << bit) | (kTwoOverPi[word + 1] >> (64 - bit)) : kTwoOverPi[word];
  const u64 m = window >> 11;
  if (m == 0) return 0;
  const int lead = 63 - __builtin_clzll(m);
  const int e = lead - 53 - static_cast<int>(shift) + (exponent >= 1968 ? 128 : 0);
  const u64 f = m << (52 - lead);
  if (e >= -1022) return (static_cast<u64>(e + 1023) << 52) | (f & ((1ull << 52) - 1));
  return -1022 - e < 64 ? f >> (-1022 - e) : 0;
}
void trig_preop_f64(Wave& w, const MicroOp& op) {
  Temp t[3], to[2];
  const u32 *lo = fetch(w, op, 0, t[0]), *hi = fetch(w, op, 0, t[1], 1), *segment = fetch(w, op, 1, t[2]);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 r = flush64(trig_preop(lo[l] | (static_cast<u64>(hi[l]) << 32), segment[l]), w.f64_out);
    to[0].lane[l] = static_cast<u32>(r);
    to[1].lane[l] = static_cast<u32>(r >> 32);
  }
  close_double(w, op, to[0].lane, to[1].lane);
}

ZYFA_SIM_INLINE u32 sat_u8(u32 h) {
  const i32 x = static_cast<std::int16_t>(h);
  return static_cast<u32>(x < 0 ? 0 : x > 255 ? 255 : x);
}
ZYFA_SIM_INLINE u32 lerp_u8(u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (unsigned j = 0; j < 32; j += 8) r |= ((((a >> j) & 0xff) + ((b >> j) & 0xff) + ((c >> j) & 1)) >> 1) << j;
  return r;
}
// Halves of two sources, each flushed and moved as it is; clamp has nothing to act on.
void pack_half(Wave& w, const MicroOp& op) {
  Temp t[2], to;
  const u32 *a = fetch(w, op, 0, t[0]), *b = fetch(w, op, 1, t[1]);
  const u32 sa = (op.op_sel & 1) * 16, sb = (op.op_sel >> 1 & 1) * 16;
  const u32 flip_a = op.src[0].neg ? 0x8000 : 0, flip_b = op.src[1].neg ? 0x8000 : 0;
  const u32 keep_a = op.src[0].abs ? 0x7fff : 0xffff, keep_b = op.src[1].abs ? 0x7fff : 0xffff;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 x = ((a[l] >> sa) & keep_a) ^ flip_a, y = ((b[l] >> sb) & keep_b) ^ flip_b;
    to.lane[l] = flush_h(x, w.f16_in) | (flush_h(y, w.f16_in) << 16);
  }
  close(w, op, Out{to.lane, false});
}

#define CUBE(name, F) {name, "f=fff", &cube<F>, Unit::kValu, kFloatMods, 0}
#define SAD(name, K) {name, "i=iii", &sad<Sad::K>, Unit::kValu, kIntClamp, 0}
constexpr OpRow kRows[] = {
    CUBE("v_cubeid_f32", cube_id),
    CUBE("v_cubesc_f32", cube_s),
    CUBE("v_cubetc_f32", cube_t),
    CUBE("v_cubema_f32", cube_ma),
    SAD("v_sad_u8", kU8),
    SAD("v_sad_hi_u8", kHiU8),
    SAD("v_msad_u8", kMaskedU8),
    SAD("v_sad_u16", kU16),
    SAD("v_sad_u32", kU32),
    {"v_qsad_pk_u16_u8", "l=lil", &quad_sad_16<false>, Unit::kValu, kIntClamp, 0},
    {"v_mqsad_pk_u16_u8", "l=lil", &quad_sad_16<true>, Unit::kValu, kIntClamp, 0},
    {"v_mqsad_u32_u8", "t=lit", &quad_sad_32, Unit::kValu, kIntClamp, 0},
    {"v_lerp_u8", "i=iii", (&lanes_32<3, lerp_u8>), Unit::kValu, 0, 0},
    {"v_prng_b32", "i=i", (&lanes_32<1, ([](u32 a, u32, u32) { return (a << 1) ^ (a >> 31 ? 197u : 0u); })>),
     Unit::kValu, 0, 0},
    {"v_sat_pk_u8_i16", "i=i", (&lanes_32<1, ([](u32 a, u32, u32) { return sat_u8(a) | (sat_u8(a >> 16) << 8); })>),
     Unit::kValu, 0, 0},
    {"v_cvt_off_f32_i4", "f=i", (&lanes_32<1, ([](u32 a, u32, u32) {
                                             return raw(static_cast<float>(static_cast<i32>(a << 28) >> 28) * 0.0625f);
                                           })>),
     Unit::kValu, kFloatMods, 0},
    {"v_pack_b32_f16", "i=qq", &pack_half, Unit::kValu, kFloatMods | kOpSel | kIntClamp, 0},
    {"v_trig_preop_f64", "d=di", &trig_preop_f64, Unit::kValu, kFloatMods, 0},
};

}  // namespace

RowTable misc_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
