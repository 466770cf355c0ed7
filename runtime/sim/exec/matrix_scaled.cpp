// The f8f6f4 MFMA, plain and block-scaled (AMD CDNA4 ISA guide 7.1.5 and 7.2, gfx950-isa.md 1.3). Compiled once per
// host instruction set.
//
// Model of the fma chain for scaled forms: the chain runs over each block of 32 k from 0, the block's sum is multiplied
// by the exact scale and added to the accumulator with one rounding.
#include <algorithm>

#include "runtime/sim/exec/matrix.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

constexpr int kRun8 = 16;  // 8-bit operands come in two runs of 16 items

// Expands an operand by its format code (CBSZ or BLGP) and returns the format.
template <int Dim, int K>
Format expand_f8f6f4(unsigned code, const VectorReg* rows, float* out) {
  switch (code) {
    case 0:
      expand<Dim, K, Fp8, kRun8>(rows, out);
      return Fp8::kFormat;
    case 1:
      expand<Dim, K, Bf8, kRun8>(rows, out);
      return Bf8::kFormat;
    case 2:
      expand<Dim, K, Fp6, kOneRun>(rows, out);
      return Fp6::kFormat;
    case 3:
      expand<Dim, K, Bf6, kOneRun>(rows, out);
      return Bf6::kFormat;
    default:
      expand<Dim, K, Fp4, kOneRun>(rows, out);
      return Fp4::kFormat;
  }
}

template <int Dim, int K>
void mfma_f8f6f4(Wave& w, const MicroOp& op) {
  alignas(64) float a[K * Dim], b[K * Dim], acc[Dim * Dim];
  const Format format_a = expand_f8f6f4<Dim, K>(op.cbsz, w.v + op.src[0].index, a);
  const Format format_b = expand_f8f6f4<Dim, K>(op.blgp, w.v + op.src[1].index, b);
  gather_c<Dim>(w, op.src[2], acc);
  accumulate<Dim>(w, {Dim, K, a, b, acc, format_a, format_b}, [](const Tile& t) { chain<Dim>(t.acc, t.a, t.b, 0, K); });
  scatter_d<Dim>(w, op, acc);
}

// f32(acc + part * 2^exponent) rounded once: a double has more than 2 * 24 + 2 digits, so that rounding a sum of two
// 24-digit numbers to it first changes nothing (Figueroa, "When is double rounding innocuous?", 1995).
ZYFA_SIM_INLINE float add_scaled(float acc, float part, int exponent) {
  const double scale = bits<double>(static_cast<u64>(1023 + exponent) << 52);
  return static_cast<float>(static_cast<double>(acc) + static_cast<double>(part) * scale);
}

// acc += part * 2^(scale_a - 127) * 2^(scale_b - 127) for one block of k.
template <int Dim>
ZYFA_SIM_INLINE void add_block(float* acc, const float* part, const u8* scale_a, const u8* scale_b) {
  alignas(64) float column[Dim];
  int low = 255, high = 0;
  for (int i = 0; i < Dim; ++i) {
    low = std::min<int>(low, scale_b[i]);
    high = std::max<int>(high, scale_b[i]);
  }
  for (int row = 0; row < Dim; ++row) {
    const int byte = scale_a[row];
    float* to = acc + row * Dim;
    const float* from = part + row * Dim;
    if (byte + low - 254 >= -126 && byte + high - 254 <= 127 && byte != 255 && high != 255) {
      // The combined scale is a normal number: one fma.
      for (int i = 0; i < Dim; ++i) column[i] = f32(static_cast<u32>(scale_b[i] + byte - 127) << 23);
      for (int i = 0; i < Dim; ++i) to[i] = std::fma(from[i], column[i], to[i]);
    } else {
      for (int i = 0; i < Dim; ++i) {
        const float sum = add_scaled(to[i], from[i], byte + scale_b[i] - 254);
        to[i] = ((byte == 255) | (scale_b[i] == 255)) ? f32(0x7fc00000u) : sum;
      }
    }
  }
}

// Scale bytes of all lanes: lane l serves row or column l % Dim and k block l / Dim. An inline constant gives its
// exponent field to all (guide 7.2.1).
ZYFA_SIM_INLINE void scale_bytes(const Wave& w, const Operand& o, unsigned select, u8* out) {
  if (o.kind == OperandKind::kVgpr) {
    const u32* lanes = w.v[o.index].lane;
    for (unsigned l = 0; l < kLanes; ++l) out[l] = static_cast<u8>(lanes[l] >> (8 * select));
  } else {
    for (unsigned l = 0; l < kLanes; ++l) out[l] = static_cast<u8>(o.lo >> 23);
  }
}

template <int Dim, int K>
void mfma_scaled(Wave& w, const MicroOp& op) {
  static_assert(K / 32 * Dim == kLanes);
  alignas(64) float a[K * Dim], b[K * Dim], acc[Dim * Dim];
  u8 scale_a[kLanes], scale_b[kLanes];
  const Format format_a = expand_f8f6f4<Dim, K>(op.cbsz, w.v + op.src[0].index, a);
  const Format format_b = expand_f8f6f4<Dim, K>(op.blgp, w.v + op.src[1].index, b);
  scale_bytes(w, op.src[3], (op.op_sel & 1u) + 2u * (op.op_sel_hi & 1u), scale_a);
  scale_bytes(w, op.src[4], ((op.op_sel >> 1) & 1u) + 2u * ((op.op_sel_hi >> 1) & 1u), scale_b);
  gather_c<Dim>(w, op.src[2], acc);
  accumulate<Dim>(w, {Dim, K, a, b, acc, format_a, format_b, nullptr, scale_a, scale_b}, [](const Tile& t) {
    for (int block = 0; block < K / 32; ++block) {
      alignas(64) float part[Dim * Dim] = {};
      chain<Dim>(part, t.a, t.b, 32 * block, 32 * block + 32);
      add_block<Dim>(t.acc, part, t.scale_a + block * Dim, t.scale_b + block * Dim);
    }
  });
  scatter_d<Dim>(w, op, acc);
}

// Passes with an 8-bit operand; half of them without (matrix_decode.cpp).
constexpr OpRow kRows[] = {
    {"v_mfma_f32_32x32x64_f8f6f4", "t=ttt", (&mfma_f8f6f4<32, 64>), Unit::kMfma, kIgnoresExec,
     matrix_arg(16, 1, 32, 64)},
    {"v_mfma_f32_16x16x128_f8f6f4", "t=ttt", (&mfma_f8f6f4<16, 128>), Unit::kMfma, kIgnoresExec,
     matrix_arg(8, 1, 16, 128)},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", "t=tttii", (&mfma_scaled<32, 64>), Unit::kMfma, kIgnoresExec | kScaled,
     matrix_arg(16, 1, 32, 64)},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", "t=tttii", (&mfma_scaled<16, 128>), Unit::kMfma, kIgnoresExec | kScaled,
     matrix_arg(8, 1, 16, 128)},
};

}  // namespace

RowTable scaled_matrix_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim::ZYFA_SIM_ISA
