// Encodings and memory layouts of the vendor kernels' operands, as the open launcher and quantisers of ROCm/aiter
// describe them (csrc/kernels/mha_v4_quant.cu, aiter/ops/triton/quant).
#pragma once

#include <cstdint>
#include <vector>

#include "tests/correctness/peers/inputs.h"

namespace zyfa::peers {

enum class Operand { kQ, kK, kV };

// Quantises dense [batch, tokens, heads, dim] values and lays them out.
[[nodiscard]] Array pack(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t dim,
                         const std::vector<double>& exact, Format format, Operand operand);

}  // namespace zyfa::peers
