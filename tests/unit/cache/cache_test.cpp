// Memory layer and single flight: one build a key, failures reach every waiter.
#include "cache/cache.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

CacheConfig memory_only() {
  CacheConfig config;
  config.mode = CacheMode::kOff;
  return config;
}

TEST(Cache, BuildsThenHitsMemory) {
  Cache cache(memory_only(), {});
  const Lookup built = cache.get_or_build(key_of(1), builder_of(1)).value();
  EXPECT_EQ(built.source, CacheSource::kBuilt);
  EXPECT_TRUE(holds(*built.entry, object_of(1)));
  EXPECT_EQ(as_text(built.entry->metadata()), "metadata");
  const Lookup hit = cache.get_or_build(key_of(1), builder_of(2)).value();
  EXPECT_EQ(hit.source, CacheSource::kMemory);
  EXPECT_EQ(hit.entry, built.entry);

  const CacheStats stats = cache.stats();
  EXPECT_EQ(stats.builds, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.memory_hits, 1u);
  EXPECT_EQ(stats.disk_hits, 0u);
}

// Two keys with one hash: what xxHash does not rule out, the comparison of the whole key must.
TEST(Cache, KeysOfOneHashAreToldApart) {
  Key first = key_of(1), second = key_of(2);
  second.hash = first.hash;
  Cache cache(memory_only(), {});
  EXPECT_TRUE(holds(*cache.get_or_build(first, builder_of(1))->entry, object_of(1)));
  EXPECT_TRUE(holds(*cache.get_or_build(second, builder_of(2))->entry, object_of(2)));
  EXPECT_TRUE(holds(*cache.get(first)->entry, object_of(1)));
  EXPECT_TRUE(holds(*cache.get(second)->entry, object_of(2)));
}

TEST(Cache, AFailedBuildReachesEveryWaiterAndIsForgotten) {
  constexpr int kThreads = 8;
  Cache cache(memory_only(), {});
  std::atomic<int> builds{0};
  std::atomic<int> failures{0};
  const Builder failing = [&]() -> Expected<BuiltEntry> {
    ++builds;
    while (cache.stats().joined < kThreads - 1) std::this_thread::yield();
    return make_error(ErrorCode::kCompileError, "planted");
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const auto result = cache.get_or_build(key_of(1), failing);
        if (!result && result.error().message == "planted") ++failures;
      });
    }
  }
  EXPECT_EQ(builds, 1);
  EXPECT_EQ(failures, kThreads);
  EXPECT_EQ(cache.stats().build_failures, 1u);
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kBuilt);
}

TEST(Cache, ABuilderThatThrowsGivesAnError) {
  Cache cache(memory_only(), {});
  const auto thrown = cache.get_or_build(key_of(1), []() -> Expected<BuiltEntry> { throw std::runtime_error("boom"); });
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code, ErrorCode::kInternal);
  EXPECT_NE(thrown.error().message.find("boom"), std::string::npos);
  EXPECT_TRUE(cache.get_or_build(key_of(1), builder_of(1)));
}

// The build of key 1 only ends after key 2 was built and hit by another thread.
TEST(Cache, ABuildDelaysNoOtherKey) {
  Cache cache(memory_only(), {});
  std::atomic<bool> building{false}, release{false};
  std::jthread slow([&] {
    const auto result = cache.get_or_build(key_of(1), [&]() -> Expected<BuiltEntry> {
      building = true;
      while (!release) std::this_thread::yield();
      return builder_of(1)();
    });
    EXPECT_TRUE(result);
  });
  while (!building) std::this_thread::yield();
  EXPECT_EQ(cache.get_or_build(key_of(2), builder_of(2))->source, CacheSource::kBuilt);
  EXPECT_EQ(cache.get_or_build(key_of(2), builder_of(2))->source, CacheSource::kMemory);
  EXPECT_FALSE(cache.get(key_of(1)));  // never waits
  release = true;
}

TEST(Cache, AnObjectThatTheValidatorRefusesIsNotKept) {
  CacheOptions options;
  options.validator = [](const Entry&) -> Status { return make_error(ErrorCode::kArchMismatch, "not for gfx950"); };
  Cache cache(memory_only(), std::move(options));
  const auto refused = cache.get_or_build(key_of(1), builder_of(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kArchMismatch);
  EXPECT_FALSE(cache.get(key_of(1)));
}

TEST(Publisher, DrainAndDestructorRunEveryJob) {
  std::atomic<int> done{0};
  {
    Publisher publisher;
    for (int i = 0; i < 100; ++i) publisher.enqueue([&] { ++done; });
    publisher.drain();
    EXPECT_EQ(done, 100);
    for (int i = 0; i < 100; ++i) publisher.enqueue([&] { ++done; });
  }
  EXPECT_EQ(done, 200);
}

}  // namespace
}  // namespace zyfa::cache
