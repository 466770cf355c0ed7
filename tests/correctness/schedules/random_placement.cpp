#include "tests/correctness/schedules/random_placement.h"

#include "schedules/tune/moves.h"

#include <algorithm>
#include <numeric>

namespace zyfa::tests {
namespace {

using schedules::Algorithm;
using schedules::Phase;
using schedules::PhaseItem;
using schedules::Placement;
using schedules::Stage;
using schedules::StageRef;
using schedules::Stream;

class Draw {
 public:
  Draw(const Algorithm& algorithm, std::uint32_t trip, std::mt19937& random) : algorithm_(algorithm), random_(random) {
    placement_.trip = trip;
  }

  Placement placement() {
    placement_.name = "random";
    placement_.waves = algorithm_.legal_waves[number(0, static_cast<int>(algorithm_.legal_waves.size()) - 1)];
    placement_.groups = static_cast<std::uint32_t>(number(1, 2));
    // A second iteration needs room: phases or copies.
    const int phases = number(1, 4) * number(1, static_cast<int>(placement_.trip));
    draw_buffers();
    draw_times(phases);
    for (int phase = 0; phase < phases; ++phase) placement_.loop.push_back(draw_phase(phase));
    std::erase_if(placement_.loop, [](const Phase& phase) { return phase.items.empty(); });
    if (number(0, 1) == 1) {
      for (std::size_t p = 0; p < placement_.loop.size(); ++p) {
        placement_.priorities.push_back(static_cast<std::uint32_t>(number(0, 3)));
      }
    }
    return placement_;
  }

 private:
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void draw_buffers() {
    std::uint32_t unroll = placement_.trip;
    for (const schedules::Tile& tile : algorithm_.tiles) {
      if (tile.life != schedules::TileLife::kIteration) continue;
      const bool lds = tile.space == schedules::TileSpace::kLds;
      const auto trip = static_cast<int>(placement_.trip);
      const int copies = lds ? trip * number(1, 4 / trip) : std::max(1, number(trip == 1 ? -4 : 0, 2));
      const auto count = static_cast<std::uint32_t>(copies);
      if (std::lcm(unroll, count) > 4 || count == 1) continue;
      unroll = std::lcm(unroll, count);
      placement_.buffers[tile.name] = count;
    }
  }

  // A time in phases for each stage's iterations of trip 0, in algorithm order; the lead follows from it. LDS loads go
  // earlier. The second iteration of a trip comes some phases behind the first, or with it, but for a few stages.
  void draw_times(int phases) {
    const std::size_t stages = algorithm_.stages.size();
    times_.assign(stages * placement_.trip, 0);
    phases_ = phases;
    const int behind = number(0, phases);
    int time = number(0, phases - 1);
    for (std::size_t s = stages; s-- > 0;) {
      time -= std::max(0, number(-2, 2));
      const int last = time - (loads_lds(algorithm_.stages[s]) ? number(1, 4) : 0);
      times_[(placement_.trip - 1) * stages + s] = last;
      if (placement_.trip == 2) times_[s] = last - behind + number(0, 15) / 15 - number(0, 15) / 15;
    }
  }

  [[nodiscard]] bool loads_lds(const Stage& stage) const {
    return std::any_of(stage.accesses.begin(), stage.accesses.end(), [&](const schedules::Access& access) {
      return access.kind == schedules::AccessKind::kWrite &&
             algorithm_.find_tile(access.tile)->space == schedules::TileSpace::kLds;
    });
  }

  Phase draw_phase(int phase) {
    std::vector<std::pair<int, StageRef>> here;
    const auto trip = static_cast<int>(placement_.trip);
    for (std::size_t s = 0; s < times_.size(); ++s) {
      const int at = ((times_[s] % phases_) + phases_) % phases_;
      if (at != phase) continue;
      const std::size_t stages = algorithm_.stages.size();
      const int lead = (at - times_[s]) / phases_ * trip + static_cast<int>(s / stages);
      if (lead < 0 || lead > 8) continue;
      here.emplace_back(number(0, 3), StageRef{algorithm_.stages[s % stages].name, static_cast<std::uint32_t>(lead)});
    }
    // Stages of one iteration keep their order; sometimes an order by lead, as anti-dependences ask for.
    if (number(0, 1) == 1) {
      std::stable_sort(here.begin(), here.end(),
                       [](const auto& a, const auto& b) { return a.second.lead < b.second.lead; });
    }
    Phase result;
    for (std::size_t s = 0; s < here.size();) {
      const std::size_t take =
          std::min<std::size_t>(here.size() - s, static_cast<std::size_t>(std::max(1, number(-2, 4))));
      result.items.push_back(draw_item(
          {here.begin() + static_cast<std::ptrdiff_t>(s), here.begin() + static_cast<std::ptrdiff_t>(s + take)}));
      s += take;
    }
    // One stage an item where nothing is interleaved: that is the canonical form.
    Phase canonical;
    for (PhaseItem& item : result.items) {
      if (item.streams.size() > 1) {
        canonical.items.push_back(std::move(item));
        continue;
      }
      for (StageRef& ref : item.streams.front().stages) canonical.items.push_back({{{{ref}, 1}}});
    }
    return canonical;
  }

  PhaseItem draw_item(std::vector<std::pair<int, StageRef>> stages) {
    PhaseItem item;
    std::vector<Stream> streams(static_cast<std::size_t>(std::min<int>(number(1, 3), static_cast<int>(stages.size()))));
    for (auto& [draw, ref] : stages) streams[static_cast<std::size_t>(draw) % streams.size()].stages.push_back(ref);
    for (Stream& stream : streams) {
      if (stream.stages.empty()) continue;
      stream.weight = static_cast<std::uint32_t>(number(1, 9));
      item.streams.push_back(std::move(stream));
    }
    if (item.streams.size() == 1) item.streams.front().weight = 1;
    return item;
  }

  const Algorithm& algorithm_;
  std::mt19937& random_;
  Placement placement_;
  std::vector<int> times_;
  int phases_ = 1;
};

}  // namespace

std::optional<schedules::Plan> draw_placement(const Algorithm& algorithm, std::uint32_t trip, std::mt19937& random) {
  Expected<schedules::Plan> plan = schedules::make_plan(algorithm, Draw(algorithm, trip, random).placement());
  if (!plan) return std::nullopt;
  return std::move(*plan);
}

std::optional<schedules::Plan> PlacementWalk::next(std::mt19937& random) {
  constexpr int kSteps = 2, kTries = 20;
  std::optional<schedules::Plan> plan;
  for (int steps = 0; steps < kSteps; ++steps) {
    const std::vector<schedules::Move> moves = schedules::moves(algorithm_, at_);
    for (int tries = 0;; ++tries) {
      if (tries == kTries) return plan;
      const auto chosen = std::uniform_int_distribution<std::size_t>(0, moves.size() - 1)(random);
      Expected<schedules::Plan> moved = schedules::make_plan(algorithm_, moves[chosen].placement);
      if (!moved) continue;
      plan = std::move(*moved);
      at_ = plan->placement;
      break;
    }
  }
  return plan;
}

}  // namespace zyfa::tests
