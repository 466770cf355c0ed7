// s_nop insertion: for each instruction, looks back along every path as far as any hazard reaches, and adds the wait
// states that are missing. States inserted further on in a loop are not yet known when its head is treated, so a path
// round a back edge counts without them: too many states at worst, never too few.
#include <algorithm>
#include <string>

#include "jit/isa/facts.h"
#include "jit/isa/hazards.h"
#include "jit/isa/op_info.h"
#include "jit/passes/cfg.h"
#include "jit/passes/passes.h"

namespace zyfa::jit {
namespace {

constexpr std::uint32_t kMaxNop = 16;  // states of one s_nop (gfx950-isa.md 3.5)

// What an instruction lacks.
struct Missing {
  std::uint32_t states = 0;
  std::uint32_t producer = 0;
  Hazard hazard;
};

class StateCounter {
 public:
  StateCounter(const Listing& listing, const Cfg& cfg)
      : cfg_(cfg), before_(listing.code.size(), 0), seen_(cfg.blocks.size(), 0xffffffff) {
    facts_.reserve(listing.code.size());
    reach_.reserve(listing.code.size());
    for (const Instruction& instruction : listing.code) {
      facts_.push_back(facts_of(instruction));
      reach_.push_back(max_wait_states(facts_.back()));
      longest_ = std::max<std::uint32_t>(longest_, reach_.back());
    }
  }

  // What instruction i of block b lacks, given the states already inserted; remembers them.
  Missing visit(std::uint32_t b, std::uint32_t i) {
    Missing missing;
    if (facts_[i].nop_states == 0) return missing;
    look_back(b, i, cfg_.blocks[b].begin, i, 0, missing);
    for (const std::uint32_t block : touched_) seen_[block] = 0xffffffff;
    touched_.clear();
    before_[i] = missing.states;
    return missing;
  }

 private:
  // Treats the instructions [begin, end) of block b as producers, the last of them `distance` states away from i.
  void look_back(std::uint32_t b, std::uint32_t end, std::uint32_t begin, std::uint32_t i, std::uint32_t distance,
                 Missing& missing) {
    for (std::uint32_t j = end; j-- > begin;) {
      if (reach_[j] > distance) {
        const Hazard hazard = wait_states_required(facts_[j], facts_[i]);
        if (hazard.states > distance && hazard.states - distance > missing.states) {
          missing = {hazard.states - distance, j, hazard};
        }
      }
      distance += facts_[j].nop_states + before_[j];
      if (distance >= longest_) return;
    }
    for (const std::uint32_t p : cfg_.blocks[b].predecessors) {
      if (seen_[p] <= distance) continue;
      if (seen_[p] == 0xffffffff) touched_.push_back(p);
      seen_[p] = distance;
      look_back(p, cfg_.blocks[p].end, cfg_.blocks[p].begin, i, distance, missing);
    }
  }

  const Cfg& cfg_;
  std::vector<InstFacts> facts_;
  std::vector<std::uint8_t> reach_;  // farthest any consumer of the instruction must stay away
  std::uint32_t longest_ = 0;
  std::vector<std::uint32_t> before_;  // states inserted before each instruction
  std::vector<std::uint32_t> seen_, touched_;
};

std::string comment_of(const Listing& listing, const Missing& missing) {
  return "hazard: " + std::string(missing.hazard.rule) + ", " + std::to_string(missing.hazard.states) +
         " wait states after " + std::string(op_info(listing.code[missing.producer].op).mnemonic);
}

void append_nops(std::vector<Instruction>& out, const Missing& missing, const std::string& comment,
                 const Origin& origin) {
  for (std::uint32_t left = missing.states; left > 0;) {
    const std::uint32_t states = std::min(left, kMaxNop);
    out.push_back({Op::kSNop, {Imm{static_cast<std::int32_t>(states - 1)}}, {}, comment, origin, 0, {}});
    left -= states;
  }
}

}  // namespace

Status insert_wait_states(Listing& listing) {
  const auto cfg = build_cfg(listing);
  if (!cfg) return tl::unexpected(cfg.error());
  StateCounter counter(listing, *cfg);
  std::vector<std::pair<std::uint32_t, Missing>> insertions;
  for (std::uint32_t b = 0; b < cfg->blocks.size(); ++b) {
    for (std::uint32_t i = cfg->blocks[b].begin; i < cfg->blocks[b].end; ++i) {
      if (const Missing missing = counter.visit(b, i); missing.states != 0) insertions.emplace_back(i, missing);
    }
  }
  std::vector<std::string> comments;
  comments.reserve(insertions.size());
  for (const auto& [i, missing] : insertions) comments.push_back(comment_of(listing, missing));

  std::vector<Instruction> out;
  out.reserve(listing.code.size() + 2 * insertions.size());
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < listing.code.size(); ++i) {
    if (next < insertions.size() && insertions[next].first == i) {
      append_nops(out, insertions[next].second, comments[next], listing.code[i].origin);
      ++next;
    }
    out.push_back(std::move(listing.code[i]));
  }
  listing.code = std::move(out);
  return {};
}

}  // namespace zyfa::jit
