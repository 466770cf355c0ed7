#include "cache/config.h"

#include <array>
#include <cstdlib>
#include <utility>

namespace zyfa::cache {
namespace {

constexpr std::array kModes = {
    std::pair{CacheMode::kNormal, std::string_view("normal")},
    std::pair{CacheMode::kReadOnly, std::string_view("readonly")},
    std::pair{CacheMode::kOff, std::string_view("off")},
    std::pair{CacheMode::kRequire, std::string_view("require")},
};

std::string_view value_of(const EnvironmentLookup& lookup, const char* name) {
  const char* value = lookup(name);
  return value ? std::string_view(value) : std::string_view();
}

// Empty when neither variable gives an absolute path.
std::string default_directory(const EnvironmentLookup& lookup) {
  if (const auto cache_home = value_of(lookup, "XDG_CACHE_HOME"); cache_home.starts_with('/')) {
    return std::string(cache_home) + "/zyfa";
  }
  if (const auto home = value_of(lookup, "HOME"); home.starts_with('/')) return std::string(home) + "/.cache/zyfa";
  return {};
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t colon = list.find(':');
    parts.emplace_back(list.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    list.remove_prefix(colon + 1);
  }
}

}  // namespace

Expected<CacheMode> parse_cache_mode(std::string_view text) {
  for (const auto& [mode, name] : kModes) {
    if (text == name) return mode;
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "ZYFA_CACHE is '" + std::string(text) + "'; allowed are 'normal', 'readonly', 'off' and 'require'");
}

Expected<CacheConfig> config_from_environment(const EnvironmentLookup& lookup) {
  CacheConfig config;
  if (const auto mode = value_of(lookup, "ZYFA_CACHE"); !mode.empty()) {
    const auto parsed = parse_cache_mode(mode);
    if (!parsed) return tl::unexpected(parsed.error());
    config.mode = *parsed;
  }

  const auto list = value_of(lookup, "ZYFA_CACHE_PATH");
  std::vector<std::string> layers = split(list);
  config.writable_layer = std::move(layers.back());
  layers.pop_back();
  if (config.writable_layer.empty()) config.writable_layer = default_directory(lookup);
  config.read_only_layers = std::move(layers);

  const auto absolute = [](const std::string& path) { return path.starts_with('/'); };
  for (const std::string& path : config.read_only_layers) {
    if (!absolute(path)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "ZYFA_CACHE_PATH is '" + std::string(list) + "', whose layer '" + path +
                            "' is not an absolute path; give absolute directories separated by ':'");
    }
  }
  if (!config.writable_layer.empty() && !absolute(config.writable_layer)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "ZYFA_CACHE_PATH is '" + std::string(list) + "', whose last layer '" + config.writable_layer +
                          "' is not an absolute path; give absolute directories separated by ':'");
  }
  return config;
}

Expected<CacheConfig> config_from_environment() {
  return config_from_environment([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace zyfa::cache
