// 16-bit integer VALU instructions, packed ones, and integer dot products (CDNA4 ISA guide 12.7-12.11).
// Compiled once per host instruction set.
//
// Results are computed exactly in 64 bits; the clamp bit saturates them to the instruction's type, else they wrap.
#include "runtime/sim/exec/lanes.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

enum class Type { kU16, kI16, kU32, kI32 };
template <Type T>
ZYFA_SIM_INLINE i64 widen(u32 x) {
  if constexpr (T == Type::kU16) return x & 0xffff;
  if constexpr (T == Type::kI16) return static_cast<std::int16_t>(x);
  if constexpr (T == Type::kU32) return x;
  return static_cast<i32>(x);
}
template <Type T>
ZYFA_SIM_INLINE u32 settle(i64 x, bool clamp) {
  constexpr i64 kLow = T == Type::kI16 ? -32768 : T == Type::kI32 ? -2147483648ll : 0;
  constexpr i64 kHigh = T == Type::kI16 ? 32767 : T == Type::kU16 ? 65535 : T == Type::kI32 ? 2147483647 : 4294967295ll;
  if (clamp) x = x < kLow ? kLow : x > kHigh ? kHigh : x;
  return static_cast<u32>(x) & (T == Type::kU16 || T == Type::kI16 ? 0xffffu : ~0u);
}

// One 16-bit result (see place_half); op_sel picks source halves.
template <Type T, int N, auto F>
void half_int(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned i = N; i < 3; ++i) s[i] = s[0];
  const u32* old = w.v[op.dst.index].lane;
  const HalfPlace place = half_place(op);
  const bool clamp = op.clamp;
  u32 shift[3];
  for (unsigned i = 0; i < 3; ++i) shift[i] = ((op.op_sel >> i) & 1) * 16;
  for (unsigned l = 0; l < kLanes; ++l) {
    i64 x[3];
    for (unsigned i = 0; i < 3; ++i) x[i] = widen<T>(s[i][l] >> shift[i]);
    to.lane[l] = place_half(place, settle<T>(F(x[0], x[1], x[2]), clamp), old[l]);
  }
  close(w, op, Out{to.lane, false});
}

// Packed 16-bit integers with op_sel / op_sel_hi.
template <Type T, int N, auto F>
void packed_16(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned i = N; i < 3; ++i) s[i] = s[0];
  u32 lo[3], hi[3];
  for (unsigned i = 0; i < 3; ++i) {
    lo[i] = ((op.op_sel >> i) & 1) * 16;
    hi[i] = ((op.op_sel_hi >> i) & 1) * 16;
  }
  const Out out = open(w, op, to);
  const bool clamp = op.clamp;
  u32* d = out.p;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 a = s[0][l], b = s[1][l], c = s[2][l];
    const i64 low = F(widen<T>(a >> lo[0]), widen<T>(b >> lo[1]), widen<T>(c >> lo[2]));
    const i64 high = F(widen<T>(a >> hi[0]), widen<T>(b >> hi[1]), widen<T>(c >> hi[2]));
    d[l] = settle<T>(low, clamp) | (settle<T>(high, clamp) << 16);
  }
  close(w, op, out);
}

// v_mad_u32_u16, v_mad_i32_i16: 16-bit factors that op_sel chooses, a 32-bit addend.
template <Type Factor, Type T>
void mad_32_16(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  for (unsigned i = 0; i < 3; ++i) s[i] = fetch(w, op, i, t[i]);
  const u32 shift_a = (op.op_sel & 1) * 16, shift_b = (op.op_sel >> 1 & 1) * 16;
  for (unsigned l = 0; l < kLanes; ++l) {
    const i64 r = widen<Factor>(s[0][l] >> shift_a) * widen<Factor>(s[1][l] >> shift_b) + widen<T>(s[2][l]);
    to.lane[l] = settle<T>(r, op.clamp);
  }
  close(w, op, Out{to.lane, false});
}

// v_dot2/4/8: elements of `Bits` bits, summed exactly with the addend.
template <int Bits, bool Signed>
ZYFA_SIM_INLINE i64 element(u32 x, unsigned k) {
  const u32 up = x << (32 - Bits * (k + 1));
  return Signed ? static_cast<i64>(static_cast<i32>(up) >> (32 - Bits)) : static_cast<i64>(up >> (32 - Bits));
}
template <int Bits, bool Signed, bool Tied>
void dot(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* b = fetch(w, op, 1, t[1]);
  const u32* c = Tied ? w.v[op.dst.index].lane : fetch(w, op, 2, t[2]);
  constexpr Type kType = Signed ? Type::kI32 : Type::kU32;
  for (unsigned l = 0; l < kLanes; ++l) {
    i64 sum = widen<kType>(c[l]);
    for (unsigned k = 0; k < 32 / Bits; ++k) sum += element<Bits, Signed>(a[l], k) * element<Bits, Signed>(b[l], k);
    to.lane[l] = settle<kType>(sum, op.clamp);
  }
  close(w, op, Out{to.lane, false});
}

void bitop3_half(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3];
  u32 shift[3];
  for (unsigned i = 0; i < 3; ++i) {
    s[i] = fetch(w, op, i, t[i]);
    shift[i] = ((op.op_sel >> i) & 1) * 16;
  }
  const u32* old = w.v[op.dst.index].lane;
  const HalfPlace place = half_place(op);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 a = s[0][l] >> shift[0], b = s[1][l] >> shift[1], c = s[2][l] >> shift[2];
    u32 r = 0;
    for (unsigned bit = 0; bit < 16; ++bit) {
      const u32 k = ((a >> bit & 1) << 2) | ((b >> bit & 1) << 1) | (c >> bit & 1);
      r |= (static_cast<u32>(op.bitop3) >> k & 1) << bit;
    }
    to.lane[l] = place_half(place, r, old[l]);
  }
  close(w, op, Out{to.lane, false});
}

ZYFA_SIM_INLINE i64 least(i64 a, i64 b) { return a < b ? a : b; }
ZYFA_SIM_INLINE i64 most(i64 a, i64 b) { return a > b ? a : b; }

constexpr auto kAdd = [](i64 a, i64 b, i64) { return a + b; };
constexpr auto kSub = [](i64 a, i64 b, i64) { return a - b; };
constexpr auto kSubrev = [](i64 a, i64 b, i64) { return b - a; };
constexpr auto kMul = [](i64 a, i64 b, i64) { return a * b; };
constexpr auto kMad = [](i64 a, i64 b, i64 c) { return a * b + c; };
constexpr auto kShl = [](i64 a, i64 b, i64) { return (b << (a & 15)) & 0xffff; };
constexpr auto kShr = [](i64 a, i64 b, i64) { return b >> (a & 15); };
constexpr auto kMin = [](i64 a, i64 b, i64) { return least(a, b); };
constexpr auto kMax = [](i64 a, i64 b, i64) { return most(a, b); };
constexpr auto kMin3 = [](i64 a, i64 b, i64 c) { return least(least(a, b), c); };
constexpr auto kMax3 = [](i64 a, i64 b, i64 c) { return most(most(a, b), c); };
constexpr auto kMed3 = [](i64 a, i64 b, i64 c) { return most(least(a, b), least(most(a, b), c)); };

constexpr u32 kKeeps = kOpSel | kPartialWrite | kIntClamp;  // the other half of the destination is kept
#define H2(name, type, F) {name, "i=ii", (&half_int<Type::type, 2, F>), Unit::kValu, kIntClamp, 0}
#define K2(name, type, F) {name, "i=ii", (&half_int<Type::type, 2, F>), Unit::kValu, kKeeps, 0}
#define K3(name, type, F) {name, "i=iii", (&half_int<Type::type, 3, F>), Unit::kValu, kKeeps, 0}
#define P2(name, type, F) {name, "q=qq", (&packed_16<Type::type, 2, F>), Unit::kValu, kPacked | kIntClamp, 0}
#define P3(name, type, F) {name, "q=qqq", (&packed_16<Type::type, 3, F>), Unit::kValu, kPacked | kIntClamp, 0}

constexpr OpRow kRows[] = {
    P2("v_pk_add_u16", kU16, kAdd),
    P2("v_pk_add_i16", kI16, kAdd),
    P2("v_pk_sub_u16", kU16, kSub),
    P2("v_pk_sub_i16", kI16, kSub),
    P2("v_pk_mul_lo_u16", kU16, kMul),
    P2("v_pk_lshlrev_b16", kU16, kShl),
    P2("v_pk_lshrrev_b16", kU16, kShr),
    P2("v_pk_ashrrev_i16", kI16, kShr),
    P2("v_pk_max_u16", kU16, kMax),
    P2("v_pk_min_u16", kU16, kMin),
    P2("v_pk_max_i16", kI16, kMax),
    P2("v_pk_min_i16", kI16, kMin),
    P3("v_pk_mad_u16", kU16, kMad),
    P3("v_pk_mad_i16", kI16, kMad),
    H2("v_add_u16", kU16, kAdd),
    H2("v_sub_u16", kU16, kSub),
    H2("v_subrev_u16", kU16, kSubrev),
    H2("v_mul_lo_u16", kU16, kMul),
    H2("v_lshlrev_b16", kU16, kShl),
    H2("v_lshrrev_b16", kU16, kShr),
    H2("v_ashrrev_i16", kI16, kShr),
    H2("v_max_u16", kU16, kMax),
    H2("v_min_u16", kU16, kMin),
    H2("v_max_i16", kI16, kMax),
    H2("v_min_i16", kI16, kMin),
    K2("v_add_i16", kI16, kAdd),
    K2("v_sub_i16", kI16, kSub),
    K3("v_mad_u16", kU16, kMad),
    K3("v_mad_i16", kI16, kMad),
    {"v_mad_legacy_u16", "i=iii", (&half_int<Type::kU16, 3, kMad>), Unit::kValu, kIntClamp, 0},
    {"v_mad_legacy_i16", "i=iii", (&half_int<Type::kI16, 3, kMad>), Unit::kValu, kIntClamp, 0},
    K3("v_min3_i16", kI16, kMin3),
    K3("v_max3_i16", kI16, kMax3),
    K3("v_med3_i16", kI16, kMed3),
    K3("v_min3_u16", kU16, kMin3),
    K3("v_max3_u16", kU16, kMax3),
    K3("v_med3_u16", kU16, kMed3),
    {"v_bitop3_b16", "i=iii", &bitop3_half, Unit::kValu, kOpSel | kPartialWrite, 0},
    {"v_mad_u32_u16", "i=iii", (&mad_32_16<Type::kU16, Type::kU32>), Unit::kValu, kOpSel | kIntClamp, 0},
    {"v_mad_i32_i16", "i=iii", (&mad_32_16<Type::kI16, Type::kI32>), Unit::kValu, kOpSel | kIntClamp, 0},
    {"v_dot2_i32_i16", "i=iii", (&dot<16, true, false>), Unit::kValu, kDot | kIntClamp, 0},
    {"v_dot2_u32_u16", "i=iii", (&dot<16, false, false>), Unit::kValu, kDot | kIntClamp, 0},
    {"v_dot2c_i32_i16", "i=ii", (&dot<16, true, true>), Unit::kValu, kDot | kTied | kIntClamp, 0},
    {"v_dot4_i32_i8", "i=iii", (&dot<8, true, false>), Unit::kValu, kDot | kIntClamp, 0},
    {"v_dot4_u32_u8", "i=iii", (&dot<8, false, false>), Unit::kValu, kDot | kIntClamp, 0},
    {"v_dot4c_i32_i8", "i=ii", (&dot<8, true, true>), Unit::kValu, kDot | kTied | kIntClamp, 0},
    {"v_dot8_i32_i4", "i=iii", (&dot<4, true, false>), Unit::kValu, kDot | kIntClamp, 0},
    {"v_dot8_u32_u4", "i=iii", (&dot<4, false, false>), Unit::kValu, kDot | kIntClamp, 0},
    {"v_dot8c_i32_i4", "i=ii", (&dot<4, true, true>), Unit::kValu, kDot | kTied | kIntClamp, 0},
};

}  // namespace

RowTable int16_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
