// 8-byte alignment inside loops, in one walk over the listing with the offset of each instruction.
//
// An instruction of 8 or 16 bytes at 4 mod 8 is moved on by a dword among the 4-byte instructions just before it, back
// to the last longer one: those may stand anywhere. In order of cost: a VALU instruction at 0 mod 8 takes its 8-byte
// encoding; an s_nop of several states becomes two; a wait for nothing is added, which costs a lone wave no cycle where
// an s_nop costs four (mi355x-timing.md 1.2), before the loop when its head is among them. Every s_nop stays or grows
// in states, so that no wait state gets lost.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "jit/isa/op_info.h"
#include "jit/isa/size.h"
#include "jit/passes/passes.h"

namespace zyfa::jit {
namespace {

constexpr std::uint32_t kDword = 4, kAlignment = 8;
constexpr std::int32_t kWaitForNothing = 0xcf7f;  // s_waitcnt with every counter at its largest (gfx950-isa.md 3.5)

struct Loops {
  std::vector<bool> inside;  // by instruction index: between a label and a branch back to it
  std::vector<bool> head;    // the label of one
};

Loops find_loops(const Listing& listing) {
  const auto& code = listing.code;
  Loops loops{std::vector<bool>(code.size(), false), std::vector<bool>(code.size(), false)};
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> placed(listing.label_count, kNone);
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Label* label = label_of(code[i]);
    if (label == nullptr || label->id >= placed.size()) continue;
    if (code[i].op == Op::kLabel) {
      placed[label->id] = i;
    } else if (placed[label->id] != kNone) {
      const auto first = static_cast<std::ptrdiff_t>(placed[label->id]);
      std::fill(loops.inside.begin() + first, loops.inside.begin() + static_cast<std::ptrdiff_t>(i) + 1, true);
      loops.head[placed[label->id]] = true;
    }
  }
  return loops;
}

class Aligner {
 public:
  explicit Aligner(Listing& listing) : listing_(listing), loops_(find_loops(listing)) {
    out_.reserve(listing.code.size() + listing.code.size() / 16);
  }

  void run() {
    for (std::size_t i = 0; i < listing_.code.size(); ++i) {
      Instruction& instruction = listing_.code[i];
      const std::uint32_t size = encoded_size(instruction);
      if (size > kDword) {
        if (loops_.inside[i] && at_ % kAlignment != 0) move_on(instruction.origin);
        run_.clear();
      } else {
        run_.push_back({out_.size(), at_, loops_.head[i]});
      }
      out_.push_back(std::move(instruction));
      at_ += size;
    }
    listing_.code = std::move(out_);
  }

 private:
  // A 4-byte instruction or a label since the last longer instruction.
  struct Short {
    std::size_t index;  // in out_
    std::uint32_t at;   // byte offset
    bool loop_head;
  };

  // Makes the code end at a multiple of 8.
  void move_on(const Origin& origin) {
    at_ += kDword;
    for (auto it = run_.rbegin(); it != run_.rend(); ++it) {
      if (it->at % kAlignment == 0 && lengthen(out_[it->index])) return;
    }
    for (auto it = run_.rbegin(); it != run_.rend(); ++it) {
      if (split(it->index)) return;
    }
    const auto head = std::find_if(run_.begin(), run_.end(), [](const Short& item) { return item.loop_head; });
    const std::size_t index = head == run_.end() ? out_.size() : head->index;
    const std::string what = head == run_.end() ? "the next instruction" : "the loop";
    insert(index, {Op::kSWaitcnt, {Imm{kWaitForNothing}}, {}, "aligns " + what + " to 8 bytes", origin, 0, {}});
  }

  static bool lengthen(Instruction& instruction) {
    // DPP and modifiers make it longer already, and then it is not in the run.
    if (!has_long_form(instruction.op)) return false;
    instruction.mods.long_form = true;
    return true;
  }

  bool split(std::size_t index) {
    if (out_[index].op != Op::kSNop) return false;
    const std::int32_t states = std::get<Imm>(out_[index].operands[0]).value + 1;
    if (states < 2) return false;
    Instruction rest = out_[index];
    out_[index].operands[0] = Imm{states - 2};
    rest.operands[0] = Imm{0};
    insert(index + 1, std::move(rest));
    return true;
  }

  void insert(std::size_t index, Instruction instruction) {
    out_.insert(out_.begin() + static_cast<std::ptrdiff_t>(index), std::move(instruction));
  }

  Listing& listing_;
  Loops loops_;
  std::vector<Instruction> out_;
  std::vector<Short> run_;
  std::uint32_t at_ = 0;
};

}  // namespace

void align_loops(Listing& listing) { Aligner(listing).run(); }

}  // namespace zyfa::jit
