#include "runtime/sim/timing/cu_model.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/sim/timing/cu_memory.h"
#include "runtime/sim/timing/op_cost.h"
#include "runtime/sim/timing/wave_state.h"

namespace zyfa::sim::timing {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u64 kTurn = 4;  // a SIMD's turn comes every 4 cycles (1.1)

// The first turn of `simd` at `time` or later.
u64 turn_at(u64 time, u32 simd) { return time == kNever ? kNever : time + ((simd - time) & (kTurn - 1)); }
// A unit that is free before the turn after next can take an instruction now and start it when it is free.
u64 turn_before(u64 time) { return time < kTurn ? 0 : time - (kTurn - 1); }

struct Simd {
  std::vector<WaveState*> waves;
  u64 next = kNever;
  u64 port_free = 0;         // VALU port
  u64 matrix_port_free = 0;  // the same for an MFMA, which may go under a TRANS (hold_hides_under_trans)
  Stall port_holder = Stall::kValuPort;
  u64 matrix_free = 0;
  const OpRow* last_matrix = nullptr;
};

struct Running {
  u32 live = 0, waiting = 0;
};

struct Head {
  u64 at = 0;
  Stall reason = Stall::kNone;
  void after(u64 time, Stall why) {
    if (time > at) *this = {time, why};
  }
};

class ComputeUnit {
 public:
  ComputeUnit(const CuRun& run, const Parameters& parameters)
      : run_(run), p_(parameters), costs_(op_costs(*run.program, parameters)), lds_(parameters), vmem_(parameters) {}
  Expected<CuResult> run();

 private:
  void launch(u64 now);
  void place(const GroupTrace& group, u32 number, u64 now);
  u32 choose_simd(u32 wave) const;
  void turn(u32 simd, u64 now);
  // Whether its head can issue now; if not, when to look again.
  bool competes(WaveState& w, u64 now);
  // Lets internal instructions pass; when the next one may issue.
  Head settle(WaveState& w, u64 now);
  Head head(WaveState& w, const OpCost& c, u64 now);
  void vector_head(const WaveState& w, const OpCost& c, Head& h) const;
  void lds_head(WaveState& w, const OpCost& c, u64 now, Head& h);
  void internal(WaveState& w, const OpCost& c, u64 now);
  void issue(WaveState& w, u64 now);
  Service use_unit(WaveState& w, const OpCost& c, u64 now);
  Service issue_matrix(WaveState& w, const OpCost& c, u64 now);
  Service issue_vector(WaveState& w, const OpCost& c, u64 now);
  Service issue_vmem(WaveState& w, const OpCost& c, u64 now);
  void arrive(WaveState& w, u64 now);
  void release_barrier(u32 group, u64 now);
  void end_wave(WaveState& w, u64 now);
  void account(WaveState& w, u64 now);
  // Logs the instruction at the head and moves on; the next may issue from `ready`.
  void finish(WaveState& w, u64 now, const Service& service, u64 ready);
  [[nodiscard]] bool beats(const WaveState& a, const WaveState& b) const;

  const CuRun& run_;
  const Parameters& p_;
  std::vector<OpCost> costs_;
  LdsUnit lds_;
  VmemUnit vmem_;
  std::array<Simd, kSimds> simds_;
  std::vector<WaveState> waves_;
  std::vector<WaveState*> visiting_;  // of the SIMD whose turn it is, while waves end
  std::vector<Running> groups_;
  u32 launched_ = 0, resident_ = 0;
  bool group_ended_ = false;
  CuResult result_;
};

u32 ComputeUnit::choose_simd(u32 wave) const {
  u32 best = wave % kSimds;
  for (u32 i = 1; i < kSimds; ++i) {
    const u32 simd = (wave + i) % kSimds;
    if (simds_[simd].waves.size() < simds_[best].waves.size()) best = simd;
  }
  return best;
}

void ComputeUnit::place(const GroupTrace& group, u32 number, u64 now) {
  for (u32 i = 0; i < group.waves.size(); ++i) {
    WaveState& w = waves_.emplace_back();
    w.slot = static_cast<u32>(waves_.size() - 1);
    w.group = number;
    w.simd = choose_simd(i);
    w.step = group.waves[i].steps.data();
    w.end = w.step + group.waves[i].steps.size();
    w.ready = w.seen = w.earliest = turn_at(now, w.simd);
    simds_[w.simd].waves.push_back(&w);
    simds_[w.simd].next = std::min(simds_[w.simd].next, w.earliest);
    result_.waves.push_back({.workgroup = group.id, .index = i, .simd = w.simd, .start = w.ready});
  }
  groups_[number].live = static_cast<u32>(group.waves.size());
}

void ComputeUnit::launch(u64 now) {
  for (; resident_ < run_.resident && launched_ < run_.groups.size(); ++launched_, ++resident_)
    place(*run_.groups[launched_], launched_, now);
}

bool ComputeUnit::beats(const WaveState& a, const WaveState& b) const {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (!p_.oldest_first && a.issued != b.issued) return a.issued < b.issued;
  return a.slot < b.slot;
}

void ComputeUnit::vector_head(const WaveState& w, const OpCost& c, Head& h) const {
  const Simd& simd = simds_[w.simd];
  if (c.kind == Kind::kMatrix) {
    if (c.category == Category::kVector) h.after(simd.matrix_port_free, simd.port_holder);
    h.after(turn_before(simd.matrix_free), Stall::kMatrixBusy);
    return;
  }
  h.after(simd.port_free, simd.port_holder);
  h.after(c.kind == Kind::kPacked ? w.packed_from : w.plain_from, Stall::kMatrixShadow);
}

void ComputeUnit::lds_head(WaveState& w, const OpCost& c, u64 now, Head& h) {
  h.after(w.memory_from, Stall::kMatrixShadow);
  h.after(lds_.room(w.simd, now), Stall::kLdsQueue);
  h.after(w.results.usable(c.address_row, c.address_count, p_.valu_to_lds_cycles), Stall::kAddress);
  w.lgkm.expire(now);
  h.after(w.lgkm.release(kLgkmcntMax - 1).time, Stall::kLdsQueue);
}

Head ComputeUnit::head(WaveState& w, const OpCost& c, u64 now) {
  Head h{w.ready, Stall::kNone};
  h.after(turn_before(w.fetch), Stall::kFetch);
  switch (c.kind) {
    case Kind::kPlain:
    case Kind::kPacked:
    case Kind::kTrans:
    case Kind::kMatrix:
      vector_head(w, c, h);
      break;
    case Kind::kLdsRead:
    case Kind::kLdsWrite:
      lds_head(w, c, now, h);
      break;
    case Kind::kVmem:
      h.after(w.memory_from, Stall::kMatrixShadow);
      h.after(vmem_.room(now, w.step->work), Stall::kVmemQueue);
      w.vm.expire(now);
      h.after(w.vm.release(kVmcntMax - 1).time, Stall::kVmemQueue);
      break;
    case Kind::kSmem:
      w.lgkm.expire(now);
      h.after(w.lgkm.release(kLgkmcntMax - 1).time, Stall::kSmemWait);
      break;
    case Kind::kWait: {
      w.vm.expire(now);
      w.lgkm.expire(now);
      const Counter::Release vm = w.vm.release(c.vmcnt), lgkm = w.lgkm.release(c.lgkmcnt);
      h.after(vm.time, vm.stall);
      h.after(lgkm.time, lgkm.stall);
      break;
    }
    default:
      break;
  }
  return h;
}

void ComputeUnit::account(WaveState& w, u64 now) {
  if (now <= w.seen) return;
  const auto cycles = static_cast<u32>(now - w.seen);
  w.stalls[static_cast<std::size_t>(w.reason)] += cycles;
  w.stalled += cycles;
  w.seen = now;
}

void ComputeUnit::finish(WaveState& w, u64 now, const Service& service, u64 ready) {
  WaveTime& time = result_.waves[w.slot];
  ++time.instructions;
  Stall most = Stall::kNone;
  if (w.stalled > 0) {
    for (std::size_t i = 0; i < kStalls; ++i) {
      time.stalls[i] += w.stalls[i];
      if (w.stalls[i] > w.stalls[static_cast<std::size_t>(most)]) most = static_cast<Stall>(i);
    }
  }
  if (run_.events == EventLog::kOn) {
    result_.events.push_back({.wave = w.slot,
                              .op = w.step->op,
                              .issue = now,
                              .unit_start = service.start,
                              .end = service.end,
                              .stalled = w.stalled,
                              .stall = most});
  }
  if (w.stalled > 0) {
    w.stalls.fill(0);
    w.stalled = 0;
  }
  w.reason = Stall::kNone;
  ++w.step;
  w.ready = ready;
  w.seen = w.earliest = turn_at(ready, w.simd);
}

void ComputeUnit::end_wave(WaveState& w, u64 now) {
  result_.waves[w.slot].end = now;
  result_.cycles = std::max(result_.cycles, now);
  w.earliest = kNever;
  std::erase(simds_[w.simd].waves, &w);
  Running& group = groups_[w.group];
  if (--group.live == 0) {
    --resident_;
    group_ended_ = true;
  } else if (group.waiting == group.live) {
    release_barrier(w.group, now);
  }
}

void ComputeUnit::release_barrier(u32 group, u64 now) {
  groups_[group].waiting = 0;
  const u64 ready = now + p_.barrier_cycles;
  for (Simd& simd : simds_) {
    for (WaveState* w : simd.waves) {
      if (w->group != group) continue;
      w->ready = ready;
      w->at_barrier = false;
      result_.waves[w->slot].stalls[static_cast<std::size_t>(Stall::kBarrier)] += turn_at(ready, w->simd) - w->arrived;
      if (run_.events == EventLog::kOn) result_.events[w->barrier_event].end = ready;
      w->seen = w->earliest = turn_at(ready, w->simd);
      simd.next = std::min(simd.next, w->earliest);
    }
  }
}

void ComputeUnit::arrive(WaveState& w, u64 now) {
  w.barrier_event = result_.events.size();
  finish(w, now, {now, now, now}, kNever);
  w.arrived = now;
  w.at_barrier = true;
  Running& group = groups_[w.group];
  if (++group.waiting == group.live) release_barrier(w.group, now);
}

void ComputeUnit::internal(WaveState& w, const OpCost& c, u64 now) {
  switch (c.kind) {
    case Kind::kBarrier:
      arrive(w, now);
      return;
    case Kind::kEnd:
      finish(w, now, {now, now, now}, kNever);
      return;
    case Kind::kPriority:
      w.priority = c.priority;
      break;
    case Kind::kNop:
      result_.waves[w.slot].stalls[static_cast<std::size_t>(Stall::kNop)] += c.wave_cycles;
      break;
    default:
      break;
  }
  const u64 end = now + c.wave_cycles;
  finish(w, now, {now, end, end}, end);
}

Head ComputeUnit::settle(WaveState& w, u64 now) {
  while (w.step != w.end) {
    const OpCost& c = costs_[w.step->op];
    const Head h = head(w, c, now);
    if (h.at > now || c.category != Category::kInternal) return h;
    account(w, now);
    internal(w, c, now);
    if (w.earliest > now && w.step != w.end) return {w.earliest, Stall::kNone};
  }
  return {kNever, Stall::kNone};
}

Service ComputeUnit::issue_matrix(WaveState& w, const OpCost& c, u64 now) {
  Simd& simd = simds_[w.simd];
  const OpRow* row = run_.program->ops[w.step->op].row;
  const bool idle = simd.last_matrix == nullptr || simd.matrix_free + kTurn <= now;
  const u64 late = c.scaled && idle ? p_.scaled_idle_cycles : 0;
  u64 start = std::max(now, simd.matrix_free) + late;
  if (simd.last_matrix != nullptr && simd.last_matrix != row) start += p_.mfma_type_change_cycles;
  simd.last_matrix = row;
  simd.matrix_free = start + c.matrix;
  if (c.category == Category::kVector) {
    simd.port_free = simd.matrix_port_free = std::max(simd.port_free, now + c.hold + late);
    simd.port_holder = Stall::kValuPort;
  }
  w.plain_from = now + c.shadow + late;
  w.packed_from = now + c.pk_shadow + late;
  w.memory_from = now + kTurn * p_.memory_after_mfma_slots;
  result_.busy.matrix[w.simd] += c.matrix;
  return {start, start + c.matrix, start + c.matrix};
}

Service ComputeUnit::issue_vector(WaveState& w, const OpCost& c, u64 now) {
  Simd& simd = simds_[w.simd];
  simd.port_free = simd.matrix_port_free = now + c.port;
  simd.port_holder = Stall::kValuPort;
  if (c.kind == Kind::kTrans) {
    simd.port_holder = Stall::kTrans;
    if (p_.hold_hides_under_trans) simd.matrix_port_free = now + c.port / 2;
    result_.busy.trans[w.simd] += c.port;
  }
  // In an idle pipe it takes its own time, under an MFMA the measured loss (1.3c).
  if (c.matrix > 0) simd.matrix_free = simd.matrix_free > now ? simd.matrix_free + c.matrix : now + c.port;
  if (c.result_count > 0) w.results.add(c.result_row, c.result_count, now);
  result_.busy.valu[w.simd] += c.port;
  return {now, now + c.port, now + c.port};
}

Service ComputeUnit::issue_vmem(WaveState& w, const OpCost& c, u64 now) {
  Service service = vmem_.request(now, c, w.step->work);
  service.result = std::max(service.result, w.vm.latest());
  w.vm.add(service.result, Stall::kVmemWait);
  if (c.lds_dma) lds_.arrival(service.result, w.step->work);
  return {service.start, service.result, service.result};
}

Service ComputeUnit::use_unit(WaveState& w, const OpCost& c, u64 now) {
  switch (c.kind) {
    case Kind::kMatrix:
      return issue_matrix(w, c, now);
    case Kind::kPlain:
    case Kind::kPacked:
    case Kind::kTrans:
      return issue_vector(w, c, now);
    case Kind::kLdsRead:
    case Kind::kLdsWrite: {
      const Service service = lds_.request(w.simd, now, c, w.step->work);
      w.lgkm.add(service.result, Stall::kLdsWait);
      return {service.start, service.result, service.result};
    }
    case Kind::kVmem:
      return issue_vmem(w, c, now);
    case Kind::kSmem:
      w.lgkm.add(now + p_.smem_latency, Stall::kSmemWait);
      result_.busy.scalar += kTurn;
      return {now, now + p_.smem_latency, 0};
    case Kind::kSalu:
      result_.busy.scalar += kTurn;
      return {now, now + kTurn, 0};
    default:
      return {now, now + kTurn, 0};
  }
}

void ComputeUnit::issue(WaveState& w, u64 now) {
  const OpCost& c = costs_[w.step->op];
  const Service service = use_unit(w, c, now);
  w.fetch = std::max(w.fetch, now) + kTurn + (c.misaligned ? p_.misaligned_fetch_cycles : 0);
  w.issued = now + 1;
  u64 ready = now + kTurn;
  if (c.kind == Kind::kBranch && w.step + 1 != w.end && w.step[1].op != w.step->op + 1) {
    ready = now + p_.taken_branch_cycles;
    w.fetch = 0;
    result_.waves[w.slot].stalls[static_cast<std::size_t>(Stall::kFetch)] += ready - now - kTurn;
  }
  finish(w, now, service, ready);
}

bool ComputeUnit::competes(WaveState& w, u64 now) {
  const Head h = settle(w, now);
  if (w.step == w.end && !w.at_barrier) {
    end_wave(w, now);
    return false;
  }
  if (w.earliest > now) return false;
  account(w, now);
  if (h.at <= now) return true;
  w.reason = h.reason;
  w.earliest = turn_at(h.at, w.simd);
  return false;
}

void ComputeUnit::turn(u32 number, u64 now) {
  Simd& simd = simds_[number];
  std::array<WaveState*, kCategories> winners{};
  visiting_ = simd.waves;
  for (WaveState* w : visiting_) {
    if (w->earliest > now || !competes(*w, now)) continue;
    Category category = costs_[w->step->op].category;
    if (category == Category::kVmem && p_.shared_memory_port) category = Category::kLds;
    w->reason = category == Category::kScalar ? Stall::kScalar : Stall::kPriority;
    w->earliest = now + kTurn;
    WaveState*& winner = winners[static_cast<std::size_t>(category)];
    if (winner == nullptr || beats(*w, *winner)) winner = w;
  }
  for (WaveState* w : winners)
    if (w != nullptr) issue(*w, now);
  if (group_ended_) {
    group_ended_ = false;
    launch(now);
  }
  simd.next = kNever;
  for (const WaveState* w : simd.waves) simd.next = std::min(simd.next, w->earliest);
}

Expected<CuResult> ComputeUnit::run() {
  std::size_t waves = 0;
  for (const GroupTrace* group : run_.groups) waves += group->waves.size();
  waves_.reserve(waves);
  groups_.resize(run_.groups.size());
  launch(0);
  for (;;) {
    u32 first = 0;
    for (u32 i = 1; i < kSimds; ++i)
      if (simds_[i].next < simds_[first].next) first = i;
    if (simds_[first].next == kNever) break;
    turn(first, simds_[first].next);
  }
  result_.busy.lds = lds_.busy();
  result_.busy.l1 = vmem_.busy();
  return std::move(result_);
}

Status check(const CuRun& run) {
  if (run.program == nullptr || run.groups.empty() || run.resident == 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a cycle model run of {} workgroups, {} resident: a program and at least one of both "
                                  "are needed",
                                  run.groups.size(), run.resident));
  }
  for (const GroupTrace* group : run.groups) {
    const std::size_t most = kSimds * kMaxWavesPerSimd;
    if (group->waves.empty() || run.resident * group->waves.size() > most) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("{} resident workgroups of {} waves; a compute unit holds 1 to {} waves",
                                    run.resident, group->waves.size(), most));
    }
    for (const WaveTrace& wave : group->waves) {
      for (const Step& step : wave.steps) {
        if (step.op >= run.program->ops.size() || run.program->ops[step.op].row == nullptr) {
          return make_error(
              ErrorCode::kInvalidArgument,
              fmt::format("a trace names instruction {}; the program has {}, of which those are allowed that "
                          "its entry reaches",
                          step.op, run.program->ops.size()));
        }
      }
    }
  }
  return {};
}

}  // namespace

std::string_view stall_name(Stall stall) {
  constexpr std::array<std::string_view, kStalls> kNames = {
      "none",           "lds wait",  "vmem wait",  "smem wait", "barrier", "matrix busy", "matrix shadow", "valu port",
      "transcendental", "lds queue", "vmem queue", "scalar",    "nop",     "priority",    "fetch",         "address"};
  return kNames[static_cast<std::size_t>(stall)];
}

Expected<CuResult> run_cu(const CuRun& run, const Parameters& parameters) {
  if (Status valid = check(run); !valid) return tl::unexpected(valid.error());
  return ComputeUnit(run, parameters).run();
}

}  // namespace zyfa::sim::timing
