// The parts of attention forward, one file each: setup, loads, matrix, softmax, finish.
#pragma once

#include <cstdint>

#include "schedules/attention/forward.h"
#include "schedules/dsl/stage_writer.h"

namespace zyfa::schedules::forward {

inline constexpr std::uint32_t kRowBytes = 256;  // 128 bf16
inline constexpr std::uint32_t kTileBytes = kKeyTile * kRowBytes;
inline constexpr std::uint32_t kLoadBytes = 1024;  // one direct-to-LDS dwordx4 of a wave: 64 lanes x 16 bytes, 4 rows
inline constexpr std::uint32_t kHeadSteps = 128 / 16;   // 16-wide steps of the head dim in Q.K
inline constexpr std::uint32_t kHeadBlocks = 128 / 32;  // 32-row blocks of O^T
inline constexpr std::uint32_t kKeyBlocks = kKeyTile / 32;
inline constexpr std::uint32_t kKeySteps = kKeyTile / 16;
inline constexpr float kReferenceSlack = 8.0F;  // binades; P stays below 2^8, which bf16 and fp32 sums hold with ease

struct Shape {
  MaskKind mask;
  LseOutput lse;
};

SetupRest setup(StageWriter& w, const Shape& shape);
void load_keys(StageWriter& w);
void load_values(StageWriter& w);
void read_keys(StageWriter& w);
void read_values(StageWriter& w);
void scores(StageWriter& w);
// Scores of keys that a query does not see become -inf; the block starts at key `position` (SGPR).
void hide_keys(StageWriter& w, jit::Reg position);
void mask(StageWriter& w);
void row_maximum(StageWriter& w);
// `slack`: binades that a block may rise above the reference before it moves.
void move_reference(StageWriter& w, float slack);
void probabilities(StageWriter& w);
void accumulate(StageWriter& w);
void finish(StageWriter& w, const Shape& shape);

}  // namespace zyfa::schedules::forward
