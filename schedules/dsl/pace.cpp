#include "schedules/dsl/pace.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "jit/isa/op_info.h"

namespace zyfa::schedules {
namespace {

using jit::Instruction;
using jit::Unit;

// Instructions of a stream that stay together.
struct Run {
  std::vector<Instruction> code;
  double turns = 0;     // that it issues in, without what its branches skip
  double passes = 0;    // of the matrix pipe
  bool vector = false;  // takes the VALU port, which an MFMA before it holds
};

bool is_vector(const Instruction& instruction) {
  const Unit unit = jit::op_info(instruction.op).unit;
  return unit == Unit::kValu || unit == Unit::kTrans || unit == Unit::kMfma;
}

// What forward branches can skip counts for nothing: softmax stages branch around what is rare.
std::vector<bool> skippable(const std::vector<Instruction>& code) {
  std::vector<bool> skips(code.size(), false);
  std::map<std::uint32_t, std::size_t> branches;  // label -> first branch to it
  for (std::size_t i = 0; i < code.size(); ++i) {
    const jit::Label* label = jit::label_of(code[i]);
    if (label == nullptr) continue;
    const auto [branch, is_new] = branches.emplace(label->id, i);
    if (is_new || code[i].op != jit::Op::kLabel) continue;
    std::fill(skips.begin() + static_cast<std::ptrdiff_t>(branch->second + 1),
              skips.begin() + static_cast<std::ptrdiff_t>(i), true);
  }
  return skips;
}

void measure(Run& run) {
  constexpr double kTransTurns = 2;
  const std::vector<bool> skips = skippable(run.code);
  for (std::size_t i = 0; i < run.code.size(); ++i) {
    const jit::OpInfo& info = jit::op_info(run.code[i].op);
    run.passes += info.mfma_passes;
    if (skips[i]) continue;
    run.vector = run.vector || is_vector(run.code[i]);
    if (info.unit != Unit::kPseudo) run.turns += info.unit == Unit::kTrans ? kTransTurns : 1;
  }
}

struct Paced {
  std::vector<Run> runs;
  std::size_t next = 0;
  double done = 0, total = 0;  // turns; of the leader passes

  [[nodiscard]] bool ended() const { return next == runs.size(); }
  [[nodiscard]] double share() const { return total == 0 ? 0 : done / total; }
};

Paced runs_of(std::vector<Instruction> code, bool leads) {
  const std::vector<std::uint8_t> glued = glued_to_next(code);
  Paced stream;
  bool together = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (!together) stream.runs.emplace_back();
    together = glued[i] != 0;
    stream.runs.back().code.push_back(std::move(code[i]));
  }
  for (Run& run : stream.runs) {
    measure(run);
    stream.total += leads ? run.passes : run.turns;
  }
  return stream;
}

class Merger {
 public:
  explicit Merger(std::vector<WeightedCode> streams) {
    for (std::size_t s = 0; s < streams.size(); ++s) {
      weights_.push_back(streams[s].weight);
      streams_.push_back(runs_of(std::move(streams[s].code), s == 0));
    }
  }

  std::vector<Instruction> merge() {
    Paced& leader = streams_.front();
    while (!leader.ended()) {
      const double passes = leader.runs[leader.next].passes;
      take(leader, passes);
      if (passes == 0) continue;
      // What the VALU port is not needed for goes first.
      follow(leader.share(), false);
      follow(leader.share(), true);
    }
    for (std::size_t s = 1; s < streams_.size(); ++s) {
      while (!streams_[s].ended()) take(streams_[s], 0);
    }
    return std::move(merged_);
  }

 private:
  void take(Paced& stream, double worth) {
    Run& run = stream.runs[stream.next++];
    stream.done += worth;
    std::move(run.code.begin(), run.code.end(), std::back_inserter(merged_));
  }

  // Everything that is due when `share` of the matrix cycles is over; of vector runs or of the others.
  void follow(double share, bool vector) {
    for (std::size_t s = 1; s < streams_.size(); ++s) {
      Paced& stream = streams_[s];
      while (!stream.ended() && (vector || !stream.runs[stream.next].vector)) {
        const double turns = stream.runs[stream.next].turns;
        if (stream.done + turns / 2 > share * weights_[s] * stream.total) break;
        take(stream, turns);
      }
    }
  }

  std::vector<Paced> streams_;
  std::vector<double> weights_;
  std::vector<Instruction> merged_;
};

}  // namespace

std::vector<Instruction> pace(std::vector<WeightedCode> streams) {
  if (streams.size() == 1) return std::move(streams.front().code);
  return Merger(std::move(streams)).merge();
}

}  // namespace zyfa::schedules
