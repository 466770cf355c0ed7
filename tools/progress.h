// Progress on stderr: a bar for simulations that take longer than a few seconds, and the step of a command that has
// several; nothing where stderr is no terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace zyfa::tools {

// For SimOptions::progress; empty where stderr is no terminal.
[[nodiscard]] std::function<void(std::uint64_t ended, std::uint64_t workgroups)> simulation_progress();

// The bar's text, e.g. "[#####...............] 128 of 512 workgroups, 6 s, about 18 s left".
[[nodiscard]] std::string progress_text(std::uint64_t ended, std::uint64_t workgroups, double seconds);

// Shows what a command of several steps does now, on a line that the next one replaces; an empty text clears it.
[[nodiscard]] std::function<void(const std::string& what)> step_progress();

}  // namespace zyfa::tools
