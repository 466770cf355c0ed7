// A kernel decoded for execution: every instruction reachable from its entry as a micro-operation.
//
// Built from LLVM's printed form of the machine code, once. Anything the simulator does not know is refused here,
// before the first instruction runs, with the instruction and its offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "runtime/sim/exec/machine.h"
#include "zyfa/error.h"

namespace zyfa::sim {

// What the decoder needs to know about the kernel's registers (gfx950-isa.md 5.4).
struct RegisterFile {
  std::uint32_t accum_offset = 256;  // AGPR 0 is this row
  std::uint32_t rows = 512;          // allocated registers, arch and accumulation
};

struct Program {
  static constexpr std::uint32_t kNoOp = ~0u;

  std::vector<MicroOp> ops;          // one per decoded instruction; those never reached have no handler
  std::vector<std::string> text;     // disassembly, by micro-operation
  std::vector<std::uint32_t> op_at;  // micro-operation by text offset / 4, or kNoOp
  std::deque<DppControl> dpp;        // referred to by ops
  std::uint32_t entry = 0;           // micro-operation of the kernel's first instruction
  std::uint64_t entry_offset = 0;    // in the text section
  std::uint64_t text_bytes = 0;
  // Some read-modify-write of memory gives results that depend on the order of workgroups.
  bool ordered_atomics = false;
  RegisterFile registers;
};

// `text` is the section, `entry` the byte offset of the first instruction in it. kUnsupported lists what is not known;
// kCorruptData: the entry is outside of the section.
[[nodiscard]] Expected<Program> decode_program(std::span<const std::byte> text, std::uint64_t entry,
                                               const RegisterFile& registers);

// Mnemonics the simulator knows, sorted (docs and tests).
std::vector<std::string> known_mnemonics();

}  // namespace zyfa::sim
