// Integer and bitwise VALU instructions. Compiled once per host instruction set.
#include "runtime/sim/exec/lanes.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

template <auto F>
void int_1(Wave& w, const MicroOp& op) {
  Temp ta, to;
  const u32* a = fetch(w, op, 0, ta);
  const Out out = open(w, op, to);
  u32* d = out.p;
  ZYFA_LANES d[l] = F(a[l]);
  close(w, op, out);
}
template <auto F>
void int_2(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const Out out = open(w, op, to);
  u32* d = out.p;
  ZYFA_LANES d[l] = F(a[l], b[l]);
  close(w, op, out);
}
template <auto F>
void int_3(Wave& w, const MicroOp& op) {
  Temp ta, tb, tc, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32* c = fetch(w, op, 2, tc);
  const Out out = open(w, op, to);
  u32* d = out.p;
  ZYFA_LANES d[l] = F(a[l], b[l], c[l]);
  close(w, op, out);
}
// An exact result of 64 bits, which the clamp bit saturates and which wraps without it.
template <int N, bool Signed, auto F>
void int_exact(Wave& w, const MicroOp& op) {
  Temp t[3], to;
  const u32* s[3] = {};
  for (unsigned i = 0; i < N; ++i) s[i] = fetch(w, op, i, t[i]);
  for (unsigned i = N; i < 3; ++i) s[i] = s[0];
  const Out out = open(w, op, to);
  u32* d = out.p;
  if (op.clamp) {
    constexpr i64 kLow = Signed ? -2147483648ll : 0, kHigh = Signed ? 2147483647ll : 4294967295ll;
    for (unsigned l = 0; l < kLanes; ++l) {
      const i64 x = F(s[0][l], s[1][l], s[2][l]);
      to.lane[l] = static_cast<u32>(x < kLow ? kLow : x > kHigh ? kHigh : x);
    }
    return close(w, op, Out{to.lane, false});
  }
  ZYFA_LANES d[l] = static_cast<u32>(F(s[0][l], s[1][l], s[2][l]));
  close(w, op, out);
}
// Clamping forms of 32-bit add and subtract.
template <auto F, auto Saturating>
void int_2c(Wave& w, const MicroOp& op) {
  if (!op.clamp) return int_2<F>(w, op);
  return int_2<Saturating>(w, op);
}

ZYFA_SIM_INLINE u64 join(u32 lo, u32 hi) { return static_cast<u64>(lo) | (static_cast<u64>(hi) << 32); }

// 64-bit results: D = F(a, b, c) on 64-bit values of 1 or 2 dwords each.
template <int A, int B, int C, auto F>
void long_op(Wave& w, const MicroOp& op) {
  Temp t[6], to[2];
  const u32* al = fetch(w, op, 0, t[0]);
  const u32* ah = A == 2 ? fetch(w, op, 0, t[1], 1) : al;
  const u32* bl = B ? fetch(w, op, 1, t[2]) : al;
  const u32* bh = B == 2 ? fetch(w, op, 1, t[3], 1) : bl;
  const u32* cl = C ? fetch(w, op, 2, t[4]) : al;
  const u32* ch = C == 2 ? fetch(w, op, 2, t[5], 1) : cl;
  u32 *lo = to[0].lane, *hi = to[1].lane;
  ZYFA_LANES {
    const u64 a = A == 2 ? join(al[l], ah[l]) : al[l];
    const u64 b = B == 2 ? join(bl[l], bh[l]) : bl[l];
    const u64 c = C == 2 ? join(cl[l], ch[l]) : cl[l];
    const u64 r = F(a, b, c);
    lo[l] = static_cast<u32>(r);
    hi[l] = static_cast<u32>(r >> 32);
  }
  close(w, op, Out{lo, false}, 0);
  close(w, op, Out{hi, false}, 1);
}

ZYFA_SIM_INLINE void write_mask(Wave& w, const MicroOp& op, u64 mask) {
  w.set_scalar64(op.dst2.index, mask & (op.dpp ? dpp_lanes(w, op) : w.exec()));
}

// v_add_co, v_sub_co, ...: carry or borrow out of 33-bit arithmetic, carry in from a lane mask.
enum class Carry { kAdd, kSub, kSubrev };
template <Carry K, bool In>
void carry_op(Wave& w, const MicroOp& op) {
  Temp ta, tb, to, tm;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u64 in = In ? join(scalar_value(w, op.src[2], 0), scalar_value(w, op.src[2], 1)) : 0;
  const bool direct = w.exec() == ~0ull && !op.post;
  u32* d = direct ? w.v[op.dst.index].lane : to.lane;
  u32* carry = tm.lane;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 x = K == Carry::kSubrev ? b[l] : a[l], y = K == Carry::kSubrev ? a[l] : b[l];
    const u64 c = In ? (in >> l) & 1 : 0;
    const u64 r = K == Carry::kAdd ? static_cast<u64>(x) + y + c : static_cast<u64>(x) - y - c;
    carry[l] = static_cast<u32>(r >> 32) & 1;
    d[l] = op.clamp && carry[l] ? (K == Carry::kAdd ? ~0u : 0u) : static_cast<u32>(r);
  }
  close(w, op, Out{d, direct});
  write_mask(w, op, pack_mask(carry));
}

// v_mad_u64_u32 / v_mad_i64_i32: 65-bit sum, the carry goes to the mask.
template <bool Signed>
void mad_wide(Wave& w, const MicroOp& op) {
  Temp t[4], to[2];
  const u32* a = fetch(w, op, 0, t[0]);
  const u32* b = fetch(w, op, 1, t[1]);
  const u32* cl = fetch(w, op, 2, t[2]);
  const u32* ch = fetch(w, op, 2, t[3], 1);
  u64 mask = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 c = join(cl[l], ch[l]);
    const u64 product = Signed ? static_cast<u64>(static_cast<i64>(static_cast<i32>(a[l])) * static_cast<i32>(b[l]))
                               : static_cast<u64>(a[l]) * b[l];
    u64 r = product + c;
    const bool carry = Signed ? (((product ^ r) & (c ^ r)) >> 63) : r < product;
    if (op.clamp && carry) r = Signed ? (static_cast<i64>(c) < 0 ? 1ull << 63 : ~(1ull << 63)) : ~0ull;
    to[0].lane[l] = static_cast<u32>(r);
    to[1].lane[l] = static_cast<u32>(r >> 32);
    mask |= static_cast<u64>(carry) << l;
  }
  close(w, op, Out{to[0].lane, false}, 0);
  close(w, op, Out{to[1].lane, false}, 1);
  write_mask(w, op, mask);
}

// The mask of v_cndmask is its last operand.
void cndmask(Wave& w, const MicroOp& op) {
  Temp ta, tb, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u64 mask = join(scalar_value(w, op.src[2], 0), scalar_value(w, op.src[2], 1));
  const Out out = open(w, op, to);
  u32* d = out.p;
#if defined(__AVX512F__)
  for (unsigned k = 0; k < 4; ++k) {
    _mm512_storeu_si512(
        d + 16 * k, _mm512_mask_blend_epi32(static_cast<__mmask16>(mask >> (16 * k)), _mm512_loadu_si512(a + 16 * k),
                                            _mm512_loadu_si512(b + 16 * k)));
  }
#else
  for (unsigned l = 0; l < kLanes; ++l) d[l] = (mask >> l) & 1 ? b[l] : a[l];
#endif
  close(w, op, out);
}

void bitop3(Wave& w, const MicroOp& op) {
  Temp ta, tb, tc, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32* c = fetch(w, op, 2, tc);
  const Out out = open(w, op, to);
  u32 term[8];
  for (unsigned k = 0; k < 8; ++k) term[k] = (op.bitop3 >> k) & 1 ? ~0u : 0u;
  u32* d = out.p;
  ZYFA_LANES {
    const u32 x = a[l], y = b[l], z = c[l];
    const u32 low = (term[0] & ~y & ~z) | (term[1] & ~y & z) | (term[2] & y & ~z) | (term[3] & y & z);
    const u32 high = (term[4] & ~y & ~z) | (term[5] & ~y & z) | (term[6] & y & ~z) | (term[7] & y & z);
    d[l] = (x & high) | (~x & low);
  }
  close(w, op, out);
}

// Byte pool {s0, s1}: selectors 0-3 are bytes of s1, 4-7 of s0; 8-11 sign fills, 12 zero, 13 and more 0xff.
ZYFA_SIM_INLINE u32 perm(u32 s0, u32 s1, u32 sel) {
  const u64 pool = join(s1, s0);
  u32 r = 0;
  for (unsigned j = 0; j < 4; ++j) {
    const u32 k = (sel >> (8 * j)) & 0xff;
    u32 byte;
    if (k < 8) {
      byte = static_cast<u32>(pool >> (8 * k)) & 0xff;
    } else if (k < 12) {
      byte = (pool >> (16 * (k - 8) + 15)) & 1 ? 0xff : 0;
    } else {
      byte = k == 12 ? 0 : 0xff;
    }
    r |= byte << (8 * j);
  }
  return r;
}
ZYFA_SIM_INLINE i32 sx24(u32 x) { return static_cast<i32>(x << 8) >> 8; }
ZYFA_SIM_INLINE u32 z24(u32 x) { return x & 0xffffffu; }
ZYFA_SIM_INLINE i32 s32(u32 x) { return static_cast<i32>(x); }
ZYFA_SIM_INLINE i64 u24(u32 x) { return z24(x); }
ZYFA_SIM_INLINE i64 i24(u32 x) { return sx24(x); }
ZYFA_SIM_INLINE u32 bfe_u(u32 a, u32 offset, u32 width) {
  offset &= 31;
  width &= 31;
  return width == 0 ? 0 : (a >> offset) & ((1u << width) - 1);
}
ZYFA_SIM_INLINE u32 bfe_i(u32 a, u32 offset, u32 width) {
  offset &= 31;
  width &= 31;
  if (width == 0) return 0;
  const u32 x = a >> offset;
  if (offset + width >= 32) return static_cast<u32>(s32(a) >> offset);
  return static_cast<u32>(static_cast<i32>(x << (32 - width)) >> (32 - width));
}
ZYFA_SIM_INLINE u32 min_u(u32 a, u32 b) { return a < b ? a : b; }
ZYFA_SIM_INLINE u32 max_u(u32 a, u32 b) { return a > b ? a : b; }
ZYFA_SIM_INLINE u32 min_i(u32 a, u32 b) { return s32(a) < s32(b) ? a : b; }
ZYFA_SIM_INLINE u32 max_i(u32 a, u32 b) { return s32(a) > s32(b) ? a : b; }

void mov_b64(Wave& w, const MicroOp& op) {
  for (unsigned k = 0; k < 2; ++k) {
    Temp ta, to;
    const u32* a = fetch(w, op, 0, ta, k);
    const Out out = open(w, op, to, k);
    u32* d = out.p;
    ZYFA_LANES d[l] = a[l];
    close(w, op, out, k);
  }
}
// D[low] from the dword op_sel[0] of source 0, D[high] from the dword op_sel[1] of source 1.
void pk_mov(Wave& w, const MicroOp& op) {
  Temp ta, tb, to[2];
  const u32* a = fetch(w, op, 0, ta, op.op_sel & 1);
  const u32* b = fetch(w, op, 1, tb, (op.op_sel >> 1) & 1);
  for (unsigned l = 0; l < kLanes; ++l) {
    to[0].lane[l] = a[l];
    to[1].lane[l] = b[l];
  }
  close(w, op, Out{to[0].lane, false}, 0);
  close(w, op, Out{to[1].lane, false}, 1);
}
// Swaps two registers under EXEC.
void swap_b32(Wave& w, const MicroOp& op) {
  u32 *x = w.v[op.dst.index].lane, *y = w.v[op.src[0].index].lane;
  const u64 exec = w.exec();
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!((exec >> l) & 1)) continue;
    const u32 t = x[l];
    x[l] = y[l];
    y[l] = t;
  }
}
// (a >> sh) of two sources, saturated to 8 bits and packed into a half of the destination; the other half is kept.
template <i32 Lo, i32 Hi>
void ashr_pk(Wave& w, const MicroOp& op) {
  Temp ta, tb, tc, to;
  const u32* a = fetch(w, op, 0, ta);
  const u32* b = fetch(w, op, 1, tb);
  const u32* c = fetch(w, op, 2, tc);
  const u32* old = w.v[op.dst.index].lane;
  const HalfPlace place = half_place(op);
  for (unsigned l = 0; l < kLanes; ++l) {
    const i32 x = s32(a[l]) >> (c[l] & 31), y = s32(b[l]) >> (c[l] & 31);
    const u32 p = static_cast<u32>(x < Lo ? Lo : x > Hi ? Hi : x) & 0xff;
    const u32 q = static_cast<u32>(y < Lo ? Lo : y > Hi ? Hi : y) & 0xff;
    to.lane[l] = place_half(place, p | (q << 8), old[l]);
  }
  close(w, op, Out{to.lane, false});
}
#define I1(name, sig, expr) {name, sig, &int_1<([](u32 a) -> u32 { return expr; })>, Unit::kValu, 0, 0}
#define I2(name, expr) {name, "i=ii", &int_2<([](u32 a, u32 b) -> u32 { return expr; })>, Unit::kValu, 0, 0}
// The clamp bit is accepted where a result cannot leave the range.
#define M2(name, expr) {name, "i=ii", &int_2<([](u32 a, u32 b) -> u32 { return expr; })>, Unit::kValu, kIntClamp, 0}
#define M3(name, expr) \
  {name, "i=iii", &int_3<([](u32 a, u32 b, u32 c) -> u32 { return expr; })>, Unit::kValu, kIntClamp, 0}
#define I3(name, expr) {name, "i=iii", &int_3<([](u32 a, u32 b, u32 c) -> u32 { return expr; })>, Unit::kValu, 0, 0}
#define L3(name, sig, A, B, C, expr)                                                                                 \
  {name,                                                                                                             \
   sig,                                                                                                              \
   &long_op<A, B, C, [](u64 a, u64 b, u64 c) -> u64 { return static_cast<void>(b), static_cast<void>(c), (expr); }>, \
   Unit::kValu,                                                                                                      \
   0,                                                                                                                \
   0}

constexpr auto kAdd = [](u32 a, u32 b) { return a + b; };
constexpr auto kSub = [](u32 a, u32 b) { return a - b; };
constexpr auto kSubrev = [](u32 a, u32 b) { return b - a; };
constexpr auto kAddSatU = [](u32 a, u32 b) { return a + b < a ? ~0u : a + b; };
constexpr auto kSubSatU = [](u32 a, u32 b) { return a > b ? a - b : 0u; };
constexpr auto kSubrevSatU = [](u32 a, u32 b) { return b > a ? b - a : 0u; };
ZYFA_SIM_INLINE u32 sat_i(i64 x) {
  return static_cast<u32>(static_cast<i32>(x < -2147483648ll ? -2147483648ll : x > 2147483647ll ? 2147483647ll : x));
}
constexpr auto kAddSatI = [](u32 a, u32 b) { return sat_i(static_cast<i64>(s32(a)) + s32(b)); };
constexpr auto kSubSatI = [](u32 a, u32 b) { return sat_i(static_cast<i64>(s32(a)) - s32(b)); };

constexpr OpRow kRows[] = {
    {"v_mov_b32", "i=i", &int_1<([](u32 a) { return a; })>, Unit::kValu, kCopies, 0},
    {"v_accvgpr_read_b32", "i=i", &int_1<([](u32 a) { return a; })>, Unit::kValu, kCopies, 0},
    {"v_accvgpr_write_b32", "i=i", &int_1<([](u32 a) { return a; })>, Unit::kValu, kCopies, 0},
    {"v_accvgpr_mov_b32", "i=i", &int_1<([](u32 a) { return a; })>, Unit::kValu, kCopies, 0},
    {"v_mov_b64", "l=l", &mov_b64, Unit::kValu, kCopies, 0},
    {"v_pk_mov_b32", "l=ll", &pk_mov, Unit::kValu, kPacked | kCopies, 0},
    {"v_swap_b32", "i=i", &swap_b32, Unit::kValu, kLaneSwap, 0},
    {"v_cndmask_b32", "i=iim", &cndmask, Unit::kValu, kSelects | kFloatMods, 0},
    I1("v_not_b32", "i=i", ~a),
    I1("v_bfrev_b32", "i=i",
       ((a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1),
         a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2),
         a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4)),
        __builtin_bswap32(a))),
    I1("v_ffbh_u32", "i=i", a == 0 ? ~0u : static_cast<u32>(__builtin_clz(a))),
    I1("v_ffbl_b32", "i=i", a == 0 ? ~0u : static_cast<u32>(__builtin_ctz(a))),
    I1("v_ffbh_i32", "i=i",
       (a == 0 || a == ~0u) ? ~0u : static_cast<u32>(__builtin_clz(a ^ static_cast<u32>(s32(a) >> 31)))),
    {"v_add_u32", "i=ii", &int_2c<kAdd, kAddSatU>, Unit::kValu, kIntClamp, 0},
    {"v_sub_u32", "i=ii", &int_2c<kSub, kSubSatU>, Unit::kValu, kIntClamp, 0},
    {"v_subrev_u32", "i=ii", &int_2c<kSubrev, kSubrevSatU>, Unit::kValu, kIntClamp, 0},
    {"v_add_i32", "i=ii", &int_2c<kAdd, kAddSatI>, Unit::kValu, kIntClamp, 0},
    {"v_sub_i32", "i=ii", &int_2c<kSub, kSubSatI>, Unit::kValu, kIntClamp, 0},
    {"v_add_co_u32", "i,m=ii", &carry_op<Carry::kAdd, false>, Unit::kValu, kIntClamp, 0},
    {"v_sub_co_u32", "i,m=ii", &carry_op<Carry::kSub, false>, Unit::kValu, kIntClamp, 0},
    {"v_subrev_co_u32", "i,m=ii", &carry_op<Carry::kSubrev, false>, Unit::kValu, kIntClamp, 0},
    {"v_addc_co_u32", "i,m=iim", &carry_op<Carry::kAdd, true>, Unit::kValu, kIntClamp, 0},
    {"v_subb_co_u32", "i,m=iim", &carry_op<Carry::kSub, true>, Unit::kValu, kIntClamp, 0},
    {"v_subbrev_co_u32", "i,m=iim", &carry_op<Carry::kSubrev, true>, Unit::kValu, kIntClamp, 0},
    I2("v_and_b32", a& b),
    I2("v_or_b32", a | b),
    I2("v_xor_b32", a ^ b),
    I2("v_xnor_b32", ~(a ^ b)),
    I2("v_lshlrev_b32", b << (a & 31)),
    I2("v_lshrrev_b32", b >> (a & 31)),
    I2("v_ashrrev_i32", static_cast<u32>(s32(b) >> (a & 31))),
    M2("v_min_u32", min_u(a, b)),
    M2("v_max_u32", max_u(a, b)),
    M2("v_min_i32", min_i(a, b)),
    M2("v_max_i32", max_i(a, b)),
    I2("v_mul_lo_u32", a* b),
    I2("v_mul_hi_u32", static_cast<u32>((static_cast<u64>(a) * b) >> 32)),
    I2("v_mul_hi_i32", static_cast<u32>(static_cast<u64>(static_cast<i64>(s32(a)) * s32(b)) >> 32)),
    {"v_mul_u32_u24", "i=ii", (&int_exact<2, false, ([](u32 a, u32 b, u32) { return u24(a) * u24(b); })>), Unit::kValu,
     kIntClamp, 0},
    {"v_mul_i32_i24", "i=ii", (&int_exact<2, true, ([](u32 a, u32 b, u32) { return i24(a) * i24(b); })>), Unit::kValu,
     kIntClamp, 0},
    M2("v_mul_hi_u32_u24", static_cast<u32>((static_cast<u64>(z24(a)) * z24(b)) >> 32)),
    M2("v_mul_hi_i32_i24", static_cast<u32>(static_cast<u64>(static_cast<i64>(sx24(a)) * sx24(b)) >> 32)),
    I2("v_bfm_b32", ((1u << (a & 31)) - 1) << (b & 31)),
    I2("v_bcnt_u32_b32", static_cast<u32>(__builtin_popcount(a)) + b),
    I3("v_add3_u32", a + b + c),
    I3("v_lshl_add_u32", (a << (b & 31)) + c),
    I3("v_add_lshl_u32", (a + b) << (c & 31)),
    I3("v_lshl_or_b32", (a << (b & 31)) | c),
    I3("v_and_or_b32", (a & b) | c),
    I3("v_or3_b32", a | b | c),
    I3("v_xad_u32", (a ^ b) + c),
    I3("v_bfe_u32", bfe_u(a, b, c)),
    I3("v_bfe_i32", bfe_i(a, b, c)),
    I3("v_bfi_b32", (a & b) | (~a & c)),
    I3("v_alignbit_b32", static_cast<u32>(((static_cast<u64>(a) << 32) | b) >> (c & 31))),
    I3("v_alignbyte_b32", static_cast<u32>(((static_cast<u64>(a) << 32) | b) >> (8 * (c & 3)))),
    I3("v_perm_b32", perm(a, b, c)),
    {"v_mad_u32_u24", "i=iii", (&int_exact<3, false, ([](u32 a, u32 b, u32 c) { return u24(a) * u24(b) + c; })>),
     Unit::kValu, kIntClamp, 0},
    {"v_mad_i32_i24", "i=iii", (&int_exact<3, true, ([](u32 a, u32 b, u32 c) { return i24(a) * i24(b) + s32(c); })>),
     Unit::kValu, kIntClamp, 0},
    M3("v_min3_u32", min_u(min_u(a, b), c)),
    M3("v_max3_u32", max_u(max_u(a, b), c)),
    M3("v_min3_i32", min_i(min_i(a, b), c)),
    M3("v_max3_i32", max_i(max_i(a, b), c)),
    M3("v_med3_u32", max_u(min_u(a, b), min_u(max_u(a, b), c))),
    M3("v_med3_i32", max_i(min_i(a, b), min_i(max_i(a, b), c))),
    {"v_bitop3_b32", "i=iii", &bitop3, Unit::kValu, 0, 0},
    {"v_mad_u64_u32", "l,m=iil", &mad_wide<false>, Unit::kValu, kWideAddend | kIntClamp, 0},
    {"v_mad_i64_i32", "l,m=iil", &mad_wide<true>, Unit::kValu, kWideAddend | kIntClamp, 0},
    L3("v_lshl_add_u64", "l=lil", 2, 1, 2, (a << ((b & 7) > 4 ? 0 : (b & 7))) + c),
    L3("v_lshlrev_b64", "l=il", 1, 2, 0, b << (a & 63)),
    L3("v_lshrrev_b64", "l=il", 1, 2, 0, b >> (a & 63)),
    L3("v_ashrrev_i64", "l=il", 1, 2, 0, static_cast<u64>(static_cast<i64>(b) >> (a & 63))),
    {"v_ashr_pk_u8_i32", "i=iii", &ashr_pk<0, 255>, Unit::kValu, kPartialWrite | kOpSel, 0},
    {"v_ashr_pk_i8_i32", "i=iii", &ashr_pk<-128, 127>, Unit::kValu, kPartialWrite | kOpSel, 0},
};

}  // namespace

RowTable integer_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
