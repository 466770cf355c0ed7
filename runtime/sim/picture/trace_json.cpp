#include "runtime/sim/picture/trace_json.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zyfa::sim::picture {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kSharedProcess = 1000;  // SIMD n is process n + 1
constexpr u32 kFirstUnitTrack = 1000, kTracksPerUnit = 1000;

// Names that the Trace Event Format reserves for colours; stages take them in order of appearance in the program.
constexpr std::array<std::string_view, 10> kStageColours = {"thread_state_running",
                                                            "thread_state_runnable",
                                                            "thread_state_unknown",
                                                            "rail_response",
                                                            "rail_animation",
                                                            "rail_idle",
                                                            "rail_load",
                                                            "cq_build_passed",
                                                            "startup",
                                                            "vsync_highlight_color"};
constexpr std::string_view kWaitColour = "grey";

// A JSON string; bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_shared(Unit unit) { return unit == Unit::kLds || unit == Unit::kVmem || unit == Unit::kScalarMemory; }
bool has_track(Unit unit) { return unit != Unit::kBarrier && unit != Unit::kNop && unit != Unit::kInternal; }
// TRANS executes on the VALU port.
Unit track_unit(Unit unit) { return unit == Unit::kTrans ? Unit::kValu : unit; }

class Writer {
 public:
  Writer(const Execution& execution, const Window& window) : execution_(execution), window_(window) {}
  std::string write();

 private:
  struct Slice {
    u64 begin = 0, end = 0;
    u32 span = 0;
  };
  void prepare_instructions();
  void begin_event();
  void metadata(std::string_view name, u32 process, u32 track, std::string_view key, const std::string& value);
  void name_process(u32 process, std::string_view name);
  void name_track(u32 process, u32 track, std::string_view name);
  void slice(u32 process, u32 track, const std::string& name_text, const std::string& category_text,
             std::string_view colour, const Slice& s);
  void span_arguments(const Span& s);
  void waves();
  void wave(u32 number, const std::vector<State>& states);
  void stage_run(u32 process, u32 track, const std::vector<State>& states, std::size_t from, std::size_t to);
  void units();
  void unit(u32 process, Unit unit, std::vector<Slice> slices);

  const Execution& execution_;
  const Window window_;
  std::string out_;
  bool first_ = true;
  std::vector<std::string> name_, stage_, category_, arguments_;  // by instruction, quoted
  std::vector<std::string_view> colour_;                          // by instruction
  std::set<u32> processes_;
};

void Writer::prepare_instructions() {
  std::map<std::string_view, std::size_t> stages;
  for (const Instruction& i : execution_.instructions) {
    const std::string_view family = stage_family(i);
    const std::size_t number = stages.emplace(family, stages.size()).first->second;
    colour_.push_back(kStageColours[number % kStageColours.size()]);
    name_.push_back(json_text(std::string_view(i.text).substr(0, i.text.find(' '))));
    stage_.push_back(json_text(stage_of(i)));
    category_.push_back(json_text(family));
    std::string arguments = fmt::format(R"("instruction":{},"offset":{},"unit":{})", json_text(i.text), i.offset,
                                        json_text(unit_name(i.unit)));
    if (!i.stage.empty()) arguments += fmt::format(R"(,"stage":{})", stage_.back());
    if (!i.comment.empty()) arguments += fmt::format(R"(,"comment":{})", json_text(i.comment));
    arguments_.push_back(std::move(arguments));
  }
}

void Writer::begin_event() {
  out_ += first_ ? "\n" : ",\n";
  first_ = false;
}

void Writer::metadata(std::string_view name, u32 process, u32 track, std::string_view key, const std::string& value) {
  begin_event();
  fmt::format_to(std::back_inserter(out_), R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"{}":{}}}}})", name,
                 process, track, key, value);
}

void Writer::name_process(u32 process, std::string_view name) {
  if (!processes_.insert(process).second) return;
  metadata("process_name", process, 0, "name", json_text(name));
  metadata("process_sort_index", process, 0, "sort_index", std::to_string(process));
}

void Writer::name_track(u32 process, u32 track, std::string_view name) {
  metadata("thread_name", process, track, "name", json_text(name));
  metadata("thread_sort_index", process, track, "sort_index", std::to_string(track));
}

void Writer::span_arguments(const Span& s) {
  fmt::format_to(std::back_inserter(out_), R"({},"wave":{},"issue":{},"unit_start":{},"end":{})",
                 arguments_[s.instruction], s.wave, s.issue, s.start, s.end);
  if (s.stalled > 0) {
    fmt::format_to(std::back_inserter(out_), R"(,"stalled":{},"stall":{})", s.stalled,
                   json_text(execution_.stalls[s.stall]));
  }
}

void Writer::slice(u32 process, u32 track, const std::string& name_text, const std::string& category_text,
                   std::string_view colour, const Slice& s) {
  begin_event();
  fmt::format_to(std::back_inserter(out_),
                 R"({{"name":{},"cat":{},"ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"cname":"{}","args":{{)",
                 name_text, category_text, s.begin, s.end - s.begin, process, track, colour);
  span_arguments(execution_.spans[s.span]);
  out_ += "}}";
}

// The states [from, to) of one stage, enclosed by a slice that bears its name.
void Writer::stage_run(u32 process, u32 track, const std::vector<State>& states, std::size_t from, std::size_t to) {
  const u32 first = execution_.spans[states[from].span].instruction;
  begin_event();
  fmt::format_to(std::back_inserter(out_),
                 R"({{"name":{},"cat":{},"ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"cname":"{}","args":{{}}}})",
                 stage_[first], category_[first], states[from].begin, states[to - 1].end - states[from].begin, process,
                 track, colour_[first]);
  for (std::size_t i = from; i < to; ++i) {
    const State& state = states[i];
    const u32 instruction = execution_.spans[state.span].instruction;
    const Slice s{state.begin, state.end, state.span};
    if (state.waits) {
      slice(process, track, json_text(fmt::format("wait: {}", state.reason)), R"("wait")", kWaitColour, s);
    } else {
      slice(process, track, name_[instruction], category_[instruction], colour_[instruction], s);
    }
  }
}

void Writer::wave(u32 number, const std::vector<State>& states) {
  const u32 process = execution_.waves[number].simd + 1, track = number + 1;
  name_process(process, fmt::format("SIMD {}", process - 1));
  name_track(process, track, wave_name(execution_, number));
  const auto stage = [&](std::size_t i) {
    return stage_of(execution_.instructions[execution_.spans[states[i].span].instruction]);
  };
  for (std::size_t from = 0, to = 0; from < states.size(); from = to) {
    for (to = from; to < states.size() && stage(to) == stage(from);) ++to;
    stage_run(process, track, states, from, to);
  }
}

void Writer::waves() {
  const std::vector<std::vector<State>> states = wave_states(execution_, window_);
  for (u32 number = 0; number < states.size(); ++number)
    if (!states[number].empty()) wave(number, states[number]);
}

// Each slice goes to the first track that is free.
void Writer::unit(u32 process, Unit unit, std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  std::vector<std::vector<Slice>> tracks;
  for (const Slice& s : slices) {
    auto free = std::find_if(tracks.begin(), tracks.end(), [&](const auto& t) { return t.back().end <= s.begin; });
    if (free == tracks.end()) free = tracks.insert(tracks.end(), std::vector<Slice>{});
    free->push_back(s);
  }
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const u32 track = kFirstUnitTrack + kTracksPerUnit * static_cast<u32>(unit) + static_cast<u32>(i);
    std::string name(unit_name(unit));
    if (unit == Unit::kMatrix) name = "matrix pipe";
    if (tracks.size() > 1) name += fmt::format(", slot {} of {}", i + 1, tracks.size());
    name_track(process, track, name);
    for (const Slice& s : tracks[i]) {
      const u32 instruction = execution_.spans[s.span].instruction;
      slice(process, track, stage_[instruction], category_[instruction], colour_[instruction], s);
    }
  }
}

void Writer::units() {
  std::map<std::pair<u32, Unit>, std::vector<Slice>> slices;
  for (u32 i = 0; i < execution_.spans.size(); ++i) {
    const Span& s = execution_.spans[i];
    const Unit unit = execution_.instructions[s.instruction].unit;
    if (!has_track(unit) || s.start >= window_.end || s.end <= window_.begin) continue;
    const u32 process = is_shared(unit) ? kSharedProcess : execution_.waves[s.wave].simd + 1;
    slices[{process, track_unit(unit)}].push_back({s.start, s.end, i});
  }
  for (auto& [key, of] : slices) {
    if (key.first == kSharedProcess) name_process(kSharedProcess, "compute unit: issued until the result is there");
    unit(key.first, key.second, std::move(of));
  }
}

std::string Writer::write() {
  prepare_instructions();
  out_ = R"({"displayTimeUnit":"ns","otherData":{"kind":"predicted by the zyfa cycle model",)"
         R"("time":"one microsecond shown is one cycle",)";
  out_ += fmt::format(R"("kernel":{},"window":"{}:{}","run cycles":"{}")", json_text(execution_.kernel), window_.begin,
                      window_.end, execution_.cycles);
  for (const auto& [name, value] : execution_.facts) out_ += fmt::format(",{}:{}", json_text(name), json_text(value));
  out_ += R"(},"traceEvents":[)";
  waves();
  units();
  out_ += "\n]}\n";
  return std::move(out_);
}

}  // namespace

Expected<std::string> trace_json(const Execution& execution, const TraceOptions& options) {
  if (Status valid = check(execution); !valid) return tl::unexpected(std::move(valid.error()));
  const bool cut = !options.window && !execution.loop && execution.spans.size() > options.most_spans;
  const Expected<Window> window =
      choose_window(execution, cut ? Window{0, execution.spans[options.most_spans].issue} : options.window);
  if (!window) return tl::unexpected(window.error());
  const auto spans =
      static_cast<std::size_t>(std::count_if(execution.spans.begin(), execution.spans.end(), [&](const Span& s) {
        return s.issue >= window->begin && s.issue < window->end;
      }));
  if (spans > options.most_spans) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("{} instructions issue in the window {}:{}; a trace holds at most {}, so choose a "
                                  "narrower window",
                                  spans, window->begin, window->end, options.most_spans));
  }
  return Writer(execution, *window).write();
}

}  // namespace zyfa::sim::picture
