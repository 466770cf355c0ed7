// What the setup of every attention kernel starts with: arguments, place of the workgroup and of the lane, visible
// keys. Constant tiles it fills: kernarg, head, batch, query_length, row0, key_limit, first_limit.
//
// A setup has two parts: what the first loads of K need, and the rest, which runs while those are on their way. Kernel
// arguments are loaded together, so that one wait is enough for all; until then what needs none of them is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/attention/forward.h"
#include "schedules/attention/query_blocks.h"
#include "schedules/dsl/stage_writer.h"

namespace zyfa::schedules::forward {

inline constexpr std::int32_t kBufferWord3 = 0x00020000;  // raw buffer, format 32 (gfx950-isa.md 3.2)

// Kernel arguments in SGPRs, on their way.
struct Arguments {
  jit::Reg q, k, v;   // TensorArgs
  jit::Reg lengths;   // query length, key length, head ratio magic, scale
  jit::Reg descales;  // of q, k and v, DescaleArgs each; none unless asked for
};

// Which arguments: `tensors` is the offset of q's, which k's and v's follow. Those of the output go into the constant
// tiles o_args and, where it is written, lse_args.
struct ArgumentChoice {
  std::int32_t tensors = 0;
  bool descales = false;
  bool output = false;
  LseOutput lse = LseOutput::kNone;
};

// The registers that several parts of setup need.
struct SetupRegs {
  Arguments args;
  jit::Reg tile_id;    // SGPR: workgroup id x
  jit::Reg key_head;   // SGPR
  jit::Reg group_row;  // SGPR: first query of the workgroup
  jit::Reg lane;       // VGPR: lane number
  jit::Reg column;     // VGPR: lane % 32, the query of this lane
  jit::Reg half;       // VGPR: lane / 32
};

// Loads the arguments and numbers the lanes; waits for nothing.
[[nodiscard]] SetupRegs begin_setup(StageWriter& w, const ArgumentChoice& choice);
// The same again after a loop, when the constant tiles are filled.
[[nodiscard]] SetupRegs resume_setup(StageWriter& w, const ArgumentChoice& choice);

// The key head; waits for the arguments.
void locate_key_head(StageWriter& w, SetupRegs& s);
// The rows of the workgroup and of this wave.
void locate_rows(StageWriter& w, MaskKind mask, SetupRegs& s);

// First query of a query block of this wave: row0, or a temporary.
[[nodiscard]] jit::Reg first_row_of(StageWriter& w, std::uint32_t block);

// Descriptor of K or V ("k", "v"), keys left and token stride, from the tensor's arguments.
void describe_key_rows(StageWriter& w, const SetupRegs& s, const std::string& name, jit::Reg args);

// key_limit: the last key this lane's query sees, less 4 * half so that masking compares with constants; first_limit:
// the last key that the wave's first query sees, below which no block needs the mask.
void prepare_limits(StageWriter& w, MaskKind mask, const SetupRegs& s);

// Number of blocks of `block_keys`, a power of two, that the workgroup's last query sees.
void count_trips(StageWriter& w, MaskKind mask, const SetupRegs& s, std::uint32_t block_keys = kKeyTile);

// to = base + index * stride, all 64-bit but the index.
void add_scaled(StageWriter& w, jit::Reg to, jit::Reg base, jit::Reg index, jit::Reg stride, const std::string& what);
inline void add_scaled(StageWriter& w, jit::Reg base, jit::Reg index, jit::Reg stride, const std::string& what) {
  add_scaled(w, base, base, index, stride, what);
}
// The same for a stride of 32 bits: token strides are below 2^26 bytes (checked at launch).
void add_rows(StageWriter& w, jit::Reg to, jit::Reg base, jit::Reg row, jit::Reg stride);

// The loads of this wave's query rows, a few at a time: all at once they would fill the queue of vector memory, and the
// wave would stand still before the work that should run under their latency.
class QueryLoads {
 public:
  // Locates the rows, of `row_bytes`, from which each lane takes 16 bytes at 16 * half + 32 * n into the n-th tuple of
  // its query block; `to`: those of the first block, then of the second.
  QueryLoads(StageWriter& w, const SetupRegs& s, std::uint32_t row_bytes, std::vector<jit::Reg> to);

  void load(StageWriter& w, std::size_t loads = 1);
  void load_rest(StageWriter& w) { load(w, to_.size()); }

 private:
  std::vector<jit::Reg> to_;
  std::size_t next_ = 0;
  jit::Reg desc_;                  // SGPRs: from the wave's first row on; rows past the end read 0
  std::vector<jit::Reg> offsets_;  // VGPRs: row of this lane's query in each block, 16 * half bytes into it
};

// Zeros in blocks [first, last) of O, of every query block. Some while the arguments are on their way, as many as there
// is time for; the others under the latency of the first loads.
inline constexpr std::uint32_t kBlocksClearedFirst = 2;
void clear_output(StageWriter& w, std::uint32_t first, std::uint32_t last);

struct RowSpan {
  jit::Reg rows;  // SGPR, may be negative
  std::int32_t most;
  jit::Reg stride;          // SGPR, bytes
  std::uint32_t row_bytes;  // that a row's data takes
};
// to = bytes from the first row's start to the last row's end, 0 when rows <= 0; rows is clamped to `most`.
void row_span(StageWriter& w, jit::Reg to, const RowSpan& span, const std::string& what);

}  // namespace zyfa::schedules::forward
