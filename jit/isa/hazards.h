// The wait states gfx950 needs between two instructions of a wave (gfx950-isa.md section 4), as a pure function of
// their facts. This is data about the hardware; following paths and counting states is the caller's work.
#pragma once

#include <cstdint>
#include <string_view>

#include "jit/isa/facts.h"

namespace zyfa::jit {

struct Hazard {
  std::uint8_t states = 0;  // instructions or s_nop steps needed strictly between the two
  std::string_view rule;    // what meets what, e.g. "MFMA result read by VALU"
};

// The strictest rule that applies when `consumer` follows `producer`; 0 states when none does.
//
// DOT instructions: facts carry no opcode, so a DOT that reads a DOT's result as C (mfma_c) is taken to be of the same
// opcode. s_setreg: the facts do not say which register, so any later s_getreg or s_setreg is taken to name the same.
[[nodiscard]] Hazard wait_states_required(const InstFacts& producer, const InstFacts& consumer);

// An upper bound of wait_states_required over all consumers.
[[nodiscard]] std::uint8_t max_wait_states(const InstFacts& producer);

}  // namespace zyfa::jit
