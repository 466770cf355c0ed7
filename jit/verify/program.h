// The decoded kernel as the verifier's checks see it: compact nodes over one flat register space, and basic blocks.
//
// Invariants: only reachable nodes belong to a block; a node's spans lie in `spans`; register numbers are flat
// (VGPR 0.., AGPR 256.., SGPR 512.., special registers 640..), so that one bit set covers a machine state.
// This file and its users share no code with jit/passes: they check each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "jit/verify/verifier.h"

namespace zyfa::jit::verify {

// A run of registers in the flat space.
struct RegSpan {
  std::uint16_t first = 0, count = 0;
  [[nodiscard]] bool overlaps(RegSpan o) const { return first < o.first + o.count && o.first < first + count; }
  bool operator==(const RegSpan&) const = default;
};

inline constexpr std::uint16_t kVgprBase = 0, kAgprBase = 256, kSgprBase = 512, kSpecialBase = 640;
inline constexpr std::uint16_t kFlatRegisters = 648;

constexpr std::uint16_t flat_special(Special s) {
  return static_cast<std::uint16_t>(kSpecialBase + static_cast<std::uint16_t>(s));
}
RegSpan flat(const RegRange& range);
// "v[4:7]", "s3", "vcc".
std::string span_name(RegSpan span);
constexpr bool is_vector(RegSpan s) { return s.first < kSgprBase; }
constexpr bool is_scalar(RegSpan s) { return s.first >= kSgprBase; }

class RegSet {
 public:
  void add(RegSpan s) {
    for_words(s, [this](std::size_t w, std::uint64_t m) { words_[w] |= m; });
  }
  void remove(RegSpan s) {
    for_words(s, [this](std::size_t w, std::uint64_t m) { words_[w] &= ~m; });
  }
  [[nodiscard]] bool any(RegSpan s) const {
    bool hit = false;
    for_words(s, [&](std::size_t w, std::uint64_t m) { hit |= (words_[w] & m) != 0; });
    return hit;
  }
  [[nodiscard]] bool all(RegSpan s) const {
    bool full = true;
    for_words(s, [&](std::size_t w, std::uint64_t m) { full &= (words_[w] & m) == m; });
    return full;
  }
  void fill() { words_.fill(~std::uint64_t{0}); }
  void clear() { words_.fill(0); }
  // Both return whether the set changed.
  bool intersect(const RegSet& o) {
    return combine(o, [](auto a, auto b) { return a & b; });
  }
  bool unite(const RegSet& o) {
    return combine(o, [](auto a, auto b) { return a | b; });
  }
  bool operator==(const RegSet&) const = default;

 private:
  template <typename F>
  static void for_words(RegSpan s, F f) {
    std::uint32_t bit = s.first, end = std::uint32_t{s.first} + s.count;
    while (bit < end) {
      const std::uint32_t low = bit & 63, n = std::min<std::uint32_t>(64 - low, end - bit);
      f(bit >> 6, (n == 64 ? ~std::uint64_t{0} : ((std::uint64_t{1} << n) - 1)) << low);
      bit += n;
    }
  }
  template <typename F>
  bool combine(const RegSet& o, F f) {
    bool changed = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t next = f(words_[i], o.words_[i]);
      changed |= next != words_[i];
      words_[i] = next;
    }
    return changed;
  }
  std::array<std::uint64_t, (kFlatRegisters + 63) / 64> words_{};
};

enum class Edge : std::uint8_t { kNormal, kExecEmpty };  // kExecEmpty: taken edge of s_cbranch_execz

struct Successor {
  std::uint32_t block;
  Edge edge;
};

struct Node {
  const Decoded* inst = nullptr;
  std::uint32_t first_span = 0;  // reads, then writes, in Program::spans
  std::uint8_t read_count = 0, write_count = 0;
  std::uint8_t states = 1;  // wait states it counts for
};

struct Block {
  std::uint32_t begin = 0, end = 0;  // nodes
  std::vector<Successor> successors;
  std::vector<std::uint32_t> predecessors;
};

class Reporter;

struct Program {
  const CodeObject* object = nullptr;
  const KernelImage* kernel = nullptr;
  std::vector<Node> nodes;  // every instruction of the kernel in order, reachable or not
  std::vector<RegSpan> spans;
  std::vector<Block> blocks;
  std::vector<std::uint32_t> entries;  // blocks that start with the kernel's initial state
  std::vector<std::uint32_t> order;    // reverse post-order of the blocks

  [[nodiscard]] std::span<const RegSpan> reads(const Node& n) const {
    return {spans.data() + n.first_span, n.read_count};
  }
  [[nodiscard]] std::span<const RegSpan> writes(const Node& n) const {
    return {spans.data() + n.first_span + n.read_count, n.write_count};
  }
  [[nodiscard]] std::uint64_t offset(const Node& n) const { return n.inst->offset - kernel->entry_offset; }
};

// Slices the kernel out of `decoded`, follows every path and reports broken control flow.
Program build_program(const CodeObject& object, const KernelImage& kernel, std::span<const Decoded> decoded,
                      Reporter& reporter);

// Collects findings: fills in text, offset and origin, drops repetitions, caps the number.
class Reporter {
 public:
  Reporter(const CodeObject& object, const KernelImage& kernel) : object_(object), kernel_(kernel) {}

  // About one instruction; `index` is its number in the kernel.
  void at(FindingKind kind, const Decoded& inst, std::size_t index, std::string message);
  // About the kernel as a whole.
  void about(FindingKind kind, std::string message);
  void note(std::string text);

  // Findings in order of offset.
  void finish(VerifyReport& report);

 private:
  void add(Finding finding);
  void name_kernel(Finding& finding) const;
  const CodeObject& object_;
  const KernelImage& kernel_;
  std::vector<Finding> findings_;
  std::vector<std::string> notes_;
  std::size_t dropped_ = 0;
};

std::string hex(std::uint64_t value);
// "`v_add_u32_e32 ...` at 0x120", to name a producer in a message.
std::string cite(const Program& program, const Node& node);

// The checks.
void check_wait_states(const Program& program, Reporter& reporter);
void check_memory_waits(const Program& program, Reporter& reporter);
void check_definitions(const Program& program, Reporter& reporter);
void check_budget(const Program& program, Reporter& reporter, VerifyReport& report);
void check_operands(const Program& program, Reporter& reporter);
void check_declaration(const CodeObject& object, const KernelImage& kernel, Reporter& reporter);

}  // namespace zyfa::jit::verify
