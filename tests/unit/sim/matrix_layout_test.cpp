// Operand and result layouts of every matrix instruction against the tables of matrix_forms.h: every element of A alone
// against a B whose elements are all distinct, so that D says which element of B met it and where the product went.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string_view>

#include "tests/unit/sim/matrix_forms.h"

namespace zyfa::sim_test {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Value of D (or C) at a place, as the number it is.
double result(const Form& f, const Registers& r, int first, Place p) {
  const auto word = [&](int item) { return r[at(first + item)].lane[p.lane]; };
  if (f.f64()) return std::bit_cast<double>(word(2 * p.item) | static_cast<std::uint64_t>(word(2 * p.item + 1)) << 32);
  return f.integer() ? static_cast<double>(static_cast<std::int32_t>(word(p.item)))
                     : std::bit_cast<float>(word(p.item));
}
void set_c(const Form& f, Registers& r, int first, Place p, double value) {
  if (f.f64()) {
    set(r, first, 64, p, std::bit_cast<std::uint64_t>(value));
  } else {
    set(r, first, 32, p,
        f.integer() ? static_cast<std::uint32_t>(static_cast<std::int32_t>(value))
                    : std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  }
}
int c_of(const Form& f) { return f.sparse ? kD : kC; }

std::string name_of(const Form& f) {
  std::string name = fmt::format("{}{}", f.mnemonic, f.modifiers);
  for (char& c : name)
    if (isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

class MatrixLayout : public testing::TestWithParam<Form> {};

TEST_P(MatrixLayout, EveryElementOfA) {
  const Form& f = GetParam();
  const Instruction instruction(text_of(f));
  std::vector<Place> places;  // of D, by block, row, column
  for (int b = 0; b < f.blocks; ++b)
    for (int i = 0; i < f.dim; ++i)
      for (int j = 0; j < f.dim; ++j) places.push_back(place_d(f, b, i, j));
  const int digit = std::min<int>(std::bit_width(static_cast<unsigned>(largest_integer(f.b) + 1)) - 1, 12);
  const int codes = f.blocks * f.k * f.dim;
  std::mt19937 random(1);
  // Pass n shows digit n of the code of B's element; the last pass is all ones.
  for (int shift = 0; shift >= 0; shift = shift < 0 || (1 << shift) >= codes ? -1 : shift + digit) {
    const bool ones = (1 << shift) >= codes;
    const auto digit_of = [&](int b, int k, int j) {
      return ones ? 1 : ((b * f.k + k) * f.dim + j) >> shift & ((1 << digit) - 1);
    };
    Registers r(kRows);
    for (int b = 0; b < f.blocks; ++b)
      for (int k = 0; k < f.k; ++k)
        for (int j = 0; j < f.dim; ++j) set(r, kB, bits_of(f.b), place_b(f, b, k, j), encode(f.b, digit_of(b, k, j)));
    const std::uint64_t one = encode(f.a, 1);
    for (int b = 0; b < f.blocks; ++b) {
      for (int i = 0; i < f.dim; ++i) {
        for (int s = 0; s < f.k_of_a(); ++s) {
          const Place slot = place_a(f, b, i, s);
          set(r, kA, bits_of(f.a), slot, one);
          for (int index = 0; index < (f.sparse ? 4 : 1); ++index) {
            if (f.sparse) {
              for (auto& lane : r[kIndex].lane) lane = static_cast<std::uint32_t>(random());
              set(r, kIndex, 2, slot, static_cast<std::uint64_t>(index));
              for (int d = 0; d < f.words_d(); ++d) r[at(kD + d)] = {};
            }
            const int k = f.sparse ? 4 * (s / 2) + index : s;
            instruction.run(r);
            for (int p = 0; p < static_cast<int>(places.size()); ++p) {
              const int j = p % f.dim, row = p / f.dim % f.dim, block = p / f.dim / f.dim;
              const double want = block == b && row == i ? digit_of(b, k, j) : 0;
              ASSERT_EQ(result(f, r, kD, places[at(p)]), want)
                  << "A[" << b << "," << i << "," << s << "] index " << index << ", D[" << block << "," << row << ","
                  << j << "]";
            }
          }
          set(r, kA, bits_of(f.a), slot, 0);
        }
      }
    }
    if (ones) break;
  }
}

// All shapes with elements of every width; of pairs of formats a few, as each operand is expanded by itself.
std::vector<Form> layout_forms() {
  std::vector<Form> forms;
  for (const Form& f : all_forms()) {
    const std::string_view fields = f.modifiers;
    if (f.sparse && !f.integer() && f.a != Element::kF16 && (f.a != Element::kFp8 || f.b != Element::kBf8)) continue;
    if (!f.f8f6f4() || f.a == f.b || fields == " cbsz:0 blgp:4" || fields == " cbsz:4 blgp:1" ||
        fields == " cbsz:2 blgp:0" || fields == " cbsz:3 blgp:4")
      forms.push_back(f);
  }
  return forms;
}
INSTANTIATE_TEST_SUITE_P(Forms, MatrixLayout, testing::ValuesIn(layout_forms()),
                         [](const auto& info) { return name_of(info.param); });

// Small integers, of which every sum is exact in every model.
struct Problem {
  const Form& f;
  Registers r = Registers(kRows);
  std::vector<double> a, b;  // elements by lane and item

  Problem(const Form& form, std::mt19937& random) : f(form) {
    const int most = std::min({largest_integer(f.a), largest_integer(f.b), 7});
    const auto small = [&] { return static_cast<double>(static_cast<int>(random() % (2 * most + 1)) - most); };
    for (int b = 0; b < f.blocks; ++b) {
      for (int i = 0; i < f.dim; ++i) {
        for (int s = 0; s < f.k_of_a(); ++s) set(r, kA, bits_of(f.a), place_a(f, b, i, s), encode(f.a, small()));
        for (int k = 0; k < f.k; ++k) set(r, kB, bits_of(f.b), place_b(f, b, k, i), encode(f.b, small()));
        for (int j = 0; j < f.dim; ++j) set_c(f, r, c_of(f), place_d(f, b, i, j), 100 * small());
      }
    }
    for (auto& lane : r[kIndex].lane) lane = static_cast<std::uint32_t>(random());
    for (int l = 0; l < 64; ++l) {
      for (int i = 0; i < f.items_a(); ++i) a.push_back(decode(f.a, get(r, kA, bits_of(f.a), {l, i})));
      for (int i = 0; i < f.items_b(); ++i) b.push_back(decode(f.b, get(r, kB, bits_of(f.b), {l, i})));
    }
  }

  // D[b][i][j] from the tables; lanes of A and B are moved first, signs apply last.
  template <typename LaneA, typename LaneB>
  double expected(int block, int i, int j, LaneA&& lane_a, LaneB&& lane_b, double sign_ab, double sign_c,
                  int index_shift = 0) const {
    double sum = sign_c * result(f, r, c_of(f), place_d(f, block, i, j));
    for (int s = 0; s < f.k_of_a(); ++s) {
      const Place pa = place_a(f, block, i, s);
      const auto chosen = [&] { return static_cast<int>(r[kIndex].lane[pa.lane] >> (index_shift + 2 * pa.item) & 3); };
      const Place pb = place_b(f, block, f.sparse ? 4 * (s / 2) + chosen() : s, j);
      sum += sign_ab * a[at(lane_a(pa.lane) * f.items_a() + pa.item)] * b[at(lane_b(pb.lane) * f.items_b() + pb.item)];
    }
    return sum;
  }
  template <typename Want>
  void check(const Registers& after, int first, Want&& want, const std::string& text) const {
    for (int b = 0; b < f.blocks; ++b)
      for (int i = 0; i < f.dim; ++i)
        for (int j = 0; j < f.dim; ++j)
          ASSERT_EQ(result(f, after, first, place_d(f, b, i, j)), want(b, i, j))
              << text << " D[" << b << "," << i << "," << j << "]";
  }
};
int same(int lane) { return lane; }

TEST(MatrixForms, IntegerProductsInEveryModelAndBank) {
  std::mt19937 random(2);
  for (const Form& f : all_forms()) {
    const std::string text = text_of(f);
    const Instruction in_vgprs(text);
    std::string agprs = text;
    for (const char* bank : {"v[0", "v[32", "v[64", "v[96", " v64,", " v96,"}) {
      if (const auto found = agprs.find(bank); found != std::string::npos)
        agprs[found + (bank[0] == ' ' ? 1 : 0)] = 'a';
    }
    const Instruction in_agprs(agprs);
    const Problem problem(f, random);
    std::vector<double> sums;
    for (int b = 0; b < f.blocks; ++b)
      for (int i = 0; i < f.dim; ++i)
        for (int j = 0; j < f.dim; ++j) sums.push_back(problem.expected(b, i, j, same, same, 1, 1));
    for (const auto model : {SimAccumulation::kFmaChain, SimAccumulation::kExact, SimAccumulation::kChunked}) {
      const auto want = [&](int b, int i, int j) { return sums[at((b * f.dim + i) * f.dim + j)]; };
      Registers r = problem.r;
      in_vgprs.run(r, model);
      problem.check(r, kD, want, text);
      Registers high = problem.r;
      for (int i = 0; i < kIndex; ++i) std::swap(high[at(i)], high[at(i) + Instruction::kAgprs]);
      in_agprs.run(high, model);
      problem.check(high, kD + static_cast<int>(Instruction::kAgprs), want, agprs);
    }
  }
}

TEST(MatrixForms, PassesAndFlops) {
  for (const Form& f : all_forms()) {
    const Instruction instruction(text_of(f));
    EXPECT_EQ(instruction.op().arg >> 24, static_cast<unsigned>(f.passes)) << f.mnemonic << f.modifiers;
    EXPECT_EQ(instruction.op().flops, static_cast<unsigned>(2 * f.blocks * f.dim * f.dim * f.k)) << f.mnemonic;
  }
}

// Guide 7.1.6.1 and table 29.
int lane_a(int lane, int cbsz, int abid) {
  const int s = 64 / (1 << cbsz);
  return cbsz ? lane % s + s * abid : lane;
}
int lane_b(int lane, int blgp) {
  const int from[] = {lane,      lane % 32,      lane % 32 + 32, (lane + 16) % 64,
                      lane % 16, lane % 16 + 16, lane % 16 + 32, lane % 16 + 48};
  return from[blgp];
}

TEST(MatrixForms, BroadcastOfAAndPermutationOfB) {
  std::mt19937 random(3);
  for (const Form& f : all_forms()) {
    if (f.sparse || f.f8f6f4() || f.f64()) continue;
    const Problem problem(f, random);
    for (int cbsz = 0; 1 << cbsz <= f.blocks; ++cbsz) {
      for (int abid = 0; abid < 1 << cbsz; ++abid) {
        const int blgp = static_cast<int>(random() % 8), first = cbsz ? blgp : 0, last = cbsz ? blgp : 7;
        for (int p = first; p <= last; ++p) {
          const std::string text = text_of(f, fmt::format(" cbsz:{} abid:{} blgp:{}", cbsz, abid, p));
          Registers r = problem.r;
          Instruction(text).run(r);
          problem.check(
              r, kD,
              [&](int b, int i, int j) {
                return problem.expected(
                    b, i, j, [&](int l) { return lane_a(l, cbsz, abid); }, [&](int l) { return lane_b(l, p); }, 1, 1);
              },
              text);
        }
      }
    }
  }
}

TEST(MatrixForms, DoubleFormsNegateByBlgp) {
  std::mt19937 random(4);
  for (const Form& f : all_forms()) {
    if (!f.f64()) continue;
    const Problem problem(f, random);
    for (int neg = 0; neg < 8; ++neg) {
      const std::string text = text_of(f, fmt::format(" neg:[{},{},{}]", neg & 1, neg >> 1 & 1, neg >> 2));
      Registers r = problem.r;
      Instruction(text).run(r);
      const double ab = ((neg & 1) != 0) != ((neg & 2) != 0) ? -1 : 1, c = neg & 4 ? -1 : 1;
      problem.check(r, kD, [&](int b, int i, int j) { return problem.expected(b, i, j, same, same, ab, c); }, text);
    }
  }
}

// Guide 7.5: bits of index a lane needs by its items of A; CBSZ other than 0 takes the first set whatever ABID says.
TEST(MatrixForms, SparseIndexSets) {
  std::mt19937 random(5);
  for (const Form& f : all_forms()) {
    if (!f.sparse) continue;
    const Problem problem(f, random);
    const int width = 2 * f.items_a();
    for (int cbsz = 0; cbsz < 4; ++cbsz) {
      for (int abid = 0; abid < 4; ++abid) {
        const std::string text = text_of(f, fmt::format(" cbsz:{} abid:{}", cbsz, abid));
        Registers r = problem.r;
        Instruction(text).run(r);
        const int shift = cbsz ? 0 : width * abid % 32;
        problem.check(
            r, kD, [&](int b, int i, int j) { return problem.expected(b, i, j, same, same, 1, 1, shift); }, text);
      }
    }
  }
}

// An inline constant fills C: integers are bits, floats have the width of the result.
TEST(MatrixForms, InlineConstantsOfC) {
  struct Constant {
    const char* text;
    std::uint32_t bits32;
    std::uint64_t bits64;
  };
  const Constant constants[] = {{"0", 0, 0},
                                {"1", 1, 1},
                                {"64", 64, 64},
                                {"-16", 0xfffffff0, 0xfffffffffffffff0},
                                {"1.0", 0x3f800000, 0x3ff0000000000000},
                                {"-4.0", 0xc0800000, 0xc010000000000000},
                                {"0.5", 0x3f000000, 0x3fe0000000000000}};
  std::mt19937 random(6);
  for (const Form& f : all_forms()) {
    if (f.sparse || (f.f8f6f4() && f.a != f.b)) continue;
    for (const Constant& c : constants) {
      Registers zero(kRows);
      Instruction(text_of(f, "", c.text)).run(zero);
      for (int w = 0; w < f.words_d(); ++w) {
        std::uint32_t want = c.bits32;
        if (f.f64()) want = static_cast<std::uint32_t>(w % 2 ? c.bits64 >> 32 : c.bits64);
        // The bits of a negative integer are a NaN, which becomes the default one.
        if (!f.integer() && !f.f64() && want == 0xfffffff0) want = 0x7fc00000;
        if (f.f64() && c.bits64 == 0xfffffffffffffff0) want = w % 2 ? 0x7ff80000 : 0;
        for (const std::uint32_t lane : zero[at(kD + w)].lane) ASSERT_EQ(lane, want) << f.mnemonic << " " << c.text;
      }
    }
  }
}

TEST(MatrixForms, WhatTheHardwareDoesNotDefineIsRefused) {
  const auto refusal = [](const std::string& text) {
    const auto object = assemble_kernel(text, {.vgprs = 256});
    const auto device = make_device();
    const auto kernel = device->load(object, "k");
    return kernel ? std::string() : to_string(kernel.error());
  };
  const auto contains = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(refusal(text).find(part), std::string::npos) << text << ": " << refusal(text);
  };
  contains("v_mfma_f32_16x16x32_bf16 v[0:3], v[8:11], v[12:15], v[0:3] cbsz:1", "cbsz:1 of an instruction of 1 blocks");
  contains("v_mfma_f32_16x16x4_4b_f16 v[0:15], v[18:19], v[20:21], v[0:15] cbsz:3", "of 4 blocks");
  contains("v_mfma_f32_16x16x4_4b_f16 v[0:15], v[18:19], v[20:21], v[0:15] cbsz:1 abid:2", "abid:2 with cbsz:1");
  contains("v_mfma_f32_16x16x4_4b_f16 v[0:15], v[18:19], v[20:21], v[0:15] abid:1", "abid:1 with cbsz:0");
  contains("v_mfma_ld_scale_b32 v0, v1", "a scale load without the MFMA");
}

}  // namespace
}  // namespace zyfa::sim_test
