// zyfa-jit simulate: one kernel of any gfx950 code object on the simulated device, as a job file says.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "runtime/io/file.h"
#include "runtime/io/job.h"
#include "runtime/io/job_run.h"
#include "tools/commands.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string job, profile;
  bool stats = false;
  DeviceOptions device;
};

struct Count {
  const char* name;
  std::uint64_t SimStatistics::* value;
};

constexpr Count kCounts[] = {{"instructions", &SimStatistics::instructions},
                             {"mfma", &SimStatistics::mfma},
                             {"valu", &SimStatistics::valu},
                             {"trans", &SimStatistics::trans},
                             {"salu", &SimStatistics::salu},
                             {"smem", &SimStatistics::smem},
                             {"lds", &SimStatistics::lds},
                             {"vmem", &SimStatistics::vmem},
                             {"branch", &SimStatistics::branch},
                             {"barrier", &SimStatistics::barrier},
                             {"other", &SimStatistics::other},
                             {"mfma_flops", &SimStatistics::mfma_flops},
                             {"waves", &SimStatistics::waves},
                             {"workgroups", &SimStatistics::workgroups}};

OrderedJson to_json(const SimFinding& finding) {
  return {{"kind", finding.kind},       {"offset", finding.offset}, {"workgroup", finding.workgroup},
          {"wave", finding.wave},       {"lane", finding.lane},     {"instruction", finding.instruction},
          {"message", finding.message}, {"origin", finding.origin}};
}

int report_failure(const Error& error, const SimDevice& device, OutputForm form) {
  const int code = report(error, OutputForm::kText);
  if (form == OutputForm::kJson) {
    OrderedJson result{{"error", tools::to_json(error)}, {"findings", OrderedJson::array()}};
    for (const SimFinding& finding : device.last_findings()) {
      result["findings"].push_back(to_json(finding));
    }
    print_json(result);
  }
  return code;
}

// The job's kernel among those of its object.
Expected<ObjectKernel> kernel_of(const io::Job& job, std::span<const std::byte> object) {
  Expected<ObjectInfo> info = describe_object(object);
  if (!info) {
    return tl::unexpected<Error>(info.error());
  }
  std::vector<std::string> names;
  for (ObjectKernel& kernel : info->kernels) {
    if (kernel.symbol == job.kernel) {
      return std::move(kernel);
    }
    names.push_back("it has " + kernel.symbol);
  }
  return make_error(ErrorCode::kNotFound, "no kernel '" + job.kernel + "' in the code object", std::move(names));
}

int simulate(const Options& options) {
  if (!options.profile.empty()) {
    return report({ErrorCode::kUnsupported,
                   "--profile " + options.profile +
                       ": the cycle model is not in this version of zyfa; --stats counts instructions by unit",
                   {}},
                  options.form);
  }
  const Expected<io::Job> job = io::read_job(options.job);
  if (!job) {
    return report(job.error(), options.form);
  }
  const Expected<std::vector<std::byte>> object = io::read_file(job->object);
  if (!object) {
    return report(object.error(), options.form);
  }
  const Expected<ObjectKernel> kernel = kernel_of(*job, *object);
  if (!kernel) {
    return report(kernel.error(), options.form, job->object.string());
  }
  const Expected<std::shared_ptr<SimDevice>> device = open_simulator(options.device);
  if (!device) {
    return report(device.error(), options.form);
  }
  const auto start = std::chrono::steady_clock::now();
  if (const Status status = io::run_job(*job, *object, *kernel, **device); !status) {
    return report_failure(status.error(), **device, options.form);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const SimStatistics statistics = (*device)->last_statistics();
  if (options.form == OutputForm::kJson) {
    OrderedJson result{{"kernel", job->kernel}, {"strict", options.device.strict}, {"host_seconds", seconds}};
    for (const Count& count : kCounts) {
      result["statistics"][count.name] = statistics.*count.value;
    }
    print_json(result);
    return kSuccess;
  }
  fmt::print("ran {}: {}{}, {:.3f} s on this host\n", job->kernel, counted(statistics.workgroups, "workgroup"),
             options.device.strict ? ", no finding" : "", seconds);
  if (options.stats) {
    for (const Count& count : kCounts) {
      fmt::print("  {:<12} {:>16}\n", count.name, statistics.*count.value);
    }
  }
  return kSuccess;
}

}  // namespace

void add_simulate(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "simulate", "Runs one kernel of any gfx950 code object on the simulated device, as a job file says.",
      "  zyfa-jit simulate job.json --strict --stats\n"
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
  command->add_flag("--stats", options->stats, "Print how many instructions of each unit ran");
  command->add_option("--profile", options->profile,
                      "Write a predicted timeline to this file. Refused (exit 2): the cycle model is not in this "
                      "version");
  command->add_flag("--strict", options->device.strict,
                    "Report every read of a result that was not waited for, of an unwritten register or LDS byte, and "
                    "every unordered LDS access");
  command
      ->add_option("--threads", options->device.threads,
                   "Simulator threads; results do not depend on it. 0: one per core")
      ->check(CLI::Range(0U, 1024U))
      ->capture_default_str();
  command->callback([options, &chosen] { chosen = [options] { return simulate(*options); }; });
}

}  // namespace zyfa::tools
