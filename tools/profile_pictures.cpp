#include "tools/profile_pictures.h"

#include <span>

#include "runtime/io/file.h"
#include "zyfa/picture.h"

namespace zyfa::tools {
namespace {

Status save(const LaunchProfile& profile, Picture picture, const PictureRequest& request, const std::string& path) {
  if (path.empty()) return {};
  const Expected<std::string> text = draw(profile, picture, {.window = request.window});
  if (!text) return tl::unexpected<Error>(text.error());
  return io::write_file(path, {std::as_bytes(std::span(*text))});
}

}  // namespace

void add_picture_options(CLI::App& command, PictureRequest& request) {
  constexpr const char* kGroup = "Pictures";
  command
      .add_option("--html", request.html,
                  "File for a page of the steady loop: two waves of a SIMD and its matrix pipe (docs/pictures.md)")
      ->check(writable_file())
      ->group(kGroup);
  command.add_option("--trace", request.trace, "File for a Chrome trace of all waves and units, for ui.perfetto.dev")
      ->check(writable_file())
      ->group(kGroup);
  command.add_flag("--chart", request.chart, "Print the page's picture as text, too")->group(kGroup);
  command
      .add_option("--window", request.window,
                  "FROM:TO, the cycles of the run that are drawn. Default: one trip of the steady loop")
      ->group(kGroup);
}

Status check_pictures(const PictureRequest& request) {
  if (!request.html.empty() && request.html == request.trace)
    return make_error(ErrorCode::kInvalidArgument, "--html and --trace name one file: " + request.html);
  if (request.window.empty() || request.any()) return {};
  return make_error(ErrorCode::kInvalidArgument, "--window is for --html, --trace and --chart; none was given");
}

Expected<std::string> make_pictures(const LaunchProfile& profile, const PictureRequest& request) {
  if (const Status saved = save(profile, Picture::kPage, request, request.html); !saved)
    return tl::unexpected<Error>(saved.error());
  if (const Status saved = save(profile, Picture::kTrace, request, request.trace); !saved)
    return tl::unexpected<Error>(saved.error());
  return request.chart ? draw(profile, Picture::kText, {.window = request.window}) : std::string();
}

}  // namespace zyfa::tools
