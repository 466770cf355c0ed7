// zyfa-jit run: real inputs through the whole path, compared with fp64 attention.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <optional>

#include "tests/reference/compare.h"
#include "tests/reference/eight_bit.h"
#include "tools/attention_run.h"
#include "tools/commands.h"
#include "tools/fp8_words.h"
#include "tools/run_report.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string inputs, output, mask = "metadata", placement;
  bool lse = true;
  unsigned repeat = 1;
  std::optional<double> max_rms, max_lse;  // percent, absolute; unset: default_limits()
  Fp8Words fp8;
  DeviceOptions device;
  CacheOptions cache;
};

struct Limits {
  double rms_percent, lse;
};

// Against fp64 attention on the same inputs. BF16: P and O are rounded to bf16, which gives about 0.17% over many rows,
// and up to 0.4% where a few rows leave nothing to average. FP8 inputs: what the rounding of P adds, about 0.5% on
// real activations and 3% where the values have random signs, so that they cancel and its errors do not. FP8 from BF16
// inputs: what the rounding of q, k and v adds (docs/numerics.md); it moves scores of size 20 by up to 0.8, and the LSE
// of a row with one large score as much.
Limits default_limits(const AttentionProblem& problem, const io::AttentionInputs& in) {
  constexpr std::int64_t kManyRows = 256;
  const bool many = in.batch() * in.query_length() * in.query_heads() >= kManyRows;
  if (problem.compute == Compute::kFp8) {
    return {6.0, 1.0};
  }
  if (problem.dtype == DType::kFp8E4M3) {
    return {4.0, 0.1};
  }
  return {many ? 0.25 : 0.45, 1e-3};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Fills the problem, the scale and where they come from.
Status choose_problem(const Options& options, RunReport& report) {
  const io::AttentionInputs& in = report.inputs;
  AttentionProblem inputs{.dtype = in.dtype,
                          .head_dim_qk = static_cast<std::uint32_t>(in.head_dim_qk()),
                          .head_dim_v = static_cast<std::uint32_t>(in.head_dim_v()),
                          .lse = options.lse ? Lse::kWritten : Lse::kNone};
  if (options.mask == "metadata") {
    inputs.mask = in.mask.value_or(Mask::kFull);
    report.mask_origin = in.mask ? "file" : "default";
  } else {
    inputs.mask = options.mask == "causal" ? Mask::kCausal : Mask::kFull;
    report.mask_origin = "option";
  }
  report.softmax_scale = in.softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(in.head_dim_qk())));
  report.scale_origin = in.softmax_scale ? "file" : "default";
  std::string text = to_string(inputs);
  for (const std::string& word : options.fp8.list()) {
    text += "," + word;
  }
  const Expected<AttentionProblem> problem = parse_problem(text);
  if (!problem) {
    return tl::unexpected<Error>(problem.error());
  }
  report.problem = *problem;
  return {};
}

std::vector<std::uint16_t> to_bf16(const std::vector<std::byte>& bytes) {
  std::vector<std::uint16_t> result(bytes.size() / sizeof(std::uint16_t));
  if (!result.empty()) {
    std::memcpy(result.data(), bytes.data(), bytes.size());
  }
  return result;
}

// E4M3 codes times their descales; `heads` of a key head share one.
std::vector<double> dequantised(const std::vector<std::byte>& codes, const io::Descale& descale, std::int64_t batch,
                                std::int64_t heads, std::int64_t key_heads, std::int64_t dim) {
  std::vector<double> result(codes.size());
  const auto tokens = batch == 0 ? 0 : static_cast<std::int64_t>(codes.size()) / (batch * heads * dim);
  std::size_t at = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t row = 0; row < tokens * heads; ++row) {
      const double scale = descale.at(b, row % heads / (heads / key_heads));
      for (std::int64_t d = 0; d < dim; ++d, ++at) {
        result[at] = scale * reference::e4m3_to_double(std::to_integer<std::uint8_t>(codes[at]));
      }
    }
  }
  return result;
}

Expected<reference::AttentionResult> reference_result(const RunReport& report) {
  const io::AttentionInputs& in = report.inputs;
  const std::int64_t batch = in.batch(), heads = in.query_heads(), key_heads = in.key_heads();
  const auto mask = report.problem.mask == Mask::kCausal ? reference::Mask::kCausal : reference::Mask::kFull;
  // The kernel is given the scale as a float; so is the reference.
  const auto scale = static_cast<double>(static_cast<float>(report.softmax_scale));
  if (in.dtype == DType::kFp8E4M3) {
    const auto q = dequantised(in.q, in.q_descale, batch, heads, key_heads, in.head_dim_qk());
    const auto k = dequantised(in.k, in.k_descale, batch, key_heads, key_heads, in.head_dim_qk());
    const auto v = dequantised(in.v, in.v_descale, batch, key_heads, key_heads, in.head_dim_v());
    return reference::attention(reference::DoubleCase{
        reference::dense_double_view(q.data(), batch, in.query_length(), heads, in.head_dim_qk()),
        reference::dense_double_view(k.data(), batch, in.key_length(), key_heads, in.head_dim_qk()),
        reference::dense_double_view(v.data(), batch, in.key_length(), key_heads, in.head_dim_v()), mask, scale});
  }
  const auto q = to_bf16(in.q), k = to_bf16(in.k), v = to_bf16(in.v);
  return reference::attention(reference::AttentionCase{
      reference::dense_view(q.data(), batch, in.query_length(), heads, in.head_dim_qk()),
      reference::dense_view(k.data(), batch, in.key_length(), key_heads, in.head_dim_qk()),
      reference::dense_view(v.data(), batch, in.key_length(), key_heads, in.head_dim_v()), mask, scale});
}

Status compare_with_reference(const Options& options, const AttentionOutputs& outputs, RunReport& report) {
  const io::AttentionInputs& in = report.inputs;
  const auto start = std::chrono::steady_clock::now();
  const Expected<reference::AttentionResult> expected = reference_result(report);
  if (!expected) {
    return tl::unexpected<Error>(expected.error());
  }
  report.reference_seconds = seconds_since(start);
  const Expected<reference::ErrorFigures> figures = reference::compare(
      *expected,
      reference::dense_view(outputs.o.data(), in.batch(), in.query_length(), in.query_heads(), in.head_dim_v()),
      outputs.lse);
  if (!figures) {
    return tl::unexpected<Error>(figures.error());
  }
  report.figures = *figures;
  const Limits limits = default_limits(report.problem, in);
  report.max_rms = options.max_rms.value_or(limits.rms_percent);
  report.max_lse = options.max_lse.value_or(limits.lse);
  report.within_tolerance = figures->relative_rms_percent <= report.max_rms && figures->lse_max_abs <= report.max_lse &&
                            figures->mismatched_nan == 0 && figures->nonzero_empty == 0;
  return {};
}

Status write_outputs(const std::string& path, const AttentionOutputs& outputs, const RunReport& report) {
  const io::AttentionInputs& in = report.inputs;
  std::vector<std::int64_t> o_shape = in.q_shape;
  o_shape.back() = in.head_dim_v();
  std::map<std::string, io::Tensor> tensors{
      {"o", {io::ElementType::kBf16, o_shape, std::as_bytes(std::span(outputs.o))}}};
  if (report.problem.lse == Lse::kWritten) {
    std::vector<std::int64_t> shape{in.query_heads(), in.query_length()};
    if (in.q_shape.size() == 4) {
      shape.insert(shape.begin(), in.batch());
    }
    tensors["lse"] = {io::ElementType::kF32, shape, std::as_bytes(std::span(outputs.lse))};
  }
  return io::write_safetensors(path, tensors,
                               {{"problem", to_string(report.problem)},
                                {"key", report.info.key},
                                {"schedule", report.info.schedule},
                                {"softmax_scale", fmt::format("{}", report.softmax_scale)},
                                {"device", report.device}});
}

// The folded form takes 8 log2(e) * softmax_scale * q_descale * k_descale as the nearest power of two, which our
// quantiser sees to. A file's own descales need not fit, and scores would come out wrong.
Status check_folded_scales(const RunReport& report) {
  constexpr double kFloatRounding = 1e-6;  // of three products
  const io::AttentionInputs& in = report.inputs;
  if (report.problem.dtype != DType::kFp8E4M3 || report.problem.fp8.form != ScoreForm::kFolded) {
    return {};
  }
  for (std::int64_t batch = 0; batch < in.batch(); ++batch) {
    for (std::int64_t head = 0; head < in.key_heads(); ++head) {
      const double product = 8 * std::numbers::log2e * report.softmax_scale *
                             static_cast<double>(in.q_descale.at(batch, head)) *
                             static_cast<double>(in.k_descale.at(batch, head));
      const double binades = std::log2(std::abs(product));
      if (std::isfinite(binades) && std::abs(std::exp2(binades - std::round(binades)) - 1) > kFloatRounding) {
        return make_error(
            ErrorCode::kInvalidArgument,
            fmt::format("form=folded needs 8 log2(e) * softmax_scale * q_descale * k_descale to be a power of two; for "
                        "batch {} key head {} it is {:.9g}. Use form=fma",
                        batch, head, product));
      }
    }
  }
  return {};
}

// Compiles, launches as often as asked, compares, writes.
Status run_all(const Options& options, RunReport& report) {
  const Expected<std::string> placement = placement_text(options.placement);
  if (!placement) {
    return tl::unexpected<Error>(placement.error());
  }
  if (const Support support = supports(report.problem); !support) {
    return make_error(ErrorCode::kUnsupported, "no kernel for the problem " + to_string(report.problem),
                      support.reasons);
  }
  if (Status status = check_folded_scales(report); !status) {
    return status;
  }
  const Expected<std::shared_ptr<Device>> device = open_device(options.device);
  if (!device) {
    return tl::unexpected<Error>(device.error());
  }
  report.device = (*device)->name();
  const auto simulator = std::dynamic_pointer_cast<SimDevice>(*device);
  report.simulated = simulator != nullptr;
  if (simulator && (report.problem.dtype == DType::kFp8E4M3 || report.problem.compute == Compute::kFp8)) {
    SimOptions counting = simulator->options();
    counting.counts = SimCounts::kByInstruction;  // for the share of tiles on each path
    if (Status set = simulator->set_options(counting); !set) {
      return set;
    }
  }
  const auto attention =
      Attention::compile(report.problem, {.device = *device, .placement = *placement, .cache = options.cache});
  if (!attention) {
    return tl::unexpected<Error>(attention.error());
  }
  report.info = (*attention)->info();
  const auto run = AttentionRun::create(*device, report.inputs, report.problem.lse);
  if (!run) {
    return tl::unexpected<Error>(run.error());
  }
  AttentionOutputs first;
  const auto start = std::chrono::steady_clock::now();
  for (; report.launches < options.repeat; ++report.launches) {
    Expected<AttentionOutputs> outputs = (*run)->launch(**attention, static_cast<float>(report.softmax_scale));
    if (!outputs) {
      return tl::unexpected<Error>(outputs.error());
    }
    if (report.launches == 0) {
      first = *std::move(outputs);
    } else {
      // Bytes, not values: NaN must equal itself and -0 differ from 0.
      const auto same = [](const auto& a, const auto& b) {
        return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
      };
      report.different += same(first.o, outputs->o) && same(first.lse, outputs->lse) ? 0 : 1;
    }
  }
  report.launch_seconds = seconds_since(start) / report.launches;
  report.workspace_bytes = (*run)->workspace_bytes();
  if (simulator) {
    report.paths = last_tile_paths(*simulator);
  }
  // The kernel was published beside all this; waiting tells how long that took.
  if (Status status = flush_cache(options.cache); !status) {
    return status;
  }
  report.info.times.publish = (*attention)->info().times.publish;
  if (const auto statistics = cache_statistics(options.cache)) {
    report.rejected = statistics->rejected;
  }
  if (!options.output.empty()) {
    if (Status status = write_outputs(options.output, first, report); !status) {
      return status;
    }
  }
  return compare_with_reference(options, first, report);
}

int run(const Options& options) {
  Expected<io::AttentionInputs> inputs = io::read_attention_inputs(options.inputs);
  if (!inputs) {
    return report(inputs.error(), options.form);
  }
  RunReport result;
  result.inputs_file = options.inputs;
  result.output_file = options.output;
  result.inputs = *std::move(inputs);
  result.strict = options.device.strict;
  Status status = choose_problem(options, result);
  if (status) {
    status = run_all(options, result);
  }
  if (!status) {
    return report(status.error(), options.form);
  }
  if (options.form == OutputForm::kJson) {
    print_json(to_json(result));
  } else {
    print_text(result);
  }
  return result.within_tolerance && result.different == 0 ? kSuccess : kWrongResult;
}

}  // namespace

void add_run(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "run",
      "Compiles the kernel for the tensors of a file, runs it, and compares the result with fp64 attention.",
      "  zyfa-jit run --inputs tests/data/gqa_layer2_512.safetensors\n"
      "  zyfa-jit run --inputs in.safetensors --output out.safetensors --repeat 3 --strict\n"
      "  zyfa-jit run --inputs in.safetensors --mask full --placement naive --json\n"
      "  zyfa-jit run --inputs in.safetensors --compute fp8 --mixed\n"
      "The file holds q, k and v, [tokens, heads, dim] or [batch, tokens, heads, dim], BF16 or F8_E4M3; metadata "
      "\"mask\"\n"
      "(causal, full) and \"softmax_scale\" are used when present, and for F8_E4M3 the F32 tensors q_descale, "
      "k_descale "
      "and\n"
      "v_descale, [1], [batch, key heads] or [key heads]. The output file gets o (BF16) and lse. FP8 inputs are "
      "compared with\n"
      "attention on the dequantised inputs, --compute fp8 with attention on the BF16 inputs.",
      options->form);
  command->add_option("--inputs", options->inputs, "Safetensors file with q, k and v")->required();
  command->add_option("--output", options->output, "Safetensors file to write o and lse to")->check(writable_file());
  command->add_option("--mask", options->mask, "metadata: as the file says, full when it says nothing")
      ->check(CLI::IsMember({"metadata", "causal", "full"}))
      ->capture_default_str();
  command->add_flag("--lse,!--no-lse", options->lse, "Write the log-sum-exp too (the default), or not");
  add_placement_option(*command, options->placement);
  command->add_option("--repeat", options->repeat, "Launches; all must give the same bits")
      ->check(CLI::Range(1U, 1000000U))
      ->capture_default_str();
  command
      ->add_option("--max-rms", options->max_rms,
                   "Largest relative rms error of the output, in percent; by default 0.25, and 0.45 for fewer than "
                   "256 query rows in all; FP8 inputs 4, --compute fp8 6")
      ->check(CLI::Range(0.0, 1e9));
  command
      ->add_option("--max-lse", options->max_lse,
                   "Largest absolute error of the log-sum-exp; by default 0.001; FP8 inputs 0.1, --compute fp8 1: the "
                   "rounding of q and k is in it")
      ->check(CLI::Range(0.0, 1e9));
  add_fp8_options(*command, options->fp8);
  add_device_options(*command, options->device);
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace zyfa::tools
