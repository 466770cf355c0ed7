#include "runtime/sim/picture/loop_chart.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "runtime/sim/picture/html_text.h"

namespace zyfa::sim::picture {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// The drawing, in pixels of a page 1600 wide.
constexpr double kWidth = 1540, kLabels = 150, kPlot = kWidth - kLabels - 10;
constexpr double kAxis = 22, kMatrixRow = 18, kVectorRow = 20, kMemoryRow = 11, kWaitRow = 14, kRowGap = 3;
constexpr double kTitleRow = 18, kPipeRow = 40, kMarkRow = 22, kBandGap = 26, kMark = 90;
constexpr double kWaveHeight = kTitleRow + kMatrixRow + kVectorRow + 2 * kMemoryRow + 4 * kRowGap + kWaitRow;
// Wider charts are folded into bands of equal length.
constexpr u64 kBandCycles = 1250, kMostBands = 8;
constexpr std::size_t kNumberedGaps = 8;
constexpr double kLetter = 6.4, kLine = 14;  // a character's mean width and a line at 11 px
// Gaps below an issue turn or two are the grain of the machine and get no number.
constexpr u64 kNumberedFrom = 8;

constexpr std::array<std::string_view, 12> kPalette = {"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1",
                                                       "#76b7b2", "#edc948", "#9c755f", "#1f4e79",
                                                       "#8cd17d", "#d4a6c8", "#b6992d", "#79706e"};

class Chart {
 public:
  Chart(const Execution& execution, const LoopView& view);
  LoopChart draw();

 private:
  template <typename... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  void band(u64 number);
  // These draw from y down; the lanes return where they end.
  double wave_lanes(const WaveView& wave, double y);
  double pipe_lane(double y);
  void axis(double y, double bottom);
  void label(double y, double height, std::string_view text, std::string_view css = "row");
  void background(double y, double height);
  void blocks(const std::vector<Block>& of, double y, double height);
  void waits(const WaveView& wave, double y);
  void barriers(const WaveView& wave, double top, double bottom);
  void gap(const Gap& gap, double y);
  void gap_numbers(double y);

  [[nodiscard]] const Instruction& instruction(u32 span) const {
    return execution_.instructions[execution_.spans[span].instruction];
  }
  [[nodiscard]] std::string hover(u32 span) const;
  [[nodiscard]] double band_height() const {
    return kAxis + static_cast<double>(view_.waves.size()) * kWaveHeight + kMarkRow + kPipeRow;
  }
  [[nodiscard]] bool visible(u64 begin, u64 end) const { return begin < band_.end && end > band_.begin; }
  [[nodiscard]] double x(u64 cycle) const {
    const u64 at = std::clamp(cycle, band_.begin, band_.end) - band_.begin;
    return kLabels + kPlot * static_cast<double>(at) / static_cast<double>(band_cycles_);
  }
  // Hovering shows cycles from the window's begin; what began before it is negative.
  [[nodiscard]] std::int64_t relative(u64 cycle) const {
    return static_cast<std::int64_t>(cycle) - static_cast<std::int64_t>(view_.window.begin);
  }

  const Execution& execution_;
  const LoopView& view_;
  u64 bands_ = 1, band_cycles_ = 1;
  Window band_;  // being drawn
  std::vector<std::size_t> numbered_;
  std::string out_;
};

Chart::Chart(const Execution& execution, const LoopView& view) : execution_(execution), view_(view) {
  bands_ = std::clamp<u64>((view.cycles() + kBandCycles - 1) / kBandCycles, 1, kMostBands);
  band_cycles_ = (view.cycles() + bands_ - 1) / bands_;
  const auto length = [&](std::size_t i) { return view.gaps[i].end - view.gaps[i].begin; };
  for (std::size_t i = 0; i < view.gaps.size(); ++i)
    if (length(i) >= kNumberedFrom) numbered_.push_back(i);
  std::stable_sort(numbered_.begin(), numbered_.end(), [&](auto a, auto b) { return length(a) > length(b); });
  numbered_.resize(std::min(numbered_.size(), kNumberedGaps));
  std::sort(numbered_.begin(), numbered_.end());
}

std::string Chart::hover(u32 span) const {
  const Span& s = execution_.spans[span];
  const Instruction& i = instruction(span);
  std::string text = html_text(i.text);
  if (!i.comment.empty()) text += fmt::format("\n{}", html_text(i.comment));
  if (!i.stage.empty()) text += fmt::format("\nstage {}", html_text(i.stage));
  text += fmt::format("\n{}, {}\nissues at cycle {}, unit {} to {}", html_text(wave_name(execution_, s.wave)),
                      unit_name(i.unit), relative(s.issue), relative(s.start), relative(s.end));
  if (s.stalled > 0) text += fmt::format("\nwaited {} cycles: {}", s.stalled, html_text(execution_.stalls[s.stall]));
  return text;
}

void Chart::label(double y, double height, std::string_view text, std::string_view css) {
  put("<text class=\"{}\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", css, kLabels - 8, y + height / 2 + 4,
      html_text(text));
}

void Chart::background(double y, double height) {
  put("<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"#f6f8fa\"/>\n", kLabels, y,
      x(band_.end) - kLabels, height);
}

void Chart::blocks(const std::vector<Block>& of, double y, double height) {
  background(y, height);
  for (const Block& b : of) {
    if (!visible(b.begin, b.end)) continue;
    const double left = x(b.begin), width = x(b.end) - left;
    const std::string shape =
        fmt::format(R"(x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}")", left, y, width, height);
    put(R"(<g><title>{}</title><rect class="block" {} fill="{}" stroke="#fff" stroke-width="0.6"/>)", hover(b.span),
        shape, stage_colour(view_, stage_family(instruction(b.span))));
    if (instruction(b.span).unit == Unit::kTrans) put(R"(<rect {} fill='url(#trans)' pointer-events="none"/>)", shape);
    out_ += "</g>\n";
  }
}

// Waits for memory and barriers are darker than those for a unit; named where there is room.
void Chart::waits(const WaveView& wave, double y) {
  background(y, kWaitRow);
  for (const State& s : wave.states) {
    if (!s.waits || !visible(s.begin, s.end)) continue;
    const bool far = s.reason == unit_name(Unit::kBarrier) || s.reason.ends_with(" wait");
    const double left = x(s.begin), width = x(s.end) - left;
    put("<g><title>{} waits {} cycles: {}\n{}</title>", html_text(wave.name), s.end - s.begin, html_text(s.reason),
        html_text(instruction(s.span).text));
    put(R"(<rect class="waiting" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}" fill="{}"/></g>)", left, y, width,
        kWaitRow, far ? "#8c959f" : "#d8dee4");
    if (width > kLetter * static_cast<double>(s.reason.size()) + 4) {
      put(R"(<text class="{}" x="{:.1f}" y="{:.1f}" pointer-events="none">{}</text>)", far ? "light" : "wait", left + 3,
          y + kWaitRow - 3.5, html_text(s.reason));
    }
    out_ += '\n';
  }
}

void Chart::barriers(const WaveView& wave, double top, double bottom) {
  for (const Block& b : wave.barriers) {
    const u64 at = execution_.spans[b.span].issue;
    if (at < band_.begin || at >= band_.end) continue;
    put(R"(<path class="barrier" d="M{:.2f} {:.1f}V{:.1f}" stroke="#1b1f24" stroke-width="2" )"
        R"(stroke-dasharray="4 3"><title>{} arrives at a barrier at cycle {} and goes on at {}</title></path>)"
        "\n",
        x(at), top, bottom, html_text(wave.name), relative(at), relative(execution_.spans[b.span].end));
  }
}

double Chart::wave_lanes(const WaveView& wave, double y) {
  put("<text class=\"name\" x=\"8\" y=\"{:.1f}\">{}</text>\n", y + kTitleRow / 2 + 4, html_text(wave.name));
  y += kTitleRow;
  const double top = y;
  struct Lane {
    std::string_view name;
    const std::vector<Block>* blocks;
    double height;
  };
  for (const Lane& lane :
       {Lane{"MFMA", &wave.matrix, kMatrixRow}, Lane{"VALU, TRANS", &wave.vector, kVectorRow},
        Lane{"LDS issue", &wave.lds, kMemoryRow}, Lane{"vector memory issue", &wave.vmem, kMemoryRow}}) {
    label(y, lane.height, lane.name);
    blocks(*lane.blocks, y, lane.height);
    y += lane.height + kRowGap;
  }
  label(y, kWaitRow, "waits");
  waits(wave, y);
  barriers(wave, top, y + kWaitRow);
  return y + kWaitRow;
}

// Says in the gap what the waves do, where there is room for it.
void Chart::gap(const Gap& gap, double y) {
  const double left = x(gap.begin), width = x(gap.end) - left;
  std::string why;
  std::size_t longest = 0;
  for (std::size_t w = 0; w < gap.doing.size(); ++w) {
    const std::string line = fmt::format("{} {}", view_.waves[w].name, gap.doing[w]);
    longest = std::max(longest, line.size());
    why += fmt::format("\n{}", html_text(line));
  }
  put("<g><title>matrix pipe idle for {} cycles, {} to {}{}</title>", gap.end - gap.begin, relative(gap.begin),
      relative(gap.end), why);
  put(R"(<rect class="idle" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}" fill='url(#idle)'/>)", left, y, width,
      kPipeRow);
  const double room = kLetter * static_cast<double>(longest) + 10, lines = static_cast<double>(gap.doing.size());
  if (width > room + 6) {
    const double from = left + (width - room) / 2, top = y + (kPipeRow - kLine * lines) / 2;
    put(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="3" fill="#fff" fill-opacity="0.92"/>)", from,
        top - 1, room, kLine * lines + 2);
    for (std::size_t w = 0; w < gap.doing.size(); ++w) {
      put(R"(<text class="why" x="{:.1f}" y="{:.1f}" pointer-events="none">{} {}</text>)", from + 5,
          top + kLine * static_cast<double>(w) + 11, html_text(view_.waves[w].name), html_text(gap.doing[w]));
    }
  }
  out_ += "</g>\n";
}

void Chart::gap_numbers(double y) {
  for (std::size_t n = 0; n < numbered_.size(); ++n) {
    const Gap& gap = view_.gaps[numbered_[n]];
    const u64 middle = (gap.begin + gap.end) / 2;
    if (middle < band_.begin || middle >= band_.end) continue;
    const double at = std::min(x(middle), kWidth - kMark);  // its text stays in the drawing
    put(R"(<circle cx="{0:.1f}" cy="{1:.1f}" r="9" fill="#a40e26"/>)"
        R"(<text class="number" x="{0:.1f}" y="{2:.1f}">{3}</text>)"
        R"(<text class="length" x="{4:.1f}" y="{2:.1f}">{5} cycles</text>)"
        "\n",
        at, y + 11, y + 15, n + 1, at + 13, gap.end - gap.begin);
  }
}

double Chart::pipe_lane(double y) {
  const double top = y + kMarkRow;
  label(top, kPipeRow, "matrix pipe", "name");
  blocks(view_.pipe, top, kPipeRow);
  for (const Gap& idle : view_.gaps)
    if (visible(idle.begin, idle.end)) gap(idle, top);
  gap_numbers(y);
  return top + kPipeRow;
}

// A mark every so many cycles that marks stay 60 pixels apart.
void Chart::axis(double y, double bottom) {
  u64 step = 10;
  for (const u64 next : {20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000})
    if (kPlot * static_cast<double>(step) / static_cast<double>(band_cycles_) < 60) step = next;
  label(y, kAxis - 6, "cycle");
  const u64 first = band_.begin - view_.window.begin, last = band_.end - view_.window.begin;
  for (u64 at = (first + step - 1) / step * step; at <= last; at += step) {
    put(R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}" stroke="#d0d7de" stroke-width="1"/>)"
        R"(<text class="tick" x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4}</text>)"
        "\n",
        x(view_.window.begin + at), y + kAxis - 7, bottom, y + kAxis - 10, at);
  }
}

void Chart::band(u64 number) {
  band_ = {view_.window.begin + number * band_cycles_,
           std::min(view_.window.begin + (number + 1) * band_cycles_, view_.window.end)};
  const double top = static_cast<double>(number) * (band_height() + kBandGap);
  axis(top, top + band_height());
  double y = wave_lanes(view_.waves[0], top + kAxis);
  y = pipe_lane(y);
  if (view_.waves.size() > 1) wave_lanes(view_.waves[1], y);
}

LoopChart Chart::draw() {
  put(R"(<svg id="chart" role="img" aria-label="waves and matrix pipe over time" width="{0}" height="{1}" )"
      R"(viewBox="0 0 {0} {1}">)"
      "\n",
      kWidth, static_cast<double>(bands_) * (band_height() + kBandGap));
  for (u64 b = 0; b < bands_; ++b) band(b);
  out_ += "</svg>\n";
  return {std::move(out_), std::move(numbered_), bands_};
}

}  // namespace

std::string_view stage_colour(const LoopView& view, std::string_view stage) {
  const auto at = std::find(view.stages.begin(), view.stages.end(), stage);
  return kPalette[static_cast<std::size_t>(at - view.stages.begin()) % kPalette.size()];
}

LoopChart draw_loop(const Execution& execution, const LoopView& view) { return Chart(execution, view).draw(); }

}  // namespace zyfa::sim::picture
