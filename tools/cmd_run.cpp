// zyfa-jit run: real inputs through the whole path, compared with fp64 attention.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "tests/reference/compare.h"
#include "tools/attention_run.h"
#include "tools/commands.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string inputs, output, mask = "metadata", placement;
  bool lse = true;
  unsigned repeat = 1;
  std::optional<double> max_rms;  // percent; unset: default_max_rms()
  double max_lse = 1e-3;          // absolute
  DeviceOptions device;
  CacheOptions cache;
};

// What was run, and how it compares; the text and the JSON form are printed from it.
struct Report {
  io::AttentionInputs inputs;
  AttentionProblem problem;
  std::string mask_origin, scale_origin;  // "file", "option", "default"
  double softmax_scale = 0;
  AttentionInfo info;
  std::string device;
  double launch_seconds = 0, reference_seconds = 0;  // on this host
  unsigned launches = 0, different = 0;              // launches whose bits differ from the first one's
  reference::ErrorFigures figures;
  double max_rms = 0;          // percent, the limit applied
  std::uint64_t rejected = 0;  // cache entries that failed a check and were set aside
  bool within_tolerance = false;
};

// P and O are rounded to bf16: about 0.17% over many rows, and up to 0.4% where a few rows leave nothing to average.
double default_max_rms(const io::AttentionInputs& in) {
  constexpr std::int64_t kManyRows = 256;
  return in.batch() * in.query_length() * in.query_heads() >= kManyRows ? 0.25 : 0.45;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Fills the problem, the scale and where they come from.
void choose_problem(const Options& options, Report& report) {
  const io::AttentionInputs& in = report.inputs;
  report.problem.dtype = in.dtype;
  report.problem.head_dim_qk = static_cast<std::uint32_t>(in.head_dim_qk());
  report.problem.head_dim_v = static_cast<std::uint32_t>(in.head_dim_v());
  report.problem.lse = options.lse ? Lse::kWritten : Lse::kNone;
  if (options.mask == "metadata") {
    report.problem.mask = in.mask.value_or(Mask::kFull);
    report.mask_origin = in.mask ? "file" : "default";
  } else {
    report.problem.mask = options.mask == "causal" ? Mask::kCausal : Mask::kFull;
    report.mask_origin = "option";
  }
  report.softmax_scale = in.softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(in.head_dim_qk())));
  report.scale_origin = in.softmax_scale ? "file" : "default";
}

std::vector<std::uint16_t> to_bf16(const std::vector<std::byte>& bytes) {
  std::vector<std::uint16_t> result(bytes.size() / sizeof(std::uint16_t));
  if (!result.empty()) {
    std::memcpy(result.data(), bytes.data(), bytes.size());
  }
  return result;
}

Status compare_with_reference(const Options& options, const AttentionOutputs& outputs, Report& report) {
  const io::AttentionInputs& in = report.inputs;
  const std::vector<std::uint16_t> q = to_bf16(in.q), k = to_bf16(in.k), v = to_bf16(in.v);
  const auto view = [&](const std::vector<std::uint16_t>& data, std::int64_t tokens, std::int64_t heads,
                        std::int64_t dim) {
    return reference::dense_view(data.data(), in.batch(), tokens, heads, dim);
  };
  const auto start = std::chrono::steady_clock::now();
  // The kernel is given the scale as a float; so is the reference.
  const Expected<reference::AttentionResult> expected =
      reference::attention({view(q, in.query_length(), in.query_heads(), in.head_dim_qk()),
                            view(k, in.key_length(), in.key_heads(), in.head_dim_qk()),
                            view(v, in.key_length(), in.key_heads(), in.head_dim_v()),
                            report.problem.mask == Mask::kCausal ? reference::Mask::kCausal : reference::Mask::kFull,
                            static_cast<double>(static_cast<float>(report.softmax_scale))});
  if (!expected) {
    return tl::unexpected<Error>(expected.error());
  }
  report.reference_seconds = seconds_since(start);
  const Expected<reference::ErrorFigures> figures =
      reference::compare(*expected, view(outputs.o, in.query_length(), in.query_heads(), in.head_dim_v()), outputs.lse);
  if (!figures) {
    return tl::unexpected<Error>(figures.error());
  }
  report.figures = *figures;
  report.max_rms = options.max_rms.value_or(default_max_rms(in));
  report.within_tolerance = figures->relative_rms_percent <= report.max_rms &&
                            figures->lse_max_abs <= options.max_lse && figures->mismatched_nan == 0 &&
                            figures->nonzero_empty == 0;
  return {};
}

Status write_outputs(const std::string& path, const AttentionOutputs& outputs, const Report& report) {
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

// Compiles, launches as often as asked, compares, writes.
Status run_all(const Options& options, Report& report) {
  const Expected<std::string> placement = placement_text(options.placement);
  if (!placement) {
    return tl::unexpected<Error>(placement.error());
  }
  if (const Support support = supports(report.problem); !support) {
    return make_error(ErrorCode::kUnsupported, "no kernel for the problem " + to_string(report.problem),
                      support.reasons);
  }
  const Expected<std::shared_ptr<Device>> device = open_device(options.device);
  if (!device) {
    return tl::unexpected<Error>(device.error());
  }
  report.device = (*device)->name();
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

OrderedJson to_json(const Options& options, const Report& r) {
  const CompileTimes& times = r.info.times;
  return {{"inputs", options.inputs},
          {"shape", {{"q", r.inputs.q_shape}, {"k", r.inputs.k_shape}, {"v", r.inputs.v_shape}}},
          {"mask_from", r.mask_origin},
          {"softmax_scale", r.softmax_scale},
          {"problem", to_string(r.problem)},
          {"key", r.info.key},
          {"row", r.info.schedule_row},
          {"schedule", r.info.schedule},
          {"source", kernel_source_name(r.info.source)},
          {"layer", r.info.layer},
          {"llvm", r.info.llvm_version},
          {"vgprs", r.info.vgprs},
          {"lds_bytes", r.info.lds_bytes},
          {"instructions", r.info.instructions},
          {"compile_ms",
           {{"total", times.total},
            {"lookup", times.lookup},
            {"open", times.open},
            {"build", times.build},
            {"load", times.load}}},
          {"publish_ms", times.publish},
          {"rejected_entries", r.rejected},
          {"device", r.device},
          {"strict", options.device.strict},
          {"launches", r.launches},
          {"launches_that_differ", r.different},
          {"host_seconds", {{"launch", r.launch_seconds}, {"reference", r.reference_seconds}}},
          {"rms_percent", r.figures.relative_rms_percent},
          {"max_abs", r.figures.max_abs},
          {"lse_max_abs", options.lse ? OrderedJson(r.figures.lse_max_abs) : OrderedJson()},
          {"nan_mismatches", r.figures.mismatched_nan},
          {"nonzero_in_empty_rows", r.figures.nonzero_empty},
          {"limits", {{"rms_percent", r.max_rms}, {"lse_max_abs", options.max_lse}}},
          {"within_tolerance", r.within_tolerance}};
}

std::string source_text(const AttentionInfo& info) {
  switch (info.source) {
    case KernelSource::kMemory:
      return "memory of this process";
    case KernelSource::kDisk:
      return "disk cache, " + info.layer;
    case KernelSource::kBuilt:
      return "built now with LLVM " + info.llvm_version;
  }
  return {};
}

void print_text(const Options& options, const Report& r) {
  const auto line = [](std::string_view name, const std::string& text) { fmt::print("{:<12} {}\n", name, text); };
  const CompileTimes& times = r.info.times;
  const reference::ErrorFigures& f = r.figures;
  line("inputs", options.inputs);
  line("shape", fmt::format("q {}, k {}, v {}", io::shape_text(r.inputs.q_shape), io::shape_text(r.inputs.k_shape),
                            io::shape_text(r.inputs.v_shape)));
  line("problem", fmt::format("{} (mask: {}), softmax scale {:.6g} ({})", to_string(r.problem), r.mask_origin,
                              r.softmax_scale, r.scale_origin));
  line("key", r.info.key);
  line("schedule", fmt::format("{}: {}", r.info.schedule_row, r.info.schedule));
  line("kernel", fmt::format("{}; {} instructions, {} VGPRs, {} bytes of LDS", source_text(r.info), r.info.instructions,
                             r.info.vgprs, r.info.lds_bytes));
  line("compile", fmt::format("{:.2f} ms (lookup {:.2f}, open libzyfa_jit {:.2f}, build {:.2f}, load {:.2f})",
                              times.total, times.lookup, times.open, times.build, times.load));
  line("publish", fmt::format("{:.2f} ms in the background, not part of the compile time", times.publish));
  if (r.rejected != 0) {
    line("cache", fmt::format("{} damaged or foreign entry set aside under rejected/ and built again", r.rejected));
  }
  line("device", fmt::format("{}{}", r.device, options.device.strict ? ", strict, no finding" : ""));
  line("launches", fmt::format("{}, {}; {:.3f} s each{}", r.launches,
                               r.launches == 1    ? "--repeat N compares several"
                               : r.different == 0 ? "bitwise equal"
                                                  : fmt::format("{} DIFFER from the first", r.different),
                               r.launch_seconds,
                               options.device.device == "sim" ? " of simulation on this host, not a GPU's time" : ""));
  line("output", fmt::format("rms error {:.4f}% of fp64 (limit {}%), max error {:.3g} at token {} head {} dim {}",
                             f.relative_rms_percent, r.max_rms, f.max_abs, f.worst_token, f.worst_head, f.worst_dim));
  if (options.lse) {
    line("lse", fmt::format("max error {:.3g} (limit {})", f.lse_max_abs, options.max_lse));
  }
  if (f.mismatched_nan != 0 || f.nonzero_empty != 0) {
    line("rows", fmt::format("{} elements are NaN on one side only; {} elements of rows that see no key are not 0",
                             f.mismatched_nan, f.nonzero_empty));
  }
  if (!options.output.empty()) {
    line("written", options.output);
  }
  line("result", r.different != 0     ? "WRONG: launches differ"
                 : r.within_tolerance ? "agrees with fp64 attention"
                                      : "WRONG: outside the limits");
}

int run(const Options& options) {
  Expected<io::AttentionInputs> inputs = io::read_attention_inputs(options.inputs);
  if (!inputs) {
    return report(inputs.error(), options.form);
  }
  Report result;
  result.inputs = *std::move(inputs);
  choose_problem(options, result);
  if (const Status status = run_all(options, result); !status) {
    return report(status.error(), options.form);
  }
  if (options.form == OutputForm::kJson) {
    print_json(to_json(options, result));
  } else {
    print_text(options, result);
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
      "The file holds q, k and v, [tokens, heads, dim] or [batch, tokens, heads, dim]; metadata \"mask\" (causal, "
      "full)\n"
      "and \"softmax_scale\" are used when present. The output file gets o and lse.",
      options->form);
  command->add_option("--inputs", options->inputs, "Safetensors file with q, k and v")->required();
  command->add_option("--output", options->output, "Safetensors file to write o and lse to");
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
                   "256 query rows in all")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--max-lse", options->max_lse, "Largest absolute error of the log-sum-exp")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  add_device_options(*command, options->device);
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace zyfa::tools
