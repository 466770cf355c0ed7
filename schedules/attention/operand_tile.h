// K or V on its way to LDS: one block of 64 rows, each wave its share, memory to LDS without registers.
//
// LDS placement is linear in the lane, so the bank swizzle permutes the 16-byte chunks of the memory row that a lane
// fetches (gfx950-isa.md 3.1). Tiles used: <name> (LDS, unless another is
// named), <name>_desc, <name>_left, <name>_stride, <name>_lds and
// <name>_offset (one VGPR a load round).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedules/attention/kernel_setup.h"
#include "schedules/dsl/stage_writer.h"

namespace zyfa::schedules::forward {

inline constexpr std::uint32_t kMaxLoadRounds = 6;

// chunk ^= f(row), a permutation inside the row, so that the lanes of an LDS read phase meet distinct banks
// (gfx950-isa.md 3.3).
enum class Swizzle : std::uint8_t {
  kRow,           // row % 16: rows of 256 bytes start in one bank
  kHalfRow,       // row / 2 % 8: rows of 128 (or 384) bytes, two fill the banks
  kQuarterRow,    // row / 4 % 4: rows of 192 bytes start in four quarters of the banks
  kTransposeB8,   // 2 * (bit 1 of row) + 4 * (bit 3 of row): ds_read_b64_tr_b8 takes 32 bytes of rows r .. r + 3, r + 8
                  // ..
  kTransposeB16,  // 4 * (row % 4): ds_read_b64_tr_b16 takes 64 bytes of four rows
};

struct OperandTile {
  std::string name;
  std::uint32_t row_bytes;  // 128, 192, 256 or 384
  Swizzle swizzle;

  [[nodiscard]] std::uint32_t bytes() const { return kKeyTile * row_bytes; }
};

// Where a lane's chunk of each load round stands in the tile, VGPRs: the row, and its byte in the memory row.
struct LanePlaces {
  std::vector<jit::Reg> row, byte;
};

// This wave's LDS share and the lane's places; needs no argument.
[[nodiscard]] LanePlaces place_lanes(StageWriter& w, const SetupRegs& s, const OperandTile& tile);
// Descriptor, lane offsets, stride and keys left, for blocks from row 0 on.
void describe_operand(StageWriter& w, const SetupRegs& s, const OperandTile& tile, jit::Reg args,
                      const LanePlaces& places);

// Loads the descriptor's block, of which `rows` (SGPR, may be 0 or less, or more than a block) exist; others are zeros.
void load_block(StageWriter& w, const OperandTile& tile, jit::Reg rows);
// The same into the LDS tile `to`, where the descriptor says already how many bytes are in range. `beside` may write
// scalar instructions between the last M0 and its load, which must wait for it.
void load_described_block(StageWriter& w, const OperandTile& tile, const std::string& to,
                          const std::function<void()>& beside);
// The descriptor steps by `rows` (SGPR), on or, when negative, back.
void step_operand(StageWriter& w, const OperandTile& tile, jit::Reg rows);

}  // namespace zyfa::schedules::forward
