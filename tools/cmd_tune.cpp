// zyfa-jit tune: walks over placements of a problem's kernel to the one of least predicted cycles.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <optional>

#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/tune_log.h"
#include "zyfa/inspect.h"
#include "zyfa/problem.h"
#include "zyfa/tune.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string problem, log;
  TuneOptions tune;
};

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

OrderedJson question_of(const Options& options, const AttentionProblem& problem) {
  return {{"tune", 1},
          {"problem", to_string(problem)},
          {"tokens", options.tune.tokens},
          {"seed", options.tune.seed},
          {"starts", options.tune.starts},
          {"parameters", options.tune.parameters},
          {"also", options.tune.also},
          {"generator", version_info().generator}};
}

std::string cycles_text(const TuneTrial& trial) {
  if (!trial.cycles) {
    return "of no use: " + trial.why;
  }
  return fmt::format("{:.0f} cycles", *trial.cycles) +
         (trial.also != 0 ? fmt::format(" ({:.0f} under --also)", trial.also) : "");
}

// What became of the trials that did not win, by reason.
using Losses = std::map<std::string, std::uint64_t>;

std::string loss_of(const TuneTrial& trial) {
  return trial.cycles ? "slower" : trial.why.substr(0, trial.why.find(':'));
}

struct Walk {
  TuneResult result;
  Losses losses;
  std::uint64_t known = 0;
};

Expected<Walk> walk(const Options& options, const AttentionProblem& problem) {
  std::optional<TuneLog> log;
  TuneOptions tuning = options.tune;
  if (!options.log.empty()) {
    Expected<TuneLog> opened = TuneLog::open(options.log, question_of(options, problem));
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
      best = step.trial.cycles;
    } else {
      ++walk.losses[loss_of(step.trial)];
    }
    if (progress) {
      progress(fmt::format("trial {} of {}{}", step.number, tuning.trials,
                           best ? fmt::format(", best so far {:.0f} cycles", *best) : ""));
    }
    if (log && !step.known) {
      written = log->add(step);
    }
    return written.has_value() && !interrupted;
  };
  const Interruptible interruptible;
  Expected<TuneResult> result = tune(problem, tuning);
  if (progress) {
    progress("");
  }
  if (!result) {
    return tl::unexpected<Error>(result.error());
  }
  if (!written) {
    return tl::unexpected<Error>(written.error());
  }
  walk.result = *std::move(result);
  return walk;
}

void print_text(const Options& options, const AttentionProblem& problem, const Walk& walk) {
  const auto line = [](std::string_view name, const std::string& text) { fmt::print("{:<12} {}\n", name, text); };
  const TuneResult& r = walk.result;
  line("problem", fmt::format("{}, {} tokens, seed {}", to_string(problem), options.tune.tokens, options.tune.seed));
  line("trials", fmt::format("{}{}{}", r.trials, walk.known != 0 ? fmt::format(", {} from the log", walk.known) : "",
                             r.ended ? ", interrupted" : ""));
  for (const auto& [why, count] : walk.losses) {
    line("", fmt::format("{:>6} {}", count, why));
  }
  line("start", cycles_text(r.start));
  line("", r.start.placement);
  line("best", cycles_text(r.best) + (r.start.cycles && r.best.cycles
                                          ? fmt::format(", {:.4f} of the start's", *r.best.cycles / *r.start.cycles)
                                          : ""));
  line("", r.best.placement);
  line("toggles", fmt::format("{:.0f} operand bits an MFMA, start {:.0f}", r.best.toggles, r.start.toggles));
  line("note", "cycles are predicted by the model of docs/performance-model.md, measured on no device");
}

OrderedJson report_json(const Options& options, const AttentionProblem& problem, const Walk& walk) {
  const TuneResult& r = walk.result;
  OrderedJson losses = OrderedJson::object();
  for (const auto& [why, count] : walk.losses) {
    losses[why] = count;
  }
  return {{"problem", to_string(problem)},
          {"tokens", options.tune.tokens},
          {"seed", options.tune.seed},
          {"parameters", options.tune.parameters},
          {"also", options.tune.also},
          {"trials", r.trials},
          {"from_log", walk.known},
          {"interrupted", r.ended},
          {"losses", losses},
          {"start", to_json(r.start)},
          {"best", to_json(r.best)}};
}

// @FILE of a start is replaced by the file's text, so that the log holds the placement.
Status read_starts(std::vector<std::string>& starts) {
  for (std::string& start : starts) {
    const Expected<std::string> text = placement_text(start);
    if (!text) {
      return tl::unexpected<Error>(text.error());
    }
    start = *text;
  }
  return {};
}

int run(Options options) {
  const Expected<AttentionProblem> problem = parse_problem(options.problem);
  if (!problem) {
    return report(problem.error(), options.form);
  }
  if (const Status read = read_starts(options.tune.starts); !read) {
    return report(read.error(), options.form);
  }
  const Expected<Walk> result = walk(options, *problem);
  if (!result) {
    return report(result.error(), options.form);
  }
  if (options.form == OutputForm::kJson) {
    print_json(report_json(options, *problem, *result));
  } else {
    print_text(options, *problem, *result);
  }
  return kSuccess;
}

}  // namespace

void add_tune(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, "tune",
                  "Looks for a faster placement of a problem's kernel: from a start along single changes, by predicted "
                  "cycles. Every "
                  "placement is verified, run in strict mode, and compared bit for bit with the reference placement.",
                  "  zyfa-jit tune --problem bf16,d=128,causal --trials 500 --log tune.jsonl\n"
                  "  zyfa-jit tune --problem fp8e4m3,d=128 --tokens 1024 --start fp8_naive --seed 7 --json\n"
                  "A log that stands already is gone on with. Cycles are of one compute unit for 256 queries (causal: "
                  "the last) of\n"
                  "a sample with one head and Gaussian values.",
                  options->form);
  TuneOptions& tune = options->tune;
  command->add_option("--problem", options->problem, kProblemHelp)->required();
  command->add_option("--tokens", tune.tokens, "Queries and keys of the sample")->capture_default_str();
  command->add_option("--trials", tune.trials, "Placements to try, the starts included")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--seed", tune.seed, "Of the order in which changes are tried")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option(
          "--start", tune.starts,
          "Placement to start from, a row's name, a text form or @FILE that holds one, instead of the table's choice. "
          "May be repeated")
      ->allow_extra_args(false);
  command->add_option("--set", tune.parameters, "Parameter of the cycle model, name=value. May be repeated")
      ->allow_extra_args(false);
  command->add_option("--also", tune.also, "As --set, for a second replay whose cycles count as much. May be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--log", options->log,
                   "File for every trial and what became of it, one JSON object a line; a run that was stopped goes "
                   "on from it")
      ->check(writable_file());
  command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace zyfa::tools
