// Pictures of a predicted run (zyfa/profile.h), described in docs/pictures.md. All of them say that they are
// *predicted*.
//
//   ProfileOptions options; options.events = ProfileOptions::Events::kLongest;
//   Expected<LaunchProfile> profile = device->last_profile(options);
//   Expected<std::string> page = draw(*profile, Picture::kPage);
#pragma once

#include <string>

#include "zyfa/error.h"
#include "zyfa/export.h"
#include "zyfa/profile.h"

namespace zyfa {

enum class Picture {
  kTrace,  // Chrome trace JSON, for Perfetto
  kPage,   // HTML, complete in itself: two waves of a SIMD and its matrix pipe
  kText,   // the same for a terminal
};

struct PictureOptions {
  std::string window =
      {};                  // "FROM:TO" in cycles, the end left out; empty: one trip of the steady loop, else everything
  unsigned columns = 100;  // kText: of the chart at most, 20 to 1000
};

// Of the recorded workgroup that takes longest. kInvalidArgument: a profile without events (ProfileOptions::Events), a
// window that is malformed, in which nothing issues, or (kTrace, kPage) too much; a width out of range.
// kDeviceUnavailable: libzyfa_jit was not found.
[[nodiscard]] ZYFA_API Expected<std::string> draw(const LaunchProfile& profile, Picture picture,
                                                  const PictureOptions& options = {});

}  // namespace zyfa
