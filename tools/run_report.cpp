#include "tools/run_report.h"

#include <fmt/format.h>

namespace zyfa::tools {
namespace {

double near_percent(const TilePaths& paths) {
  return 100.0 * static_cast<double>(paths.near) / static_cast<double>(paths.near + paths.far);
}

OrderedJson helpers_json(const AttentionInfo& info) {
  OrderedJson helpers = OrderedJson::array();
  for (const HelperKernel& helper : info.helpers) {
    helpers.push_back({{"kernel", helper.description},
                       {"key", helper.key},
                       {"symbol", helper.symbol},
                       {"source", kernel_source_name(helper.source)}});
  }
  return helpers;
}

OrderedJson paths_json(const std::optional<TilePaths>& paths) {
  if (!paths) {
    return {};
  }
  return {{"near", paths->near}, {"far", paths->far}, {"near_percent", near_percent(*paths)}};
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

std::string wrong_text(const AttentionProblem& problem) {
  if (problem.compute != Compute::kFp8) {
    return "WRONG: outside the limits";
  }
  return "WRONG: outside the limits, rounding of the inputs included (zyfa-jit accuracy tells the parts)";
}

}  // namespace

OrderedJson to_json(const RunReport& r) {
  const CompileTimes& times = r.info.times;
  const bool lse = r.problem.lse == Lse::kWritten;
  return {{"inputs", r.inputs_file},
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
          {"agprs", r.info.agprs},
          {"lds_bytes", r.info.lds_bytes},
          {"instructions", r.info.instructions},
          {"helpers", helpers_json(r.info)},
          {"workspace_bytes", r.workspace_bytes},
          {"compile_ms",
           {{"total", times.total},
            {"lookup", times.lookup},
            {"open", times.open},
            {"build", times.build},
            {"load", times.load}}},
          {"publish_ms", times.publish},
          {"rejected_entries", r.rejected},
          {"device", r.device},
          {"strict", r.strict},
          {"launches", r.launches},
          {"launches_that_differ", r.different},
          {"tile_paths", paths_json(r.paths)},
          {"host_seconds", {{"launch", r.launch_seconds}, {"reference", r.reference_seconds}}},
          {"rms_percent", r.figures.relative_rms_percent},
          {"max_abs", r.figures.max_abs},
          {"lse_max_abs", lse ? OrderedJson(r.figures.lse_max_abs) : OrderedJson()},
          {"nan_mismatches", r.figures.mismatched_nan},
          {"nonzero_in_empty_rows", r.figures.nonzero_empty},
          {"limits", {{"rms_percent", r.max_rms}, {"lse_max_abs", r.max_lse}}},
          {"within_tolerance", r.within_tolerance}};
}

void print_text(const RunReport& r) {
  const auto line = [](std::string_view name, const std::string& text) { fmt::print("{:<12} {}\n", name, text); };
  const CompileTimes& times = r.info.times;
  const reference::ErrorFigures& f = r.figures;
  line("inputs", r.inputs_file);
  line("shape", fmt::format("q {}, k {}, v {}", io::shape_text(r.inputs.q_shape), io::shape_text(r.inputs.k_shape),
                            io::shape_text(r.inputs.v_shape)));
  line("problem", fmt::format("{} (mask: {}), softmax scale {:.6g} ({})", to_string(r.problem), r.mask_origin,
                              r.softmax_scale, r.scale_origin));
  line("key", r.info.key);
  line("schedule", fmt::format("{}: {}", r.info.schedule_row, r.info.schedule));
  line("kernel", fmt::format("{}; {} instructions, {} VGPRs, {} AGPRs, {} bytes of LDS", source_text(r.info),
                             r.info.instructions, r.info.vgprs, r.info.agprs, r.info.lds_bytes));
  for (const HelperKernel& helper : r.info.helpers) {
    line("helper", fmt::format("{}, {}; {}", helper.description, kernel_source_name(helper.source), helper.key));
  }
  if (r.problem.compute == Compute::kFp8) {
    line("workspace", fmt::format("{} bytes", r.workspace_bytes));
  }
  line("compile", fmt::format("{:.2f} ms (lookup {:.2f}, open libzyfa_jit {:.2f}, build {:.2f}, load {:.2f})",
                              times.total, times.lookup, times.open, times.build, times.load));
  line("publish", fmt::format("{:.2f} ms in the background, not part of the compile time", times.publish));
  if (r.rejected != 0) {
    line("cache", fmt::format("{} damaged or foreign entry set aside under rejected/ and built again", r.rejected));
  }
  line("device", fmt::format("{}{}", r.device, r.strict ? ", strict, no finding" : ""));
  line("launches", fmt::format("{}, {}; {:.3f} s each{}", r.launches,
                               r.launches == 1    ? "--repeat N compares several"
                               : r.different == 0 ? "bitwise equal"
                                                  : fmt::format("{} DIFFER from the first", r.different),
                               r.launch_seconds, r.simulated ? " of simulation on this host, not a GPU's time" : ""));
  if (r.paths) {
    line("tiles", fmt::format("{} on the near path, {} on the far path: {:.2f}% near, of 128 keys for a wave's queries",
                              r.paths->near, r.paths->far, near_percent(*r.paths)));
  }
  line("output", fmt::format("rms error {:.4f}% of fp64 (limit {}%), max error {:.3g} at token {} head {} dim {}",
                             f.relative_rms_percent, r.max_rms, f.max_abs, f.worst_token, f.worst_head, f.worst_dim));
  if (r.problem.lse == Lse::kWritten) {
    line("lse", fmt::format("max error {:.3g} (limit {})", f.lse_max_abs, r.max_lse));
  }
  if (f.mismatched_nan != 0 || f.nonzero_empty != 0) {
    line("rows", fmt::format("{} elements are NaN on one side only; {} elements of rows that see no key are not 0",
                             f.mismatched_nan, f.nonzero_empty));
  }
  if (!r.output_file.empty()) {
    line("written", r.output_file);
  }
  line("result", r.different != 0     ? "WRONG: launches differ"
                 : r.within_tolerance ? "agrees with fp64 attention"
                                      : wrong_text(r.problem));
}

}  // namespace zyfa::tools
