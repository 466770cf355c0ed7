// The end of every attention kernel: O = O^T / row sum in BF16, LSE = ln of the sum. Reads the tiles "out",
// "key_limit", "o_args", "lse_args" and the place of the wave.
#pragma once

#include <cstdint>
#include <optional>

#include "schedules/attention/query_blocks.h"
#include "schedules/dsl/stage_writer.h"
#include "schedules/select/kernel_spec.h"

namespace zyfa::schedules::forward {

inline constexpr std::uint32_t kOutputBlocks = 128 / 32;  // 32-row blocks of O^T

// VGPRs, the same in both lanes of a query.
struct RowResult {
  jit::Reg total;                                       // sum of the probabilities, 0 for a row that saw no key
  jit::Reg reference;                                   // log2 of what a probability of 1 stands for
  std::optional<jit::Reg> output_scale = std::nullopt;  // a factor of O
};

// A 32-row block of O in VGPRs: itself, or a copy of what AGPRs hold, which vector instructions do not take.
[[nodiscard]] jit::Reg output_in_vgprs(StageWriter& w, std::uint32_t block);

// Hands change() each block of O in VGPRs, in which it is changed.
template <typename Change>
void change_output(StageWriter& w, const Change& change) {
  for (std::uint32_t block = 0; block < kOutputBlocks; ++block) {
    const jit::Reg out = w.reg("out", block);
    const jit::Reg values = output_in_vgprs(w, block);
    change(values);
    if (out.bank == jit::Bank::kVgpr) continue;
    for (std::uint16_t r = 0; r < out.count; ++r) w.op(jit::Op::kVAccvgprWrite, {out.sub(r), values.sub(r)});
  }
}

// Of query block `queries` of the wave. The end of the program is the caller's.
void write_output(StageWriter& w, LseOutput lse, const RowResult& result, std::uint32_t queries);

}  // namespace zyfa::schedules::forward
