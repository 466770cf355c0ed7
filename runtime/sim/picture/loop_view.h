// One SIMD over a window, laid out for the pictures of a loop (loop_html.h, loop_text.h): two waves, the matrix pipe
// between them, where the pipe idles, and what the waves do meanwhile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/sim/picture/execution.h"

namespace zyfa::sim::picture {

// Part of a span or state within the window.
struct Block {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t span = 0;
};

struct WaveView {
  std::uint32_t wave = 0;
  std::string name;
  std::vector<Block> matrix, vector, lds, vmem;  // by begin; memory: the cycles of its issue
  std::vector<Block> barriers;                   // arrival to release
  // Cut to the window, and where a wait for the pipe goes on in a gap: "pipe taken by packed VALU".
  std::vector<State> states;
};

// The pipe is idle.
struct Gap {
  std::uint64_t begin = 0, end = 0;
  std::vector<std::string> doing;  // by wave of LoopView::waves: what it does for most of the gap
};

// What the waves do at once while the pipe is idle, summed over the window.
struct Cause {
  std::vector<std::string> doing;  // by wave of LoopView::waves
  std::uint64_t cycles = 0;
};

struct LoopView {
  Window window;
  std::uint32_t simd = 0;
  std::vector<WaveView> waves;      // one or two
  std::size_t other_waves = 0;      // of the same SIMD, counted in pipe and shares only
  std::vector<Block> pipe;          // MFMAs of all waves of the SIMD
  std::vector<Gap> gaps;            // by begin
  std::vector<Cause> causes;        // most cycles first
  std::vector<std::string> stages;  // stage_family() of the blocks, in order of appearance in the program
  std::uint64_t matrix = 0, vector = 0, trans = 0, idle = 0;  // cycles; TRANS is part of vector

  [[nodiscard]] std::uint64_t cycles() const { return window.end - window.begin; }
};

// The SIMD whose matrix pipe is busiest in the window (of equals the lowest), and the first two of its waves that
// execute in it. kInvalidArgument: as check() and choose_window().
[[nodiscard]] Expected<LoopView> view_loop(const Execution& execution, const std::optional<Window>& window);

}  // namespace zyfa::sim::picture
