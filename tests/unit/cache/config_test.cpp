// Where the cache lives and its mode, from options and environment.
#include "cache/config.h"

#include <gtest/gtest.h>

#include <map>

namespace zyfa::cache {
namespace {

Expected<CacheConfig> config_of(const std::map<std::string, std::string>& variables) {
  return config_from_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Config, DefaultsFollowXdgThenHome) {
  EXPECT_EQ(config_of({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}})->writable_layer, "/x/zyfa");
  EXPECT_EQ(config_of({{"HOME", "/h"}})->writable_layer, "/h/.cache/zyfa");
  EXPECT_EQ(config_of({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}})->writable_layer, "/h/.cache/zyfa");
  EXPECT_EQ(config_of({{"XDG_CACHE_HOME", ""}, {"HOME", "relative"}})->writable_layer, "");
  const CacheConfig none = config_of({}).value();
  EXPECT_EQ(none.writable_layer, "");
  EXPECT_TRUE(none.read_only_layers.empty());
  EXPECT_EQ(none.mode, CacheMode::kNormal);
}

TEST(Config, TheLastLayerOfThePathIsWritable) {
  const CacheConfig one = config_of({{"ZYFA_CACHE_PATH", "/w"}, {"HOME", "/h"}}).value();
  EXPECT_EQ(one.writable_layer, "/w");
  EXPECT_TRUE(one.read_only_layers.empty());
  const CacheConfig three = config_of({{"ZYFA_CACHE_PATH", "/a:/b:/w"}, {"HOME", "/h"}}).value();
  EXPECT_EQ(three.writable_layer, "/w");
  EXPECT_EQ(three.read_only_layers, (std::vector<std::string>{"/a", "/b"}));
  const CacheConfig by_default = config_of({{"ZYFA_CACHE_PATH", "/a:"}, {"HOME", "/h"}}).value();
  EXPECT_EQ(by_default.writable_layer, "/h/.cache/zyfa");
  EXPECT_EQ(by_default.read_only_layers, (std::vector<std::string>{"/a"}));
}

TEST(Config, ModesByName) {
  EXPECT_EQ(config_of({{"ZYFA_CACHE", "normal"}})->mode, CacheMode::kNormal);
  EXPECT_EQ(config_of({{"ZYFA_CACHE", "off"}})->mode, CacheMode::kOff);
  EXPECT_EQ(config_of({{"ZYFA_CACHE", "readonly"}})->mode, CacheMode::kReadOnly);
  EXPECT_EQ(config_of({{"ZYFA_CACHE", "require"}})->mode, CacheMode::kRequire);
  EXPECT_EQ(config_of({{"ZYFA_CACHE", ""}})->mode, CacheMode::kNormal);
}

}  // namespace
}  // namespace zyfa::cache
