// zyfa-jit explain: which kernel serves a problem, why, and whether the cache has it.
#include <fmt/format.h>

#include <memory>

#include "tools/commands.h"
#include "zyfa/attention.h"
#include "zyfa/inspect.h"

namespace zyfa::tools {
namespace {

struct Options {
  OutputForm form = OutputForm::kText;
  std::string problem, placement;
  CacheOptions cache;
};

// Where the cache has the kernel of a key text ("...\nkey=HEX\n"), or nothing.
std::optional<CachedKernel> cached(const std::string& key, const CacheOptions& cache) {
  Expected<KernelObject> found = find_cached_kernel(key, cache);
  return found ? std::optional(std::move(found->entry)) : std::nullopt;
}

// Splits explain_key()'s text into its lines; the last is the key.
std::vector<std::pair<std::string, std::string>> fields_of(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::size_t equals = std::min(line.find('='), line.size());
    if (!line.empty()) {
      fields.emplace_back(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
    }
    at = end + 1;
  }
  return fields;
}

// A kernel that runs before the attention kernel.
struct Helper {
  std::string key, description;
  std::optional<CachedKernel> entry;
};

OrderedJson helpers_json(const std::vector<Helper>& helpers) {
  OrderedJson rows = OrderedJson::array();
  for (const Helper& helper : helpers) {
    rows.push_back({{"kernel", helper.description},
                    {"key", helper.key},
                    {"cached", helper.entry.has_value()},
                    {"path", helper.entry ? OrderedJson(helper.entry->path) : OrderedJson()}});
  }
  return rows;
}

int explain_refusal(const AttentionProblem& problem, const Support& support, OutputForm form) {
  if (form == OutputForm::kJson) {
    print_json({{"problem", to_string(problem)}, {"supported", false}, {"reasons", support.reasons}});
  } else {
    fmt::print("{}", zyfa::explain(problem));
  }
  return kNotSupported;
}

// The row and schedule that compile would use. A placement that was asked for is built, beside every cache, since only
// a build says whether it is legal; the rows that the table chooses by itself are known to be.
Expected<Selection> selection_of(const AttentionProblem& problem, const std::string& placement) {
  if (placement.empty()) {
    return zyfa::select(problem);
  }
  const CacheOptions no_cache{.path = {}, .mode = CacheMode::kOff};
  const auto attention = Attention::compile(problem, {.device = nullptr, .placement = placement, .cache = no_cache});
  if (!attention) {
    return tl::unexpected<Error>(attention.error());
  }
  const AttentionInfo info = (*attention)->info();
  return Selection{info.schedule_row, info.schedule};
}

int explain_problem(const Options& options) {
  const Expected<AttentionProblem> problem = parse_problem(options.problem);
  if (!problem) {
    return report(problem.error(), options.form);
  }
  if (const Support support = supports(*problem); !support) {
    return explain_refusal(*problem, support, options.form);
  }
  const Expected<std::string> placement = placement_text(options.placement);
  if (!placement) {
    return report(placement.error(), options.form);
  }
  const Expected<Selection> selection = selection_of(*problem, *placement);
  if (!selection) {
    return report(selection.error(), options.form);
  }
  const Expected<std::string> key_text = explain_key(*problem, *placement);
  if (!key_text) {
    return report(key_text.error(), options.form);
  }
  auto fields = fields_of(*key_text);
  const std::string key = fields.empty() ? std::string() : fields.back().second;
  std::vector<Helper> helpers;
  for (const auto& [name, value] : fields) {
    if (name == "helper") {
      const std::size_t space = value.find(' ');
      helpers.push_back({value.substr(0, space), value.substr(space + 1), {}});
      helpers.back().entry = cached(helpers.back().key, options.cache);
    }
  }
  std::erase_if(fields, [](const auto& field) { return field.first == "helper"; });
  const std::optional<CachedKernel> entry = cached(key, options.cache);
  if (options.form == OutputForm::kJson) {
    OrderedJson key_fields;
    for (const auto& [name, value] : fields) {
      key_fields[name] = value;
    }
    print_json({{"problem", to_string(*problem)},
                {"supported", true},
                {"row", selection->row},
                {"schedule", selection->schedule},
                {"key", key},
                {"key_fields", key_fields},
                {"cached", entry.has_value()},
                {"path", entry ? OrderedJson(entry->path) : OrderedJson()},
                {"helpers", helpers_json(helpers)}});
    return kSuccess;
  }
  fmt::print("{}", zyfa::explain(*problem));
  if (!placement->empty()) {
    fmt::print("asked for instead, and legal: {}\n  {}\n", selection->row, selection->schedule);
  }
  fmt::print("key fields:\n");
  for (const auto& [name, value] : fields) {
    fmt::print("  {} = {}\n", name, value);
  }
  const auto place = [](const std::optional<CachedKernel>& kernel) {
    return kernel ? "in " + kernel->path : "not there yet; the first compile builds it";
  };
  fmt::print("cache: {}\n", place(entry));
  for (const Helper& helper : helpers) {
    fmt::print("{}: key {}\n  cache: {}\n", helper.description, helper.key, place(helper.entry));
  }
  return kSuccess;
}

}  // namespace

void add_explain(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, "explain",
                                  "Shows which kernel serves a problem and why, the fields of its cache key, and "
                                  "whether the cache has it. Stores nothing; a placement that is asked for is checked.",
                                  "  zyfa-jit explain --problem bf16,d=128,causal,lse\n"
                                  "  zyfa-jit explain --problem bf16,d=128,causal --placement @my.placement\n"
                                  "  zyfa-jit explain --problem fp16,d=96,window        every reason of a refusal",
                                  options->form);
  command->add_option("--problem", options->problem, kProblemHelp)->required();
  add_placement_option(*command, options->placement);
  command->add_option("--cache", options->cache.path, "Cache directories instead of ZYFA_CACHE_PATH");
  command->callback([options, &chosen] { chosen = [options] { return explain_problem(*options); }; });
}

}  // namespace zyfa::tools
