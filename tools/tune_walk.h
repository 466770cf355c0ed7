// One walk of zyfa-jit tune, with its log, its progress and Ctrl-C.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "tools/cli.h"
#include "zyfa/problem.h"
#include "zyfa/tune.h"

namespace zyfa::tools {

struct WalkRequest {
  AttentionProblem problem;
  TuneOptions tune;                                // `known` and `step` are the walk's own
  std::string log;                                 // file; empty: none
  std::string title;                               // in front of the progress; may be empty
  std::function<void(const TuneStep&)> step = {};  // after each trial; may be empty
};

struct Walk {
  TuneResult result;
  std::map<std::string, std::uint64_t> losses;  // trials that did not win, by reason
  std::uint64_t known = 0;                      // trials that came from the log
};

// Ctrl-C ends the walk after the trial it is at (TuneResult::ended). Errors of tune() and of the log.
[[nodiscard]] Expected<Walk> walk(const WalkRequest& request);

[[nodiscard]] OrderedJson walk_json(const WalkRequest& request, const Walk& walk);
// "8190 cycles (mean of 3 sets 8402, largest 8804)", or why it is of no use.
[[nodiscard]] std::string cycles_text(const TuneTrial& trial);

}  // namespace zyfa::tools
