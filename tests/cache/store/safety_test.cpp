// Who may own a layer and who may write to it; whatever is refused says how to mend it. File times carry no meaning.
#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

#define SKIP_UNLESS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make files of another user"

class Safety : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Store::open(root(), LayerAccess::kWritable).value()->publish(entry_of(1))); }
  [[nodiscard]] std::string root() const { return directory_.path("cache"); }

  // The root is refused with this text for this access, and a cache over it works on, told once.
  void expect_refused(const std::string& path, LayerAccess access, const std::string& text) {
    const auto store = Store::open(path, access);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(store.error().message, HasSubstr(text));
    EXPECT_THAT(store.error().message, HasSubstr(path));
    EventLog log;
    CacheOptions options;
    options.observer = log.observer();
    CacheConfig config =
        access == LayerAccess::kWritable ? config_for(path) : config_for(directory_.path("own"), {path});
    Cache cache(config, std::move(options));
    EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kBuilt);
    cache.flush();  // the publish runs in the background and would write while the directory is removed
    EXPECT_EQ(log.events().size(), 1u);
    std::filesystem::remove_all(directory_.path("own"));
  }

  TemporaryDirectory directory_;
};

TEST_F(Safety, TheRootIsMadePrivate) {
  struct stat status{};
  for (const std::string& path : {root(), root() + "/v1"}) {
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u);
  }
  ASSERT_EQ(::stat(entry_path(root(), key_of(1)).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(Safety, RootsThatOthersCanWriteAreRefused) {
  for (const mode_t mode : {0770, 0777, 0702, 0720}) {
    ASSERT_EQ(::chmod(root().c_str(), mode), 0);
    expect_refused(root(), LayerAccess::kWritable, "chmod go-w");
    expect_refused(root(), LayerAccess::kReadOnly, "chmod go-w");
  }
  ASSERT_EQ(::chmod(root().c_str(), 0755), 0);
  EXPECT_TRUE(Store::open(root(), LayerAccess::kWritable));
}

TEST_F(Safety, TheDirectoryOfEntriesIsCheckedToo) {
  ASSERT_EQ(::chmod((root() + "/v1").c_str(), 0777), 0);
  expect_refused(root(), LayerAccess::kWritable, "/v1");
}

TEST_F(Safety, SymlinkedRootsAreRefused) {
  const std::string link = directory_.path("link");
  std::filesystem::create_directory_symlink(root(), link);
  expect_refused(link, LayerAccess::kWritable, "symbolic link");
  expect_refused(link, LayerAccess::kReadOnly, "symbolic link");
  EXPECT_FALSE(Store::open(link + "/", LayerAccess::kWritable));
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(directory_.path("nowhere"), link);
  expect_refused(link, LayerAccess::kWritable, "symbolic link");
}

TEST_F(Safety, RootsOfAnotherUserAreRefused) {
  SKIP_UNLESS_ROOT();
  ASSERT_EQ(::chown(root().c_str(), kNobody, kNobody), 0);
  expect_refused(root(), LayerAccess::kWritable, "belongs to user 65534");
  expect_refused(root(), LayerAccess::kReadOnly, "belongs to user 65534");
}

TEST_F(Safety, AReadOnlyLayerMayBelongToRoot) {
  SKIP_UNLESS_ROOT();
  for (const std::string& path : {directory_.path(), root(), root() + "/v1"}) ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(entry_path(root(), key_of(1)).c_str(), 0644), 0);
  EXPECT_EQ(exit_code_of([&] {
              if (::setuid(kNobody) != 0) return 1;
              if (Store::open(root(), LayerAccess::kWritable)) return 2;
              const auto store = Store::open(root(), LayerAccess::kReadOnly);
              if (!store) return 3;
              const auto read = (*store)->read(key_of(1), nullptr, OnReject::kSetAside);
              return read && *read && holds(**read, object_of(1)) ? 0 : 4;
            }),
            0);
}

TEST_F(Safety, UnsafeEntriesAreNeverRead) {
  const std::string path = entry_path(root(), key_of(1));
  const auto expect_unsafe = [&](const std::string& text) {
    const auto store = Store::open(root(), LayerAccess::kWritable).value();
    const auto read = store->read(key_of(1), nullptr, OnReject::kLeave);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().defect, EntryDefect::kUnsafeFile);
    EXPECT_THAT(read.error().error.message, HasSubstr(text));
  };
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  expect_unsafe("chmod go-w");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
    expect_unsafe("belongs to user 65534");
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  std::filesystem::rename(path, directory_.path("elsewhere"));
  std::filesystem::create_symlink(directory_.path("elsewhere"), path);
  expect_unsafe("symbolic link");

  // Set aside as the link it is; what it points to stays.
  Cache cache(config_for(root()), {});
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kBuilt);
  cache.flush();
  EXPECT_TRUE(std::filesystem::exists(directory_.path("elsewhere")));
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path)));
}

TEST_F(Safety, FileTimesChangeNothing) {
  const std::string path = entry_path(root(), key_of(1));
  for (const time_t seconds : {time_t{0}, time_t{4'102'444'800}}) {  // 1970-01-01, 2100-01-01
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    for (const std::string& at : {path, root(), root() + "/v1"}) {
      ASSERT_EQ(::utimensat(AT_FDCWD, at.c_str(), times, 0), 0);
    }
    Cache cache(config_for(root()), {});
    EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kDisk);
    EXPECT_EQ(cache.stats().rejected, 0u);
  }
}

TEST_F(Safety, ATreeMayMove) {
  const std::string moved = directory_.path("moved");
  std::filesystem::rename(root(), moved);
  Cache cache(config_for(moved), {});
  EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1))->source, CacheSource::kDisk);
}

TEST_F(Safety, OnlyTheRootAndItsParentAreMade) {
  EXPECT_TRUE(Store::open(directory_.path("a/b"), LayerAccess::kWritable));
  EXPECT_FALSE(Store::open(directory_.path("x/y/z"), LayerAccess::kWritable));
  EXPECT_FALSE(std::filesystem::exists(directory_.path("x")));
  EXPECT_EQ(Store::open(directory_.path("none"), LayerAccess::kReadOnly).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(directory_.path("none")));
}

}  // namespace
}  // namespace zyfa::cache
