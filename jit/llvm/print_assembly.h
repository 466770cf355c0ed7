// print_assembly with the line numbers that diagnostics and the decode check need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/isa/instruction.h"
#include "jit/object/kernel_descriptor.h"

namespace zyfa::jit {

struct PrintedAssembly {
  std::string text;
  std::uint32_t first_line = 0;    // 1-based line of listing.code[0]; every listing instruction has exactly one line
  std::vector<std::size_t> begin;  // offset in text of each listing instruction's line, and one past the last

  // The line of instruction i without its newline.
  [[nodiscard]] std::string_view line(std::size_t i) const {
    return std::string_view(text).substr(begin[i], begin[i + 1] - begin[i] - 1);
  }
};

[[nodiscard]] PrintedAssembly print_with_lines(const Listing& listing, const KernelDeclaration& declaration);

// Whether the instruction is machine code (not a label or an unresolved await).
[[nodiscard]] bool is_machine(const Instruction& instruction);

// Directives that open the text section of one kernel and close it: alignment, symbol, size, prefetch padding.
[[nodiscard]] std::string text_header(std::string_view symbol);
[[nodiscard]] std::string text_footer(std::string_view symbol);

}  // namespace zyfa::jit
