// Rows in registers: BF16 to f32, the Hadamard rotation, and reductions over lanes.
#include "schedules/quantise/parts.h"

namespace zyfa::schedules::quantising {
namespace {

using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr std::uint32_t kPiecePairs = 8;
constexpr std::int16_t kSwapNeighbours = 0xb1;  // quad_perm:[1,0,3,2]
constexpr std::int16_t kSwapHalves = 0x4e;      // quad_perm:[2,3,0,1]
constexpr std::int16_t kRor4 = 0x124, kRor8 = 0x128;

std::vector<Reg> expand(StageWriter& w, const Shape& shape, const Block& block) {
  std::vector<Reg> pairs;
  for (std::uint32_t p = 0; p < block.pieces * kPiecePairs; ++p) {
    const std::uint32_t dword = block.first_piece * kPiecePairs + p;
    const Reg raw = w.reg("raw", dword / 4).sub(static_cast<std::uint16_t>(dword % 4));
    const Reg pair = pairs.emplace_back(w.vtemp("x", 2));
    w.op(Op::kVLshlrevB32, {pair.sub(0), Imm{16}, raw}, p == 0 ? "bf16 to f32" : "");
    w.op(Op::kVAndB32, {pair.sub(1), w.reg("high_mask"), raw});
    if (shape.rotation == Rotation::kHadamard) {
      w.op(Op::kVPkMulF32, {pair, pair, w.reg("prescale")}, p == 0 ? "no sum overflows" : "");
    }
  }
  return pairs;
}

// (a, b) -> (a + b, a - b) for the two elements of each pair, then for pairs 1, 2, 4 (and 8) apart.
void butterflies_in_lane(StageWriter& w, std::vector<Reg>& pairs) {
  for (Reg& pair : pairs) {
    const Reg sum = w.vtemp("h", 2);
    w.op(Op::kVPkAddF32, {sum, pair, pair}, {}, {.op_sel = 0b10, .op_sel_hi = 0b10, .neg_hi = 0b10});
    pair = sum;
  }
  for (std::size_t apart = 1; apart < pairs.size(); apart *= 2) {
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      if ((p & apart) != 0) continue;
      Reg &a = pairs[p], &b = pairs[p + apart];
      const Reg sum = w.vtemp("h", 2);
      w.op(Op::kVPkAddF32, {sum, a, b});
      w.op(Op::kVPkAddF32, {b, a, b}, {}, {.neg = 0b10, .neg_hi = 0b10});
      a = sum;
    }
  }
}

// own + partner where the lane's bit is clear, own - partner where it is set: the negative of the butterfly's.
void butterflies_over_lanes(StageWriter& w, const std::vector<Reg>& pairs) {
  for (std::uint32_t bit = 0; bit < 2; ++bit) {
    for (const Reg& pair : pairs) {
      for (std::uint16_t r = 0; r < 2; ++r) {
        const Reg x = pair.sub(r);
        w.op(Op::kVFmacF32, {x, x, w.reg("sign", bit)}, {}, {.dpp = bit == 0 ? kSwapNeighbours : kSwapHalves});
      }
    }
  }
}

// Both halves of a permlane swap of two copies: each lane and its partner row, or lane half.
void reduce_swap(StageWriter& w, Op op, Op swap, Reg x) {
  const Reg other = w.vtemp("other");
  w.op(Op::kVMovB32, {other, x});
  w.op(swap, {x, other});
  w.op(op, {x, x, other});
}

}  // namespace

std::vector<Block> blocks_of(const Shape& shape) {
  if (shape.rotation == Rotation::kNone || shape.pieces() <= 2) return {{0, shape.pieces()}};
  return {{0, 2}, {2, 1}};
}

std::vector<Reg> block_values(StageWriter& w, const Shape& shape, const Block& block) {
  std::vector<Reg> pairs = expand(w, shape, block);
  if (shape.rotation == Rotation::kHadamard) {
    butterflies_in_lane(w, pairs);
    butterflies_over_lanes(w, pairs);
  }
  return pairs;
}

// Lanes 8 apart first: then 4 apart to the left is the same as to the right, and every row gets the same bits.
void reduce_rows(StageWriter& w, Op op, Reg x) {
  w.op(op, {x, x, x}, "over rows", {.dpp = kRor8});
  w.op(op, {x, x, x}, {}, {.dpp = kRor4});
  reduce_swap(w, op, Op::kVPermlane16Swap, x);
  reduce_swap(w, op, Op::kVPermlane32Swap, x);
}

void reduce_wave(StageWriter& w, Op op, Reg x) {
  w.op(op, {x, x, x}, "over the lanes of a row", {.dpp = kSwapNeighbours});
  w.op(op, {x, x, x}, {}, {.dpp = kSwapHalves});
  reduce_rows(w, op, x);
}

void poison_to_infinity(StageWriter& w, Reg x) {
  const Reg finite = w.stemp("finite", 2);
  const Reg infinity = w.vtemp("infinite");
  w.op(Op::kVMovB32, {infinity, w.reg("infinity")});
  w.op(Op::kVCmpLtF32, {finite, x, w.reg("infinity")});
  w.op(Op::kVCndmaskB32, {x, infinity, x, finite}, "NaN counts as infinite");
}

}  // namespace zyfa::schedules::quantising
