// File systems that are full, read-only or refuse large files, and failures planted at each step of a publish: launches
// go on, one warning, no partial file.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

constexpr std::size_t kSize = 200 * 1024;
constexpr int kCannotMount = 77;

class FullDisk : public testing::Test {
 protected:
  [[nodiscard]] std::string root() const { return directory_.path("disk/cache"); }

  // Mounts a tmpfs of 4 MiB over disk/ in a mount namespace of this process alone.
  [[nodiscard]] bool mount_small_disk() const {
    const std::string at = directory_.path("disk");
    std::filesystem::create_directory(at);
    return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("zyfa-test", at.c_str(), "tmpfs", 0, "size=4m,mode=0700") == 0;
  }

  // Builds 40 entries of 200 KiB. 0 when every lookup is right, exactly one warning came, and every file is whole.
  [[nodiscard]] int build_many(std::size_t there_before = 0) const {
    EventLog log;
    CacheOptions options;
    options.observer = log.observer();
    Cache cache(config_for(root()), std::move(options));
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto built = cache.get_or_build(key_of(i), builder_of(i, kSize));
      if (!built || built->source != CacheSource::kBuilt || !holds(*built->entry, object_of(i, kSize))) return 1;
      cache.flush();
      const auto hit = cache.get_or_build(key_of(i), builder_of(i, kSize));
      if (!hit || hit->source != CacheSource::kMemory) return 2;
    }
    if (log.events().size() != 1 || log.events()[0].kind != CacheEventKind::kPublishFailed) return 3;
    if (cache.stats().published + cache.stats().publish_failures != 40) return 4;
    if (count_files(root() + "/v1", ".tmp-") != 0) return 5;
    const Store& store = *cache.layers().front();
    const auto listed = store.list().value();
    if (listed.size() != there_before + cache.stats().published) return 6;
    for (const ListedEntry& entry : listed) {
      if (!store.read_named(*hash_from_hex(entry.name), OnReject::kLeave)) return 7;
    }
    return 0;
  }

  TemporaryDirectory directory_;
};

// Case 10.
TEST_F(FullDisk, ATmpfsOfFourMebibytes) {
  const int code = exit_code_of([&] {
    if (!mount_small_disk()) return kCannotMount;
    const int failed = build_many();
    if (failed != 0) return failed;
    // About 20 entries fit: the test has seen both a full and a filling disk.
    const auto listed = Store::open(root(), LayerAccess::kReadOnly).value()->list()->size();
    return listed >= 10 && listed <= 20 ? 0 : 8;
  });
  if (code == kCannotMount) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  EXPECT_EQ(code, 0);
}

// Case 9.
TEST_F(FullDisk, AReadOnlyFileSystemStillHits) {
  const int code = exit_code_of([&] {
    if (!mount_small_disk()) return kCannotMount;
    if (!Store::open(root(), LayerAccess::kWritable).value()->publish(entry_of(100))) return 20;
    if (::mount(nullptr, directory_.path("disk").c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 21;
    {
      Cache cache(config_for(root()), {});
      if (cache.get_or_build(key_of(100), builder_of(100))->source != CacheSource::kDisk) return 22;
    }
    return build_many(1);
  });
  if (code == kCannotMount) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  EXPECT_EQ(code, 0);
}

TEST_F(FullDisk, ALimitOnTheSizeOfFiles) {
  std::filesystem::create_directory(directory_.path("disk"));
  EXPECT_EQ(exit_code_of([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{100 * 1024, 100 * 1024};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 20;
              return build_many();
            }),
            0);
}

TEST_F(FullDisk, AFailureAtEachStepLeavesNoPartialFile) {
  std::filesystem::create_directory(directory_.path("disk"));
  ASSERT_TRUE(Store::open(root(), LayerAccess::kWritable).value()->publish(entry_of(1, kSize)));
  const Entry replacement = Entry::encode(key_of(1).bytes, {}, object_of(2, kSize)).value();
  for (int failing = 0; failing < 9; ++failing) {
    SCOPED_TRACE(failing);
    ASSERT_TRUE(Store::open(root(), LayerAccess::kWritable).value()->publish(entry_of(1, kSize)));
    int step = 0;
    const auto hook = [&](PublishStep) -> Status {
      if (step++ == failing) return make_error(ErrorCode::kIoError, "planted");
      return {};
    };
    const auto store = Store::open(root(), LayerAccess::kWritable, hook).value();
    const Status published = store->publish(replacement);
    ASSERT_FALSE(published);
    EXPECT_EQ(published.error().message, "planted");
    EXPECT_EQ(count_files(root() + "/v1", ".tmp-"), 0u);
    const auto read = store->read(key_of(1), nullptr, OnReject::kLeave);
    ASSERT_TRUE(read && *read);
    EXPECT_TRUE(holds(**read, object_of(failing <= 6 ? 1 : 2, kSize)));
  }
}

}  // namespace
}  // namespace zyfa::cache
