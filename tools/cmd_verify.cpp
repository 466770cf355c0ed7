// zyfa-jit verify: static checks of any gfx950 code object.
#include <fmt/format.h>

#include <memory>

#include "runtime/io/file.h"
#include "tools/commands.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string file;
};

OrderedJson to_json(const VerifyResult& result, const std::string& file) {
  OrderedJson findings = OrderedJson::array();
  for (const VerifyFinding& finding : result.findings) {
    findings.push_back({{"kind", finding.kind},
                        {"offset", finding.offset},
                        {"instruction", finding.instruction},
                        {"message", finding.message},
                        {"origin", finding.origin}});
  }
  return {{"file", file},
          {"target", result.target},
          {"kernels", result.kernels},
          {"instructions", result.instructions},
          {"not_reached", result.not_reached},
          {"findings", findings},
          {"notes", result.notes}};
}

void print_text(const VerifyResult& result, const std::string& file) {
  fmt::print("{}: {}, {}, {} checked, {} not reached\n", file,
             result.target.empty() ? "no target in its metadata" : result.target,
             counted(result.kernels.size(), "kernel"), counted(result.instructions, "instruction"), result.not_reached);
  for (const std::string& kernel : result.kernels) {
    fmt::print("  kernel {}\n", kernel);
  }
  for (const VerifyFinding& finding : result.findings) {
    fmt::print("  {:#08x} {}: {}\n           {}\n", finding.offset, finding.kind, finding.instruction, finding.message);
    if (!finding.origin.empty()) {
      fmt::print("           from {}\n", finding.origin);
    }
  }
  for (const std::string& note : result.notes) {
    fmt::print("  note: {}\n", note);
  }
  if (!result.findings.empty()) {
    fmt::print("{}\n", counted(result.findings.size(), "finding"));
  } else {
    fmt::print("nothing wrong was found{}\n", result.notes.empty() ? "" : "; the notes say what to know of it");
  }
}

int verify(const Options& options) {
  const Expected<std::vector<std::byte>> object = io::read_file(options.file);
  if (!object) {
    return report(object.error(), options.form);
  }
  const Expected<VerifyResult> result = verify_object(*object);
  if (!result) {
    return report(result.error(), options.form, options.file);
  }
  if (options.form == OutputForm::kJson) {
    print_json(to_json(*result, options.file));
  } else {
    print_text(*result, options.file);
  }
  return result->findings.empty() ? kSuccess : kFindings;
}

}  // namespace

void add_verify(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, "verify",
                  "Checks a gfx950 code object without running it. Covers wait states, waits on memory results, "
                  "register and LDS budget, tuple alignment, control flow, descriptor against metadata. Notes name "
                  "code that was not checked.",
                  "  zyfa-jit verify kernel.hsaco\n"
                  "  zyfa-jit dump --problem bf16,d=128,causal --save k.hsaco && zyfa-jit verify k.hsaco --json",
                  options->form);
  command->add_option("FILE", options->file, "Code object (ELF); any compiler's")->required();
  command->callback([options, &chosen] { chosen = [options] { return verify(*options); }; });
}

}  // namespace zyfa::tools
