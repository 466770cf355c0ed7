// zyfa/tune.h: what a placement costs, and the walk over them, which libzyfa_jit does.
#include "zyfa/tune.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "runtime/jit_loader.h"
#include "runtime/kernel_choice.h"
#include "runtime/tune/sample.h"
#include "schedules/select/placement.h"
#include "schedules/select/select.h"
#include "zyfa/profile.h"

namespace zyfa {
namespace {

using tune_detail::Sample;
using tune_detail::SampleShape;

constexpr double kQueries = 256;  // that cycles are told for: workgroups differ in size and in number on a compute unit
constexpr std::uint32_t kManyHeads = 4096;      // fill the chip with as many workgroups as a compute unit holds
constexpr std::uint64_t kTrialsOfADevice = 16;  // a device's kernels stay in memory as long as it
constexpr std::int64_t kMostTokens = 1 << 17;
// Of the strict run: ragged, several workgroups, more than one block, two heads.
constexpr SampleShape kStrictShape{.queries = 300, .keys = 333, .heads = 2};

std::string reason(const Error& error) {
  std::string text = error.message;
  if (!error.details.empty()) text += ": " + error.details.front();
  return text;
}

bool names_the_placement(const Error& error) {
  return error.code == ErrorCode::kScheduleError || error.code == ErrorCode::kCompileError ||
         error.code == ErrorCode::kStrictFinding || error.code == ErrorCode::kMemoryFault;
}

// A set of TuneOptions::also stands beside the parameters of all replays.
std::vector<std::string> with_more(const TuneOptions& options, const std::vector<std::string>& more) {
  std::vector<std::string> parameters = options.parameters;
  parameters.insert(parameters.end(), more.begin(), more.end());
  return parameters;
}

// As the walk compares it.
schedules::Trial as_found(const TuneTrial& trial) {
  return {.cost = tune_cost(trial), .tie_break = trial.toggles, .why = trial.why};
}

class Bench {
 public:
  // `serves`: the kernels that a placement must be one for.
  static Expected<Bench> create(const AttentionProblem& problem, const TuneOptions& options,
                                const std::string& reference, const JitService& service,
                                std::span<const schedules::KernelSpec> serves) {
    Bench bench(problem, options, service, serves);
    if (Status made = bench.make_samples(); !made) return tl::unexpected(std::move(made.error()));
    Expected<std::vector<std::byte>> expected = bench.strict_result(reference);
    if (!expected) return tl::unexpected(std::move(expected.error()));
    bench.expected_ = *std::move(expected);
    return bench;
  }

  // Errors that are not the placement's own end everything.
  Expected<TuneTrial> try_out(const std::string& placement) {
    if (++tried_ % kTrialsOfADevice == 0) {
      if (Status made = make_samples(); !made) return tl::unexpected(std::move(made.error()));
    }
    TuneTrial trial{.placement = placement};
    Expected<std::vector<std::byte>> result = strict_result(placement);
    if (!result) {
      if (!names_the_placement(result.error())) return tl::unexpected(std::move(result.error()));
      trial.why = reason(result.error());
      return trial;
    }
    if (*result != expected_) {
      trial.why = "its output differs from the reference placement's";
      return trial;
    }
    if (Status timed = time(trial); !timed) return tl::unexpected(std::move(timed.error()));
    if (as_found(trial).better_than(best_)) {
      if (std::string why = refused_by_others(placement); !why.empty()) {
        return TuneTrial{.placement = placement, .why = why};
      }
      remember(trial);
    }
    return trial;
  }

  // A trial of an earlier run, as it would have been.
  void remember(const TuneTrial& trial) {
    if (as_found(trial).better_than(best_)) best_ = as_found(trial);
  }

 private:
  Bench(AttentionProblem problem, const TuneOptions& options, const JitService& service,
        std::span<const schedules::KernelSpec> serves)
      : problem_(problem), options_(&options), service_(&service), serves_(serves) {}

  // Registers are what kernels with the same stages may differ in. Empty when all have room; asked of the best alone.
  [[nodiscard]] std::string refused_by_others(const std::string& placement) const {
    for (schedules::KernelSpec spec : serves_.subspan(1)) {
      spec.placement = placement;
      if (const auto compiled = service_->compile_kernel(spec); !compiled) {
        return "no placement for " + describe(spec) + ": " + reason(compiled.error());
      }
    }
    return {};
  }

  Status make_samples() {
    Expected<std::unique_ptr<Sample>> strict = Sample::create(problem_, kStrictShape, {.checks = SimChecks::kStrict});
    if (!strict) return tl::unexpected(std::move(strict.error()));
    strict_ = *std::move(strict);
    Expected<std::unique_ptr<Sample>> timed =
        Sample::create(problem_, {.queries = options_->tokens, .keys = options_->tokens}, {});
    if (!timed) return tl::unexpected(std::move(timed.error()));
    timed_ = *std::move(timed);
    return {};
  }

  Expected<std::vector<std::byte>> strict_result(const std::string& placement) {
    Expected<std::shared_ptr<Attention>> attention = strict_->compile(problem_, placement);
    if (!attention) return tl::unexpected(std::move(attention.error()));
    return strict_->launch(**attention);
  }

  Status time(TuneTrial& trial) {
    Expected<std::shared_ptr<Attention>> attention = timed_->compile(problem_, trial.placement);
    if (!attention) return tl::unexpected(std::move(attention.error()));
    const AttentionInfo info = (*attention)->info();
    SimOptions options = timed_->device().options();
    options.capture =
        SimCapture{.kernel = info.symbol, .workgroups = {{0, 0, 0}}, .others = SimCapture::Others::kSkipped};
    if (Status set = timed_->device().set_options(options); !set) return set;
    if (Expected<std::vector<std::byte>> run = timed_->launch(**attention); !run) {
      return tl::unexpected(std::move(run.error()));
    }
    const auto groups = static_cast<std::uint32_t>((options_->tokens + info.query_tile - 1) / info.query_tile);
    const auto replay = [&](const std::vector<std::string>& more) {
      return timed_->device().last_profile({.parameters = with_more(*options_, more),
                                            .errors = ProfileOptions::Errors::kNone,
                                            .grid = {groups, kManyHeads, 1}});
    };
    const auto cycles = [&](const LaunchProfile& profile) {
      return static_cast<double>(profile.cycles) * kQueries / (profile.chip.resident * info.query_tile);
    };
    Expected<LaunchProfile> profile = replay({});
    if (!profile) return tl::unexpected(std::move(profile.error()));
    trial.cycles = cycles(*profile);
    for (const std::vector<std::string>& set : options_->also) {
      Expected<LaunchProfile> other = replay(set);
      if (!other) return tl::unexpected(std::move(other.error()));
      trial.also.push_back(cycles(*other));
    }
    const SimToggles& toggles = profile->toggles;
    if (toggles.mfmas != 0) {
      trial.toggles = static_cast<double>(toggles.a + toggles.b + toggles.c) / static_cast<double>(toggles.mfmas);
    }
    return {};
  }

  AttentionProblem problem_;
  const TuneOptions* options_;
  std::unique_ptr<Sample> strict_, timed_;
  std::vector<std::byte> expected_;
  const JitService* service_;
  std::span<const schedules::KernelSpec> serves_;  // the problem's own first
  schedules::Trial best_;
  std::uint64_t tried_ = 0;
};

// The problem's kernel, and those that the row serves beside it.
Expected<std::vector<schedules::KernelSpec>> served(const schedules::KernelSpec& own, const std::string& name) {
  std::vector<schedules::KernelSpec> specs{own};
  if (name.empty()) return specs;
  const schedules::Row* row = schedules::find_row(schedules::kernel_table(), name);
  if (row == nullptr) return make_error(ErrorCode::kInvalidArgument, "no row of the table is named '" + name + "'");
  if (std::string reason = row->mismatch(own); !reason.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "row '" + name + "' does not serve the problem: " + reason);
  }
  for (schedules::KernelSpec& spec : schedules::variants_of(*row)) specs.push_back(std::move(spec));
  return specs;
}

Status check_parameters(const TuneOptions& options) {
  if (Status good = check_profile_parameters(options.parameters); !good) return good;
  for (const std::vector<std::string>& set : options.also) {
    if (Status good = check_profile_parameters(with_more(options, set)); !good) return good;
  }
  return {};
}

Expected<std::vector<schedules::Placement>> starts_of(const AttentionProblem& problem, const TuneOptions& options) {
  Expected<std::vector<std::string>> names = options.starts.empty() ? tune_starts(problem) : options.starts;
  if (!names) return tl::unexpected(std::move(names.error()));
  std::vector<schedules::Placement> starts;
  for (const std::string& name : *names) {
    Expected<KernelChoice> choice = choose_kernel(problem, name);
    if (!choice) return tl::unexpected(std::move(choice.error()));
    Expected<schedules::Placement> placement = schedules::parse_placement(choice->spec.placement);
    if (!placement) return tl::unexpected(std::move(placement.error()));
    starts.push_back(*std::move(placement));
  }
  return starts;
}

// Of an earlier run: told by that run, not by this one.
Status check_known(Bench& bench, const TuneTrial& best) {
  Expected<TuneTrial> again = bench.try_out(best.placement);
  if (!again) return tl::unexpected(std::move(again.error()));
  if (*again == best) return {};
  const auto figures = [](const TuneTrial& trial) {
    const std::optional<double> cost = tune_cost(trial);
    return cost ? std::to_string(*cost) + " cycles" : trial.why;
  };
  return make_error(ErrorCode::kCorruptData, "the best of the earlier trials does not come out as they say: " +
                                                 best.placement + " was " + figures(best) + ", is " + figures(*again));
}

}  // namespace

std::optional<double> tune_cost(const TuneTrial& trial) {
  if (!trial.cycles) return std::nullopt;
  double sum = *trial.cycles;
  for (const double cycles : trial.also) sum += cycles;
  return sum / static_cast<double>(1 + trial.also.size());
}

Status check_tune_options(const TuneOptions& options) {
  if (options.tokens < 1 || options.tokens > kMostTokens) {
    return make_error(ErrorCode::kInvalidArgument, "tokens is " + std::to_string(options.tokens) +
                                                       "; allowed are 1 to " + std::to_string(kMostTokens));
  }
  if (options.trials < 1) return make_error(ErrorCode::kInvalidArgument, "trials is 0; at least 1 is needed");
  return check_parameters(options);
}

Expected<std::vector<std::string>> tune_starts(const AttentionProblem& problem) {
  Expected<KernelChoice> choice = choose_kernel(problem);
  if (!choice) return tl::unexpected(std::move(choice.error()));
  Expected<schedules::Placement> chosen = schedules::parse_placement(choice->spec.placement);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  std::vector<std::string> starts{choice->spec.placement};
  for (const schedules::Row& row : schedules::kernel_table()) {
    if (!row.mismatch(choice->spec).empty()) continue;
    Expected<schedules::Placement> placement = schedules::parse_placement(row.placement);
    if (!placement) return tl::unexpected(std::move(placement.error()));
    if (placement->queries != chosen->queries) starts.emplace_back(row.placement);
  }
  return starts;
}

Expected<TuneResult> tune(const AttentionProblem& problem, const TuneOptions& options) {
  if (Status status = check_tune_options(options); !status) return tl::unexpected(std::move(status.error()));
  Expected<KernelChoice> choice = choose_kernel(problem);
  if (!choice) return tl::unexpected(std::move(choice.error()));
  Expected<std::vector<schedules::Placement>> starts = starts_of(problem, options);
  if (!starts) return tl::unexpected(std::move(starts.error()));
  Expected<const JitService*> service = jit_service();
  if (!service) return tl::unexpected(std::move(service.error()));
  Expected<std::vector<schedules::KernelSpec>> serves = served(choice->spec, options.row);
  if (!serves) return tl::unexpected(std::move(serves.error()));
  Expected<Bench> bench =
      Bench::create(problem, options, std::string(reference_row(choice->spec)->name), **service, *serves);
  if (!bench) return tl::unexpected(std::move(bench.error()));

  std::map<std::string, TuneTrial> known;
  for (const TuneTrial& trial : options.known) known.emplace(trial.placement, trial);
  TuneResult result;
  TuneTrial latest;
  const schedules::SearchCalls calls{
      .try_out = [&](const schedules::Placement& placement) -> Expected<schedules::Trial> {
        const std::string text = unparse(placement);
        if (const auto found = known.find(text); found != known.end()) {
          latest = found->second;
          bench->remember(latest);
        } else {
          Expected<TuneTrial> trial = bench->try_out(text);
          if (!trial) return tl::unexpected(std::move(trial.error()));
          latest = *std::move(trial);
        }
        return as_found(latest);
      },
      .step =
          [&](const schedules::SearchStep& step) {
            if (step.number == 1) result.start = latest;
            if (step.best) result.best = latest;
            result.trials = step.number;
            if (!options.step) return true;
            result.ended = !options.step({.number = step.number,
                                          .change = step.change,
                                          .trial = latest,
                                          .best = step.best,
                                          .known = known.contains(latest.placement)});
            return !result.ended;
          }};
  Expected<schedules::Found> found =
      (*service)->search_placements(*serves, *starts, {.seed = options.seed, .trials = options.trials}, calls);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (known.contains(result.best.placement)) {
    if (Status status = check_known(*bench, result.best); !status) return tl::unexpected(std::move(status.error()));
  }
  return result;
}

}  // namespace zyfa
