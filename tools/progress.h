// A progress bar on stderr for simulations that take longer than a few seconds; nothing where stderr is no terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace zyfa::tools {

// For SimOptions::progress; empty where stderr is no terminal.
[[nodiscard]] std::function<void(std::uint64_t ended, std::uint64_t workgroups)> simulation_progress();

// The bar's text, e.g. "[#####...............] 128 of 512 workgroups, 6 s, about 18 s left".
[[nodiscard]] std::string progress_text(std::uint64_t ended, std::uint64_t workgroups, double seconds);

}  // namespace zyfa::tools
