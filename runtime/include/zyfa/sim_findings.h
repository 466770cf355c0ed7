// Every kind of SimFinding. docs/simulator-strict.md tells the rules behind them and which test plants each.
#pragma once

#include <string_view>

namespace zyfa {

struct SimFindingKind {
  std::string_view name;  // SimFinding::kind
  bool strict = true;     // strict mode alone reports it
  bool may_be_warning;    // of what is only inadvisable: SimFinding::warning
  std::string_view meaning;
};

inline constexpr SimFindingKind kSimFindingKinds[] = {
    {"memory-fault", false, false, "an access outside of every buffer"},
    {"execution-fault", false, false, "a trap, a branch to no instruction, a mode that the simulator does not run"},
    {"missing-wait", true, false, "a register used, or written again, before s_waitcnt covers the load into it"},
    {"wait-states", true, false, "fewer instructions between two than the hazard table asks for"},
    {"wait-states-unconfirmed", true, true,
     "an MFMA reads C sooner after one of another pass count than AMD's guide states to work"},
    {"operand-overlap", true, true,
     "the result of an MFMA lies over A, B or a part of C; a warning for results of 4 registers or less"},
    {"uninitialised-register", true, false, "arithmetic, an address, a branch or a store uses what was never written"},
    {"lds-race", true, false, "two waves touch an LDS byte, one of them writing, with no barrier between"},
    {"lds-in-flight", true, false, "LDS bytes touched while a direct-to-LDS load or a read of them is in flight"},
    {"lds-out-of-bounds", true, false, "an LDS access outside of the workgroup's allocation"},
    {"lds-misaligned", true, false, "an LDS address, or the LDS base of a direct-to-LDS load, that is not aligned"},
    {"memory-misaligned", true, true,
     "a global, flat, buffer or scalar access at an address that is not aligned; a warning where the rules of the "
     "simulation deliver it"},
    {"exec-mask", true, false, "inactive lanes where an instruction needs all 64"},
    {"divergent-barrier", true, false, "a barrier that other waves ended without reaching"},
};

}  // namespace zyfa
