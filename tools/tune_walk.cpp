#include "tools/tune_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <optional>
#include <utility>

#include "tools/progress.h"
#include "tools/tune_log.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

std::atomic<bool> interrupted{false};

// For the length of a walk, Ctrl-C ends it after the trial it is at, so that its result is told.
class Interruptible {
 public:
  Interruptible() : before_(std::signal(SIGINT, [](int) { interrupted = true; })) {}
  ~Interruptible() { std::signal(SIGINT, before_); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  void (*before_)(int);
};

OrderedJson question_of(const AttentionProblem& problem, const TuneOptions& tune) {
  return {{"tune", 2},
          {"problem", to_string(problem)},
          {"tokens", tune.tokens},
          {"seed", tune.seed},
          {"starts", tune.starts},
          {"row", tune.row},
          {"parameters", tune.parameters},
          {"also", tune.also},
          {"cost", "mean"},
          {"generator", version_info().generator}};
}

std::string loss_of(const TuneTrial& trial) {
  return trial.cycles ? "slower" : trial.why.substr(0, trial.why.find(':'));
}

// What the log says is told by the file's name.
Error from(const std::string& log, Error error) {
  if (error.code == ErrorCode::kCorruptData && !log.empty()) {
    error.message = log + ": " + error.message;
  }
  return error;
}

}  // namespace

Expected<Walk> walk(const WalkRequest& request) {
  std::optional<TuneLog> log;
  TuneOptions tuning = request.tune;
  if (tuning.starts.empty()) {  // a log says where its walk began, whatever the table has later
    Expected<std::vector<std::string>> starts = tune_starts(request.problem);
    if (!starts) {
      return tl::unexpected<Error>(starts.error());
    }
    tuning.starts = *std::move(starts);
  }
  if (!request.log.empty()) {
    Expected<TuneLog> opened = TuneLog::open(request.log, question_of(request.problem, tuning));
    if (!opened) {
      return tl::unexpected<Error>(opened.error());
    }
    log.emplace(*std::move(opened));
    tuning.known = log->known();
  }
  Walk walk;
  Status written;
  std::optional<double> best;
  const auto progress = step_progress();
  tuning.step = [&](const TuneStep& step) {
    walk.known += step.known ? 1 : 0;
    if (step.best) {
      best = tune_cost(step.trial);
    } else {
      ++walk.losses[loss_of(step.trial)];
    }
    if (progress) {
      progress(fmt::format("{}trial {} of {}{}", request.title, step.number, tuning.trials,
                           best ? fmt::format(", best so far {:.0f} cycles", *best) : ""));
    }
    if (request.step) {
      request.step(step);
    }
    if (log && !step.known) {
      written = log->add(step);
    }
    return written.has_value() && !interrupted;
  };
  const Interruptible interruptible;
  Expected<TuneResult> result = tune(request.problem, tuning);
  if (progress) {
    progress("");
  }
  if (!result) {
    return tl::unexpected<Error>(from(request.log, result.error()));
  }
  if (!written) {
    return tl::unexpected<Error>(written.error());
  }
  walk.result = *std::move(result);
  return walk;
}

std::string cycles_text(const TuneTrial& trial) {
  if (!trial.cycles) {
    return "of no use: " + trial.why;
  }
  std::string text = fmt::format("{:.0f} cycles", *trial.cycles);
  if (!trial.also.empty()) {
    text += fmt::format(" (mean of {} sets {:.0f}, largest {:.0f})", 1 + trial.also.size(), *tune_cost(trial),
                        std::max(*trial.cycles, *std::ranges::max_element(trial.also)));
  }
  return text;
}

OrderedJson walk_json(const WalkRequest& request, const Walk& walk) {
  const TuneResult& r = walk.result;
  OrderedJson losses = OrderedJson::object();
  for (const auto& [why, count] : walk.losses) {
    losses[why] = count;
  }
  return {{"problem", to_string(request.problem)},
          {"tokens", request.tune.tokens},
          {"seed", request.tune.seed},
          {"parameters", request.tune.parameters},
          {"also", request.tune.also},
          {"trials", r.trials},
          {"from_log", walk.known},
          {"interrupted", r.ended},
          {"losses", losses},
          {"start", to_json(r.start)},
          {"best", to_json(r.best)}};
}

}  // namespace zyfa::tools
