// Control-flow graph of a listing: maximal runs of instructions between labels and branches.
// Invariant: blocks are in listing order and cover it without gaps; block 0 is the entry.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/isa/instruction.h"
#include "zyfa/error.h"

namespace zyfa::jit {

struct Block {
  std::uint32_t begin = 0, end = 0;  // instruction indices, end exclusive
  std::vector<std::uint32_t> successors, predecessors;
};

struct Cfg {
  std::vector<Block> blocks;
};

// kCompileError: a branch to a label that is not placed, or a label placed twice.
[[nodiscard]] Expected<Cfg> build_cfg(const Listing& listing);

}  // namespace zyfa::jit
