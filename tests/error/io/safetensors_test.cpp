// Every way a safetensors file can be wrong: the error is typed and names the file, the value and what is allowed.
#include "runtime/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/io/files.h"

namespace zyfa::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace testing_support;

// The message of a corrupt file.
std::string refusal(std::string_view bytes) {
  const auto parsed = Safetensors::parse(to_bytes(bytes), "in.safetensors");
  EXPECT_FALSE(parsed) << "accepted";
  if (parsed) {
    return "";
  }
  EXPECT_EQ(parsed.error().code, ErrorCode::kCorruptData);
  EXPECT_THAT(parsed.error().message, testing::StartsWith("in.safetensors: "));
  return parsed.error().message;
}

// The message for one tensor "q" described by `entry`, over four data bytes.
std::string entry_refusal(const std::string& entry) {
  return refusal(safetensors_text(R"({"q":)" + entry + "}", "abcd"));
}

TEST(SafetensorsErrors, TruncatedAtEveryByte) {
  const std::string whole =
      safetensors_text(R"({"__metadata__":{"mask":"causal"},"k":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                       R"("q":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]}})",
                       "0123456789ab");
  ASSERT_TRUE(Safetensors::parse(to_bytes(whole), "x"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    const std::string message = refusal(std::string_view(whole).substr(0, length));
    if (length < 8) {
      EXPECT_THAT(message, HasSubstr(std::to_string(length) + " bytes are too few"));
    } else if (length < whole.size() - 12) {
      EXPECT_THAT(message, HasSubstr("exceeds " + std::to_string(length - 8) + ", what the file has left"));
    } else {
      EXPECT_THAT(message, HasSubstr("truncated"));
    }
  }
}

TEST(SafetensorsErrors, TrailingBytes) {
  const std::string whole = safetensors_text(R"({"q":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab");
  EXPECT_THAT(refusal(whole + "c"), HasSubstr("the tensors end at data byte 2, but the file has 3 data bytes"));
}

TEST(SafetensorsErrors, HeaderLength) {
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("header length 18446744073709551615 exceeds 0"));
  std::string huge = safetensors_text("{}", std::string(1000, ' '));
  huge[7] = '\x7f';
  EXPECT_THAT(refusal(huge), HasSubstr("what the file has left"));
}

TEST(SafetensorsErrors, HeaderIsNotJson) {
  EXPECT_THAT(refusal(safetensors_text("", "")), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(refusal(safetensors_text("{\"q\":", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(safetensors_text("{\"q\xff\":1}", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(safetensors_text("[1]", "")), HasSubstr("header is [1]; must be an object"));
  EXPECT_THAT(refusal(safetensors_text(std::string(100000, '['), "")), HasSubstr("nested deeper than 16"));
}

TEST(SafetensorsErrors, RepeatedName) {
  const std::string entry = R"("q":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  EXPECT_THAT(refusal(safetensors_text("{" + entry + "," + entry + "}", "ab")), HasSubstr("'q' appears twice"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]})"),
              HasSubstr("'dtype' appears twice"));
}

TEST(SafetensorsErrors, Metadata) {
  EXPECT_THAT(refusal(safetensors_text(R"({"__metadata__":3})", "")), HasSubstr("__metadata__ is 3"));
  EXPECT_THAT(refusal(safetensors_text(R"({"__metadata__":{"scale":0.5}})", "")),
              HasSubstr("entry 'scale' is 0.5; must be a string"));
}

TEST(SafetensorsErrors, MissingFields) {
  EXPECT_THAT(entry_refusal("7"), HasSubstr("tensor 'q': is 7; must be an object"));
  EXPECT_THAT(entry_refusal(R"({"shape":[4],"data_offsets":[0,4]})"), HasSubstr("has no dtype"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","data_offsets":[0,4]})"), HasSubstr("has no shape"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","shape":[4]})"), HasSubstr("has no data_offsets"));
}

TEST(SafetensorsErrors, Dtype) {
  EXPECT_THAT(entry_refusal(R"({"dtype":"F31","shape":[4],"data_offsets":[0,4]})"),
              AllOf(HasSubstr("dtype is \"F31\"; must be one of BOOL, I8"), HasSubstr("BF16"), HasSubstr("F8_E4M3")));
  EXPECT_THAT(entry_refusal(R"({"dtype":null,"shape":[4],"data_offsets":[0,4]})"), HasSubstr("dtype is null"));
}

TEST(SafetensorsErrors, Shape) {
  for (const char* extent : {"-1", "1.0", "true", "\"4\"", "9223372036854775808", "1e30"}) {
    SCOPED_TRACE(extent);
    EXPECT_THAT(entry_refusal(std::string(R"({"dtype":"U8","data_offsets":[0,4],"shape":[)") + extent + "]}"),
                HasSubstr("must be an integer from 0 to 2^63 - 1"));
  }
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})"), HasSubstr("must be an array"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"F32","shape":[4294967296,2147483648],"data_offsets":[0,4]})"),
              HasSubstr("shape [4294967296, 2147483648] of F32 passes 2^63 - 1 bytes"));
  // A product that wraps to exactly the right size in 64 bits.
  EXPECT_THAT(entry_refusal(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"),
              HasSubstr("passes 2^63 - 1"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"BF16","shape":[3],"data_offsets":[0,4]})"),
              HasSubstr("hold 4 bytes, but shape [3] of BF16 needs 6"));
}

TEST(SafetensorsErrors, Offsets) {
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","shape":[4],"data_offsets":[0]})"), HasSubstr("must be two integers"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","shape":[4],"data_offsets":[-4,0]})"), HasSubstr("must be two integers"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})"), HasSubstr("must ascend"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","shape":[4],"data_offsets":[1,5]})"),
              HasSubstr("end within the 4 data bytes"));
  EXPECT_THAT(entry_refusal(R"({"dtype":"U8","shape":[2],"data_offsets":[18446744073709551615,1]})"),
              HasSubstr("must ascend"));
}

TEST(SafetensorsErrors, OverlapsAndHoles) {
  const auto two = [](const std::string& a, const std::string& b) {
    return refusal(safetensors_text(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a +
                                        R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}",
                                    "abcdef"));
  };
  EXPECT_THAT(two("[0,2]", "[1,3]"),
              HasSubstr("'b' begins at data byte 1, inside the tensor before it, which ends at 2"));
  EXPECT_THAT(two("[0,2]", "[0,2]"), HasSubstr("inside the tensor before it"));
  EXPECT_THAT(two("[0,2]", "[3,5]"), HasSubstr("'b' begins at data byte 3, after unused bytes from 2"));
  EXPECT_THAT(two("[4,6]", "[2,4]"), HasSubstr("'b' begins at data byte 2, after unused bytes from 0"));
}

TEST(SafetensorsErrors, MissingTensorListsWhatThereIs) {
  const auto parsed = Safetensors::parse(
      to_bytes(safetensors_text(R"({"query":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab")), "f");
  ASSERT_TRUE(parsed);
  const auto tensor = parsed->find("q");
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(tensor.error().message, "f: no tensor 'q'; the file has 'query'");
}

TEST(SafetensorsErrors, WriterRefusesWhatItCouldNotReadBack) {
  const TemporaryFolder folder;
  const std::vector<std::byte> data(4);
  Status status = write_safetensors(folder / "f", {{"x", {ElementType::kF32, {2}, data}}}, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  status = write_safetensors(folder / "f", {{"__metadata__", {ElementType::kF32, {1}, data}}}, {});
  EXPECT_FALSE(status);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace zyfa::io
