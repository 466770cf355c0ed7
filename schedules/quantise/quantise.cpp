// Rows to codes: rotate, subtract the mean, multiply, convert, store; and what a specification may ask for.
//
// e4m3: v_cvt_pk_fp8_f32 with FP16_OVFL off turns infinities and NaN into the NaN code, as wanted, and what rounds
// above 448 too (gfx950-isa.md section 2). No finite value does: the scale is that of the largest magnitude, so a
// product is at most 448 and some units in the last place, and up to 464 rounds to 448.
#include <array>
#include <cstddef>

#include "schedules/quantise/quantise.h"

#include "schedules/quantise/scale.h"
#include "schedules/select/quantise_args.h"
#include "schedules/select/select.h"

namespace zyfa::schedules {
namespace quantising {
namespace {

using jit::FloatImm;
using jit::Imm;
using jit::Op;
using jit::Reg;

constexpr auto kCodes = static_cast<std::int32_t>(offsetof(QuantiseArgs, codes));
constexpr float kRoundToByte = 12582912.0F;  // 1.5 * 2^23: the low byte of the sum is the rounded value

// Four e4m3 codes of two pairs.
void pack_fp8(StageWriter& w, Reg code, Reg a, Reg b) {
  w.op(Op::kVMovB32, {code, Imm{0}});
  w.op(Op::kVCvtPkFp8F32, {code, a.sub(0), a.sub(1)});
  w.op(Op::kVCvtPkFp8F32, {code, b.sub(0), b.sub(1)}, {}, {.op_sel = 8});
}

// Four low bytes of two pairs (v_perm_b32 picks bytes 0 to 3 of its second source, 4 to 7 of its first, 12: zero).
void pack_bytes(StageWriter& w, Reg code, Reg a, Reg b) {
  const Reg high = w.vtemp("high");
  w.op(Op::kVPermB32, {code, a.sub(1), a.sub(0), w.reg("low_bytes")});
  w.op(Op::kVPermB32, {high, b.sub(1), b.sub(0), w.reg("high_bytes")});
  w.op(Op::kVOrB32, {code, code, high});
}

void convert(StageWriter& w, const Shape& shape) {
  set_span(w, "out", shape.dims);
  const std::vector<Block> blocks = blocks_of(shape);
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    const std::vector<Reg> pairs = block_values(w, shape, blocks[b]);
    for (std::uint32_t p = 0; p < pairs.size(); ++p) {
      const Reg& x = pairs[p];
      if (shape.smoothing == Smoothing::kMean) {
        const std::uint32_t at = 8 * blocks[b].first_piece + p;
        const Reg mean = w.reg("mean", at / 2).sub(static_cast<std::uint16_t>(2 * (at % 2)), 2);
        w.op(Op::kVPkAddF32, {x, x, mean}, "- mean", {.neg = 0b10, .neg_hi = 0b10});
      }
      if (shape.element == ElementType::kInt8) {
        w.op(Op::kVPkFmaF32, {x, x, w.reg("factor", b), w.reg("round")}, "value / scale, rounded to an integer");
      } else {
        w.op(Op::kVPkMulF32, {x, x, w.reg("factor", b)}, "value / scale");
      }
    }
    for (std::uint32_t piece = 0; piece < blocks[b].pieces; ++piece) {
      const Reg codes = w.vtemp("codes", 4);
      for (std::uint16_t r = 0; r < 4; ++r) {
        const Reg &low = pairs[8 * piece + 2 * r], &high = pairs[8 * piece + 2 * r + 1];
        shape.element == ElementType::kInt8 ? pack_bytes(w, codes.sub(r), low, high)
                                            : pack_fp8(w, codes.sub(r), low, high);
      }
      w.op(Op::kBufferStoreDwordx4, {codes, w.reg("out_offset"), w.reg("out_desc"), Imm{0}},
           "codes, rows past the end are dropped",
           {.offset = static_cast<std::int32_t>(kPieceDims * (blocks[b].first_piece + piece)), .offen = true});
    }
  }
  step(w, "out");
}

void setup(StageWriter& w, const Shape& shape) {
  common_setup(w, shape);
  start_walk(w, "out", kCodes, 16);
  find_scale(w, shape);
  if (shape.element == ElementType::kInt8) {
    w.op(Op::kSMovB32, {w.reg("low_bytes"), Imm{0x0c0c0400}});
    w.op(Op::kSMovB32, {w.reg("high_bytes"), Imm{0x04000c0c}});
    for (std::uint16_t r = 0; r < 2; ++r) w.op(Op::kVMovB32, {w.reg("round").sub(r), FloatImm{kRoundToByte}});
  }
}

std::vector<Tile> make_tiles(const Shape& shape) {
  using enum TileLife;
  std::vector<Tile> tiles;
  add_common_tiles(shape, tiles);
  add_walk_tiles("out", tiles);
  tiles.push_back(vector_tile("factor", kConstant, 2, static_cast<std::uint32_t>(blocks_of(shape).size())));
  if (shape.smoothing == Smoothing::kMean) tiles.push_back(vector_tile("mean", kConstant, 4, 4 * shape.pieces()));
  if (shape.element == ElementType::kInt8) {
    tiles.push_back(scalar_tile("low_bytes", kConstant, 1));
    tiles.push_back(scalar_tile("high_bytes", kConstant, 1));
    tiles.push_back(vector_tile("round", kConstant, 2));
  }
  return tiles;
}

Stage convert_stage(const Shape& shape) {
  std::vector<Access> accesses = walk_accesses("out");
  accesses.push_back({"raw", AccessKind::kRead});
  return {"convert", std::move(accesses), Speculation::kNever, [shape](StageWriter& w) { convert(w, shape); }};
}

// Fields that belong to attention alone, at their defaults.
bool is_plain(const KernelSpec& spec) {
  KernelSpec plain;
  plain.family = spec.family;
  plain.element = spec.element;
  plain.head_dim_qk = spec.head_dim_qk;
  plain.operand = spec.operand;
  plain.rotation = spec.rotation;
  plain.smoothing = spec.smoothing;
  plain.scales = spec.scales;
  plain.feeds = spec.feeds;
  plain.placement = spec.placement;
  return plain == spec;
}

std::string refusal(const KernelSpec& spec) {
  const bool value = spec.operand == Operand::kValue;
  if (!is_plain(spec)) return "sets fields of attention kernels";
  if (spec.element != ElementType::kFp8E4M3 && spec.element != ElementType::kInt8) {
    return "writes " + std::string(name_of(spec.element)) + "; codes are fp8e4m3 or int8";
  }
  if (spec.head_dim_qk != 128 && (value || spec.head_dim_qk != 192)) {
    return "has head dim " + std::to_string(spec.head_dim_qk) + "; q and k take 128 and 192, v 128";
  }
  if (value && (spec.element != ElementType::kFp8E4M3 || spec.rotation != Rotation::kNone)) {
    return "is of v, which is fp8e4m3 and not rotated";
  }
  if (spec.smoothing == Smoothing::kMean && spec.operand != Operand::kKey) return "smooths an operand other than k";
  const bool folds = spec.operand == Operand::kQuery && spec.element == ElementType::kFp8E4M3;
  if (spec.feeds == ScoreForm::kFolded && (!folds || spec.family != Family::kQuantise)) {
    return "fixes the scale of an operand other than q in fp8e4m3";
  }
  if (spec.family == Family::kQuantiseStatistics && spec.scales != ScaleScope::kHead) {
    return "gives the scope of a scale that it does not compute";
  }
  return {};
}

}  // namespace

Expected<Shape> shape_of(const KernelSpec& spec) {
  if (std::string why = refusal(spec); !why.empty()) {
    return make_error(ErrorCode::kUnsupported,
                      std::string(name_of(spec.family)) + " of " + std::string(name_of(spec.operand)) + " " + why);
  }
  return Shape{spec.element, spec.head_dim_qk, spec.rotation, spec.smoothing, spec.feeds};
}

}  // namespace quantising

Expected<Algorithm> quantise(const KernelSpec& spec) {
  using namespace quantising;
  Expected<Shape> shape = shape_of(spec);
  if (!shape) return tl::unexpected(shape.error());
  Algorithm algorithm;
  algorithm.name = "quantise";
  algorithm.tiles = make_tiles(*shape);
  algorithm.stages = {load_stage(*shape), convert_stage(*shape)};
  algorithm.legal_waves = {1};
  algorithm.setup = [shape = *shape](StageWriter& w) {
    setup(w, shape);
    return SetupRest{};
  };
  algorithm.finish = [](StageWriter& w) { w.op(Op::kSEndpgm, {}); };
  return algorithm;
}

}  // namespace zyfa::schedules
