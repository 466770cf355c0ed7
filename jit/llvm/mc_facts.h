// InstFacts of a decoded MCInst. Internal to jit/llvm.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <llvm/MC/MCInst.h>

#include "jit/isa/facts.h"
#include "jit/llvm/mc_target.h"

namespace zyfa::jit {

// Maps LLVM register numbers to banks by name. Registers that no bank names (flat_scratch, xnack_mask, ttmp, apertures)
// have count 0: no hazard or wait rule of gfx950-isa.md 4 speaks of them.
class FactTable {
 public:
  explicit FactTable(const McTarget& mc);

  // `text`: the printed instruction; `word`: its first dword.
  [[nodiscard]] InstFacts facts_of(const llvm::MCInst& inst, std::string_view mnemonic, std::string_view text,
                                   std::uint32_t word) const;

 private:
  [[nodiscard]] RegRange range_of(const llvm::MCInst& inst, unsigned operand) const;
  void add_operands(const llvm::MCInst& inst, std::string_view text, InstFacts& facts) const;
  void add_implicit(const llvm::MCInst& inst, std::string_view mnemonic, InstFacts& facts) const;
  void add_matrix(const llvm::MCInst& inst, std::string_view mnemonic, InstFacts& facts) const;
  void add_memory(const llvm::MCInst& inst, std::string_view mnemonic, std::string_view text, InstFacts& facts) const;
  void add_modifiers(const llvm::MCInst& inst, std::string_view mnemonic, std::string_view text,
                     InstFacts& facts) const;

  const McTarget& mc_;
  std::vector<RegRange> registers_;  // by LLVM register number
  unsigned vccz_ = 0, execz_ = 0;    // LLVM register numbers of the operands src_vccz, src_execz
};

}  // namespace zyfa::jit
