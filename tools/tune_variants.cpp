#include "tools/tune_variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/accuracy_study.h"
#include "tools/accuracy_variants.h"
#include "tools/profile_inputs.h"
#include "tools/tune_log.h"
#include "tools/tune_walk.h"

namespace zyfa::tools {
namespace {

constexpr std::string_view kAxes[] = {"p", "blocks", "form", "qk", "near", "sum"};
constexpr std::int64_t kAccuracyTokens = 512;
// Largest relative error of a code, percent: docs/numerics.md, table "codes".
constexpr double kLeanLimit = 8.0, kExactLimit = 5.9;

struct Outcome {
  AccuracyVariant variant;
  AttentionProblem problem;
  std::string left_out;  // why it was not tried, or is refused; empty: it stands
  std::optional<Walk> walk;
  std::optional<AccuracyPair> error;
};

// The form that a problem without a form means (zyfa/problem.h).
ScoreForm form_of(const AttentionProblem& problem) {
  const Fp8Options& o = problem.fp8;
  if (o.form != ScoreForm::kAuto) {
    return o.form;
  }
  const bool folds =
      problem.compute == Compute::kFp8 && o.probability == Probability::kLean && o.scores == ScoreType::kFp8;
  return folds ? ScoreForm::kFolded : ScoreForm::kMultiplyAdd;
}

// The problem with the options of a variant that the axes name.
AttentionProblem with_axes(AttentionProblem problem, const Fp8Options& from, const std::vector<std::string>& axes) {
  const auto named = [&](std::string_view axis) { return std::ranges::find(axes, axis) != axes.end(); };
  Fp8Options& o = problem.fp8;
  if (named("p")) o.probability = from.probability;
  if (named("blocks")) o.scaling = from.scaling;
  if (named("qk")) o.scores = from.scores;
  if (named("near")) o.near_keys = from.near_keys;
  if (named("sum")) o.row_sum = from.row_sum;
  o.form = named("form") ? from.form : form_of(problem);
  return problem;
}

Status check(const VariantsRequest& request) {
  for (const std::string& axis : request.axes) {
    if (std::ranges::find(kAxes, axis) == std::ranges::end(kAxes)) {
      return make_error(ErrorCode::kInvalidArgument,
                        fmt::format("--variants names '{}'; allowed are {}", axis, fmt::join(kAxes, ", ")));
    }
  }
  const AttentionProblem& problem = request.problem;
  if (problem.dtype != DType::kFp8E4M3 && problem.compute != Compute::kFp8) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--variants compares the options of FP8; " + to_string(problem) + " has none");
  }
  return {};
}

// The FP8 variants of accuracy, each with either row sum.
std::vector<Fp8Options> all_options(const Fp8Options& common) {
  std::vector<Fp8Options> all;
  for (const AccuracyVariant& variant : accuracy_variants(common)) {
    for (const RowSum sum : {RowSum::kSparse, RowSum::kDense}) {
      if (variant.kind == AccuracyVariant::Kind::kFp8) {
        all.push_back(variant.options);
        all.back().row_sum = sum;
      }
    }
  }
  return all;
}

std::vector<Outcome> outcomes_of(const VariantsRequest& request) {
  std::vector<Outcome> outcomes;
  for (const Fp8Options& options : all_options(request.problem.fp8)) {
    Outcome outcome;
    outcome.problem = with_axes(request.problem, options, request.axes);
    const auto same = [&](const Outcome& other) { return other.problem == outcome.problem; };
    if (std::ranges::any_of(outcomes, same)) {
      continue;
    }
    outcome.variant = {AccuracyVariant::Kind::kFp8, outcome.problem.fp8};
    if (const Support support = supports(outcome.problem); !support) {
      outcome.left_out = support.reasons.front();
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

Status walk_all(const VariantsRequest& request, std::vector<Outcome>& outcomes) {
  if (!request.logs.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(request.logs, failed);
    if (failed) {
      return make_error(ErrorCode::kIoError, request.logs + ": " + failed.message());
    }
  }
  for (Outcome& outcome : outcomes) {
    if (!outcome.left_out.empty()) {
      continue;
    }
    const std::string name = outcome.variant.name();
    const auto log = std::filesystem::path(request.logs) / (name + ".jsonl");
    Expected<Walk> walked = walk({.problem = outcome.problem,
                                  .tune = request.tune,
                                  .log = request.logs.empty() ? std::string() : log.string(),
                                  .title = name + ": "});
    if (!walked) {
      return tl::unexpected<Error>(walked.error());
    }
    outcome.walk = *std::move(walked);
    if (outcome.walk->result.ended) {
      return make_error(ErrorCode::kInvalidArgument, "interrupted in variant " + name);
    }
  }
  return {};
}

void judge(Outcome& outcome) {
  const double limit = outcome.variant.options.probability == Probability::kLean ? kLeanLimit : kExactLimit;
  if (outcome.error->alone && outcome.error->alone->rms > limit) {
    outcome.left_out =
        fmt::format("refused: P alone errs by {:.1f}%, its codes by {:.1f}% at most", outcome.error->alone->rms, limit);
  }
}

Status measure_all(const VariantsRequest& request, std::vector<Outcome>& outcomes) {
  const Expected<std::shared_ptr<SimDevice>> device = SimDevice::create();
  if (!device) {
    return tl::unexpected<Error>(device.error());
  }
  AttentionProblem unquantised{.head_dim_qk = request.problem.head_dim_qk, .head_dim_v = request.problem.head_dim_v};
  const io::AttentionInputs inputs = gaussian_inputs(unquantised, kAccuracyTokens, kAccuracyTokens);
  const AccuracyStudy study{.inputs = inputs,
                            .mask = request.problem.mask,
                            .softmax_scale = 1 / std::sqrt(static_cast<double>(request.problem.head_dim_qk)),
                            .device = *device,
                            .model = false,
                            .cache = {.path = {}, .mode = CacheMode::kOff},
                            .progress = {}};
  for (Outcome& outcome : outcomes) {
    if (!outcome.walk) {
      continue;
    }
    const Expected<std::vector<AccuracyRow>> rows = run_study(study, {outcome.variant});
    if (!rows) {
      return tl::unexpected<Error>(rows.error());
    }
    outcome.error = rows->front().kernel;
    if (outcome.error) {
      judge(outcome);
    }
  }
  return {};
}

OrderedJson variants_json(const VariantsRequest& request, const std::vector<Outcome>& outcomes) {
  OrderedJson rows = OrderedJson::array();
  for (const Outcome& o : outcomes) {
    OrderedJson row{{"variant", o.variant.name()},
                    {"problem", to_string(o.problem)},
                    {"left_out", o.left_out.empty() ? OrderedJson() : OrderedJson(o.left_out)},
                    {"best", o.walk ? to_json(o.walk->result.best) : OrderedJson()},
                    {"cost", nullptr},
                    {"rms_percent", o.error ? OrderedJson(o.error->given.rms) : OrderedJson()},
                    {"p_alone_rms_percent", nullptr}};
    if (o.walk) {
      row["cost"] = *tune_cost(o.walk->result.best);
    }
    if (o.error && o.error->alone) {
      row["p_alone_rms_percent"] = o.error->alone->rms;
    }
    rows.push_back(std::move(row));
  }
  return {{"problem", to_string(request.problem)}, {"tokens", request.tune.tokens}, {"variants", rows}};
}

void print_variants(const VariantsRequest& request, const std::vector<Outcome>& outcomes) {
  fmt::print("{}, {} tokens; errors against fp64, %, Gaussian values, {} tokens\n", to_string(request.problem),
             request.tune.tokens, kAccuracyTokens);
  fmt::print("{:<56} {:>8} {:>7} {:>8}\n", "variant", "cycles", "output", "P alone");
  const auto figure = [](const AccuracyFigures* figures) {
    return figures == nullptr ? std::string("-") : fmt::format("{:.2f}", figures->rms);
  };
  for (const Outcome& o : outcomes) {
    if (!o.walk) {
      fmt::print("{:<56} not tried: {}\n", o.variant.name(), o.left_out);
      continue;
    }
    fmt::print("{:<56} {:>8.0f} {:>7} {:>8}  {}\n{:<4}{}\n", o.variant.name(), *tune_cost(o.walk->result.best),
               figure(o.error ? &o.error->given : nullptr),
               figure(o.error && o.error->alone ? &*o.error->alone : nullptr), o.left_out, "",
               o.walk->result.best.placement);
  }
  fmt::print("cycles are predicted by the model of docs/performance-model.md, measured on no device\n");
}

}  // namespace

int compare_variants(const VariantsRequest& request) {
  if (const Status sound = check(request); !sound) {
    return report(sound.error(), request.form);
  }
  std::vector<Outcome> outcomes = outcomes_of(request);
  if (std::ranges::none_of(outcomes, [](const Outcome& o) { return o.left_out.empty(); })) {
    return report({ErrorCode::kUnsupported, "no variant has a kernel", {outcomes.front().left_out}}, request.form);
  }
  if (const Status walked = walk_all(request, outcomes); !walked) {
    return report(walked.error(), request.form);
  }
  if (const Status measured = measure_all(request, outcomes); !measured) {
    return report(measured.error(), request.form);
  }
  if (request.form == OutputForm::kJson) {
    print_json(variants_json(request, outcomes));
  } else {
    print_variants(request, outcomes);
  }
  return kSuccess;
}

}  // namespace zyfa::tools
