// zyfa-jit accuracy: the error of every FP8 variant on given inputs, by our kernels and by the host model of their
// rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "runtime/io/file.h"
#include "tools/accuracy_study.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/synthetic_inputs.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string inputs, synthetic, mask = "metadata", by = "both", with;
  std::vector<std::string> variants;
  DeviceOptions device;
  CacheOptions cache;
};

struct Report {
  std::string source;  // the file or the synthetic text
  io::AttentionInputs inputs;
  Mask mask = Mask::kFull;
  std::string mask_origin, scale_origin;  // "file", "option", "default"
  double softmax_scale = 0;
  std::string device;  // empty: the host model alone
  std::vector<AccuracyRow> rows;
};

Expected<io::AttentionInputs> read_inputs(const Options& options) {
  if (options.inputs.empty() == options.synthetic.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "give exactly one of --inputs and --synthetic");
  }
  if (!options.synthetic.empty()) {
    return synthetic_inputs(options.synthetic);
  }
  Expected<io::AttentionInputs> inputs = io::read_attention_inputs(options.inputs);
  if (inputs && inputs->dtype != DType::kBf16) {
    return make_error(ErrorCode::kUnsupported,
                      options.inputs +
                          ": accuracy quantises its inputs and compares with what they were, so "
                          "q, k and v must be BF16");
  }
  return inputs;
}

// Options of the quantiser for all variants, in the words of a problem's text form.
Expected<Fp8Options> common_options(const std::string& with) {
  Fp8Options common;
  if (with.empty()) {
    return common;
  }
  const Expected<AttentionProblem> problem = parse_problem("bf16,d=128,compute=fp8," + with);
  if (!problem) {
    return tl::unexpected<Error>(problem.error());
  }
  common.rotation = problem->fp8.rotation;
  common.smoothing = problem->fp8.smoothing;
  common.scales = problem->fp8.scales;
  common.byte_rounding = problem->fp8.byte_rounding;
  common.row_sum = problem->fp8.row_sum;
  const AttentionProblem allowed{.compute = Compute::kFp8, .fp8 = common};
  if (*problem != allowed) {
    return make_error(
        ErrorCode::kInvalidArgument,
        fmt::format("--with {} sets what tells variants apart or what the inputs fix; allowed are rotate, "
                    "no-rotate, smooth-k, scales=head, scales=tensor, u8=nearest, u8=truncate, sum=auto, sum=sparse "
                    "and sum=dense",
                    io::quote(with)));
  }
  return common;
}

void choose_mask_and_scale(const Options& options, Report& report) {
  const io::AttentionInputs& in = report.inputs;
  const std::string from = options.synthetic.empty() ? "file" : "synthetic";
  if (options.mask == "metadata") {
    report.mask = in.mask.value_or(Mask::kFull);
    report.mask_origin = in.mask ? from : "default";
  } else {
    report.mask = options.mask == "causal" ? Mask::kCausal : Mask::kFull;
    report.mask_origin = "option";
  }
  report.softmax_scale = in.softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(in.head_dim_qk())));
  report.scale_origin = in.softmax_scale ? from : "default";
}

OrderedJson to_json(const AccuracyFigures& figures) {
  OrderedJson json{{"rms_percent", figures.rms}, {"rms_percent_by_head", figures.rms_by_head}, {"lse", nullptr}};
  if (figures.lse) {
    json["lse"] = {{"mean", figures.lse->mean}, {"mean_abs", figures.lse->mean_abs}, {"max_abs", figures.lse->max_abs}};
  }
  return json;
}

OrderedJson to_json(const std::optional<AccuracyPair>& pair) {
  if (!pair) {
    return nullptr;
  }
  OrderedJson json = to_json(pair->given);
  json["p_alone"] = pair->alone ? to_json(*pair->alone) : OrderedJson();
  return json;
}

OrderedJson to_json(const AccuracyRow& row) {
  OrderedJson json{{"variant", row.variant.name()},
                   {"problem", row.problem.empty() ? OrderedJson() : OrderedJson(row.problem)},
                   {"kernel", to_json(row.kernel)},
                   {"model", to_json(row.model)},
                   {"tiles", nullptr},
                   {"no_kernel", row.skipped.empty() ? OrderedJson() : OrderedJson(row.skipped)}};
  if (row.tiles) {
    json["tiles"] = {{"near", row.tiles->near}, {"far", row.tiles->far}};
  }
  return json;
}

OrderedJson to_json(const Report& r) {
  OrderedJson variants = OrderedJson::array();
  for (const AccuracyRow& row : r.rows) {
    variants.push_back(to_json(row));
  }
  return {{"inputs", r.source},
          {"shape", {{"q", r.inputs.q_shape}, {"k", r.inputs.k_shape}, {"v", r.inputs.v_shape}}},
          {"mask", r.mask == Mask::kCausal ? "causal" : "full"},
          {"mask_from", r.mask_origin},
          {"softmax_scale", r.softmax_scale},
          {"device", r.device.empty() ? OrderedJson() : OrderedJson(r.device)},
          {"variants", variants}};
}

std::string percent(const std::optional<AccuracyPair>& pair, bool alone) {
  if (!pair || (alone && !pair->alone)) {
    return "-";
  }
  return fmt::format("{:.3f}", alone ? pair->alone->rms : pair->given.rms);
}

std::string tile_share(const std::optional<TilePaths>& tiles) {
  if (!tiles || tiles->near + tiles->far == 0) {
    return "-";
  }
  return fmt::format("{:.1f}%",
                     100.0 * static_cast<double>(tiles->near) / static_cast<double>(tiles->near + tiles->far));
}

void print_row(const AccuracyRow& row) {
  const AccuracyPair& shown = row.kernel ? *row.kernel : *row.model;
  const bool lse = shown.alone && shown.alone->lse;
  std::vector<std::string> heads;
  for (const double rms : shown.given.rms_by_head) {
    heads.push_back(fmt::format("{:.3f}", rms));
  }
  fmt::print("{:<46} {:>7} {:>7}  {:>7} {:>7}  {:>8} {:>7}  {:>6}  {}\n", row.variant.name(),
             percent(row.kernel, false), percent(row.model, false), percent(row.kernel, true), percent(row.model, true),
             lse ? fmt::format("{:+.4f}", shown.alone->lse->mean) : "-",
             lse ? fmt::format("{:.4f}", shown.alone->lse->max_abs) : "-", tile_share(row.tiles),
             fmt::join(heads, " "));
}

// Each reason once, with the variants it is for.
void print_without_kernel(const std::vector<AccuracyRow>& rows) {
  std::vector<std::string> told;
  for (const AccuracyRow& row : rows) {
    if (row.skipped.empty() || std::ranges::find(told, row.skipped) != told.end()) {
      continue;
    }
    told.push_back(row.skipped);
    fmt::print("\nno kernel: {}\n", row.skipped);
    for (const AccuracyRow& other : rows) {
      if (other.skipped == row.skipped) {
        fmt::print("  {}\n", other.variant.name());
      }
    }
  }
}

void print_text(const Report& r) {
  const auto line = [](std::string_view name, const std::string& text) { fmt::print("{:<12} {}\n", name, text); };
  line("inputs", r.source);
  line("shape", fmt::format("q {}, k {}, v {}", io::shape_text(r.inputs.q_shape), io::shape_text(r.inputs.k_shape),
                            io::shape_text(r.inputs.v_shape)));
  line("mask, scale", fmt::format("{} ({}), {:.6g} ({})", r.mask == Mask::kCausal ? "causal" : "full", r.mask_origin,
                                  r.softmax_scale, r.scale_origin));
  line("device", r.device.empty() ? "none: the host model of the rules alone" : r.device);
  line("rms", "% of fp64 attention on the inputs as given, mean over heads; by head: the kernel's, else the model's");
  line("P alone", "against fp64 attention on the same 8-bit inputs: probabilities, and a kernel's output, are rounded");
  fmt::print("\n{:<46} {:>15}  {:>15}  {:>16}  {:>6}\n", "", "rms %", "P alone %", "LSE, P alone", "near");
  fmt::print("{:<46} {:>7} {:>7}  {:>7} {:>7}  {:>8} {:>7}  {:>6}  {}\n", "variant", "kernel", "model", "kernel",
             "model", "mean", "max", "tiles", "by head");
  for (const AccuracyRow& row : r.rows) {
    if (row.kernel || row.model) {
      print_row(row);
    }
  }
  print_without_kernel(r.rows);
}

Status study(const Options& options, Report& report) {
  const Expected<Fp8Options> common = common_options(options.with);
  if (!common) {
    return tl::unexpected<Error>(common.error());
  }
  const Expected<std::vector<AccuracyVariant>> variants = filter_variants(accuracy_variants(*common), options.variants);
  if (!variants) {
    return tl::unexpected<Error>(variants.error());
  }
  Expected<io::AttentionInputs> inputs = read_inputs(options);
  if (!inputs) {
    return tl::unexpected<Error>(inputs.error());
  }
  report.source = options.synthetic.empty() ? options.inputs : "synthetic " + options.synthetic;
  report.inputs = *std::move(inputs);
  choose_mask_and_scale(options, report);
  AccuracyStudy study{.inputs = report.inputs,
                      .mask = report.mask,
                      .softmax_scale = report.softmax_scale,
                      .device = nullptr,
                      .model = options.by != "kernels",
                      .cache = options.cache,
                      .progress = step_progress()};
  if (options.by != "model") {
    const Expected<std::shared_ptr<Device>> device = open_device(options.device);
    if (!device) {
      return tl::unexpected<Error>(device.error());
    }
    study.device = *device;
    report.device = (*device)->name();
  }
  Expected<std::vector<AccuracyRow>> rows = run_study(study, *variants);
  if (study.progress) {
    study.progress("");
  }
  if (!rows) {
    return tl::unexpected<Error>(rows.error());
  }
  report.rows = *std::move(rows);
  return flush_cache(options.cache);
}

int run(const Options& options) {
  Report result;
  if (const Status status = study(options, result); !status) {
    return report(status.error(), options.form);
  }
  if (options.form == OutputForm::kJson) {
    print_json(to_json(result));
  } else {
    print_text(result);
  }
  return kSuccess;
}

}  // namespace

void add_accuracy(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "accuracy",
      "Compares the error of every FP8 variant on given inputs with fp64 attention. Each variant is run by our kernels "
      "and computed by a model of its rule on the host; peer is the rule of peer kernels, P in [0, 1] and the sum of "
      "what was not rounded.",
      "  zyfa-jit accuracy --inputs tests/data/gqa_layer2_512.safetensors\n"
      "  zyfa-jit accuracy --inputs in.safetensors --variants p=lean,near=fp8 --variants peer --json\n"
      "  zyfa-jit accuracy --synthetic sink:20:8192 --by model\n"
      "  zyfa-jit accuracy --inputs in.safetensors --with no-rotate,scales=tensor\n"
      "The file holds q, k and v in BF16, as for run. docs/numerics.md explains the rules.",
      options->form);
  command->add_option("--inputs", options->inputs, "Safetensors file with q, k and v in BF16");
  command->add_option("--synthetic", options->synthetic, kSyntheticHelp);
  command
      ->add_option("--variants", options->variants,
                   "Only variants that have all these comma-separated words: bf16, peer, p=lean, p=exact, blocks, "
                   "unscaled, form=folded, form=fma, qk=fp8, qk=int8, near=fp8, near=bf16. May be repeated")
      ->allow_extra_args(false);
  command->add_option("--with", options->with,
                      "Further options of all variants, comma-separated: no-rotate, smooth-k (no LSE), scales=tensor, "
                      "u8=truncate, sum=sparse, sum=dense");
  command
      ->add_option("--by", options->by, "Figures of our kernels, of the host model (which needs no device), or of both")
      ->check(CLI::IsMember({"both", "kernels", "model"}))
      ->capture_default_str();
  command->add_option("--mask", options->mask, "metadata: as the file says, full when it says nothing")
      ->check(CLI::IsMember({"metadata", "causal", "full"}))
      ->capture_default_str();
  add_device_options(*command, options->device);
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace zyfa::tools
