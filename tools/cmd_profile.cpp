// zyfa-jit profile: what the cycle model predicts for a problem's kernel, or for any job.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "runtime/io/job_run.h"
#include "tools/attention_run.h"
#include "tools/commands.h"
#include "tools/job_file.h"
#include "tools/profile_inputs.h"
#include "tools/profile_pictures.h"
#include "tools/profile_report.h"

namespace zyfa::tools {
namespace {

using Id = std::array<std::uint32_t, 3>;

struct Options {
  OutputForm form = OutputForm::kText;
  std::string job, problem, inputs, placement;
  std::optional<std::int64_t> tokens, key_tokens;
  std::optional<std::uint32_t> heads, key_heads, batch;
  std::optional<std::uint64_t> record;
  std::vector<std::string> workgroups, parameters;
  std::optional<double> clock;
  std::string attention;
  bool sensitivity = false, corners = false, no_error_bars = false, list_parameters = false;
  PictureRequest pictures;
  DeviceOptions device;
  CacheOptions cache;
};

// Head counts of the launch that the chip step times.
struct Heads {
  std::uint32_t query = 64, key = 8, batch = 1;
};

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), {}}; }

Status check_use(const Options& o) {
  const int sources = (o.job.empty() ? 0 : 1) + (o.problem.empty() ? 0 : 1) + (o.list_parameters ? 1 : 0);
  if (sources != 1) return tl::unexpected(refused("give exactly one of JOB, --problem and --parameters"));
  const bool model = !o.parameters.empty() || o.sensitivity || o.corners || o.no_error_bars || o.record ||
                     !o.workgroups.empty() || o.clock || o.pictures.any();
  if (o.list_parameters && model)
    return tl::unexpected(refused("--parameters lists them and predicts nothing; of the model's options it has none"));
  const bool shape = o.tokens || o.key_tokens || o.heads || o.key_heads || o.batch;
  if (o.problem.empty() && (shape || !o.inputs.empty() || !o.placement.empty())) {
    return tl::unexpected(
        refused("--tokens, --key-tokens, --heads, --key-heads, --batch, --inputs and --placement need "
                "--problem; a job has its own shape"));
  }
  if (!o.inputs.empty() && shape) {
    return tl::unexpected(refused(
        "--inputs has its own shape; --tokens, --key-tokens, --heads, --key-heads and --batch do not go with it"));
  }
  if (o.job.empty() && !o.attention.empty()) {
    return tl::unexpected(refused("--attention says what a job computes; a problem says it itself"));
  }
  if (o.sensitivity && o.no_error_bars) {
    return tl::unexpected(refused("--sensitivity prints what --no-error-bars leaves out: give one of the two"));
  }
  if (!o.problem.empty() && o.inputs.empty() && !o.tokens) {
    return tl::unexpected(refused("--problem needs --tokens N, or --inputs FILE"));
  }
  if (o.record && !o.workgroups.empty()) {
    return tl::unexpected(refused("--record spaces workgroups evenly; --workgroup names them: give one of the two"));
  }
  return check_pictures(o.pictures);
}

std::optional<Id> parse_three(const std::string& text, char separator) {
  Id id{};
  const char *at = text.data(), *const end = text.data() + text.size();
  for (unsigned axis = 0; axis < 3; ++axis) {
    const auto [next, error] = std::from_chars(at, end, id[axis]);
    const bool last = axis == 2;
    if (error != std::errc() || (last ? next != end : next == end || *next != separator)) return std::nullopt;
    at = next + (last ? 0 : 1);
  }
  return id;
}

Expected<std::optional<ProfileAttention>> parse_attention(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<Id> parts = parse_three(text, '/');
  if (!parts) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--attention '" + text + "' is not QK/V/QUERIES: two head dims and the queries of a wave");
  }
  return ProfileAttention{(*parts)[0], (*parts)[1], (*parts)[2]};
}

Expected<SimCapture> capture_of(const Options& options, const Id& grid, std::string kernel) {
  SimCapture capture{.kernel = std::move(kernel), .others = SimCapture::Others::kSkipped};
  for (const std::string& text : options.workgroups) {
    const std::optional<Id> id = parse_three(text, ',');
    if (!id) return tl::unexpected(refused("workgroup '" + text + "' is not X,Y,Z"));
    capture.workgroups.push_back(*id);
  }
  if (capture.workgroups.empty() && options.record != 0) {
    capture.workgroups = spaced_workgroups(grid, options.record.value_or(kRecordedWorkgroups));
  }
  return capture;
}

ProfileOptions profile_options(const Options& options, const SimDevice& device) {
  using Errors = ProfileOptions::Errors;
  using Events = ProfileOptions::Events;
  using Corners = ProfileOptions::Corners;
  return {.parameters = options.parameters,
          .errors = options.no_error_bars ? Errors::kNone : Errors::kFromParameters,
          .events = options.pictures.any() ? Events::kLongest : Events::kNone,
          .corners = options.corners ? Corners::kAll : Corners::kNone,
          .clock_ghz = options.clock,
          .threads = device.options().threads};
}

Status record(SimDevice& device, SimCapture capture) {
  SimOptions simulator = device.options();
  simulator.capture = std::move(capture);
  return device.set_options(simulator);
}

int print(const Options& options, const OrderedJson& what, const std::string& title, const LaunchProfile& profile) {
  const Expected<std::string> chart = make_pictures(profile, options.pictures);
  if (options.form == OutputForm::kJson) {
    if (!chart) return report(chart.error(), options.form);
    OrderedJson result = what;
    result.update(to_json(profile));
    if (!chart->empty()) result["chart"] = *chart;
    print_json(result);
  } else {
    fmt::print("{}\n", title);
    print_text(profile, options.sensitivity ? SensitivityTable::kPrinted : SensitivityTable::kLeftOut);
    // The figures took long and are good without a picture.
    if (!chart) return report(chart.error(), options.form);
    if (!chart->empty()) fmt::print("\n{}", *chart);
  }
  return kSuccess;
}

int profile_job(const Options& options) {
  const Expected<std::optional<ProfileAttention>> attention = parse_attention(options.attention);
  if (!attention) return report(attention.error(), options.form);
  const Expected<PreparedJob> run = prepare_job(options.job);
  if (!run) return report(run.error(), options.form);
  const Expected<std::shared_ptr<SimDevice>> device = open_simulator(options.device);
  if (!device) return report(device.error(), options.form);
  const Expected<SimCapture> capture = capture_of(options, run->job.launch.grid, run->job.kernel);
  if (!capture) return report(capture.error(), options.form);
  if (const Status set = record(**device, *capture); !set) return report(set.error(), options.form);
  if (const auto ran = io::execute_job(run->job, run->object, run->kernel, **device); !ran) {
    return report(ran.error(), options.form);
  }
  ProfileOptions asked = profile_options(options, **device);
  asked.attention = *attention;
  const Expected<LaunchProfile> profile = (*device)->last_profile(asked);
  if (!profile) return report(profile.error(), options.form);
  return print(options, {{"job", options.job}}, "profile of " + options.job, *profile);
}

// The problem's inputs: those of a file, which must be of the problem's type and head dims, or one Gaussian head.
Expected<io::AttentionInputs> inputs_of(const Options& options, const AttentionProblem& problem) {
  if (options.inputs.empty()) {
    return gaussian_inputs(problem, *options.tokens, options.key_tokens.value_or(*options.tokens));
  }
  Expected<io::AttentionInputs> in = io::read_attention_inputs(options.inputs);
  if (!in) return in;
  if (in->dtype != problem.dtype || in->head_dim_qk() != problem.head_dim_qk ||
      in->head_dim_v() != problem.head_dim_v) {
    const AttentionProblem found{.dtype = in->dtype,
                                 .head_dim_qk = static_cast<std::uint32_t>(in->head_dim_qk()),
                                 .head_dim_v = static_cast<std::uint32_t>(in->head_dim_v()),
                                 .mask = problem.mask};
    return make_error(ErrorCode::kInvalidArgument,
                      options.inputs + " holds inputs of " + to_string(found) + "; --problem is " + to_string(problem));
  }
  return in;
}

Expected<Heads> heads_of(const Options& options, const io::AttentionInputs& in) {
  Heads heads;
  if (!options.inputs.empty()) {
    return Heads{static_cast<std::uint32_t>(in.query_heads()), static_cast<std::uint32_t>(in.key_heads()),
                 static_cast<std::uint32_t>(in.batch())};
  }
  heads.query = options.heads.value_or(heads.query);
  heads.key = options.key_heads.value_or(options.heads.value_or(heads.key));
  heads.batch = options.batch.value_or(heads.batch);
  if (heads.query % heads.key != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      fmt::format("{} heads are no multiple of {} key heads", heads.query, heads.key));
  }
  return heads;
}

// Q.K and P.V of the pairs that the mask lets through, counted as is usual: half of them for causal over equal lengths.
double useful_flops(const AttentionProblem& problem, const io::AttentionInputs& in, const Heads& heads) {
  const auto queries = static_cast<double>(in.query_length()), keys = static_cast<double>(in.key_length());
  double pairs = queries * keys;
  if (problem.mask == Mask::kCausal) pairs = queries <= keys ? queries * (keys - queries / 2) : keys * keys / 2;
  return 2 * pairs * (problem.head_dim_qk + problem.head_dim_v) * heads.query * heads.batch;
}

// What the attention kernel reads and writes, each byte once.
double unique_bytes(const AttentionProblem& problem, const io::AttentionInputs& in, const Heads& heads) {
  const double input = problem.dtype == DType::kFp8E4M3 || problem.compute == Compute::kFp8 ? 1 : 2;
  const auto queries = static_cast<double>(in.query_length()), keys = static_cast<double>(in.key_length());
  const double dims = problem.head_dim_qk + problem.head_dim_v;
  const double lse = problem.lse == Lse::kWritten ? sizeof(float) : 0;
  return heads.batch * (heads.query * queries * (problem.head_dim_qk * input + problem.head_dim_v * 2.0 + lse) +
                        heads.key * keys * dims * input);
}

int profile_problem(const Options& options) {
  const auto fail = [&](const Error& error) { return report(error, options.form); };
  const Expected<AttentionProblem> problem = parse_problem(options.problem);
  if (!problem) return fail(problem.error());
  const Expected<std::string> placement = placement_text(options.placement);
  if (!placement) return fail(placement.error());
  if (const Support support = supports(*problem); !support) {
    return fail({ErrorCode::kUnsupported, "no kernel for the problem " + to_string(*problem), support.reasons});
  }
  const Expected<io::AttentionInputs> in = inputs_of(options, *problem);
  if (!in) return fail(in.error());
  const Expected<Heads> heads = heads_of(options, *in);
  if (!heads) return fail(heads.error());
  const Expected<std::shared_ptr<SimDevice>> device = open_simulator(options.device);
  if (!device) return fail(device.error());
  const auto attention =
      Attention::compile(*problem, {.device = *device, .placement = *placement, .cache = options.cache});
  if (!attention) return fail(attention.error());
  const AttentionInfo info = (*attention)->info();

  const auto tiles = static_cast<std::uint32_t>((in->query_length() + info.query_tile - 1) / info.query_tile);
  // Workgroups differ by their queries alone: those of one head stand for all.
  const Expected<SimCapture> capture = capture_of(options, {tiles, 1, 1}, info.symbol);
  if (!capture) return fail(capture.error());
  if (const Status set = record(**device, *capture); !set) return fail(set.error());
  const auto run = AttentionRun::create(*device, *in, problem->lse);
  if (!run) return fail(run.error());
  const double scale = in->softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(in->head_dim_qk())));
  if (const auto ran = (*run)->launch(**attention, static_cast<float>(scale)); !ran) return fail(ran.error());

  ProfileOptions asked = profile_options(options, **device);
  if (options.inputs.empty()) asked.grid = {0, heads->query, heads->batch};
  asked.attention = ProfileAttention{problem->head_dim_qk, problem->head_dim_v, info.query_tile / info.waves};
  asked.useful_flops = useful_flops(*problem, *in, *heads);
  asked.unique_bytes = unique_bytes(*problem, *in, *heads);
  const Expected<LaunchProfile> profile = (*device)->last_profile(asked);
  if (!profile) return fail(profile.error());
  const std::string inputs = options.inputs.empty() ? "Gaussian" : options.inputs;
  const std::string title = fmt::format(
      "profile of {}: {} x {} tokens, {} heads ({} key heads), batch {}, inputs {}\nschedule {}", to_string(*problem),
      in->query_length(), in->key_length(), heads->query, heads->key, heads->batch, inputs, info.schedule);
  const OrderedJson what{{"problem", to_string(*problem)},
                         {"tokens", in->query_length()},
                         {"key_tokens", in->key_length()},
                         {"heads", heads->query},
                         {"key_heads", heads->key},
                         {"batch", heads->batch},
                         {"inputs", inputs},
                         {"key", info.key},
                         {"row", info.schedule_row},
                         {"schedule", info.schedule}};
  return print(options, what, title, *profile);
}

int list_parameters(const Options& options) {
  const Expected<std::vector<ProfileParameter>> parameters = profile_parameters();
  if (!parameters) return report(parameters.error(), options.form);
  if (options.form == OutputForm::kJson) {
    print_json(to_json(*parameters));
  } else {
    print_text(*parameters);
  }
  return kSuccess;
}

int profile(const Options& options) {
  if (const Status good = check_use(options); !good) return report(good.error(), options.form);
  if (options.list_parameters) return list_parameters(options);
  // A simulation may take minutes: what the model would refuse after it is told before.
  if (const Status good = check_profile_parameters(options.parameters); !good) {
    return report(good.error(), options.form);
  }
  return options.job.empty() ? profile_problem(options) : profile_job(options);
}

void add_problem_options(CLI::App& command, Options& options) {
  constexpr const char* kGroup = "Problem";
  // B and H are limits of Attention::launch(); the tokens are what a simulation of one head still takes minutes for.
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;
  command.add_option("--problem", options.problem, kProblemHelp)->group(kGroup);
  command.add_option("--tokens", options.tokens, "Queries, and keys unless --key-tokens says otherwise")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->group(kGroup);
  command.add_option("--key-tokens", options.key_tokens, "Keys")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->group(kGroup);
  command
      .add_option("--heads", options.heads, "Query heads of the launch; one is simulated. Default 64, with 8 key heads")
      ->check(CLI::Range(1U, 32768U))
      ->group(kGroup);
  command.add_option("--key-heads", options.key_heads, "Key heads. Default: as --heads when that is given")
      ->check(CLI::Range(1U, 32768U))
      ->group(kGroup);
  command.add_option("--batch", options.batch, "Batch. Default 1")->check(CLI::Range(1U, 65535U))->group(kGroup);
  command
      .add_option("--inputs", options.inputs,
                  "Safetensors file with q, k and v instead of Gaussian values; head 0 is simulated")
      ->group(kGroup);
  add_placement_option(command, options.placement);
}

}  // namespace

void add_profile(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "profile",
      "Predicts the speed of a problem's kernel, or of any job, by the cycle model. Recorded workgroups are replayed "
      "on a "
      "model of one compute unit; from their cycles follow those of the chip, and with an assumed clock time and "
      "TFLOP/s.",
      "  zyfa-jit profile --problem fp8e4m3,d=128,causal --tokens 8192\n"
      "  zyfa-jit profile --problem bf16,d=128 --tokens 4096 --placement naive --set hold_other_wave=0 --sensitivity\n"
      "  zyfa-jit profile job.json --workgroup 0,0,0 --clock 1.8 --json\n"
      "  zyfa-jit profile --parameters",
      options->form);
  command->add_option("JOB", options->job, "Job file, as of simulate; workgroups that are not recorded do not run");
  add_problem_options(*command, *options);
  constexpr const char* kGroup = "Model";
  command
      ->add_option("--set", options->parameters,
                   "name=value: a parameter of the model instead of its default. May be repeated")
      ->allow_extra_args(false)
      ->group(kGroup);
  command->add_flag("--parameters", options->list_parameters, "List the parameters with their ranges and sources")
      ->group(kGroup);
  command->add_flag("--sensitivity", options->sensitivity, "Print how far each parameter's range moves the cycles")
      ->group(kGroup);
  command
      ->add_flag("--no-error-bars", options->no_error_bars,
                 "Leave out the ranges, for which the model runs twice more for each parameter")
      ->group(kGroup);
  command
      ->add_flag("--corners", options->corners,
                 "Print the loop's figures at the corners of the parameters that decide between schedules: worst, "
                 "median and best of 768 replays (JSON: all)")
      ->group(kGroup);
  command
      ->add_option("--attention", options->attention,
                   "QK/V/QUERIES of a job that is attention: head dims and queries of a wave, for its useful matrix "
                   "work; 128/128/32, say")
      ->group(kGroup);
  command
      ->add_option("--record", options->record,
                   "Workgroups to record, evenly spaced in launch order; others are interpolated. 0: all. Default 5")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  command->add_option("--workgroup", options->workgroups, "Workgroup X,Y,Z to record. May be repeated")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      ->add_option("--clock", options->clock,
                   "Clock in GHz, 0.1 to 2.4. Default: by the matrix pipe's busy share, as power limits it")
      ->group(kGroup);
  add_picture_options(*command, options->pictures);
  add_simulator_options(*command, options->device);
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return profile(*options); }; });
}

}  // namespace zyfa::tools
