// zyfa-jit tune: walks over placements of a problem's kernel to the one of least predicted cycles, or over those of
// every tuned row of the kernel table.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "tools/commands.h"
#include "tools/tune_log.h"
#include "tools/tune_table.h"
#include "tools/tune_variants.h"
#include "tools/tune_walk.h"
#include "zyfa/problem.h"
#include "zyfa/tune.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string problem, log;
  std::string logs, variants;
  std::vector<std::string> also;
  TableRequest table;
  TuneOptions tune;
};

void print_text(const WalkRequest& request, const Walk& walk) {
  const auto line = [](std::string_view name, const std::string& text) { fmt::print("{:<12} {}\n", name, text); };
  const TuneResult& r = walk.result;
  line("problem",
       fmt::format("{}, {} tokens, seed {}", to_string(request.problem), request.tune.tokens, request.tune.seed));
  line("trials", fmt::format("{}{}{}", r.trials, walk.known != 0 ? fmt::format(", {} from the log", walk.known) : "",
                             r.ended ? ", interrupted" : ""));
  for (const auto& [why, count] : walk.losses) {
    line("", fmt::format("{:>6} {}", count, why));
  }
  const std::optional<double> start = tune_cost(r.start), best = tune_cost(r.best);
  line("start", cycles_text(r.start));
  line("", r.start.placement);
  line("best",
       cycles_text(r.best) + (start && best ? fmt::format(", {:.4f} of the start's", *best / *start) : std::string()));
  line("", r.best.placement);
  line("toggles", fmt::format("{:.0f} operand bits an MFMA, start {:.0f}", r.best.toggles, r.start.toggles));
  line("note", "cycles are predicted by the model of docs/performance-model.md, measured on no device");
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

// Options that only one of the two ways to use the command has.
Status check(const Options& options) {
  const bool table = !options.table.file.empty();
  const auto refuse = [](const char* why) { return make_error(ErrorCode::kInvalidArgument, why); };
  if (table == !options.problem.empty()) {
    return refuse("give --problem, or --write-table for the problems of the tuned rows");
  }
  const bool variants = !options.variants.empty();
  if (table && (options.logs.empty() || variants)) {
    return refuse("--write-table needs --logs, the folder of its logs, and has no --variants");
  }
  if (!options.logs.empty() && !table && !variants) {
    return refuse("--logs is for --write-table and --variants; one walk has a --log");
  }
  if (!table && !options.table.rows.empty()) {
    return refuse("--row is for --write-table");
  }
  if ((table || variants) && (!options.log.empty() || !options.tune.starts.empty())) {
    return refuse("--log and --start are for one walk: here each has its own, the log in the folder of --logs");
  }
  return {};
}

int run(Options options) {
  if (const Status sound = check(options); !sound) {
    return report(sound.error(), options.form);
  }
  for (const std::string& set : options.also) {
    options.tune.also.push_back(comma_words(set));
  }
  // Before any file is made; each walk looks again.
  if (const Status sound = check_tune_options(options.tune); !sound) {
    return report(sound.error(), options.form);
  }
  if (!options.table.file.empty()) {
    options.table.tune = options.tune;
    options.table.logs = options.logs;
    options.table.form = options.form;
    return write_table(options.table);
  }
  const Expected<AttentionProblem> problem = parse_problem(options.problem);
  if (!problem) {
    return report(problem.error(), options.form);
  }
  if (!options.variants.empty()) {
    return compare_variants({*problem, comma_words(options.variants), options.tune, options.logs, options.form});
  }
  if (const Status read = read_starts(options.tune.starts); !read) {
    return report(read.error(), options.form);
  }
  const WalkRequest request{.problem = *problem, .tune = options.tune, .log = options.log, .title = {}};
  const Expected<Walk> result = walk(request);
  if (!result) {
    return report(result.error(), options.form);
  }
  if (options.form == OutputForm::kJson) {
    print_json(walk_json(request, *result));
  } else {
    print_text(request, *result);
  }
  return kSuccess;
}

}  // namespace

void add_tune(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "tune",
      "Looks for a faster placement of a problem's kernel: from a start along single changes, by predicted "
      "cycles. Every "
      "placement is verified, run in strict mode, and compared bit for bit with the reference placement.",
      "  zyfa-jit tune --problem bf16,d=128,causal --trials 500 --log tune.jsonl\n"
      "  zyfa-jit tune --problem fp8e4m3,d=128 --tokens 1024 --start fp8_naive --seed 7 --json\n"
      "  zyfa-jit tune --problem fp8e4m3,d=128 --also hold_other_wave=0 --also l2_latency=1500,waitcnt_cycles=4\n"
      "  zyfa-jit tune --problem bf16,d=128,causal,compute=fp8 --variants form,blocks --trials 100\n"
      "  zyfa-jit tune --write-table schedules/select/tuned_rows.inc --logs build/tune --trials 2000\n"
      "A log that stands already is gone on with. Cycles are of one compute unit for 256 queries (causal: "
      "the last) of\n"
      "a sample with one head and Gaussian values.",
      options->form);
  TuneOptions& tune = options->tune;
  command->add_option("--problem", options->problem, kProblemHelp);
  command->add_option("--tokens", tune.tokens, "Queries and keys of the sample")->capture_default_str();
  command->add_option("--trials", tune.trials, "Placements to try, the starts included")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--seed", tune.seed, "Of the order in which changes are tried")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--start", tune.starts,
                   "Placement to start from, a row's name, a text form or @FILE that holds one, instead of the table's "
                   "choice and its rows of 64 queries a wave. May be repeated")
      ->allow_extra_args(false);
  command->add_option("--set", tune.parameters, "Parameter of the cycle model, name=value. May be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--also", options->also,
                   "A further set of parameters, name=value,name=value: each placement is replayed with it too, beside "
                   "--set, and the mean of all sets decides. May be repeated, a set each time")
      ->allow_extra_args(false);
  command
      ->add_option("--log", options->log,
                   "File for every trial and what became of it, one JSON object a line; a run that was stopped goes "
                   "on from it")
      ->check(writable_file());
  TableRequest& table = options->table;
  command
      ->add_option(
          "--write-table", table.file,
          "Instead of --problem: looks for the placement of every tuned row of the kernel table and writes the "
          "file of them (schedules/select/tuned_rows.inc)")
      ->check(writable_file());
  command->add_option(
      "--variants", options->variants,
      "With --problem of FP8: a walk for each combination of these options, of p, blocks, form, qk, near "
      "and sum, and the error of each; the problem fixes the others");
  command->add_option("--logs", options->logs,
                      "Folder of the logs of --write-table and --variants, one a walk; made when it is missing");
  command->add_option("--row", table.rows, "Of --write-table: this row; others stay. May be repeated")
      ->allow_extra_args(false);
  command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace zyfa::tools
