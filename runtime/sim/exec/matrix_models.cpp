// The accumulation models of matrix instructions other than the fma chain (zyfa/sim_rules.h). Compiled once per host
// instruction set; every operation is exact or a single IEEE rounding, so all give the same bits.
//
// kExact sums products as doubles, which hold each of them exactly: plainly where the span of the operands shows that
// no partial sum rounds, else as a pair of doubles with a bound on what the pair lost, and in wide fixed point
// (matrix_exact.h) where that bound could change the result.
//
// kChunked is what MMA-Sim (arXiv 2511.10909) found to reproduce CDNA3 bit for bit; nobody has published a measurement
// of CDNA4. A group of 8 k (16-bit elements) or 16 k (narrower), in ascending order, is summed in fixed point: products
// cut toward zero at 24 bits below the largest exponent; narrow elements sum even and odd k apart and align the two by
// floor. The group's sum (31 fraction bits) and C (24) are aligned by floor and their sum is rounded to f32. Scaled
// forms and sparse ones, of which CDNA3 has none or no statement is known, are given the same rule with the scale in
// the exponent and groups of compressed k.
#include <algorithm>

#include "runtime/sim/exec/matrix.h"
#include "runtime/sim/exec/matrix_exact.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

constexpr int kMaxDim = 32, kMaxLines = 128;

ZYFA_SIM_INLINE int exponent_field(float x) { return static_cast<int>((raw(x) >> 23) & 0xff); }
ZYFA_SIM_INLINE int line_of(const Tile& t, int s, int row) { return t.pick ? t.pick[s * t.dim + row] : s; }
ZYFA_SIM_INLINE int lines_of_b(const Tile& t) { return t.pick ? 2 * t.k : t.k; }

// Span of an operand's finite values: all are multiples of 2^low and below 2^high in magnitude.
struct Span {
  int low = 1 << 20, high = -(1 << 20);
  bool finite = true;
};
Span span_of(const float* values, int lines, int dim, Format format, const u8* scale) {
  int low = 1 << 20, high = -(1 << 20), largest = 0, worst_scale = 0;
  for (int k = 0; k < lines; ++k) {
    for (int i = 0; i < dim; ++i) {
      const float x = values[k * dim + i];
      const int field = exponent_field(x), shift = scale ? scale[k / 32 * dim + i] - 127 : 0;
      const int e = std::max(field - 127, format.min_exponent) + shift;
      const bool zero = (raw(x) & 0x7fffffffu) == 0;
      low = std::min(low, zero ? 1 << 20 : e);
      high = std::max(high, zero ? -(1 << 20) : e);
      largest = std::max(largest, field);
      if (scale) worst_scale = std::max<int>(worst_scale, scale[k / 32 * dim + i]);
    }
  }
  return {low - format.fraction, high + 1, largest != 255 && worst_scale != 255};
}

// Values as doubles with their scales; exact.
void widen(const float* values, int lines, int dim, const u8* scale, double* out) {
  for (int k = 0; k < lines; ++k) {
    for (int i = 0; i < dim; ++i) {
      double x = values[k * dim + i];
      if (scale) {
        const u64 byte = scale[k / 32 * dim + i];
        x *= bits<double>(byte == 255 ? 0x7ff8000000000000ull : (1023 - 127 + byte) << 52);
      }
      out[k * dim + i] = x;
    }
  }
}

// sum + error = a + b exactly.
ZYFA_SIM_INLINE double two_sum(double a, double b, double& error) {
  const double sum = a + b, z = sum - a;
  error = (a - (sum - z)) + (b - z);
  return sum;
}
// f32 of a + b, rounded once: the double sum is made odd where it is inexact, which keeps ties apart.
ZYFA_SIM_INLINE float round_sum(double a, double b) {
  double error;
  const double sum = two_sum(a, b, error);
  u64 code = bits<u64>(sum);
  code += error != 0 && !(code & 1) ? ((error > 0) == (sum > 0) ? 1 : ~u64{0}) : 0;
  return static_cast<float>(bits<double>(code));
}

template <int Dim>
void exact_plain(const Tile& t, const double* a, const double* b) {
  for (int row = 0; row < Dim; ++row) {
    double sum[Dim];
    for (int i = 0; i < Dim; ++i) sum[i] = -0.0;
    for (int s = 0; s < t.k; ++s) {
      const double x = a[s * Dim + row];
      const double* y = b + line_of(t, s, row) * Dim;
      for (int i = 0; i < Dim; ++i) sum[i] += x * y[i];
    }
    float* d = t.acc + row * Dim;
    for (int i = 0; i < Dim; ++i) {
      const double c = d[i];
      const float r = round_sum(sum[i], c);
      d[i] = c - c == 0 ? r : d[i];
    }
  }
}

template <int Dim>
void exact_pairs(const Tile& t, const double* a, const double* b) {
  for (int row = 0; row < Dim; ++row) {
    double high[Dim], low[Dim] = {}, lost[Dim] = {};
    float* d = t.acc + row * Dim;
    for (int i = 0; i < Dim; ++i) high[i] = d[i];
    for (int s = 0; s < t.k; ++s) {
      const double x = a[s * Dim + row];
      const double* y = b + line_of(t, s, row) * Dim;
      for (int i = 0; i < Dim; ++i) {
        double error, rest;
        high[i] = two_sum(high[i], x * y[i], error);
        low[i] = two_sum(low[i], error, rest);
        lost[i] += std::fabs(rest);
      }
    }
    for (int i = 0; i < Dim; ++i) {
      if (high[i] - high[i] != 0) {
        d[i] = static_cast<float>(high[i]);  // an infinity or NaN among the operands
      } else if (lost[i] == 0) {
        d[i] = low[i] == 0 ? static_cast<float>(high[i]) : round_sum(high[i], low[i]);
      } else {
        const double bound = 1.01 * lost[i] + 0x1p-50 * std::fabs(low[i]);
        const float below = round_sum(high[i], low[i] - bound), above = round_sum(high[i], low[i] + bound);
        if (raw(below) == raw(above)) {
          d[i] = below;
        } else {
          double x[kMaxLines], y[kMaxLines];
          for (int s = 0; s < t.k; ++s) {
            x[s] = a[s * Dim + row];
            y[s] = b[line_of(t, s, row) * Dim + i];
          }
          d[i] = exact_dot(t.k, x, y, d[i]);
        }
      }
    }
  }
}

template <int Dim>
void exact(const Tile& t) {
  alignas(64) double a[kTileValues], b[kTileValues];
  widen(t.a, t.k, Dim, t.scale_a, a);
  widen(t.b, lines_of_b(t), Dim, t.scale_b, b);
  const Span x = span_of(t.a, t.k, Dim, t.format_a, t.scale_a);
  const Span y = span_of(t.b, lines_of_b(t), Dim, t.format_b, t.scale_b);
  // At most 128 products: 7 bits above the largest.
  if (x.finite && y.finite && x.high + y.high + 7 - (x.low + y.low) <= 53) {
    exact_plain<Dim>(t, a, b);
  } else {
    exact_pairs<Dim>(t, a, b);
  }
}

// An element for kChunked: value = significand * 2^(exponent - fraction). Zero has the exponent -126.
struct Pieces {
  alignas(64) i32 significand[kTileValues];
  alignas(64) i32 exponent[kTileValues];
  int highest = -(1 << 20);
  bool finite = true;
};
void split(const float* values, int lines, int dim, Format format, const u8* scale, Pieces& out) {
  int largest = 0, worst_scale = 0;
  for (int k = 0; k < lines; ++k) {
    for (int i = 0; i < dim; ++i) {
      const u32 code = raw(values[k * dim + i]);
      const int field = static_cast<int>((code >> 23) & 0xff), e = std::max(field, 1) - 127;
      const i32 full = static_cast<i32>((code & 0x7fffffu) | (field ? 0x800000u : 0u));
      const int shift = std::min(23 - format.fraction + std::max(format.min_exponent - e, 0), 31);
      const i32 magnitude = full >> shift;
      const bool zero = (code & 0x7fffffffu) == 0;
      const int byte = scale ? scale[k / 32 * dim + i] : 127;
      out.significand[k * dim + i] = code >> 31 ? -magnitude : magnitude;
      out.exponent[k * dim + i] = (zero ? -126 : std::max(e, format.min_exponent)) + byte - 127;
      out.highest = std::max(out.highest, out.exponent[k * dim + i]);
      largest = std::max(largest, field);
      worst_scale = std::max(worst_scale, byte);
    }
  }
  out.finite = largest != 255 && worst_scale != 255;
}

ZYFA_SIM_INLINE double power_of_2(int e) { return bits<double>(static_cast<u64>(1023 + e) << 52); }
ZYFA_SIM_INLINE i64 floor_shift(i64 x, int by) { return x >> std::min(by, 63); }

// The group's sum times 2^(exponent - 24), and C, to f32.
ZYFA_SIM_INLINE float add_group(i64 sum, int exponent, float c, bool narrow) {
  const u32 code = raw(c);
  const int field = static_cast<int>((code >> 23) & 0xff), exponent_c = std::max(field, 1) - 127;
  const i64 magnitude = static_cast<i64>((code & 0x7fffffu) | (field ? 0x800000u : 0u));
  const i64 significand = code >> 31 ? -magnitude : magnitude;
  const int zero_or_exponent = magnitude ? exponent_c : -126;
  const int top = std::max(exponent, zero_or_exponent);
  i64 total = floor_shift(sum * 128, top - exponent);
  if (!narrow || zero_or_exponent >= top - 25) total += floor_shift(significand * 2, top - zero_or_exponent) * 128;
  const float r = static_cast<float>(static_cast<double>(total) * power_of_2(top - 31));
  return field == 255 ? c : r;
}

// One result's group with operands that are infinite, NaN or whose products may reach 2^128.
float special_group(const Tile& t, const Pieces& a, const Pieces& b, int row, int col, int first, int count, float c) {
  const int dim = t.dim;
  double ieee = 0;
  bool up = false, down = false;
  i64 sum[2] = {0, 0};
  int top[2] = {-(1 << 20), -(1 << 20)};
  for (int pass = 0; pass < 2; ++pass) {
    for (int s = first; s < first + count; ++s) {
      const int at_a = s * dim + row, at_b = line_of(t, s, row) * dim + col,
                half = t.format_a.narrow ? (s - first) % 2 : 0;
      const int exponent = a.exponent[at_a] + b.exponent[at_b];
      const int fraction = t.format_a.fraction + t.format_b.fraction;
      const i32 product = a.significand[at_a] * b.significand[at_b];
      if (pass == 0) {
        const bool nan = t.scale_a && (t.scale_a[s / 32 * dim + row] == 255 || t.scale_b[s / 32 * dim + col] == 255);
        const double x = t.a[at_a], y = t.b[at_b];
        const bool infinite = std::isinf(x) || std::isinf(y) || x != x || y != y;
        if (nan) {
          ieee += bits<double>(0x7ff8000000000000ull);
        } else if (infinite) {
          ieee += x * y;
        } else {
          const double value = product * power_of_2(exponent - fraction);
          up |= value >= 0x1p128;
          down |= value <= -0x1p128;
          if (std::fabs(value) < 0x1p128) top[half] = std::max(top[half], exponent);
        }
      } else if (std::fabs(product * power_of_2(exponent - fraction)) < 0x1p128) {
        const i64 magnitude = std::abs(static_cast<i64>(product)) << (24 - fraction);
        const i64 cut = floor_shift(magnitude, top[half] - exponent);
        sum[half] += product < 0 ? -cut : cut;
      }
    }
    if (pass == 0) {
      if (c - c != 0) ieee += c;
      if (ieee - ieee != 0) return static_cast<float>(ieee);
      if (up || down) return up && down ? f32(0x7fc00000u) : f32(up ? 0x7f800000u : 0xff800000u);
    }
  }
  if (!t.format_a.narrow || count == 1) return add_group(sum[0], top[0], c, t.format_a.narrow);
  const int both = std::max(top[0], top[1]);
  return add_group(floor_shift(sum[0], both - top[0]) + floor_shift(sum[1], both - top[1]), both, c, true);
}

template <int Dim>
void chunked(const Tile& t) {
  Pieces a, b;
  split(t.a, t.k, Dim, t.format_a, t.scale_a, a);
  split(t.b, lines_of_b(t), Dim, t.format_b, t.scale_b, b);
  const bool narrow = t.format_a.narrow;
  const int group = std::min(narrow ? 16 : 8, t.k), step = narrow ? 2 : 1;
  const int left = 24 - t.format_a.fraction - t.format_b.fraction;
  const bool special = !a.finite || !b.finite || a.highest + b.highest + 2 > 127;
  for (int row = 0; row < Dim; ++row) {
    float* d = t.acc + row * Dim;
    for (int first = 0; first < t.k; first += group) {
      if (special) {
        for (int i = 0; i < Dim; ++i) d[i] = special_group(t, a, b, row, i, first, group, d[i]);
        continue;
      }
      alignas(64) i32 top[2][Dim], sum[2][Dim] = {};
      for (int half = 0; half < 2; ++half)
        for (int i = 0; i < Dim; ++i) top[half][i] = -(1 << 20);
      for (int s = first; s < first + group; ++s) {
        const int half = step == 2 ? (s - first) % 2 : 0, line = line_of(t, s, row) * Dim;
        const i32 e = a.exponent[s * Dim + row];
        for (int i = 0; i < Dim; ++i) top[half][i] = std::max(top[half][i], e + b.exponent[line + i]);
      }
      for (int s = first; s < first + group; ++s) {
        const int half = step == 2 ? (s - first) % 2 : 0, line = line_of(t, s, row) * Dim;
        const i32 e = a.exponent[s * Dim + row], x = a.significand[s * Dim + row];
        for (int i = 0; i < Dim; ++i) {
          const i32 product = x * b.significand[line + i];
          const i32 shift = std::min(top[half][i] - (e + b.exponent[line + i]), 31);
          const i32 cut = (std::abs(product) << left) >> shift;
          sum[half][i] += product < 0 ? -cut : cut;
        }
      }
      for (int i = 0; i < Dim; ++i) {
        const int both = std::max(top[0][i], top[1][i]);
        const i64 total = floor_shift(sum[0][i], both - top[0][i]) + floor_shift(sum[1][i], both - top[1][i]);
        d[i] = add_group(total, both, d[i], narrow);
      }
    }
  }
}

template <class Run>
void by_dim(int dim, Run&& run) {
  if (dim == 32) return run(std::integral_constant<int, 32>{});
  if (dim == 16) return run(std::integral_constant<int, 16>{});
  run(std::integral_constant<int, 4>{});
}

}  // namespace

void accumulate_exact(const Tile& tile) {
  by_dim(tile.dim, [&](auto dim) { exact<decltype(dim)::value>(tile); });
}
void accumulate_chunked(const Tile& tile) {
  by_dim(tile.dim, [&](auto dim) { chunked<decltype(dim)::value>(tile); });
}

}  // namespace zyfa::sim::ZYFA_SIM_ISA
