// A launch's profile as the data that pictures are drawn from.
#pragma once

#include <string>

#include "runtime/sim/picture/execution.h"
#include "zyfa/picture.h"

namespace zyfa::sim {

// The loop is a trip from the middle of the first wave that passes its head three times.
[[nodiscard]] picture::Execution execution_of(const LaunchProfile& profile);

// As zyfa::draw().
[[nodiscard]] Expected<std::string> draw_profile(const LaunchProfile& profile, Picture picture,
                                                 const PictureOptions& options);

}  // namespace zyfa::sim
