// The subcommands of zyfa-jit; each adds itself to the application and stores its work in `chosen` when it is named.
#pragma once

#include "tools/cli.h"

namespace zyfa::tools {

void add_run(CLI::App& app, Chosen& chosen);
void add_accuracy(CLI::App& app, Chosen& chosen);
void add_prewarm(CLI::App& app, Chosen& chosen);
void add_list(CLI::App& app, Chosen& chosen);
void add_dump(CLI::App& app, Chosen& chosen);
void add_explain(CLI::App& app, Chosen& chosen);
void add_simulate(CLI::App& app, Chosen& chosen);
void add_profile(CLI::App& app, Chosen& chosen);
void add_verify(CLI::App& app, Chosen& chosen);
void add_tune(CLI::App& app, Chosen& chosen);

}  // namespace zyfa::tools
