// zyfa-jit list: what the cache holds.
#include <fmt/format.h>

#include <memory>

#include "tools/commands.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  CacheOptions cache;
};

int list(const Options& options) {
  const Expected<std::vector<CachedKernel>> kernels = list_cache(options.cache);
  if (!kernels) {
    return report(kernels.error(), options.form);
  }
  if (options.form == OutputForm::kJson) {
    OrderedJson entries = OrderedJson::array();
    for (const CachedKernel& kernel : *kernels) {
      entries.push_back({{"key", kernel.key},
                         {"problem", kernel.problem},
                         {"schedule", kernel.schedule},
                         {"symbol", kernel.symbol},
                         {"bytes", kernel.file_bytes},
                         {"generator", kernel.generator},
                         {"llvm", kernel.llvm_version},
                         {"layer", kernel.layer},
                         {"path", kernel.path}});
    }
    print_json({{"kernels", entries}});
    return kSuccess;
  }
  std::string layer;
  for (const CachedKernel& kernel : *kernels) {
    if (kernel.layer != layer) {
      layer = kernel.layer;
      fmt::print("{}\n", layer);
    }
    fmt::print("  {}  {:<24} {:>8} bytes  {}\n", kernel.key, kernel.problem, kernel.file_bytes, kernel.schedule);
  }
  fmt::print("{}\n", counted(kernels->size(), "kernel"));
  return kSuccess;
}

}  // namespace

void add_list(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, "list", "Lists the kernels of the cache, layer by layer.",
                                  "  zyfa-jit list\n"
                                  "  zyfa-jit list --cache /opt/kernels:$HOME/.cache/zyfa --json\n"
                                  "A key, or its first digits, is what `zyfa-jit dump` takes.",
                                  options->form);
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return list(*options); }; });
}

}  // namespace zyfa::tools
