#include "schedules/dsl/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
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

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

class Planner {
 public:
  Planner(const Algorithm& algorithm, const Placement& placement) {
    plan_.algorithm = &algorithm;
    plan_.placement = placement;
    plan_.unroll = placement.trip;
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
  void problem(std::string text) {
    if (std::find(problems_.begin(), problems_.end(), text) == problems_.end()) problems_.push_back(std::move(text));
  }

  [[nodiscard]] std::int64_t phases() const { return static_cast<std::int64_t>(plan_.placement.loop.size()); }
  [[nodiscard]] std::int64_t stagger() const { return plan_.placement.groups - 1; }
  [[nodiscard]] std::uint32_t trip() const { return plan_.placement.trip; }

  // The place of the algorithm's stage for `iteration` >= 0.
  [[nodiscard]] const PlacedStage& at(std::size_t stage, std::uint32_t iteration) const {
    return plan_.stages[stage * trip() + iteration % trip()];
  }
  [[nodiscard]] std::int64_t trip_of(const PlacedStage& s, std::int64_t iteration) const {
    return floor_div(iteration - static_cast<std::int64_t>(s.lead), trip());
  }
  [[nodiscard]] std::int64_t epoch(const PlacedStage& s, std::int64_t iteration) const {
    return trip_of(s, iteration) * phases() + s.phase;
  }

  // Trips first, then phase, item, and inside one item only the same stream is ordered. True when x for iteration `xi`
  // surely comes before y for iteration `yi`.
  [[nodiscard]] bool precedes(const PlacedStage& x, std::int64_t xi, const PlacedStage& y, std::int64_t yi) const {
    const auto xt = std::tuple(trip_of(x, xi), x.phase, x.item);
    const auto yt = std::tuple(trip_of(y, yi), y.phase, y.item);
    if (xt != yt) return xt < yt;
    return x.stream == y.stream && x.order < y.order;
  }

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
      const bool wide = plan_.placement.queries > 32;
      problem("waves=" + std::to_string(waves) +
              (wide ? " does not go with queries=64, whose waves have a SIMD each" : " cannot divide the loads") +
              "; allowed: " + allowed);
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
    plan_.stages.resize(plan_.algorithm->stages.size() * trip());
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
            place_one(streams[stream].stages[order], {nullptr, 0, phase, item, stream, order});
          }
        }
      }
    }
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      if (plan_.stages[s].stage != nullptr) continue;
      problem("stage '" + plan_.algorithm->stages[s / trip()].name + "' is not placed" + of_remainder(s % trip()));
    }
  }

  [[nodiscard]] std::string of_remainder(std::size_t remainder) const {
    if (trip() == 1) return {};
    return remainder == 0 ? " with an even lead; trip=2 takes one even and one odd"
                          : " with an odd lead; trip=2 takes one even and one odd";
  }

  void place_one(const StageRef& ref, PlacedStage where) {
    const Stage* stage = plan_.algorithm->find_stage(ref.stage);
    if (stage == nullptr) {
      std::string known;
      for (const Stage& s : plan_.algorithm->stages) known += (known.empty() ? "" : ", ") + s.name;
      problem("the algorithm has no stage '" + ref.stage + "'; it has " + known);
      return;
    }
    const auto index = static_cast<std::size_t>(stage - plan_.algorithm->stages.data());
    const std::uint32_t remainder = ref.lead % trip();
    PlacedStage& placed = plan_.stages[index * trip() + remainder];
    if (placed.stage != nullptr) {
      problem("stage '" + ref.stage + "' is placed twice" + of_remainder(remainder));
      return;
    }
    where.stage = stage;
    where.lead = ref.lead;
    placed = where;
    plan_.max_lead = std::max(plan_.max_lead, ref.lead);
  }

  void check_speculation() {
    for (const PlacedStage& s : plan_.stages) {
      if (s.lead >= trip() && s.stage->speculation == Speculation::kNever) {
        problem("stage " + stage_text(s) + " must not run past the last iteration, so its lead must be " +
                (trip() == 1 ? "0" : "0 or 1"));
      }
    }
  }

  [[nodiscard]] const Access* access_of(std::size_t stage, const std::string& tile) const {
    for (const Access& access : plan_.algorithm->stages[stage].accesses) {
      if (access.tile == tile) return &access;
    }
    return nullptr;
  }

  // Every two conflicting accesses of one copy.
  void check_order(const Tile& tile) {
    const std::uint32_t copies = plan_.copies(tile.name);
    const std::size_t stages = plan_.algorithm->stages.size();
    for (std::size_t a = 0; a < stages; ++a) {
      if (access_of(a, tile.name) == nullptr) continue;
      for (std::size_t b = 0; b < stages; ++b) {
        if (access_of(b, tile.name) == nullptr) continue;
        for (std::uint32_t i = 0; i < trip(); ++i) {
          if (a < b) check_pair(tile, a, i, b, i);
          check_pair(tile, a, i, b, i + copies);
        }
      }
    }
  }

  // Stage a for iteration i and stage b for iteration j, later in the algorithm's order.
  void check_pair(const Tile& tile, std::size_t a, std::uint32_t i, std::size_t b, std::uint32_t j) {
    const Access& first = *access_of(a, tile.name);
    const Access& second = *access_of(b, tile.name);
    if (!writes(first.kind) && !writes(second.kind)) return;
    const PlacedStage& earlier = at(a, i);
    const PlacedStage& later = at(b, j);
    if (precedes(earlier, i, later, j)) return;
    if (i == j) {
      problem("stage " + stage_text(later) + " needs tile '" + tile.name + "' of stage " + stage_text(earlier) +
              ", which does not come before it");
    } else {
      const std::uint32_t copies = plan_.copies(tile.name);
      problem("stage " + stage_text(later) + " works on tile '" + tile.name + "' " + std::to_string(j - i) +
              " iteration(s) later while stage " + stage_text(earlier) + " may still use that copy; there are " +
              std::to_string(copies) + " copies");
    }
  }

  // The wait that must stand `stagger` + 1 phases before `at`, for iteration `iteration` (relative to at's own).
  [[nodiscard]] PlannedAwait await_before(AwaitKind kind, const std::string& tile, const PlacedStage& at,
                                          std::int64_t iteration) const {
    const std::int64_t before = static_cast<std::int64_t>(at.phase) - stagger() - 1;
    const std::int64_t trips = floor_div(before, phases());
    const auto phase = static_cast<std::uint32_t>(before - trips * phases());
    return {kind, tile, phase, static_cast<std::int64_t>(at.lead) - trips * trip() + iteration};
  }

  void plan_lds_waits(const Tile& tile) {
    std::optional<std::size_t> load;
    std::vector<std::size_t> readers;
    for (std::size_t s = 0; s < plan_.algorithm->stages.size(); ++s) {
      const Access* access = access_of(s, tile.name);
      if (access == nullptr) continue;
      if (access->kind == AccessKind::kRead) {
        readers.push_back(s);
      } else if (!load) {
        load = s;
      } else {
        problem("LDS tile '" + tile.name + "' has two writing stages, one is allowed");
      }
    }
    if (!load) {
      problem("LDS tile '" + tile.name + "' has no stage that writes it");
      return;
    }
    for (std::uint32_t i = 0; i < trip(); ++i) {
      for (const std::size_t read : readers) plan_lds_read(tile, *load, read, i);
    }
    const auto copies = static_cast<std::int64_t>(plan_.copies(tile.name));
    for (std::uint32_t i = 0; i < trip(); ++i) {
      plan_.awaits.push_back(await_before(AwaitKind::kReads, tile.name, at(*load, i), -copies));
    }
  }

  void plan_lds_read(const Tile& tile, std::size_t load, std::size_t read, std::uint32_t i) {
    const std::uint32_t copies = plan_.copies(tile.name);
    const PlacedStage& reader = at(read, i);
    const PlacedStage& loader = at(load, i);
    const PlacedStage& next = at(load, i + copies);
    const std::int64_t arrival = epoch(reader, i) - stagger() - 1 - epoch(loader, i);
    if (arrival < 0) {
      problem("stage " + stage_text(reader) + " reads tile '" + tile.name + "' " + std::to_string(-arrival) +
              " phase(s) too early after stage " + stage_text(loader) + " loads it: " + std::to_string(stagger() + 1) +
              " barrier(s) must lie between");
    }
    const std::int64_t reuse = epoch(next, i + copies) - stagger() - 1 - epoch(reader, i);
    if (reuse < 0) {
      problem("stage " + stage_text(next) + " overwrites tile '" + tile.name + "' " + std::to_string(-reuse) +
              " phase(s) too early after stage " + stage_text(reader) + " reads it; there are " +
              std::to_string(copies) + " copies");
    }
    plan_.awaits.push_back(await_before(AwaitKind::kArrival, tile.name, reader, 0));
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
  if (item.streams.size() == 1) return text;
  return (item.paced ? "pace { " : "interleave { ") + text + " }";
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

const PlacedStage& Plan::placed(const StageRef& ref) const {
  return *std::find_if(stages.begin(), stages.end(),
                       [&](const PlacedStage& s) { return s.stage->name == ref.stage && s.lead == ref.lead; });
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
  first.trip = 1;
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
          std::to_string(plan.prologue_trips()) + " prologue trip(s), loop unrolled " +
          std::to_string(plan.unroll / p.trip) + " time(s)" +
          (p.trip == 1 ? "" : " of " + std::to_string(p.trip) + " iterations, i the first") + "; " +
          std::to_string(plan.lds_bytes) + " bytes of LDS\n";
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
