#include "schedules/dsl/build.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "schedules/dsl/early_loads.h"
#include "schedules/dsl/interleave.h"
#include "schedules/dsl/pace.h"
#include "schedules/dsl/stage_writer.h"

namespace zyfa::schedules {
namespace {

using jit::Op;

// One loop with its prologue.
class LoopBuilder {
 public:
  LoopBuilder(const Plan& plan, const TileRegisters& tiles, jit::Listing& listing)
      : plan_(plan), listing_(listing), tiles_(tiles) {}

  Status run() {
    exit_ = listing_.new_label();
    glue("setup", [&](StageWriter& w) { rest_ = plan_.algorithm->setup(w); });
    for (std::int64_t trip = -static_cast<std::int64_t>(plan_.prologue_trips()); trip < 0; ++trip) {
      emit_trip(trip, Part::kPrologue);
    }
    start_waiting();
    settle([] { return true; });
    emit_loop();
    glue("exit", [&](StageWriter& w) { w.place(exit_); });
    // LDS may be given to the next workgroup once the waves end: nothing may still be on its way to it.
    await(tiles_.arrival_tokens(), "no load outstanding at the end");
    if (plan_.placement.groups == 2) stagger_barrier("unstagger", Op::kSCmpLtI32);
    return status_;
  }

  // Before another loop takes over the LDS: every wave's reads have returned.
  Status release_lds() {
    await(tiles_.reads_tokens(), "no LDS read outstanding");
    glue("release", [](StageWriter& w) { w.op(Op::kSBarrier, {}, "LDS changes hands"); });
    return status_;
  }

  Status finish() {
    if (plan_.algorithm->finish) glue("finish", plan_.algorithm->finish);
    return status_;
  }

 private:
  // A prologue trip leaves out iterations below 0, the last trip those past the end.
  enum class Part : std::uint8_t { kPrologue, kLoop, kLast };

  void note(const Status& status) {
    if (status_ && !status) status_ = status;
  }

  template <typename Emit>
  void glue(const std::string& stage, const Emit& emit) {
    StageWriter writer(plan_, tiles_, listing_, listing_.code, stage);
    emit(writer);
    note(writer.status());
  }

  // What setup has left, as far as `due` says of the rests in turn.
  template <typename Due>
  void settle(Due due) {
    while (rest_.emit && due()) {
      const SetupRest now = std::exchange(rest_, {});
      glue("setup", [&](StageWriter& w) { rest_ = now.emit(w); });
    }
  }

  void settle_before(const StageRef& stage) {
    settle([&] { return needs_rest(stage); });
  }

  void settle_under_loads() {
    settle([&] { return rest_.place == RestPlace::kUnderFirstLoads; });
  }

  [[nodiscard]] bool needs_rest(const StageRef& stage) const {
    const std::vector<std::string>& others = rest_.harmless_before;
    return std::find(others.begin(), others.end(), stage.stage) == others.end();
  }

  // What stands before the first wait. No barrier came before it, so that loads of both groups are on their way.
  void start_waiting() {
    if (waiting_) return;
    waiting_ = true;
    settle_under_loads();
    if (plan_.placement.groups == 2) stagger_barrier("stagger", Op::kSCmpGeI32);
  }

  // One barrier for the waves of one group only: group 1 (waves in the upper half) before the loop falls one phase
  // behind, group 0 after the loop lets it catch up, so that all waves meet the same number of barriers.
  void stagger_barrier(const std::string& name, Op group_test) {
    glue(name, [&](StageWriter& w) {
      const jit::Label skip = w.new_label();
      const auto half = static_cast<std::int32_t>(plan_.placement.waves / 2);
      w.op(group_test, {w.wave(), jit::Imm{half}}, "this wave's group?");
      w.op(Op::kSCbranchScc0, {skip});
      w.op(Op::kSBarrier, {}, "the groups shift by one phase");
      w.place(skip);
    });
  }

  void await(std::vector<jit::Token> tokens, const std::string& comment) {
    if (!status_ || tokens.empty()) return;
    jit::Emitter emitter(listing_.code, listing_.regs);
    emitter.set_origin({"await", repository_path(__FILE__), __LINE__});
    note(emitter.await(std::move(tokens), comment));
  }

  // Trips while more than one iteration is left, then one of a single iteration where there is one: what would work on
  // iterations past the end is left out of it, loads and their latency above all. The last trip's registers and LDS
  // depend on which copy of the loop body came before, so each has its own.
  void emit_loop() {
    // The counter runs below the iterations left by what a trip needs: the borrow of its subtraction ends the loop.
    constexpr std::int32_t kLeast = 2;
    const auto trip = static_cast<std::int32_t>(plan_.placement.trip);
    const std::uint32_t bodies = plan_.unroll / plan_.placement.trip;
    std::vector<jit::Label> last;
    for (std::uint32_t body = 0; body < bodies; ++body) last.push_back(listing_.new_label());
    const jit::Label top = listing_.new_label();
    glue("loop", [&](StageWriter& w) {
      w.op(Op::kSSubU32, {w.trips(), w.trips(), jit::Imm{kLeast}});
      w.op(Op::kSCmpGeI32, {w.trips(), jit::Imm{0}}, "two iterations?");
      w.op(Op::kSCbranchScc0, {last.front()});
      w.place(top);
    });
    for (std::uint32_t body = 0; body < bodies; ++body) {
      emit_trip(body, Part::kLoop);
      const bool back = body + 1 == bodies;
      glue("loop", [&](StageWriter& w) {
        w.op(Op::kSSubU32, {w.trips(), w.trips(), jit::Imm{trip}}, "SCC: fewer than two iterations left");
        w.op(back ? Op::kSCbranchScc0 : Op::kSCbranchScc1, {back ? top : last[body + 1]});
      });
    }
    for (std::uint32_t body = 0; body < bodies; ++body) {
      glue("loop", [&](StageWriter& w) {
        w.place(last[body]);
        w.op(Op::kSCmpGtI32, {w.trips(), jit::Imm{-kLeast}}, "one more?");
        w.op(Op::kSCbranchScc0, {exit_});
      });
      emit_trip(body, Part::kLast);
      if (body + 1 < bodies) glue("loop", [&](StageWriter& w) { w.op(Op::kSBranch, {exit_}); });
    }
  }

  [[nodiscard]] std::int64_t iteration_of(const StageRef& ref, std::int64_t trip) const {
    return trip * plan_.placement.trip + ref.lead;
  }

  [[nodiscard]] bool runs(const StageRef& ref, std::int64_t trip, Part part) const {
    if (part == Part::kLast) return ref.lead == 0;
    return part == Part::kLoop || iteration_of(ref, trip) >= 0;
  }

  [[nodiscard]] bool has_work(const Phase& phase, std::int64_t trip, Part part) const {
    for (const PhaseItem& item : phase.items) {
      for (const Stream& stream : item.streams) {
        for (const StageRef& ref : stream.stages) {
          if (runs(ref, trip, part)) return true;
        }
      }
    }
    return false;
  }

  [[nodiscard]] bool uses_lds(const Phase& phase, std::int64_t trip, Part part) const {
    for (const PhaseItem& item : phase.items) {
      for (const Stream& stream : item.streams) {
        for (const StageRef& ref : stream.stages) {
          const std::vector<Access>& accesses = plan_.placed(ref).stage->accesses;
          const auto in_lds = [&](const Access& access) {
            return plan_.algorithm->find_tile(access.tile)->space == TileSpace::kLds;
          };
          if (runs(ref, trip, part) && std::any_of(accesses.begin(), accesses.end(), in_lds)) return true;
        }
      }
    }
    return false;
  }

  // The last trip needs a barrier only before what it still does with LDS.
  [[nodiscard]] bool needs_barrier(std::uint32_t phase, std::int64_t trip, Part part) const {
    const std::vector<Phase>& loop = plan_.placement.loop;
    return part != Part::kLast || std::any_of(loop.begin() + phase + 1, loop.end(),
                                              [&](const Phase& later) { return uses_lds(later, trip, part); });
  }

  // One trip: all phases, each closed by its waits and a barrier. The prologue starts with its first phase that has
  // work.
  void emit_trip(std::int64_t trip, Part part) {
    const std::vector<Phase>& loop = plan_.placement.loop;
    for (std::uint32_t phase = 0; phase < loop.size() && status_; ++phase) {
      if (part == Part::kLast && !has_work(loop[phase], trip, part) && !needs_barrier(phase, trip, part)) continue;
      started_ = started_ || has_work(loop[phase], trip, part);
      if (!started_) continue;
      if (!plan_.placement.priorities.empty()) {
        glue("phase", [&](StageWriter& w) {
          w.op(Op::kSSetprio, {jit::Imm{static_cast<std::int32_t>(plan_.placement.priorities[phase])}});
        });
      }
      for (const PhaseItem& item : loop[phase].items) emit_item(item, trip, part);
      if (part == Part::kPrologue && started_) emit_early_loads(trip * static_cast<std::int64_t>(loop.size()) + phase);
      if (!needs_barrier(phase, trip, part)) continue;
      const std::vector<DueWait> due = waits_due(phase, trip, part);
      // Before the first wait there is nothing that a barrier would publish.
      if (part == Part::kPrologue && !waiting_ && due.empty()) continue;
      start_waiting();
      for (const DueWait& wait : due) await({wait.token}, wait.comment);
      glue("phase", [&](StageWriter& w) { w.op(Op::kSBarrier, {}, "end of phase " + std::to_string(phase)); });
    }
  }

  [[nodiscard]] bool loaded_early(const StageRef& ref, std::int64_t trip, Part part) const {
    return part == Part::kPrologue && early_.count({plan_.placed(ref).stage, iteration_of(ref, trip)}) != 0;
  }

  // At the end of the prologue's phase `epoch`: loads of later phases (early_loads.h), and behind the first phase with
  // work the rest of setup, under the latency of its loads and these.
  void emit_early_loads(std::int64_t epoch) {
    const bool first = !early_left_;
    if (first) early_left_ = early_loads(plan_);
    std::vector<EarlyLoad> left;
    for (const EarlyLoad& load : *early_left_) {
      if (first) early_.emplace(plan_.placed(load.ref).stage, load.iteration);
      if (!waiting_ && load.epoch > epoch + 1) {
        left.push_back(load);
        continue;
      }
      settle_before(load.ref);
      emit_stage(load.ref, load.iteration, listing_.code);
    }
    early_left_ = std::move(left);
    if (first) settle_under_loads();
  }

  void emit_item(const PhaseItem& item, std::int64_t trip, Part part) {
    std::vector<WeightedCode> streams;
    for (const Stream& stream : item.streams) {
      WeightedCode& out = streams.emplace_back();
      out.weight = stream.weight;
      for (const StageRef& ref : stream.stages) {
        if (!runs(ref, trip, part) || loaded_early(ref, trip, part)) continue;
        settle_before(ref);
        emit_stage(ref, iteration_of(ref, trip), out.code);
      }
    }
    std::vector<jit::Instruction> merged = item.paced ? pace(std::move(streams)) : interleave(std::move(streams));
    listing_.code.insert(listing_.code.end(), std::make_move_iterator(merged.begin()),
                         std::make_move_iterator(merged.end()));
  }

  void emit_stage(const StageRef& ref, std::int64_t iteration, std::vector<jit::Instruction>& code) {
    const auto slot = static_cast<std::uint32_t>(iteration % plan_.unroll);
    const PlacedStage& placed = plan_.placed(ref);
    StageWriter writer(plan_, tiles_, listing_, code, placed, slot);
    placed.stage->emit(writer);
    note(writer.status());
  }

  struct DueWait {
    jit::Token token;
    std::string comment;
  };

  [[nodiscard]] std::vector<DueWait> waits_due(std::uint32_t phase, std::int64_t trip, Part part) const {
    std::vector<DueWait> due;
    for (const PlannedAwait& planned : plan_.awaits) {
      if (planned.phase != phase) continue;
      std::int64_t iteration = trip * plan_.placement.trip + planned.offset;
      if (part == Part::kPrologue && iteration < 0) continue;
      const auto unroll = static_cast<std::int64_t>(plan_.unroll);
      iteration = (iteration % unroll + unroll) % unroll;
      const std::uint32_t copy = static_cast<std::uint32_t>(iteration) % plan_.copies(planned.tile);
      const bool arrival = planned.kind == AwaitKind::kArrival;
      due.push_back({arrival ? tiles_.arrival_token(planned.tile, copy) : tiles_.reads_token(planned.tile, copy),
                     (arrival ? "arrival of " : "reads of ") + planned.tile + "#" + std::to_string(copy)});
    }
    return due;
  }

  const Plan& plan_;
  jit::Listing& listing_;
  const TileRegisters& tiles_;
  Status status_;
  jit::Label exit_{};
  SetupRest rest_;
  bool waiting_ = false;                                   // LDS traffic has been waited for
  bool started_ = false;                                   // a phase with work has been emitted
  std::set<std::pair<const Stage*, std::int64_t>> early_;  // loads that have left their place in the prologue
  std::optional<std::vector<EarlyLoad>> early_left_;       // those not emitted yet, from the first phase with work on
};

}  // namespace

Expected<jit::Listing> build_listing(const Plan& plan, const std::string& symbol) {
  jit::Listing listing;
  listing.symbol = symbol;
  std::optional<TileRegisters> before;
  if (plan.before != nullptr) {
    before.emplace(*plan.before, listing);
    LoopBuilder loop(*plan.before, *before, listing);
    if (Status status = loop.run(); !status) return tl::unexpected(status.error());
    if (Status status = loop.release_lds(); !status) return tl::unexpected(status.error());
  }
  const TileRegisters tiles(plan, listing, before ? &*before : nullptr);
  LoopBuilder loop(plan, tiles, listing);
  if (Status status = loop.run(); !status) return tl::unexpected(status.error());
  if (Status status = loop.finish(); !status) return tl::unexpected(status.error());
  return listing;
}

}  // namespace zyfa::schedules
