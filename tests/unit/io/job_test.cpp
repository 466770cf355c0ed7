// Job files: the example of the format's description, and argument packing against offsets worked out by hand.
#include "runtime/io/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "runtime/io/job_run.h"
#include "tests/unit/io/files.h"

namespace zyfa::io {
namespace {

using testing::ElementsAre;
using namespace testing_support;

constexpr const char* kExample = R"({
  "object": "kernel.hsaco", "kernel": "symbol",
  "grid": [2, 1, 1], "block": [512, 1, 1], "lds": 0,
  "args": [
    {"buffer": "q.npy"},
    {"buffer": "a.bin", "write": "b.bin", "offset": 16},
    {"bytes": 65536, "fill": 255, "write": "o.npy", "dtype": "bfloat16", "shape": [128, 256]},
    {"i32": 5}, {"u32": 7}, {"i64": 1}, {"f32": 0.0883883}, {"raw": "00ff"}, {"null": true}
  ]
})";

Job parse(std::string_view text) {
  Expected<Job> job = parse_job(text, "/jobs", "job.json");
  EXPECT_TRUE(job) << to_string(job.error());
  return job.value_or(Job());
}

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

TEST(Job, TheExampleOfTheFormat) {
  const Job job = parse(kExample);
  EXPECT_EQ(job.object, "/jobs/kernel.hsaco");
  EXPECT_EQ(job.kernel, "symbol");
  EXPECT_THAT(job.launch.grid, ElementsAre(2, 1, 1));
  EXPECT_THAT(job.launch.block, ElementsAre(512, 1, 1));
  EXPECT_EQ(job.launch.dynamic_lds, 0U);
  ASSERT_EQ(job.arguments.size(), 9U);
  EXPECT_EQ(job.arguments[0].kind, JobArgument::Kind::kFile);
  EXPECT_EQ(job.arguments[0].source, "/jobs/q.npy");
  EXPECT_TRUE(job.arguments[0].write.empty());
  EXPECT_EQ(job.arguments[1].write, "/jobs/b.bin");
  EXPECT_EQ(job.arguments[1].offset, 16U);
  EXPECT_EQ(job.arguments[2].kind, JobArgument::Kind::kFilled);
  EXPECT_EQ(job.arguments[2].bytes, 65536U);
  EXPECT_EQ(job.arguments[2].fill, std::byte{255});
  EXPECT_EQ(job.arguments[2].type, ElementType::kBf16);
  EXPECT_THAT(*job.arguments[2].shape, ElementsAre(128, 256));
  EXPECT_EQ(load<std::int32_t>(job.arguments[3].value, 0), 5);
  EXPECT_EQ(load<std::uint32_t>(job.arguments[4].value, 0), 7U);
  EXPECT_EQ(load<std::int64_t>(job.arguments[5].value, 0), 1);
  EXPECT_EQ(load<float>(job.arguments[6].value, 0), 0.0883883F);
  EXPECT_THAT(job.arguments[7].value, ElementsAre(std::byte{0}, std::byte{0xff}));
  EXPECT_EQ(load<std::uint64_t>(job.arguments[8].value, 0), 0U);
}

TEST(Job, ExtremesOfIntegers) {
  const Job job = parse(R"({"object":"/abs/o","kernel":"k","grid":[4294967295,1,1],"block":[1,32,32],"lds":163840,
    "args":[{"i32":-2147483648},{"u32":4294967295},{"i64":-9223372036854775808},{"i64":9223372036854775807},{"f32":1}]})");
  EXPECT_EQ(job.object, "/abs/o");
  EXPECT_EQ(load<std::int32_t>(job.arguments[0].value, 0), INT32_MIN);
  EXPECT_EQ(load<std::uint32_t>(job.arguments[1].value, 0), UINT32_MAX);
  EXPECT_EQ(load<std::int64_t>(job.arguments[2].value, 0), INT64_MIN);
  EXPECT_EQ(load<std::int64_t>(job.arguments[3].value, 0), INT64_MAX);
  EXPECT_EQ(load<float>(job.arguments[4].value, 0), 1.0F);
}

Job job_with(const std::string& arguments) {
  return parse(R"({"object":"o","kernel":"k","grid":[3,2,1],"block":[64,2,1],"lds":100,"args":[)" + arguments + "]}");
}

TEST(PackArguments, NaturalOffsetsWithoutMetadata) {
  const auto segment =
      pack_arguments(job_with(R"({"i32":1},{"bytes":4},{"raw":"abcd"},{"u32":2},{"raw":"01"},{"i64":3})"), {},
                     std::vector<DeviceAddress>{0x1122334455667788});
  ASSERT_TRUE(segment) << to_string(segment.error());
  ASSERT_EQ(segment->size(), 40U);  // i32 at 0, pointer at 8, raw at 16, u32 at 20, raw at 24, i64 at 32
  EXPECT_EQ(load<std::int32_t>(*segment, 0), 1);
  EXPECT_EQ(load<std::uint64_t>(*segment, 8), 0x1122334455667788U);
  EXPECT_EQ((*segment)[16], std::byte{0xab});
  EXPECT_EQ((*segment)[17], std::byte{0xcd});
  EXPECT_EQ(load<std::uint32_t>(*segment, 20), 2U);
  EXPECT_EQ((*segment)[24], std::byte{1});
  EXPECT_EQ(load<std::int64_t>(*segment, 32), 3);
}

TEST(PackArguments, MetadataOffsetsThenOwnOffsets) {
  ObjectKernel kernel{.symbol = "k", .kernarg_bytes = 64, .lds_bytes = 0, .arguments = {}};
  kernel.arguments = {{"a", "by_value", 4, 4}, {"b", "global_buffer", 16, 8}, {"c", "by_value", 32, 4}};
  const auto segment = pack_arguments(job_with(R"({"i32":1},{"bytes":4},{"u32":9,"offset":48},{"u32":7})"), kernel,
                                      std::vector<DeviceAddress>{0xabc});
  ASSERT_TRUE(segment) << to_string(segment.error());
  ASSERT_EQ(segment->size(), 64U);
  EXPECT_EQ(load<std::int32_t>(*segment, 4), 1);
  EXPECT_EQ(load<std::uint64_t>(*segment, 16), 0xabcU);
  EXPECT_EQ(load<std::uint32_t>(*segment, 32), 0U);  // argument 2 went to its own offset
  EXPECT_EQ(load<std::uint32_t>(*segment, 48), 9U);
  EXPECT_EQ(load<std::uint32_t>(*segment, 52), 7U);  // behind the one before it
}

TEST(PackArguments, SegmentGrowsToTheLastArgument) {
  ObjectKernel kernel;
  kernel.kernarg_bytes = 8;
  const auto segment = pack_arguments(job_with(R"({"u32":1,"offset":500})"), kernel, {});
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->size(), 504U);
}

TEST(PackArguments, HiddenArgumentsComeFromTheLaunch) {
  ObjectKernel kernel;
  kernel.kernarg_bytes = 80;
  kernel.arguments = {{"n", "by_value", 0, 4},
                      {"", "hidden_block_count_x", 8, 4},
                      {"", "hidden_block_count_y", 12, 4},
                      {"", "hidden_block_count_z", 16, 4},
                      {"", "hidden_group_size_x", 20, 2},
                      {"", "hidden_group_size_y", 22, 2},
                      {"", "hidden_group_size_z", 24, 2},
                      {"", "hidden_remainder_x", 26, 2},
                      {"", "hidden_grid_dims", 32, 2},
                      {"", "hidden_dynamic_lds_size", 36, 4},
                      {"", "hidden_global_offset_x", 40, 8},
                      {"", "hidden_block_count_x", 78, 4}};  // past the segment: left alone
  const auto segment = pack_arguments(job_with(R"({"i32":5})"), kernel, {});
  ASSERT_TRUE(segment) << to_string(segment.error());
  ASSERT_EQ(segment->size(), 80U);
  EXPECT_EQ(load<std::int32_t>(*segment, 0), 5);
  EXPECT_EQ(load<std::uint32_t>(*segment, 8), 3U);
  EXPECT_EQ(load<std::uint32_t>(*segment, 12), 2U);
  EXPECT_EQ(load<std::uint32_t>(*segment, 16), 1U);
  EXPECT_EQ(load<std::uint16_t>(*segment, 20), 64U);
  EXPECT_EQ(load<std::uint16_t>(*segment, 22), 2U);
  EXPECT_EQ(load<std::uint16_t>(*segment, 24), 1U);
  EXPECT_EQ(load<std::uint16_t>(*segment, 26), 0U);
  EXPECT_EQ(load<std::uint16_t>(*segment, 32), 2U);
  EXPECT_EQ(load<std::uint32_t>(*segment, 36), 100U);
  EXPECT_EQ(load<std::uint64_t>(*segment, 40), 0U);
}

TEST(PackArguments, Refusals) {
  ObjectKernel kernel;
  kernel.symbol = "k";
  kernel.arguments = {{"n", "by_value", 0, 4}};
  auto segment = pack_arguments(job_with(R"({"i64":5})"), kernel, {});
  ASSERT_FALSE(segment);
  EXPECT_EQ(segment.error().message, "args[0] has 8 bytes, but argument 0 (n) of k takes 4");
  segment = pack_arguments(job_with(R"({"i64":5},{"u32":1,"offset":6})"), {}, {});
  ASSERT_FALSE(segment);
  EXPECT_EQ(segment.error().message, "args[1] at bytes 6 to 10 overlaps args[0] at bytes 0 to 8");
}

// A device whose kernel adds 1 to every byte of its first buffer argument.
class AddOneDevice : public Device {
 public:
  struct Kernel : LoadedKernel {
    [[nodiscard]] std::string_view symbol() const override { return "k"; }
  };

  [[nodiscard]] std::string name() const override { return "fake"; }
  Expected<DeviceAddress> allocate(std::size_t bytes) override {
    next_ += 0x1000;
    memory_[next_].resize(bytes);
    return next_;
  }
  void release(DeviceAddress address) override { memory_.erase(address); }
  Status write(DeviceAddress to, std::span<const std::byte> from) override {
    memory_.at(to).assign(from.begin(), from.end());
    return {};
  }
  Status read(std::span<std::byte> to, DeviceAddress from) override {
    std::copy_n(memory_.at(from).begin(), to.size(), to.begin());
    return {};
  }
  Expected<std::shared_ptr<LoadedKernel>> load(std::span<const std::byte>, std::string_view) override {
    return std::make_shared<Kernel>();
  }
  Status launch(const LoadedKernel&, const LaunchShape&, std::span<const std::byte> kernargs, Stream) override {
    if (fail) {
      return make_error(ErrorCode::kMemoryFault, "fault");
    }
    for (std::byte& byte : memory_.at(load<std::uint64_t>(kernargs, 0))) {
      byte = static_cast<std::byte>(static_cast<int>(byte) + 1);
    }
    return {};
  }
  using Device::load;
  Status synchronize(Stream) override { return {}; }

  bool fail = false;
  [[nodiscard]] std::size_t buffers() const { return memory_.size(); }

 private:
  template <typename T>
  static T load(std::span<const std::byte> bytes, std::size_t offset) {
    return zyfa::io::load<T>(bytes, offset);
  }
  std::map<DeviceAddress, std::vector<std::byte>> memory_;
  DeviceAddress next_ = 0;
};

Job job_in(const TemporaryFolder& folder, const std::string& arguments) {
  const auto job = parse_job(R"({"object":"o","kernel":"k","grid":[1,1,1],"block":[1,1,1],"args":[)" + arguments + "]}",
                             folder.path(), "job");
  EXPECT_TRUE(job) << to_string(job.error());
  return job.value_or(Job());
}

TEST(RunJob, BuffersGoUpAndComeBack) {
  const TemporaryFolder folder;
  put_file(folder / "a.bin", "HAL");
  AddOneDevice device;
  const Status status = run_job(
      job_in(folder,
             R"({"buffer":"a.bin","write":"b.bin"},{"bytes":4,"fill":9,"write":"c.npy","dtype":"uint16","shape":[2]})"),
      {}, {}, device);
  ASSERT_TRUE(status) << to_string(status.error());
  EXPECT_EQ(get_file(folder / "b.bin"), "IBM");
  const std::string npy = get_file(folder / "c.npy");
  EXPECT_THAT(npy, testing::HasSubstr("'<u2'"));
  EXPECT_THAT(npy, testing::EndsWith("\n\x09\x09\x09\x09"));
  EXPECT_EQ(device.buffers(), 0U);
}

TEST(RunJob, NpyBuffersKeepTheirLabel) {
  const TemporaryFolder folder;
  put_file(folder / "a.npy", std::string("\x93NUMPY\x01\x00\x3d\x00", 10) +
                                 "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }  abcd");
  AddOneDevice device;
  const Status status = run_job(job_in(folder, R"({"buffer":"a.npy","write":"b.npy"})"), {}, {}, device);
  ASSERT_TRUE(status) << to_string(status.error());
  const std::string npy = get_file(folder / "b.npy");
  EXPECT_THAT(npy, testing::HasSubstr("'<i2', 'fortran_order': False, 'shape': (2, 1)"));
  EXPECT_THAT(npy, testing::EndsWith("\nbcde"));
}

TEST(RunJob, NothingIsWrittenWhenTheKernelFails) {
  const TemporaryFolder folder;
  AddOneDevice device;
  device.fail = true;
  const Status status = run_job(job_in(folder, R"({"bytes":4,"write":"c.bin"})"), {}, {}, device);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kMemoryFault);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(device.buffers(), 0U);
}

TEST(RunJob, LabelsMustMatchTheFile) {
  const TemporaryFolder folder;
  put_file(folder / "a.bin", "12345");
  AddOneDevice device;
  Status status = run_job(job_in(folder, R"({"buffer":"a.bin","write":"b.npy","dtype":"int16"})"), {}, {}, device);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "args[0]: shape [2] of int16 does not match the buffer's 5 bytes");
  status = run_job(job_in(folder, R"({"i32":1},{"buffer":"gone.bin"})"), {}, {}, device);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(status.error().message, testing::HasSubstr("gone.bin"));
}

}  // namespace
}  // namespace zyfa::io
