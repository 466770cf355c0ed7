// Opens libzyfa_jit, once, when something first needs it.
#pragma once

#include <string>

#include "runtime/jit_service.h"

namespace zyfa {

// ZYFA_JIT_LIBRARY when set, else libzyfa_jit.so beside this library, else in ../lib of it. kDeviceUnavailable: not
// found (paths tried), cannot be opened, built from other sources than this library, or the process exits and LLVM's
// statics are gone. Success is remembered, failure
// is not.
[[nodiscard]] Expected<const JitService*> jit_service();

// Path it was opened from; empty when it is not open.
[[nodiscard]] std::string jit_library_path();

}  // namespace zyfa
