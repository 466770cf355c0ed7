// Random streams merged by matrix cycles, against a count of their own: nothing lost or torn, and every stream as far
// as the share of the matrix cycles that are over, to within one of its pieces.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <random>

#include "schedules/dsl/pace.h"
#include "tests/unit/schedules/instructions.h"

namespace zyfa::schedules {
namespace {

using jit::Imm;
using jit::Instruction;
using jit::Op;
using jit::vgpr;

// What must stay together, with its turns and passes by hand (gfx950-isa.md 1.5; a transcendental takes two turns).
struct Piece {
  std::vector<Instruction> code;
  int turns, passes;
};
using Pieces = std::vector<Piece>;

Piece draw(bool leads, std::mt19937& random) {
  const auto any = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  if (leads && any(2) == 0) {
    if (any(2) == 0) return {{bf16_product()}, 1, 8};
    return {{scaled_product()}, 1, 16};
  }
  switch (any(5)) {
    case 0:
      return {{make(Op::kVExpF32, {vgpr(0), vgpr(0)})}, 2, 0};
    case 1:
      return {{make(Op::kDsReadB128, {vgpr(0, 4), vgpr(9), Imm{0}})}, 1, 0};
    case 2: {  // a compare, the branch on it, and what it seldom skips to
      const jit::Label skip{static_cast<std::uint32_t>(random())};
      Piece piece{{make(Op::kSCmpGtI32, {jit::sgpr(0), Imm{0}}), make(Op::kSCbranchScc0, {skip})}, 2, 0};
      for (int i = any(9); i >= 0; --i) piece.code.push_back(move());
      piece.code.push_back(make(Op::kLabel, {skip}));
      return piece;
    }
    default:
      return {{move()}, 1, 0};
  }
}

// "2:17:1": stream, piece, instruction of it.
void name_all(Pieces& pieces, std::size_t stream) {
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    for (std::size_t i = 0; i < pieces[p].code.size(); ++i) {
      pieces[p].code[i].comment = std::to_string(stream) + ":" + std::to_string(p) + ":" + std::to_string(i);
    }
  }
}

class Checker {
 public:
  Checker(std::vector<Pieces> streams, std::vector<std::uint32_t> weights)
      : streams_(std::move(streams)), weights_(std::move(weights)), at_(streams_.size(), 0) {}

  void check() {
    std::vector<WeightedCode> codes;
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      name_all(streams_[s], s);
      codes.push_back({{}, weights_[s]});
      for (const Piece& piece : streams_[s]) {
        codes[s].code.insert(codes[s].code.end(), piece.code.begin(), piece.code.end());
      }
    }
    const std::vector<Instruction> merged = pace(std::move(codes));
    for (std::size_t i = 0; i < merged.size();) {
      const std::size_t stream = std::stoul(merged[i].comment);
      // The others have caught up with the last MFMA when the leader goes on.
      if (stream == 0) expect_on_time();
      ASSERT_LT(at_[stream], streams_[stream].size());
      for (const Instruction& expected : streams_[stream][at_[stream]].code) {
        ASSERT_LT(i, merged.size());
        ASSERT_EQ(merged[i++].comment, expected.comment);
      }
      ++at_[stream];
    }
    for (std::size_t s = 0; s < streams_.size(); ++s) EXPECT_EQ(at_[s], streams_[s].size()) << "lost of stream " << s;
  }

 private:
  void expect_on_time() const {
    const int passes = sum(0, &Piece::passes, streams_[0].size());
    if (passes == 0) return;
    const double over = static_cast<double>(sum(0, &Piece::passes, at_[0])) / passes;
    for (std::size_t s = 1; s < streams_.size(); ++s) {
      const int total = sum(s, &Piece::turns, streams_[s].size());
      const double due = std::min(1.0, over * weights_[s]) * total;
      EXPECT_NEAR(sum(s, &Piece::turns, at_[s]), due, 2.0) << "stream " << s << " after " << at_[0] << " of the leader";
    }
  }

  [[nodiscard]] int sum(std::size_t stream, int Piece::* what, std::size_t pieces) const {
    int result = 0;
    for (std::size_t p = 0; p < pieces; ++p) result += streams_[stream][p].*what;
    return result;
  }

  std::vector<Pieces> streams_;
  std::vector<std::uint32_t> weights_;
  std::vector<std::size_t> at_;  // pieces seen of each
};

TEST(PaceProperty, EveryStreamInOrderOnceAndOnTime) {
  std::mt19937 random(11);
  const auto any = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  for (int round = 0; round < 500; ++round) {
    std::vector<Pieces> streams(static_cast<std::size_t>(2 + any(3)));
    std::vector<std::uint32_t> weights;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      weights.push_back(static_cast<std::uint32_t>(1 + any(4)));
      for (int n = any(40); n > 0; --n) streams[s].push_back(draw(s == 0, random));
    }
    Checker(std::move(streams), std::move(weights)).check();
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace zyfa::schedules
