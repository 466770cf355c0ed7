// Checks wait states: from every consumer backward over all predecessors, as far as any rule reaches.
//
// An MFMA that rewrites registers of an earlier MFMA ends that one's claim on them: the matrix core executes in order
// and waits for its own results, so only the nearest writer counts (4.1, rows "same tuple" and "writes D again").
#include <algorithm>
#include <optional>

#include "jit/verify/hazard_rules.h"
#include "jit/verify/text.h"

namespace zyfa::jit::verify {
namespace {

struct Facet {  // what the rules need to know about one node
  Traits traits = 0;
  std::uint64_t as_producer = 0, as_consumer = 0;  // rules whose class condition it meets
  std::uint8_t reach = 0;                          // most wait states any of its producer rules asks for
};

constexpr std::uint16_t kVcc = flat_special(Special::kVcc), kExec = flat_special(Special::kExec),
                        kM0 = flat_special(Special::kM0);

class WaitStateChecker {
 public:
  WaitStateChecker(const Program& program, Reporter& reporter)
      : program_(program), reporter_(reporter), rules_(hazard_rules()), facets_(program.nodes.size()) {
    best_.resize(program.blocks.size());
    stamp_.assign(program.blocks.size(), 0);
    for (const Block& block : program.blocks) {
      for (std::uint32_t i = block.begin; i < block.end; ++i) {
        facets_[i] = facet_of(program.nodes[i]);
      }
    }
  }

  void run() {
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
      const Block& block = program_.blocks[b];
      for (std::uint32_t i = block.begin; i < block.end; ++i)
        if (facets_[i].as_consumer & all_producers_) look_back(b, i);
    }
    note_gaps();
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::uint32_t kManyVisits = 1000;
  // Results of MFMAs nearer to the consumer on one path, as a list that paths share.
  struct Rewritten {
    RegSpan span;
    std::uint32_t next;
  };
  struct Visit {
    std::uint32_t block, end, distance, rewritten;
  };

  // What this check leaves out.
  void note_gaps() {
    if (advised_ != 0) {
      reporter_.note(
          "not confirmed: MFMAs that accumulate on the result of one of another pass count sooner than AMD's "
          "guide states to work: " +
          std::to_string(advised_) + ", the first " + cite(program_, program_.nodes[first_advised_]) + " " + advice_);
    }
    if (cut_short_ != 0) {
      reporter_.note(
          "checked in part: instructions with so many paths before them that wait states were not counted "
          "on every one: " +
          std::to_string(cut_short_) + ", the first " + cite(program_, program_.nodes[first_cut_short_]));
    }
  }

  Facet facet_of(const Node& node) {
    Facet facet;
    facet.traits = traits_of(*node.inst);
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      const HazardRule& rule = rules_[r];
      if ((facet.traits & rule.producer) && !(facet.traits & rule.producer_not) && has_source(rule.source, node)) {
        facet.as_producer |= std::uint64_t{1} << r;
        facet.reach = std::max<std::uint8_t>(
            facet.reach, static_cast<std::uint8_t>(states_needed(rule, node.inst->facts.mfma_passes)));
      }
      if ((facet.traits & rule.consumer) && !(facet.traits & rule.consumer_not))
        facet.as_consumer |= std::uint64_t{1} << r;
    }
    all_producers_ |= facet.as_producer;
    max_reach_ = std::max<std::uint32_t>(max_reach_, facet.reach);
    return facet;
  }

  template <typename Keep>
  [[nodiscard]] bool writes_any(const Node& node, Keep keep) const {
    const auto w = program_.writes(node);
    return std::any_of(w.begin(), w.end(), keep);
  }

  [[nodiscard]] bool has_source(Source source, const Node& node) const {
    const auto writes = [&](std::uint16_t r) { return writes_any(node, [r](RegSpan s) { return s.first == r; }); };
    switch (source) {
      case Source::kVectorWritten:
        return writes_any(node, is_vector);
      case Source::kScalarWritten:
        return writes_any(node, [](RegSpan s) { return is_scalar(s) && s.first != kExec; });
      case Source::kVccWritten:
        return writes(kVcc);
      case Source::kExecWritten:
        return writes(kExec);
      case Source::kM0Written:
        return writes(kM0);
      case Source::kMfmaD:
        return node.inst->facts.mfma_d.count != 0;
      case Source::kMfmaC:
        return node.inst->facts.mfma_c.count != 0;
      default:
        return true;
    }
  }

  // Calls f(part) for what is left of `span` after nearer MFMAs rewrote some of it; stops when f returns true.
  template <typename F>
  bool each_left(RegSpan span, std::uint32_t rewritten, F f) const {
    for (; rewritten != kNone; rewritten = rewritten_[rewritten].next) {
      const RegSpan gone = rewritten_[rewritten].span;
      if (!gone.overlaps(span)) continue;
      const std::uint32_t next = rewritten_[rewritten].next, end = span.first + span.count;
      const std::uint32_t gone_end = gone.first + gone.count;
      const auto part = [](std::uint32_t a, std::uint32_t b) {
        return RegSpan{static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b - a)};
      };
      if (span.first < gone.first && each_left(part(span.first, gone.first), next, f)) return true;
      return gone_end < end && each_left(part(gone_end, end), next, f);
    }
    return f(span);
  }

  // The registers a rule watches, one call of `f` each; stops when f returns true.
  template <typename F>
  bool each_source(Source source, const Node& node, std::uint32_t rewritten, F f) const {
    const InstFacts& facts = node.inst->facts;
    switch (source) {
      case Source::kMfmaD:
        return each_left(flat(facts.mfma_d), rewritten, f);
      case Source::kMfmaC:
        return each_left(flat(facts.mfma_c), rewritten, f);
      case Source::kStoreData:
        return f(flat(facts.store_data));
      default:
        break;
    }
    for (RegSpan s : program_.writes(node)) {
      const bool watched = source == Source::kVectorWritten ? is_vector(s)
                           : source == Source::kExecWritten ? s.first == kExec
                                                            : is_scalar(s) && s.first != kExec;
      if (watched && f(s)) return true;
    }
    return false;
  }

  // C of an MFMA; a sparse MFMA accumulates in place.
  static RegSpan c_of(const InstFacts& facts) {
    return flat(facts.mfma_c.count == 0 && facts.cls == FactClass::kSmfmac ? facts.mfma_d : facts.mfma_c);
  }

  [[nodiscard]] std::optional<RegSpan> overlap(std::span<const RegSpan> spans, RegSpan with) const {
    for (RegSpan s : spans)
      if (s.overlaps(with)) return with.count > 1 ? s : with;
    return std::nullopt;
  }

  // A dot instruction that accumulates on the result of the same opcode is forwarded.
  [[nodiscard]] std::optional<RegSpan> dot_touch(const Node& producer, const Node& consumer, RegSpan result) const {
    if (consumer.inst->mnemonic != producer.inst->mnemonic) {
      const auto read = overlap(program_.reads(consumer), result);
      return read ? read : overlap(program_.writes(consumer), result);
    }
    const auto operands = operands_of(consumer.inst->text);
    for (std::size_t i = 1; i < std::min<std::size_t>(3, operands.size()); ++i) {
      const auto reg = parse_register(operands[i]);
      if (reg && reg->overlaps(result)) return result;
    }
    return std::nullopt;
  }

  // Registers through which the pair meets the rule; a span of count 0 when the rule needs none.
  [[nodiscard]] std::optional<RegSpan> meets(const HazardRule& rule, const Node& producer, const Node& consumer,
                                             std::uint32_t rewritten) const {
    if (rule.sink == Sink::kAnything) return RegSpan{};
    const InstFacts& facts = consumer.inst->facts;
    if (rule.sink == Sink::kSameHardwareRegister) {
      const auto a = parse_hwreg(producer.inst->text), b = parse_hwreg(consumer.inst->text);
      return a && b && a->name == b->name ? std::optional<RegSpan>(RegSpan{}) : std::nullopt;
    }
    std::optional<RegSpan> found;
    const RegSpan c = c_of(facts), d = flat(producer.inst->facts.mfma_d);
    each_source(rule.source, producer, rewritten, [&](RegSpan s) {
      switch (rule.sink) {
        case Sink::kReads:
          found = overlap(program_.reads(consumer), s);
          break;
        case Sink::kWrites:
          found = overlap(program_.writes(consumer), s);
          break;
        case Sink::kReadsAbOrScale:
          for (const RegRange* r : {&facts.mfma_a, &facts.mfma_b, &facts.mfma_scale_a, &facts.mfma_scale_b})
            if (r->count && flat(*r).overlaps(s)) found = flat(*r);
          if (facts.cls == FactClass::kSmfmac) found = found ? found : index_overlap(consumer, s);
          break;
        case Sink::kReadsSameC:
          if (c.overlaps(s) && c == d) found = c;
          break;
        case Sink::kReadsSameCUnequal:
          if (c.overlaps(s) && c == d && facts.mfma_passes != producer.inst->facts.mfma_passes) found = c;
          break;
        case Sink::kReadsOtherC:
          if (c.overlaps(s) && !(c == d)) found = c;
          break;
        case Sink::kLaneSelect:
          if (facts.lane_select.count && flat(facts.lane_select).overlaps(s)) found = s;
          break;
        case Sink::kDotTouches:
          found = dot_touch(producer, consumer, s);
          break;
        default:
          break;
      }
      return found.has_value();
    });
    return found;
  }

  // The index operand of a sparse MFMA: read, but none of A, B, C, D.
  [[nodiscard]] std::optional<RegSpan> index_overlap(const Node& consumer, RegSpan s) const {
    const InstFacts& facts = consumer.inst->facts;
    for (RegSpan r : program_.reads(consumer))
      if (r.overlaps(s) && !(r == flat(facts.mfma_d)) && !(r == c_of(facts))) return r;
    return std::nullopt;
  }

  void look_back(std::uint32_t block, std::uint32_t consumer) {
    ++walk_;
    worst_.clear();
    rewritten_.clear();
    visits_ = 0;
    work_.push_back({block, consumer, 0, kNone});
    while (!work_.empty()) {
      const Visit visit = work_.back();
      work_.pop_back();
      walk(visit, consumer);
    }
    for (const Hit& hit : worst_) report(hit, consumer);
    if (visits_ > kManyVisits && cut_short_++ == 0) first_cut_short_ = consumer;
  }

  void walk(Visit visit, std::uint32_t consumer) {
    const Block& block = program_.blocks[visit.block];
    std::uint32_t distance = visit.distance, rewritten = visit.rewritten;
    for (std::uint32_t p = visit.end; p-- > block.begin;) {
      const Facet& facet = facets_[p];
      if (distance < facet.reach && (facet.as_producer & facets_[consumer].as_consumer))
        compare(p, consumer, distance, rewritten);
      distance += program_.nodes[p].states;
      if (distance >= max_reach_) return;
      if (facet.traits & kAnyMfma) {
        rewritten_.push_back({flat(program_.nodes[p].inst->facts.mfma_d), rewritten});
        rewritten = static_cast<std::uint32_t>(rewritten_.size() - 1);
      }
    }
    for (std::uint32_t p : block.predecessors) {
      if (stamp_[p] == walk_ && best_[p].distance <= distance && covers(best_[p], rewritten)) continue;
      stamp_[p] = walk_;
      best_[p] = {distance, rewritten};
      work_.push_back({p, program_.blocks[p].end, distance, rewritten});
    }
  }

  struct Arrival {
    std::uint32_t distance = 0, rewritten = kNone;
  };

  // An earlier arrival with nothing rewritten sees at least as much. In a graph with very many paths any earlier
  // arrival has to do; note_gaps() says so.
  bool covers(const Arrival& before, std::uint32_t rewritten) {
    return before.rewritten == kNone || before.rewritten == rewritten || ++visits_ > kManyVisits;
  }

  struct Hit {
    std::uint32_t producer, distance, need;
    const HazardRule* rule;
    RegSpan reg;
  };

  void compare(std::uint32_t p, std::uint32_t consumer, std::uint32_t distance, std::uint32_t rewritten) {
    const Node& producer = program_.nodes[p];
    std::uint64_t rules = facets_[p].as_producer & facets_[consumer].as_consumer;
    for (; rules != 0; rules &= rules - 1) {
      const HazardRule& rule = rules_[static_cast<std::size_t>(__builtin_ctzll(rules))];
      const std::uint32_t need = states_needed(rule, producer.inst->facts.mfma_passes);
      if (distance >= need) continue;
      if (const auto reg = meets(rule, producer, program_.nodes[consumer], rewritten))
        keep({p, distance, need, &rule, *reg});
    }
  }

  // One finding a pair: the rule that asks most, on the shortest path; advice only where there is nothing else.
  void keep(const Hit& hit) {
    for (Hit& known : worst_) {
      if (known.producer != hit.producer) continue;
      const bool worse = hit.need > known.need || (hit.need == known.need && hit.distance < known.distance);
      if (hit.rule->is_advice != known.rule->is_advice ? known.rule->is_advice : worse) known = hit;
      return;
    }
    worst_.push_back(hit);
  }

  void advise(const Hit& hit, std::uint32_t consumer) {
    if (advised_++ != 0) return;
    first_advised_ = consumer;
    advice_ = std::to_string(hit.distance) + " wait states after " + cite(program_, program_.nodes[hit.producer]) +
              ", where " + std::to_string(hit.need) + " would be enough (" + std::string(hit.rule->name) + ")";
  }

  void report(const Hit& hit, std::uint32_t consumer) {
    if (hit.rule->is_advice) return advise(hit, consumer);
    const Node& producer = program_.nodes[hit.producer];
    std::string message = hit.reg.count == 0 ? "issued" : verb(hit.rule->sink) + (" " + span_name(hit.reg));
    message += " " + std::to_string(hit.distance) + " wait states after " + cite(program_, producer) + "; " +
               std::to_string(hit.need) + " required (" + std::string(hit.rule->name) + ")";
    reporter_.at(FindingKind::kWaitStates, *program_.nodes[consumer].inst, consumer, std::move(message));
  }

  static const char* verb(Sink sink) {
    return sink == Sink::kWrites ? "overwrites" : sink == Sink::kDotTouches ? "touches" : "reads";
  }

  const Program& program_;
  Reporter& reporter_;
  std::span<const HazardRule> rules_;
  std::vector<Facet> facets_;
  std::uint64_t all_producers_ = 0;
  std::uint32_t max_reach_ = 0;
  // How this walk last entered a block from below.
  std::vector<Arrival> best_;
  std::vector<std::uint32_t> stamp_;
  std::uint32_t walk_ = 0, visits_ = 0;
  std::uint32_t advised_ = 0, first_advised_ = 0;
  std::string advice_;
  std::uint32_t cut_short_ = 0, first_cut_short_ = 0;  // consumers
  std::vector<Rewritten> rewritten_;
  std::vector<Visit> work_;
  std::vector<Hit> worst_;
};

}  // namespace

void check_wait_states(const Program& program, Reporter& reporter) { WaitStateChecker(program, reporter).run(); }

}  // namespace zyfa::jit::verify
