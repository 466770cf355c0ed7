#include "schedules/dsl/early_loads.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace zyfa::schedules {
namespace {

class Search {
 public:
  explicit Search(const Plan& plan) : plan_(plan) {}

  std::vector<EarlyLoad> run() {
    const std::vector<Phase>& loop = plan_.placement.loop;
    for (std::int64_t trip = -static_cast<std::int64_t>(plan_.prologue_trips()); trip < 0; ++trip) {
      for (std::uint32_t phase = 0; phase < loop.size(); ++phase) {
        for (const PhaseItem& item : loop[phase].items) {
          for (const Stream& stream : item.streams) {
            for (const StageRef& ref : stream.stages) visit(ref, trip, epoch(trip, phase));
          }
        }
      }
    }
    return std::move(loads_);
  }

 private:
  [[nodiscard]] std::int64_t epoch(std::int64_t trip, std::uint32_t phase) const {
    return trip * static_cast<std::int64_t>(plan_.placement.loop.size()) + phase;
  }

  void visit(const StageRef& ref, std::int64_t trip, std::int64_t epoch) {
    const std::int64_t iteration = trip * plan_.placement.trip + ref.lead;
    if (iteration < 0) return;
    if (!first_) first_ = epoch;
    std::int64_t& next = next_[plan_.placed(ref).stage];
    // State steps from iteration to iteration: none may be left out.
    if (iteration != next) return;
    if (epoch != *first_) {
      if (!may_be_early(*plan_.placed(ref).stage, iteration, epoch)) return;
      loads_.push_back({ref, iteration, epoch});
    }
    ++next;
  }

  [[nodiscard]] bool may_be_early(const Stage& stage, std::int64_t iteration, std::int64_t epoch) const {
    std::optional<std::int64_t> waited;
    for (const Access& access : stage.accesses) {
      if (plan_.algorithm->find_tile(access.tile)->space != TileSpace::kLds) {
        if (shared(access.tile, stage)) return false;
        continue;
      }
      if (access.kind != AccessKind::kWrite || iteration >= plan_.copies(access.tile)) return false;
      const std::int64_t first = wait_for(access.tile, iteration);
      waited = waited ? std::min(*waited, first) : first;
    }
    return waited && (iteration == 0 || *waited == epoch);
  }

  [[nodiscard]] bool shared(const std::string& tile, const Stage& stage) const {
    const std::vector<Stage>& stages = plan_.algorithm->stages;
    return std::any_of(stages.begin(), stages.end(), [&](const Stage& other) {
      return &other != &stage && std::any_of(other.accesses.begin(), other.accesses.end(),
                                             [&](const Access& access) { return access.tile == tile; });
    });
  }

  // The phase at whose end this iteration's data is waited for first.
  [[nodiscard]] std::int64_t wait_for(const std::string& tile, std::int64_t iteration) const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const PlannedAwait& await : plan_.awaits) {
      const std::int64_t ahead = iteration - await.offset;
      if (await.kind != AwaitKind::kArrival || await.tile != tile || ahead % plan_.placement.trip != 0) continue;
      first = std::min(first, epoch(ahead / plan_.placement.trip, await.phase));
    }
    return first;
  }

  const Plan& plan_;
  std::optional<std::int64_t> first_;          // epoch of the first phase with work
  std::map<const Stage*, std::int64_t> next_;  // the iteration that is not loaded yet
  std::vector<EarlyLoad> loads_;
};

}  // namespace

std::vector<EarlyLoad> early_loads(const Plan& plan) { return Search(plan).run(); }

}  // namespace zyfa::schedules
