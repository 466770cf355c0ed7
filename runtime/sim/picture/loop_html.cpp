#include "runtime/sim/picture/loop_html.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "runtime/sim/picture/html_text.h"
#include "runtime/sim/picture/loop_chart.h"

namespace zyfa::sim::picture {
namespace {

using u64 = std::uint64_t;

constexpr std::string_view kStyle = R"css(<style>
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1b1f24; font: 14px/1.45 system-ui, "DejaVu Sans", Arial, sans-serif; }
main { width: 1540px; margin: 22px 30px 40px; }
h1 { font-size: 20px; margin: 0; overflow-wrap: anywhere; }
h1 .badge { font-size: 12px; font-weight: 600; color: #7a4b00; background: #ffedc7; border: 1px solid #e8bf62;
  border-radius: 10px; padding: 2px 10px; vertical-align: 3px; margin-left: 8px; }
.note { color: #57606a; margin: 4px 0 14px; max-width: 1400px; }
.most { margin: 0 0 10px; }
.figures { display: flex; flex-wrap: wrap; gap: 10px; margin-bottom: 14px; }
.figure { border: 1px solid #d8dee4; border-radius: 6px; padding: 5px 14px 6px; min-width: 92px; }
.figure b { display: block; font-size: 20px; font-weight: 600; }
.figure span { color: #57606a; font-size: 12px; }
.figure.idle { border-color: #a40e26; }
.figure.idle b { color: #a40e26; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 10px; font-size: 12px; align-items: center; }
.legend i { display: inline-block; width: 22px; height: 12px; margin-right: 6px; vertical-align: -1px; }
.legend svg { margin-right: 6px; vertical-align: -2px; }
svg text { font: 11px system-ui, "DejaVu Sans", Arial, sans-serif; fill: #1b1f24; }
svg .row { fill: #57606a; }
svg .name { font-weight: 700; font-size: 12px; }
svg .tick, svg .wait { fill: #57606a; font-size: 10px; }
svg .light { fill: #fff; font-size: 10px; }
svg .number { fill: #fff; font-weight: 700; text-anchor: middle; }
svg .length { fill: #a40e26; font-weight: 600; }
svg rect:hover { stroke: #1b1f24; stroke-width: 1.5; }
.columns { display: flex; gap: 48px; align-items: flex-start; margin-top: 12px; }
h2 { font-size: 15px; margin: 0 0 6px; }
table { border-collapse: collapse; font-size: 13px; }
th { text-align: left; font-weight: 600; color: #57606a; }
th, td { padding: 3px 14px 3px 0; border-bottom: 1px solid #eaeef2; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td .dot { display: inline-block; background: #a40e26; color: #fff; border-radius: 9px; min-width: 18px;
  text-align: center; font-size: 11px; font-weight: 700; }
</style>
)css";

constexpr std::string_view kPatterns = R"svg(<svg width="0" height="0" style="position:absolute"><defs>
<pattern id="idle" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="7" height="7" fill="#ffd7d5"/><rect width="3" height="7" fill="#e5484d"/></pattern>
<pattern id="trans" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="1.6" height="4" fill="#fff" fill-opacity="0.6"/></pattern>
</defs></svg>
)svg";

constexpr std::string_view kFixedLegend = R"svg(<span><svg width="22" height="12">
<rect width="22" height="12" fill="#79706e"/><rect width="22" height="12" fill="url(#trans)"/>
</svg>TRANS (exp and the like)</span>
<span><svg width="22" height="12"><rect width="22" height="12" fill="url(#idle)"/></svg>matrix pipe idle</span>
<span><i style="background:#8c959f"></i>waits for memory or a barrier</span>
<span><i style="background:#d8dee4"></i>waits for a unit or its turn</span>
<span><svg width="12" height="14"><path d="M6 0V14" stroke="#1b1f24" stroke-width="2" stroke-dasharray="3 2"/>
</svg>arrives at a barrier, and waits there for the last wave of the workgroup</span></div>
)svg";

constexpr std::size_t kCauses = 8;  // rows of the table

class Page {
 public:
  Page(const Execution& execution, const LoopView& view)
      : execution_(execution), view_(view), chart_(draw_loop(execution, view)) {}
  std::string write();

 private:
  template <typename... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  void header();
  [[nodiscard]] std::string waves_text() const;
  void figure(std::string_view value, std::string_view name, std::string_view css = "");
  void legend();
  void gap_table();
  void cause_table();
  [[nodiscard]] std::string share(u64 cycles) const {
    return fmt::format("{:.1f}%", 100.0 * static_cast<double>(cycles) / static_cast<double>(view_.cycles()));
  }

  const Execution& execution_;
  const LoopView& view_;
  const LoopChart chart_;
  std::string out_;
};

void Page::figure(std::string_view value, std::string_view name, std::string_view css) {
  put(R"(<div class="figure {}"><b>{}</b><span>{}</span></div>)", css, html_text(value), html_text(name));
}

// Which waves the page shows.
std::string Page::waves_text() const {
  if (view_.waves.size() < 2) return fmt::format("which {} has alone", html_text(view_.waves.front().name));
  return fmt::format("which {} and {} share{}", html_text(view_.waves[0].name), html_text(view_.waves[1].name),
                     view_.other_waves > 0 ? fmt::format(" with {} more", view_.other_waves) : "");
}

void Page::header() {
  put("<h1>{}<span class=\"badge\">predicted, not measured</span></h1>\n", html_text(execution_.kernel));
  put("<p class=\"note\">{} {} to {} of a run of {}, on SIMD {} of one compute unit, {}, as zyfa's cycle model "
      "predicts them. Time runs to the right, counted from 0{}. The matrix pipe, the row between the waves, executes "
      "the MFMAs of all waves of the SIMD one at a time: where it is red, it idles. Colours are stages "
      "(docs/schedules.md). Hover over a block for its instruction.</p>\n",
      execution_.loop == view_.window ? "One trip of the steady loop, cycles" : "Cycles", view_.window.begin,
      view_.window.end, execution_.cycles, view_.simd, waves_text(),
      chart_.bands > 1 ? ", and goes on in the next band" : "");
  out_ += "<div class=\"figures\">";
  figure(std::to_string(view_.cycles()), "cycles shown");
  figure(share(view_.matrix), "matrix pipe busy");
  figure(share(view_.idle), "matrix pipe idle", "idle");
  figure(share(view_.vector), "VALU busy");
  figure(share(view_.trans), "of it TRANS");
  for (const auto& [name, value] : execution_.facts) figure(value, name);
  out_ += "</div>\n";
  if (view_.causes.empty()) return;
  const Cause& most = view_.causes.front();
  put("<p class=\"most\">The matrix pipe idles {} of {} cycles. In {} of these,", view_.idle, view_.cycles(),
      most.cycles);
  for (std::size_t w = 0; w < most.doing.size(); ++w) {
    put("{} {} <b>{}</b>", w > 0 ? ", while" : "", html_text(view_.waves[w].name), html_text(most.doing[w]));
  }
  out_ += ".</p>\n";
}

void Page::legend() {
  out_ += R"(<div class="legend" id="legend">)";
  for (const std::string& stage : view_.stages)
    put(R"(<span><i style="background:{}"></i>{}</span>)", stage_colour(view_, stage), html_text(stage));
  out_ += kFixedLegend;
}

void Page::cause_table() {
  put("<div><h2>Where the matrix pipe's idle time goes: {} of {} cycles, {}</h2>\n", view_.idle, view_.cycles(),
      share(view_.idle));
  out_ += "<table id=\"causes\"><tr><th>cycles</th><th>share</th>";
  for (const WaveView& wave : view_.waves) put("<th>{}</th>", html_text(wave.name));
  out_ += "</tr>\n";
  u64 rest = view_.idle;
  const auto row = [&](u64 cycles) {
    put("<tr><td class=\"n\">{}</td><td class=\"n\">{}</td>", cycles, share(cycles));
  };
  for (std::size_t i = 0; i < std::min(kCauses, view_.causes.size()); ++i) {
    const Cause& cause = view_.causes[i];
    row(cause.cycles);
    for (const std::string& doing : cause.doing) put("<td>{}</td>", html_text(doing));
    out_ += "</tr>\n";
    rest -= cause.cycles;
  }
  if (rest > 0) {
    row(rest);
    put("<td colspan=\"{}\">other</td></tr>\n", view_.waves.size());
  }
  out_ += "</table></div>\n";
}

void Page::gap_table() {
  if (chart_.numbered.empty()) return;
  out_ += "<div><h2>The longest gaps, numbered in the picture</h2>\n";
  out_ += "<table id=\"gaps\"><tr><th></th><th>cycles</th><th>at</th>";
  for (const WaveView& wave : view_.waves) put("<th>{}, mostly</th>", html_text(wave.name));
  out_ += "</tr>\n";
  for (std::size_t n = 0; n < chart_.numbered.size(); ++n) {
    const Gap& gap = view_.gaps[chart_.numbered[n]];
    put("<tr><td><span class=\"dot\">{}</span></td><td class=\"n\">{}</td><td class=\"n\">{} to {}</td>", n + 1,
        gap.end - gap.begin, gap.begin - view_.window.begin, gap.end - view_.window.begin);
    for (const std::string& doing : gap.doing) put("<td>{}</td>", html_text(doing));
    out_ += "</tr>\n";
  }
  out_ += "</table></div>\n";
}

std::string Page::write() {
  put("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}: predicted loop</title>\n",
      html_text(execution_.kernel));
  out_ += kStyle;
  out_ += "</head><body><main>\n";
  out_ += kPatterns;
  header();
  legend();
  out_ += chart_.svg;
  out_ += "<div class=\"columns\">\n";
  gap_table();
  cause_table();
  out_ += "</div>\n";
  if (view_.other_waves > 0) {
    put("<p class=\"note\">{} more waves of this SIMD use the matrix pipe; they are in its row and in the shares "
        "only.</p>\n",
        view_.other_waves);
  }
  out_ += "</main></body></html>\n";
  return std::move(out_);
}

}  // namespace

Expected<std::string> loop_html(const Execution& execution, const std::optional<Window>& window) {
  Window shown = execution.loop.value_or(Window{0, execution.cycles});
  const bool cut = !window && shown.end - shown.begin > kMostPageCycles;
  if (cut) shown.end = shown.begin + kMostPageCycles;
  const Expected<LoopView> view = view_loop(execution, cut ? shown : window);
  if (!view) return tl::unexpected(view.error());
  if (view->cycles() > kMostPageCycles) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("a page of the {} cycles {}:{}; it shows at most {}, so choose a narrower window",
                                  view->cycles(), view->window.begin, view->window.end, kMostPageCycles));
  }
  return Page(execution, *view).write();
}

}  // namespace zyfa::sim::picture
