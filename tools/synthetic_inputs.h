// Attention inputs made by rule instead of read from a file: what real activations at hand do not show.
#pragma once

#include <string>

#include "runtime/io/attention_inputs.h"

namespace zyfa::tools {

inline constexpr const char* kSyntheticHelp =
    "Inputs made by rule instead of a file: sink[:BINADES[:KEYS]], a sink key BINADES (1 to 31, default 18) binades "
    "above KEYS (1 to 1048576, default 4096) equal keys whose sum matters, the sink's value near zero; 256 queries, "
    "one head of dim 128, no mask";

// kInvalidArgument names the text and what is allowed.
//
// Every number is exact in BF16 and survives 8-bit quantisation, rotated or not: q is all ones, the sink key all
// BINADES, the others +-1.75 BINADES in alternation, which is orthogonal to q and sets the keys' scale, so that the
// sink's rotated code is a power of two; softmax_scale = ln 2 / 128 makes the gap BINADES. (Folded form keeps 4
// significant bits of the gap, so there an odd one from 17 on becomes an even neighbour.) Whole binades, because all
// equal keys get one code: at a fraction its error, up to 8%, would be that of the whole tail.
[[nodiscard]] Expected<io::AttentionInputs> synthetic_inputs(const std::string& text);

}  // namespace zyfa::tools
