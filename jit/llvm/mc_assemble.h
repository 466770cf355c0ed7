// Assembly text to a relocatable object, with diagnostics as data. No LLVM type appears here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jit/llvm/assembler.h"

namespace zyfa::jit {

struct McOutcome {
  std::vector<std::byte> object;  // empty when anything was reported as an error
  std::vector<Diagnostic> diagnostics;
};

// kInternal only: errors of the text are diagnostics.
[[nodiscard]] Expected<McOutcome> mc_assemble(std::string_view text);

// "line 12, column 3: message | text | origin", the last two when known.
std::string to_string(const Diagnostic& diagnostic);

}  // namespace zyfa::jit
