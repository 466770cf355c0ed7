// The wait states that software must provide between two instructions, as rows for tests: pairs in assembly, with the
// number that gfx950-isa.md section 4 asks for, or LLVM 22 where that section says nothing (f64 MFMA, EXEC as data).
//
// The rows are written from those two sources and not from the checkers: strict mode and the verifier, which have
// tables of their own, are held to them. Where LLVM's recogniser inserts another number than a row asks for, the row
// has it and says why.
//
// Registers of a pair: v[70:71] address of readable and writable memory, v72 = 0, s[8:11] buffer descriptor of that
// memory, s[14:15] its address, s3 = s12 = m0 = 0, all other VGPRs, AGPRs and SGPRs defined and 0. v[100:127] are free
// for whatever stands between the two.
#pragma once

#include <string>
#include <vector>

namespace zyfa::hazards {

struct HazardRow {
  std::string what;
  std::string source;  // section of gfx950-isa.md, or "LLVM"
  std::string producer, consumer;
  unsigned states = 0;
  int llvm = -1;             // wait states LLVM 22 inserts, when not `states`
  std::string why_not = {};  // reason of the difference
  bool unconfirmed = false;  // fewer states are inadvisable, not known to be wrong
};

const std::vector<HazardRow>& hazard_table();

// s_nop instructions worth `states` wait states.
std::string nops(unsigned states);

}  // namespace zyfa::hazards
