// Reading and writing whole files: what the operating system refuses is named.
#include "runtime/io/file.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/io/files.h"

namespace zyfa::io {
namespace {

using namespace testing_support;

TEST(FileErrors, MissingFileAndFolder) {
  const TemporaryFolder folder;
  auto bytes = read_file(folder / "gone");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(bytes.error().message, (folder / "gone").string() + ": cannot open: No such file or directory");
  bytes = read_file(folder.path());
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kIoError);
  EXPECT_THAT(bytes.error().message, testing::HasSubstr("not a regular file"));
  // A FIFO that nobody writes to is refused as well, and does not hang.
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  bytes = read_file(fifo);
  ASSERT_FALSE(bytes);
  EXPECT_THAT(bytes.error().message, testing::HasSubstr("not a regular file"));
  const Status status = write_file(folder / "no/such/place", {});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("no/such/place: cannot create"));
}

TEST(FileErrors, AFullDeviceIsReported) {
  const std::vector<std::byte> bytes(10);
  const Status status = write_file("/dev/full", {bytes});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIoError);
  EXPECT_EQ(status.error().message, "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace zyfa::io
