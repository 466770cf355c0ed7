// Dataflow for live ranges: definedness forward (union over paths), then liveness backward, both by 32-bit register.
#include "jit/passes/liveness.h"

#include <algorithm>

#include "jit/isa/op_info.h"

namespace zyfa::jit {
namespace {

// Fixed-size bit set over the 32-bit registers of all tuples.
class BitSet {
 public:
  explicit BitSet(std::size_t bits) : words_((bits + 63) / 64) {}

  [[nodiscard]] bool test(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void clear(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }

  // this |= other; whether anything changed.
  bool merge(const BitSet& other) {
    std::uint64_t changed = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      changed |= other.words_[w] & ~words_[w];
      words_[w] |= other.words_[w];
    }
    return changed != 0;
  }
  // this |= a & ~b; whether anything changed.
  bool merge_without(const BitSet& a, const BitSet& b) {
    std::uint64_t changed = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::uint64_t add = a.words_[w] & ~b.words_[w];
      changed |= add & ~words_[w];
      words_[w] |= add;
    }
    return changed != 0;
  }
  void intersect_with(const BitSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  }

 private:
  std::vector<std::uint64_t> words_;
};

struct Access {
  std::uint32_t tuple, first, count;  // first: index of the first register among all tuples' registers
  bool def, use;
  bool kills = true;
};

bool writes_exec(const Instruction& instruction, const OpInfo& info) {
  if ((info.implicit_writes >> static_cast<unsigned>(Special::kExec) & 1) != 0) return true;
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const Reg* reg = std::get_if<Reg>(&instruction.operands[i]);
    if (reg != nullptr && info.operands[i].role != Role::kUse && *reg == exec()) return true;
  }
  return false;
}

bool fills_exec(const Instruction& instruction) {
  return instruction.op == Op::kSMovB64 && instruction.operands[1] == Operand{Imm{-1}};
}

class Analysis {
 public:
  Analysis(const Listing& listing, const Cfg& cfg) : listing_(listing), cfg_(cfg) {
    for (std::uint32_t id = 0; id < listing.regs.size(); ++id) {
      base_.push_back(registers_);
      registers_ += listing.regs.at(id).count;
    }
    out_.ranges.resize(listing.regs.size());
    out_.first_mentions.assign(listing.regs.size(), 0xffffffff);
    collect();
  }

  Expected<Liveness> run() {
    definedness();
    exec_state();
    for (std::uint32_t b = 0; b < cfg_.blocks.size(); ++b) {
      if (Status s = resolve_kills(b); !s) return tl::unexpected(s.error());
    }
    liveness();
    live_.assign(registers_, 0);
    live_count_.assign(listing_.regs.size(), 0);
    open_end_.assign(listing_.regs.size(), 0);
    for (std::uint32_t b = 0; b < cfg_.blocks.size(); ++b) segments(b);
    for (LiveRange& range : out_.ranges) normalise(range);
    return std::move(out_);
  }

 private:
  void collect() {
    starts_.reserve(listing_.code.size() + 1);
    for (std::uint32_t i = 0; i < listing_.code.size(); ++i) {
      starts_.push_back(static_cast<std::uint32_t>(accesses_.size()));
      const Instruction& instruction = listing_.code[i];
      const OpInfo& info = op_info(instruction.op);
      for (std::size_t k = 0; k < instruction.operands.size(); ++k) {
        const Reg* reg = std::get_if<Reg>(&instruction.operands[k]);
        if (reg == nullptr || !reg->is_virtual || reg->count == 0) continue;
        const Role role = info.operands[k].role;
        accesses_.push_back({reg->id, base_[reg->id] + reg->first, reg->count, role != Role::kUse, role != Role::kDef});
        out_.first_mentions[reg->id] = std::min(out_.first_mentions[reg->id], i);
      }
    }
    starts_.push_back(static_cast<std::uint32_t>(accesses_.size()));
  }

  template <typename F>
  void each_access(std::uint32_t i, F&& f) {
    for (std::uint32_t a = starts_[i]; a < starts_[i + 1]; ++a) f(accesses_[a]);
  }

  // Registers that some path to the block defines.
  void definedness() {
    std::vector<BitSet> gen(cfg_.blocks.size(), BitSet(registers_));
    defined_in_.assign(cfg_.blocks.size(), BitSet(registers_));
    for (std::uint32_t b = 0; b < cfg_.blocks.size(); ++b) {
      for (std::uint32_t i = cfg_.blocks[b].begin; i < cfg_.blocks[b].end; ++i) {
        each_access(i, [&](const Access& a) {
          if (!a.def) return;
          for (std::uint32_t r = a.first; r < a.first + a.count; ++r) gen[b].set(r);
        });
      }
    }
    for (std::uint32_t id = 0; id < listing_.regs.size() && !cfg_.blocks.empty(); ++id) {
      if (listing_.regs.at(id).pinned < 0) continue;
      for (std::uint32_t r = 0; r < listing_.regs.at(id).count; ++r) defined_in_[0].set(base_[id] + r);
    }
    reachable_.assign(cfg_.blocks.size(), 0);
    if (!cfg_.blocks.empty()) reachable_[0] = 1;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t b = 0; b < cfg_.blocks.size(); ++b) {
        if (reachable_[b] == 0) continue;
        for (const std::uint32_t s : cfg_.blocks[b].successors) {
          changed |= reachable_[s] == 0;
          reachable_[s] = 1;
          changed |= defined_in_[s].merge(defined_in_[b]);
          changed |= defined_in_[s].merge(gen[b]);
        }
      }
    }
  }

  // Whether EXEC may mask lanes at each block's entry; a kernel starts with all lanes.
  void exec_state() {
    exec_partial_in_.assign(cfg_.blocks.size(), 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t b = 0; b < cfg_.blocks.size(); ++b) {
        bool partial = exec_partial_in_[b] != 0;
        for (std::uint32_t i = cfg_.blocks[b].begin; i < cfg_.blocks[b].end; ++i) partial = partial_after(i, partial);
        for (const std::uint32_t s : cfg_.blocks[b].successors) {
          if (!partial || exec_partial_in_[s] != 0) continue;
          exec_partial_in_[s] = 1;
          changed = true;
        }
      }
    }
  }

  bool partial_after(std::uint32_t i, bool before) const {
    const Instruction& instruction = listing_.code[i];
    return writes_exec(instruction, op_info(instruction.op)) ? !fills_exec(instruction) : before;
  }

  // Checks every read for a definition. A vector write under a partial EXEC leaves the other lanes as they were, so it
  // ends no live range, unless nothing was there before.
  Status resolve_kills(std::uint32_t b) {
    BitSet defined = defined_in_[b];
    bool partial = exec_partial_in_[b] != 0;
    for (std::uint32_t i = cfg_.blocks[b].begin; i < cfg_.blocks[b].end; ++i) {
      const Instruction& instruction = listing_.code[i];
      const bool masked = partial && op_info(instruction.op).unit != Unit::kMfma;
      Status status;
      each_access(i, [&](const Access& a) {
        if (!a.use) return;
        for (std::uint32_t r = a.first; r < a.first + a.count; ++r) {
          if (!defined.test(r) && reachable_[b] != 0 && status) status = undefined(i, a, r);
        }
      });
      if (!status) return status;
      each_access(i, [&](Access& a) {
        if (!a.def) return;
        bool fresh = true;
        for (std::uint32_t r = a.first; r < a.first + a.count; ++r) {
          fresh = fresh && !defined.test(r);
          defined.set(r);
        }
        a.kills = !masked || fresh || listing_.regs.at(a.tuple).bank == Bank::kSgpr;
      });
      partial = partial_after(i, partial);
    }
    return {};
  }

  Status undefined(std::uint32_t i, const Access& a, std::uint32_t r) const {
    const Instruction& instruction = listing_.code[i];
    const RegTable::Tuple& tuple = listing_.regs.at(a.tuple);
    const Reg part{tuple.bank, true, 1, static_cast<std::uint16_t>(r - base_[a.tuple]), a.tuple};
    std::vector<std::string> details;
    if (std::string origin = to_string(instruction.origin); !origin.empty()) details.push_back("emitted by " + origin);
    return make_error(ErrorCode::kCompileError,
                      "`" + print(instruction, listing_.regs) + "` (instruction " + std::to_string(i) + ") reads " +
                          listing_.regs.name(part) + ", which no path defines",
                      std::move(details));
  }

  void liveness() {
    const std::size_t n = cfg_.blocks.size();
    std::vector<BitSet> killed(n, BitSet(registers_)), live_in(n, BitSet(registers_));
    live_out_.assign(n, BitSet(registers_));
    for (std::uint32_t b = 0; b < n; ++b) {
      for (std::uint32_t i = cfg_.blocks[b].end; i-- > cfg_.blocks[b].begin;) {
        each_access(i, [&](const Access& a) {
          if (!a.def || !a.kills) return;
          for (std::uint32_t r = a.first; r < a.first + a.count; ++r) {
            killed[b].set(r);
            live_in[b].clear(r);
          }
        });
        each_access(i, [&](const Access& a) {
          if (!a.use) return;
          for (std::uint32_t r = a.first; r < a.first + a.count; ++r) live_in[b].set(r);
        });
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t b = static_cast<std::uint32_t>(n); b-- > 0;) {
        for (const std::uint32_t s : cfg_.blocks[b].successors) live_out_[b].merge(live_in[s]);
        changed |= live_in[b].merge_without(live_out_[b], killed[b]);
      }
    }
    // A register that no path has defined yet holds nothing worth keeping.
    for (std::uint32_t b = 0; b < n; ++b) {
      BitSet defined = defined_in_[b];
      for (std::uint32_t i = cfg_.blocks[b].begin; i < cfg_.blocks[b].end; ++i) {
        each_access(i, [&](const Access& a) {
          if (!a.def) return;
          for (std::uint32_t r = a.first; r < a.first + a.count; ++r) defined.set(r);
        });
      }
      live_out_[b].intersect_with(defined);
    }
  }

  void add(std::uint32_t tuple, std::uint32_t begin, std::uint32_t end) { out_.ranges[tuple].push_back({begin, end}); }

  // Walks a block backward and records each tuple's segments in it.
  void segments(std::uint32_t b) {
    const Block& block = cfg_.blocks[b];
    for (std::uint32_t id = 0; id < listing_.regs.size(); ++id) {
      live_count_[id] = 0;
      for (std::uint32_t r = base_[id]; r < base_[id] + listing_.regs.at(id).count; ++r) {
        live_[r] = live_out_[b].test(r) ? 1 : 0;
        live_count_[id] += live_[r];
      }
      open_end_[id] = 2 * block.end;
    }
    for (std::uint32_t i = block.end; i-- > block.begin;) {
      const bool early = writes_early(listing_.code[i]);
      each_access(i, [&](const Access& a) {
        if (a.def) define(a, i, early);
      });
      each_access(i, [&](const Access& a) {
        if (a.use) use(a, i);
      });
    }
    for (std::uint32_t id = 0; id < listing_.regs.size(); ++id) {
      if (live_count_[id] != 0) add(id, 2 * block.begin, open_end_[id]);
    }
  }

  // MFMA results must not share registers with A or B that die there. A scalar load may be replayed after part of its
  // result has arrived when XNACK is on, so its address must survive.
  static bool writes_early(const Instruction& instruction) {
    const Unit unit = op_info(instruction.op).unit;
    return unit == Unit::kMfma || unit == Unit::kSmem;
  }

  void define(const Access& a, std::uint32_t i, bool early) {
    const std::uint32_t begin = early ? 2 * i : 2 * i + 1;
    if (live_count_[a.tuple] == 0) {  // a result nobody reads still needs its register for the moment
      add(a.tuple, begin, 2 * i + 2);
      return;
    }
    if (!a.kills) return;
    for (std::uint32_t r = a.first; r < a.first + a.count; ++r) {
      live_count_[a.tuple] -= live_[r];
      live_[r] = 0;
    }
    if (live_count_[a.tuple] == 0) add(a.tuple, begin, open_end_[a.tuple]);
  }

  void use(const Access& a, std::uint32_t i) {
    if (live_count_[a.tuple] == 0) open_end_[a.tuple] = 2 * i + 1;
    for (std::uint32_t r = a.first; r < a.first + a.count; ++r) {
      live_count_[a.tuple] += 1 - live_[r];
      live_[r] = 1;
    }
  }

  static void normalise(LiveRange& range) {
    std::sort(range.begin(), range.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
    std::size_t kept = 0;
    for (const Segment& s : range) {
      if (kept != 0 && s.begin <= range[kept - 1].end) {
        range[kept - 1].end = std::max(range[kept - 1].end, s.end);
      } else {
        range[kept++] = s;
      }
    }
    range.resize(kept);
  }

  const Listing& listing_;
  const Cfg& cfg_;
  std::uint32_t registers_ = 0;
  std::vector<std::uint32_t> base_;  // by tuple: its first register among all
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> starts_;  // by instruction: its first access
  std::vector<BitSet> defined_in_, live_out_;
  std::vector<std::uint8_t> reachable_, exec_partial_in_;
  std::vector<std::uint8_t> live_;
  std::vector<std::uint32_t> live_count_, open_end_;
  Liveness out_;
};

}  // namespace

bool intersect(const LiveRange& a, const LiveRange& b) {
  if (a.empty() || b.empty() || a.back().end <= b.front().begin || b.back().end <= a.front().begin) return false;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].begin < b[j].end && b[j].begin < a[i].end) return true;
    if (a[i].end <= b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return false;
}

Expected<Liveness> analyse_liveness(const Listing& listing, const Cfg& cfg) { return Analysis(listing, cfg).run(); }

}  // namespace zyfa::jit
