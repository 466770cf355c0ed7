// In-process LLVM MC and lld: a final listing to an ELF code object and back to instructions.
// No LLVM type appears here. Thread-safe; lld's global state is behind one lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/isa/facts.h"
#include "jit/isa/instruction.h"
#include "jit/object/kernel_descriptor.h"
#include "zyfa/error.h"

namespace zyfa::jit {

// Complete assembly source: target, directives, code, descriptor, metadata, listing section. What stock llvm-mc takes.
[[nodiscard]] std::string print_assembly(const Listing& listing, const KernelDeclaration& declaration);

struct Diagnostic {
  std::string message;
  std::uint32_t line = 0, column = 0;  // in the assembly text
  std::string text;                    // that line
  std::string origin;                  // "stage (file:line)" of the instruction, when known
};

// Assembles for gfx950 into a relocatable object. kCompileError: details are to_string of each Diagnostic.
[[nodiscard]] Expected<std::vector<std::byte>> assemble_object(std::string_view text);
// Links one relocatable object into a code object, in memory.
[[nodiscard]] Expected<std::vector<std::byte>> link_object(std::span<const std::byte> object);

// print_assembly + assemble + link + decode again and compare: every instruction of the listing must come back in order
// with the same text, and descriptor = metadata = declaration. kCompileError otherwise.
[[nodiscard]] Expected<std::vector<std::byte>> assemble(const Listing& listing, const KernelDeclaration& declaration);

// One decoded machine instruction.
struct Decoded {
  std::uint64_t offset = 0;  // from the start of the given bytes
  std::uint8_t size = 0;     // 4, 8, 12 or 16; 1 to 3 only for an invalid fragment at the very end
  bool valid = false;        // false: bytes that decode to nothing (text = ".long 0x...")
  std::string mnemonic;      // as printed, e.g. "v_add_u32_e32"
  std::string text;          // whole instruction as LLVM prints it, single spaces, branch targets as printed by MC
  std::int64_t branch_target = -1;  // offset of the target for s_branch/s_cbranch*, else -1
  InstFacts facts;
};

// Decodes all of `text` linearly. Invalid words become entries with valid = false; never fails on any bytes.
[[nodiscard]] Expected<std::vector<Decoded>> disassemble(std::span<const std::byte> text);

// Version string of the linked LLVM, e.g. "22.1.8".
std::string llvm_version();

}  // namespace zyfa::jit
