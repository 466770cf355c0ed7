// The shipped kernels that the tests of this folder go through, and their machine code with its notes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "schedules/compile.h"
#include "schedules/select/select.h"

namespace zyfa::schedules::golden {

// Every variant of 8-bit attention that is built, for one table row and head dim: e4m3 or int8 scores, lean or exact P,
// multiply-add or folded, block exponents or none. Full mask, no LSE.
[[nodiscard]] std::vector<KernelSpec> eight_bit_variants(const Row& row, std::uint32_t head_dim_qk);

// Specs of the row that together have every variant of 8-bit attention, every form of a quantise kernel, every mask and
// LSE output; not every combination of a mask and LSE output with a variant.
[[nodiscard]] std::vector<KernelSpec> specs_of(const Row& row);

// "fp8e4m3_d128_lean_blocks_fma_full": what tells a row's specs apart.
[[nodiscard]] std::string variant_name(const KernelSpec& spec);

// One machine instruction with its note. `stage` is without iteration and slot.
struct Line {
  jit::Decoded code;
  std::string stage, comment;

  [[nodiscard]] std::string_view opcode() const;  // mnemonic without encoding suffix
};

// Indices of a loop's first instruction and of the branch back to it.
struct Loop {
  std::size_t first = 0, last = 0;
};

struct KernelCode {
  std::uint64_t address = 0;  // virtual, of the first instruction
  std::vector<Line> lines;

  [[nodiscard]] std::vector<Loop> loops() const;  // by address of the branch
  [[nodiscard]] std::size_t index_at(std::int64_t offset) const;
};

// A failure of the running test when the object is not one kernel with a note for each instruction.
[[nodiscard]] KernelCode read_code(const CompiledKernel& kernel);

}  // namespace zyfa::schedules::golden
