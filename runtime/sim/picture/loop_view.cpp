#include "runtime/sim/picture/loop_view.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace zyfa::sim::picture {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u64 kIssueCycles = 4;  // of a memory instruction: a SIMD's turn
// Where no MFMA executes, what makes the pipe busy is packed arithmetic, which takes cycles from it.
constexpr std::string_view kBusy = "matrix busy", kTaken = "pipe taken by packed VALU";

// [begin, end) within the window; empty when begin >= end.
Block cut(const Window& window, u64 begin, u64 end, u32 span) {
  return {std::max(begin, window.begin), std::min(end, window.end), span};
}

void add(std::vector<Block>& to, const Block& block) {
  if (block.begin < block.end) to.push_back(block);
}

const Instruction& instruction_of(const Execution& execution, u32 span) {
  return execution.instructions[execution.spans[span].instruction];
}

u32 busiest_simd(const Execution& execution, const Window& window) {
  std::map<u32, u64> busy;
  for (u32 i = 0; i < execution.spans.size(); ++i) {
    const Span& s = execution.spans[i];
    const Block block = cut(window, s.start, s.end, i);
    if (s.issue >= window.end || block.begin >= block.end) continue;
    busy[execution.waves[s.wave].simd] +=
        instruction_of(execution, i).unit == Unit::kMatrix ? block.end - block.begin : 0;
  }
  u32 best = busy.begin()->first;
  for (const auto& [simd, cycles] : busy)
    if (cycles > busy[best]) best = simd;
  return best;
}

class Builder {
 public:
  Builder(const Execution& execution, const Window& window) : execution_(execution) {
    view_.window = window;
    view_.simd = busiest_simd(execution, window);
  }
  LoopView build() {
    choose_waves();
    for (u32 i = 0; i < execution_.spans.size(); ++i)
      if (execution_.waves[execution_.spans[i].wave].simd == view_.simd) place(i);
    cut_states();
    find_gaps();
    for (WaveView& wave : view_.waves) tell_taken(wave);
    describe_gaps();
    find_causes();
    list_stages();
    return std::move(view_);
  }

 private:
  void choose_waves();
  void place(u32 index);
  void place_in_wave(u32 index, Unit unit, WaveView& wave);
  void cut_states();
  void find_gaps();
  void tell_taken(WaveView& wave) const;
  void describe_gaps();
  void find_causes();
  void list_stages();
  [[nodiscard]] std::string doing(const State* state) const;

  const Execution& execution_;
  LoopView view_;
};

void Builder::choose_waves() {
  for (u32 w = 0; w < execution_.waves.size(); ++w) {
    if (execution_.waves[w].simd != view_.simd) continue;
    const bool runs = std::any_of(execution_.spans.begin(), execution_.spans.end(), [&](const Span& s) {
      return s.wave == w && s.issue >= view_.window.begin && s.issue < view_.window.end;
    });
    if (!runs) continue;
    if (view_.waves.size() == 2) {
      ++view_.other_waves;
    } else {
      view_.waves.emplace_back().wave = w;
      view_.waves.back().name = wave_name(execution_, w);
    }
  }
}

void Builder::place_in_wave(u32 index, Unit unit, WaveView& wave) {
  const Span& s = execution_.spans[index];
  const Window& window = view_.window;
  switch (unit) {
    case Unit::kMatrix:
      add(wave.matrix, cut(window, s.start, s.end, index));
      break;
    case Unit::kValu:
    case Unit::kTrans:
      add(wave.vector, cut(window, s.start, s.end, index));
      break;
    case Unit::kLds:
      add(wave.lds, cut(window, s.issue, s.issue + kIssueCycles, index));
      break;
    case Unit::kVmem:
      add(wave.vmem, cut(window, s.issue, s.issue + kIssueCycles, index));
      break;
    case Unit::kBarrier:
      add(wave.barriers, cut(window, s.issue, s.end, index));
      break;
    default:
      break;
  }
}

void Builder::place(u32 index) {
  const Span& s = execution_.spans[index];
  const Unit unit = execution_.instructions[s.instruction].unit;
  const Block block = cut(view_.window, s.start, s.end, index);
  if (block.begin < block.end) {
    if (unit == Unit::kMatrix) view_.pipe.push_back(block);
    if (unit == Unit::kValu || unit == Unit::kTrans) view_.vector += block.end - block.begin;
    if (unit == Unit::kTrans) view_.trans += block.end - block.begin;
  }
  for (WaveView& wave : view_.waves)
    if (wave.wave == s.wave) place_in_wave(index, unit, wave);
}

void Builder::cut_states() {
  const std::vector<std::vector<State>> states = wave_states(execution_, view_.window);
  for (WaveView& wave : view_.waves) {
    for (State state : states[wave.wave]) {
      state.begin = std::max(state.begin, view_.window.begin);
      state.end = std::min(state.end, view_.window.end);
      if (state.begin < state.end) wave.states.push_back(state);
    }
  }
}

// While the pipe idles.
std::string Builder::doing(const State* state) const {
  if (state == nullptr) return "has ended or not begun";
  if (state->waits) return fmt::format("waits: {}", state->reason);
  const Instruction& i = instruction_of(execution_, state->span);
  return i.stage.empty() ? fmt::format("runs {}", unit_name(i.unit))
                         : fmt::format("runs {}, {}", unit_name(i.unit), stage_family(i));
}

void Builder::find_gaps() {
  std::stable_sort(view_.pipe.begin(), view_.pipe.end(),
                   [](const Block& a, const Block& b) { return a.begin < b.begin; });
  u64 free = view_.window.begin;
  const auto until = [&](u64 begin) {
    if (begin > free) view_.gaps.push_back({free, begin, {}});
  };
  for (const Block& b : view_.pipe) {
    until(b.begin);
    free = std::max(free, b.end);
  }
  until(view_.window.end);
  for (const Gap& gap : view_.gaps) view_.idle += gap.end - gap.begin;
  view_.matrix = view_.cycles() - view_.idle;
}

// Cuts waits for the pipe where it falls idle: from there on they have another reason.
void Builder::tell_taken(WaveView& wave) const {
  std::vector<State> states;
  std::size_t at = 0;
  for (State state : wave.states) {
    if (state.waits && state.reason == kBusy) {
      while (at < view_.gaps.size() && view_.gaps[at].end <= state.begin) ++at;
      for (std::size_t i = at; i < view_.gaps.size() && view_.gaps[i].begin < state.end; ++i) {
        const u64 begin = std::max(state.begin, view_.gaps[i].begin), end = std::min(state.end, view_.gaps[i].end);
        if (state.begin < begin) states.push_back({state.begin, begin, state.span, true, kBusy});
        states.push_back({begin, end, state.span, true, kTaken});
        state.begin = end;
      }
    }
    if (state.begin < state.end) states.push_back(state);
  }
  wave.states = std::move(states);
}

void Builder::describe_gaps() {
  for (Gap& gap : view_.gaps) {
    for (const WaveView& wave : view_.waves) {
      std::map<std::string, u64> cycles;
      u64 known = 0;
      for (const State& s : wave.states) {
        const u64 begin = std::max(s.begin, gap.begin), end = std::min(s.end, gap.end);
        if (begin >= end) continue;
        cycles[doing(&s)] += end - begin;
        known += end - begin;
      }
      if (known < gap.end - gap.begin) cycles[doing(nullptr)] = gap.end - gap.begin - known;
      gap.doing.push_back(std::max_element(cycles.begin(), cycles.end(), [](const auto& a, const auto& b) {
                            return a.second < b.second;
                          })->first);
    }
  }
}

// Cuts every gap where a wave changes its state.
void Builder::find_causes() {
  std::map<std::vector<std::string>, u64> cycles;
  std::vector<std::size_t> at(view_.waves.size(), 0);
  for (const Gap& gap : view_.gaps) {
    for (u64 now = gap.begin; now < gap.end;) {
      u64 next = gap.end;
      std::vector<std::string> key;
      for (std::size_t w = 0; w < view_.waves.size(); ++w) {
        const std::vector<State>& states = view_.waves[w].states;
        while (at[w] < states.size() && states[at[w]].end <= now) ++at[w];
        const bool inside = at[w] < states.size() && states[at[w]].begin <= now;
        if (at[w] < states.size()) next = std::min(next, inside ? states[at[w]].end : states[at[w]].begin);
        key.push_back(doing(inside ? &states[at[w]] : nullptr));
      }
      cycles[key] += next - now;
      now = next;
    }
  }
  for (const auto& [key, sum_of] : cycles) view_.causes.push_back({key, sum_of});
  std::stable_sort(view_.causes.begin(), view_.causes.end(),
                   [](const Cause& a, const Cause& b) { return a.cycles > b.cycles; });
}

void Builder::list_stages() {
  std::vector<u32> used;
  const auto note = [&](const std::vector<Block>& blocks) {
    for (const Block& b : blocks) used.push_back(execution_.spans[b.span].instruction);
  };
  note(view_.pipe);
  for (const WaveView& wave : view_.waves)
    for (const auto* blocks : {&wave.vector, &wave.lds, &wave.vmem}) note(*blocks);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (const u32 i : used) {
    const std::string stage(stage_family(execution_.instructions[i]));
    if (std::find(view_.stages.begin(), view_.stages.end(), stage) == view_.stages.end()) view_.stages.push_back(stage);
  }
}

}  // namespace

Expected<LoopView> view_loop(const Execution& execution, const std::optional<Window>& window) {
  if (Status valid = check(execution); !valid) return tl::unexpected(std::move(valid.error()));
  const Expected<Window> chosen = choose_window(execution, window);
  if (!chosen) return tl::unexpected(chosen.error());
  return Builder(execution, *chosen).build();
}

}  // namespace zyfa::sim::picture
