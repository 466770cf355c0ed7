// The parts of attention forward, one file each: setup, loads, matrix, softmax, finish.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "schedules/attention/forward.h"
#include "schedules/dsl/stage_writer.h"

namespace zyfa::schedules::forward {

inline constexpr std::uint32_t kRowBytes = 256;  // 128 bf16
inline constexpr std::uint32_t kBlockKeys = 32;  // keys of one score tuple
inline constexpr std::uint32_t kIterationBlocks = kIterationKeys / kBlockKeys;
inline constexpr std::uint32_t kBlockBytes = kBlockKeys * kRowBytes;
inline constexpr std::uint32_t kLoadBytes = 1024;  // one direct-to-LDS dwordx4 of a wave: 64 lanes x 16 bytes, 4 rows
inline constexpr std::uint32_t kHeadSteps = 128 / 16;          // 16-wide steps of the head dim in Q.K
inline constexpr std::uint32_t kHeadBlocks = 128 / 32;         // 32-row blocks of O^T
inline constexpr std::uint32_t kBlockSteps = kBlockKeys / 16;  // 16-wide steps of a block's keys in P.V
inline constexpr std::uint32_t kKeyBlocks = kKeyTile / kBlockKeys;
inline constexpr std::uint32_t kKeySteps = kKeyTile / 16;
inline constexpr float kReferenceSlack = 8.0F;  // binades; P stays below 2^8, which bf16 and fp32 sums hold with ease

struct Shape {
  MaskKind mask;
  LseOutput lse;
};

// The name of what each block of an iteration has of its own: "qk2".
inline std::string of_block(const char* name, std::uint32_t block) { return name + std::to_string(block); }

SetupRest setup(StageWriter& w, const Shape& shape);
void load_keys(StageWriter& w);
void load_first_values(StageWriter& w);
void load_other_values(StageWriter& w);
// Moves an LDS tile's descriptor of rows in memory on.
void step_rows(StageWriter& w, const std::string& tile, std::uint32_t rows);
// Of one block of 32 keys.
void read_keys(StageWriter& w, std::uint32_t block);
void read_values(StageWriter& w, std::uint32_t block);
void scores(StageWriter& w, std::uint32_t block);
// Scores of keys that a query does not see become -inf; the first of the tile's `blocks` starts at key `position`
// (SGPR).
void hide_keys(StageWriter& w, jit::Reg position, std::uint32_t blocks, std::string_view tile = "score");
void mask(StageWriter& w, std::uint32_t blocks = kKeyBlocks);
// Of an even number of blocks.
void row_maximum_of(StageWriter& w, std::uint32_t blocks);
inline void row_maximum(StageWriter& w) { row_maximum_of(w, kKeyBlocks); }
// `slack`: binades that a block may rise above the reference before it moves.
void move_reference(StageWriter& w, float slack);
// Of one block of 32 keys, to the tuples `prob`, one for 16 keys.
void block_probabilities(StageWriter& w, std::uint32_t block, const std::array<jit::Reg, kBlockSteps>& prob);
void probabilities(StageWriter& w);
void accumulate(StageWriter& w, std::uint32_t block);
void finish(StageWriter& w, const Shape& shape);

}  // namespace zyfa::schedules::forward
