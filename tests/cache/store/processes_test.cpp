// Many processes on one directory: each key built once, writers killed at every step, lock holders killed and stopped.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

using namespace std::chrono_literals;

class Processes : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe2(pipe_, O_CLOEXEC), 0); }
  void TearDown() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  [[nodiscard]] std::string root() const { return directory_.path("cache"); }

  // A builder that notes its key in a file that all processes append to.
  Builder noting_builder(std::uint64_t number, std::chrono::milliseconds build_time = 0ms) {
    return [this, number, build_time]() -> Expected<BuiltEntry> {
      const std::string line = std::to_string(number) + "\n";
      const int fd = ::open(directory_.path("builds").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      const bool noted = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
      ::close(fd);
      if (!noted) return make_error(ErrorCode::kIoError, "cannot note the build");
      std::this_thread::sleep_for(build_time);
      return builder_of(number)();
    };
  }
  // A builder that tells the parent it has begun and then never ends.
  Builder endless_builder() {
    return [this]() -> Expected<BuiltEntry> {
      tell();
      while (true) ::pause();
    };
  }
  [[nodiscard]] std::map<std::uint64_t, int> builds() const {
    std::istringstream lines(read_text(directory_.path("builds")));
    std::map<std::uint64_t, int> counts;
    for (std::uint64_t number = 0; lines >> number;) ++counts[number];
    return counts;
  }
  void tell() const { static_cast<void>(!::write(pipe_[1], "x", 1)); }
  void await() const {
    char byte = 0;
    ASSERT_EQ(::read(pipe_[0], &byte, 1), 1);
  }
  void expect_tidy(std::size_t entries) const {
    EXPECT_EQ(count_files(root() + "/v1", ".tmp-"), 0u);
    EXPECT_EQ(count_files(root() + "/v1/locks", ""), 0u);
    const auto store = Store::open(root(), LayerAccess::kWritable).value();
    const auto listed = store->list().value();
    EXPECT_EQ(listed.size(), entries);
    for (const ListedEntry& entry : listed) {
      EXPECT_TRUE(store->read_named(*hash_from_hex(entry.name), OnReject::kLeave)) << entry.name;
    }
  }

  TemporaryDirectory directory_;
  int pipe_[2] = {-1, -1};
};

// Case 1.
TEST_F(Processes, ThirtyTwoOnAnEmptyCacheBuildEachOfTwoHundredKeysOnce) {
  constexpr int kProcesses = 32;
  constexpr std::uint64_t kKeys = 200;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(start_child([&] {
      std::vector<std::uint64_t> order(kKeys);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, std::mt19937(static_cast<unsigned>(process)));
      Cache cache(config_for(root()), {});
      for (const std::uint64_t number : order) {
        const auto lookup = cache.get_or_build(key_of(number), noting_builder(number));
        if (!lookup || !holds(*lookup->entry, object_of(number))) return 1;
      }
      return cache.stats().lock_timeouts == 0 && cache.stats().rejected == 0 ? 0 : 2;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for(child).exit_code, 0);
  const auto counts = builds();
  EXPECT_EQ(counts.size(), kKeys);
  for (const auto& [number, count] : counts) EXPECT_EQ(count, 1) << "key " << number;
  expect_tidy(kKeys);
}

// Case 2. The hook kills the writer when it comes to the step; the reader sees the old entry or the whole new one.
TEST_F(Processes, AWriterKilledAtEveryStepLeavesTheOldOrTheNewEntry) {
  constexpr std::size_t kSize = 200 * 1024;
  const auto object = [](std::uint64_t which) { return object_of(which, kSize); };
  const auto entry = [&](std::uint64_t which) { return Entry::encode(key_of(1).bytes, {}, object(which)).value(); };
  int steps = 0;
  const auto counting = [&steps](PublishStep) -> Status {
    ++steps;
    return {};
  };
  ASSERT_TRUE(Store::open(root(), LayerAccess::kWritable, counting).value()->publish(entry(0)));
  ASSERT_EQ(steps, 9);  // create, 4 chunks of 64 KiB, sync, rename, sync of the directory, done

  for (int fatal = 0; fatal < steps; ++fatal) {
    SCOPED_TRACE(fatal);
    const auto old_one = static_cast<std::uint64_t>(fatal), new_one = old_one + 1;
    ASSERT_TRUE(Store::open(root(), LayerAccess::kWritable).value()->publish(entry(old_one)));
    const ChildEnd end = wait_for(start_child([&] {
      int step = 0;
      const auto killing = [&](PublishStep) -> Status {
        if (step++ == fatal) ::raise(SIGKILL);
        return {};
      };
      return Store::open(root(), LayerAccess::kWritable, killing).value()->publish(entry(new_one)) ? 1 : 2;
    }));
    EXPECT_EQ(end.signal, SIGKILL);

    const auto read = Store::open(root(), LayerAccess::kReadOnly).value()->read(key_of(1), nullptr, OnReject::kLeave);
    ASSERT_TRUE(read && *read);
    EXPECT_TRUE(holds(**read, object(fatal <= 6 ? old_one : new_one)));
    // A temporary file lies there exactly if the writer died between creating and renaming it.
    EXPECT_EQ(count_files(root() + "/v1", ".tmp-"), fatal >= 1 && fatal <= 6 ? 1u : 0u);
  }
  ASSERT_TRUE(Store::open(root(), LayerAccess::kWritable).value()->publish(entry(1)));
  expect_tidy(1);  // the next writer swept what the dead ones left
}

TEST_F(Processes, ASweepSparesTheFileOfALiveWriter) {
  const pid_t writer = start_child([&] {
    const auto slow = [&](PublishStep step) -> Status {
      if (step == PublishStep::kRename) {
        tell();
        std::this_thread::sleep_for(300ms);
      }
      return {};
    };
    return Store::open(root(), LayerAccess::kWritable, slow).value()->publish(entry_of(1)) ? 0 : 1;
  });
  await();
  ASSERT_TRUE(Store::open(root(), LayerAccess::kWritable).value()->publish(entry_of(2)));  // sweeps
  EXPECT_EQ(wait_for(writer).exit_code, 0);
  expect_tidy(2);
}

// Case 3, first part.
TEST_F(Processes, SixteenOnOneKeyBuildItOnce) {
  std::vector<pid_t> children;
  for (int process = 0; process < 16; ++process) {
    children.push_back(start_child([&] {
      Cache cache(config_for(root()), {});
      const auto lookup = cache.get_or_build(key_of(1), noting_builder(1, 100ms));
      return lookup && holds(*lookup->entry, object_of(1)) ? 0 : 1;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for(child).exit_code, 0);
  EXPECT_EQ(builds(), (std::map<std::uint64_t, int>{{1, 1}}));
  expect_tidy(1);
}

// Case 3, second part. The waiter's own limit is a minute: only the death of the holder can let it go on.
TEST_F(Processes, WhenTheHolderIsKilledTheNextBuilds) {
  const pid_t holder = start_child([&] {
    Cache cache(config_for(root()), {});
    return cache.get_or_build(key_of(1), endless_builder()) ? 1 : 2;
  });
  await();
  const pid_t waiter = start_child([&] {
    CacheConfig config = config_for(root());
    config.lock_limit = 60s;
    Cache cache(config, {});
    const auto lookup = cache.get_or_build(key_of(1), noting_builder(1));
    return lookup && cache.stats().lock_timeouts == 0 ? 0 : 1;
  });
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(builds().empty());
  const auto killed_at = std::chrono::steady_clock::now();
  ASSERT_EQ(::kill(holder, SIGKILL), 0);
  EXPECT_EQ(wait_for(holder).signal, SIGKILL);
  EXPECT_EQ(wait_for(waiter).exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - killed_at, 30s);
  EXPECT_EQ(builds(), (std::map<std::uint64_t, int>{{1, 1}}));
  expect_tidy(1);
}

// Case 3, third part. A stopped holder costs the limit once and no processor time.
TEST_F(Processes, WhenTheHolderIsStoppedWaitersFallThroughWithoutSpinning) {
  const pid_t holder = start_child([&] {
    Cache cache(config_for(root()), {});
    const auto lookup = cache.get_or_build(key_of(1), [&]() -> Expected<BuiltEntry> {
      tell();
      ::raise(SIGSTOP);
      return noting_builder(1)();
    });
    return lookup ? 0 : 1;
  });
  await();
  const pid_t waiter = start_child([&] {
    CacheConfig config = config_for(root());
    config.lock_limit = 1000ms;
    Cache cache(config, {});
    const auto lookup = cache.get_or_build(key_of(1), noting_builder(1));
    return lookup && lookup->source == CacheSource::kBuilt && cache.stats().lock_timeouts == 1 ? 0 : 1;
  });
  const ChildEnd end = wait_for(waiter);
  EXPECT_EQ(end.exit_code, 0);
  const auto processor = std::chrono::seconds(end.usage.ru_utime.tv_sec + end.usage.ru_stime.tv_sec) +
                         std::chrono::microseconds(end.usage.ru_utime.tv_usec + end.usage.ru_stime.tv_usec);
  EXPECT_LT(processor, 300ms);  // of one second of waiting
  ASSERT_EQ(::kill(holder, SIGCONT), 0);
  EXPECT_EQ(wait_for(holder).exit_code, 0);
  EXPECT_EQ(builds(), (std::map<std::uint64_t, int>{{1, 2}}));
  expect_tidy(1);
}

// Case 6, its last sentence: nothing of the surroundings enters a key.
TEST_F(Processes, KeysAreEqualInTwoProcesses) {
  const auto child_key = [&](const char* home, const char* locale, const std::string& cwd) {
    const std::string out = directory_.path("key");
    EXPECT_EQ(exit_code_of([&] {
                ::setenv("HOME", home, 1);
                ::setenv("LC_ALL", locale, 1);
                ::setenv("TZ", home, 1);
                if (::chdir(cwd.c_str()) != 0) return 1;
                write_text(out, key_of(5).bytes + key_of(5).name());
                return 0;
              }),
              0);
    return read_text(out);
  };
  const std::string here = key_of(5).bytes + key_of(5).name();
  EXPECT_EQ(child_key("/a", "C", "/"), here);
  EXPECT_EQ(child_key("/b", "tr_TR.UTF-8", directory_.path()), here);
}

// A forked child has no publisher thread; what it builds is published all the same, and it exits.
TEST_F(Processes, AForkedChildPublishesForItself) {
  Cache cache(config_for(root()), {});
  ASSERT_TRUE(cache.get_or_build(key_of(1), builder_of(1)));
  cache.flush();
  EXPECT_EQ(exit_code_of([&] {
              const bool hit = cache.get_or_build(key_of(1), builder_of(1))->source == CacheSource::kMemory;
              const bool built = cache.get_or_build(key_of(2), builder_of(2))->source == CacheSource::kBuilt;
              cache.flush();
              return hit && built && count_files(root() + "/v1", key_of(2).name()) == 1 ? 0 : 1;
            }),
            0);
  ASSERT_TRUE(cache.get_or_build(key_of(3), builder_of(3)));
  cache.flush();
  expect_tidy(3);
}

// The child inherits a running build whose thread it does not have. The alarm ends a child that waits for it.
TEST_F(Processes, AChildForkedDuringABuildBuildsForItself) {
  CacheConfig config = config_for(root());
  config.lock_limit = 20ms;
  for (const CacheMode mode : {CacheMode::kOff, CacheMode::kNormal}) {
    config.mode = mode;
    Cache cache(config, {});
    std::promise<void> go_on;
    std::thread builder([&] {
      EXPECT_TRUE(cache.get_or_build(key_of(1), [&]() -> Expected<BuiltEntry> {
        tell();
        go_on.get_future().wait();
        return builder_of(1)();
      }));
    });
    await();
    EXPECT_EQ(exit_code_of([&] {
                ::alarm(60);
                const auto lookup = cache.get_or_build(key_of(1), builder_of(1));
                cache.flush();
                return lookup && lookup->source == CacheSource::kBuilt ? 0 : 1;
              }),
              0);
    go_on.set_value();
    builder.join();
  }
}

// A builder may fork: the child goes on as the one who builds.
TEST_F(Processes, ABuilderMayFork) {
  Cache cache(config_for(root()), {});
  pid_t child = -1;
  const auto lookup = cache.get_or_build(key_of(1), [&]() -> Expected<BuiltEntry> {
    child = ::fork();
    return builder_of(1)();
  });
  if (child == 0) ::_exit(lookup && cache.get(key_of(1)) ? 0 : 1);
  EXPECT_EQ(wait_for(child).exit_code, 0);
  EXPECT_TRUE(lookup);
}

#ifndef __SANITIZE_ADDRESS__  // its allocator of GCC 12 does not survive a fork beside other threads
// Forks at any moment of other threads' hits, builds and discards.
TEST_F(Processes, ChildrenForkedAmongBusyThreadsFindTheCacheSound) {
  Cache cache(config_for(root()), {});
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      while (!stop) {
        const std::uint64_t number = random() % 4;
        EXPECT_TRUE(cache.get_or_build(key_of(number), builder_of(number)));
        if (random() % 16 == 0) cache.discard(key_of(number));
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(exit_code_of([&] {
                ::alarm(60);
                for (std::uint64_t number = 0; number < 4; ++number) {
                  const auto lookup = cache.get_or_build(key_of(number), builder_of(number));
                  if (!lookup || !holds(*lookup->entry, object_of(number))) return 1;
                }
                return 0;
              }),
              0);
  }
  stop = true;
}
#endif

}  // namespace
}  // namespace zyfa::cache
