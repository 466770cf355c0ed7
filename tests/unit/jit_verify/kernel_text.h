// Kernels for verifier tests: assembly text in, verifier report out, with a descriptor the test may change.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/verify/verifier.h"

namespace zyfa::jit::testing {

// Writes v0-v127, a0-a63, s0-s63, VCC, M0 and SCC, then idles long enough that no wait state is owed.
std::string defines_everything();

// The machine code of assembly text (instructions and labels only). Fails the test on bad text.
std::vector<std::byte> machine_code(const std::string& text);

struct Subject {
  CodeObject object;
  KernelImage kernel;
  std::vector<Decoded> decoded;
};
// One kernel over the whole code: 128 + 128 registers, 96 SGPRs, the kernel argument pointer and three workgroup ids.
Subject subject_of(std::vector<std::byte> code);

VerifyReport verify_text(const std::string& text, const std::function<void(Subject&)>& change = {});
// Body between defines_everything() and s_endpgm.
VerifyReport verify_body(const std::string& body, const std::function<void(Subject&)>& change = {});

// All findings as text, one a line: for failure messages.
std::string listing_of(const VerifyReport& report);
std::vector<Finding> of_kind(const VerifyReport& report, FindingKind kind);

// s_nop instructions worth `states` wait states.
std::string nops(unsigned states);

}  // namespace zyfa::jit::testing
