// The order of synthetic instruction streams (docs/performance-model.md, synthetic streams).
#pragma once

#include <cstdint>

#include "tests/correctness/timing/micro.h"

namespace zyfa::sim_test {

// Even interleave: instruction k of a class of n stands at (k + 1/2) / n; equal places go by the order of the classes.
Steps weave(const std::vector<Steps>& classes);
// A random order that keeps the order within each class.
Steps shuffle(const std::vector<Steps>& classes, std::uint32_t seed);

}  // namespace zyfa::sim_test
