// Workgroup execution: see engine.h.
#include "runtime/sim/exec/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <iterator>

#include "runtime/sim/exec/random.h"
#include "runtime/sim/exec/strict.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kFpRound = 0xf, kGprIndexing = 1u << 27, kSkipVector = 1u << 28;

// MODE.FP_ROUND other than to-nearest-even, for the instructions that obey it: one at a time under the host's mode.
int host_rounding(u32 field) {
  switch (field & 3) {
    case 1:
      return FE_UPWARD;
    case 2:
      return FE_DOWNWARD;
    case 3:
      return FE_TOWARDZERO;
    default:
      return FE_TONEAREST;
  }
}

__attribute__((noinline)) void run_rounded(Wave& w, const MicroOp& op) {
  if (op.rounds != Rounds::kNearest)
    std::fesetround(host_rounding(op.rounds == Rounds::kDouble ? w.mode >> 2 : w.mode));
  op.run(w, op);
  std::fesetround(FE_TONEAREST);
}

bool is_valu(const MicroOp& op) { return op.unit == Unit::kValu || op.unit == Unit::kTrans; }
bool is_vector(const MicroOp& op) {
  return is_valu(op) || op.unit == Unit::kMfma || op.unit == Unit::kLds || op.unit == Unit::kVmem;
}

// VGPR indexing (guide 6.6): M0[7:0] is added to the vector registers that M0[15:12] names. False, with a fault, when a
// register lies outside of the wave's arch VGPRs, which is illegal.
bool index_registers(Wave& w, u32 arch_rows, MicroOp& op, const MicroOp& from) {
  const u32 index = w.s[kM0] & 0xff, enabled = (w.s[kM0] >> 12) & 15;
  const auto move = [&](Operand& o, u32 bit) {
    if (o.kind != OperandKind::kVgpr || o.agpr || !((enabled >> bit) & 1)) return true;
    if (o.index + index + o.count > arch_rows) {
      raise_fault(w, from, 0,
                  fmt::format("GPR indexing by {} reaches v{}; the wave has {} arch VGPRs", index,
                              o.index + index + o.count - 1u, arch_rows));
      return false;
    }
    o.index = static_cast<std::uint16_t>(o.index + index);
    return true;
  };
  if (!move(op.dst, 3)) return false;
  for (unsigned i = 0; i < op.sources && i < 3; ++i)
    if (!move(op.src[i], i)) return false;
  return true;
}

void fill(SimStatistics& s, const UnitCounts& n) {
  const auto of = [&](Unit unit) { return n[static_cast<std::size_t>(unit)]; };
  s.valu = of(Unit::kValu);
  s.trans = of(Unit::kTrans);
  s.mfma = of(Unit::kMfma);
  s.salu = of(Unit::kSalu);
  s.smem = of(Unit::kSmem);
  s.lds = of(Unit::kLds);
  s.vmem = of(Unit::kVmem);
  s.branch = of(Unit::kBranch);
  s.barrier = of(Unit::kBarrier);
  s.other = of(Unit::kOther);
  for (const u64 x : n) s.instructions += x;
}

u32 wave_count(const LaunchShape& shape) {
  const u64 items = static_cast<u64>(shape.block[0]) * shape.block[1] * shape.block[2];
  return static_cast<u32>((items + kLanes - 1) / kLanes);
}

}  // namespace

void apply_mode(Wave& w, u32 mode) {
  w.mode = mode;
  const u32 single = (mode >> 4) & 3, other = (mode >> 6) & 3;
  w.f32_in = single & 1 ? ~0u : 0x80000000u;
  w.f32_out = single & 2 ? ~0u : 0x80000000u;
  w.f16_in = other & 1 ? 0xffff : 0x8000;
  w.f16_out = other & 2 ? 0xffff : 0x8000;
  w.f64_in = other & 1 ? ~0ull : 0x8000000000000000ull;
  w.f64_out = other & 2 ? ~0ull : 0x8000000000000000ull;
}

u32 scalar_value(const Wave& w, const Operand& o, unsigned dword) {
  switch (o.kind) {
    case OperandKind::kSgpr:
      return o.index + dword < kScalars ? w.s[o.index + dword] : 0;
    case OperandKind::kConst:
      return dword ? o.hi : o.lo;
    case OperandKind::kSpecial:
      switch (static_cast<SpecialSource>(o.index)) {
        case SpecialSource::kScc:
          return dword ? 0 : w.scc;
        case SpecialSource::kVccz:
          return dword ? 0 : w.scalar64(kVccLo) == 0;
        case SpecialSource::kExecz:
          return dword ? 0 : w.exec() == 0;
        // Apertures are read as pairs; the flat address tests of vmem_address.cpp use the same numbers.
        case SpecialSource::kSharedBase:
          return dword ? 0x00010000u : 0;
        case SpecialSource::kSharedLimit:
          return dword ? 0x00010000u : ~0u;
        case SpecialSource::kPrivateBase:
          return dword ? 0x00020000u : 0;
        case SpecialSource::kPrivateLimit:
          return dword ? 0x00020000u : ~0u;
        case SpecialSource::kLdsDirect:
          return 0;
      }
      return 0;
    default:
      return 0;
  }
}

void raise_fault(Wave& w, const MicroOp& op, unsigned lane, std::string message) {
  w.state = WaveState::kFaulted;
  Fault& fault = w.group->fault;
  if (fault.raised) return;
  fault = Fault{true, false, w.id, lane, &op, std::move(message)};
}

void raise_memory_fault(Wave& w, const MicroOp& op, unsigned lane, u64 address, unsigned bytes, const char* what) {
  raise_fault(w, op, lane,
              fmt::format("{} {} bytes at 0x{:x}, {}", what, bytes, address, w.group->memory->describe(address)));
  w.group->fault.is_memory = true;
}

bool jump_to_offset(Wave& w, u64 offset) {
  const Group& g = *w.group;
  if (offset >= g.text_bytes || offset % 4 != 0 || g.op_at[offset / 4] == Program::kNoOp) return false;
  w.pc = g.op_at[offset / 4];
  return true;
}

Engine::Engine(const LaunchPlan& plan)
    : plan_(plan), flight_(group_, plan.landing, plan.landing_seed), watchers_(*plan.program, plan.watches) {
  if (plan.counts == SimCounts::kByInstruction) launch_counts_.start(plan.program->ops.size());
  const u32 waves = wave_count(plan.shape);
  group_.memory = plan.memory;
  group_.code_address = plan.code_address;
  group_.op_at = plan.program->op_at.data();
  group_.text_bytes = plan.program->text_bytes;
  group_.waves.resize(waves);
  group_.registers.resize(static_cast<std::size_t>(waves) * plan.program->registers.rows);
  group_.dma.resize(waves);
  group_.scratch_bytes = plan.scratch_bytes;
  group_.scratch.resize(static_cast<std::size_t>(waves) * kLanes * plan.scratch_bytes);
  lds_.resize(plan.lds_bytes);
  group_.lds = lds_.data();
  group_.lds_bytes = plan.lds_bytes;
  if (plan.strict) {
    strict_ = std::make_unique<Strict>(plan, *plan.strict_table, group_, flight_);
    flight_.observe(strict_.get());
  }
}

Engine::~Engine() = default;

void Engine::start_wave(u32 index) {
  Wave& w = group_.waves[index];
  w = Wave{};
  w.id = index;
  w.group = &group_;
  w.rules = plan_.rules;
  w.vgpr_rows = plan_.program->registers.rows;
  w.v = group_.registers.data() + static_cast<std::size_t>(index) * w.vgpr_rows;
  w.pc = plan_.program->entry;
  apply_mode(w, plan_.mode);
  // gfx950-isa.md 5.2: user SGPRs, then workgroup ids.
  u32 next = 0;
  for (const u32 value : plan_.user_sgprs) w.s[next++] = value;
  for (unsigned axis = 0; axis < 3; ++axis)
    if (plan_.workgroup_id[axis]) w.s[next++] = group_.id[axis];
  if (plan_.workgroup_info) w.s[next++] = 0;
  // VGPR0 = x | y << 10 | z << 20.
  const auto& block = plan_.shape.block;
  const u64 items = static_cast<u64>(block[0]) * block[1] * block[2];
  u64 exec = 0;
  for (u32 l = 0; l < kLanes; ++l) {
    const u64 item = static_cast<u64>(index) * kLanes + l;
    if (item >= items) break;
    exec |= 1ull << l;
    const u32 x = static_cast<u32>(item % block[0]), y = static_cast<u32>(item / block[0] % block[1]),
              z = static_cast<u32>(item / block[0] / block[1]);
    w.v[0].lane[l] = x | (y << 10) | (z << 20);
  }
  w.set_scalar64(kExecLo, exec);
}

void Engine::start(std::array<u32, 3> id) {
  group_.id = id;
  group_.fault = Fault{};
  // What a kernel never wrote reads as a NaN in every float format; strict mode reports it.
  std::memset(group_.registers.data(), 0xff, group_.registers.size() * sizeof(VectorReg));
  std::fill(lds_.begin(), lds_.end(), std::uint8_t{0xff});
  std::fill(group_.scratch.begin(), group_.scratch.end(), std::uint8_t{0xff});
  for (DmaQueue& q : group_.dma) q.head = q.count = q.landed = 0;
  for (u32 i = 0; i < group_.waves.size(); ++i) start_wave(i);
  live_ = static_cast<u32>(group_.waves.size());
  waiting_ = 0;
  flight_.start(group_number());
  watching_ = watchers_.start(group_);
  stopped_ = false;
  recording_ = plan_.capture != nullptr && plan_.capture->records(group_number());
  if (recording_) recorder_.start(group_);
  if (strict_) strict_->start();
}

// Counts workgroups in launch order: the seed of what is random in this one, on any thread.
u64 Engine::group_number() const {
  const auto& grid = plan_.shape.grid;
  return group_.id[0] + static_cast<u64>(grid[0]) * (group_.id[1] + static_cast<u64>(grid[1]) * group_.id[2]);
}

void Engine::report_fault(GroupResult& result) const {
  const Fault& f = group_.fault;
  const std::size_t index = plan_.program->op_at[f.op->offset / 4];  // the operation may be a copy
  SimFinding finding;
  finding.kind = f.is_memory ? "memory-fault" : "execution-fault";
  finding.offset = f.op->offset - plan_.program->entry_offset;
  finding.workgroup = group_.id;
  finding.wave = f.wave;
  finding.lane = f.lane;
  finding.instruction = plan_.program->text[index];
  finding.message = f.message;
  if (plan_.origins != nullptr && index < plan_.origins->size()) finding.origin = (*plan_.origins)[index];
  result.failed = true;
  result.code = f.is_memory ? ErrorCode::kMemoryFault : ErrorCode::kDeviceError;
  result.message = f.message;
  result.findings.push_back(std::move(finding));
}

void Engine::release_barrier() {
  if (waiting_ == 0 || waiting_ != live_) return;
  if (strict_) strict_->barrier();
  for (Wave& w : group_.waves)
    if (w.state == WaveState::kBarrier) w.state = WaveState::kRunning;
  waiting_ = 0;
}

void Engine::wave_ended(Wave& w) {
  flight_.wait(w, 0, 0);
  --live_;
}

void Engine::report_limit(GroupResult& result, const Wave& w) const {
  result.failed = true;
  result.code = ErrorCode::kDeviceError;
  const MicroOp& next = plan_.program->ops[w.pc];
  result.message = fmt::format(
      "wave {} of workgroup ({}, {}, {}) reached the limit of {} instructions (SimOptions::max_instructions) before "
      "+0x{:x} "
      "`{}`",
      w.id, group_.id[0], group_.id[1], group_.id[2], plan_.max_instructions, next.offset - plan_.program->entry_offset,
      plan_.program->text[w.pc]);
}

void Engine::before(Wave& w, const MicroOp& op, std::size_t index) {
  if (!launch_counts_.empty()) launch_counts_.add(w, op, index);
  if (recording_) recorder_.add(w, op, index);
  if (watching_) stopped_ = !watchers_.call(SimMoment::kBefore, w, op, w.executed);
  if (strict_ && !stopped_) strict_->before(w, op);
}

void Engine::after(Wave& w, const MicroOp& op) {
  if (strict_) strict_->after(w, op);
  if (!watching_) return;
  const auto result = flight_.withholds(op) ? SimStep::Result::kInFlight : SimStep::Result::kThere;
  stopped_ = !watchers_.call(SimMoment::kAfter, w, op, w.executed, result);
}

template <bool Watched>
void Engine::access_memory(Wave& w, const MicroOp& op) {
  const u32 entry = flight_.issue(w, op);
  if constexpr (Watched) {
    if (strict_) strict_->issued(w, op, entry);
  }
  op.run(w, op);
  if (w.state == WaveState::kFaulted) return;
  flight_.executed(w, entry);
  if constexpr (Watched) {
    if (strict_) strict_->loaded(w, op, entry);
  }
}

template <bool Watched>
void Engine::step(Wave& w) {
  flight_.advance(w);
  const std::size_t index = w.pc++;
  const MicroOp* decoded = &plan_.program->ops[index];
  if ((w.mode & (kGprIndexing | kSkipVector)) != 0) [[unlikely]] {
    if ((w.mode & kSkipVector) && is_vector(*decoded)) return static_cast<void>(++w.executed);
    if ((w.mode & kGprIndexing) && is_valu(*decoded)) {
      indexed_ = *decoded;
      if (!index_registers(w, plan_.program->registers.accum_offset, indexed_, *decoded)) return;
      if constexpr (Watched) {
        if (strict_) strict_->follow_indexed(indexed_, *decoded);
      }
      decoded = &indexed_;
    }
  }
  const MicroOp& op = *decoded;
  ++counts_[static_cast<std::size_t>(op.unit)];
  flops_ += op.flops;
  if constexpr (Watched) {
    before(w, op, index);
    if (stopped_) return;
  }
  if (op.unit == Unit::kLds || op.unit == Unit::kVmem || op.unit == Unit::kSmem) {
    access_memory<Watched>(w, op);
  } else {
    if ((w.mode & kFpRound) != 0) [[unlikely]] {
      run_rounded(w, op);
    } else {
      op.run(w, op);
    }
    if (op.vmcnt != kVmcntMax || op.lgkmcnt != kLgkmcntMax) flight_.wait(w, op.vmcnt, op.lgkmcnt);
  }
  if constexpr (Watched) after(w, op);
  ++w.executed;
}

template <bool Watched>
bool Engine::advance(Wave& w, GroupResult& result) {
  step<Watched>(w);
  switch (w.state) {
    case WaveState::kRunning:
      if (plan_.max_instructions != 0 && w.executed >= plan_.max_instructions) return report_limit(result, w), false;
      break;
    case WaveState::kBarrier:
      ++waiting_;
      break;
    case WaveState::kEnded:
      wave_ended(w);
      break;
    case WaveState::kFaulted:
      return report_fault(result), false;
  }
  if constexpr (Watched) {
    if (stopped_) return report_stop(result, w), false;
    return !strict_ || !strict_->full();
  }
  return true;
}

void Engine::report_stop(GroupResult& result, const Wave& w) const {
  result.failed = true;
  result.code = ErrorCode::kDeviceError;
  result.message = fmt::format("a watch stopped wave {} of workgroup ({}, {}, {}) after {} instructions", w.id,
                               group_.id[0], group_.id[1], group_.id[2], w.executed);
}

template <bool Watched>
void Engine::take_turns(GroupResult& result, u64 instructions) {
  constexpr u64 kBeat = 1u << 20;  // instructions of a wave
  for (u64 done = 0; live_ != 0; done += instructions) {
    if (done % kBeat < instructions && plan_.heartbeat) plan_.heartbeat();
    for (Wave& w : group_.waves) {
      for (u64 n = 0; n < instructions && w.state == WaveState::kRunning; ++n)
        if (!advance<Watched>(w, result)) return;
    }
    release_barrier();
  }
}

template <bool Watched>
void Engine::draw_lots(GroupResult& result) {
  u64 random = mix(plan_.interleave_seed, group_number(), group_.waves.size());
  std::vector<u32> running;
  while (live_ != 0) {
    running.clear();
    for (const Wave& w : group_.waves)
      if (w.state == WaveState::kRunning) running.push_back(w.id);
    while (!running.empty()) {
      const std::size_t drawn = next_random(random) % running.size();
      Wave& w = group_.waves[running[drawn]];
      if (!advance<Watched>(w, result)) return;
      if (w.state == WaveState::kRunning) continue;
      running[drawn] = running.back();
      running.pop_back();
    }
    release_barrier();
  }
}

template <bool Watched>
void Engine::interleave(GroupResult& result) {
  // A wave that waits for another one in a loop gives way after this many instructions.
  constexpr u64 kLongTurn = 1u << 20;
  switch (plan_.interleave) {
    case SimInterleave::kRoundRobin:
      return take_turns<Watched>(result, 1);
    case SimInterleave::kToBarrier:
      return take_turns<Watched>(result, kLongTurn);
    case SimInterleave::kRandom:
      return draw_lots<Watched>(result);
  }
}

GroupResult Engine::run(std::array<u32, 3> id) {
  start(id);
  GroupResult result;
  counts_ = {};
  flops_ = 0;
  if (strict_ || watching_ || recording_ || !launch_counts_.empty()) {
    interleave<true>(result);
  } else {
    interleave<false>(result);
  }
  result.statistics.workgroups = 1;
  result.statistics.waves = group_.waves.size();
  result.statistics.mfma_flops = flops_;
  fill(result.statistics, counts_);
  if (recording_) result.recorded = Recorded{recorder_.take_trace(), recorder_.toggles()};
  if (!strict_) return result;
  std::vector<SimFinding> findings = strict_->take_findings();
  if (findings.empty()) return result;
  const auto first = std::find_if(findings.begin(), findings.end(), [](const SimFinding& f) { return !f.warning; });
  // A fault after a finding is its consequence: the finding names the error.
  if (first != findings.end()) {
    const auto errors = std::count_if(first, findings.end(), [](const SimFinding& f) { return !f.warning; });
    result.failed = true;
    result.code = ErrorCode::kStrictFinding;
    result.message = fmt::format("strict mode: {} finding{}, the first: {}: {}", errors, errors == 1 ? "" : "s",
                                 first->kind, first->message);
  }
  result.findings.insert(result.findings.begin(), std::make_move_iterator(findings.begin()),
                         std::make_move_iterator(findings.end()));
  return result;
}

}  // namespace zyfa::sim
