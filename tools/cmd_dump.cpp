// zyfa-jit dump: everything known of one kernel, from the cache, from a problem, or of any code object.
#include <fmt/format.h>

#include <memory>

#include "runtime/io/file.h"
#include "tools/commands.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string key, problem, object, placement, kernel, helper, save;
  bool assembly = false, isa = false, schedule = false, metadata = false, registers = false;
  CacheOptions cache;
};

// The kernel before attention whose description starts as asked, e.g. "quantise k".
Expected<KernelObject> find_helper(const AttentionProblem& problem, const Options& options) {
  Expected<std::vector<KernelObject>> helpers = find_helper_kernels(problem, options.cache);
  if (!helpers) {
    return tl::unexpected<Error>(helpers.error());
  }
  std::vector<std::string> names;
  for (KernelObject& helper : *helpers) {
    if (helper.entry.problem.starts_with(options.helper)) {
      return std::move(helper);
    }
    names.push_back(helper.entry.problem);
  }
  return make_error(ErrorCode::kNotFound,
                    names.empty() ? "the problem " + to_string(problem) + " has no helper kernel"
                                  : "no helper kernel's description starts with '" + options.helper + "'",
                    std::move(names));
}

Expected<KernelObject> find(const Options& options) {
  if (!options.object.empty()) {
    Expected<std::vector<std::byte>> bytes = io::read_file(options.object);
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    KernelObject kernel;
    kernel.object = *std::move(bytes);
    return kernel;
  }
  if (!options.key.empty()) {
    return find_cached_kernel(options.key, options.cache);
  }
  const Expected<AttentionProblem> problem = parse_problem(options.problem);
  if (!problem) {
    return tl::unexpected<Error>(problem.error());
  }
  if (!options.helper.empty()) {
    return find_helper(*problem, options);
  }
  const Expected<std::string> placement = placement_text(options.placement);
  if (!placement) {
    return tl::unexpected<Error>(placement.error());
  }
  return find_kernel(*problem, options.cache, *placement);
}

struct Section {
  std::string name, text;
};

Status add_object_dump(std::vector<Section>& sections, const KernelObject& kernel, const char* name, Dump what,
                       const std::string& symbol) {
  Expected<std::string> text = dump_object(kernel.object, what, symbol);
  if (!text) {
    return tl::unexpected<Error>(text.error());
  }
  sections.push_back({name, *std::move(text)});
  return {};
}

Expected<std::vector<Section>> sections_of(const Options& options, const KernelObject& kernel) {
  std::vector<Section> sections;
  const bool foreign = !options.object.empty();
  if (foreign && (options.schedule || options.registers)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--schedule and --registers are known of zyfa's own kernels only; a code object from a file has "
                      "--isa, --asm and --metadata");
  }
  if (options.schedule) {
    sections.push_back({"schedule", kernel.entry.schedule + "\n" + kernel.schedule_chart});
  }
  if (options.registers) {
    sections.push_back({"registers", kernel.register_map});
  }
  Status status;
  if (options.metadata) {
    status = add_object_dump(sections, kernel, "metadata", Dump::kMetadata, options.kernel);
  }
  if (status && options.assembly) {
    status = add_object_dump(sections, kernel, "asm", Dump::kAssembly, options.kernel);
  }
  const bool nothing_named =
      !options.schedule && !options.registers && !options.metadata && !options.assembly && options.save.empty();
  if (status && (options.isa || nothing_named)) {
    status = add_object_dump(sections, kernel, "isa", Dump::kIsa, options.kernel);
  }
  if (!status) {
    return tl::unexpected<Error>(status.error());
  }
  return sections;
}

int dump(const Options& options) {
  const int sources =
      (options.key.empty() ? 0 : 1) + (options.problem.empty() ? 0 : 1) + (options.object.empty() ? 0 : 1);
  if (sources != 1) {
    return report({ErrorCode::kInvalidArgument, "give exactly one of KEY, --problem and --object", {}}, options.form);
  }
  if (!options.helper.empty() && (options.problem.empty() || !options.placement.empty())) {
    return report({ErrorCode::kInvalidArgument, "--helper goes with --problem, and not with --placement", {}},
                  options.form);
  }
  const Expected<KernelObject> kernel = find(options);
  if (!kernel) {
    return report(kernel.error(), options.form);
  }
  const Expected<std::vector<Section>> sections = sections_of(options, *kernel);
  if (!sections) {
    return report(sections.error(), options.form);
  }
  if (!options.save.empty()) {
    if (const Status status = io::write_file(options.save, {kernel->object}); !status) {
      return report(status.error(), options.form);
    }
  }
  if (options.form == OutputForm::kJson) {
    OrderedJson result{{"key", kernel->entry.key},
                       {"problem", kernel->entry.problem},
                       {"symbol", kernel->entry.symbol},
                       {"object_bytes", kernel->object.size()}};
    for (const Section& section : *sections) {
      result[section.name] = section.text;
    }
    print_json(result);
    return kSuccess;
  }
  for (const Section& section : *sections) {
    if (sections->size() > 1) {
      fmt::print("== {}\n", section.name);
    }
    fmt::print("{}{}", section.text, section.text.ends_with('\n') ? "" : "\n");
  }
  return kSuccess;
}

}  // namespace

void add_dump(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "dump", "Shows a kernel: machine code, assembly, schedule, registers, metadata. Default: --isa.",
      "  zyfa-jit dump 3f9a --isa                                   a kernel of the cache, by its key's first digits\n"
      "  zyfa-jit dump --problem bf16,d=128,causal --schedule --registers\n"
      "  zyfa-jit dump --problem bf16,d=128,causal --placement naive --asm > naive.s\n"
      "      clang -x assembler -target amdgcn-amd-amdhsa -mcpu=gfx950:sramecc+:xnack- -c naive.s\n"
      "  zyfa-jit dump --problem bf16,d=128,full --save kernel.hsaco              the code object itself\n"
      "  zyfa-jit dump --object vendor.co --isa                                   any gfx950 code object",
      options->form);
  command->add_option("KEY", options->key, "First hex digits (at least 4) of a cached kernel's key");
  command->add_option("--problem", options->problem,
                      std::string("The kernel of a problem, from the cache or built. ") + kProblemHelp);
  command->add_option("--object", options->object, "A code object file, any compiler's");
  command->add_option("--placement", options->placement, kPlacementHelp);
  command->add_option("--helper", options->helper,
                      "With --problem: instead of attention, the kernel that runs before it and whose description "
                      "starts so, as explain shows it (\"quantise k\")");
  command->add_option("--kernel", options->kernel, "Symbol, when the object holds several kernels");
  command->add_flag("--isa", options->isa, "Offset, encoding, instruction, comment and stage, one per line");
  command->add_flag("--asm", options->assembly, "Text that stock llvm-mc assembles to the same bytes");
  command->add_flag("--schedule", options->schedule, "The placement's text form and a chart of its pipeline");
  command->add_flag("--registers", options->registers, "Which values live in which registers");
  command->add_flag("--metadata", options->metadata, "Descriptor, metadata and sizes");
  command->add_option("--save", options->save, "Write the code object to this file")->check(writable_file());
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return dump(*options); }; });
}

}  // namespace zyfa::tools
