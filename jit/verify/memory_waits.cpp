// Checks s_waitcnt: forward dataflow of the memory operations that may still be outstanding.
//
// Each operation keeps its age: how many younger operations of the same in-order counter have been issued since, at
// least, over all paths. `s_waitcnt vmcnt(n)` completes those of age n and more (gfx950-isa.md 3.5). Scalar loads and
// FLAT return out of order: only a wait for zero completes them, and they add to nobody's age.
#include <algorithm>

#include "jit/verify/constants.h"
#include "jit/verify/text.h"

namespace zyfa::jit::verify {
namespace {

enum class Queue : std::uint8_t { kNone, kVector, kLds, kScalar, kFlat };

constexpr std::uint8_t kVmMax = 63, kLgkmMax = 15;  // as a wait count these mean "no wait"
constexpr std::uint8_t kOldest = 64;

struct Operation {
  std::uint32_t node = 0;
  Queue queue = Queue::kNone;
  std::uint8_t age = 0;
  bool vm_open = false, lgkm_open = false;  // FLAT: which counter has not been waited for
  bool waited = false;                      // LDS-DMA only: complete, but no barrier has followed
  bool operator==(const Operation&) const = default;
};

struct State {
  std::vector<Operation> open;  // sorted by node
  RegSet pending;               // destinations of unfinished operations
  bool reached = false;
};

struct WaitCounts {
  std::uint8_t vm, lgkm;
};

WaitCounts wait_counts(std::uint16_t simm) {
  return {static_cast<std::uint8_t>((simm & 0xf) | ((simm >> 14) & 3) << 4),
          static_cast<std::uint8_t>((simm >> 8) & 0xf)};
}

Queue queue_of(const Decoded& d) {
  const std::string_view m = d.mnemonic;
  switch (d.facts.cls) {
    case FactClass::kLds:
      return m == "ds_nop" ? Queue::kNone : Queue::kLds;
    case FactClass::kSmem:
      return m.starts_with("s_dcache") ? Queue::kNone : Queue::kScalar;
    case FactClass::kFlat:
    case FactClass::kVmemLoad:
    case FactClass::kVmemStore:
    case FactClass::kVmemAtomic:
      // Invalidations do not count (LLVM getMUBUFIsBufferInv).
      if (m.starts_with("buffer_inv") || m.starts_with("buffer_wbinvl1")) return Queue::kNone;
      return m.starts_with("flat_") ? Queue::kFlat : Queue::kVector;
    default:
      return Queue::kNone;
  }
}

class WaitChecker {
 public:
  WaitChecker(const Program& program, Reporter& reporter) : program_(program), reporter_(reporter) {
    queues_.resize(program.nodes.size());
    bool dma = false;
    for (const Block& block : program.blocks) {
      for (std::uint32_t i = block.begin; i < block.end; ++i) {
        queues_[i] = queue_of(*program.nodes[i].inst);
        dma |= program.nodes[i].inst->facts.lds_dma;
      }
    }
    if (dma) ranges_ = known_lds_ranges(program);
    // A workgroup of one wave needs no barrier: the wait alone orders its LDS.
    single_wave_ = program.kernel->max_workgroup != 0 && program.kernel->max_workgroup <= 64;
  }

  void run() {
    std::vector<State> in(program_.blocks.size());
    std::vector<std::uint8_t> queued(program_.blocks.size());
    for (std::uint32_t e : program_.entries) in[e].reached = true;
    // Passes in reverse post-order until nothing changes: loops settle in two or three.
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t b : program_.order) {
        if (!in[b].reached || queued[b] == 2) continue;
        queued[b] = 2;
        State state = in[b];
        for (std::uint32_t i = program_.blocks[b].begin; i < program_.blocks[b].end; ++i) step(state, i);
        for (const Successor& s : program_.blocks[b].successors) {
          if (join(in[s.block], state)) {
            queued[s.block] = 0;
            changed = true;
          }
        }
      }
    }
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
      if (!in[b].reached) continue;
      State state = std::move(in[b]);
      for (std::uint32_t i = program_.blocks[b].begin; i < program_.blocks[b].end; ++i) {
        inspect(state, i);
        step(state, i);
      }
    }
  }

 private:
  [[nodiscard]] const Decoded& inst(std::uint32_t i) const { return *program_.nodes[i].inst; }

  void rebuild(State& state) const {
    state.pending.clear();
    for (const Operation& op : state.open) {
      if (!op.waited)
        for (RegSpan w : program_.writes(program_.nodes[op.node])) state.pending.add(w);
    }
  }

  bool join(State& into, const State& from) const {
    if (!into.reached) {
      into = from;
      into.reached = true;
      return true;
    }
    bool changed = false;
    for (const Operation& op : from.open) {
      const auto it = std::lower_bound(into.open.begin(), into.open.end(), op,
                                       [](const Operation& a, const Operation& b) { return a.node < b.node; });
      if (it == into.open.end() || it->node != op.node) {
        into.open.insert(it, op);
        changed = true;
        continue;
      }
      const Operation before = *it;
      it->age = std::min(it->age, op.age);
      it->vm_open |= op.vm_open;
      it->lgkm_open |= op.lgkm_open;
      it->waited &= op.waited;
      changed |= !(*it == before);
    }
    if (changed) rebuild(into);
    return changed;
  }

  void step(State& state, std::uint32_t i) const {
    const Decoded& d = inst(i);
    if (d.facts.cls == FactClass::kWaitcnt) {
      wait(state, wait_counts(d.facts.waitcnt));
    } else if (d.facts.cls == FactClass::kBarrier) {
      std::erase_if(state.open, [](const Operation& op) { return op.waited; });
    } else if (queues_[i] != Queue::kNone) {
      issue(state, i);
    }
  }

  void wait(State& state, WaitCounts counts) const {
    const std::size_t before = state.open.size();
    bool changed = false;
    for (Operation& op : state.open) {
      if (op.waited) continue;
      const bool vm = counts.vm != kVmMax && (op.queue == Queue::kFlat ? counts.vm == 0 : op.age >= counts.vm);
      const bool lgkm = counts.lgkm != kLgkmMax && (op.queue == Queue::kLds ? op.age >= counts.lgkm : counts.lgkm == 0);
      if (vm) op.vm_open = false;
      if (lgkm) op.lgkm_open = false;
      if (op.vm_open || op.lgkm_open) continue;
      changed = true;
      op.waited = true;
    }
    std::erase_if(state.open, [&](const Operation& op) {
      return op.waited && (single_wave_ || !inst(op.node).facts.lds_dma || !ranges_.dma.contains(op.node));
    });
    if (changed || state.open.size() != before) rebuild(state);
  }

  void issue(State& state, std::uint32_t i) const {
    const Queue queue = queues_[i];
    const bool in_order = queue == Queue::kVector || queue == Queue::kLds;
    if (in_order) {
      for (Operation& op : state.open)
        if (op.queue == queue && !op.waited) op.age = std::min<std::uint8_t>(kOldest, op.age + 1);
    }
    const Node& node = program_.nodes[i];
    // Without a result only the count matters, and ages carry that.
    if (node.write_count == 0 && !node.inst->facts.lds_dma) return;
    Operation op{i, queue, 0, queue == Queue::kVector || queue == Queue::kFlat, queue != Queue::kVector, false};
    const auto it = std::lower_bound(state.open.begin(), state.open.end(), op,
                                     [](const Operation& a, const Operation& b) { return a.node < b.node; });
    if (it != state.open.end() && it->node == i) {
      *it = op;
    } else {
      state.open.insert(it, op);
    }
    for (RegSpan w : program_.writes(node)) state.pending.add(w);
  }

  void inspect(const State& state, std::uint32_t i) {
    const Node& node = program_.nodes[i];
    const Decoded& d = *node.inst;
    if (d.facts.cls == FactClass::kEndpgm) {
      at_end(state, i);
      return;
    }
    if (!ranges_.dma.empty() && queues_[i] == Queue::kLds) lds_read(state, i);
    for (RegSpan r : program_.reads(node))
      if (state.pending.any(r)) conflict(state, i, r, "reads ");
    for (RegSpan w : program_.writes(node))
      if (state.pending.any(w)) conflict(state, i, w, "overwrites ");
  }

  // Results of one in-order queue arrive in order, so a later one may overwrite an earlier one unwaited, and the
  // half-register loads read their own destination only in that sense.
  [[nodiscard]] bool ordered_by_queue(std::uint32_t i, const Operation& op, RegSpan span, bool is_write) const {
    if (op.queue != queues_[i] || (op.queue != Queue::kVector && op.queue != Queue::kLds)) return false;
    if (is_write) return true;
    const auto writes = program_.writes(program_.nodes[i]);
    return inst(i).mnemonic.find("d16") != std::string::npos &&
           std::find(writes.begin(), writes.end(), span) != writes.end();
  }

  void conflict(const State& state, std::uint32_t i, RegSpan span, const char* verb) {
    for (const Operation& op : state.open) {
      if (op.waited) continue;
      const auto writes = program_.writes(program_.nodes[op.node]);
      const auto hit = std::find_if(writes.begin(), writes.end(), [&](RegSpan w) { return w.overlaps(span); });
      if (hit == writes.end() || ordered_by_queue(i, op, span, verb[0] == 'o')) continue;
      reporter_.at(FindingKind::kMissingWait, inst(i), i,
                   verb + span_name(span) + ", the result of " + cite(program_, program_.nodes[op.node]) +
                       ", not waited for on some path; " + needed(op) + " required");
    }
  }

  static std::string needed(const Operation& op) {
    switch (op.queue) {
      case Queue::kVector:
        return "s_waitcnt vmcnt(" + std::to_string(std::min<int>(op.age, kVmMax - 1)) + ") or less";
      case Queue::kLds:
        return "s_waitcnt lgkmcnt(" + std::to_string(std::min<int>(op.age, kLgkmMax - 1)) + ") or less";
      case Queue::kScalar:
        return "s_waitcnt lgkmcnt(0) (scalar loads return out of order)";
      case Queue::kFlat:
        return "s_waitcnt vmcnt(0) lgkmcnt(0) (FLAT)";
      case Queue::kNone:
        break;
    }
    return "s_waitcnt";
  }

  void at_end(const State& state, std::uint32_t i) {
    for (const Operation& op : state.open) {
      if (op.waited || !inst(op.node).facts.lds_dma) continue;
      reporter_.at(FindingKind::kBarrier, inst(i), i,
                   "the program may end while the direct-to-LDS load " + cite(program_, program_.nodes[op.node]) +
                       " is outstanding and its LDS already belongs to another workgroup; " + needed(op) + " required");
    }
  }

  void lds_read(const State& state, std::uint32_t i) {
    const auto read = ranges_.reads.find(i);
    if (read == ranges_.reads.end()) return;
    for (const Operation& op : state.open) {
      const auto dma = ranges_.dma.find(op.node);
      if (dma == ranges_.dma.end() || !dma->second.overlaps(read->second)) continue;
      const auto bytes = [](ByteRange r) { return "[" + std::to_string(r.begin) + ", " + std::to_string(r.end) + ")"; };
      reporter_.at(FindingKind::kBarrier, inst(i), i,
                   "reads LDS bytes " + bytes(read->second) + ", where " + cite(program_, program_.nodes[op.node]) +
                       " writes " + bytes(dma->second) + ", on some path " +
                       (op.waited ? "without an s_barrier after the s_waitcnt; s_barrier required"
                                  : "without waiting for it; " + needed(op) +
                                        (single_wave_ ? " required" : " and then s_barrier required")));
    }
  }

  const Program& program_;
  Reporter& reporter_;
  std::vector<Queue> queues_;
  LdsRanges ranges_;
  bool single_wave_ = false;
};

}  // namespace

void check_memory_waits(const Program& program, Reporter& reporter) { WaitChecker(program, reporter).run(); }

}  // namespace zyfa::jit::verify
