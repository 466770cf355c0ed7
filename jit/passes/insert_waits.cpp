// s_waitcnt insertion by forward dataflow (gfx950-isa.md 3.5).
//
// Every register and token that a memory instruction will fill carries an age on its counter: the number of events
// issued on that counter since. Waiting until at most `age` events are outstanding then means it has arrived. At a join
// the smaller age (the later issue) wins. vmcnt counts loads, stores and direct-to-LDS loads in order; lgkmcnt counts
// LDS instructions in order, but scalar loads arrive in any order, so while one is outstanding only lgkmcnt(0) will do.
#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>

#include "jit/isa/facts.h"
#include "jit/isa/op_info.h"
#include "jit/passes/cfg.h"
#include "jit/passes/passes.h"

namespace zyfa::jit {
namespace {

constexpr std::size_t kVgprBase = 0, kAgprBase = 256, kSgprBase = 512, kTokenBase = 512 + 128;
constexpr std::uint8_t kArrived = 255, kMaxAge = 254;
constexpr std::uint32_t kNoProducer = 0xffffffff;
// One below the largest count: correct whether or not a full counter stalls the issue of the next event.
constexpr std::int32_t kMaxVmWait = 62, kMaxLgkmWait = 14;
constexpr std::int32_t kNoWait = std::numeric_limits<std::int32_t>::max();

// What is outstanding on one counter.
class Counter {
 public:
  explicit Counter(std::size_t items) : stamp_(items, kLongAgo), producer_(items, kNoProducer) {}

  [[nodiscard]] bool pending(std::size_t item) const { return stamp_[item] > done_; }
  [[nodiscard]] std::int32_t age(std::size_t item) const { return now_ - stamp_[item]; }
  [[nodiscard]] std::uint32_t producer(std::size_t item) const { return producer_[item]; }

  void issue() { ++now_; }
  void mark(std::size_t item, std::uint32_t instruction) {
    stamp_[item] = now_;
    producer_[item] = instruction;
  }
  void wait(std::int32_t outstanding) { done_ = std::max(done_, now_ - outstanding); }

  // Ages and producers of a block boundary.
  struct Snapshot {
    std::vector<std::uint8_t> age;
    std::vector<std::uint32_t> producer;

    explicit Snapshot(std::size_t items) : age(items, kArrived), producer(items, kNoProducer) {}
  };

  void load(const Snapshot& from) {
    now_ = 0;
    done_ = kLongAgo;
    for (std::size_t i = 0; i < stamp_.size(); ++i) stamp_[i] = from.age[i] == kArrived ? kLongAgo : -from.age[i];
    producer_ = from.producer;
  }

  // Lowers the ages of `to` to this state's where it is younger; whether anything changed.
  bool join_into(Snapshot& to) const {
    bool changed = false;
    for (std::size_t i = 0; i < stamp_.size(); ++i) {
      if (!pending(i)) continue;
      const auto mine = static_cast<std::uint8_t>(std::min<std::int32_t>(age(i), kMaxAge));
      if (mine >= to.age[i]) continue;
      to.age[i] = mine;
      to.producer[i] = producer_[i];
      changed = true;
    }
    return changed;
  }

 private:
  static constexpr std::int32_t kLongAgo = -1000;

  std::vector<std::int32_t> stamp_;  // event number of the latest issue that fills the item
  std::vector<std::uint32_t> producer_;
  std::int32_t now_ = 0, done_ = kLongAgo;  // events issued; every event up to done_ has completed
};

struct Snapshot {
  Counter::Snapshot vm, lgkm;
  bool smem = false;
};

struct Need {
  std::int32_t vm = kNoWait, lgkm = kNoWait;
  [[nodiscard]] bool any() const { return vm != kNoWait || lgkm != kNoWait; }
};

// A wait to insert before instruction `before`.
struct Wait {
  std::uint32_t before;
  Need need;
  std::string reason;
};

class WaitAnalysis {
 public:
  WaitAnalysis(const Listing& listing, const Cfg& cfg)
      : listing_(listing), cfg_(cfg), items_(kTokenBase + number_tokens()), vm_(items_), lgkm_(items_) {
    facts_.reserve(listing.code.size());
    for (const Instruction& instruction : listing.code) facts_.push_back(facts_of(instruction));
  }

  // In listing order.
  std::vector<Wait> run() {
    solve();
    std::vector<Wait> waits;
    for (std::uint32_t b = 0; b < cfg_.blocks.size(); ++b) transfer(b, &waits);
    return waits;
  }

 private:
  std::size_t number_tokens() {
    for (const Instruction& instruction : listing_.code) {
      if (instruction.moves != 0) tokens_.emplace(instruction.moves, kTokenBase + tokens_.size());
    }
    return tokens_.size();
  }

  void solve() {
    in_.assign(cfg_.blocks.size(), {Counter::Snapshot(items_), Counter::Snapshot(items_)});
    std::vector<std::uint8_t> dirty(cfg_.blocks.size(), 1);
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t b = 0; b < cfg_.blocks.size(); ++b) {
        if (dirty[b] == 0) continue;
        dirty[b] = 0;
        transfer(b, nullptr);
        for (const std::uint32_t s : cfg_.blocks[b].successors) {
          bool changed = vm_.join_into(in_[s].vm);
          changed |= lgkm_.join_into(in_[s].lgkm);
          changed |= smem_ && !in_[s].smem;
          in_[s].smem = in_[s].smem || smem_;
          if (!changed) continue;
          dirty[s] = 1;
          again = true;
        }
      }
    }
  }

  // Runs a block from its entry state; with `waits` set, also records the waits it needs.
  void transfer(std::uint32_t b, std::vector<Wait>* waits) {
    vm_.load(in_[b].vm);
    lgkm_.load(in_[b].lgkm);
    smem_ = in_[b].smem;
    for (std::uint32_t i = cfg_.blocks[b].begin; i < cfg_.blocks[b].end; ++i) {
      const Instruction& instruction = listing_.code[i];
      if (instruction.op == Op::kSWaitcnt) {
        const std::uint16_t simm = facts_[i].waitcnt;
        const std::int32_t vm = (simm & 15) | (simm >> 14 & 3) << 4;
        const std::int32_t lgkm = simm >> 8 & 15;
        apply({vm == 63 ? kNoWait : vm, lgkm == 15 ? kNoWait : lgkm});
        continue;
      }
      const Need need = instruction.op == Op::kAwait ? need_of_tokens(instruction) : need_of_registers(i);
      if (need.any()) {
        if (waits != nullptr) waits->push_back({i, need, reason(i)});
        apply(need);
      }
      issue(i);
    }
  }

  static std::size_t item_of(const RegRange& range) {
    switch (range.bank) {
      case Bank::kVgpr:
        return kVgprBase + range.first;
      case Bank::kAgpr:
        return kAgprBase + range.first;
      default:
        return kSgprBase + range.first;
    }
  }

  void need_item(std::size_t item, bool vm, bool lgkm, Need& need) const {
    if (vm && vm_.pending(item)) need.vm = std::min({need.vm, vm_.age(item), kMaxVmWait});
    if (lgkm && lgkm_.pending(item)) {
      need.lgkm = smem_ ? 0 : std::min({need.lgkm, lgkm_.age(item), kMaxLgkmWait});
    }
  }

  // Calls f(range, vm, lgkm) for each register range whose outstanding result on that counter must arrive first.
  template <typename F>
  void each_dependence(std::uint32_t i, F&& f) const {
    const InstFacts& facts = facts_[i];
    for (const RegRange& range : facts.reads) {
      if (range.bank != Bank::kSpecial) f(range, true, true);
    }
    // A later result on the same in-order counter arrives later, so it may be issued over the earlier one.
    const bool vm_ordered = is_vmem(facts);
    const bool lgkm_ordered = facts.cls == FactClass::kLds;
    for (const RegRange& range : facts.writes) {
      if (range.bank != Bank::kSpecial) f(range, !vm_ordered, !lgkm_ordered);
    }
  }

  static bool is_vmem(const InstFacts& facts) {
    return facts.cls == FactClass::kVmemLoad || facts.cls == FactClass::kVmemStore ||
           facts.cls == FactClass::kVmemAtomic;
  }

  Need need_of_registers(std::uint32_t i) const {
    Need need;
    each_dependence(i, [&](const RegRange& range, bool vm, bool lgkm) {
      const std::size_t first = item_of(range);
      for (std::size_t item = first; item < first + range.count; ++item) need_item(item, vm, lgkm, need);
    });
    return need;
  }

  Need need_of_tokens(const Instruction& instruction) const {
    Need need;
    for (const Token token : instruction.awaits) {
      if (const auto it = tokens_.find(token); it != tokens_.end()) need_item(it->second, true, true, need);
    }
    return need;
  }

  void apply(const Need& need) {
    if (need.vm != kNoWait) vm_.wait(need.vm);
    if (need.lgkm == 0) smem_ = false;
    if (need.lgkm != kNoWait && !smem_) lgkm_.wait(need.lgkm);
  }

  void issue(std::uint32_t i) {
    const InstFacts& facts = facts_[i];
    const bool lgkm = facts.cls == FactClass::kLds || facts.cls == FactClass::kSmem;
    if (!lgkm && !is_vmem(facts)) return;
    Counter& counter = lgkm ? lgkm_ : vm_;
    counter.issue();
    if (facts.cls == FactClass::kSmem) smem_ = true;
    for (const RegRange& range : facts.writes) {
      if (range.bank == Bank::kSpecial) continue;
      const std::size_t first = item_of(range);
      for (std::size_t item = first; item < first + range.count; ++item) counter.mark(item, i);
    }
    if (const Token moves = listing_.code[i].moves; moves != 0) counter.mark(tokens_.at(moves), i);
  }

  // "v[12:15] (K tile 2), v3 (ds_read_b32) for qk@1#0"
  std::string reason(std::uint32_t i) const {
    const Instruction& instruction = listing_.code[i];
    std::string out;
    const auto name = [&](std::string_view what, std::uint32_t producer) {
      if (producer == kNoProducer) return;
      const Instruction& from = listing_.code[producer];
      std::string text(what);
      if (!text.empty()) text += ' ';
      text += "(" + (from.comment.empty() ? std::string(op_info(from.op).mnemonic) : from.comment) + ")";
      if (out.find(text) != std::string::npos) return;
      if (!out.empty()) out += ", ";
      out += text;
    };
    if (instruction.op == Op::kAwait && !instruction.comment.empty()) {
      out = instruction.comment;
    } else if (instruction.op == Op::kAwait) {
      for (const Token token : instruction.awaits) {
        if (const auto it = tokens_.find(token); it != tokens_.end()) name("", producer_of(it->second, true, true));
      }
    } else {
      each_dependence(i, [&](const RegRange& range, bool vm, bool lgkm) {
        const std::size_t first = item_of(range);
        for (std::size_t item = first; item < first + range.count; ++item) {
          const std::uint32_t producer = producer_of(item, vm, lgkm);
          if (producer != kNoProducer) name(to_string(Reg{range.bank, false, range.count, 0, range.first}), producer);
        }
      });
    }
    if (!instruction.origin.stage.empty()) out += " for " + instruction.origin.stage;
    return out;
  }

  std::uint32_t producer_of(std::size_t item, bool vm, bool lgkm) const {
    if (vm && vm_.pending(item)) return vm_.producer(item);
    if (lgkm && lgkm_.pending(item)) return lgkm_.producer(item);
    return kNoProducer;
  }

  const Listing& listing_;
  const Cfg& cfg_;
  std::unordered_map<Token, std::size_t> tokens_;
  std::size_t items_;
  Counter vm_, lgkm_;
  bool smem_ = false;
  std::vector<InstFacts> facts_;
  std::vector<Snapshot> in_;
};

// Writes the final code: drops kAwait, adds the waits, and merges waits that have nothing between them.
class WaitWriter {
 public:
  explicit WaitWriter(std::size_t size) { out_.reserve(size); }

  void instruction(Instruction instruction) {
    if (instruction.op == Op::kAwait) return;
    if (instruction.op == Op::kSWaitcnt) {
      const auto simm = static_cast<std::uint32_t>(std::get<Imm>(instruction.operands[0]).value);
      merge(static_cast<std::int32_t>((simm & 15) | (simm >> 14 & 3) << 4), static_cast<std::int32_t>(simm >> 4 & 7),
            static_cast<std::int32_t>(simm >> 8 & 15), instruction.comment, instruction.origin);
      return;
    }
    flush();
    out_.push_back(std::move(instruction));
  }

  void wait(const Wait& wait, const Origin& origin) {
    merge(std::min(wait.need.vm, 63), 7, std::min(wait.need.lgkm, 15), "wait: " + wait.reason, origin);
  }

  std::vector<Instruction> finish() {
    flush();
    return std::move(out_);
  }

 private:
  void merge(std::int32_t vm, std::int32_t exp, std::int32_t lgkm, const std::string& comment, const Origin& origin) {
    if (!open_) {
      open_ = true;
      vm_ = 63;
      exp_ = 7;
      lgkm_ = 15;
      comment_.clear();
    }
    vm_ = std::min(vm_, vm);
    exp_ = std::min(exp_, exp);
    lgkm_ = std::min(lgkm_, lgkm);
    if (!comment.empty()) comment_ += (comment_.empty() ? "" : "; ") + comment;
    origin_ = origin;
  }

  void flush() {
    if (!open_) return;
    open_ = false;
    const std::int32_t simm = (vm_ & 15) | (vm_ >> 4) << 14 | exp_ << 4 | lgkm_ << 8;
    Instruction wait{Op::kSWaitcnt, {Imm{simm}}, {}, {}, std::move(origin_), 0, {}};
    constexpr std::size_t kMnemonic = std::string_view("s_waitcnt ").size();
    wait.comment = std::move(comment_);
    if (!wait.comment.empty()) wait.comment += "; ";
    wait.comment += print(wait).substr(kMnemonic);
    out_.push_back(std::move(wait));
  }

  std::vector<Instruction> out_;
  bool open_ = false;
  std::int32_t vm_ = 63, exp_ = 7, lgkm_ = 15;
  std::string comment_;
  Origin origin_;
};

}  // namespace

Status insert_waits(Listing& listing) {
  const auto cfg = build_cfg(listing);
  if (!cfg) return tl::unexpected(cfg.error());
  const std::vector<Wait> waits = WaitAnalysis(listing, *cfg).run();
  WaitWriter writer(listing.code.size() + waits.size());
  auto next = waits.begin();
  for (std::uint32_t i = 0; i < listing.code.size(); ++i) {
    if (next != waits.end() && next->before == i) writer.wait(*next++, listing.code[i].origin);
    writer.instruction(std::move(listing.code[i]));
  }
  listing.code = writer.finish();
  return {};
}

}  // namespace zyfa::jit
