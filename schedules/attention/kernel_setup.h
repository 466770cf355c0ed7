// What the setup of every attention kernel starts with: arguments, place of the workgroup and of the lane, visible
// keys. Constant tiles it fills: kernarg, head, batch, query_length, row0, key_limit, first_limit.
#pragma once

#include <cstdint>
#include <string>

#include "schedules/attention/forward.h"
#include "schedules/dsl/stage_writer.h"

namespace zyfa::schedules::forward {

inline constexpr std::int32_t kBufferWord3 = 0x00020000;  // raw buffer, format 32 (gfx950-isa.md 3.2)

// The registers that several parts of setup need.
struct SetupRegs {
  jit::Reg lengths;    // query length, key length, head ratio magic, scale
  jit::Reg key_head;   // SGPR
  jit::Reg group_row;  // SGPR: first query of the workgroup
  jit::Reg lane;       // VGPR: lane number
  jit::Reg column;     // VGPR: lane % 32, the query of this lane
  jit::Reg half;       // VGPR: lane / 32
};

[[nodiscard]] SetupRegs begin_setup(StageWriter& w, MaskKind mask);
// The same again after a loop, when the constant tiles are filled: all but group_row.
[[nodiscard]] SetupRegs resume_setup(StageWriter& w);

// key_limit: the last key this lane's query sees, less 4 * half so that masking compares with constants; first_limit:
// the last key that the wave's first query sees, below which no block needs the mask.
void prepare_limits(StageWriter& w, MaskKind mask, const SetupRegs& s);

// Number of 64-key blocks that the workgroup's last query sees.
void count_trips(StageWriter& w, MaskKind mask, const SetupRegs& s);

// base += index * stride, all 64-bit but the index.
void add_scaled(StageWriter& w, jit::Reg base, jit::Reg index, jit::Reg stride, const std::string& what);

// This wave's query rows of the tensor whose arguments stand at `args_offset`.
struct QueryRows {
  jit::Reg desc;    // SGPRs: from the wave's first row on; rows past the end read 0
  jit::Reg offset;  // VGPR: row of this lane's query, 16 * half bytes into it
};
[[nodiscard]] QueryRows locate_queries(StageWriter& w, const SetupRegs& s, std::int32_t args_offset,
                                       std::uint32_t row_bytes);

struct RowSpan {
  jit::Reg rows;  // SGPR, may be negative
  std::int32_t most;
  jit::Reg stride;          // SGPR, bytes
  std::uint32_t row_bytes;  // that a row's data takes
};
// to = bytes from the first row's start to the last row's end, 0 when rows <= 0; rows is clamped to `most`.
void row_span(StageWriter& w, jit::Reg to, const RowSpan& span, const std::string& what);

}  // namespace zyfa::schedules::forward
