#include "tools/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <thread>

#include "runtime/io/file.h"
#include "runtime/io/sim_text.h"
#include "tools/progress.h"

namespace zyfa::tools {
namespace {

constexpr std::string_view kPlacementAlias = ",--schedule";

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnsupported:
      return kNotSupported;
    case ErrorCode::kMemoryFault:
    case ErrorCode::kStrictFinding:
      return kFindings;
    default:
      return kFailure;
  }
}

// Breaks a description at blanks; CLI11 prints it as it comes.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string result;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (line != 0 && line + 1 + end - at > width) {
      result += '\n';
      line = 0;
    } else if (line != 0) {
      result += ' ';
      ++line;
    }
    result.append(text, at, end - at);
    line += end - at;
    at = end + 1;
  }
  return result;
}

}  // namespace

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string name = CLI::Formatter::make_option_name(option, is_positional);
  if (name.ends_with(kPlacementAlias)) {
    name.resize(name.size() - kPlacementAlias.size());
  }
  return name;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(CLI::Formatter::make_option_desc(option), kHelpColumns - get_column_width());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), kHelpColumns) + "\n";
}

// The first sentence is enough in the list.
std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  const std::string purpose = command->get_description();
  return fmt::format("  {:<10} {}\n", command->get_name(), purpose.substr(0, purpose.find(". ")));
}

int report(const Error& error, OutputForm form) { return report(error, form, {}); }

int report(const Error& error, OutputForm form, std::string_view where) {
  fmt::print(stderr, "zyfa-jit: error: {}{}{}\n", where, where.empty() ? "" : ": ", error.message);
  for (const std::string& detail : error.details) {
    fmt::print(stderr, "  {}\n", detail);
  }
  if (form == OutputForm::kJson) {
    print_json({{"error", to_json(error)}});
  }
  return exit_code(error.code);
}

OrderedJson to_json(const Error& error) {
  return {{"code", error_code_name(error.code)}, {"message", error.message}, {"details", error.details}};
}

void print_json(const OrderedJson& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& purpose, const std::string& examples,
                      OutputForm& form) {
  CLI::App* command = app.add_subcommand(name, purpose);
  command->footer("Examples:\n" + examples + "\n" + std::string(kExitCodeHelp));
  command->add_flag_callback("--json", [&form] { form = OutputForm::kJson; }, "Print the result as one JSON object");
  return command;
}

std::vector<std::string> comma_words(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

CLI::Validator writable_file() {
  const auto fault = [](const std::string& name) -> std::string {
    const std::filesystem::path path(name), folder = path.has_parent_path() ? path.parent_path() : ".";
    std::error_code none;
    if (name.empty()) return "a file name is missing";
    if (!std::filesystem::is_directory(folder, none)) return "no such folder: " + folder.string();
    if (std::filesystem::is_directory(path, none)) return name + " is a folder";
    return {};
  };
  return {fault, ""};
}

void add_placement_option(CLI::App& command, std::string& placement) {
  command.add_option("--placement" + std::string(kPlacementAlias), placement, kPlacementHelp);
}

Expected<std::string> placement_text(const std::string& option) {
  if (!option.starts_with('@')) {
    return option;
  }
  const Expected<std::vector<std::byte>> bytes = io::read_file(option.substr(1));
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

void add_device_options(CLI::App& command, DeviceOptions& options) {
  command.add_option("--device", options.device, "sim: the simulated MI355X; hip: the first GPU of this machine")
      ->check(CLI::IsMember({"sim", "hip"}))
      ->capture_default_str();
  add_simulator_options(command, options);
}

void add_simulator_options(CLI::App& command, DeviceOptions& options) {
  constexpr const char* kGroup = "Simulator";
  command
      .add_flag("--strict", options.strict,
                "Report every read of a result that was not waited for, of an unwritten register or LDS byte, every "
                "unordered pair of LDS accesses and every missing wait state (docs/simulator.md)")
      ->group(kGroup);
  command.add_option("--threads", options.threads, "Simulator threads; results do not depend on it. 0: one per core")
      ->check(CLI::Range(0U, 1024U))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--landing", options.landing,
                  "When loads and direct-to-LDS loads arrive: late (default: when their wave waits; LDS reads at "
                  "issue), latest "
                  "(LDS reads wait too), early (at issue) or random:SEED")
      ->group(kGroup);
  command
      .add_option("--interleave", options.interleave,
                  "Which wave executes next: round-robin (default: by instruction), to-barrier or random:SEED")
      ->group(kGroup);
  std::string rules = "Reading of a rule on which sources disagree, the default first:";
  for (const std::string& choice : io::rule_choices()) {
    rules += " " + choice;
  }
  command.add_option("--rule", options.rules, rules + ". May be repeated")->group(kGroup)->allow_extra_args(false);
  command.add_option("--max-findings", options.max_findings, "Strict mode stops after this many findings")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--max-instructions", options.max_instructions,
                  "Instructions after which a wave is stopped as hanging; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(kGroup);
}

Expected<SimOptions> simulator_options(const DeviceOptions& options) {
  SimOptions result;
  result.checks = options.strict ? SimChecks::kStrict : SimChecks::kPlain;
  result.threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  result.max_findings = options.max_findings;
  result.max_instructions = options.max_instructions;
  Status status;
  if (options.landing) {
    status = io::set_landing(*options.landing, result);
  }
  if (status && options.interleave) {
    status = io::set_interleave(*options.interleave, result);
  }
  for (const std::string& rule : options.rules) {
    if (status) {
      status = io::set_rule(rule, result.rules);
    }
  }
  if (!status) {
    return tl::unexpected<Error>(status.error());
  }
  return result;
}

Expected<std::shared_ptr<Device>> open_device(const DeviceOptions& options) {
  if (options.device == "sim") {
    return open_simulator(options);
  }
  if (options.strict || options.landing || options.interleave || !options.rules.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--strict, --landing, --interleave and --rule need the simulator; use --device sim");
  }
  return HipDevice::create();
}

Expected<std::shared_ptr<SimDevice>> open_simulator(const DeviceOptions& options) {
  Expected<SimOptions> chosen = simulator_options(options);
  if (!chosen) {
    return tl::unexpected<Error>(chosen.error());
  }
  chosen->progress = simulation_progress();
  return SimDevice::create(*chosen);
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace zyfa::tools
