#include "schedules/dsl/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <tuple>

namespace zyfa::schedules {
namespace {

constexpr std::uint32_t kLdsLimit = 163840;  // gfx950-isa.md 3.3
constexpr std::uint32_t kLdsAlign = 1024;    // direct-to-LDS bases stay aligned for any access width

bool writes(AccessKind kind) { return kind != AccessKind::kRead; }

std::string stage_text(const PlacedStage& placed) {
  return "'" + placed.stage->name + (placed.lead == 0 ? "" : "@" + std::to_string(placed.lead)) + "' (phase " +
         std::to_string(placed.phase) + ")";
}

// Position of a stage instance: trips first, then phase, item, and inside one item only the same stream is ordered.
// True when X for iteration `dx` surely comes before Y for iteration `dy` (both relative to a common i).
bool precedes(const PlacedStage& x, std::int64_t dx, const PlacedStage& y, std::int64_t dy) {
  const auto trip = [](const PlacedStage& s, std::int64_t d) { return d - static_cast<std::int64_t>(s.lead); };
  const auto xt = std::tuple(trip(x, dx), x.phase, x.item);
  const auto yt = std::tuple(trip(y, dy), y.phase, y.item);
  if (xt != yt) return xt < yt;
  return x.stream == y.stream && x.order < y.order;
}

class Planner {
 public:
  Planner(const Algorithm& algorithm, const Placement& placement) {
    plan_.algorithm = &algorithm;
    plan_.placement = placement;
  }

  Expected<Plan> run() {
    check_accesses();
    check_waves();
    check_buffers();
    place_stages();
    if (problems_.empty()) {
      check_speculation();
      for (const Tile& tile : plan_.algorithm->tiles) check_order(tile);
      for (const Tile& tile : plan_.algorithm->tiles) {
        if (tile.space == TileSpace::kLds) plan_lds_waits(tile);
      }
      lay_out_lds();
    }
    if (!problems_.empty()) {
      const std::string first = problems_.front();
      return make_error(
          ErrorCode::kScheduleError,
          "placement '" + plan_.placement.name + "' is not legal for " + plan_.algorithm->name + ": " + first,
          problems_);
    }
    return std::move(plan_);
  }

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  [[nodiscard]] std::int64_t phases() const { return static_cast<std::int64_t>(plan_.placement.loop.size()); }
  [[nodiscard]] std::int64_t stagger() const { return plan_.placement.groups - 1; }

  void check_accesses() {
    for (const Stage& stage : plan_.algorithm->stages) {
      for (std::size_t a = 0; a < stage.accesses.size(); ++a) {
        const std::string& tile = stage.accesses[a].tile;
        if (plan_.algorithm->find_tile(tile) == nullptr) {
          problem("stage '" + stage.name + "' lists tile '" + tile + "', which the algorithm does not have");
        }
        for (std::size_t b = 0; b < a; ++b) {
          if (stage.accesses[b].tile == tile) {
            problem("stage '" + stage.name + "' lists tile '" + tile + "' twice; one access says all");
          }
        }
      }
    }
  }

  void check_waves() {
    const std::vector<std::uint32_t>& legal = plan_.algorithm->legal_waves;
    const std::uint32_t waves = plan_.placement.waves;
    if (std::find(legal.begin(), legal.end(), waves) == legal.end()) {
      std::string allowed;
      for (std::uint32_t n : legal) allowed += (allowed.empty() ? "" : ", ") + std::to_string(n);
      problem("waves=" + std::to_string(waves) + " cannot divide the loads; allowed: " + allowed);
    }
    if (plan_.placement.groups > waves) {
      problem("groups=" + std::to_string(plan_.placement.groups) + " needs at least that many waves, there are " +
              std::to_string(waves));
    }
  }

  void check_buffers() {
    for (const auto& [name, count] : plan_.placement.buffers) {
      const Tile* tile = plan_.algorithm->find_tile(name);
      if (tile == nullptr) {
        problem("buffers= names tile '" + name + "', which the algorithm does not have");
      } else if (tile->life != TileLife::kIteration) {
        problem("tile '" + name + "' outlives an iteration and has one copy; buffers= gives it " +
                std::to_string(count));
      } else {
        plan_.unroll = std::lcm(plan_.unroll, count);
      }
    }
  }

  void place_stages() {
    std::vector<const PlacedStage*> seen(plan_.algorithm->stages.size());
    std::vector<PlacedStage> placed(plan_.algorithm->stages.size());
    const auto& loop = plan_.placement.loop;
    for (std::uint32_t phase = 0; phase < loop.size(); ++phase) {
      for (std::uint32_t item = 0; item < loop[phase].items.size(); ++item) {
        const auto& streams = loop[phase].items[item].streams;
        if (streams.size() == 1 && (streams[0].stages.size() != 1 || streams[0].weight != 1)) {
          problem("item " + std::to_string(item) + " of phase " + std::to_string(phase) +
                  " is not interleaved: it takes one stage of weight 1");
        }
        for (std::uint32_t stream = 0; stream < streams.size(); ++stream) {
          for (std::uint32_t order = 0; order < streams[stream].stages.size(); ++order) {
            place_one(streams[stream].stages[order], {nullptr, 0, phase, item, stream, order}, placed, seen);
          }
        }
      }
    }
    for (std::size_t s = 0; s < seen.size(); ++s) {
      if (seen[s] == nullptr) problem("stage '" + plan_.algorithm->stages[s].name + "' is not placed");
    }
    plan_.stages = std::move(placed);
  }

  void place_one(const StageRef& ref, PlacedStage where, std::vector<PlacedStage>& placed,
                 std::vector<const PlacedStage*>& seen) {
    const Stage* stage = plan_.algorithm->find_stage(ref.stage);
    if (stage == nullptr) {
      std::string known;
      for (const Stage& s : plan_.algorithm->stages) known += (known.empty() ? "" : ", ") + s.name;
      problem("the algorithm has no stage '" + ref.stage + "'; it has " + known);
      return;
    }
    const auto index = static_cast<std::size_t>(stage - plan_.algorithm->stages.data());
    if (seen[index] != nullptr) {
      problem("stage '" + ref.stage + "' is placed twice");
      return;
    }
    where.stage = stage;
    where.lead = ref.lead;
    placed[index] = where;
    seen[index] = &placed[index];
    plan_.max_lead = std::max(plan_.max_lead, ref.lead);
  }

  void check_speculation() {
    for (const PlacedStage& s : plan_.stages) {
      if (s.lead > 0 && s.stage->speculation == Speculation::kNever) {
        problem("stage " + stage_text(s) + " must not run past the last iteration, so its lead must be 0");
      }
    }
  }

  static const Access* access_of(const PlacedStage& placed, const std::string& tile) {
    for (const Access& access : placed.stage->accesses) {
      if (access.tile == tile) return &access;
    }
    return nullptr;
  }

  void check_order(const Tile& tile) {
    const std::int64_t copies = plan_.copies(tile.name);
    for (std::size_t a = 0; a < plan_.stages.size(); ++a) {
      const Access* first = access_of(plan_.stages[a], tile.name);
      if (first == nullptr) continue;
      for (std::size_t b = a; b < plan_.stages.size(); ++b) {
        const Access* second = access_of(plan_.stages[b], tile.name);
        if (second == nullptr || (!writes(first->kind) && !writes(second->kind))) continue;
        check_pair(tile, plan_.stages[a], plan_.stages[b], copies);
      }
    }
  }

  void check_pair(const Tile& tile, const PlacedStage& a, const PlacedStage& b, std::int64_t copies) {
    if (&a == &b) return;  // one stage works on its iterations in order
    if (!precedes(a, 0, b, 0)) {
      problem("stage " + stage_text(b) + " needs tile '" + tile.name + "' of stage " + stage_text(a) +
              ", which does not come before it");
    }
    if (!precedes(b, 0, a, copies)) {
      problem("stage " + stage_text(a) + " works on tile '" + tile.name + "' " + std::to_string(copies) +
              " iteration(s) later while stage " + stage_text(b) + " may still use that copy; there are " +
              std::to_string(copies) + " copies");
    }
  }

  static std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

  // The wait that must stand `stagger` + 1 phases before `at`, for iteration `iteration` (relative to at's own).
  PlannedAwait await_before(AwaitKind kind, const std::string& tile, const PlacedStage& at,
                            std::int64_t iteration) const {
    const std::int64_t epoch = static_cast<std::int64_t>(at.phase) - stagger() - 1;
    const std::int64_t trips = floor_div(epoch, phases());
    const auto phase = static_cast<std::uint32_t>(epoch - trips * phases());
    return {kind, tile, phase, static_cast<std::int64_t>(at.lead) - trips + iteration};
  }

  void plan_lds_waits(const Tile& tile) {
    const PlacedStage* load = nullptr;
    std::vector<const PlacedStage*> readers;
    for (const PlacedStage& s : plan_.stages) {
      const Access* access = access_of(s, tile.name);
      if (access == nullptr) continue;
      if (access->kind == AccessKind::kRead) {
        readers.push_back(&s);
      } else if (load == nullptr) {
        load = &s;
      } else {
        problem("LDS tile '" + tile.name + "' has two writing stages, one is allowed");
      }
    }
    if (load == nullptr) {
      problem("LDS tile '" + tile.name + "' has no stage that writes it");
      return;
    }
    const std::int64_t copies = plan_.copies(tile.name);
    const auto epoch = [this](const PlacedStage& s, std::int64_t i) {
      return (i - static_cast<std::int64_t>(s.lead)) * phases() + s.phase;
    };
    for (const PlacedStage* read : readers) {
      const std::int64_t arrival = epoch(*read, 0) - stagger() - 1 - epoch(*load, 0);
      if (arrival < 0) {
        problem("stage " + stage_text(*read) + " reads tile '" + tile.name + "' " + std::to_string(-arrival) +
                " phase(s) too early after stage " + stage_text(*load) + " loads it: " + std::to_string(stagger() + 1) +
                " barrier(s) must lie between");
      }
      const std::int64_t reuse = epoch(*load, copies) - stagger() - 1 - epoch(*read, 0);
      if (reuse < 0) {
        problem("stage " + stage_text(*load) + " overwrites tile '" + tile.name + "' " + std::to_string(-reuse) +
                " phase(s) too early after stage " + stage_text(*read) + " reads it; there are " +
                std::to_string(copies) + " copies");
      }
      plan_.awaits.push_back(await_before(AwaitKind::kArrival, tile.name, *read, 0));
    }
    plan_.awaits.push_back(await_before(AwaitKind::kReads, tile.name, *load, -copies));
  }

  void lay_out_lds() {
    std::uint64_t total = 0;
    for (const Tile& tile : plan_.algorithm->tiles) {
      if (tile.space == TileSpace::kLds) {
        total += std::uint64_t{(tile.lds_bytes + kLdsAlign - 1) / kLdsAlign * kLdsAlign} * plan_.copies(tile.name);
      }
    }
    if (total > kLdsLimit) {
      problem("LDS tiles need " + std::to_string(total) + " bytes, a workgroup has " + std::to_string(kLdsLimit));
    }
    plan_.lds_bytes = static_cast<std::uint32_t>(total);
  }

  Plan plan_;
  std::vector<std::string> problems_;
};

std::string stage_label(const StageRef& ref) {
  return ref.stage + (ref.lead == 0 ? "(i)" : "(i+" + std::to_string(ref.lead) + ")");
}

std::string item_label(const PhaseItem& item) {
  std::string text;
  for (const Stream& stream : item.streams) {
    if (!text.empty()) text += "  /  ";
    if (item.streams.size() > 1) text += std::to_string(stream.weight) + "x ";
    for (std::size_t s = 0; s < stream.stages.size(); ++s) text += (s == 0 ? "" : " ") + stage_label(stream.stages[s]);
  }
  return item.streams.size() > 1 ? "interleave { " + text + " }" : text;
}

}  // namespace

const Tile* Algorithm::find_tile(std::string_view tile) const {
  const auto at = std::find_if(tiles.begin(), tiles.end(), [&](const Tile& t) { return t.name == tile; });
  return at == tiles.end() ? nullptr : &*at;
}

const Stage* Algorithm::find_stage(std::string_view stage) const {
  const auto at = std::find_if(stages.begin(), stages.end(), [&](const Stage& s) { return s.name == stage; });
  return at == stages.end() ? nullptr : &*at;
}

std::uint32_t Plan::copies(std::string_view tile) const {
  const auto at = placement.buffers.find(std::string(tile));
  return at == placement.buffers.end() ? 1 : at->second;
}

std::uint32_t Plan::lds_offset(std::string_view tile, std::uint32_t copy) const {
  std::uint32_t offset = 0;
  for (const Tile& t : algorithm->tiles) {
    if (t.space != TileSpace::kLds) continue;
    const std::uint32_t bytes = (t.lds_bytes + kLdsAlign - 1) / kLdsAlign * kLdsAlign;
    if (t.name == tile) return offset + copy * bytes;
    offset += bytes * copies(t.name);
  }
  return offset;
}

const PlacedStage& Plan::placed(std::string_view stage) const {
  return *std::find_if(stages.begin(), stages.end(), [&](const PlacedStage& s) { return s.stage->name == stage; });
}

Expected<Plan> make_plan(const Algorithm& algorithm, const Placement& placement) {
  const bool two_loops = algorithm.before != nullptr;
  if (two_loops == placement.before.empty()) {
    return make_error(ErrorCode::kScheduleError,
                      "placement '" + placement.name + "' is not legal for " + algorithm.name + ": " +
                          (two_loops ? "before= is missing, the loop of " + algorithm.before->name
                                     : std::string("before= is given, but the algorithm has one loop")));
  }
  Expected<Plan> plan = Planner(algorithm, placement).run();
  if (!plan || !two_loops) return plan;
  Placement first = placement;
  first.buffers = placement.before_buffers;
  first.loop = placement.before;
  first.before_buffers.clear();
  first.before.clear();
  first.priorities.clear();
  Expected<Plan> before = make_plan(*algorithm.before, first);
  if (!before) return before;
  plan->lds_bytes = std::max(plan->lds_bytes, before->lds_bytes);
  plan->before = std::make_shared<const Plan>(std::move(*before));
  return plan;
}

std::string chart(const Plan& plan) {
  const Placement& p = plan.placement;
  std::string text = plan.before != nullptr ? chart(*plan.before) + "then\n" : std::string();
  text += "schedule " + p.name + " of " + plan.algorithm->name + "\n";
  text += "  " + std::to_string(p.waves) + " waves in " + std::to_string(p.groups) + " group(s); " +
          std::to_string(plan.max_lead) + " prologue trip(s), loop unrolled " + std::to_string(plan.unroll) +
          " time(s); " + std::to_string(plan.lds_bytes) + " bytes of LDS\n";
  for (std::uint32_t phase = 0; phase < p.loop.size(); ++phase) {
    text += "  phase " + std::to_string(phase);
    if (!p.priorities.empty()) text += " (priority " + std::to_string(p.priorities[phase]) + ")";
    if (p.groups == 2) {
      const std::uint32_t other =
          (phase + static_cast<std::uint32_t>(p.loop.size()) - 1) % static_cast<std::uint32_t>(p.loop.size());
      text += ", while the other group is in phase " + std::to_string(other);
    }
    text += "\n";
    for (const PhaseItem& item : p.loop[phase].items) text += "    " + item_label(item) + "\n";
    for (const PlannedAwait& await : plan.awaits) {
      if (await.phase != phase) continue;
      text += std::string("    wait: ") + (await.kind == AwaitKind::kArrival ? "arrival of " : "reads of ") +
              await.tile + "(i" + (await.offset < 0 ? "" : "+") + std::to_string(await.offset) + ")\n";
    }
    text += "    ---- barrier ----\n";
  }
  for (const Tile& tile : plan.algorithm->tiles) {
    if (tile.space != TileSpace::kLds) continue;
    for (std::uint32_t copy = 0; copy < plan.copies(tile.name); ++copy) {
      text += "  LDS " + std::to_string(plan.lds_offset(tile.name, copy)) + "  " + tile.name + "#" +
              std::to_string(copy) + ", " + std::to_string(tile.lds_bytes) + " bytes\n";
    }
  }
  return text;
}

}  // namespace zyfa::schedules
