// Bad settings and unusable directories: a typed error that names the value and what is allowed, never an abort.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <system_error>
#include <thread>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Expected<CacheConfig> config_with(const std::string& name, const std::string& value) {
  return config_from_environment([&](const char* asked) { return name == asked ? value.c_str() : nullptr; });
}

TEST(CacheErrors, AnUnknownMode) {
  for (const char* value : {"on", "NORMAL", "read-only", " off", "1"}) {
    const auto config = config_with("ZYFA_CACHE", value);
    ASSERT_FALSE(config) << value;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(config.error().message,
                AllOf(HasSubstr("ZYFA_CACHE"), HasSubstr(std::string("'").append(value).append("'")),
                      HasSubstr("'normal'"), HasSubstr("'readonly'"), HasSubstr("'off'"), HasSubstr("'require'")));
  }
}

TEST(CacheErrors, LayersThatAreNotAbsolute) {
  for (const char* value : {"relative", "/a:relative", "relative:/w", "/a::/w", ":/w", "~/cache"}) {
    const auto config = config_with("ZYFA_CACHE_PATH", value);
    ASSERT_FALSE(config) << value;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(config.error().message, AllOf(HasSubstr("ZYFA_CACHE_PATH"), HasSubstr(value), HasSubstr("absolute")));
  }
}

TEST(CacheErrors, RootsThatAreNoDirectories) {
  const TemporaryDirectory directory;
  write_text(directory.path("file"), "x");
  for (const LayerAccess access : {LayerAccess::kReadOnly, LayerAccess::kWritable}) {
    const auto file = Store::open(directory.path("file"), access);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::kIoError);
    EXPECT_THAT(file.error().message, AllOf(HasSubstr(directory.path("file")), HasSubstr("Not a directory")));
    EXPECT_EQ(Store::open("", access).error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(Store::open("relative", access).error().message, HasSubstr("'relative' is not an absolute path"));
    EXPECT_FALSE(Store::open(directory.path("file/below"), access));
    EXPECT_FALSE(Store::open(directory.path(std::string(5000, 'x')), access));
  }
}

TEST(CacheErrors, AReadOnlyLayerOfAnotherFormatVersion) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path("prebuilt/v9"));
  const auto store = Store::open(directory.path("prebuilt"), LayerAccess::kReadOnly);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(store.error().message, HasSubstr("prebuilt/v1' does not exist"));
}

TEST(CacheErrors, AnEmptyObjectFromABuilder) {
  CacheConfig off;
  off.mode = CacheMode::kOff;
  Cache cache(off, {});
  const auto empty = cache.get_or_build(key_of(1), []() -> Expected<BuiltEntry> { return BuiltEntry{}; });
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(empty.error().message, HasSubstr("code object has 0 bytes"));
}

TEST(CacheErrors, AMissThatMayNotBeBuilt) {
  CacheConfig off;
  off.mode = CacheMode::kOff;
  Cache cache(off, {});
  const auto miss = cache.get(key_of(1));
  ASSERT_FALSE(miss);
  EXPECT_EQ(miss.error().code, ErrorCode::kCacheMiss);
  EXPECT_THAT(miss.error().message, HasSubstr(key_of(1).name()));
  EXPECT_THAT(miss.error().details, testing::Contains("number=1"));
}

TEST(CacheErrors, TheMissNamesALayerThatCouldNotBeUsed) {
  CacheConfig config = config_for("/nonexistent/zyfa/cache");
  config.mode = CacheMode::kRequire;
  Cache cache(config, {});
  const auto miss = cache.get(key_of(1));
  ASSERT_FALSE(miss);
  EXPECT_THAT(miss.error().details,
              testing::Contains(HasSubstr("unusable: cache directory '/nonexistent/zyfa/cache'")));
}

TEST(CacheErrors, WithoutAThreadEntriesArePublishedByTheCaller) {
  const TemporaryDirectory directory;
  const NoNewThreads none;
  ASSERT_THROW(std::thread([] {}).join(), std::system_error);
  Cache cache(config_for(directory.path("cache")), {});
  const auto built = cache.get_or_build(key_of(1), builder_of(1));
  ASSERT_TRUE(built);
  EXPECT_TRUE(holds(*built->entry, object_of(1)));
  EXPECT_EQ(count_files(directory.path("cache/v1"), key_of(1).name()), 1u);
  EXPECT_EQ(count_files(directory.path("cache/v1/locks"), ""), 0u);
  cache.flush();
  EXPECT_EQ(cache.stats().published, 1u);
}

TEST(CacheErrors, APublishThatThrowsIsCounted) {
  const TemporaryDirectory directory;
  CacheOptions options;
  options.publish_hook = [](PublishStep) -> Status { throw std::bad_alloc(); };
  Cache cache(config_for(directory.path("cache")), std::move(options));
  EXPECT_TRUE(cache.get_or_build(key_of(1), builder_of(1)));
  cache.flush();
  EXPECT_TRUE(cache.get_or_build(key_of(2), builder_of(2)));
  cache.flush();
  EXPECT_EQ(cache.stats().publish_failures, 2u);
  EXPECT_EQ(cache.stats().published, 0u);
  EXPECT_EQ(count_files(directory.path("cache/v1/locks"), ""), 0u);
}

}  // namespace
}  // namespace zyfa::cache
