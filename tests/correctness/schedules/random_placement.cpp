#include "tests/correctness/schedules/random_placement.h"

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
  Draw(const Algorithm& algorithm, std::mt19937& random) : algorithm_(algorithm), random_(random) {}

  Placement placement() {
    placement_.name = "random";
    placement_.waves = algorithm_.legal_waves[number(0, static_cast<int>(algorithm_.legal_waves.size()) - 1)];
    placement_.groups = static_cast<std::uint32_t>(number(1, 2));
    const int phases = number(1, 4);
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
    std::uint32_t unroll = 1;
    for (const schedules::Tile& tile : algorithm_.tiles) {
      if (tile.life != schedules::TileLife::kIteration) continue;
      const bool lds = tile.space == schedules::TileSpace::kLds;
      const auto count = static_cast<std::uint32_t>(lds ? number(1, 4) : std::max(1, number(-4, 2)));
      if (std::lcm(unroll, count) > 4 || count == 1) continue;
      unroll = std::lcm(unroll, count);
      placement_.buffers[tile.name] = count;
    }
  }

  // A time in phases for each stage's iteration 0, in algorithm order; the lead follows from it. LDS loads go earlier.
  void draw_times(int phases) {
    times_.assign(algorithm_.stages.size(), 0);
    int time = number(0, phases - 1);
    for (std::size_t s = algorithm_.stages.size(); s-- > 0;) {
      const Stage& stage = algorithm_.stages[s];
      time -= std::max(0, number(-2, 2));
      const bool loads =
          std::any_of(stage.accesses.begin(), stage.accesses.end(), [&](const schedules::Access& access) {
            return access.kind == schedules::AccessKind::kWrite &&
                   algorithm_.find_tile(access.tile)->space == schedules::TileSpace::kLds;
          });
      times_[s] = time - (loads ? number(1, 4) : 0);
    }
    phases_ = phases;
  }

  Phase draw_phase(int phase) {
    std::vector<std::pair<int, StageRef>> here;
    for (std::size_t s = 0; s < times_.size(); ++s) {
      const int at = ((times_[s] % phases_) + phases_) % phases_;
      if (at != phase) continue;
      const int lead = (at - times_[s]) / phases_;
      if (lead < 0 || lead > 8) continue;
      here.emplace_back(number(0, 3), StageRef{algorithm_.stages[s].name, static_cast<std::uint32_t>(lead)});
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

std::optional<schedules::Plan> draw_placement(const Algorithm& algorithm, std::mt19937& random) {
  Expected<schedules::Plan> plan = schedules::make_plan(algorithm, Draw(algorithm, random).placement());
  if (!plan) return std::nullopt;
  return std::move(*plan);
}

}  // namespace zyfa::tests
