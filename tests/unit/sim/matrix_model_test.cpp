// The three accumulation models on random operands of every form, against arithmetic of the test's own: std::fma for
// the chain, sums of unlimited width for kExact, and the published statement of CDNA3's adder, in doubles, for
// kChunked.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "tests/unit/sim/matrix_forms.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using i64 = std::int64_t;
__extension__ typedef __int128 i128;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// A sum of numbers m * 2^e, digit by digit to the base 2^32; digits may be negative until they are looked at.
class Wide {
 public:
  void add(i128 m, int e) {
    const int position = e - kLowest, shift = position % 32;
    const bool minus = m < 0;
    auto magnitude = static_cast<unsigned __int128>(minus ? -m : m);
    std::size_t i = at(position / 32);
    // Shift the first digit apart, so that 128 bits suffice.
    i64 carry = 0;
    for (; magnitude != 0 || carry != 0; ++i, magnitude >>= 32) {
      const i64 piece = (static_cast<i64>(magnitude & 0xffffffffu) << shift) + carry;
      carry = piece >> 32;
      digit_[i] += minus ? -(piece & 0xffffffff) : piece & 0xffffffff;
    }
  }
  void add_product(double a, double b, int sign = 1) {
    const auto [x, ex] = parts(a);
    const auto [y, ey] = parts(b);
    add(static_cast<i128>(x) * y * sign, ex + ey);
  }
  void add(double a, int sign = 1) { add_product(a, 1, sign); }
  // -1, 0 or 1.
  [[nodiscard]] int sign() const {
    i64 carry = 0;
    bool any = false;
    for (const i64 d : digit_) {
      const i64 x = d + carry;
      any |= (x & 0xffffffff) != 0;
      carry = x >> 32;
    }
    return carry < 0 ? -1 : any ? 1 : 0;
  }

 private:
  static constexpr int kLowest = -2208;
  static std::pair<i64, int> parts(double x) {
    int e = 0;
    const double m = std::frexp(x, &e);
    return {static_cast<i64>(std::ldexp(m, 53)), e - 53};
  }
  std::array<i64, 144> digit_{};
};

// Whether `r` is `twice`/2 rounded to nearest even in a format whose neighbours are `below` and `above`.
bool is_nearest(Wide twice_minus_r_and_below, Wide twice_minus_r_and_above, bool even) {
  const int low = twice_minus_r_and_below.sign(), high = twice_minus_r_and_above.sign();
  return (low > 0 || (low == 0 && even)) && (high < 0 || (high == 0 && even));
}
template <typename Float>
bool is_nearest(const Wide& twice, Float r) {
  // Infinity stands for the power of two after the largest number.
  const auto value = [](Float x) {
    if (!std::isinf(x)) return std::array<double, 2>{x, 0};
    const double top = std::ldexp(1.0, std::is_same_v<Float, float> ? 127 : 1023);
    return std::array<double, 2>{x > 0 ? top : -top, x > 0 ? top : -top};
  };
  const auto minus = [&](Float x) {
    Wide w = twice;
    for (const Float y : {r, x})
      for (const double part : value(y)) w.add(part, -1);
    return w;
  };
  const Float infinity = std::numeric_limits<Float>::infinity();
  const bool even = std::is_same_v<Float, float> ? !(std::bit_cast<u32>(static_cast<float>(r)) & 1)
                                                 : !(std::bit_cast<std::uint64_t>(static_cast<double>(r)) & 1);
  if (r == infinity) return minus(std::numeric_limits<Float>::max()).sign() >= 0;
  if (r == -infinity) return minus(std::numeric_limits<Float>::lowest()).sign() <= 0;
  return is_nearest(minus(std::nextafter(r, -infinity)), minus(std::nextafter(r, infinity)), even);
}

// One result's operands.
struct Terms {
  std::vector<double> a, b;
  std::vector<int> scale;  // exponent of each product, 0 without scales; kNan
  double c = 0;
};
constexpr int kNanScale = 1 << 16;

// What IEEE says when an operand or a scale is infinite or NaN.
bool special(const Terms& t, double& out) {
  bool any = !std::isfinite(t.c);
  double sum = any ? t.c : 0;
  for (std::size_t i = 0; i < t.a.size(); ++i) {
    if (t.scale[i] == kNanScale) {
      any = true;
      sum = NAN;
    } else if (!std::isfinite(t.a[i]) || !std::isfinite(t.b[i])) {
      any = true;
      sum += t.a[i] * t.b[i];
    }
  }
  out = sum;
  return any;
}

void expect_exact(const Form& f, const Terms& t, double got) {
  double ieee = 0;
  if (special(t, ieee)) {
    ASSERT_TRUE(std::isnan(ieee) ? std::isnan(got) : got == ieee) << got << " for " << ieee;
    return;
  }
  Wide twice;
  for (int n = 0; n < 2; ++n) {
    for (std::size_t i = 0; i < t.a.size(); ++i)
      twice.add_product(std::ldexp(t.a[i], t.scale[i] / 2), std::ldexp(t.b[i], t.scale[i] - t.scale[i] / 2));
    twice.add(t.c);
  }
  ASSERT_TRUE(f.f64() ? is_nearest(twice, got) : is_nearest(twice, static_cast<float>(got)))
      << fmt::format("{:a} is not the nearest", got);
}

void expect_chain(const Form& f, const Terms& t, double got) {
  double want;
  if (f.f64()) {
    want = t.c;
    for (std::size_t i = 0; i < t.a.size(); ++i) want = std::fma(t.a[i], t.b[i], want);
  } else {
    auto acc = static_cast<float>(t.c);
    for (std::size_t i = 0; i < t.a.size(); ++i)
      acc = std::fma(static_cast<float>(t.a[i]), static_cast<float>(t.b[i]), acc);
    want = acc;
  }
  ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << fmt::format("{:a} for {:a}", got, want);
}

// The adder of MMA-Sim's model of CDNA3, after its text: significands in [1, 2) or subnormal with the smallest
// exponent.
struct Scaled {
  double significand;
  int exponent;
};
int smallest_exponent(Element e) {
  switch (e) {
    case Element::kF16:
    case Element::kBf8:
      return -14;
    case Element::kFp8:
      return -6;
    case Element::kFp6:
    case Element::kFp4:
      return 0;
    case Element::kBf6:
      return -2;
    default:
      return -126;
  }
}
Scaled take(double x, int smallest) {
  if (x == 0) return {0, -126};
  int e = 0;
  double m = 2 * std::frexp(x, &e);
  --e;
  if (e < smallest) {
    m = std::ldexp(m, e - smallest);
    e = smallest;
  }
  return {m, e};
}
Scaled fused(const std::vector<Scaled>& terms) {
  int top = terms.at(0).exponent;
  for (const Scaled& t : terms) top = std::max(top, t.exponent);
  double sum = 0;
  for (const Scaled& t : terms) sum += std::ldexp(std::trunc(std::ldexp(t.significand, 24 + t.exponent - top)), -24);
  return {sum, top};
}
double floor_at(double x, int shift, int digits) {
  return std::ldexp(std::floor(std::ldexp(x, digits + shift)), -digits);
}

void expect_chunked(const Form& f, const Terms& t, double got) {
  const bool narrow = bits_of(f.a) <= 8;
  const std::size_t group = std::min<std::size_t>(narrow ? 16 : 8, t.a.size());
  auto acc = static_cast<float>(t.c);
  for (std::size_t first = 0; first < t.a.size(); first += group) {
    Terms g;
    g.c = acc;
    std::vector<Scaled> halves[2];
    for (std::size_t i = first; i < first + group; ++i) {
      g.a.push_back(t.a[i]);
      g.b.push_back(t.b[i]);
      g.scale.push_back(t.scale[i]);
      if (t.scale[i] == kNanScale || !std::isfinite(t.a[i]) || !std::isfinite(t.b[i])) continue;
      const double product = std::ldexp(t.a[i] * t.b[i], t.scale[i]);
      if (std::fabs(product) >= 0x1p128) {
        g.a.back() = std::copysign(INFINITY, product);  // counts as infinite
        g.b.back() = 1;
        continue;
      }
      const Scaled x = take(t.a[i], smallest_exponent(f.a)), y = take(t.b[i], smallest_exponent(f.b));
      const double significand = x.significand * y.significand;
      halves[narrow ? i % 2 : 0].push_back(
          {significand, significand == 0 ? -126 : x.exponent + y.exponent + t.scale[i]});
    }
    double ieee = 0;
    if (special(g, ieee)) {
      acc = static_cast<float>(ieee);
      continue;
    }
    Scaled sum = fused(halves[0]);
    if (narrow) {
      const Scaled odd = fused(halves[1]);
      const int top = std::max(sum.exponent, odd.exponent);
      sum = {floor_at(sum.significand, sum.exponent - top, 24) + floor_at(odd.significand, odd.exponent - top, 24),
             top};
    }
    const Scaled c = take(acc, -126);
    const int top = std::max(sum.exponent, c.exponent);
    double total = floor_at(sum.significand, sum.exponent - top, 31);
    if (!narrow || c.exponent >= top - 25) total += floor_at(c.significand, c.exponent - top, 24);
    acc = static_cast<float>(std::ldexp(total, top));
  }
  ASSERT_TRUE(std::isnan(acc) ? std::isnan(got) : got == acc) << fmt::format("{:a} for {:a}", got, acc);
}

// Random operands of several kinds.
std::uint64_t random_code(Element e, int kind, std::mt19937& random) {
  const int bits = bits_of(e);
  std::uint64_t code =
      (static_cast<std::uint64_t>(random()) << 32 | random()) & (bits == 64 ? ~0ull : (1ull << bits) - 1);
  if (e == Element::kF32 && kind == 0) code = std::bit_cast<u32>(std::uniform_real_distribution<float>(-4, 4)(random));
  if (e == Element::kF64 && kind == 0)
    code = std::bit_cast<std::uint64_t>(std::uniform_real_distribution<double>(-4, 4)(random));
  if (e == Element::kBf16 && kind == 0)
    code = std::bit_cast<u32>(std::uniform_real_distribution<float>(-4, 4)(random)) >> 16;
  // Magnitudes that differ by many powers of two, down to subnormals.
  if ((e == Element::kBf16 || e == Element::kF32) && kind == 1) {
    const u32 word = std::bit_cast<u32>(
        std::ldexp(std::uniform_real_distribution<float>(-2, 2)(random), -static_cast<int>(random() % 70)));
    code = e == Element::kF32 ? word : word >> 16;
  }
  return code;
}

struct Operands {
  const Form& f;
  Registers r = Registers(kRows);
  bool scaled = false;

  Operands(const Form& form, int kind, std::mt19937& random) : f(form) {
    const auto finite = [&](Element e) {
      for (;;) {
        const std::uint64_t code = random_code(e, kind, random);
        if (kind == 3 || std::isfinite(decode(e, code))) return code;
      }
    };
    const auto zero = [&](Element e) { return (random() & 1ull) << (bits_of(e) - 1); };
    for (int b = 0; b < f.blocks; ++b) {
      for (int i = 0; i < f.dim; ++i) {
        for (int s = 0; s < f.k_of_a(); ++s)
          set(r, kA, bits_of(f.a), place_a(f, b, i, s), kind == 4 && random() % 8 ? zero(f.a) : finite(f.a));
        for (int k = 0; k < f.k; ++k) set(r, kB, bits_of(f.b), place_b(f, b, k, i), finite(f.b));
        for (int j = 0; j < f.dim; ++j) {
          const Place p = place_d(f, b, i, j);
          const int c = f.sparse ? kD : kC;
          if (f.f64()) {
            set(r, c, 64, p, kind == 4 ? zero(Element::kF64) : finite(Element::kF64));
          } else {
            set(r, c, 32, p, kind == 4 ? zero(Element::kF32) : finite(Element::kF32));
          }
        }
        // Cancellation: products 2n and 2n + 1 are opposite but for the last pair.
        if (kind == 2 && !f.sparse) {
          for (int k = 0; k + 3 < f.k; k += 2) {
            const std::uint64_t a = get(r, kA, bits_of(f.a), place_a(f, b, i, k));
            set(r, kA, bits_of(f.a), place_a(f, b, i, k + 1), a ^ (1ull << (bits_of(f.a) - 1)));
            set(r, kB, bits_of(f.b), place_b(f, b, k + 1, i), get(r, kB, bits_of(f.b), place_b(f, b, k, i)));
          }
        }
      }
    }
    for (auto& lane : r[kIndex].lane) lane = static_cast<u32>(random());
  }

  [[nodiscard]] Terms terms(int b, int i, int j) const {
    Terms t;
    for (int s = 0; s < f.k_of_a(); ++s) {
      const Place p = place_a(f, b, i, s);
      const int k = f.sparse ? 4 * (s / 2) + static_cast<int>(r[kIndex].lane[p.lane] >> (2 * p.item) & 3) : s;
      t.a.push_back(decode(f.a, get(r, kA, bits_of(f.a), p)));
      t.b.push_back(decode(f.b, get(r, kB, bits_of(f.b), place_b(f, b, k, j))));
      int scale = 0;
      if (scaled) {
        // Lane l of a scale register: row or column l % dim, block of 32 k l / dim; byte 2 of A's, byte 1 of B's.
        const int x = static_cast<int>(r[kScaleA].lane[i + f.dim * (s / 32)] >> 16 & 255);
        const int y = static_cast<int>(r[kScaleB].lane[j + f.dim * (s / 32)] >> 8 & 255);
        scale = x == 255 || y == 255 ? kNanScale : x + y - 254;
      }
      t.scale.push_back(scale);
    }
    t.c = result(r, f.sparse ? kD : kC, place_d(f, b, i, j));
    return t;
  }
  [[nodiscard]] double result(const Registers& from, int first, Place p) const {
    return f.f64() ? decode(Element::kF64, get(from, first, 64, p)) : decode(Element::kF32, get(from, first, 32, p));
  }
  static constexpr int kScaleA = 130, kScaleB = 131;
};

class MatrixModel : public testing::TestWithParam<SimAccumulation> {};

void expect_model(SimAccumulation model, const Form& f, const Terms& t, double got) {
  const bool plain = f.f64() || f.a == Element::kF32;
  if (model == SimAccumulation::kExact) return expect_exact(f, t, got);
  if (model == SimAccumulation::kChunked && !plain) return expect_chunked(f, t, got);
  expect_chain(f, t, got);
}

TEST_P(MatrixModel, RandomOperandsOfEveryForm) {
  std::mt19937 random(7);
  for (const Form& f : all_forms()) {
    if (f.integer()) continue;
    const std::string text = text_of(f);
    const Instruction instruction(text);
    for (int kind = 0; kind < 5; ++kind) {
      const Operands setup(f, kind, random);
      Registers r = setup.r;
      instruction.run(r, GetParam());
      for (int n = 0; n < 24; ++n) {
        const int b = static_cast<int>(random()) & (f.blocks - 1), i = static_cast<int>(random()) & (f.dim - 1),
                  j = static_cast<int>(random()) & (f.dim - 1);
        expect_model(GetParam(), f, setup.terms(b, i, j), setup.result(r, kD, place_d(f, b, i, j)));
        ASSERT_FALSE(testing::Test::HasFatalFailure())
            << text << " kind " << kind << " D[" << b << "," << i << "," << j << "]";
      }
    }
  }
}

// Scale bytes near each other, anywhere, and with NaN among them; the chain rounds once per block of 32.
TEST_P(MatrixModel, ScaledForms) {
  std::mt19937 random(8);
  for (Form f : all_forms()) {
    if (!f.f8f6f4()) continue;
    const std::string name = f.dim == 32 ? "v_mfma_scale_f32_32x32x64_f8f6f4" : "v_mfma_scale_f32_16x16x128_f8f6f4";
    std::string text = text_of(f);
    text = name + text.substr(text.find(' '));
    const auto fields = text.find(" cbsz");
    text = text.substr(0, fields) + ", v130, v131 op_sel:[0,1,0] op_sel_hi:[1,0,0]" + text.substr(fields);
    const Instruction instruction(text);
    for (int kind = 0; kind < 4; ++kind) {
      Operands setup(f, 0, random);
      setup.scaled = true;
      for (const int s : {Operands::kScaleA, Operands::kScaleB})
        for (auto& lane : setup.r[at(s)].lane)
          lane = kind == 0 ? 0x01010101u * (120 + random() % 16)
                           : static_cast<u32>(random()) & (kind == 3 ? ~0u : 0xfefefefeu);
      // C of the size of the scaled sums.
      for (int w = 0; w < f.words_d(); ++w) {
        for (auto& lane : setup.r[at(kC + w)].lane)
          if (kind == 0) lane = std::bit_cast<u32>(std::uniform_real_distribution<float>(-99, 99)(random));
      }
      Registers r = setup.r;
      instruction.run(r, GetParam());
      for (int n = 0; n < 24; ++n) {
        const int i = static_cast<int>(random()) & (f.dim - 1), j = static_cast<int>(random()) & (f.dim - 1);
        const Terms t = setup.terms(0, i, j);
        const double got = setup.result(r, kD, place_d(f, 0, i, j));
        if (GetParam() != SimAccumulation::kFmaChain) {
          expect_model(GetParam(), f, t, got);
        } else {
          // Each block: the chain from 0, then one correctly rounded addition of its scaled sum. Only the last step is
          // checked by its definition; those before are the definition itself, found by exact rounding.
          double acc = t.c;
          for (std::size_t first = 0; first < t.a.size(); first += 32) {
            float part = 0;
            for (std::size_t k = first; k < first + 32; ++k)
              part = std::fma(static_cast<float>(t.a[k]), static_cast<float>(t.b[k]), part);
            if (t.scale[first] == kNanScale || !std::isfinite(part) || !std::isfinite(acc)) {
              acc = t.scale[first] == kNanScale
                        ? NAN
                        : static_cast<float>(acc + std::ldexp(static_cast<double>(part), t.scale[first] / 2));
              continue;
            }
            Wide twice;
            for (int two = 0; two < 2; ++two) {
              twice.add(acc);
              twice.add(std::ldexp(static_cast<double>(part), t.scale[first]));
            }
            // Start from the doubles' sum and step to the neighbour that is nearest.
            auto guess = static_cast<float>(acc + std::ldexp(static_cast<double>(part), t.scale[first]));
            for (const float candidate : {guess, std::nextafter(guess, INFINITY), std::nextafter(guess, -INFINITY)})
              if (is_nearest(twice, candidate)) guess = candidate;
            acc = guess;
          }
          ASSERT_TRUE(std::isnan(acc) ? std::isnan(got) : got == acc) << fmt::format("{:a} for {:a}", got, acc);
        }
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << text << " kind " << kind;
      }
    }
  }
}

std::string model_name(const testing::TestParamInfo<SimAccumulation>& info) {
  constexpr const char* kNames[] = {"FmaChain", "Exact", "Chunked"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Models, MatrixModel,
                         testing::Values(SimAccumulation::kFmaChain, SimAccumulation::kExact,
                                         SimAccumulation::kChunked),
                         model_name);

// One product of 1.0 under every scale byte in every byte position of either operand.
TEST(MatrixScales, EveryByteInEveryPosition) {
  for (const int dim : {32, 16}) {
    const char* shape = dim == 32 ? "32x32x64" : "16x16x128";
    const int words = dim == 32 ? 16 : 4;
    for (u32 select = 0; select < 4; ++select) {
      for (const bool of_a : {true, false}) {
        const u32 lo = select & 1, hi = select >> 1;
        const Instruction instruction(
            fmt::format("v_mfma_scale_f32_{}_f8f6f4 v[0:{}], v[64:71], v[96:103], 0, v130, v131 op_sel:[{},{},0] "
                        "op_sel_hi:[{},{},0]",
                        shape, words - 1, of_a ? lo : 0, of_a ? 0 : lo, of_a ? hi : 0, of_a ? 0 : hi));
        Registers r(kRows);
        // k = 0 of every row and column is 1.0: item 0 of the first lanes, scaled by the first lanes.
        for (int l = 0; l < dim; ++l) r[kA].lane[l] = r[kB].lane[l] = 0x38;
        for (u32 byte = 0; byte < 256; ++byte) {
          const u32 other = byte < 100 ? 150 : 127;
          // The other bytes of the register, and the lanes of the other blocks, would give NaN or another power.
          for (int l = 0; l < 64; ++l) {
            r[at(of_a ? 130 : 131)].lane[l] =
                l < dim ? (0x50505050u & ~(0xffu << (8 * select))) | byte << (8 * select) : 80;
            r[at(of_a ? 131 : 130)].lane[l] = l < dim ? other : 127;
          }
          instruction.run(r);
          for (int w = 0; w < words; ++w) {
            for (const u32 lane : r[at(w)].lane) {
              const auto got = std::bit_cast<float>(lane);
              if (byte == 255) {
                ASSERT_EQ(lane, 0x7fc00000u);
              } else {
                ASSERT_EQ(got, static_cast<float>(std::ldexp(1.0, static_cast<int>(byte + other) - 254))) << byte;
              }
            }
          }
        }
      }
    }
  }
}

// LLVM prints an inline constant among the scales with a comment; the hardware takes its exponent.
TEST(MatrixScales, InlineConstants) {
  Registers r(kRows);
  for (int l = 0; l < 16; ++l) r[16].lane[l] = r[40].lane[l] = 0x38;
  for (auto& lane : r[50].lane) lane = 0x7f7f7f80;
  // v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[16:23], v[40:47], v[24:27], v50, 4.0
  const Instruction last(".long 0xd3ac0000, 0x0001ed32, 0xd3ad0800, 0x04625110");
  last.run(r);
  EXPECT_EQ(r[0].lane[0], std::bit_cast<u32>(8.0f));
  // ..., 0.5, v50
  const Instruction first(".long 0xd3ac0000, 0x000264f0, 0xd3ad0800, 0x04625110");
  first.run(r);
  EXPECT_EQ(r[0].lane[0], std::bit_cast<u32>(1.0f));
}

// MODE.FP16_OVFL: overflow becomes the largest number, an infinity among the operands stays, integers saturate.
TEST(MatrixOverflow, ClampedWhenModeAsks) {
  constexpr u32 kClamp = 0xf0 | 1u << 23;
  for (const auto model : {SimAccumulation::kFmaChain, SimAccumulation::kExact, SimAccumulation::kChunked}) {
    const Instruction instruction("v_mfma_f32_16x16x32_bf16 v[0:3], v[64:67], v[96:99], v[32:35]");
    Registers r(kRows);
    for (int l = 0; l < 64; ++l) r[kA].lane[l] = 0x7f00, r[kB].lane[l] = 0x7f00;
    r[kA].lane[1] = 0x7f80;          // row 1 is infinite
    r[kC + 2].lane[0] = 0xff800000;  // C[2][0] is -infinity
    Registers plain = r;
    instruction.run(plain, model);
    EXPECT_EQ(plain[0].lane[0], 0x7f800000u);
    instruction.run(r, model, kClamp);
    EXPECT_EQ(r[0].lane[0], 0x7f7fffffu);
    EXPECT_EQ(r[1].lane[0], 0x7f800000u);
    EXPECT_TRUE(r[2].lane[0] == 0xff800000u || r[2].lane[0] == 0x7fc00000u);
  }
  const Instruction integer("v_mfma_i32_16x16x32_i8 v[0:3], v[64:65], v[96:97], v[32:35]");
  Registers r(kRows);
  for (int l = 0; l < 64; ++l) r[kA].lane[l] = 1, r[kB].lane[l] = 1;
  for (auto& lane : r[kC].lane) lane = 0x7fffffff;
  for (auto& lane : r[kC + 1].lane) lane = 0x7ffffff0;
  Registers plain = r;
  integer.run(plain);
  EXPECT_EQ(plain[0].lane[5], 0x80000003u);
  integer.run(r, SimAccumulation::kFmaChain, kClamp);
  EXPECT_EQ(r[0].lane[5], 0x7fffffffu);
  EXPECT_EQ(r[1].lane[5], 0x7ffffff4u);
}

// Guide 7.4: f32 inputs follow MODE.FP_DENORM, C and D and narrower inputs do not.
TEST(MatrixDenormals, OnlyInputsOf32BitsFollowMode) {
  const Instruction wide("v_mfma_f32_16x16x4_f32 v[0:3], v64, v96, v[32:35]");
  const Instruction narrow("v_mfma_f32_16x16x16_bf16 v[0:3], v[64:65], v[96:97], v[32:35]");
  for (const u32 mode : {0xf0u, 0xc0u}) {
    Registers r(kRows);
    for (int l = 0; l < 16; ++l) r[kA].lane[l] = 0x00400000, r[kB].lane[l] = std::bit_cast<u32>(2.0f);
    for (auto& lane : r[kC].lane) lane = 1;
    wide.run(r, SimAccumulation::kFmaChain, mode);
    EXPECT_EQ(r[0].lane[0], mode == 0xf0 ? 0x00800001u : 1u);
    for (int l = 0; l < 16; ++l) r[kA].lane[l] = 0x0040, r[kB].lane[l] = 0x4000;
    narrow.run(r, SimAccumulation::kFmaChain, mode);
    EXPECT_EQ(r[0].lane[0], 0x00800001u);
  }
}

// Sums of which every order of rounding is known: only kExact keeps what the others lose.
TEST(MatrixExact, KeepsWhatRoundingLoses) {
  const Instruction instruction("v_mfma_f32_32x32x16_bf16 v[0:15], v[64:67], v[96:99], 0");
  Registers r(kRows);
  // Row 0 of A: 2^100, 1, -2^100; column 0 of B: 1, 2^-100, 1.
  r[kA].lane[0] = 0x3f807180;
  r[kA + 1].lane[0] = 0xf180;
  r[kB].lane[0] = 0x0d803f80;
  r[kB + 1].lane[0] = 0x3f80;
  instruction.run(r, SimAccumulation::kExact);
  EXPECT_EQ(r[0].lane[0], std::bit_cast<u32>(0x1p-100f));
  instruction.run(r, SimAccumulation::kFmaChain);
  EXPECT_EQ(r[0].lane[0], 0u);
}

// A tie of f32 that only a term far below breaks, after terms between have cancelled: two doubles lose that term.
TEST(MatrixExact, BreaksTiesByTheSmallestTerm) {
  const Instruction instruction("v_mfma_f32_32x32x16_bf16 v[0:15], v[64:67], v[96:99], 0");
  for (const bool minus : {false, true}) {
    Registers r(kRows);
    // Row 0 of A: 2^100, 2^76, 2^20, +-2^-60, -2^20; B is ones.
    r[kA].lane[0] = 0x65807180;
    r[kA + 1].lane[0] = 0x21804980 | (minus ? 0x80000000u : 0u);
    r[kA + 2].lane[0] = 0xc980;
    for (int w = 0; w < 4; ++w)
      for (auto& lane : r[at(kB + w)].lane) lane = 0x3f803f80;
    instruction.run(r, SimAccumulation::kExact);
    EXPECT_EQ(std::bit_cast<float>(r[0].lane[0]), minus ? 0x1p100f : 0x1p100f + 0x1p77f);
  }
}

// The same beside C, where the products fit in a double and their sum with C does not.
TEST(MatrixExact, BreaksTiesBesideC) {
  const Instruction instruction("v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[64:65], v[96:97], v[32:35]");
  for (const bool minus : {false, true}) {
    Registers r(kRows);
    // 256 * 256 twice is half a unit of C's last place; 2^-9 * 2^-9 decides.
    r[kA].lane[0] = minus ? 0x817878 : 0x017878;
    r[kB].lane[0] = 0x017878;
    r[kC].lane[0] = std::bit_cast<u32>(0x1p41f);
    instruction.run(r, SimAccumulation::kExact);
    EXPECT_EQ(std::bit_cast<float>(r[0].lane[0]), minus ? 0x1p41f : 0x1p41f + 0x1p18f);
  }
}

// All terms -0: the sum is -0; any +0 among them makes it +0.
TEST(MatrixExact, SignOfZero) {
  struct Case {
    const char* text;
    u32 minus_zero, one;
  };
  for (const auto& [text, minus_zero, one] :
       {Case{"v_mfma_f32_16x16x4_f32 v[0:3], v64, v96, v[32:35]", 0x80000000, 0x3f800000},
        Case{"v_mfma_f32_16x16x16_bf16 v[0:3], v[64:65], v[96:97], v[32:35]", 0x80008000, 0x3f803f80},
        Case{"v_mfma_f32_4x4x4_16b_bf16 v[0:3], v[64:65], v[96:97], v[32:35]", 0x80008000, 0x3f803f80}}) {
    for (const auto model : {SimAccumulation::kFmaChain, SimAccumulation::kExact}) {
      const Instruction instruction(text);
      Registers r(kRows);
      for (const int w : {0, 1}) {
        for (auto& lane : r[at(kA + w)].lane) lane = minus_zero;
        for (auto& lane : r[at(kB + w)].lane) lane = one;
      }
      for (auto& lane : r[kC].lane) lane = 0x80000000;
      instruction.run(r, model);
      EXPECT_EQ(r[0].lane[0], 0x80000000u) << text;
      EXPECT_EQ(r[1].lane[0], 0u) << text;
    }
  }
}

// An infinity of B on a line that the index does not name takes no part.
TEST(MatrixSparse, LinesNotNamedAreNotRead) {
  for (const auto model : {SimAccumulation::kFmaChain, SimAccumulation::kExact, SimAccumulation::kChunked}) {
    const Instruction instruction("v_smfmac_f32_16x16x32_bf16 v[0:3], v[64:65], v[96:99], v128");
    Registers r(kRows);
    for (auto& lane : r[kA].lane) lane = 0x3f803f80;
    for (int l = 0; l < 64; ++l) r[kB].lane[l] = 0x7f803f80, r[kB + 1].lane[l] = 0x3f80ff80;
    for (auto& lane : r[kIndex].lane) lane = 0xcc;  // items 0 and 3 of each four
    instruction.run(r, model);
    EXPECT_EQ(r[0].lane[0], std::bit_cast<u32>(8.0f));
  }
}

}  // namespace
}  // namespace zyfa::sim_test
