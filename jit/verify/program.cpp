// Control-flow graph of a decoded kernel (program.h).
#include "jit/verify/program.h"

#include <algorithm>
#include <optional>

#include "jit/verify/text.h"

namespace zyfa::jit::verify {
namespace {

enum class Exit : std::uint8_t { kNext, kJump, kBranch, kEnd, kUnknown };

bool is_call_like(std::string_view m) {
  return m.starts_with("s_setpc") || m.starts_with("s_swappc") || m.starts_with("s_call") || m.starts_with("s_rfe") ||
         m.starts_with("s_cbranch_g_fork") || m.starts_with("s_cbranch_i_fork") || m.starts_with("s_cbranch_join");
}

Exit exit_of(const Decoded& inst) {
  const std::string_view m = inst.mnemonic;
  if (inst.facts.cls == FactClass::kEndpgm || m.starts_with("s_endpgm")) return Exit::kEnd;
  if (is_call_like(m)) return Exit::kUnknown;
  if (m == "s_branch") return Exit::kJump;
  if (m.starts_with("s_cbranch")) return Exit::kBranch;
  return Exit::kNext;
}

// Follows every path from the entries and cuts the reachable instructions into blocks.
class GraphBuilder {
 public:
  GraphBuilder(Program& program, Reporter& reporter) : program_(program), reporter_(reporter) {
    reachable_.resize(program.nodes.size());
    leader_.resize(program.nodes.size());
  }

  void run(std::span<const std::uint32_t> entries) {
    for (std::uint32_t e : entries) enter(e);
    while (!work_.empty()) {
      const std::uint32_t i = work_.back();
      work_.pop_back();
      scan(i);
    }
    cut();
    connect();
    for (std::uint32_t e : entries) program_.entries.push_back(block_of_[e]);
    order();
  }

 private:
  [[nodiscard]] const Decoded& inst(std::uint32_t i) const { return *program_.nodes[i].inst; }

  void enter(std::uint32_t i) {
    if (!leader_[i]) {
      leader_[i] = true;
      work_.push_back(i);
    }
  }

  // Index of the instruction at a decoded offset, or none.
  [[nodiscard]] std::optional<std::uint32_t> index_at(std::int64_t offset) const {
    const auto& nodes = program_.nodes;
    const auto it = std::lower_bound(nodes.begin(), nodes.end(), offset, [](const Node& n, std::int64_t o) {
      return static_cast<std::int64_t>(n.inst->offset) < o;
    });
    if (it == nodes.end() || static_cast<std::int64_t>(it->inst->offset) != offset) return std::nullopt;
    return static_cast<std::uint32_t>(it - nodes.begin());
  }

  void scan(std::uint32_t i) {
    for (;; ++i) {
      if (reachable_[i]) {
        leader_[i] = true;
        return;
      }
      reachable_[i] = true;
      const Decoded& d = inst(i);
      if (!d.valid) {
        reporter_.at(FindingKind::kControlFlow, d, i, "execution reaches bytes that decode to no gfx950 instruction");
        return;
      }
      if (d.mnemonic.starts_with("s_set_gpr_idx_on") || d.mnemonic.starts_with("v_movrel"))
        reporter_.note("registers indexed at run time are not followed: " + cite(program_, program_.nodes[i]));
      const Exit exit = exit_of(d);
      if (exit == Exit::kEnd) return;
      if (exit == Exit::kUnknown) {
        reporter_.note("not followed: " + cite(program_, program_.nodes[i]));
        return;
      }
      if (exit == Exit::kJump || exit == Exit::kBranch) follow_branch(i);
      if (exit == Exit::kJump) return;
      if (i + 1 == program_.nodes.size()) {
        reporter_.at(
            FindingKind::kControlFlow, d, i,
            "execution runs past the end of the kernel after this instruction; s_endpgm or a branch is required");
        return;
      }
      if (exit == Exit::kBranch) {
        enter(i + 1);
        return;
      }
    }
  }

  void follow_branch(std::uint32_t i) {
    const Decoded& d = inst(i);
    const auto target = index_at(d.branch_target);
    if (target) {
      enter(*target);
      return;
    }
    const auto base = static_cast<std::int64_t>(program_.kernel->entry_offset);
    const std::int64_t relative = d.branch_target - base;
    const bool inside = relative >= 0 && relative < static_cast<std::int64_t>(program_.kernel->code_bytes);
    reporter_.at(FindingKind::kControlFlow, d, i,
                 "branches to kernel offset " + std::to_string(relative) +
                     (inside ? ", which is inside an instruction; an instruction boundary is required"
                             : ", outside the kernel's " + std::to_string(program_.kernel->code_bytes) + " bytes"));
  }

  void cut() {
    block_of_.assign(program_.nodes.size(), 0);
    bool open = false;
    for (std::uint32_t i = 0; i < program_.nodes.size(); ++i) {
      if (!reachable_[i]) {
        open = false;
        continue;
      }
      if (!open || leader_[i]) {
        program_.blocks.push_back({i, i, {}, {}});
      }
      block_of_[i] = static_cast<std::uint32_t>(program_.blocks.size() - 1);
      program_.blocks.back().end = i + 1;
      open = exit_of(inst(i)) == Exit::kNext && inst(i).valid;
    }
  }

  void connect() {
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
      const std::uint32_t last = program_.blocks[b].end - 1;
      const Decoded& d = inst(last);
      if (!d.valid) continue;
      const Exit exit = exit_of(d);
      if (exit == Exit::kNext || exit == Exit::kBranch) link(b, last + 1, Edge::kNormal);
      if (exit == Exit::kJump || exit == Exit::kBranch) {
        const Edge edge = d.mnemonic == "s_cbranch_execz" ? Edge::kExecEmpty : Edge::kNormal;
        if (const auto target = index_at(d.branch_target)) link(b, *target, edge);
      }
    }
  }

  void link(std::uint32_t block, std::uint32_t target, Edge edge) {
    if (target >= program_.nodes.size()) return;
    const std::uint32_t to = block_of_[target];
    program_.blocks[block].successors.push_back({to, edge});
    program_.blocks[to].predecessors.push_back(block);
  }

  void order() {
    std::vector<std::uint8_t> seen(program_.blocks.size());
    std::vector<std::pair<std::uint32_t, std::size_t>> stack;
    for (std::uint32_t entry : program_.entries) {
      if (seen[entry]) continue;
      seen[entry] = 1;
      stack.push_back({entry, 0});
      while (!stack.empty()) {
        auto& [block, next] = stack.back();
        const auto& successors = program_.blocks[block].successors;
        if (next == successors.size()) {
          program_.order.push_back(block);
          stack.pop_back();
          continue;
        }
        const std::uint32_t to = successors[next++].block;
        if (seen[to]) continue;
        seen[to] = 1;
        stack.push_back({to, 0});
      }
    }
    std::reverse(program_.order.begin(), program_.order.end());
  }

  Program& program_;
  Reporter& reporter_;
  std::vector<bool> reachable_, leader_;
  std::vector<std::uint32_t> work_, block_of_;
};

// LLVM describes LDS instructions as reading M0; from GFX9 on only two kinds do (gfx950-isa.md 3.3). s_set_gpr_idx
// replaces part of M0 and keeps the rest.
bool reads_m0_in_name_only(const Decoded& inst) {
  if (inst.mnemonic.starts_with("s_set_gpr_idx")) return true;
  return inst.facts.cls == FactClass::kLds && inst.mnemonic.find("addtid") == std::string::npos &&
         inst.mnemonic.find("gws") == std::string::npos;
}

Node make_node(Program& program, const Decoded& inst) {
  Node node;
  node.inst = &inst;
  node.first_span = static_cast<std::uint32_t>(program.spans.size());
  node.states = inst.facts.nop_states;
  const bool drop_m0 = reads_m0_in_name_only(inst);
  for (const RegRange& r : inst.facts.reads) {
    const RegSpan span = flat(r);
    if (span.count != 0 && !(drop_m0 && span.first == flat_special(Special::kM0))) program.spans.push_back(span);
  }
  node.read_count = static_cast<std::uint8_t>(program.spans.size() - node.first_span);
  for (const RegRange& r : inst.facts.writes)
    if (r.count) program.spans.push_back(flat(r));
  node.write_count = static_cast<std::uint8_t>(program.spans.size() - node.first_span - node.read_count);
  return node;
}

}  // namespace

RegSpan flat(const RegRange& range) {
  const auto clamp = [&](std::uint16_t base, std::uint16_t limit) {
    const std::uint16_t first = std::min<std::uint16_t>(range.first, limit - 1);
    return RegSpan{static_cast<std::uint16_t>(base + first),
                   std::min<std::uint16_t>(range.count, static_cast<std::uint16_t>(limit - first))};
  };
  if (range.count == 0) return {};
  switch (range.bank) {
    case Bank::kVgpr:
      return clamp(kVgprBase, 256);
    case Bank::kAgpr:
      return clamp(kAgprBase, 256);
    case Bank::kSgpr:
      return clamp(kSgprBase, 128);
    case Bank::kSpecial:
      break;
  }
  return {static_cast<std::uint16_t>(kSpecialBase + std::min<std::uint16_t>(range.first, 7)), 1};
}

std::string span_name(RegSpan span) {
  if (span.first >= kSpecialBase) {
    static constexpr std::string_view kNames[] = {"vcc", "exec", "m0", "scc", "mode"};
    const std::size_t i = span.first - kSpecialBase;
    return std::string(i < std::size(kNames) ? kNames[i] : "special");
  }
  const bool sgpr = span.first >= kSgprBase, agpr = !sgpr && span.first >= kAgprBase;
  const std::uint32_t n = span.first - (sgpr ? kSgprBase : agpr ? kAgprBase : kVgprBase);
  const std::string letter = sgpr ? "s" : agpr ? "a" : "v";
  if (span.count == 1) return letter + std::to_string(n);
  return letter + "[" + std::to_string(n) + ":" + std::to_string(n + span.count - 1) + "]";
}

Program build_program(const CodeObject& object, const KernelImage& kernel, std::span<const Decoded> decoded,
                      Reporter& reporter) {
  Program program;
  program.object = &object;
  program.kernel = &kernel;
  const auto at = [](const Decoded& d, std::uint64_t offset) { return d.offset < offset; };
  const std::uint64_t end_offset = kernel.code_bytes > ~std::uint64_t{0} - kernel.entry_offset
                                       ? ~std::uint64_t{0}
                                       : kernel.entry_offset + kernel.code_bytes;
  const auto first = std::lower_bound(decoded.begin(), decoded.end(), kernel.entry_offset, at);
  const auto last = std::lower_bound(first, decoded.end(), end_offset, at);
  if (first == last || first->offset != kernel.entry_offset) {
    reporter.about(FindingKind::kControlFlow, "the kernel's entry at text offset " +
                                                  std::to_string(kernel.entry_offset) +
                                                  " is not the start of a decoded instruction");
    return program;
  }
  program.nodes.reserve(static_cast<std::size_t>(last - first));
  program.spans.reserve(static_cast<std::size_t>(last - first) * 4);
  for (auto it = first; it != last; ++it) program.nodes.push_back(make_node(program, *it));

  std::vector<std::uint32_t> entries{0};
  // Firmware that preloads kernel arguments starts 256 bytes in (gfx950-isa.md 5.2).
  if ((kernel.preload & 0x7f) != 0) {
    const auto it = std::lower_bound(first, last, kernel.entry_offset + 256, at);
    if (it != last && it->offset == kernel.entry_offset + 256) {
      entries.push_back(static_cast<std::uint32_t>(it - first));
    } else {
      reporter.about(FindingKind::kControlFlow,
                     "kernel arguments are preloaded, but no instruction starts 256 bytes after the entry");
    }
  }
  GraphBuilder(program, reporter).run(entries);
  return program;
}

std::string cite(const Program& program, const Node& node) {
  return "`" + node.inst->text + "` at " + hex(program.offset(node));
}

}  // namespace zyfa::jit::verify
