// Lane-wise helpers of vector handlers: operand fetch, result write under EXEC, bit casts.
//
// Included only by files that are compiled once per host instruction set, each inside its own ZYFA_SIM_ISA namespace
// and with internal linkage, so that code built for AVX-512 is never linked into the baseline path.
// Loops over 64 lanes are written for the compiler's vectoriser; results are bit-identical on every instruction set
// because every operation is IEEE and nothing is contracted or reassociated.
#pragma once

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/sim/exec/machine.h"

#ifndef ZYFA_SIM_ISA
#error "define ZYFA_SIM_ISA: the name of the instruction set this file is compiled for"
#endif

#if defined(__clang__)
#define ZYFA_LANES _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < kLanes; ++l)
#else
#define ZYFA_LANES _Pragma("GCC ivdep") for (unsigned l = 0; l < kLanes; ++l)
#endif

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

template <typename To, typename From>
ZYFA_SIM_INLINE To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}
ZYFA_SIM_INLINE float f32(u32 x) { return bits<float>(x); }
ZYFA_SIM_INLINE u32 raw(float x) { return bits<u32>(x); }

struct alignas(64) Temp {
  u32 lane[kLanes];
};

ZYFA_SIM_INLINE u32 flush32(u32 x, u32 mask) { return x & ((x & 0x7f800000u) ? ~0u : mask); }
ZYFA_SIM_INLINE u64 flush64(u64 x, u64 mask) { return x & ((x & 0x7ff0000000000000ull) ? ~0ull : mask); }

ZYFA_SIM_INLINE u32 select_bits(u32 x, Sel sel, bool sext) {
  switch (sel) {
    case Sel::kDword:
      return x;
    case Sel::kByte0:
    case Sel::kByte1:
    case Sel::kByte2:
    case Sel::kByte3: {
      const u32 b = (x >> (8 * (static_cast<u32>(sel) - static_cast<u32>(Sel::kByte0)))) & 0xff;
      return sext ? static_cast<u32>(static_cast<i32>(static_cast<std::int8_t>(b))) : b;
    }
    case Sel::kWord0:
    case Sel::kWord1: {
      const u32 h = (x >> (sel == Sel::kWord1 ? 16 : 0)) & 0xffff;
      return sext ? static_cast<u32>(static_cast<i32>(static_cast<std::int16_t>(h))) : h;
    }
  }
  return x;
}

// The slow way: broadcast, DPP lane movement, SDWA selection, absolute value and negation by operand type.
__attribute__((noinline)) const u32* fetch_general(const Wave& w, const MicroOp& op, unsigned i, unsigned dword,
                                                   Temp& t) {
  const Operand& o = op.src[i];
  if (o.kind == OperandKind::kVgpr) {
    const u32* row = w.v[o.index + dword].lane;
    if (op.dpp && i == 0) {
      const u64 exec = w.exec();
      for (unsigned l = 0; l < kLanes; ++l) {
        const unsigned from = op.dpp->source[l];
        t.lane[l] = (from != 0xff && ((exec >> from) & 1)) ? row[from] : 0;
      }
    } else {
      for (unsigned l = 0; l < kLanes; ++l) t.lane[l] = row[l];
    }
  } else {
    const u32 value = scalar_value(w, o, dword);
    for (unsigned l = 0; l < kLanes; ++l) t.lane[l] = value;
  }
  if (o.sel != Sel::kDword || o.sext) {
    for (unsigned l = 0; l < kLanes; ++l) t.lane[l] = select_bits(t.lane[l], o.sel, o.sext);
  }
  u32 sign = 0x80000000u;
  if (o.type == 'h' || o.type == 'b') sign = 0x8000u;
  if ((o.type == 'd' || o.type == 'l') && dword == 0) sign = 0;
  // Packed forms use neg_lo/neg_hi, mixed ones look at the format first: both in the handler.
  if (o.type == 'q' || o.type == 'p' || o.type == 'x') sign = 0;
  const u32 keep = o.abs ? ~sign : ~0u, flip = o.neg ? sign : 0u;
  if (o.abs || o.neg) {
    for (unsigned l = 0; l < kLanes; ++l) t.lane[l] = (t.lane[l] & keep) ^ flip;
  }
  return t.lane;
}

ZYFA_SIM_INLINE const u32* fetch(const Wave& w, const MicroOp& op, unsigned i, Temp& t, unsigned dword = 0) {
  const Operand& o = op.src[i];
  if (o.plain) return w.v[o.index + dword].lane;
  if (o.kind == OperandKind::kConst && !o.abs && !o.neg && o.sel == Sel::kDword && !o.sext) {
    const u32 value = dword ? o.hi : o.lo;
    ZYFA_LANES t.lane[l] = value;
    return t.lane;
  }
  return fetch_general(w, op, i, dword, t);
}

// Destination rows of a handler. While EXEC is all ones and nothing follows, results go straight to the register.
struct Out {
  u32* p;
  bool direct;
};
ZYFA_SIM_INLINE Out open(Wave& w, const MicroOp& op, Temp& t, unsigned dword = 0) {
  if (w.exec() == ~0ull && !op.post) return {w.v[op.dst.index + dword].lane, true};
  return {t.lane, false};
}

ZYFA_SIM_INLINE void blend(u32* row, const u32* from, u64 mask) {
#if defined(__AVX512F__)
  for (unsigned b = 0; b < 4; ++b)
    _mm512_mask_storeu_epi32(row + 16 * b, static_cast<__mmask16>(mask >> (16 * b)), _mm512_loadu_si512(from + 16 * b));
#else
  for (unsigned l = 0; l < kLanes; ++l)
    if ((mask >> l) & 1) row[l] = from[l];
#endif
}

// omod and clamp of an f16 result, on its bits. Output modifiers are ignored in IEEE mode and while output denormals
// are kept; where they apply, denormals and -0 become +0 (CDNA4 ISA guide 6.2.2).
struct HalfModifiers {
  i32 scale;  // added to the exponent; 0: no output modifier
  bool clamp, dx10, saturate;
};
ZYFA_SIM_INLINE i32 omod_exponent(const MicroOp& op) { return op.omod == 3 ? -1 : op.omod; }
ZYFA_SIM_INLINE HalfModifiers half_modifiers(const Wave& w, const MicroOp& op) {
  return {w.ieee() || w.f16_out == 0xffff ? 0 : omod_exponent(op), op.clamp, w.dx10_clamp(), w.fp16_ovfl()};
}
ZYFA_SIM_INLINE u32 modify_half(u32 h, const HalfModifiers& m) {
  i32 e = static_cast<i32>((h >> 10) & 31);
  if (m.scale != 0 && e != 31) {
    const u32 sign = h & 0x8000;
    e = e == 0 ? 0 : e + m.scale;
    h = e <= 0 ? 0 : e >= 31 ? sign | (m.saturate ? 0x7bffu : 0x7c00u) : sign | static_cast<u32>(e << 10) | (h & 0x3ff);
  }
  if (!m.clamp) return h;
  if ((h & 0x7fff) > 0x7c00) return m.dx10 ? 0 : h;
  return h & 0x8000 ? 0 : h > 0x3c00 ? 0x3c00 : h;
}
// Where a 16-bit result goes: op_sel bit 3 writes the upper half and keeps the lower one; otherwise the lower half is
// written and the upper one becomes 0, or is kept by the instructions that say so (kPartialWrite).
struct HalfPlace {
  bool high, keeps;
};
ZYFA_SIM_INLINE HalfPlace half_place(const MicroOp& op) {
  return {(op.op_sel & 8) != 0, (op.flags & kPartialWrite) != 0};
}
ZYFA_SIM_INLINE u32 place_half(const HalfPlace& p, u32 r, u32 old) {
  return p.high ? (old & 0xffff) | (r << 16) : p.keeps ? (old & 0xffff0000u) | (r & 0xffff) : r & 0xffff;
}

// omod and clamp of f32 results; the same rules.
ZYFA_SIM_INLINE void modify_floats(const Wave& w, const MicroOp& op, u32* p) {
  const bool scales = op.omod && !w.ieee() && w.f32_out != ~0u;
  const float factor = op.omod == 1 ? 2.0f : op.omod == 2 ? 4.0f : 0.5f;
  for (unsigned l = 0; l < kLanes; ++l) {
    float x = f32(p[l]);
    if (scales) {
      const u32 r = flush32(raw(x * factor), 0x80000000u);
      x = f32(r == 0x80000000u ? 0 : r);
    }
    if (op.clamp) x = x != x ? (w.dx10_clamp() ? 0.0f : x) : !(x > 0.0f) ? 0.0f : x > 1.0f ? 1.0f : x;
    p[l] = raw(x);
  }
}
ZYFA_SIM_INLINE void modify_doubles(const Wave& w, const MicroOp& op, u32* lo, u32* hi) {
  const bool scales = op.omod && !w.ieee() && w.f64_out != ~0ull;
  const double factor = op.omod == 1 ? 2.0 : op.omod == 2 ? 4.0 : 0.5;
  for (unsigned l = 0; l < kLanes; ++l) {
    double x = bits<double>(lo[l] | (static_cast<u64>(hi[l]) << 32));
    if (scales) {
      const u64 r = flush64(bits<u64>(x * factor), 0x8000000000000000ull);
      x = bits<double>(r == 0x8000000000000000ull ? 0 : r);
    }
    if (op.clamp) x = x != x ? (w.dx10_clamp() ? 0.0 : x) : !(x > 0.0) ? 0.0 : x > 1.0 ? 1.0 : x;
    const u64 r = bits<u64>(x);
    lo[l] = static_cast<u32>(r);
    hi[l] = static_cast<u32>(r >> 32);
  }
}

// Active lanes that a DPP instruction writes: those of row_mask and bank_mask whose source is an active lane, or all of
// them under bound_ctrl.
__attribute__((noinline)) u64 dpp_lanes(const Wave& w, const MicroOp& op) {
  const u64 exec = w.exec();
  u64 mask = exec & op.dpp->write_mask;
  if (op.dpp->bound_zero) return mask;
  for (unsigned l = 0; l < kLanes; ++l) {
    const unsigned from = op.dpp->source[l];
    if (from == 0xff || !((exec >> from) & 1)) mask &= ~(1ull << l);
  }
  return mask;
}

// Clamp and omod of f32, SDWA destination selection and DPP write masks. Handlers of f16 and f64 results have applied
// their clamp and omod (modify_half, close_double).
__attribute__((noinline)) void close_general(Wave& w, const MicroOp& op, u32* p, unsigned dword) {
  u32* row = w.v[op.dst.index + dword].lane;
  const char type = op.dst.type;
  u64 mask = w.exec();
  if ((type == 'f' || type == 'p') && (op.omod || op.clamp)) modify_floats(w, op, p);
  if (op.dpp) mask = dpp_lanes(w, op);
  if (op.sdwa && op.dst_sel != Sel::kDword) {
    const unsigned sel = static_cast<unsigned>(op.dst_sel);
    const bool word = op.dst_sel == Sel::kWord0 || op.dst_sel == Sel::kWord1;
    const unsigned shift = word ? (op.dst_sel == Sel::kWord1 ? 16 : 0) : 8 * (sel - static_cast<unsigned>(Sel::kByte0));
    const u32 field = (word ? 0xffffu : 0xffu) << shift;
    for (unsigned l = 0; l < kLanes; ++l) {
      u32 value = (p[l] << shift) & field;
      if (op.dst_unused == Unused::kPreserve) value |= row[l] & ~field;
      if (op.dst_unused == Unused::kSext) {
        const bool negative = (value >> (shift + (word ? 15 : 7))) & 1;
        if (negative) value |= ~(field | (field - 1)) & (shift + (word ? 16 : 8) < 32 ? ~0u : 0u);
      }
      p[l] = value;
    }
  }
  blend(row, p, mask);
}

ZYFA_SIM_INLINE void close(Wave& w, const MicroOp& op, const Out& out, unsigned dword = 0) {
  if (out.direct) return;
  if (op.post) {
    close_general(w, op, out.p, dword);
  } else {
    blend(w.v[op.dst.index + dword].lane, out.p, w.exec());
  }
}

// Result of two dwords that is an f64.
ZYFA_SIM_INLINE void close_double(Wave& w, const MicroOp& op, u32* lo, u32* hi) {
  if (op.omod || op.clamp) modify_doubles(w, op, lo, hi);
  close(w, op, Out{lo, false}, 0);
  close(w, op, Out{hi, false}, 1);
}

// Bit l set when t[l] is not 0.
ZYFA_SIM_INLINE u64 pack_mask(const u32* t) {
  u64 mask = 0;
#if defined(__AVX512F__)
  for (unsigned b = 0; b < 4; ++b) {
    const __m512i x = _mm512_loadu_si512(t + 16 * b);
    mask |= static_cast<u64>(_mm512_test_epi32_mask(x, x)) << (16 * b);
  }
#elif defined(__AVX2__)
  for (unsigned b = 0; b < 8; ++b) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t + 8 * b));
    const __m256i zero = _mm256_cmpeq_epi32(x, _mm256_setzero_si256());
    mask |= static_cast<u64>(static_cast<u8>(~_mm256_movemask_ps(_mm256_castsi256_ps(zero)))) << (8 * b);
  }
#else
  for (unsigned l = 0; l < kLanes; ++l) mask |= static_cast<u64>(t[l] != 0) << l;
#endif
  return mask;
}

// A NaN result is the first NaN source made quiet, else the positive default NaN: defined here so that it does not
// depend on the host's operand order.
ZYFA_SIM_INLINE u32 quiet(u32 x) { return x | 0x00400000u; }
ZYFA_SIM_INLINE u32 fix_nan(float r, float a, float b) {
  const u32 n = a != a ? quiet(raw(a)) : b != b ? quiet(raw(b)) : 0x7fc00000u;
  return r != r ? n : raw(r);
}
ZYFA_SIM_INLINE u32 fix_nan(float r, float a, float b, float c) {
  const u32 n = a != a ? quiet(raw(a)) : b != b ? quiet(raw(b)) : c != c ? quiet(raw(c)) : 0x7fc00000u;
  return r != r ? n : raw(r);
}

}  // namespace
}  // namespace zyfa::sim::ZYFA_SIM_ISA
