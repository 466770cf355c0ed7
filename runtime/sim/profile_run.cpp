// What one run of a workgroup says of its loop, units and waves: profile.h.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/sim/profile.h"
#include "runtime/sim/timing/steady.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using timing::CuResult;
using timing::Event;

constexpr double kCriticalShare = 0.8;  // a unit less busy than this does not limit the loop by itself

// The middle half of the first looping wave's trips, those of its longest run when it enters the loop several times.
struct Window {
  u64 begin = 0, end = 0;
  [[nodiscard]] double cycles() const { return static_cast<double>(end - begin); }
  [[nodiscard]] bool holds(u64 cycle) const { return cycle >= begin && cycle < end; }
  [[nodiscard]] u64 overlap(u64 from, u64 to) const {
    const u64 first = std::max(from, begin), last = std::min(to, end);
    return last > first ? last - first : 0;
  }
};

// When each wave passes the loop's head.
std::vector<std::vector<u64>> passes_of(const CuResult& run, u32 head) {
  std::vector<std::vector<u64>> passes(run.waves.size());
  for (const Event& event : run.events)
    if (event.op == head) passes[event.wave].push_back(event.issue);
  return passes;
}

bool loops(const std::vector<u64>& passes) { return passes.size() >= 3; }

// A wave's most passes through the head that no other code interrupts.
std::vector<u64> longest_run(const CuResult& run, u32 wave, const timing::SteadyLoop& loop) {
  std::vector<u64> longest, current;
  for (const Event& event : run.events) {
    if (event.wave != wave) continue;
    if (event.op == loop.head) current.push_back(event.issue);
    if (event.op >= loop.head && event.op <= loop.tail) continue;
    if (current.size() > longest.size()) longest.swap(current);
    current.clear();
  }
  return current.size() > longest.size() ? current : longest;
}

Window middle_of(const CuResult& run, const timing::SteadyLoop& loop, const std::vector<std::vector<u64>>& passes) {
  const auto first = std::find_if(passes.begin(), passes.end(), loops);
  std::vector<u64> trips = longest_run(run, static_cast<u32>(first - passes.begin()), loop);
  if (!loops(trips)) trips = *first;
  const std::size_t last = trips.size() - 1, from = last / 4, to = std::max(from + 1, last - last / 4);
  return {trips[from], trips[to]};
}

// Of a unit whose events do not tell when it is free again: what its instructions of the window weigh against all of
// them, by the mean weight of each in the trace.
class Weights {
 public:
  Weights(const timing::GroupTrace& group, const std::vector<MicroOp>& ops)
      : lds_(ops.size()), l1_(ops.size()), scalar_(ops.size()) {
    // A direct-to-LDS load writes 128 bytes of LDS a cycle (timing reference 3.1); a phase of LDS is about one cycle.
    constexpr double kDmaBytes = 128;
    std::vector<double> count(ops.size());
    for (const timing::WaveTrace& wave : group.waves) {
      for (const timing::Step& step : wave.steps) {
        const MicroOp& op = ops[step.op];
        ++count[step.op];
        if (op.unit == Unit::kLds) lds_[step.op] += step.work;
        if (op.unit == Unit::kVmem) l1_[step.op] += step.work;
        if (op.unit == Unit::kVmem && op.lds) lds_[step.op] += step.work / kDmaBytes;
        if (op.unit == Unit::kSalu || op.unit == Unit::kSmem) ++scalar_[step.op];
      }
    }
    for (std::vector<double>* of : {&lds_, &l1_, &scalar_})
      for (std::size_t i = 0; i < count.size(); ++i) (*of)[i] = count[i] == 0 ? 0 : (*of)[i] / count[i];
  }
  struct Parts {
    double lds = 0, l1 = 0, scalar = 0;  // share of the run's weight that the window has
  };
  [[nodiscard]] Parts parts(const CuResult& run, const Window& window) const {
    Parts in, all;
    for (const Event& event : run.events) {
      for (Parts* p : {&all, window.holds(event.issue) ? &in : nullptr}) {
        if (p == nullptr) continue;
        p->lds += lds_[event.op];
        p->l1 += l1_[event.op];
        p->scalar += scalar_[event.op];
      }
    }
    const auto ratio = [](double part, double whole) { return whole == 0 ? 0 : part / whole; };
    return {ratio(in.lds, all.lds), ratio(in.l1, all.l1), ratio(in.scalar, all.scalar)};
  }

 private:
  std::vector<double> lds_, l1_, scalar_;  // by micro-operation
};

// Cycles of the units of all SIMDs in the window.
struct SimdBusy {
  double matrix = 0, valu = 0, trans = 0;
};
SimdBusy busy_in(const CuResult& run, const std::vector<MicroOp>& ops, const Window& window) {
  SimdBusy busy;
  for (const Event& event : run.events) {
    const Unit unit = ops[event.op].unit;
    if (unit != Unit::kMfma && unit != Unit::kValu && unit != Unit::kTrans) continue;
    const auto cycles = static_cast<double>(window.overlap(event.unit_start, event.end));
    if (unit == Unit::kMfma) busy.matrix += cycles;
    if (unit != Unit::kMfma) busy.valu += cycles;
    if (unit == Unit::kTrans) busy.trans += cycles;
  }
  return busy;
}

template <typename Values>
double total(const Values& values) {
  double sum = 0;
  for (const auto value : values) sum += static_cast<double>(value);
  return sum;
}

void describe_units(const LaunchCapture& capture, std::size_t group, const CuResult& run,
                    const std::optional<Window>& window, LaunchProfile& profile) {
  const std::vector<MicroOp>& ops = capture.kernel->program().ops;
  const auto cycles = static_cast<double>(std::max<u64>(run.cycles, 1));
  const double simd_cycles = cycles * timing::kSimds, lds = static_cast<double>(run.busy.lds),
               l1 = static_cast<double>(run.busy.l1), scalar = static_cast<double>(run.busy.scalar);
  SimdBusy simd;
  Weights::Parts parts;
  double window_cycles = 1;
  if (window) {
    simd = busy_in(run, ops, *window);
    parts = Weights(capture.groups[group], ops).parts(run, *window);
    window_cycles = window->cycles();
  }
  const double simds = window_cycles * timing::kSimds;
  // One scalar instruction of each SIMD at a time.
  profile.units = {
      {"matrix", simd.matrix / simds, total(run.busy.matrix) / simd_cycles},
      {"VALU", simd.valu / simds, total(run.busy.valu) / simd_cycles},
      {"TRANS", simd.trans / simds, total(run.busy.trans) / simd_cycles},
      {"LDS", lds * parts.lds / window_cycles, lds / cycles},
      {"vector memory", l1 * parts.l1 / window_cycles, l1 / cycles},
      {"scalar", scalar * parts.scalar / simds, scalar / simd_cycles},
  };
}

void describe_waves(const CuResult& run, LaunchProfile& profile) {
  for (const timing::WaveTime& wave : run.waves) {
    ProfileWave& described = profile.waves.emplace_back();
    described = {wave.index, wave.simd, wave.start, wave.end, wave.instructions, {}};
    const auto cycles = static_cast<double>(std::max<u64>(wave.end - wave.start, 1));
    for (std::size_t i = 0; i < timing::kStalls; ++i) {
      if (static_cast<timing::Stall>(i) == timing::Stall::kNone || wave.stalls[i] == 0) continue;
      described.stalls.push_back({std::string(timing::stall_name(static_cast<timing::Stall>(i))),
                                  static_cast<double>(wave.stalls[i]) / cycles});
    }
    std::stable_sort(described.stalls.begin(), described.stalls.end(),
                     [](const ProfileShare& a, const ProfileShare& b) { return a.share > b.share; });
  }
}

// MFMA flops of the wave and trip that has the fewest, so that products which a data-dependent branch repeats do not
// count as useful, and those of the matrix pipe in one cycle by the form that does most of them.
struct LoopFlops {
  double trip = 0, per_cycle = 0;
};

double least_flops_of_a_trip(const CuResult& run, const std::vector<MicroOp>& ops, u32 head) {
  std::vector<double> flops(run.waves.size(), -1);  // since the wave's last pass through the head
  double least = std::numeric_limits<double>::infinity();
  for (const Event& event : run.events) {
    double& trip = flops[event.wave];
    if (event.op == head) {
      if (trip >= 0) least = std::min(least, trip);
      trip = 0;
    }
    if (trip >= 0 && ops[event.op].unit == Unit::kMfma) trip += ops[event.op].flops;
  }
  return least;
}

LoopFlops flops_in(const CuResult& run, const std::vector<MicroOp>& ops, u32 head, const Window& window) {
  struct Form {
    double flops = 0;
    u64 cycles = std::numeric_limits<u64>::max();
  };
  std::vector<Form> forms(ops.size());
  for (const Event& event : run.events) {
    const MicroOp& op = ops[event.op];
    if (op.unit != Unit::kMfma || !window.holds(event.issue)) continue;
    forms[event.op].flops += op.flops;
    forms[event.op].cycles = std::min(forms[event.op].cycles, event.end - event.unit_start);
  }
  LoopFlops result;
  const auto most =
      std::max_element(forms.begin(), forms.end(), [](const Form& a, const Form& b) { return a.flops < b.flops; });
  result.trip = least_flops_of_a_trip(run, ops, head);
  if (most != forms.end() && most->flops > 0 && most->cycles > 0) {
    result.per_cycle = ops[static_cast<std::size_t>(most - forms.begin())].flops / static_cast<double>(most->cycles);
  }
  return result;
}

// Keys of a trip: whole 32s, or as large a power of two as a sixteenth of them, so that row sums on the matrix pipe (6%
// at most) do not count. A tile is 128 keys of 32 queries.
void describe_useful(const ProfileAttention& attention, const LoopFlops& flops, ProfileLoop& loop) {
  constexpr u32 kLeastKeys = 32, kSumShare = 16, kTileKeys = 128, kTileQueries = 32;
  const double per_key = 2.0 * attention.queries_per_wave * (attention.head_dim_qk + attention.head_dim_v);
  const auto keys = static_cast<u32>(flops.trip / per_key);
  const u32 whole = std::max(kLeastKeys, std::bit_ceil(keys / kSumShare));
  loop.keys = keys / whole * whole;
  if (loop.keys == 0 || loop.cycles == 0 || flops.per_cycle == 0) return;
  const double simd_cycles = loop.cycles / loop.waves_per_simd;
  loop.tile_cycles = simd_cycles * kTileKeys * kTileQueries / loop.keys / attention.queries_per_wave;
  loop.useful_busy = loop.keys * per_key / flops.per_cycle / simd_cycles;
}

// Waves of a SIMD that work while the loop runs: those that pass its head, and those that execute at least half as much
// meanwhile, as in kernels that have a loop of its own for each group of waves.
double working_waves_per_simd(const CuResult& run, const std::vector<std::vector<u64>>& passes, const Window& window) {
  std::vector<u64> executed(run.waves.size());
  for (const Event& event : run.events)
    if (window.holds(event.issue)) ++executed[event.wave];
  double looping = 0, instructions = 0, working = 0;
  for (std::size_t w = 0; w < executed.size(); ++w) {
    if (!loops(passes[w])) continue;
    ++looping;
    instructions += static_cast<double>(executed[w]);
  }
  std::array<bool, timing::kSimds> used{};
  for (std::size_t w = 0; w < executed.size(); ++w) {
    if (!loops(passes[w]) && static_cast<double>(executed[w]) < instructions / looping / 2) continue;
    ++working;
    used[run.waves[w].simd] = true;
  }
  return working / static_cast<double>(std::count(used.begin(), used.end(), true));
}

// When each wave issued its last instruction between the loop's head and the branch back: an unrolled loop is left in
// its middle too.
std::vector<u64> last_in_loop(const CuResult& run, const timing::SteadyLoop& steady) {
  std::vector<u64> last(run.waves.size(), 0);
  for (const Event& event : run.events) {
    if (event.op >= steady.head && event.op <= steady.tail) last[event.wave] = std::max(last[event.wave], event.issue);
  }
  return last;
}

ProfileLoop describe_loop(const LaunchCapture& capture, const CuResult& run, const timing::SteadyLoop& steady,
                          const std::vector<std::vector<u64>>& passes, const Window& window,
                          const ProfileOptions& options) {
  const Program& program = capture.kernel->program();
  ProfileLoop loop;
  loop.head = program.ops[steady.head].offset - program.entry_offset;
  loop.tail = program.ops[steady.tail].offset - program.entry_offset;
  loop.cycles = steady.trip_cycles;
  loop.instructions = steady.instructions;
  loop.matrix_cycles = steady.matrix_cycles;
  const std::vector<u64> left = last_in_loop(run, steady);
  double waves = 0;
  for (std::size_t w = 0; w < passes.size(); ++w) {
    if (!loops(passes[w])) continue;
    ++waves;
    loop.trips += passes[w].size();
    loop.prologue += static_cast<double>(passes[w].front() - run.waves[w].start);
    loop.epilogue += static_cast<double>(run.waves[w].end - left[w]);
  }
  loop.trips = static_cast<u64>(std::llround(static_cast<double>(loop.trips) / waves));
  loop.prologue /= waves;
  loop.epilogue /= waves;
  loop.waves_per_simd = working_waves_per_simd(run, passes, window);
  if (options.attention) describe_useful(*options.attention, flops_in(run, program.ops, steady.head, window), loop);
  return loop;
}

std::string critical_of(const LaunchProfile& profile) {
  const auto share = [&](const ProfileUnit& unit) { return profile.loop ? unit.steady : unit.whole; };
  const auto busiest = std::max_element(profile.units.begin(), profile.units.end(),
                                        [&](const auto& a, const auto& b) { return share(a) < share(b); });
  if (share(*busiest) == 0 && profile.cycles == 0) return "nothing: the workgroup takes no cycles";
  std::string unit = fmt::format("{} ({:.1f}% busy)", busiest->name, 100 * share(*busiest));
  if (share(*busiest) >= kCriticalShare) return unit;
  std::vector<ProfileShare> sums;
  for (const ProfileWave& wave : profile.waves) {
    for (const ProfileShare& stall : wave.stalls) {
      const auto known = std::find_if(sums.begin(), sums.end(), [&](const auto& s) { return s.name == stall.name; });
      if (known == sums.end()) {
        sums.push_back(stall);
      } else {
        known->share += stall.share;
      }
    }
  }
  if (sums.empty()) return unit;
  const auto most =
      std::max_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.share < b.share; });
  return fmt::format("no unit; the busiest is {}, waves wait most for: {} ({:.1f}% of their time)", unit, most->name,
                     100 * most->share / static_cast<double>(profile.waves.size()));
}

void keep_events(const LaunchCapture& capture, const CuResult& run, LaunchProfile& profile) {
  const Program& program = capture.kernel->program();
  profile.events.reserve(run.events.size());
  for (const Event& e : run.events) {
    profile.events.push_back({e.wave, e.op, e.issue, e.unit_start, e.end, e.stalled, static_cast<u32>(e.stall)});
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    ProfileInstruction& instruction = profile.instructions.emplace_back();
    instruction.offset = program.ops[i].offset - program.entry_offset;
    instruction.text = program.text[i];
    if (const jit::ListingNote* note = capture.kernel->note(i)) {
      instruction.stage = note->stage;
      instruction.comment = note->comment;
    }
  }
  for (std::size_t i = 0; i < timing::kStalls; ++i)
    profile.stall_names.emplace_back(timing::stall_name(static_cast<timing::Stall>(i)));
}

}  // namespace

void describe_run(const LaunchCapture& capture, std::size_t group, const CuResult& run, const ProfileOptions& options,
                  LaunchProfile& profile) {
  profile.longest = capture.groups[group].id;
  profile.cycles = run.cycles;
  std::optional<Window> window;
  if (const Expected<timing::SteadyLoop> steady = timing::steady_loop(capture.kernel->program(), run)) {
    const std::vector<std::vector<u64>> passes = passes_of(run, steady->head);
    if (std::any_of(passes.begin(), passes.end(), loops)) {
      window = middle_of(run, *steady, passes);
      profile.loop = describe_loop(capture, run, *steady, passes, *window, options);
    }
  }
  describe_units(capture, group, run, window, profile);
  describe_waves(run, profile);
  profile.critical = critical_of(profile);
  if (options.events == ProfileOptions::Events::kLongest) keep_events(capture, run, profile);
}

}  // namespace zyfa::sim
