// The accumulation models of matrix instructions other than the fma chain (zyfa/sim_rules.h). Compiled once per host
// instruction set; every operation is exact or a single IEEE rounding, so all give the same bits.
//
// kExact sums products as doubles, which hold each of them exactly: plainly where the span of the operands shows that
// no partial sum rounds, else as a pair of doubles with a bound on what the pair lost, and in wide fixed point
// (matrix_exact.h) where that bound could change the result.
//
// kChunked is what MMA-Sim (arXiv 2511.10909, version of 2026) found to reproduce CDNA3 bit for bit; nobody has
// published a measurement of CDNA4. A group of 8 k (16-bit elements) or 16 k (narrower), in ascending order, is summed
// in fixed point: products cut toward zero at 24 bits below the largest exponent; narrow elements sum even and odd k
// apart and align the two by floor. The group's sum (31 fraction bits) and C (24) are aligned by floor and their sum is
// rounded to f32. Scaled forms and sparse ones, of which CDNA3 has none or no statement is known, are given the same
// rule with the scale in the exponent and groups of compressed k.
#include <algorithm>

#include "runtime/sim/exec/matrix.h"
#include "runtime/sim/exec/matrix_exact.h"

namespace zyfa::sim::ZYFA_SIM_ISA {
namespace {

constexpr int kMaxLines = 128;

ZYFA_SIM_INLINE int exponent_field(float x) { return static_cast<int>((raw(x) >> 23) & 0xff); }
ZYFA_SIM_INLINE int line_of(const Tile& t, int s, int row) { return t.pick ? t.pick[s * t.dim + row] : s; }
ZYFA_SIM_INLINE int lines_of_b(const Tile& t) { return t.pick ? 2 * t.k : t.k; }

// Span of an operand's finite values: all are multiples of 2^low and below 2^high in magnitude.
struct Span {
  int low = 1 << 20, high = -(1 << 20);
  bool finite = true;
};
template <int Dim, bool Scaled>
Span span_of(const float* values, int lines, Format format, const u8* scale) {
  // By column, for the vectoriser.
  alignas(64) i32 low[Dim], high[Dim], largest[Dim] = {}, worst_scale[Dim] = {};
  for (int i = 0; i < Dim; ++i) low[i] = 1 << 20, high[i] = -(1 << 20);
  for (int k = 0; k < lines; ++k) {
    for (int i = 0; i < Dim; ++i) {
      const u32 code = raw(values[k * Dim + i]);
      const i32 field = static_cast<i32>((code >> 23) & 0xff), byte = Scaled ? scale[k / 32 * Dim + i] : 127;
      const i32 e = std::max(field - 127, format.min_exponent) + byte - 127;
      const bool zero = (code & 0x7fffffffu) == 0;
      low[i] = std::min(low[i], zero ? 1 << 20 : e);
      high[i] = std::max(high[i], zero ? -(1 << 20) : e);
      largest[i] = std::max(largest[i], field);
      if constexpr (Scaled) worst_scale[i] = std::max(worst_scale[i], byte);
    }
  }
  Span span;
  for (int i = 0; i < Dim; ++i) {
    span.low = std::min(span.low, low[i] - format.fraction);
    span.high = std::max(span.high, high[i] + 1);
    span.finite &= largest[i] != 255 && worst_scale[i] != 255;
  }
  return span;
}

// Values as doubles with their scales; exact.
template <int Dim, bool Scaled>
void widen(const float* values, int lines, const u8* scale, double* out) {
  for (int k = 0; k < lines; ++k) {
    for (int i = 0; i < Dim; ++i) {
      const double x = values[k * Dim + i];
      if constexpr (Scaled) {
        const u64 byte = scale[k / 32 * Dim + i];
        out[k * Dim + i] = x * bits<double>(byte == 255 ? 0x7ff8000000000000ull : (1023 - 127 + byte) << 52);
      } else {
        out[k * Dim + i] = x;
      }
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
  const u64 code = bits<u64>(sum), adjust = (error > 0) == (sum > 0) ? 1 : ~u64{0};
  const bool inexact = (error < 0) | (error > 0);
  return static_cast<float>(bits<double>(code + (inexact & ~code & 1 ? adjust : 0)));
}

// Rows of the tile whose sums are kept in registers at once.
#if defined(__AVX512F__)
constexpr int kRowsAtOnce = 4;
#else
constexpr int kRowsAtOnce = 1;
#endif
using Doubles __attribute__((vector_size(64))) = double;

template <int Dim>
void finish_plain(const double* sum, float* d) {
  for (int i = 0; i < Dim; ++i) {
    const double c = d[i];
    const float r = round_sum(sum[i], c);
    d[i] = c - c == 0 ? r : d[i];
  }
}

template <int Dim, bool Picked>
void exact_plain(const Tile& t, const double* a, const double* b) {
  if constexpr (Dim >= 16) {
    constexpr int kV = Dim / 8;
    for (int row = 0; row < Dim; row += kRowsAtOnce) {
      Doubles sum[kRowsAtOnce][kV];
      for (auto& line : sum)
        for (auto& v : line) v = -Doubles{};
      for (int s = 0; s < t.k; ++s) {
        for (int r = 0; r < kRowsAtOnce; ++r) {
          const double x = a[s * Dim + row + r];
          const double* y = b + (Picked ? t.pick[s * Dim + row + r] : s) * Dim;
          for (int v = 0; v < kV; ++v) {
            Doubles values;
            __builtin_memcpy(&values, y + 8 * v, sizeof(values));
            sum[r][v] += x * values;
          }
        }
      }
      for (int r = 0; r < kRowsAtOnce; ++r) {
        alignas(64) double line[Dim];
        __builtin_memcpy(line, sum[r], sizeof(line));
        finish_plain<Dim>(line, t.acc + (row + r) * Dim);
      }
    }
  } else {
    for (int row = 0; row < Dim; ++row) {
      double sum[Dim];
      for (int i = 0; i < Dim; ++i) sum[i] = -0.0;
      for (int s = 0; s < t.k; ++s)
        for (int i = 0; i < Dim; ++i) sum[i] += a[s * Dim + row] * b[line_of(t, s, row) * Dim + i];
      finish_plain<Dim>(sum, t.acc + row * Dim);
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

template <int Dim, bool Scaled>
void exact(const Tile& t) {
  alignas(64) double a[kTileValues], b[kTileValues];
  widen<Dim, Scaled>(t.a, t.k, t.scale_a, a);
  widen<Dim, Scaled>(t.b, lines_of_b(t), t.scale_b, b);
  const Span x = span_of<Dim, Scaled>(t.a, t.k, t.format_a, t.scale_a);
  const Span y = span_of<Dim, Scaled>(t.b, lines_of_b(t), t.format_b, t.scale_b);
  // At most 128 products: 7 bits above the largest.
  if (!x.finite || !y.finite || x.high + y.high + 7 - (x.low + y.low) > 53) return exact_pairs<Dim>(t, a, b);
  if (t.pick) return exact_plain<Dim, true>(t, a, b);
  exact_plain<Dim, false>(t, a, b);
}

// An element for kChunked: value = significand * 2^(exponent - fraction). A product that is zero counts with the
// exponent -126; an exponent of -kZero marks the zero elements.
constexpr int kZero = 1 << 20;
struct Pieces {
  alignas(64) i32 significand[kTileValues];
  alignas(64) i32 exponent[kTileValues];
  int highest = -kZero;
  bool finite = true;
};
template <int Dim, bool Scaled>
void split(const float* values, int lines, Format format, const u8* scale, Pieces& out) {
  int largest = 0, worst_scale = 0, highest = -kZero;
  for (int k = 0; k < lines; ++k) {
    for (int i = 0; i < Dim; ++i) {
      const u32 code = raw(values[k * Dim + i]);
      const int field = static_cast<int>((code >> 23) & 0xff), e = std::max(field, 1) - 127;
      const i32 full = static_cast<i32>((code & 0x7fffffu) | (field ? 0x800000u : 0u));
      const i32 magnitude = full >> std::min(23 - format.fraction + std::max(format.min_exponent - e, 0), 31);
      const bool zero = (code & 0x7fffffffu) == 0;
      const int byte = Scaled ? scale[k / 32 * Dim + i] : 127;
      const i32 exponent = zero ? -kZero : std::max(e, format.min_exponent) + byte - 127;
      out.significand[k * Dim + i] = code >> 31 ? -magnitude : magnitude;
      out.exponent[k * Dim + i] = exponent;
      highest = std::max(highest, exponent);
      largest = std::max(largest, field);
      worst_scale = std::max(worst_scale, byte);
    }
  }
  out.highest = highest;
  out.finite = largest != 255 && worst_scale != 255;
}

ZYFA_SIM_INLINE double power_of_2(int e) { return bits<double>(static_cast<u64>(1023 + e) << 52); }
// floor(x * 2^e); an e far below makes 0 or -1 of anything.
ZYFA_SIM_INLINE double floor_shift(double x, int e) { return __builtin_floor(x * power_of_2(std::max(e, -1000))); }

// The sums of a group's halves, times 2^(top - 24) each, and C, to f32. Free of branches, for the vectoriser.
ZYFA_SIM_INLINE float add_group(double sum0, int top0, double sum1, int top1, float c, bool narrow) {
  const int both = std::max(top0, top1);
  const double sum = floor_shift(sum0, top0 - both) + floor_shift(sum1, top1 - both);
  const int field = exponent_field(c), exponent_c = std::max(field, 1) - 127;
  const double significand = static_cast<double>(c) * power_of_2(23 - exponent_c);
  const int top = std::max(both, exponent_c);
  const double addend = floor_shift(2 * significand, exponent_c - top);
  const double kept = (narrow & (exponent_c < top - 25)) ? 0 : addend;
  const double total = floor_shift(128 * sum, both - top) + 128 * kept;
  const float r = static_cast<float>(total * power_of_2(top - 31));
  return field == 255 ? c : r;
}

// One result's group, whatever its operands: products that reach 2^128 count as infinite.
float single_group(const Tile& t, const Pieces& a, const Pieces& b, int row, int col, int first, int count, float c) {
  const int fraction = t.format_a.fraction + t.format_b.fraction;
  i32 product[16], exponent[16];
  int top[2] = {-kZero, -kZero};
  double ieee = c - c == 0 ? 0 : c;
  for (int n = 0; n < count; ++n) {
    const int s = first + n, at_a = s * t.dim + row, at_b = line_of(t, s, row) * t.dim + col;
    const int half = t.format_a.narrow ? n % 2 : 0;
    product[n] = a.significand[at_a] * b.significand[at_b];
    exponent[n] = product[n] ? a.exponent[at_a] + b.exponent[at_b] : -126;
    top[half] = std::max(top[half], exponent[n]);
    const double x = t.a[at_a], y = t.b[at_b];
    if (t.scale_a && (t.scale_a[s / 32 * t.dim + row] == 255 || t.scale_b[s / 32 * t.dim + col] == 255)) {
      ieee += bits<double>(0x7ff8000000000000ull);
    } else if (x - x != 0 || y - y != 0) {
      ieee += x * y;
    } else if (std::fabs(product[n] * power_of_2(exponent[n] - fraction)) >= 0x1p128) {
      ieee += bits<double>(product[n] < 0 ? 0xfff0000000000000ull : 0x7ff0000000000000ull);
    }
  }
  if (ieee - ieee != 0) return static_cast<float>(ieee);
  double sum[2] = {0, 0};
  for (int n = 0; n < count; ++n) {
    const int half = t.format_a.narrow ? n % 2 : 0;
    const double magnitude = std::fabs(product[n] * power_of_2(24 - fraction));
    const double cut = floor_shift(magnitude, exponent[n] - top[half]);
    sum[half] += product[n] < 0 ? -cut : cut;
  }
  return add_group(sum[0], top[0], sum[1], top[1], c, t.format_a.narrow);
}

// The products first, first + step, ... of a row's group in 16 columns, in fixed point: sum * 2^(top - 24).
using Ints __attribute__((vector_size(64))) = i32;

template <int Dim, bool Picked>
ZYFA_SIM_INLINE void sum_half(const Tile& t, const Pieces& a, const Pieces& b, int row, int first, int step, int end,
                              int column, Ints& top, Ints& sum) {
  const int left = 24 - t.format_a.fraction - t.format_b.fraction;
  const Ints floor = Ints{} - 126, most = Ints{} + 31;
  top = Ints{} - kZero;
  sum = Ints{};
  for (int s = first; s < end; s += step) {
    Ints e;
    __builtin_memcpy(&e, b.exponent + (Picked ? t.pick[s * Dim + row] : s) * Dim + column, sizeof(e));
    e += a.exponent[s * Dim + row];
    e = e < -kZero / 2 ? floor : e;
    top = e > top ? e : top;
  }
  for (int s = first; s < end; s += step) {
    const int line = (Picked ? t.pick[s * Dim + row] : s) * Dim + column;
    Ints e, x;
    __builtin_memcpy(&e, b.exponent + line, sizeof(e));
    __builtin_memcpy(&x, b.significand + line, sizeof(x));
    x *= a.significand[s * Dim + row];
    Ints shift = top - (e + a.exponent[s * Dim + row]);
    shift = shift < most ? shift : most;
    const Ints cut = ((x < 0 ? -x : x) << left) >> shift;
    sum += x < 0 ? -cut : cut;
  }
}

// Adds one group of the row's products to d[0..Dim).
template <int Dim, bool Picked>
ZYFA_SIM_INLINE void add_row_group(const Tile& t, const Pieces& a, const Pieces& b, int row, int first, int group,
                                   float* d) {
  const int step = t.format_a.narrow ? 2 : 1, end = first + group;
  for (int column = 0; column < Dim; column += 16) {
    Ints top[2], sum[2];
    sum_half<Dim, Picked>(t, a, b, row, first, step, end, column, top[0], sum[0]);
    if (step == 2) {
      sum_half<Dim, Picked>(t, a, b, row, first + 1, step, end, column, top[1], sum[1]);
    } else {
      top[1] = Ints{} - kZero;
      sum[1] = Ints{};
    }
    alignas(64) i32 tops[2][16], sums[2][16];
    __builtin_memcpy(tops, top, sizeof(tops));
    __builtin_memcpy(sums, sum, sizeof(sums));
    for (int i = 0; i < 16; ++i) {
      float& x = d[column + i];
      x = add_group(sums[0][i], tops[0][i], sums[1][i], tops[1][i], x, step == 2);
    }
  }
}

template <int Dim, bool Scaled>
void chunked(const Tile& t) {
  Pieces a, b;
  split<Dim, Scaled>(t.a, t.k, t.format_a, t.scale_a, a);
  split<Dim, Scaled>(t.b, lines_of_b(t), t.format_b, t.scale_b, b);
  const int group = std::min(t.format_a.narrow ? 16 : 8, t.k);
  // Tiles of four columns take the way of single results, too.
  const bool special = Dim < 16 || !a.finite || !b.finite || a.highest + b.highest + 2 > 127;
  for (int row = 0; row < Dim; ++row) {
    float* d = t.acc + row * Dim;
    for (int first = 0; first < t.k; first += group) {
      if (special) {
        for (int i = 0; i < Dim; ++i) d[i] = single_group(t, a, b, row, i, first, group, d[i]);
      } else if constexpr (Dim >= 16) {
        if (t.pick) {
          add_row_group<Dim, true>(t, a, b, row, first, group, d);
        } else {
          add_row_group<Dim, false>(t, a, b, row, first, group, d);
        }
      }
    }
  }
}

}  // namespace

// Scaled forms are 32x32 and 16x16.
void accumulate_exact(const Tile& tile) {
  if (tile.dim == 32) return tile.scale_a ? exact<32, true>(tile) : exact<32, false>(tile);
  if (tile.dim == 16) return tile.scale_a ? exact<16, true>(tile) : exact<16, false>(tile);
  exact<4, false>(tile);
}
void accumulate_chunked(const Tile& tile) {
  if (tile.dim == 32) return tile.scale_a ? chunked<32, true>(tile) : chunked<32, false>(tile);
  if (tile.dim == 16) return tile.scale_a ? chunked<16, true>(tile) : chunked<16, false>(tile);
  chunked<4, false>(tile);
}

}  // namespace zyfa::sim::ZYFA_SIM_ISA
