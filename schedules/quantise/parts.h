// What the two quantise algorithms share: rows in and out, the rotation, reductions over lanes.
//
// Rotated values are in units that cannot overflow: the inputs are scaled by 2^-7, the sum of 128 of them then stays
// below 2^128, and the orthonormal value is that sum times kUnit128 (or kUnit64 for the rotation over 64 dims). Where
// a lane's number in its row has an odd number of bits set, rotated values carry a minus sign: the two cross-lane
// stages compute own +- partner. The sign changes no maximum, and the last factor takes it away.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/dsl/stage_writer.h"
#include "schedules/dsl/tiles.h"
#include "schedules/select/kernel_spec.h"

namespace zyfa::schedules::quantising {

inline constexpr std::uint32_t kPieceDims = 64;
inline constexpr std::uint32_t kPieceTuples = 2;          // dwordx4 loads of a lane
inline constexpr float kPrescale = 0.0078125F;            // 2^-7
inline constexpr float kUnit128 = 11.313708498984761F;    // 2^7 / sqrt(128)
inline constexpr float kUnit64 = 16.0F;                   // 2^7 / sqrt(64)
inline constexpr float kUnitRatio = 1.4142135623730951F;  // kUnit64 / kUnit128
inline constexpr std::int32_t kInfinity = 0x7f800000;
inline constexpr std::int32_t kNan = 0x7fc00000;

struct Shape {
  ElementType element;
  std::uint32_t dims;
  Rotation rotation;
  Smoothing smoothing;
  ScoreForm feeds;
  [[nodiscard]] std::uint32_t pieces() const { return dims / kPieceDims; }
};

// Pieces that are rotated together: 0 and 1 by H128, 2 by H64. Without rotation: all in one block.
struct Block {
  std::uint32_t first_piece, pieces;
};
[[nodiscard]] std::vector<Block> blocks_of(const Shape& shape);

// Why the specification is not one of a quantise kernel, or the shape it asks for.
[[nodiscard]] Expected<Shape> shape_of(const KernelSpec& spec);

// A walk over the workgroup's blocks through tensor `name` ("in", "out"): its tiles, its start, and a step to the next
// block (heads innermost). Between set_span() and step() a buffer access through <name>_desc reaches the rows of the
// current block that exist and nothing else.
void add_walk_tiles(const std::string& name, std::vector<Tile>& tiles);
[[nodiscard]] std::vector<Access> walk_accesses(const std::string& name);
void set_span(StageWriter& w, const std::string& name, std::uint32_t row_bytes);
void step(StageWriter& w, const std::string& name);

// Tiles of the workgroup's place and of the rows' raw data; the setup that fills the constants, starts walk "in" and
// counts trips; the stage "load".
void add_common_tiles(const Shape& shape, std::vector<Tile>& tiles);
void common_setup(StageWriter& w, const Shape& shape);
void start_walk(StageWriter& w, const std::string& name, std::int32_t tensor_args, std::uint32_t lane_bytes);
[[nodiscard]] Stage load_stage(const Shape& shape);

// The block's values of the current iteration as f32 pairs, eight a piece in element order, rotated if asked.
[[nodiscard]] std::vector<jit::Reg> block_values(StageWriter& w, const Shape& shape, const Block& block);

// x = op over the 16 rows of the wave (all lanes of equal number in their row get the same bits), or over all lanes.
void reduce_rows(StageWriter& w, jit::Op op, jit::Reg x);
void reduce_wave(StageWriter& w, jit::Op op, jit::Reg x);

// +inf where x is NaN, so that maxima keep it.
void poison_to_infinity(StageWriter& w, jit::Reg x);

// The strides of something kept for each (batch, key head), in SGPR pairs.
struct KeyHeadStrides {
  jit::Reg head, batch;
};
// A descriptor of `bytes` bytes at the address (an SGPR pair) of this workgroup's (batch, key head).
[[nodiscard]] jit::Reg key_head_descriptor(StageWriter& w, const std::string& name, jit::Reg address,
                                           const KeyHeadStrides& strides, jit::Operand bytes);

}  // namespace zyfa::schedules::quantising
