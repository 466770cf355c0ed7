// Loops of published kernels in the order that their public source gives them (docs/performance-model.md, synthetic
// streams).
#pragma once

#include "tests/correctness/timing/micro.h"

namespace zyfa::sim_test {

enum class Edit : std::uint8_t { kNone, kNoNop, kNoPriority, kNeither };

// FlyDSL's BF16 forward with lazy rescaling, a trip of a wave: two tiles of 64 keys.
Steps flydsl_trip(Edit edit = Edit::kNone);

// Packed: in the places of the scalar ones, or those of two MFMAs together.
enum class Update : std::uint8_t { kScalar, kPacked, kPackedTogether };

// PYHIP's block-scaled FP8 GEMM, a trip of a wave: one block of 128 of K.
Steps block_scaled_trip(Update update);

}  // namespace zyfa::sim_test
