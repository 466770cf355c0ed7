#include "schedules/tune/moves.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace zyfa::schedules {
namespace {

constexpr std::array<std::uint32_t, 8> kWeights{1, 2, 3, 4, 6, 8, 12, 16};
constexpr std::uint32_t kMostLead = 8;
constexpr std::uint32_t kLdsCopies = 8, kRegisterCopies = 2;

std::string text_of(const StageRef& ref) {
  return ref.lead == 0 ? ref.stage : ref.stage + "@" + std::to_string(ref.lead);
}

std::string text_of(const PhaseItem& item) {
  std::string text;
  for (const Stream& stream : item.streams) {
    for (const StageRef& ref : stream.stages) text += (text.empty() ? "" : "+") + text_of(ref);
  }
  return text;
}

// Where a stage stands.
struct Spot {
  std::size_t phase = 0, item = 0, stream = 0, order = 0;
};

// One stage an item where nothing is interleaved, no empty streams, items or phases: what the text form can say. The
// phases that go take their priorities along.
void tidy(Placement& p) {
  for (Phase& phase : p.loop) {
    std::vector<PhaseItem> items;
    for (PhaseItem& item : phase.items) {
      std::erase_if(item.streams, [](const Stream& stream) { return stream.stages.empty(); });
      if (item.streams.size() > 1) {
        items.push_back(std::move(item));
        continue;
      }
      if (item.streams.empty()) continue;
      for (StageRef& ref : item.streams.front().stages) items.push_back({{{{std::move(ref)}, 1}}});
    }
    phase.items = std::move(items);
  }
  for (std::size_t i = p.loop.size(); i-- > 0;) {
    if (!p.loop[i].items.empty()) continue;
    p.loop.erase(p.loop.begin() + static_cast<std::ptrdiff_t>(i));
    if (!p.priorities.empty()) p.priorities.erase(p.priorities.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

class Walk {
 public:
  Walk(const Algorithm& algorithm, const Placement& from) : algorithm_(algorithm), from_(from) {
    known_.insert(unparse(from));
  }

  std::vector<Move> all() {
    for (const Spot& spot : spots()) {
      move_stage(spot);
      change_lead(spot);
    }
    change_items();
    change_barriers();
    change_copies();
    change_shape();
    change_priorities();
    return std::move(moves_);
  }

 private:
  void offer(std::string change, Placement placement) {
    tidy(placement);
    if (placement.loop.empty() || !known_.insert(unparse(placement)).second) return;
    moves_.push_back({std::move(change), std::move(placement)});
  }

  [[nodiscard]] std::vector<Spot> spots() const {
    std::vector<Spot> result;
    for (std::size_t p = 0; p < from_.loop.size(); ++p) {
      for (std::size_t i = 0; i < from_.loop[p].items.size(); ++i) {
        const auto& streams = from_.loop[p].items[i].streams;
        for (std::size_t s = 0; s < streams.size(); ++s) {
          for (std::size_t o = 0; o < streams[s].stages.size(); ++o) result.push_back({p, i, s, o});
        }
      }
    }
    return result;
  }

  [[nodiscard]] const StageRef& at(const Spot& spot) const {
    return from_.loop[spot.phase].items[spot.item].streams[spot.stream].stages[spot.order];
  }

  // The placement without the stage at `spot`; whatever that empties stays until tidy().
  [[nodiscard]] Placement without(const Spot& spot) const {
    Placement p = from_;
    auto& stages = p.loop[spot.phase].items[spot.item].streams[spot.stream].stages;
    stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(spot.order));
    return p;
  }

  void move_stage(const Spot& spot) {
    const StageRef ref = at(spot);
    const Placement rest = without(spot);
    const std::string name = text_of(ref) + ": ";
    for (std::size_t p = 0; p < rest.loop.size(); ++p) {
      const std::string phase = "phase " + std::to_string(p);
      for (std::size_t i = 0; i <= rest.loop[p].items.size(); ++i) {
        Placement moved = rest;
        auto& items = moved.loop[p].items;
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(i), PhaseItem{{{{ref}, 1}}});
        offer(name + phase + ", item " + std::to_string(i), std::move(moved));
      }
      for (std::size_t i = 0; i < rest.loop[p].items.size(); ++i) join_streams(name + phase, rest, ref, p, i);
    }
    for (std::size_t p = 0; p <= rest.loop.size(); ++p) {
      Placement moved = rest;
      const auto at = static_cast<std::ptrdiff_t>(p);
      moved.loop.insert(moved.loop.begin() + at, Phase{{{{{{ref}, 1}}}}});
      if (!moved.priorities.empty()) moved.priorities.insert(moved.priorities.begin() + at, 0);
      offer(name + "a phase of its own, " + std::to_string(p), std::move(moved));
    }
  }

  // Into each stream of an interleaved item, at each place.
  void join_streams(const std::string& change, const Placement& rest, const StageRef& ref, std::size_t p,
                    std::size_t i) {
    const auto& streams = rest.loop[p].items[i].streams;
    if (streams.size() < 2) return;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      for (std::size_t o = 0; o <= streams[s].stages.size(); ++o) {
        Placement moved = rest;
        auto& stages = moved.loop[p].items[i].streams[s].stages;
        stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(o), ref);
        offer(change + ", item " + std::to_string(i) + ", stream " + std::to_string(s), std::move(moved));
      }
    }
  }

  void change_lead(const Spot& spot) {
    for (const bool up : {true, false}) {
      Placement moved = from_;
      StageRef& ref = moved.loop[spot.phase].items[spot.item].streams[spot.stream].stages[spot.order];
      if (up ? ref.lead + from_.trip > kMostLead : ref.lead < from_.trip) continue;
      const std::string before = text_of(ref);
      ref.lead = up ? ref.lead + from_.trip : ref.lead - from_.trip;
      offer(before + ": lead " + std::to_string(ref.lead), std::move(moved));
    }
  }

  void change_items() {
    for (std::size_t p = 0; p < from_.loop.size(); ++p) {
      const auto& items = from_.loop[p].items;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (i + 1 < items.size()) weave(p, i);
        if (items[i].streams.size() < 2) continue;
        unweave(p, i);
        change_pace(p, i);
        for (std::size_t s = 0; s < items[i].streams.size(); ++s) change_weight(p, i, s);
      }
    }
  }

  void weave(std::size_t p, std::size_t i) {
    Placement woven = from_;
    auto& items = woven.loop[p].items;
    const std::string change = text_of(items[i]) + " woven with " + text_of(items[i + 1]);
    auto& streams = items[i].streams;
    std::ranges::move(items[i + 1].streams, std::back_inserter(streams));
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(i + 1));
    offer(change, std::move(woven));
  }

  void unweave(std::size_t p, std::size_t i) {
    Placement apart = from_;
    auto& items = apart.loop[p].items;
    const std::string change = text_of(items[i]) + " one after the other";
    std::vector<PhaseItem> single;
    for (Stream& stream : items[i].streams) single.push_back({{{std::move(stream.stages), 1}}});
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(i), single.begin(), single.end());
    offer(change, std::move(apart));
  }

  void change_pace(std::size_t p, std::size_t i) {
    Placement moved = from_;
    PhaseItem& item = moved.loop[p].items[i];
    item.paced = !item.paced;
    offer(text_of(item) + (item.paced ? " paced by matrix cycles" : " paced by counts"), std::move(moved));
  }

  void change_weight(std::size_t p, std::size_t i, std::size_t s) {
    const std::uint32_t weight = from_.loop[p].items[i].streams[s].weight;
    const auto* const above = std::ranges::upper_bound(kWeights, weight);
    const auto* const below = std::ranges::lower_bound(kWeights, weight);
    const auto set = [&](std::uint32_t to) {
      Placement moved = from_;
      Stream& stream = moved.loop[p].items[i].streams[s];
      stream.weight = to;
      offer(text_of(stream.stages.front()) + "...: weight " + std::to_string(to), std::move(moved));
    };
    if (above != kWeights.end()) set(*above);
    if (below != kWeights.begin()) set(*std::prev(below));
  }

  void change_barriers() {
    for (std::size_t p = 0; p < from_.loop.size(); ++p) {
      for (std::size_t i = 1; i < from_.loop[p].items.size(); ++i) {
        Placement split = from_;
        auto& items = split.loop[p].items;
        Phase second;
        second.items.assign(items.begin() + static_cast<std::ptrdiff_t>(i), items.end());
        items.resize(i);
        split.loop.insert(split.loop.begin() + static_cast<std::ptrdiff_t>(p + 1), std::move(second));
        if (!split.priorities.empty()) {
          split.priorities.insert(split.priorities.begin() + static_cast<std::ptrdiff_t>(p), split.priorities[p]);
        }
        offer("a barrier before " + text_of(from_.loop[p].items[i]), std::move(split));
      }
      if (p + 1 == from_.loop.size()) continue;
      Placement joined = from_;
      auto& items = joined.loop[p].items;
      std::ranges::move(joined.loop[p + 1].items, std::back_inserter(items));
      joined.loop[p + 1].items.clear();
      offer("no barrier after phase " + std::to_string(p), std::move(joined));
    }
  }

  void change_copies() {
    for (const Tile& tile : algorithm_.tiles) {
      if (tile.life != TileLife::kIteration) continue;
      const std::uint32_t most = tile.space == TileSpace::kLds ? kLdsCopies : kRegisterCopies;
      const auto found = from_.buffers.find(tile.name);
      const std::uint32_t copies = found == from_.buffers.end() ? 1 : found->second;
      const auto set = [&](std::uint32_t to) {
        Placement moved = from_;
        moved.buffers.erase(tile.name);
        if (to > 1) moved.buffers[tile.name] = to;
        offer(std::to_string(to) + " copies of " + tile.name, std::move(moved));
      };
      if (copies < most) set(copies + 1);
      if (copies > 1) set(copies - 1);
    }
  }

  void change_shape() {
    Placement grouped = from_;
    grouped.groups = 3 - from_.groups;
    offer(grouped.groups == 1 ? "one wave group" : "two wave groups", grouped);
    for (const std::uint32_t waves : algorithm_.legal_waves) {
      Placement moved = from_;
      moved.waves = waves;
      offer(std::to_string(waves) + " waves", std::move(moved));
    }
    Placement math = from_;
    math.math = from_.math == VectorMath::kPacked ? VectorMath::kScalar : VectorMath::kPacked;
    offer(from_.math == VectorMath::kPacked ? "scalar arithmetic" : "packed arithmetic", std::move(math));
  }

  void change_priorities() {
    const auto set = [&](std::string change, std::vector<std::uint32_t> priorities) {
      Placement moved = from_;
      moved.priorities = std::move(priorities);
      offer(std::move(change), std::move(moved));
    };
    if (!from_.priorities.empty()) set("no priorities", {});
    std::vector<std::uint32_t> usual(from_.loop.size(), 0);
    usual.front() = 1;
    set("priority of the first phase", usual);
    for (std::size_t p = 0; p < from_.priorities.size(); ++p) {
      std::vector<std::uint32_t> flipped = from_.priorities;
      flipped[p] = flipped[p] == 0 ? 1 : 0;
      const std::string change = "priority " + std::to_string(flipped[p]) + " in phase " + std::to_string(p);
      set(change, std::move(flipped));
    }
  }

  const Algorithm& algorithm_;
  const Placement& from_;
  std::set<std::string> known_;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<Move> moves(const Algorithm& algorithm, const Placement& from) { return Walk(algorithm, from).all(); }

Placement with_two_iterations(const Placement& from) {
  Placement twice = from;
  twice.trip = 2;
  twice.loop.clear();
  twice.priorities.clear();
  for (std::uint32_t iteration = 0; iteration < 2; ++iteration) {
    for (Phase phase : from.loop) {
      for (PhaseItem& item : phase.items) {
        for (Stream& stream : item.streams) {
          for (StageRef& ref : stream.stages) ref.lead += iteration;
        }
      }
      twice.loop.push_back(std::move(phase));
    }
    twice.priorities.insert(twice.priorities.end(), from.priorities.begin(), from.priorities.end());
  }
  return twice;
}

}  // namespace zyfa::schedules
