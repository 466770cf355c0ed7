// Statistics: what the scale needs, in one read of the tensor.
#include <array>
#include <cstddef>

#include "schedules/attention/kernel_setup.h"
#include "schedules/quantise/parts.h"
#include "schedules/quantise/quantise.h"
#include "schedules/select/quantise_args.h"

namespace zyfa::schedules {
namespace quantising {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kPartials = static_cast<std::int32_t>(offsetof(QuantiseArgs, partials));
// Added to the bits of |bf16| as f32: those of infinities and NaN become negative integers.
constexpr std::int32_t kPastFinite = 0x00800000;
constexpr std::uint32_t kGroup = 4;  // hides the wait states between a compare and its select (gfx950-isa.md 4.3)

// In which form the largest magnitude is kept.
enum class Maximum : std::uint8_t {
  kFloat,    // rotated rows: finite or not as a whole
  kInteger,  // plain rows: elements that are not finite are told by their bits
  kSticky,   // int8: NaN stays
};

Maximum maximum_of(const Shape& shape) {
  if (shape.element == ElementType::kInt8) return Maximum::kSticky;
  return shape.rotation == Rotation::kHadamard ? Maximum::kFloat : Maximum::kInteger;
}

void magnitude_float(StageWriter& w, Reg acc, const std::vector<Reg>& pairs) {
  const Reg most = w.vtemp("most");
  const Reg finite = w.stemp("finite", 2);
  w.op(Op::kVMaxF32, {most, pairs[0].sub(0), pairs[0].sub(1)}, "largest |x| of the lane's part of the row",
       {.abs = 0b11});
  for (std::size_t p = 1; p < pairs.size(); ++p) {
    w.op(Op::kVMax3F32, {most, most, pairs[p].sub(0), pairs[p].sub(1)}, {}, {.abs = 0b110});
  }
  // One value that is not finite leaves none that is in its rotated row.
  w.op(Op::kVCmpLtF32, {finite, most, w.reg("infinity")});
  w.op(Op::kVCndmaskB32, {most, Imm{0}, most, finite}, "rows that are not finite do not count");
  w.op(Op::kVMaxF32, {acc, acc, most});
}

void magnitude_sticky(StageWriter& w, Reg acc, const std::vector<Reg>& pairs) {
  for (const Reg& pair : pairs) {
    w.op(Op::kVMaximum3F32, {acc, acc, pair.sub(0), pair.sub(1)}, "|x|, NaN stays", {.abs = 0b110});
  }
}

// Straight from the bf16 pairs. The low half that stays in the integer of the high element orders nothing wrongly and
// is cut off at the end.
void magnitude_integer(StageWriter& w, const Shape& shape) {
  const Reg acc = w.reg("acc");
  for (std::uint32_t t = 0; t < shape.pieces() * kPieceTuples; ++t) {
    for (std::uint16_t r = 0; r < 4; ++r) {
      const Reg both = w.vtemp("both");
      const Reg low = w.vtemp("low");
      w.op(Op::kVAndB32, {both, w.reg("magnitude_mask"), w.reg("raw", t).sub(r)}, "|x| of a pair");
      w.op(Op::kVLshlrevB32, {low, Imm{16}, both});
      w.op(Op::kVAddU32, {low, w.reg("past_finite"), low});
      w.op(Op::kVAddU32, {both, w.reg("past_finite"), both});
      w.op(Op::kVMaxI32, {acc, acc, low}, "infinity and NaN are negative");
      w.op(Op::kVMaxI32, {acc, acc, both});
    }
  }
}

void reduce_magnitude(StageWriter& w, const Shape& shape) {
  const Maximum maximum = maximum_of(shape);
  if (maximum == Maximum::kInteger) return magnitude_integer(w, shape);
  std::uint32_t at = 0;
  for (const Block& block : blocks_of(shape)) {
    const std::vector<Reg> pairs = block_values(w, shape, block);
    const Reg acc = w.reg("acc", at++);
    maximum == Maximum::kFloat ? magnitude_float(w, acc, pairs) : magnitude_sticky(w, acc, pairs);
  }
}

// The dwords of rows that do not exist become pairs of NaN, which no statistic counts.
void hide_missing_rows(StageWriter& w, const Shape& shape, Reg exists) {
  const Reg hidden = w.vtemp("hidden");
  w.op(Op::kVCndmaskB32, {hidden, w.reg("pair_of_nan"), Imm{0}, exists});
  for (std::uint32_t t = 0; t < shape.pieces() * kPieceTuples; ++t) {
    for (std::uint16_t r = 0; r < 4; ++r) {
      const Reg raw = w.reg("raw", t).sub(r);
      w.op(Op::kVOrB32, {raw, hidden, raw}, t + r == 0 ? "rows past the end: NaN" : "");
    }
  }
}

// Sum, minimum and maximum of four elements; those without their flag count as 0 in the sum and not in the others.
void accumulate(StageWriter& w, Reg x, Reg sum, Reg low, Reg high, const std::array<Reg, kGroup>& counts) {
  const Reg terms = w.vtemp("terms", kGroup);
  for (std::uint16_t r = 0; r < kGroup; ++r) {
    w.op(Op::kVCndmaskB32, {terms.sub(r), Imm{0}, x.sub(r), counts[r]});
    w.op(Op::kVCndmaskB32, {x.sub(r), w.reg("nan"), x.sub(r), counts[r]});
  }
  for (std::uint16_t r = 0; r < kGroup; r += 2) {
    w.op(Op::kVPkAddF32, {sum.sub(r, 2), sum.sub(r, 2), terms.sub(r, 2)});
  }
  for (std::uint16_t r = 0; r < kGroup; ++r) {
    w.op(Op::kVMinF32, {low.sub(r), low.sub(r), x.sub(r)}, "v_min and v_max pass over NaN");
    w.op(Op::kVMaxF32, {high.sub(r), high.sub(r), x.sub(r)});
  }
}

void reduce_moments(StageWriter& w, const Shape& shape) {
  const Reg exists = w.stemp("exists", 2);
  w.op(Op::kVCmpGtI32, {exists, w.reg("left"), w.reg("row")}, "row exists?");
  w.op(Op::kSSubI32, {w.reg("left"), w.reg("left"), Imm{static_cast<std::int32_t>(kQuantiseBlockTokens)}});
  const bool keeps_nan = shape.element == ElementType::kInt8;
  if (!keeps_nan) hide_missing_rows(w, shape, exists);
  for (const Block& block : blocks_of(shape)) {
    const std::vector<Reg> pairs = block_values(w, shape, block);
    for (std::size_t p = 0; p < pairs.size(); p += 2) {
      const std::uint32_t at = block.first_piece * kPieceDims / 4 / 4 + static_cast<std::uint32_t>(p / 2);
      const Reg x = w.vtemp("four", kGroup);
      std::array<Reg, kGroup> counts;
      for (std::uint16_t r = 0; r < kGroup; ++r) {
        const Reg from = pairs[p + r / 2].sub(r % 2);
        counts[r] = exists;
        if (!keeps_nan) {
          counts[r] = w.stemp("finite", 2);
          w.op(Op::kVCmpLtF32, {counts[r], from, w.reg("infinity")}, {}, {.abs = 0b01});
        }
        w.op(Op::kVMovB32, {x.sub(r), from});
      }
      accumulate(w, x, w.reg("sum", at), w.reg("low", at), w.reg("high", at), counts);
    }
  }
}

std::uint32_t accumulators(const Shape& shape) {
  return shape.rotation == Rotation::kHadamard ? static_cast<std::uint32_t>(blocks_of(shape).size()) : 1;
}

void setup(StageWriter& w, const Shape& shape) {
  common_setup(w, shape);
  if (shape.smoothing == Smoothing::kNone) {
    const bool integer = maximum_of(shape) == Maximum::kInteger;
    if (integer) {
      w.op(Op::kSMovB32, {w.reg("magnitude_mask"), Imm{0x7fff7fff}});
      w.op(Op::kSMovB32, {w.reg("past_finite"), Imm{kPastFinite}});
    }
    for (std::uint32_t a = 0; a < accumulators(shape); ++a) {
      w.op(Op::kVMovB32, {w.reg("acc", a), Imm{integer ? kPastFinite : 0}});
    }
    return;
  }
  w.op(Op::kSMovB32, {w.reg("left"), w.reg("group_tokens")});
  w.op(Op::kVMovB32, {w.reg("nan"), Imm{kNan}});
  if (shape.element != ElementType::kInt8) w.op(Op::kVMovB32, {w.reg("pair_of_nan"), Imm{0x7fff7fff}});
  for (std::uint32_t t = 0; t < 4 * shape.pieces(); ++t) {
    for (std::uint16_t r = 0; r < 4; ++r) {
      w.op(Op::kVMovB32, {w.reg("sum", t).sub(r), Imm{0}});
      w.op(Op::kVMovB32, {w.reg("low", t).sub(r), w.reg("infinity")});
      w.op(Op::kVMovB32, {w.reg("high", t).sub(r), Imm{static_cast<std::int32_t>(0xff800000)}});
    }
  }
}

Reg partial_descriptor(StageWriter& w, std::uint32_t bytes) {
  const Reg address = w.stemp("partial_address", 2);
  const Reg strides = w.stemp("partial_strides", 4);
  const Reg own = w.stemp("own", 2);
  w.op(Op::kSLoadDwordx2, {address, w.reg("kernarg"), Imm{kPartials}}, "partials");
  w.op(Op::kSLoadDwordx4, {strides, w.reg("kernarg"), Imm{kPartials + 8}}, "head and batch stride");
  w.op(Op::kSMovB32, {own.sub(0), Imm{static_cast<std::int32_t>(bytes)}});
  w.op(Op::kSMovB32, {own.sub(1), Imm{0}});
  forward::add_scaled(w, address, w.reg("group"), own, "group");
  return key_head_descriptor(w, "partial", address, {strides.sub(0, 2), strides.sub(2, 2)},
                             Imm{static_cast<std::int32_t>(bytes)});
}

void finish_magnitude(StageWriter& w, const Shape& shape) {
  const Reg acc = w.reg("acc");
  if (maximum_of(shape) == Maximum::kInteger) {
    w.op(Op::kVSubrevU32, {acc, w.reg("past_finite"), acc});
    w.op(Op::kVAndB32, {acc, w.reg("high_mask"), acc}, "the largest |x| as f32");
  }
  if (accumulators(shape) == 2) {
    const Reg other = w.reg("acc", 1);
    w.op(Op::kVMulF32, {other, FloatImm{kUnitRatio}, other}, "H64's values in H128's unit");
    if (maximum_of(shape) == Maximum::kSticky) poison_to_infinity(w, other);
    if (maximum_of(shape) == Maximum::kSticky) poison_to_infinity(w, acc);
    w.op(Op::kVMaxF32, {acc, acc, other});
  } else if (maximum_of(shape) == Maximum::kSticky) {
    poison_to_infinity(w, acc);
  }
  reduce_wave(w, Op::kVMaxF32, acc);
  const Reg desc = partial_descriptor(w, 4);
  const Reg offset = w.vtemp("partial_offset");
  w.op(Op::kVLshlrevB32, {offset, Imm{2}, w.reg("lane")}, "lane 0; the others are out of range");
  w.op(Op::kBufferStoreDword, {acc, offset, desc, Imm{0}}, "partial maximum", {.offen = true});
}

void finish_moments(StageWriter& w, const Shape& shape) {
  const Reg desc = partial_descriptor(w, partial_bytes(shape.smoothing, shape.dims));
  const Reg offset = w.vtemp("partial_offset");
  const Reg away = w.vtemp("away");
  w.op(Op::kVLshlrevB32, {offset, Imm{6}, w.reg("lane_in_row")}, "16 floats a lane and piece");
  w.op(Op::kVLshlrevB32, {away, Imm{26}, w.reg("row")});
  w.op(Op::kVOrB32, {offset, offset, away}, "row 0; the others are out of range");
  const auto store = [&](const char* tile, Op op, std::uint32_t array) {
    for (std::uint32_t t = 0; t < 4 * shape.pieces(); ++t) {
      const Reg four = w.reg(tile, t);
      for (std::uint16_t r = 0; r < 4; ++r) reduce_rows(w, op, four.sub(r));
      const std::uint32_t at = 4 * (array * shape.dims + kPieceDims * (t / 4) + 4 * (t % 4));
      w.op(Op::kBufferStoreDwordx4, {four, offset, desc, Imm{0}}, tile,
           {.offset = static_cast<std::int32_t>(at), .offen = true});
    }
  };
  store("sum", Op::kVAddF32, 0);
  store("low", Op::kVMinF32, 1);
  store("high", Op::kVMaxF32, 2);
}

std::vector<Tile> make_tiles(const Shape& shape) {
  using enum TileLife;
  std::vector<Tile> tiles;
  add_common_tiles(shape, tiles);
  if (shape.smoothing == Smoothing::kNone) {
    tiles.push_back(vector_tile("acc", kState, 1, accumulators(shape)));
    tiles.push_back(scalar_tile("magnitude_mask", kConstant, 1));
    tiles.push_back(scalar_tile("past_finite", kConstant, 1));
    return tiles;
  }
  tiles.push_back(scalar_tile("left", kState, 1));
  tiles.push_back(vector_tile("nan", kConstant, 1));
  tiles.push_back(vector_tile("pair_of_nan", kConstant, 1));
  for (const char* name : {"sum", "low", "high"}) tiles.push_back(vector_tile(name, kState, 4, 4 * shape.pieces()));
  return tiles;
}

Stage reduce_stage(const Shape& shape) {
  using enum AccessKind;
  if (shape.smoothing == Smoothing::kNone) {
    return {"reduce", {{"raw", kRead}, {"acc", kUpdate}}, Speculation::kNever, [shape](StageWriter& w) {
              reduce_magnitude(w, shape);
            }};
  }
  return {"reduce",
          {{"raw", kUpdate}, {"left", kUpdate}, {"sum", kUpdate}, {"low", kUpdate}, {"high", kUpdate}},
          Speculation::kNever,
          [shape](StageWriter& w) { reduce_moments(w, shape); }};
}

}  // namespace
}  // namespace quantising

Expected<Algorithm> quantise_statistics(const KernelSpec& spec) {
  using namespace quantising;
  Expected<Shape> shape = shape_of(spec);
  if (!shape) return tl::unexpected(shape.error());
  Algorithm algorithm;
  algorithm.name = "quantise_statistics";
  algorithm.tiles = make_tiles(*shape);
  algorithm.stages = {load_stage(*shape), reduce_stage(*shape)};
  algorithm.legal_waves = {1};
  algorithm.setup = [shape = *shape](StageWriter& w) {
    setup(w, shape);
    return SetupRest{};
  };
  algorithm.finish = [shape = *shape](StageWriter& w) {
    shape.smoothing == Smoothing::kNone ? finish_magnitude(w, shape) : finish_moments(w, shape);
    w.op(Op::kSEndpgm, {});
  };
  return algorithm;
}

}  // namespace zyfa::schedules
