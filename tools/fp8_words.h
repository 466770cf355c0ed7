// Options of subcommands that run FP8 attention on a file: each gives a word of the problem's text form
// (zyfa/problem.h).
#pragma once

#include <string>
#include <vector>

#include "tools/cli.h"

namespace zyfa::tools {

struct Fp8Words {
  std::string compute = "input", form = "auto";
  std::string probability, scores, row_sum, scales, byte_rounding;  // empty: not given
  bool blocks = false, unscaled = false, mixed = false, rotate = false, no_rotate = false, smooth_k = false;

  // In the order of the text form, only what was given: parse_problem() tells contradictions.
  [[nodiscard]] std::vector<std::string> list() const;
};

void add_fp8_options(CLI::App& command, Fp8Words& words);

}  // namespace zyfa::tools
