// 64 threads over 100 keys in one process; meant for ThreadSanitizer as well (preset tsan).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <thread>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

constexpr int kThreads = 64;
constexpr std::uint64_t kKeys = 100;

// Every thread asks for every key in an order of its own. Builds per key go to `builds`.
void run_threads(Cache& cache, std::array<std::atomic<int>, kKeys>& builds) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&cache, &builds, thread] {
      std::vector<std::uint64_t> order(kKeys);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, std::mt19937(static_cast<unsigned>(thread)));
      for (const std::uint64_t number : order) {
        const auto lookup = cache.get_or_build(key_of(number), [&builds, number] {
          ++builds[number];
          return builder_of(number)();
        });
        ASSERT_TRUE(lookup);
        ASSERT_TRUE(holds(*lookup->entry, object_of(number)));
      }
    });
  }
}

TEST(Threads, EachKeyIsBuiltOnceAndEachAnswerIsRight) {
  const TemporaryDirectory directory;
  {
    Cache cache(config_for(directory.path("cache")), {});
    std::array<std::atomic<int>, kKeys> builds{};
    run_threads(cache, builds);
    for (const auto& count : builds) EXPECT_EQ(count, 1);
    const CacheStats stats = cache.stats();
    EXPECT_EQ(stats.builds, kKeys);
    EXPECT_EQ(stats.memory_hits + stats.joined + stats.builds, kThreads * kKeys);
  }
  Cache cache(config_for(directory.path("cache")), {});
  std::array<std::atomic<int>, kKeys> builds{};
  run_threads(cache, builds);
  for (const auto& count : builds) EXPECT_EQ(count, 0);
  EXPECT_EQ(cache.stats().disk_hits, kKeys);
}

// Failures, discards and statistics among the hits: no answer may be wrong, nothing may race.
TEST(Threads, FailuresAndDiscardsAmongHits) {
  const TemporaryDirectory directory;
  Cache cache(config_for(directory.path("cache")), {});
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&cache, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      for (int i = 0; i < 100; ++i) {
        const std::uint64_t number = random() % 10;
        const bool fails = random() % 4 == 0;
        const auto lookup = cache.get_or_build(key_of(number), [&]() -> Expected<BuiltEntry> {
          if (fails) return make_error(ErrorCode::kCompileError, "planted");
          return builder_of(number)();
        });
        if (lookup) {
          ASSERT_TRUE(holds(*lookup->entry, object_of(number)));
        } else {
          ASSERT_EQ(lookup.error().message, "planted");
        }
        if (random() % 16 == 0) cache.discard(key_of(number));
        ASSERT_EQ(cache.stats().publish_failures, 0u);
      }
    });
  }
}

}  // namespace
}  // namespace zyfa::cache
