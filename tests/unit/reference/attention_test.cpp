// The reference itself: hand-computed values, invariances of softmax, and an independent long double evaluation.
#include "tests/reference/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>

namespace zyfa::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint16_t kNan = 0x7fc0, kMinusInfinity = 0xff80, kPlusInfinity = 0x7f80;

using Bits = std::vector<std::uint16_t>;

Bits bits(const std::vector<double>& values) {
  Bits result;
  for (const double value : values) {
    result.push_back(double_to_bf16(value));
  }
  return result;
}

Bits random_bits(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Bits result(count);
  std::generate(result.begin(), result.end(), [&] { return double_to_bf16(normal(random)); });
  return result;
}

struct Shape {
  std::int64_t batch = 1, sq = 1, sk = 1, heads = 1, key_heads = 1, dim = 1, dim_v = 1;
};

struct Inputs {
  Bits q, k, v;
  AttentionCase problem;
};

Inputs make_inputs(const Shape& s, Mask mask, double scale, unsigned seed) {
  Inputs in;
  in.q = random_bits(static_cast<std::size_t>(s.batch * s.sq * s.heads * s.dim), seed);
  in.k = random_bits(static_cast<std::size_t>(s.batch * s.sk * s.key_heads * s.dim), seed + 1);
  in.v = random_bits(static_cast<std::size_t>(s.batch * s.sk * s.key_heads * s.dim_v), seed + 2);
  in.problem = {dense_view(in.q.data(), s.batch, s.sq, s.heads, s.dim),
                dense_view(in.k.data(), s.batch, s.sk, s.key_heads, s.dim),
                dense_view(in.v.data(), s.batch, s.sk, s.key_heads, s.dim_v), mask, scale};
  return in;
}

AttentionResult run(const AttentionCase& problem, unsigned threads = 1) {
  Expected<AttentionResult> result = attention(problem, threads);
  EXPECT_TRUE(result.has_value()) << (result ? "" : to_string(result.error()));
  return result ? *std::move(result) : AttentionResult{};
}

// One head, head dim 1: q, k, v given as numbers.
AttentionResult run_scalar(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
                           Mask mask, double scale = 1.0) {
  const Bits qb = bits(q), kb = bits(k), vb = bits(v);
  const auto tokens = [](const Bits& b) { return static_cast<std::int64_t>(b.size()); };
  return run({dense_view(qb.data(), 1, tokens(qb), 1, 1), dense_view(kb.data(), 1, tokens(kb), 1, 1),
              dense_view(vb.data(), 1, tokens(vb), 1, 1), mask, scale});
}

// Straight from the definition, in long double, one output row at a time.
void check_against_definition(const AttentionCase& p, const AttentionResult& result) {
  const std::int64_t ratio = p.q.heads / p.k.heads;
  for (std::int64_t b = 0; b < p.q.batch; ++b) {
    for (std::int64_t h = 0; h < p.q.heads; ++h) {
      for (std::int64_t i = 0; i < p.q.tokens; ++i) {
        long double denominator = 0;
        std::vector<long double> o(static_cast<std::size_t>(p.v.dim), 0.0L);
        for (std::int64_t j = 0; j < p.k.tokens; ++j) {
          if (p.mask == Mask::kCausal && j > i + p.k.tokens - p.q.tokens) {
            continue;
          }
          long double dot = 0;
          for (std::int64_t d = 0; d < p.q.dim; ++d) {
            dot += static_cast<long double>(bf16_to_double(p.q.row(b, i, h)[d])) *
                   bf16_to_double(p.k.row(b, j, h / ratio)[d]);
          }
          const long double weight = std::exp(static_cast<long double>(p.softmax_scale) * dot);
          denominator += weight;
          for (std::int64_t d = 0; d < p.v.dim; ++d) {
            o[static_cast<std::size_t>(d)] += weight * bf16_to_double(p.v.row(b, j, h / ratio)[d]);
          }
        }
        if (denominator == 0) {
          ASSERT_EQ(result.lse_at(b, h, i), -kInfinity);
        } else {
          ASSERT_NEAR(result.lse_at(b, h, i), static_cast<double>(std::log(denominator)), 1e-12);
        }
        for (std::int64_t d = 0; d < p.v.dim; ++d) {
          const long double expected = denominator == 0 ? 0 : o[static_cast<std::size_t>(d)] / denominator;
          ASSERT_NEAR(result.o_row(b, i, h)[d], static_cast<double>(expected), 1e-12)
              << "b " << b << " h " << h << " i " << i << " d " << d;
        }
      }
    }
  }
}

TEST(Bf16, KnownPatterns) {
  EXPECT_EQ(bf16_to_double(0x3f80), 1.0);
  EXPECT_EQ(bf16_to_double(0xc000), -2.0);
  EXPECT_EQ(bf16_to_double(0x0001), std::ldexp(1.0, -133));
  EXPECT_EQ(bf16_to_double(0x7f7f), std::ldexp(255.0, 120));
  EXPECT_EQ(bf16_to_double(0x7f80), kInfinity);
  EXPECT_TRUE(std::isnan(bf16_to_double(0x7fc0)));
}

TEST(Bf16, EveryPatternRoundTrips) {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const double value = bf16_to_double(static_cast<std::uint16_t>(pattern));
    if (!std::isnan(value)) {
      ASSERT_EQ(double_to_bf16(value), pattern);
    }
  }
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(double_to_bf16(1.0 + std::ldexp(1.0, -8)), 0x3f80);                          // tie, down to even
  EXPECT_EQ(double_to_bf16(1.0 + 3 * std::ldexp(1.0, -8)), 0x3f82);                      // tie, up to even
  EXPECT_EQ(double_to_bf16(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -45)), 0x3f81);   // a float would see a tie
  EXPECT_EQ(double_to_bf16(-1.0 - std::ldexp(1.0, -8) - std::ldexp(1.0, -45)), 0xbf81);  // same, negative
  EXPECT_EQ(double_to_bf16(1.0 + 3 * std::ldexp(1.0, -8) - std::ldexp(1.0, -45)), 0x3f81);
  EXPECT_EQ(double_to_bf16(1e300), kPlusInfinity);
  EXPECT_EQ(double_to_bf16(-kInfinity), kMinusInfinity);
  EXPECT_TRUE(std::isnan(bf16_to_double(double_to_bf16(std::nan("")))));
}

TEST(Attention, OneKeyGivesItsValue) {
  const AttentionResult r = run_scalar({3.0}, {0.5}, {7.0}, Mask::kFull, 2.0);
  EXPECT_EQ(r.o[0], 7.0);
  EXPECT_EQ(r.lse[0], 3.0);  // 2 * 3 * 0.5
}

TEST(Attention, TwoByTwoByHand) {
  // Row 0: scores 0, 0 -> weights 1/2, 1/2. Row 1: scores 1, 3 -> weights 1/(1+e^2), e^2/(1+e^2).
  const AttentionResult r = run_scalar({0.0, 1.0}, {1.0, 3.0}, {8.0, -4.0}, Mask::kFull);
  EXPECT_DOUBLE_EQ(r.o[0], 2.0);
  EXPECT_DOUBLE_EQ(r.lse[0], 0.69314718055994530942);  // ln 2
  const double e2 = 7.38905609893065022723;
  EXPECT_DOUBLE_EQ(r.o[1], (8.0 - 4.0 * e2) / (1.0 + e2));
  EXPECT_DOUBLE_EQ(r.lse[1], 1.0 + std::log1p(e2));
}

TEST(Attention, WeightsAreExactRationalsAtScaleLn2) {
  // With scale ln 2 the weights are powers of two: 1, 2, 4, 8 of 15.
  const AttentionResult r =
      run_scalar({1.0}, {0.0, 1.0, 2.0, 3.0}, {15.0, 30.0, 45.0, 60.0}, Mask::kFull, 0.69314718055994530942);
  EXPECT_NEAR(r.o[0], 15.0 + 60.0 + 180.0 + 480.0 - 686.0, 1e-12);  // (1*15 + 2*30 + 4*45 + 8*60) / 15 = 49
  EXPECT_NEAR(r.lse[0], std::log(15.0), 1e-14);
}

TEST(Attention, CausalSquareSeesOwnAndEarlierKeys) {
  const AttentionResult r = run_scalar({0.0, 0.0, 0.0}, {1.0, 1.0, 1.0}, {6.0, 12.0, 30.0}, Mask::kCausal);
  EXPECT_THAT(r.o, testing::ElementsAre(testing::DoubleEq(6.0), testing::DoubleEq(9.0), testing::DoubleEq(16.0)));
  EXPECT_DOUBLE_EQ(r.lse[2], std::log(3.0));
}

TEST(Attention, CausalIsAlignedBottomRight) {
  // Sq 2, Sk 4: row 0 sees keys 0..2, row 1 all four.
  AttentionResult r = run_scalar({0.0, 0.0}, {0.0, 0.0, 0.0, 0.0}, {3.0, 6.0, 9.0, 2.0}, Mask::kCausal);
  EXPECT_DOUBLE_EQ(r.o[0], 6.0);
  EXPECT_DOUBLE_EQ(r.o[1], 5.0);
  // Sq 4, Sk 2: rows 0 and 1 see nothing, row 2 key 0, row 3 both.
  r = run_scalar({5.0, 5.0, 0.0, 0.0}, {1.0, 1.0}, {8.0, 4.0}, Mask::kCausal);
  EXPECT_THAT(r.o, testing::ElementsAre(0.0, 0.0, 8.0, 6.0));
  EXPECT_THAT(r.lse, testing::ElementsAre(-kInfinity, -kInfinity, 0.0, testing::DoubleEq(std::log(2.0))));
}

TEST(Attention, VisibleKeysByDefinition) {
  for (std::int64_t sq = 0; sq < 6; ++sq) {
    for (std::int64_t sk = 0; sk < 6; ++sk) {
      for (std::int64_t i = 0; i < sq; ++i) {
        const KeyInterval full = visible_keys(Mask::kFull, i, sq, sk), seen = visible_keys(Mask::kCausal, i, sq, sk);
        EXPECT_EQ(full.begin, 0);
        EXPECT_EQ(full.end, sk);
        for (std::int64_t j = 0; j < sk; ++j) {
          EXPECT_EQ(j >= seen.begin && j < seen.end, j <= i + sk - sq) << i << " " << j << " " << sq << " " << sk;
        }
      }
    }
  }
}

TEST(Attention, NoKeysGiveZeroAndMinusInfinity) {
  const AttentionResult r = run_scalar({1.0, 2.0}, {}, {}, Mask::kFull);
  EXPECT_THAT(r.o, testing::ElementsAre(0.0, 0.0));
  EXPECT_THAT(r.lse, testing::ElementsAre(-kInfinity, -kInfinity));
}

TEST(Attention, NoQueriesGiveNothing) {
  const AttentionResult r = run_scalar({}, {1.0}, {1.0}, Mask::kCausal);
  EXPECT_TRUE(r.o.empty());
  EXPECT_TRUE(r.lse.empty());
}

class AgainstDefinition : public testing::TestWithParam<std::tuple<Shape, Mask>> {};

TEST_P(AgainstDefinition, Agrees) {
  const auto& [shape, mask] = GetParam();
  const Inputs in = make_inputs(shape, mask, 0.3, 11);
  check_against_definition(in.problem, run(in.problem));
}

// Edges of the 32-row, 64-key and 16-column blocks, every GQA ratio kind, batches, head dims that differ.
INSTANTIATE_TEST_SUITE_P(Shapes, AgainstDefinition,
                         testing::Combine(testing::Values(Shape{1, 1, 1, 1, 1, 1, 1}, Shape{2, 33, 65, 6, 2, 5, 3},
                                                          Shape{1, 32, 64, 4, 4, 16, 16},
                                                          Shape{1, 31, 63, 3, 1, 17, 15},
                                                          Shape{1, 100, 40, 2, 1, 8, 33}, Shape{3, 7, 200, 10, 2, 4, 1},
                                                          Shape{1, 65, 129, 5, 1, 24, 20}),
                                          testing::Values(Mask::kFull, Mask::kCausal)));

TEST(Attention, HeadsReadTheirOwnKeyHead) {
  // Key head g holds value 10 * g; six query heads over three key heads read 0,0,10,10,20,20.
  const Bits q(6, double_to_bf16(1.0)), k(3, double_to_bf16(1.0));
  const Bits v = bits({0.0, 10.0, 20.0});
  const AttentionResult r = run({dense_view(q.data(), 1, 1, 6, 1), dense_view(k.data(), 1, 1, 3, 1),
                                 dense_view(v.data(), 1, 1, 3, 1), Mask::kFull, 1.0});
  EXPECT_THAT(r.o, testing::ElementsAre(0.0, 0.0, 10.0, 10.0, 20.0, 20.0));
}

TEST(Attention, PermutingKeysChangesNothing) {
  const Shape shape{1, 9, 150, 1, 1, 8, 4};
  Inputs in = make_inputs(shape, Mask::kFull, 0.5, 3);
  const AttentionResult before = run(in.problem);
  std::vector<std::size_t> order(150);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  Bits k(in.k.size()), v(in.v.size());
  for (std::size_t j = 0; j < order.size(); ++j) {
    std::copy_n(in.k.begin() + static_cast<std::ptrdiff_t>(order[j] * 8), 8,
                k.begin() + static_cast<std::ptrdiff_t>(j * 8));
    std::copy_n(in.v.begin() + static_cast<std::ptrdiff_t>(order[j] * 4), 4,
                v.begin() + static_cast<std::ptrdiff_t>(j * 4));
  }
  in.problem.k.data = k.data();
  in.problem.v.data = v.data();
  const AttentionResult after = run(in.problem);
  EXPECT_THAT(after.o, testing::Pointwise(testing::DoubleNear(1e-13), before.o));
  EXPECT_THAT(after.lse, testing::Pointwise(testing::DoubleNear(1e-13), before.lse));
}

TEST(Attention, AddingAConstantToAllScoresMovesOnlyLse) {
  // A last head-dim column of ones in q and of 96 in k adds 96 * scale to every score.
  const Shape shape{1, 5, 70, 1, 1, 4, 3};
  Inputs in = make_inputs(shape, Mask::kCausal, 1.0, 21);
  const auto set_column = [](Bits& tensor, double value) {
    for (std::size_t at = 3; at < tensor.size(); at += 4) {
      tensor[at] = double_to_bf16(value);
    }
  };
  set_column(in.q, 1.0);
  set_column(in.k, 0.0);
  const AttentionResult before = run(in.problem);
  set_column(in.k, 96.0);
  const AttentionResult after = run(in.problem);
  EXPECT_THAT(after.o, testing::Pointwise(testing::DoubleNear(1e-12), before.o));
  for (std::size_t i = 0; i < after.lse.size(); ++i) {
    EXPECT_NEAR(after.lse[i] - before.lse[i], 96.0, 1e-11);
  }
}

TEST(Attention, HugeScoresDoNotOverflow) {
  const AttentionResult r = run_scalar({1000.0}, {1000.0, 1008.0, -1000.0}, {1.0, 2.0, 3.0}, Mask::kFull);
  EXPECT_EQ(r.o[0], 2.0);  // e^-8000 is zero
  EXPECT_EQ(r.lse[0], 1008000.0);
}

TEST(Attention, StridedViewsReadOnlyTheirOwnElements) {
  const Shape shape{2, 33, 70, 4, 2, 8, 8};
  const Inputs dense = make_inputs(shape, Mask::kCausal, 0.4, 31);
  // The same tensors as [B, H, S, D + 3] with NaN in every gap.
  const auto spread = [](const Bf16View& from, Bits& storage) {
    const std::int64_t token = from.dim + 3, head = token * from.tokens + 5, batch = head * from.heads + 7;
    storage.assign(static_cast<std::size_t>(batch * from.batch), kNan);
    Bf16View to{storage.data(), from.batch, from.tokens, from.heads, from.dim, batch, token, head};
    for (std::int64_t b = 0; b < from.batch; ++b) {
      for (std::int64_t t = 0; t < from.tokens; ++t) {
        for (std::int64_t h = 0; h < from.heads; ++h) {
          std::copy_n(from.row(b, t, h), from.dim, storage.data() + (to.row(b, t, h) - to.data));
        }
      }
    }
    return to;
  };
  Bits q, k, v;
  const AttentionCase strided{spread(dense.problem.q, q), spread(dense.problem.k, k), spread(dense.problem.v, v),
                              Mask::kCausal, 0.4};
  const AttentionResult a = run(dense.problem), b = run(strided);
  EXPECT_EQ(a.o, b.o);
  EXPECT_EQ(a.lse, b.lse);
}

TEST(Attention, KeysNobodySeesMayBeNan) {
  // Sq 1 of a causal problem whose later keys exist only for later rows: rows see 1, 2, 3 keys; key 2 is NaN.
  const Bits q = bits({1.0, 1.0, 1.0}), k = {double_to_bf16(1.0), double_to_bf16(1.0), kNan};
  const Bits v = {double_to_bf16(2.0), double_to_bf16(4.0), kNan};
  const AttentionResult r = run({dense_view(q.data(), 1, 3, 1, 1), dense_view(k.data(), 1, 3, 1, 1),
                                 dense_view(v.data(), 1, 3, 1, 1), Mask::kCausal, 1.0});
  EXPECT_EQ(r.o[0], 2.0);
  EXPECT_EQ(r.o[1], 3.0);
  EXPECT_TRUE(std::isnan(r.o[2]));
  EXPECT_TRUE(std::isnan(r.lse[2]));
}

TEST(Attention, NanReachesExactlyTheRowsThatSeeIt) {
  Inputs in = make_inputs({1, 40, 100, 1, 1, 4, 2}, Mask::kCausal, 1.0, 77);
  in.k[70 * 4] = kNan;  // seen by rows i with 70 <= i + 60
  const AttentionResult r = run(in.problem);
  for (std::int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(std::isnan(r.lse_at(0, 0, i)), i >= 10) << i;
    EXPECT_EQ(std::isnan(r.o_row(0, i, 0)[1]), i >= 10) << i;
  }
}

TEST(Attention, SameBitsForEveryThreadCount) {
  const Inputs in = make_inputs({2, 300, 210, 4, 2, 16, 24}, Mask::kCausal, 0.25, 8);
  const AttentionResult one = run(in.problem, 1);
  for (const unsigned threads : {0U, 2U, 5U}) {
    const AttentionResult many = run(in.problem, threads);
    EXPECT_EQ(one.o, many.o);
    EXPECT_EQ(one.lse, many.lse);
  }
}

TEST(Attention, ShapesThatDoNotFitAreRefused) {
  const Bits data(64, 0);
  const auto view = [&](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) {
    return dense_view(data.data(), b, s, h, d);
  };
  const auto message = [](const AttentionCase& problem) {
    const Expected<AttentionResult> result = attention(problem);
    EXPECT_FALSE(result.has_value());
    return result ? std::string() : result.error().message;
  };
  EXPECT_THAT(message({view(1, 2, 3, 4), view(1, 2, 2, 4), view(1, 2, 2, 4), Mask::kFull, 1.0}),
              testing::HasSubstr("query heads 3 are not a multiple of key heads 2"));
  EXPECT_THAT(message({view(1, 2, 2, 4), view(1, 2, 2, 8), view(1, 2, 2, 4), Mask::kFull, 1.0}),
              testing::HasSubstr("q [1, 2, 2, 4], k [1, 2, 2, 8]"));
  EXPECT_THAT(message({view(1, 2, 2, 4), view(1, 2, 2, 4), view(1, 3, 2, 4), Mask::kFull, 1.0}),
              testing::HasSubstr("do not fit"));
  EXPECT_THAT(message({view(1, -2, 2, 4), view(1, 2, 2, 4), view(1, 2, 2, 4), Mask::kFull, 1.0}),
              testing::HasSubstr("negative extent"));
  EXPECT_THAT(message({dense_view(nullptr, 1, 2, 2, 4), view(1, 2, 2, 4), view(1, 2, 2, 4), Mask::kFull, 1.0}),
              testing::HasSubstr("null data"));
}

// A default stack larger than any address space: no thread starts, and the calling one does it all.
TEST(Threads, NoneToBeHadIsNoTrouble) {
  const Inputs in = make_inputs({1, 100, 40, 3, 1, 16, 16}, Mask::kFull, 0.25, 5);
  const AttentionResult usual = run(in.problem);
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_init(&huge);
  pthread_attr_setstacksize(&huge, std::size_t{1} << 52);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  const AttentionResult alone = run(in.problem, 8);
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&before);
  EXPECT_EQ(alone.o, usual.o);
  EXPECT_EQ(alone.lse, usual.lse);
}

}  // namespace
}  // namespace zyfa::reference
