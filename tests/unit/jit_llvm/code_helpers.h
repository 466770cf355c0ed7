// Small helpers shared by the tests of jit/llvm.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"

namespace zyfa::jit {

template <typename T>
T must(Expected<T> value) {
  if (!value) {
    ADD_FAILURE() << to_string(value.error());
    return T{};
  }
  return std::move(*value);
}

// Machine code of a few lines of assembly.
inline std::vector<std::byte> code_of(const std::string& lines) {
  auto object = assemble_object(lines + "\n");
  if (!object) {
    ADD_FAILURE() << lines << "\n" << to_string(object.error());
    return {};
  }
  auto linked = must(link_object(*object));
  const CodeObject read = must(read_code_object(std::move(linked)));
  return {read.text.begin(), read.text.end()};
}

// The single instruction that `line` assembles to, decoded.
inline Decoded decoded_one(const std::string& line) {
  const auto decoded = must(disassemble(code_of(line)));
  EXPECT_EQ(decoded.size(), 1u) << line;
  return decoded.empty() ? Decoded{} : decoded.front();
}

}  // namespace zyfa::jit
