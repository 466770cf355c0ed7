// Static verifier over decoded machine code: any code object, ours or not.
// It follows all paths of the control-flow graph and shares no code with the passes that insert waits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jit/isa/instruction.h"
#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"

namespace zyfa::jit {

enum class FindingKind : std::uint8_t {
  kWaitStates,      // hazard table of gfx950-isa.md section 4
  kMissingWait,     // a memory result used before s_waitcnt on some path
  kUninitialised,   // a register read that no path defines; in objects with a listing also one that some path does not
  kRegisterBudget,  // a register outside the allocation of the descriptor
  kLdsBudget,       // declared LDS over 163840, or descriptor and metadata differ
  kAlignment,       // tuple alignment, C/D or A/B overlap of an MFMA
  kScratch,         // private segment used
  kDescriptor,      // descriptor, metadata, declaration disagree
  kControlFlow,     // branch outside the kernel or into an instruction, code that runs off the end, undecodable bytes
  kBarrier,         // a direct-to-LDS load that can reach the end of the program or a barrier-separated reader unwaited
};

struct Finding {
  FindingKind kind;
  std::uint64_t offset = 0;  // from the kernel's entry
  std::string instruction;   // disassembly
  std::string message;       // what is wrong, what was expected
  std::string origin;        // stage and comment when the object carries a listing
};

std::string_view finding_kind_name(FindingKind kind);
std::string to_string(const Finding& finding);

struct VerifyReport {
  std::vector<Finding> findings;
  std::vector<std::string> notes;  // not faults: what was not followed, not listed, or is only inadvisable
  std::uint32_t instructions = 0;  // reachable ones
  std::uint32_t not_reached = 0;   // without padding (s_nop, s_code_end); nothing was checked in them
  std::uint32_t vgprs = 0, agprs = 0, sgprs = 0;  // highest used + 1
};

// Verifies one kernel. `decoded` is the disassembly of the whole text section.
[[nodiscard]] VerifyReport verify_kernel(const CodeObject& object, const KernelImage& kernel,
                                         std::span<const Decoded> decoded);
// All kernels of an object, and how much of its code belongs to none. kNotFound when it has no kernel.
[[nodiscard]] Expected<VerifyReport> verify_object(const CodeObject& object);

}  // namespace zyfa::jit
