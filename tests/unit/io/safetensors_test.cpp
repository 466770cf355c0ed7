// Safetensors against files written byte by byte here.
#include "runtime/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/io/file.h"
#include "tests/unit/io/files.h"

namespace zyfa::io {
namespace {

using testing::ElementsAre;
using namespace testing_support;

TEST(Safetensors, ReadsAFileWrittenByHand) {
  // u8 1, 2, 3, 4, then bfloat16 1.0 and -2.0 with their low byte first.
  const std::string data("\x01\x02\x03\x04\x80\x3f\x00\xc0", 8);
  const std::string whole = safetensors_text(
      R"({"__metadata__":{"mask":"causal"},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"none":{"dtype":"F32","shape":[0,9],"data_offsets":[8,8]}})",
      data);
  const auto parsed = Safetensors::parse(to_bytes(whole), "x");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  EXPECT_EQ(parsed->metadata().at("mask"), "causal");
  EXPECT_EQ(parsed->tensors().size(), 3U);
  const Tensor b = *parsed->find("b");
  EXPECT_EQ(b.type, ElementType::kBf16);
  EXPECT_THAT(b.shape, ElementsAre(2, 1));
  EXPECT_EQ(to_text(b.bytes), data.substr(4));
  EXPECT_EQ(to_text(parsed->find("a")->bytes), "\x01\x02\x03\x04");
  EXPECT_TRUE(parsed->find("none")->bytes.empty());
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  const std::vector<std::byte> ones = to_bytes("\x01\x02"), halves = to_bytes("abcd");
  const Status status = write_safetensors(
      folder / "f", {{"v", {ElementType::kU8, {2}, ones}}, {"lse", {ElementType::kF32, {1}, halves}}}, {{"k", "w"}});
  ASSERT_TRUE(status) << to_string(status.error());
  std::string header = R"({"__metadata__":{"k":"w"},"lse":{"data_offsets":[0,4],"dtype":"F32","shape":[1]},)"
                       R"("v":{"data_offsets":[4,6],"dtype":"U8","shape":[2]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(get_file(folder / "f"), safetensors_text(header, "abcd\x01\x02"));
}

TEST(Safetensors, EveryTypeRoundTrips) {
  const TemporaryFolder folder;
  const std::vector<std::byte> data(8 * 6, std::byte{0x5a});
  for (int i = 0; i <= static_cast<int>(ElementType::kF8E5M2); ++i) {
    const auto type = static_cast<ElementType>(i);
    const std::size_t bytes = 6 * element_bytes(type);
    ASSERT_TRUE(write_safetensors(folder / "t", {{"x", {type, {2, 3}, std::span(data).first(bytes)}}}, {}));
    const auto back = Safetensors::read(folder / "t");
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(back->find("x")->type, type);
    EXPECT_EQ(back->find("x")->bytes.size(), bytes);
    EXPECT_TRUE(back->metadata().empty());
  }
}

TEST(Safetensors, EmptyFileOfTensors) {
  const auto parsed = Safetensors::parse(to_bytes(safetensors_text("{}", "")), "x");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->tensors().empty());
}

TEST(Safetensors, TensorsStayValidWhenTheFileMoves) {
  auto parsed = Safetensors::parse(
      to_bytes(safetensors_text(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "xyz")), "x");
  ASSERT_TRUE(parsed);
  const Safetensors moved = *std::move(parsed);
  EXPECT_EQ(to_text(moved.find("a")->bytes), "xyz");
}

TEST(Safetensors, SampleOfTrainedActivations) {
  const auto file = Safetensors::read(ZYFA_TEST_DATA "/gqa_layer2_512.safetensors");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_THAT(file->find("q")->shape, ElementsAre(512, 4, 128));
  EXPECT_THAT(file->find("k")->shape, ElementsAre(512, 2, 128));
  EXPECT_THAT(file->find("v")->shape, ElementsAre(512, 2, 128));
  EXPECT_EQ(file->metadata().at("mask"), "causal");
  EXPECT_EQ(file->metadata().at("softmax_scale"), "0.08838834764831845");
}

TEST(File, WriteReplacesAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  put_file(folder / "f", "old content");
  ASSERT_TRUE(write_file(folder / "f", {to_bytes("ne"), to_bytes("w")}));
  EXPECT_EQ(get_file(folder / "f"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, Products) {
  std::uint64_t bytes = 0;
  const auto product = [&](std::vector<std::int64_t> shape, std::size_t element) {
    return checked_bytes(shape, element, bytes);
  };
  EXPECT_TRUE(product({}, 4));
  EXPECT_EQ(bytes, 4U);
  EXPECT_TRUE(product({3, 5}, 2));
  EXPECT_EQ(bytes, 30U);
  EXPECT_TRUE(product({INT64_MAX, INT64_MAX, 0}, 8));  // empty, however large the rest
  EXPECT_EQ(bytes, 0U);
  EXPECT_TRUE(product({INT64_MAX}, 1));
  EXPECT_FALSE(product({INT64_MAX}, 2));
  EXPECT_FALSE(product({1LL << 32, 1LL << 31}, 1));
  EXPECT_FALSE(product({-1, 0}, 1));
}

TEST(File, QuotedTextHasNoControlBytes) {
  EXPECT_EQ(quote("a\n\x1b[31m"), "'a\\x0a\\x1b[31m'");
  EXPECT_EQ(quote(std::string(100, 'x')), "'" + std::string(80, 'x') + "...'");
}

}  // namespace
}  // namespace zyfa::io
