// zyfa-jit: kernels on the command line. Parsing here, the work in cmd_*.cpp.
#include <fmt/format.h>
#include <cerrno>
#include <cstring>
#include <string>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string_view>

#include "tools/commands.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

constexpr const char* kPurpose =
    "Compiles, inspects and runs attention kernels for AMD MI355X (gfx950). No GPU is needed: kernels run on a "
    "functional simulator, which checks results; speed is predicted by a cycle model.";

constexpr const char* kFooter =
    "Start with:\n"
    "  zyfa-jit run --inputs tests/data/gqa_layer2_512.safetensors   compile, run, compare with fp64\n"
    "  zyfa-jit explain --problem bf16,d=128,causal                  which kernel serves it, and why\n"
    "  zyfa-jit dump --problem bf16,d=128,causal --isa               its machine code, annotated\n"
    "Environment: ZYFA_CACHE_PATH (cache directories, colon-separated, the last one writable),\n"
    "ZYFA_CACHE (normal, readonly, off, require), ZYFA_JIT_LIBRARY (path of libzyfa_jit).\n"
    "Every subcommand has --help with examples, and --json.";

std::string version_text() {
  const VersionInfo info = version_info();
  return fmt::format("zyfa {}\ngenerator {}\nllvm {}\nlibzyfa_jit {}", info.zyfa, info.generator,
                     info.llvm.empty() ? "not available" : info.llvm, info.jit_path);
}

// Read before parsing, whose own errors have a form too.
OutputForm form_of(std::span<char* const> arguments) {
  const bool json = std::ranges::any_of(arguments, [](const char* a) { return std::string_view(a) == "--json"; });
  return json ? OutputForm::kJson : OutputForm::kText;
}

int parse_and_run(int argc, char** argv, OutputForm form) {
  CLI::App app(kPurpose, "zyfa-jit");
  Chosen chosen;
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", version_text, "Versions of zyfa, of its generator and of LLVM");
  add_run(app, chosen);
  add_accuracy(app, chosen);
  add_prewarm(app, chosen);
  add_list(app, chosen);
  add_dump(app, chosen);
  add_explain(app, chosen);
  add_simulate(app, chosen);
  add_profile(app, chosen);
  add_verify(app, chosen);
  add_tune(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return app.exit(error);  // --help, --version
    }
    const auto named = app.get_subcommands();
    const std::string hint =
        fmt::format("Try: zyfa-jit {}--help", named.empty() ? "" : named.front()->get_name() + " ");
    fmt::print(stderr, "zyfa-jit: error: {}\n{}\n", error.what(), hint);
    if (form == OutputForm::kJson) {
      print_json({{"error", to_json({ErrorCode::kInvalidArgument, error.what(), {hint}})}});
    }
    return kFailure;
  }
  const int code = chosen();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return report({ErrorCode::kIoError, std::string("cannot write to stdout: ") + std::strerror(errno), {}},
                  OutputForm::kText);
  }
  return code;
}

}  // namespace
}  // namespace zyfa::tools

int main(int argc, char** argv) {
  using namespace zyfa::tools;
  const OutputForm form = form_of({argv, static_cast<std::size_t>(argc)});
  try {
    return parse_and_run(argc, argv, form);
  } catch (const std::exception& error) {
    return report({zyfa::ErrorCode::kInternal, error.what(), {}}, form);
  } catch (...) {
    return report({zyfa::ErrorCode::kInternal, "unknown exception; please report it", {}}, form);
  }
}
