#include "runtime/sim/picture/loop_text.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "runtime/sim/picture/loop_view.h"

namespace zyfa::sim::picture {
namespace {

using u64 = std::uint64_t;

constexpr std::size_t kLeast = 20, kMost = 1000;
constexpr u64 kTurn = 4;  // cycles between two issues of a SIMD
constexpr std::size_t kMark = 10, kNames = 14, kCauses = 6;

struct Symbol {
  char letter;
  std::string_view meaning;
};
// The first of those that take most cycles of a column.
enum : std::size_t { kMatrix, kValu, kTrans, kLds, kVmem, kOther, kBarrier, kPipeWait, kMemoryWait, kWait, kAbsent };
constexpr std::array<Symbol, 11> kSymbols = {{{'M', "MFMA"},
                                              {'v', "VALU"},
                                              {'t', "TRANS"},
                                              {'L', "LDS"},
                                              {'G', "vector memory"},
                                              {'s', "scalar, internal"},
                                              {'|', "barrier"},
                                              {'m', "waits for the matrix pipe"},
                                              {'w', "waits for memory"},
                                              {'.', "waits for its turn or a port"},
                                              {' ', "not there"}}};

std::size_t symbol_of(const Execution& execution, const State& state) {
  if (state.waits) {
    if (state.reason == unit_name(Unit::kBarrier)) return kBarrier;
    if (state.reason.starts_with("matrix") || state.reason.starts_with("pipe")) return kPipeWait;
    return state.reason.ends_with(" wait") ? kMemoryWait : kWait;
  }
  switch (execution.instructions[execution.spans[state.span].instruction].unit) {
    case Unit::kMatrix:
      return kMatrix;
    case Unit::kValu:
      return kValu;
    case Unit::kTrans:
      return kTrans;
    case Unit::kLds:
      return kLds;
    case Unit::kVmem:
      return kVmem;
    default:
      return kOther;
  }
}

u64 overlap(u64 a_begin, u64 a_end, u64 b_begin, u64 b_end) {
  const u64 begin = std::max(a_begin, b_begin), end = std::min(a_end, b_end);
  return end > begin ? end - begin : 0;
}

class Chart {
 public:
  Chart(const Execution& execution, const LoopView& view, std::size_t columns)
      : execution_(execution), view_(view), per_column_(kTurn) {
    while (view.cycles() > per_column_ * columns) per_column_ += kTurn;
    for (const WaveView& wave : view.waves) names_ = std::max(names_, wave.name.size() + 2);
    columns_ = static_cast<std::size_t>((view.cycles() + per_column_ - 1) / per_column_);
  }
  std::string text();

 private:
  [[nodiscard]] u64 begin(std::size_t column) const { return view_.window.begin + per_column_ * column; }
  [[nodiscard]] u64 end(std::size_t column) const { return std::min(begin(column + 1), view_.window.end); }
  [[nodiscard]] std::string axis() const;
  [[nodiscard]] std::string wave_row(const WaveView& wave) const;
  [[nodiscard]] std::string pipe_row() const;
  void row(std::string_view name, std::string_view cells) {
    fmt::format_to(std::back_inserter(out_), "{:<{}}{}\n", name, names_, cells);
  }
  void header();
  void legend();
  void causes();

  const Execution& execution_;
  const LoopView& view_;
  u64 per_column_;
  std::size_t columns_, names_ = kNames;
  std::string out_;
};

std::string Chart::axis() const {
  std::string cells(columns_, ' ');
  for (std::size_t c = 0; c < columns_; c += kMark) {
    const std::string mark = std::to_string(per_column_ * c);
    if (c + mark.size() <= columns_) cells.replace(c, mark.size(), mark);
  }
  return cells;
}

std::string Chart::wave_row(const WaveView& wave) const {
  std::string cells;
  std::size_t at = 0;
  for (std::size_t c = 0; c < columns_; ++c) {
    std::array<u64, kSymbols.size()> cycles{};
    while (at < wave.states.size() && wave.states[at].end <= begin(c)) ++at;
    u64 known = 0;
    for (std::size_t i = at; i < wave.states.size() && wave.states[i].begin < end(c); ++i) {
      const State& s = wave.states[i];
      const u64 part = overlap(s.begin, s.end, begin(c), end(c));
      cycles[symbol_of(execution_, s)] += part;
      known += part;
    }
    cycles[kAbsent] = end(c) - begin(c) - known;
    cells += kSymbols[static_cast<std::size_t>(std::max_element(cycles.begin(), cycles.end()) - cycles.begin())].letter;
  }
  return cells;
}

// Whose MFMA has most cycles of the column, or - when the pipe idles for more than half of them.
std::string Chart::pipe_row() const {
  std::string cells;
  for (std::size_t c = 0; c < columns_; ++c) {
    std::array<u64, 3> cycles{};  // first wave, second, others
    u64 busy = 0;
    for (const Block& b : view_.pipe) {
      const u64 part = overlap(b.begin, b.end, begin(c), end(c));
      std::size_t who = 2;
      for (std::size_t w = 0; w < view_.waves.size(); ++w)
        if (view_.waves[w].wave == execution_.spans[b.span].wave) who = w;
      cycles[who] += part;
      busy += part;
    }
    const auto most = std::max_element(cycles.begin(), cycles.end()) - cycles.begin();
    cells += 2 * busy < end(c) - begin(c) ? '-' : "ABo"[most];
  }
  return cells;
}

void Chart::header() {
  const auto percent = [&](u64 cycles) {
    return 100.0 * static_cast<double>(cycles) / static_cast<double>(view_.cycles());
  };
  fmt::format_to(std::back_inserter(out_), "{}: predicted, cycles {} to {} ({} cycles), SIMD {}\n", execution_.kernel,
                 view_.window.begin, view_.window.end, view_.cycles(), view_.simd);
  fmt::format_to(std::back_inserter(out_), "busy here: matrix pipe {:.1f}%, VALU {:.1f}%, of it TRANS {:.1f}%\n",
                 percent(view_.matrix), percent(view_.vector), percent(view_.trans));
  for (const auto& [name, value] : execution_.facts) fmt::format_to(std::back_inserter(out_), "{}: {}\n", name, value);
  out_ += '\n';
}

void Chart::legend() {
  out_ += "\nwaves:";
  for (const Symbol& s : kSymbols)
    if (s.letter != ' ') fmt::format_to(std::back_inserter(out_), "  {} {}", s.letter, s.meaning);
  fmt::format_to(std::back_inserter(out_), "\nmatrix pipe:  A {}", view_.waves[0].name);
  if (view_.waves.size() > 1) fmt::format_to(std::back_inserter(out_), "  B {}", view_.waves[1].name);
  if (view_.other_waves > 0) fmt::format_to(std::back_inserter(out_), "  o {} other waves", view_.other_waves);
  fmt::format_to(std::back_inserter(out_), "  - idle\none column: {} cycles, what takes most of them\n", per_column_);
}

void Chart::causes() {
  fmt::format_to(std::back_inserter(out_), "\nThe matrix pipe idles {} of {} cycles ({:.1f}%)", view_.idle,
                 view_.cycles(), 100.0 * static_cast<double>(view_.idle) / static_cast<double>(view_.cycles()));
  out_ += view_.causes.empty() ? ".\n" : ", while\n";
  u64 rest = view_.idle;
  for (std::size_t i = 0; i < std::min(kCauses, view_.causes.size()); ++i) {
    const Cause& cause = view_.causes[i];
    fmt::format_to(std::back_inserter(out_), "  {:>6} cycles:", cause.cycles);
    for (std::size_t w = 0; w < cause.doing.size(); ++w)
      fmt::format_to(std::back_inserter(out_), "{} {} {}", w > 0 ? ";" : "", view_.waves[w].name, cause.doing[w]);
    out_ += '\n';
    rest -= cause.cycles;
  }
  if (rest > 0) fmt::format_to(std::back_inserter(out_), "  {:>6} cycles: other\n", rest);
}

std::string Chart::text() {
  header();
  row("cycle", axis());
  row(view_.waves[0].name, wave_row(view_.waves[0]));
  row("matrix pipe", pipe_row());
  if (view_.waves.size() > 1) row(view_.waves[1].name, wave_row(view_.waves[1]));
  legend();
  causes();
  return std::move(out_);
}

}  // namespace

Expected<std::string> loop_text(const Execution& execution, const LoopTextOptions& options) {
  if (options.columns < kLeast || options.columns > kMost) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a chart of {} columns; allowed are {} to {}", options.columns, kLeast, kMost));
  }
  const Expected<LoopView> view = view_loop(execution, options.window);
  if (!view) return tl::unexpected(view.error());
  return Chart(execution, *view, options.columns).text();
}

}  // namespace zyfa::sim::picture
