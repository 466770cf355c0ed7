// The end of every attention kernel: O = O^T / row sum in BF16, LSE = ln of the sum. Reads the tiles "out",
// "key_limit", "o_args", "lse_args" and the place of the wave.
#pragma once

#include <cstdint>
#include <optional>

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

void write_output(StageWriter& w, LseOutput lse, const RowResult& result);

}  // namespace zyfa::schedules::forward
