// Looking for a faster placement of a problem's kernel, by the cycle model. Everything it says of speed is *predicted*.
//
//   Expected<TuneResult> result = zyfa::tune({.mask = zyfa::Mask::kCausal}, {.trials = 500});
//   zyfa::Attention::compile(problem, {.device = device, .placement = result->best.placement});
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zyfa/error.h"
#include "zyfa/export.h"
#include "zyfa/problem.h"

namespace zyfa {

// A placement that was tried. It is of use when it is verified (verifier, as every kernel), runs in strict mode without
// a finding and gives the reference placement's output bit for bit.
struct TuneTrial {
  std::string placement;              // canonical text
  std::optional<double> cycles = {};  // predicted, of a compute unit for 256 queries; none: no use
  std::vector<double> also = {};      // the same under each set of TuneOptions::also
  double toggles = 0;                 // operand bits an MFMA, decides among equal costs: the clock falls with them
  std::string why = {};               // it is of no use
  bool operator==(const TuneTrial&) const = default;
};

// What the walk makes least: the mean of `cycles` and `also`. Not the largest of them: parameters that cost every
// placement the same cycles would make one set the largest always, and the others would not count.
[[nodiscard]] ZYFA_API std::optional<double> tune_cost(const TuneTrial& trial);

struct TuneStep {
  std::uint64_t number = 0;  // from 1
  std::string change;        // the step from another placement that led here; "start"
  const TuneTrial& trial;
  bool best = false;   // so far
  bool known = false;  // from TuneOptions::known
};

struct TuneOptions {
  // Of the sample: as many queries as keys, Gaussian values (queries of a quarter of the
  // spread, so that the softmax's reference settles early), one head. The workgroup timed is the first, which under
  // the causal mask has the last queries and sees all keys, beside as many of its kind as a compute unit holds. Few
  // tokens weigh what stands before and after the loop, many the loop.
  std::int64_t tokens = 4096;
  std::uint64_t seed = 1;      // of the walk
  std::uint64_t trials = 200;  // stops after so many, the starts included
  // Names of rows or placements in text form; empty: tune_starts(). Starts of 32 and of 64 queries a wave mean a walk
  // for each with half of the trials.
  std::vector<std::string> starts = {};
  // A row of the kernel table whose placement is looked for, by name: a placement is of use only where it is one for
  // every kernel that the row serves. Empty: the problem's kernel alone.
  std::string row = {};
  std::vector<std::string> parameters = {};  // of the cycle model, "name=value" (zyfa/profile.h)
  // Further sets, each beside `parameters` in a replay of its own, whose cycles count as much: so that a placement does
  // not lean on one end of what is uncertain.
  std::vector<std::vector<std::string>> also = {};
  // Trials of an earlier run with the same problem, tokens, parameters and version: taken as they are. With the same
  // seed and starts the walk repeats, so an interrupted one goes on where it stopped. If the best is one of them, it is
  // tried again in the end.
  std::vector<TuneTrial> known = {};
  std::function<bool(const TuneStep&)> step = {};  // after each; false ends the walk
};

// What tune() refuses before it compiles anything: tokens, trials, and parameters, those of `also` too.
// kInvalidArgument: names the value and what is allowed; kDeviceUnavailable: parameters without libzyfa_jit, which
// knows them.
[[nodiscard]] ZYFA_API Status check_tune_options(const TuneOptions& options);

// Where a walk without starts begins, as texts: the table's choice, and the rows for the problem whose waves have
// another number of queries. kUnsupported (problem, details: every reason).
[[nodiscard]] ZYFA_API Expected<std::vector<std::string>> tune_starts(const AttentionProblem& problem);

struct TuneResult {
  TuneTrial start, best;  // start: the first of the starts
  std::uint64_t trials = 0;
  bool ended = false;  // by `step`
};

// Runs on the simulator, on one thread of this host. kUnsupported (problem, details: every reason); kInvalidArgument
// (tokens, trials, parameters, no such row or one that does not serve the problem, starts that are of no use);
// kScheduleError (a start that is no placement or not legal); kDeviceUnavailable (no libzyfa_jit); kCorruptData (the
// best of TuneOptions::known does not come out as it says).
[[nodiscard]] ZYFA_API Expected<TuneResult> tune(const AttentionProblem& problem, const TuneOptions& options = {});

// A row of the kernel table whose placement is looked for by tune() (docs/schedules.md, "The tuned rows").
struct TuneRow {
  std::string name;
  std::string problem;  // text form
  std::int64_t tokens = 0;
  std::string placement;  // as the table has it
};
// By name.
[[nodiscard]] ZYFA_API std::vector<TuneRow> tune_rows();

// The text of schedules/select/tuned_rows.inc with the placements of `rows` for those that the table has; all others
// stay. Rows that come out with one placement share the first's. Pure. kInvalidArgument: no such row; kScheduleError: a
// placement that cannot be read.
[[nodiscard]] ZYFA_API Expected<std::string> tuned_table(std::span<const TuneRow> rows);

// Whether two placements differ in nothing but their names. False for texts that cannot be read.
[[nodiscard]] ZYFA_API bool same_schedule(const std::string& a, const std::string& b);

}  // namespace zyfa
