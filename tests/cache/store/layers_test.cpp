// Layers, modes, and directories that cannot be written, vanish, or were never named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

using testing::Contains;
using testing::HasSubstr;

void fill(const std::string& root, std::initializer_list<std::uint64_t> numbers) {
  const auto store = Store::open(root, LayerAccess::kWritable).value();
  for (const std::uint64_t number : numbers) ASSERT_TRUE(store->publish(entry_of(number)));
}

class Layers : public testing::Test {
 protected:
  [[nodiscard]] std::string root() const { return directory_.path("cache"); }
  CacheOptions logged() {
    CacheOptions options;
    options.observer = log_.observer();
    return options;
  }
  TemporaryDirectory directory_;
  EventLog log_;
};

TEST_F(Layers, ASecondProcessHitsTheDisk) {
  {
    Cache cache(config_for(root()), {});
    EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kBuilt);
  }
  Cache cache(config_for(root()), {});
  const Lookup hit = cache.get_or_build(key_of(1), builder_of(1)).value();
  EXPECT_EQ(hit.source, CacheSource::kDisk);
  EXPECT_EQ(hit.layer, root());
  EXPECT_TRUE(holds(*hit.entry, object_of(1)));
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kMemory);
  EXPECT_EQ(cache.stats().disk_hits, 1u);
  EXPECT_EQ(cache.stats().misses, 0u);
}

TEST_F(Layers, EveryLayerIsAskedAndOnlyTheWritableOneIsWritten) {
  fill(directory_.path("a"), {1});
  fill(directory_.path("b"), {2});
  fill(root(), {3});
  Cache cache(config_for(root(), {directory_.path("a"), directory_.path("b")}), {});
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->layer, directory_.path("a"));
  EXPECT_EQ(cache.get_or_build(key_of(2), builder_of(2))->layer, directory_.path("b"));
  EXPECT_EQ(cache.get_or_build(key_of(3), builder_of(3))->layer, root());
  EXPECT_EQ(cache.get_or_build(key_of(4), builder_of(4))->source, CacheSource::kBuilt);
  cache.flush();
  EXPECT_EQ(count_files(root() + "/v1", key_of(4).name()), 1u);
  EXPECT_EQ(cache.layers()[0]->list()->size(), 2u);
  EXPECT_EQ(cache.layers()[1]->list()->size(), 1u);
  EXPECT_EQ(cache.layers()[2]->list()->size(), 1u);
  const auto stats = cache.stats();
  ASSERT_EQ(stats.hits_by_layer.size(), 3u);
  for (const auto& [layer, hits] : stats.hits_by_layer) EXPECT_EQ(hits, 1u) << layer;
}

TEST_F(Layers, ADamagedReadOnlyEntryIsLeftAndTheNextLayerAsked) {
  fill(directory_.path("a"), {1});
  fill(directory_.path("b"), {1});
  const std::string damaged = entry_path(directory_.path("a"), key_of(1));
  write_text(damaged, "damaged");
  Cache cache(config_for(root(), {directory_.path("a"), directory_.path("b")}), logged());
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->layer, directory_.path("b"));
  EXPECT_EQ(read_text(damaged), "damaged");
  EXPECT_EQ(cache.stats().rejected, 1u);
}

TEST_F(Layers, ReadOnlyModeWritesNothing) {
  fill(root(), {1});
  CacheConfig config = config_for(root());
  config.mode = CacheMode::kReadOnly;
  write_text(entry_path(root(), key_of(2)), "damaged");
  Cache cache(config, logged());
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kDisk);
  EXPECT_EQ(cache.get_or_build(key_of(2), builder_of(2))->source, CacheSource::kBuilt);
  EXPECT_EQ(cache.get_or_build(key_of(3), builder_of(3))->source, CacheSource::kBuilt);
  cache.flush();
  EXPECT_EQ(read_text(entry_path(root(), key_of(2))), "damaged");
  EXPECT_EQ(count_files(root() + "/v1", ""), 2u);
}

TEST_F(Layers, OffTouchesNoDirectory) {
  fill(root(), {1});
  CacheConfig config = config_for(root());
  config.mode = CacheMode::kOff;
  Cache cache(config, logged());
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kBuilt);
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kMemory);
  EXPECT_TRUE(cache.layers().empty());
  EXPECT_TRUE(log_.events().empty());
}

TEST_F(Layers, RequireNeverBuildsAndSaysHowToFill) {
  fill(root(), {1});
  CacheConfig config = config_for(root());
  config.mode = CacheMode::kRequire;
  CacheOptions options;
  options.prewarm_hint = [](const Key& key) { return "zyfa-jit prewarm for " + key.name(); };
  Cache cache(config, std::move(options));
  bool built = false;
  const Builder build = [&]() -> Expected<BuiltEntry> {
    built = true;
    return builder_of(2)();
  };
  EXPECT_EQ(cache.get_or_build(key_of(1), build)->source, CacheSource::kDisk);
  const auto miss = cache.get_or_build(key_of(2), build);
  ASSERT_FALSE(miss);
  EXPECT_FALSE(built);
  EXPECT_EQ(miss.error().code, ErrorCode::kCacheMiss);
  EXPECT_THAT(miss.error().details, Contains("target=gfx950:sramecc+:xnack-"));
  EXPECT_THAT(miss.error().details, Contains("number=2"));
  EXPECT_THAT(miss.error().details, Contains("zyfa-jit prewarm for " + key_of(2).name()));
  EXPECT_EQ(cache.stats().misses, 1u);
}

TEST_F(Layers, NoDirectoryNamedMeansMemoryOnlyAndOneWarning) {
  const CacheConfig config = config_from_environment([](const char*) { return nullptr; }).value();
  Cache cache(config, logged());
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(cache.get_or_build(key_of(i), builder_of(i)));
  cache.flush();
  ASSERT_EQ(log_.events().size(), 1u);
  EXPECT_EQ(log_.events()[0].kind, CacheEventKind::kNoWritableLayer);
}

TEST_F(Layers, AHomeThatDoesNotExistStillHitsThePrebuiltLayer) {
  fill(directory_.path("prebuilt"), {1});
  const std::string home = directory_.path("nonexistent");
  const std::string path = directory_.path("prebuilt") + ":";
  const CacheConfig config = config_from_environment([&](const char* name) -> const char* {
                               if (std::string_view(name) == "HOME") return home.c_str();
                               if (std::string_view(name) == "ZYFA_CACHE_PATH") return path.c_str();
                               return nullptr;
                             }).value();
  Cache cache(config, logged());
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kDisk);
  EXPECT_EQ(cache.get_or_build(key_of(2), builder_of(2))->source, CacheSource::kBuilt);
  cache.flush();
  ASSERT_EQ(log_.events().size(), 1u);
  EXPECT_EQ(log_.events()[0].kind, CacheEventKind::kLayerUnusable);
  EXPECT_THAT(log_.events()[0].error.message, HasSubstr(home));
  EXPECT_FALSE(std::filesystem::exists(home));
}

TEST_F(Layers, AVanishedDirectoryMeansMemoryOnlyAndOneWarning) {
  Cache cache(config_for(root()), logged());
  EXPECT_TRUE(cache.get_or_build(key_of(0), builder_of(0)));
  cache.flush();
  std::filesystem::remove_all(root());
  for (std::uint64_t i = 1; i < 6; ++i) {
    EXPECT_EQ(cache.get_or_build(key_of(i), builder_of(i))->source, CacheSource::kBuilt);
    EXPECT_EQ(cache.get_or_build(key_of(i), builder_of(i))->source, CacheSource::kMemory);
  }
  cache.flush();
  ASSERT_EQ(log_.events().size(), 1u);
  EXPECT_EQ(log_.events()[0].kind, CacheEventKind::kPublishFailed);
  EXPECT_EQ(cache.stats().publish_failures, 5u);
  EXPECT_EQ(cache.stats().published, 1u);
}

TEST_F(Layers, ListNamesTheEntriesOnly) {
  fill(root(), {1, 2});
  write_text(root() + "/v1/notes.txt", "x");
  write_text(root() + "/v1/.tmp-1-1", "x");
  write_text(root() + "/v1/" + std::string(32, 'Z') + ".zyfa", "x");
  const auto listed = Store::open(root(), LayerAccess::kReadOnly).value()->list().value();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_LT(listed[0].name, listed[1].name);
  EXPECT_EQ(listed[0].size, entry_of(1).file_bytes().size());
  EXPECT_EQ(std::min(key_of(1).name(), key_of(2).name()), listed[0].name);
}

TEST_F(Layers, AReadOnlyStoreRefusesToPublish) {
  fill(root(), {1});
  const auto store = Store::open(root(), LayerAccess::kReadOnly).value();
  EXPECT_FALSE(store->publish(entry_of(2)));
  EXPECT_EQ(store->list()->size(), 1u);
}

}  // namespace
}  // namespace zyfa::cache
