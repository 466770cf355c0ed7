// Where the cache lives and how it behaves, from the environment.
//
//   ZYFA_CACHE       normal (default) | readonly | off | require
//   ZYFA_CACHE_PATH  absolute directories separated by ':'. The last is the writable layer, the others are read-only.
//   An
//                    empty last one ("/opt/prebuilt:") stands for the default directory.
//   default          $XDG_CACHE_HOME/zyfa, or $HOME/.cache/zyfa. A relative value of either variable is ignored, as the
//   XDG
//                    base directory specification asks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "zyfa/error.h"

namespace zyfa::cache {

enum class CacheMode : std::uint8_t {
  kNormal,    // read every layer, build what is missing, publish it
  kReadOnly,  // read every layer, build what is missing, write nothing
  kOff,       // no layer: memory only
  kRequire,   // read every layer; a miss is ErrorCode::kCacheMiss, nothing is built
};

[[nodiscard]] Expected<CacheMode> parse_cache_mode(std::string_view text);  // kInvalidArgument

struct CacheConfig {
  CacheMode mode = CacheMode::kNormal;
  std::vector<std::string> read_only_layers;
  std::string writable_layer;  // empty: memory and read-only layers only
  // How long to wait for another process that builds the same key before building it here as well.
  std::chrono::milliseconds lock_limit{10'000};
};

// Gives the value of a variable, or nullptr; std::getenv has this shape.
using EnvironmentLookup = std::function<const char*(const char*)>;

// kInvalidArgument: names the variable, its value and what is allowed.
[[nodiscard]] Expected<CacheConfig> config_from_environment(const EnvironmentLookup& lookup);
[[nodiscard]] Expected<CacheConfig> config_from_environment();

}  // namespace zyfa::cache
