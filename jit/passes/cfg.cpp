// Blocks and edges of a listing.
#include "jit/passes/cfg.h"

#include <string>

#include "jit/isa/op_info.h"

namespace zyfa::jit {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

bool ends_block(const Instruction& instruction) {
  return instruction.op == Op::kSEndpgm || op_info(instruction.op).unit == Unit::kBranch;
}

std::uint32_t label_id(const Instruction& instruction) { return std::get<Label>(instruction.operands[0]).id; }

void link(Cfg& cfg, std::uint32_t from, std::uint32_t to) {
  if (to >= cfg.blocks.size()) return;  // falls off the end: the verifier reports it on the code object
  cfg.blocks[from].successors.push_back(to);
  cfg.blocks[to].predecessors.push_back(from);
}

}  // namespace

Expected<Cfg> build_cfg(const Listing& listing) {
  Cfg cfg;
  const auto& code = listing.code;
  std::vector<std::uint32_t> block_of_label;
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    const bool label = code[i].op == Op::kLabel;
    if (i == 0 || label || ends_block(code[i - 1])) cfg.blocks.push_back({i, i, {}, {}});
    cfg.blocks.back().end = i + 1;
    if (!label) continue;
    const std::uint32_t id = label_id(code[i]);
    if (id >= block_of_label.size()) block_of_label.resize(id + 1, kNone);
    if (block_of_label[id] != kNone) {
      return make_error(ErrorCode::kCompileError, "label L" + std::to_string(id) + " is placed twice");
    }
    block_of_label[id] = static_cast<std::uint32_t>(cfg.blocks.size() - 1);
  }
  for (std::uint32_t b = 0; b < cfg.blocks.size(); ++b) {
    const Instruction& last = code[cfg.blocks[b].end - 1];
    if (last.op == Op::kSEndpgm) continue;
    if (op_info(last.op).unit == Unit::kBranch) {
      const std::uint32_t id = label_id(last);
      if (id >= block_of_label.size() || block_of_label[id] == kNone) {
        return make_error(ErrorCode::kCompileError, "`" + print(last) + "` branches to a label that is not placed");
      }
      link(cfg, b, block_of_label[id]);
      if (last.op == Op::kSBranch) continue;
    }
    link(cfg, b, b + 1);
  }
  return cfg;
}

}  // namespace zyfa::jit
