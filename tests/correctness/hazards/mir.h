// A second opinion on wait states: LLVM's own hazard recogniser, run on pairs of instructions as machine IR.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zyfa::hazards {

// A pair, with wait states already between.
struct MirPair {
  std::string producer, consumer;
  unsigned between = 0;
};

// llc of LLVM 22 was found when the tests were configured.
bool has_llc();

// The wait states that `llc -run-pass=post-RA-hazard-rec` for gfx950 adds to each pair. Throws std::runtime_error on an
// instruction that this file cannot translate, or when llc refuses the text.
std::vector<unsigned> states_llvm_adds(const std::vector<MirPair>& pairs);

}  // namespace zyfa::hazards
