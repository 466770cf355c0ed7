// zyfa-jit simulate: one kernel of any gfx950 code object on the simulated device, as a job file says.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "runtime/io/file.h"
#include "runtime/io/job_run.h"
#include "runtime/io/sim_text.h"
#include "tools/commands.h"
#include "tools/inspector.h"
#include "tools/job_file.h"
#include "tools/profile_report.h"
#include "tools/rule_comparison.h"
#include "tools/simulation_statistics.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string job, profile;
  bool stats = false, compare_rules = false;
  DeviceOptions device;
  InspectOptions inspect;
};

OrderedJson to_json(const SimFinding& finding) {
  return {{"kind", finding.kind},       {"offset", finding.offset}, {"workgroup", finding.workgroup},
          {"wave", finding.wave},       {"lane", finding.lane},     {"instruction", finding.instruction},
          {"message", finding.message}, {"origin", finding.origin}, {"warning", finding.warning}};
}

int report_failure(const Error& error, const SimDevice& device, OutputForm form, const Inspector& inspector) {
  const int code = report(error, OutputForm::kText);
  if (form == OutputForm::kJson) {
    OrderedJson result{{"error", tools::to_json(error)}, {"findings", OrderedJson::array()}};
    for (const SimFinding& finding : device.last_findings()) {
      result["findings"].push_back(to_json(finding));
    }
    if (inspector.has_break()) {
      result["breaks"] = inspector.breaks();
    }
    print_json(result);
  }
  return code;
}

OrderedJson result_json(const Options& options, const PreparedJob& run, const SimDevice& device, double seconds) {
  OrderedJson result{{"kernel", run.job.kernel}, {"strict", options.device.strict}, {"host_seconds", seconds}};
  result["statistics"] = statistics_json(device);
  result["warnings"] = OrderedJson::array();
  for (const SimFinding& finding : device.last_findings()) {
    result["warnings"].push_back(to_json(finding));
  }
  return result;
}

int compare(const Options& options, const PreparedJob& run, SimDevice& device, const Inspector& inspector) {
  const auto comparison = compare_rules(run.job, run.object, run.kernel, device);
  if (!comparison) {
    return report_failure(comparison.error(), device, options.form, inspector);
  }
  if (options.form == OutputForm::kJson) {
    print_json({{"kernel", run.job.kernel}, {"rules", to_json(*comparison)}});
  } else {
    print(*comparison);
  }
  return kSuccess;
}

Status write_profile(const SimDevice& device, const std::string& path) {
  const Expected<LaunchProfile> profile = device.last_profile({.threads = device.options().threads});
  if (!profile) {
    return tl::unexpected<Error>(profile.error());
  }
  const std::string text = tools::to_json(*profile).dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  return io::write_file(path, {std::as_bytes(std::span(text))});
}

int launch(const Options& options, const PreparedJob& run, SimDevice& device, Inspector& inspector) {
  const auto start = std::chrono::steady_clock::now();
  const Expected<std::vector<io::JobOutput>> outputs = io::execute_job(run.job, run.object, run.kernel, device);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outputs && !inspector.stopped()) {
    return report_failure(outputs.error(), device, options.form, inspector);
  }
  if (const Status looked = inspector.outcome(); !looked) {
    return report(looked.error(), options.form);
  }
  if (outputs) {
    if (const Status stored = io::store_outputs(*outputs); !stored) {
      return report(stored.error(), options.form);
    }
  }
  if (outputs && !options.profile.empty()) {
    if (const Status written = write_profile(device, options.profile); !written) {
      return report(written.error(), options.form);
    }
  }
  if (options.form == OutputForm::kJson) {
    OrderedJson result = result_json(options, run, device, seconds);
    if (inspector.has_break()) {
      result["stopped"] = inspector.stopped();
      result["breaks"] = inspector.breaks();
    }
    print_json(result);
    return kSuccess;
  }
  if (!outputs) {
    fmt::print("stopped {} at the breakpoint; nothing was stored\n", run.job.kernel);
    return kSuccess;
  }
  const std::vector<SimFinding> warnings = device.last_findings();
  const std::string strict = !options.device.strict ? ""
                             : warnings.empty()     ? ", no finding"
                                                    : ", no finding but " + counted(warnings.size(), "warning");
  fmt::print("ran {}: {}{}, {:.3f} s on this host\n", run.job.kernel,
             counted(device.last_statistics().workgroups, "workgroup"), strict, seconds);
  for (const SimFinding& f : warnings) {
    fmt::print("  {} at +0x{:x} `{}`, wave {}, lane {}: {}\n", f.kind, f.offset, f.instruction, f.wave, f.lane,
               f.message);
  }
  if (options.stats) {
    print_statistics(device);
  }
  return kSuccess;
}

int simulate(const Options& options) {
  if (options.compare_rules && !options.profile.empty()) {
    return report({ErrorCode::kInvalidArgument, "--compare-rules runs the job many times; --profile takes one run", {}},
                  options.form);
  }
  const Expected<PreparedJob> run = prepare_job(options.job);
  if (!run) {
    return report(run.error(), options.form);
  }
  const Expected<std::shared_ptr<SimDevice>> device = open_simulator(options.device);
  if (!device) {
    return report(device.error(), options.form);
  }
  Inspector inspector;
  SimOptions simulator = (*device)->options();
  if (options.compare_rules && (options.inspect.trace_wave || options.inspect.break_offset)) {
    return report({ErrorCode::kInvalidArgument,
                   "--compare-rules runs the job many times; --trace and --break do not go with it",
                   {}},
                  options.form);
  }
  if (!options.profile.empty()) {
    simulator.capture = SimCapture{.workgroups = spaced_workgroups(run->job.launch.grid, kRecordedWorkgroups)};
  }
  Status ready = inspector.attach(options.inspect, options.form, simulator);
  if (options.stats) {
    simulator.counts = SimCounts::kByInstruction;
  }
  if (ready) {
    ready = (*device)->set_options(simulator);
  }
  if (!ready) {
    return report(ready.error(), options.form);
  }
  return options.compare_rules ? compare(options, *run, **device, inspector)
                               : launch(options, *run, **device, inspector);
}

}  // namespace

void add_simulate(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "simulate", "Runs one kernel of any gfx950 code object on the simulated device, as a job file says.",
      "  zyfa-jit simulate job.json --strict --stats\n"
      "  zyfa-jit simulate job.json --landing random:7 --interleave to-barrier --rule soffset=checked\n"
      "  zyfa-jit simulate job.json --break 0x120 --dump v0-15,a0,s0-7,lds:0x100-0x13f\n"
      "  zyfa-jit simulate job.json --trace 3 --trace-file wave3.txt\n"
      "Job file (paths are relative to it; grid counts workgroups):\n"
      "  {\"object\": \"kernel.hsaco\", \"kernel\": \"symbol\", \"grid\": [2,1,1], \"block\": [512,1,1], \"lds\": 0,\n"
      "   \"args\": [{\"buffer\": \"q.npy\"}, {\"buffer\": \"a.bin\", \"write\": \"b.bin\", \"offset\": 16},\n"
      "            {\"bytes\": 65536, \"fill\": 255, \"write\": \"o.npy\", \"dtype\": \"bfloat16\", \"shape\": "
      "[128,256]},\n"
      "            {\"i32\": 5}, {\"u32\": 7}, {\"i64\": 1}, {\"f32\": 0.088}, {\"raw\": \"00ff\"}, {\"null\": "
      "true}]}\n"
      "An argument stands at its offset, else where the metadata puts it, else at the next aligned one.\n"
      "\"write\" stores a buffer's final bytes; a name in .npy gets a header with dtype and shape.",
      options->form);
  command->add_option("JOB", options->job, "Job file")->required();
  command->add_flag("--stats", options->stats, "Print instructions by unit, bytes by level and LDS bank conflicts");
  command
      ->add_option("--profile", options->profile,
                   "Write what the cycle model predicts for this launch to this file, as `zyfa-jit profile JOB "
                   "--json` prints it")
      ->check(writable_file());
  command->add_flag("--compare-rules", options->compare_rules,
                    "Run under every reading of every --rule and say which of the buffers to be stored depend on one; "
                    "nothing is stored");
  add_simulator_options(*command, options->device);
  add_inspect_options(*command, options->inspect);
  command->callback([options, &chosen] { chosen = [options] { return simulate(*options); }; });
}

}  // namespace zyfa::tools
