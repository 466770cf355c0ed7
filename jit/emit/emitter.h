// Appends checked instructions to a sequence. An instruction that fails check() is not appended.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "jit/isa/instruction.h"
#include "zyfa/error.h"

namespace zyfa::jit {

class Emitter {
 public:
  // Appends to `code`, naming virtual tuples through `regs`. Both outlive the emitter.
  Emitter(std::vector<Instruction>& code, const RegTable& regs) : code_(code), regs_(regs) {}

  // Origin stamped on every instruction emitted from now on.
  void set_origin(Origin origin) { origin_ = std::move(origin); }
  [[nodiscard]] const Origin& origin() const { return origin_; }

  [[nodiscard]] Status emit(Op op, std::initializer_list<Operand> operands, Modifiers mods = {},
                            std::string comment = {}, Token moves = 0);
  [[nodiscard]] Status await(std::vector<Token> tokens, std::string comment = {});
  [[nodiscard]] Status place(Label label);

 private:
  std::vector<Instruction>& code_;
  const RegTable& regs_;
  Origin origin_;
};

}  // namespace zyfa::jit
