// The pictures that zyfa-jit profile is asked for.
#pragma once

#include <string>

#include "tools/cli.h"
#include "zyfa/profile.h"

namespace zyfa::tools {

struct PictureRequest {
  std::string trace, html, window;  // files, FROM:TO; empty: none
  bool chart = false;

  [[nodiscard]] bool any() const { return chart || !trace.empty() || !html.empty(); }
};

void add_picture_options(CLI::App& command, PictureRequest& request);

// kInvalidArgument: a window without a picture, one file for two pictures.
[[nodiscard]] Status check_pictures(const PictureRequest& request);

// Writes the files; the chart, or nothing when none was asked for.
[[nodiscard]] Expected<std::string> make_pictures(const LaunchProfile& profile, const PictureRequest& request);

}  // namespace zyfa::tools
