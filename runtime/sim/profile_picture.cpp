#include "runtime/sim/profile_picture.h"

#include <cstdint>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/sim/picture/loop_html.h"
#include "runtime/sim/picture/loop_text.h"
#include "runtime/sim/picture/trace_json.h"

namespace zyfa::sim {
namespace {

using picture::Execution;
using picture::Window;

std::optional<Window> middle_trip(const LaunchProfile& profile) {
  if (!profile.loop) return std::nullopt;
  std::vector<std::vector<std::uint64_t>> passes(profile.waves.size());
  for (const ProfileEvent& e : profile.events) {
    if (e.instruction < profile.instructions.size() && e.wave < passes.size() &&
        profile.instructions[e.instruction].offset == profile.loop->head)
      passes[e.wave].push_back(e.issue);
  }
  for (const std::vector<std::uint64_t>& of : passes) {
    if (of.size() < 3) continue;
    const std::size_t middle = (of.size() - 1) / 2;
    return Window{of[middle], of[middle + 1]};
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> facts_of(const LaunchProfile& profile) {
  if (!profile.loop) return {};
  const ProfileLoop& loop = *profile.loop;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"cycles a trip, mean of the loop", fmt::format("{:.0f}", loop.cycles)}};
  if (loop.useful_busy > 0) {
    facts.emplace_back("matrix pipe busy with Q.K and P.V, mean of the loop",
                       fmt::format("{:.1f}%", 100 * loop.useful_busy));
    facts.emplace_back("cycles a tile of 128 keys", fmt::format("{:.0f}", loop.tile_cycles));
  }
  for (const std::string& parameter : profile.parameters) {
    const std::size_t equals = parameter.find('=');
    if (equals != parameter.npos) facts.emplace_back(parameter.substr(0, equals), parameter.substr(equals + 1));
  }
  return facts;
}

Expected<std::string> draw_checked(const LaunchProfile& profile, Picture kind, const PictureOptions& options) {
  if (profile.events.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a profile without events cannot be drawn; ProfileOptions::Events::kLongest keeps them");
  }
  std::optional<Window> window;
  if (!options.window.empty()) {
    const Expected<Window> asked = picture::parse_window(options.window);
    if (!asked) return tl::unexpected(asked.error());
    window = *asked;
  }
  const Execution execution = execution_of(profile);
  switch (kind) {
    case Picture::kTrace:
      return picture::trace_json(execution, {.window = window});
    case Picture::kPage:
      return picture::loop_html(execution, window);
    case Picture::kText:
      return picture::loop_text(execution, {.window = window, .columns = options.columns});
  }
  return make_error(ErrorCode::kInvalidArgument,
                    fmt::format("picture {}; allowed are those of zyfa::Picture", static_cast<int>(kind)));
}

}  // namespace

Execution execution_of(const LaunchProfile& profile) {
  Execution e;
  e.kernel = profile.kernel;
  e.facts = facts_of(profile);
  for (const ProfileInstruction& i : profile.instructions)
    e.instructions.push_back({i.offset, picture::unit_of(i.text), i.text, i.stage, i.comment});
  for (const ProfileWave& w : profile.waves) e.waves.push_back({profile.longest, w.index, w.simd});
  e.stalls = profile.stall_names;
  for (const ProfileEvent& v : profile.events)
    e.spans.push_back({v.wave, v.instruction, v.issue, v.unit_start, v.end, v.stalled, v.stall});
  e.cycles = profile.cycles;
  e.loop = middle_trip(profile);
  return e;
}

Expected<std::string> draw_profile(const LaunchProfile& profile, Picture kind, const PictureOptions& options) {
  try {
    return draw_checked(profile, kind, options);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kDeviceError, "no host memory for the picture; a narrower window needs less");
  }
}

}  // namespace zyfa::sim
