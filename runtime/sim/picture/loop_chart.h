// The drawing of a LoopView as SVG, folded into bands of equal length when it is long; the page around it defines the
// patterns and text styles that it refers to (loop_html.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sim/picture/loop_view.h"

namespace zyfa::sim::picture {

struct LoopChart {
  std::string svg;
  std::vector<std::size_t> numbered;  // the longest of LoopView::gaps, by begin; numbered from 1 in the drawing
  std::uint64_t bands = 1;
};

LoopChart draw_loop(const Execution& execution, const LoopView& view);

// "#rrggbb" of one of LoopView::stages.
std::string_view stage_colour(const LoopView& view, std::string_view stage);

}  // namespace zyfa::sim::picture
