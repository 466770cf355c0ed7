#include "schedules/tune/search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

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
  std::shared_ptr<const std::vector<Algorithm>> algorithms;
  Trial trial = {};
};

class Search {
 public:
  Search(const SearchOptions& options, const SearchCalls& calls)
      : options_(options), calls_(calls), random_(options.seed) {}

  Expected<Found> run(const std::vector<Placement>& starts) {
    if (Status status = begin(starts); !status) return tl::unexpected(std::move(status.error()));
    std::uint64_t left = best_.size();
    for (auto& [queries, best] : best_) {
      limit_ = trials_ + (options_.trials - std::min(options_.trials, trials_)) / left--;
      if (Status walked = walk(best); !walked) return tl::unexpected(std::move(walked.error()));
    }
    const Candidate& best = *overall_;
    return Found{best.placement, best.trial, trials_};
  }

 private:
  Status begin(const std::vector<Placement>& starts) {
    if (starts.empty()) return make_error(ErrorCode::kInvalidArgument, "no placement to start from");
    std::vector<std::string> reasons;
    for (const Placement& start : starts) {
      Expected<std::vector<Algorithm>> algorithms = calls_.algorithms(start);
      if (!algorithms) return tl::unexpected(std::move(algorithms.error()));
      for (const Algorithm& algorithm : *algorithms) {
        if (Expected<Plan> plan = make_plan(algorithm, start); !plan) return tl::unexpected(std::move(plan.error()));
      }
      if (!seen_.insert(unparse(start)).second) continue;
      Candidate candidate{start, std::make_shared<const std::vector<Algorithm>>(*std::move(algorithms))};
      if (Status tried = attempt("start", candidate); !tried) return tried;
      if (!candidate.trial.cost) reasons.push_back(start.name + ": " + candidate.trial.why);
    }
    if (overall_ != nullptr) return {};
    return make_error(ErrorCode::kInvalidArgument, "no placement to start from is of use", std::move(reasons));
  }

  // From the best of the starts with its number of queries, which the walk makes better.
  Status walk(const Candidate& best) {
    sideways_ = 0;
    Candidate current = best;
    while (!over()) {
      Expected<std::optional<Candidate>> next = better_neighbour(current);
      if (!next) return tl::unexpected(std::move(next.error()));
      if (!*next) next = kicked(best);
      if (!next) return tl::unexpected(std::move(next.error()));
      if (!*next) break;  // nowhere to go
      current = std::move(**next);
    }
    return {};
  }

  // Fills in the candidate's trial.
  Status attempt(const std::string& change, Candidate& candidate) {
    Expected<Trial> trial = calls_.try_out(candidate.placement);
    if (!trial) return tl::unexpected(std::move(trial.error()));
    candidate.trial = *std::move(trial);
    ++trials_;
    const bool best = candidate.trial.cost && (overall_ == nullptr || candidate.trial.better_than(overall_->trial));
    if (candidate.trial.cost) {
      auto [own, first] = best_.try_emplace(candidate.placement.queries, candidate);
      if (!first && candidate.trial.better_than(own->second.trial)) own->second = candidate;
      if (best) overall_ = &own->second;
    }
    if (calls_.step) ended_ = !calls_.step({trials_, change, candidate.placement, candidate.trial, best});
    return {};
  }

  [[nodiscard]] bool over() const { return ended_ || trials_ >= limit_; }

  static bool legal(const Candidate& candidate) {
    return std::ranges::all_of(*candidate.algorithms, [&](const Algorithm& algorithm) {
      return make_plan(algorithm, candidate.placement).has_value();
    });
  }

  void shuffle(std::vector<Move>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random_.below(i)]);
  }

  // The first in random order that is better; else the first that is as good, some times in a row: what needs two steps
  // (a copy more, and then the use of it) costs the same in between. Nothing when there is none or no trial is left.
  Expected<std::optional<Candidate>> better_neighbour(const Candidate& current) {
    std::vector<Move> list = moves(current.algorithms->front(), current.placement);
    shuffle(list);
    std::optional<Candidate> equal;
    for (Move& move : list) {
      if (over()) break;
      Candidate next{std::move(move.placement), current.algorithms};
      if (!seen_.insert(unparse(next.placement)).second || !legal(next)) continue;
      if (Status tried = attempt(move.change, next); !tried) return tl::unexpected(std::move(tried.error()));
      if (next.trial.better_than(current.trial)) {
        sideways_ = 0;
        return next;
      }
      if (!equal && next.trial.cost && !current.trial.better_than(next.trial)) equal = std::move(next);
    }
    if (sideways_ == kMostSideways) equal.reset();
    sideways_ = equal ? sideways_ + 1 : 0;
    return equal;
  }

  // Some legal steps away from the best, to a placement not seen before that is of use.
  Expected<std::optional<Candidate>> kicked(const Candidate& best) {
    for (int attempts = 0; attempts < kKickAttempts && !over(); ++attempts) {
      Candidate next{best.placement, best.algorithms};
      std::string change = "from the best:";
      const auto kicks = kLeastKicks + static_cast<int>(random_.below(kMostKicks - kLeastKicks + 1));
      for (int kick = 0; kick < kicks; ++kick) change += kick_away(next);
      if (!seen_.insert(unparse(next.placement)).second) continue;
      if (Status tried = attempt(change, next); !tried) return tl::unexpected(std::move(tried.error()));
      if (next.trial.cost) return next;
    }
    return std::nullopt;
  }

  // One random legal step, and what it was.
  std::string kick_away(Candidate& candidate) {
    std::vector<Move> list = moves(candidate.algorithms->front(), candidate.placement);
    shuffle(list);
    for (Move& move : list) {
      Candidate next{std::move(move.placement), candidate.algorithms};
      if (!legal(next)) continue;
      candidate = std::move(next);
      return " " + move.change + ";";
    }
    return {};
  }

  const SearchOptions& options_;
  const SearchCalls& calls_;
  Random random_;
  std::set<std::string> seen_;
  std::map<std::uint32_t, Candidate> best_;  // by queries of a wave
  const Candidate* overall_ = nullptr;       // the best of all, in best_
  std::uint64_t trials_ = 0;
  std::uint64_t limit_ = 0;  // of trials_, for the walk that goes on
  bool ended_ = false;       // by the caller
  int sideways_ = 0;         // steps in a row that gained nothing
};

}  // namespace

Expected<Found> search(const std::vector<Placement>& starts, const SearchOptions& options, const SearchCalls& calls) {
  return Search(options, calls).run(starts);
}

}  // namespace zyfa::schedules
