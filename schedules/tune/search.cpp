#include "schedules/tune/search.h"

#include <set>
#include <utility>

#include "schedules/dsl/algorithm.h"
#include "schedules/dsl/plan.h"
#include "schedules/tune/moves.h"

namespace zyfa::schedules {
namespace {

constexpr int kLeastKicks = 2, kMostKicks = 5;
constexpr int kMostSideways = 10;
constexpr int kKickAttempts = 200;  // draws until a random step is legal

// splitmix64 (public domain algorithm): the same walk on every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // Below `bound`, which is not 0.
  std::size_t below(std::size_t bound) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return static_cast<std::size_t>((x ^ (x >> 31)) % bound);
  }

 private:
  std::uint64_t state_;
};

struct Candidate {
  Placement placement;
  Trial trial;
};

class Search {
 public:
  Search(const Algorithm& algorithm, const SearchOptions& options, const SearchCalls& calls)
      : algorithm_(algorithm), options_(options), calls_(calls), random_(options.seed) {}

  Expected<Found> run(const std::vector<Placement>& starts) {
    if (Status status = begin(starts); !status) return tl::unexpected(std::move(status.error()));
    Candidate current = *best_;
    while (!over()) {
      Expected<std::optional<Candidate>> next = better_neighbour(current);
      if (!next) return tl::unexpected(std::move(next.error()));
      if (!*next) next = kicked();
      if (!next) return tl::unexpected(std::move(next.error()));
      if (!*next) break;  // nowhere to go
      current = std::move(**next);
    }
    return Found{best_->placement, best_->trial, trials_};
  }

 private:
  Status begin(const std::vector<Placement>& starts) {
    if (starts.empty()) return make_error(ErrorCode::kInvalidArgument, "no placement to start from");
    std::vector<std::string> reasons;
    for (const Placement& start : starts) {
      if (Expected<Plan> plan = make_plan(algorithm_, start); !plan) return tl::unexpected(std::move(plan.error()));
      if (!seen_.insert(unparse(start)).second) continue;
      Expected<Trial> trial = attempt("start", start);
      if (!trial) return tl::unexpected(std::move(trial.error()));
      if (!trial->cost) reasons.push_back(start.name + ": " + trial->why);
    }
    if (best_) return {};
    return make_error(ErrorCode::kInvalidArgument, "no placement to start from is of use", std::move(reasons));
  }

  Expected<Trial> attempt(const std::string& change, const Placement& placement) {
    Expected<Trial> trial = calls_.try_out(placement);
    if (!trial) return trial;
    ++trials_;
    const bool best = trial->cost && (!best_ || trial->better_than(best_->trial));
    if (best) best_ = Candidate{placement, *trial};
    if (calls_.step) ended_ = !calls_.step({trials_, change, placement, *trial, best});
    return trial;
  }

  [[nodiscard]] bool over() const { return ended_ || trials_ >= options_.trials; }

  [[nodiscard]] bool legal(const Placement& placement) const { return make_plan(algorithm_, placement).has_value(); }

  void shuffle(std::vector<Move>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random_.below(i)]);
  }

  // The first in random order that is better; else the first that is as good, some times in a row: what needs two steps
  // (a copy more, and then the use of it) costs the same in between. Nothing when there is none or no trial is left.
  Expected<std::optional<Candidate>> better_neighbour(const Candidate& current) {
    std::vector<Move> list = moves(algorithm_, current.placement);
    shuffle(list);
    std::optional<Candidate> equal;
    for (Move& move : list) {
      if (over()) break;
      if (!seen_.insert(unparse(move.placement)).second || !legal(move.placement)) continue;
      Expected<Trial> trial = attempt(move.change, move.placement);
      if (!trial) return tl::unexpected(std::move(trial.error()));
      if (trial->better_than(current.trial)) {
        sideways_ = 0;
        return Candidate{std::move(move.placement), std::move(*trial)};
      }
      if (!equal && trial->cost && !current.trial.better_than(*trial)) {
        equal = Candidate{std::move(move.placement), std::move(*trial)};
      }
    }
    if (sideways_ == kMostSideways) equal.reset();
    sideways_ = equal ? sideways_ + 1 : 0;
    return equal;
  }

  // Some legal steps away from the best, to a placement not seen before that is of use.
  Expected<std::optional<Candidate>> kicked() {
    for (int attempts = 0; attempts < kKickAttempts && !over(); ++attempts) {
      Placement placement = best_->placement;
      std::string change = "from the best:";
      const auto kicks = kLeastKicks + static_cast<int>(random_.below(kMostKicks - kLeastKicks + 1));
      for (int kick = 0; kick < kicks; ++kick) {
        std::vector<Move> list = moves(algorithm_, placement);
        shuffle(list);
        for (Move& move : list) {
          if (!legal(move.placement)) continue;
          change += " " + move.change + ";";
          placement = std::move(move.placement);
          break;
        }
      }
      if (!seen_.insert(unparse(placement)).second) continue;
      Expected<Trial> trial = attempt(change, placement);
      if (!trial) return tl::unexpected(std::move(trial.error()));
      if (trial->cost) return Candidate{std::move(placement), std::move(*trial)};
    }
    return std::nullopt;
  }

  const Algorithm& algorithm_;
  const SearchOptions& options_;
  const SearchCalls& calls_;
  Random random_;
  std::set<std::string> seen_;
  std::optional<Candidate> best_;
  std::uint64_t trials_ = 0;
  bool ended_ = false;  // by the caller
  int sideways_ = 0;    // steps in a row that gained nothing
};

}  // namespace

bool Trial::better_than(const Trial& other) const {
  if (!cost) return false;
  if (!other.cost || *cost != *other.cost) return !other.cost || *cost < *other.cost;
  return tie_break < other.tie_break;
}

Expected<Found> search(const Algorithm& algorithm, const std::vector<Placement>& starts, const SearchOptions& options,
                       const SearchCalls& calls) {
  return Search(algorithm, options, calls).run(starts);
}

}  // namespace zyfa::schedules
