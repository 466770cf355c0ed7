// Short hands to write listings in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jit/emit/emitter.h"
#include "jit/isa/op_info.h"
#include "jit/passes/passes.h"

namespace zyfa::jit::test {

// A listing under construction; an instruction that check() refuses fails the test.
class Builder {
 public:
  Listing listing;

  Reg v(std::uint16_t count, const std::string& name, int pinned = -1) {
    return listing.regs.add(Bank::kVgpr, count, name, pinned);
  }
  Reg s(std::uint16_t count, const std::string& name, int pinned = -1) {
    return listing.regs.add(Bank::kSgpr, count, name, pinned);
  }
  void operator()(Op op, std::initializer_list<Operand> operands, Modifiers mods = {}, std::string comment = {},
                  Token moves = 0) {
    const Status status = emitter_.emit(op, operands, mods, std::move(comment), moves);
    EXPECT_TRUE(status) << (status ? "" : to_string(status.error()));
  }
  void await(std::vector<Token> tokens, std::string comment = {}) {
    EXPECT_TRUE(emitter_.await(std::move(tokens), std::move(comment)));
  }
  void place(Label label) { EXPECT_TRUE(emitter_.place(label)); }
  void stage(std::string name) { emitter_.set_origin({std::move(name), "schedules/test.cpp", 7}); }

 private:
  Emitter emitter_{listing.code, listing.regs};
};

inline Modifiers at(int offset) {
  Modifiers m;
  m.offset = offset;
  return m;
}

inline Modifiers offen(int offset = 0) {
  Modifiers m;
  m.offset = offset;
  m.offen = true;
  return m;
}

inline std::vector<std::string> text(const Listing& listing) {
  std::vector<std::string> out;
  for (const Instruction& instruction : listing.code) out.push_back(print(instruction));
  return out;
}

}  // namespace zyfa::jit::test
