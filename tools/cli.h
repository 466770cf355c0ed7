// What the subcommands of zyfa-jit share: exit codes, output forms, errors, common options.
//
// A subcommand is a function that adds itself to the application; when it is chosen, its callback stores the work in
// `Chosen`, and main() runs it once parsing is over. Results go to stdout, errors and progress to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/device.h"
#include "zyfa/error.h"
#include "zyfa/problem.h"

namespace zyfa::tools {

using OrderedJson = nlohmann::ordered_json;

// Exit codes of every subcommand. `prewarm` alone counts its failures instead.
enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,       // bad usage, an unreadable file, a compile error: anything without a code of its own
  kNotSupported = 2,  // no kernel for the problem, or an instruction the simulator does not know
  kFindings = 3,      // a memory fault, a strict-mode finding, or a finding of the static verifier
  kWrongResult = 4,   // `run`: outside the tolerance, or launches that differ
};

// The paragraph about exit codes that ends a subcommand's help.
inline constexpr std::string_view kExitCodeHelp =
    "Exit codes: 0 success; 1 error (usage, files, compilation, device); 2 not supported, named;\n"
    "3 memory fault or finding; 4 wrong result (run only).";

enum class OutputForm { kText, kJson };

using Work = std::function<int()>;
using Chosen = Work;

// Help in at most 120 columns, with one name for the placement option.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  static constexpr std::size_t kHelpColumns = 118;
};

// "zyfa-jit: error: ..." and the details to stderr; with kJson also an object {"error": {...}} to stdout. Returns the
// exit code that belongs to the error.
int report(const Error& error, OutputForm form);
// The same with a place in front of the message, e.g. a line of a shape file.
int report(const Error& error, OutputForm form, std::string_view where);

[[nodiscard]] OrderedJson to_json(const Error& error);
void print_json(const OrderedJson& value);

// Adds a subcommand whose help ends with examples and exit codes, and its --json flag.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& purpose, const std::string& examples,
                      OutputForm& form);

// A --problem option's text; help of the grammar.
inline constexpr const char* kProblemHelp =
    "What to compute, as comma-separated words: bf16 or fp8e4m3, d=N or d=N/M (head dim of q and k / of v), full or "
    "causal, lse, compute=fp8, length=short; for FP8 also p=exact, unscaled, form=folded|fma, qk=int8, near=bf16, "
    "sum=sparse|dense, no-rotate, smooth-k, scales=tensor, u8=truncate (zyfa/problem.h). Example: "
    "bf16,d=128,causal,lse";
inline constexpr const char* kPlacementHelp =
    "Placement to use instead of the table's choice: a row's name (naive, pingpong, wide; FP8: fp8_naive, "
    "fp8_pingpong, "
    "fp8_wide; mixed: fp8_near_...; explain lists all), a placement's text form, or @FILE that holds one";

// "a,b" as "a" and "b"; empty words stay.
[[nodiscard]] std::vector<std::string> comma_words(const std::string& text);

// Check of an option that names a file to write, before the work that it is for: a name, and a folder that is there.
[[nodiscard]] CLI::Validator writable_file();

// Adds --placement. --schedule is taken too, and not in the help: in `dump` it asks for a printout.
void add_placement_option(CLI::App& command, std::string& placement);
// A placement option's value with @FILE replaced by the file's text.
[[nodiscard]] Expected<std::string> placement_text(const std::string& option);

// Options of subcommands that use a device.
struct DeviceOptions {
  std::string device = "sim";
  bool strict = false;
  unsigned threads = 0;  // of the simulator; 0 = one per core
  std::optional<std::string> landing, interleave;
  std::vector<std::string> rules;
  std::uint64_t max_instructions = SimOptions{}.max_instructions;
  std::size_t max_findings = SimOptions{}.max_findings;
};
void add_device_options(CLI::App& command, DeviceOptions& options);
// Those of the simulator alone.
void add_simulator_options(CLI::App& command, DeviceOptions& options);
[[nodiscard]] Expected<SimOptions> simulator_options(const DeviceOptions& options);
[[nodiscard]] Expected<std::shared_ptr<Device>> open_device(const DeviceOptions& options);
[[nodiscard]] Expected<std::shared_ptr<SimDevice>> open_simulator(const DeviceOptions& options);

// `value` and a unit, e.g. "1 problem", "2 problems".
[[nodiscard]] std::string counted(std::size_t count, std::string_view noun);

}  // namespace zyfa::tools
