// Emitter: check, then append.
#include "jit/emit/emitter.h"

#include <utility>

#include "jit/isa/op_info.h"

namespace zyfa::jit {

Status Emitter::emit(Op op, std::initializer_list<Operand> operands, Modifiers mods, std::string comment, Token moves) {
  Instruction instruction{op, operands, mods, std::move(comment), origin_, moves, {}};
  if (Status s = check(instruction, regs_); !s) return s;
  code_.push_back(std::move(instruction));
  return {};
}

Status Emitter::await(std::vector<Token> tokens, std::string comment) {
  for (const Token token : tokens) {
    if (token == 0) return make_error(ErrorCode::kCompileError, "await of token 0; tokens start at 1");
  }
  code_.push_back({Op::kAwait, {}, {}, std::move(comment), origin_, 0, std::move(tokens)});
  return {};
}

Status Emitter::place(Label label) {
  for (const Instruction& other : code_) {
    if (other.op == Op::kLabel && std::get<Label>(other.operands[0]) == label) {
      return make_error(ErrorCode::kCompileError, "label L" + std::to_string(label.id) + " is placed twice");
    }
  }
  code_.push_back({Op::kLabel, {label}, {}, {}, origin_, 0, {}});
  return {};
}

}  // namespace zyfa::jit
