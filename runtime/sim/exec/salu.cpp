// Scalar ALU instructions.
#include <bit>

#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

u32 read32(const Wave& w, const Operand& o) { return scalar_value(w, o, 0); }
u64 read64(const Wave& w, const Operand& o) {
  return scalar_value(w, o, 0) | (static_cast<u64>(scalar_value(w, o, 1)) << 32);
}
void write64(Wave& w, const Operand& o, u64 x) { w.set_scalar64(o.index, x); }

struct Result {
  u64 value;
  bool scc;
};
i32 s32(u32 x) { return static_cast<i32>(x); }
i64 s64(u64 x) { return static_cast<i64>(x); }

// D = F(a, b), SCC = result's second half when the row says so.
template <auto F>
void op32(Wave& w, const MicroOp& op) {
  const u32 a = read32(w, op.src[0]), b = op.sources > 1 ? read32(w, op.src[1]) : 0;
  const Result r = F(a, b, w.scc);
  w.s[op.dst.index] = static_cast<u32>(r.value);
  if (op.flags & kWritesScc) w.scc = r.scc;
}
template <auto F>
void op64(Wave& w, const MicroOp& op) {
  const u64 a = read64(w, op.src[0]), b = op.sources > 1 ? read64(w, op.src[1]) : 0;
  const Result r = F(a, b, w.scc);
  write64(w, op.dst, r.value);
  if (op.flags & kWritesScc) w.scc = r.scc;
}
// 64-bit source a, 32-bit source b, 64-bit result (shifts, bfe).
template <auto F>
void op64_32(Wave& w, const MicroOp& op) {
  const Result r = F(read64(w, op.src[0]), read32(w, op.src[1]), w.scc);
  write64(w, op.dst, r.value);
  if (op.flags & kWritesScc) w.scc = r.scc;
}
// 64-bit source, 32-bit result.
template <auto F>
void op32_of_64(Wave& w, const MicroOp& op) {
  const Result r = F(read64(w, op.src[0]), 0, w.scc);
  w.s[op.dst.index] = static_cast<u32>(r.value);
  if (op.flags & kWritesScc) w.scc = r.scc;
}
// 32-bit sources, 64-bit result.
template <auto F>
void op64_of_32(Wave& w, const MicroOp& op) {
  const u32 b = op.sources > 1 ? read32(w, op.src[1]) : 0;
  write64(w, op.dst, F(read32(w, op.src[0]), b, w.scc).value);
}
template <auto F>
void compare(Wave& w, const MicroOp& op) {
  w.scc = F(read32(w, op.src[0]), read32(w, op.src[1]));
}
template <auto F>
void compare64(Wave& w, const MicroOp& op) {
  w.scc = F(read64(w, op.src[0]), read64(w, op.src[1]));
}
// SOPK: the destination is the first source, the second is a sign- or zero-extended immediate.
template <auto F>
void opk(Wave& w, const MicroOp& op) {
  const u32 k = static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(read32(w, op.src[0]))));
  const Result r = F(w.s[op.dst.index], k, w.scc);
  w.s[op.dst.index] = static_cast<u32>(r.value);
  if (op.flags & kWritesScc) w.scc = r.scc;
}
template <bool Signed, auto F>
void comparek(Wave& w, const MicroOp& op) {
  const u32 k = read32(w, op.src[1]);
  w.scc =
      F(read32(w, op.src[0]), Signed ? static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(k))) : k & 0xffff);
}
// The bit number is the source; the destination keeps its other bits.
template <bool Set>
void bitset(Wave& w, const MicroOp& op) {
  const u32 bit = 1u << (read32(w, op.src[0]) & 31);
  w.s[op.dst.index] = Set ? w.s[op.dst.index] | bit : w.s[op.dst.index] & ~bit;
}
template <bool Set>
void bitset64(Wave& w, const MicroOp& op) {
  const u64 bit = 1ull << (read32(w, op.src[0]) & 63), old = w.scalar64(op.dst.index);
  write64(w, op.dst, Set ? old | bit : old & ~bit);
}
u64 replicate_bits(u32 a) {
  u64 r = 0;
  for (int i = 0; i < 32; ++i) r |= ((a >> i) & 1 ? 3ull : 0) << (2 * i);
  return r;
}
// Relative moves: M0 is added to the number of the source or destination register. Outside of s0 to s101 a source is s0
// and a destination is not written (guide 3.6.1); pairs start at even registers.
constexpr u32 kAddressableScalars = 102;
template <int Dwords>
bool relative(const Wave& w, const Operand& o, u32& index) {
  const u64 at = static_cast<u64>(o.index) + w.s[kM0];
  if (at + Dwords > kAddressableScalars) return false;
  index = static_cast<u32>(at) & (Dwords == 2 ? ~1u : ~0u);
  return true;
}
template <int Dwords>
void movrels(Wave& w, const MicroOp& op) {
  u32 from = 0;
  if (!relative<Dwords>(w, op.src[0], from)) from = 0;
  for (int k = 0; k < Dwords; ++k) w.s[op.dst.index + k] = w.s[from + static_cast<u32>(k)];
}
template <int Dwords>
void movreld(Wave& w, const MicroOp& op) {
  u32 to = 0;
  if (!relative<Dwords>(w, op.dst, to)) return;
  for (unsigned k = 0; k < Dwords; ++k) w.s[to + k] = scalar_value(w, op.src[0], k);
}
void cmovk(Wave& w, const MicroOp& op) {
  if (w.scc) w.s[op.dst.index] = static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(read32(w, op.src[0]))));
}
void cmov32(Wave& w, const MicroOp& op) {
  if (w.scc) w.s[op.dst.index] = read32(w, op.src[0]);
}
void cmov64(Wave& w, const MicroOp& op) {
  if (w.scc) write64(w, op.dst, read64(w, op.src[0]));
}

// D = EXEC; EXEC = F(source, EXEC); SCC = EXEC != 0.
template <auto F>
void saveexec(Wave& w, const MicroOp& op) {
  const u64 source = read64(w, op.src[0]), exec = w.exec();
  write64(w, op.dst, exec);
  const u64 next = F(source, exec);
  w.set_scalar64(kExecLo, next);
  w.scc = next != 0;
}
// D = EXEC = F(source, EXEC).
template <auto F>
void wrexec(Wave& w, const MicroOp& op) {
  const u64 next = F(read64(w, op.src[0]), w.exec());
  w.set_scalar64(kExecLo, next);
  write64(w, op.dst, next);
  w.scc = next != 0;
}

template <int Shift>
Result shift_add(u32 a, u32 b, u32) {
  const u64 r = (static_cast<u64>(a) << Shift) + b;
  return {r, (r >> 32) != 0};
}
constexpr auto kAddOverflow = [](u32 a, u32 b, u32) -> Result {
  const u32 r = a + b;
  return {r, (((a ^ r) & (b ^ r)) >> 31) != 0};
};
constexpr auto kSubOverflow = [](u32 a, u32 b, u32) -> Result {
  const u32 r = a - b;
  return {r, (((a ^ b) & (a ^ r)) >> 31) != 0};
};
Result logic(u64 r) { return {r, r != 0}; }
Result logic32(u32 r) { return {r, r != 0}; }

u32 bfe_u32(u32 a, u32 control) {
  const u32 offset = control & 31, width = (control >> 16) & 0x7f;
  const u64 x = static_cast<u64>(a) >> offset;
  return static_cast<u32>(width >= 64 ? x : x & ((1ull << width) - 1));
}
u64 bfe_u64(u64 a, u32 control) {
  const u32 offset = control & 63, width = (control >> 16) & 0x7f;
  const u64 x = a >> offset;
  return width >= 64 ? x : x & ((1ull << width) - 1);
}
u64 bfe_i64(u64 a, u32 control, u32 word) {
  const u32 offset = control & (word - 1);
  u32 width = (control >> 16) & 0x7f;
  if (width == 0) return 0;
  if (offset + width > word) width = word - offset;
  return static_cast<u64>(s64(a << (64 - offset - width)) >> (64 - width));
}
u32 bit_reverse(u32 a) {
  u32 r = 0;
  for (int i = 0; i < 32; ++i) r |= ((a >> i) & 1) << (31 - i);
  return r;
}
u64 quad_or(u64 a) {
  u64 r = 0;
  for (int i = 0; i < 64; i += 4) r |= ((a >> i) & 0xf) ? (1ull << (i / 4)) : 0;
  return r;
}
u64 whole_quads(u64 a) {
  u64 r = 0;
  for (int i = 0; i < 64; i += 4) r |= ((a >> i) & 0xf) ? (0xfull << i) : 0;
  return r;
}

constexpr u32 kC = kWritesScc;
#define S32(name, flags, expr)                                                                                \
  {name,                                                                                                      \
   "s=ss",                                                                                                    \
   &op32<([](u32 a, u32 b, u32 c) -> Result { return static_cast<void>(c), static_cast<void>(b), (expr); })>, \
   Unit::kSalu,                                                                                               \
   flags,                                                                                                     \
   0}
#define U32(name, flags, expr)                                       \
  {name,        "s=s", &op32<([](u32 a, u32, u32 c) -> Result { return static_cast<void>(c), (expr); })>, \
   Unit::kSalu, flags, 0}
#define S64(name, flags, expr)                                          \
  {name,        "S=SS", &op64<([](u64 a, u64 b, u32 c) -> Result { return static_cast<void>(c), (expr); })>, \
   Unit::kSalu, flags,  0}
#define U64(name, flags, expr)                                       \
  {name,        "S=S", &op64<([](u64 a, u64, u32 c) -> Result { return static_cast<void>(c), (expr); })>, \
   Unit::kSalu, flags, 0}
#define SH64(name, flags, expr)                                            \
  {name,        "S=Ss", &op64_32<([](u64 a, u32 b, u32 c) -> Result { return static_cast<void>(c), (expr); })>, \
   Unit::kSalu, flags,  0}
#define N64(name, flags, expr)                                             \
  {name,        "s=S", &op32_of_64<([](u64 a, u64, u32 c) -> Result { return static_cast<void>(c), (expr); })>, \
   Unit::kSalu, flags, 0}
#define CMP(name, expr) {name, "=ss", &compare<([](u32 a, u32 b) -> bool { return expr; })>, Unit::kSalu, kC, 0}
#define CMPKI(name, expr) \
  {name, "=sk", &comparek<true, ([](u32 a, u32 b) -> bool { return expr; })>, Unit::kSalu, kC, 0}
#define CMPKU(name, expr) \
  {name, "=sk", &comparek<false, ([](u32 a, u32 b) -> bool { return expr; })>, Unit::kSalu, kC, 0}
#define SAVE(name, expr)                                                                        \
  {"s_" name "_saveexec_b64",     "S=S", &saveexec<([](u64 s, u64 e) -> u64 { return expr; })>, Unit::kSalu, \
   kC | kWritesExec | kReadsExec, 0}

constexpr OpRow kRows[] = {
    U32("s_mov_b32", kCopies, (Result{a, false})),
    U64("s_mov_b64", kCopies, (Result{a, false})),
    {"s_movk_i32", "s=k", &op32<([](u32 a, u32, u32) -> Result {
       return {static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(a))), false};
     })>,
     Unit::kSalu, 0, 0},
    {"s_cmov_b32", "s=s", &cmov32, Unit::kSalu, kReadsScc | kTied, 0},
    {"s_cmov_b64", "S=S", &cmov64, Unit::kSalu, kReadsScc | kTied, 0},
    {"s_cmovk_i32", "s=k", &cmovk, Unit::kSalu, kReadsScc | kTied, 0},
    S32("s_add_u32", kC, (Result{a + b, a + b < a})),
    S32("s_sub_u32", kC, (Result{a - b, a < b})),
    S32("s_addc_u32", kC | kReadsScc,
        (Result{static_cast<u64>(a) + b + c, ((static_cast<u64>(a) + b + c) >> 32) != 0})),
    S32("s_subb_u32", kC | kReadsScc, (Result{a - b - c, static_cast<u64>(a) < static_cast<u64>(b) + c})),
    {"s_add_i32", "s=ss", &op32<kAddOverflow>, Unit::kSalu, kC, 0},
    {"s_sub_i32", "s=ss", &op32<kSubOverflow>, Unit::kSalu, kC, 0},
    {"s_addk_i32", "s=k", &opk<kAddOverflow>, Unit::kSalu, kC | kTied, 0},
    {"s_mulk_i32", "s=k", &opk<([](u32 a, u32 b, u32) -> Result { return {a * b, false}; })>, Unit::kSalu, kTied, 0},
    S32("s_mul_i32", 0, (Result{a * b, false})),
    S32("s_mul_hi_u32", 0, (Result{(static_cast<u64>(a) * b) >> 32, false})),
    S32("s_mul_hi_i32", 0, (Result{static_cast<u64>(static_cast<i64>(s32(a)) * s32(b)) >> 32, false})),
    S32("s_min_i32", kC, (s32(a) < s32(b) ? Result{a, true} : Result{b, false})),
    S32("s_max_i32", kC, (s32(a) > s32(b) ? Result{a, true} : Result{b, false})),
    S32("s_min_u32", kC, (a < b ? Result{a, true} : Result{b, false})),
    S32("s_max_u32", kC, (a > b ? Result{a, true} : Result{b, false})),
    S32("s_absdiff_i32", kC, logic32(s32(a) > s32(b) ? a - b : b - a)),
    S32("s_and_b32", kC, logic32(a& b)),
    S32("s_or_b32", kC, logic32(a | b)),
    S32("s_xor_b32", kC, logic32(a ^ b)),
    S32("s_andn2_b32", kC, logic32(a & ~b)),
    S32("s_orn2_b32", kC, logic32(a | ~b)),
    S32("s_nand_b32", kC, logic32(~(a& b))),
    S32("s_nor_b32", kC, logic32(~(a | b))),
    S32("s_xnor_b32", kC, logic32(~(a ^ b))),
    S64("s_and_b64", kC, logic(a& b)),
    S64("s_or_b64", kC, logic(a | b)),
    S64("s_xor_b64", kC, logic(a ^ b)),
    S64("s_andn2_b64", kC, logic(a & ~b)),
    S64("s_orn2_b64", kC, logic(a | ~b)),
    S64("s_nand_b64", kC, logic(~(a& b))),
    S64("s_nor_b64", kC, logic(~(a | b))),
    S64("s_xnor_b64", kC, logic(~(a ^ b))),
    S32("s_lshl_b32", kC, logic32(a << (b & 31))),
    S32("s_lshr_b32", kC, logic32(a >> (b & 31))),
    S32("s_ashr_i32", kC, logic32(static_cast<u32>(s32(a) >> (b & 31)))),
    SH64("s_lshl_b64", kC, logic(a << (b & 63))),
    SH64("s_lshr_b64", kC, logic(a >> (b & 63))),
    SH64("s_ashr_i64", kC, logic(static_cast<u64>(s64(a) >> (b & 63)))),
    S32("s_bfe_u32", kC, logic32(bfe_u32(a, b))),
    S32("s_bfe_i32", kC, logic32(static_cast<u32>(bfe_i64(a, b, 32)))),
    SH64("s_bfe_u64", kC, logic(bfe_u64(a, b))),
    SH64("s_bfe_i64", kC, logic(bfe_i64(a, b, 64))),
    S32("s_bfm_b32", 0, (Result{((1u << (a & 31)) - 1) << (b & 31), false})),
    {"s_bfm_b64", "S=ss",
     &op64_of_32<([](u32 a, u32 b, u32) -> Result { return {((1ull << (a & 63)) - 1) << (b & 63), false}; })>,
     Unit::kSalu, 0, 0},
    {"s_lshl1_add_u32", "s=ss", &op32<shift_add<1>>, Unit::kSalu, kC, 0},
    {"s_lshl2_add_u32", "s=ss", &op32<shift_add<2>>, Unit::kSalu, kC, 0},
    {"s_lshl3_add_u32", "s=ss", &op32<shift_add<3>>, Unit::kSalu, kC, 0},
    {"s_lshl4_add_u32", "s=ss", &op32<shift_add<4>>, Unit::kSalu, kC, 0},
    S32("s_pack_ll_b32_b16", 0, (Result{(a & 0xffff) | (b << 16), false})),
    S32("s_pack_lh_b32_b16", 0, (Result{(a & 0xffff) | (b & 0xffff0000u), false})),
    S32("s_pack_hh_b32_b16", 0, (Result{(a >> 16) | (b & 0xffff0000u), false})),
    S32("s_cselect_b32", kReadsScc, (Result{c ? a : b, false})),
    S64("s_cselect_b64", kReadsScc, (Result{c ? a : b, false})),
    U32("s_not_b32", kC, logic32(~a)),
    U64("s_not_b64", kC, logic(~a)),
    U32("s_brev_b32", 0, (Result{bit_reverse(a), false})),
    U64("s_brev_b64", 0,
        (Result{(static_cast<u64>(bit_reverse(static_cast<u32>(a))) << 32) | bit_reverse(static_cast<u32>(a >> 32)),
                false})),
    U32("s_abs_i32", kC, logic32(s32(a) < 0 ? 0 - a : a)),
    U32("s_sext_i32_i8", 0, (Result{static_cast<u32>(static_cast<i32>(static_cast<std::int8_t>(a))), false})),
    U32("s_sext_i32_i16", 0, (Result{static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(a))), false})),
    U32("s_ff1_i32_b32", 0, (Result{a ? static_cast<u32>(std::countr_zero(a)) : ~0u, false})),
    N64("s_ff1_i32_b64", 0, (Result{a ? static_cast<u32>(std::countr_zero(a)) : ~0u, false})),
    U32("s_ff0_i32_b32", 0, (Result{~a ? static_cast<u32>(std::countr_one(a)) : ~0u, false})),
    N64("s_ff0_i32_b64", 0, (Result{~a ? static_cast<u32>(std::countr_one(a)) : ~0u, false})),
    U32("s_flbit_i32_b32", 0, (Result{a ? static_cast<u32>(std::countl_zero(a)) : ~0u, false})),
    N64("s_flbit_i32_b64", 0, (Result{a ? static_cast<u32>(std::countl_zero(a)) : ~0u, false})),
    U32("s_flbit_i32", 0,
        (Result{(a == 0 || a == ~0u) ? ~0u : static_cast<u32>(std::countl_zero(a ^ static_cast<u32>(s32(a) >> 31))),
                false})),
    N64("s_flbit_i32_i64", 0,
        (Result{(a == 0 || a == ~0ull) ? ~0u : static_cast<u32>(std::countl_zero(a ^ static_cast<u64>(s64(a) >> 63))),
                false})),
    U32("s_bcnt0_i32_b32", kC, logic32(static_cast<u32>(32 - std::popcount(a)))),
    U32("s_bcnt1_i32_b32", kC, logic32(static_cast<u32>(std::popcount(a)))),
    N64("s_bcnt0_i32_b64", kC, logic32(static_cast<u32>(64 - std::popcount(a)))),
    N64("s_bcnt1_i32_b64", kC, logic32(static_cast<u32>(std::popcount(a)))),
    U32("s_wqm_b32", kC, logic32(static_cast<u32>(whole_quads(a)))),
    U64("s_wqm_b64", kC, logic(whole_quads(a))),
    U32("s_quadmask_b32", kC, logic32(static_cast<u32>(quad_or(a)))),
    U64("s_quadmask_b64", kC, logic(quad_or(a))),
    {"s_bitset0_b32", "s=s", &bitset<false>, Unit::kSalu, kTied, 0},
    {"s_bitset1_b32", "s=s", &bitset<true>, Unit::kSalu, kTied, 0},
    {"s_bitset0_b64", "S=s", &bitset64<false>, Unit::kSalu, kTied, 0},
    {"s_bitset1_b64", "S=s", &bitset64<true>, Unit::kSalu, kTied, 0},
    {"s_bitreplicate_b64_b32", "S=s",
     &op64_of_32<([](u32 a, u32, u32) -> Result { return {replicate_bits(a), false}; })>, Unit::kSalu, 0, 0},
    {"s_movrels_b32", "s=s", &movrels<1>, Unit::kSalu, kReadsM0, 0},
    {"s_movrels_b64", "S=S", &movrels<2>, Unit::kSalu, kReadsM0, 0},
    {"s_movreld_b32", "s=s", &movreld<1>, Unit::kSalu, kReadsM0, 0},
    {"s_movreld_b64", "S=S", &movreld<2>, Unit::kSalu, kReadsM0, 0},
    CMP("s_cmp_eq_i32", a == b),
    CMP("s_cmp_lg_i32", a != b),
    CMP("s_cmp_gt_i32", s32(a) > s32(b)),
    CMP("s_cmp_ge_i32", s32(a) >= s32(b)),
    CMP("s_cmp_lt_i32", s32(a) < s32(b)),
    CMP("s_cmp_le_i32", s32(a) <= s32(b)),
    CMP("s_cmp_eq_u32", a == b),
    CMP("s_cmp_lg_u32", a != b),
    CMP("s_cmp_gt_u32", a > b),
    CMP("s_cmp_ge_u32", a >= b),
    CMP("s_cmp_lt_u32", a < b),
    CMP("s_cmp_le_u32", a <= b),
    {"s_cmp_eq_u64", "=SS", &compare64<([](u64 a, u64 b) -> bool { return a == b; })>, Unit::kSalu, kC, 0},
    {"s_cmp_lg_u64", "=SS", &compare64<([](u64 a, u64 b) -> bool { return a != b; })>, Unit::kSalu, kC, 0},
    CMP("s_bitcmp0_b32", ((a >> (b & 31)) & 1) == 0),
    CMP("s_bitcmp1_b32", ((a >> (b & 31)) & 1) == 1),
    {"s_bitcmp0_b64", "=Ss", &compare64<([](u64 a, u64 b) -> bool { return ((a >> (b & 63)) & 1) == 0; })>, Unit::kSalu,
     kC, 0},
    {"s_bitcmp1_b64", "=Ss", &compare64<([](u64 a, u64 b) -> bool { return ((a >> (b & 63)) & 1) == 1; })>, Unit::kSalu,
     kC, 0},
    CMPKI("s_cmpk_eq_i32", a == b),
    CMPKI("s_cmpk_lg_i32", a != b),
    CMPKI("s_cmpk_gt_i32", s32(a) > s32(b)),
    CMPKI("s_cmpk_ge_i32", s32(a) >= s32(b)),
    CMPKI("s_cmpk_lt_i32", s32(a) < s32(b)),
    CMPKI("s_cmpk_le_i32", s32(a) <= s32(b)),
    CMPKU("s_cmpk_eq_u32", a == b),
    CMPKU("s_cmpk_lg_u32", a != b),
    CMPKU("s_cmpk_gt_u32", a > b),
    CMPKU("s_cmpk_ge_u32", a >= b),
    CMPKU("s_cmpk_lt_u32", a < b),
    CMPKU("s_cmpk_le_u32", a <= b),
    SAVE("and", s& e),
    SAVE("or", s | e),
    SAVE("xor", s ^ e),
    SAVE("andn1", ~s& e),
    SAVE("andn2", s & ~e),
    SAVE("orn1", ~s | e),
    SAVE("orn2", s | ~e),
    SAVE("nand", ~(s& e)),
    SAVE("nor", ~(s | e)),
    SAVE("xnor", ~(s ^ e)),
    {"s_andn1_wrexec_b64", "S=S", &wrexec<([](u64 s, u64 e) -> u64 { return ~s & e; })>, Unit::kSalu,
     kC | kWritesExec | kReadsExec, 0},
    {"s_andn2_wrexec_b64", "S=S", &wrexec<([](u64 s, u64 e) -> u64 { return s & ~e; })>, Unit::kSalu,
     kC | kWritesExec | kReadsExec, 0},
};

}  // namespace

RowTable scalar_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
