// npy files that are damaged, of another kind or too large are refused with what is allowed.
#include "runtime/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/io/files.h"

namespace zyfa::io {
namespace {

using testing::HasSubstr;
using namespace testing_support;

std::string npy_text(std::string_view header, std::string_view data) {
  std::string text = "\x93NUMPY\x01";
  text += '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return text.append(header).append(data);
}

std::string refusal(std::string_view bytes, ErrorCode code = ErrorCode::kCorruptData) {
  const auto array = parse_npy(to_bytes(bytes), "a.npy");
  EXPECT_FALSE(array) << "accepted";
  if (array) {
    return "";
  }
  EXPECT_EQ(array.error().code, code);
  EXPECT_THAT(array.error().message, testing::StartsWith("a.npy: "));
  return array.error().message;
}

TEST(NpyErrors, TruncatedAtEveryByte) {
  const std::string whole = npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", "12345678");
  ASSERT_TRUE(parse_npy(to_bytes(whole), "x"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    refusal(std::string_view(whole).substr(0, length));
  }
  EXPECT_THAT(refusal(whole + "9"), HasSubstr("shape [2] of float32 does not match the 9 data bytes"));
}

TEST(NpyErrors, MagicAndVersion) {
  EXPECT_THAT(refusal("not numpy at all"), HasSubstr("not a .npy file"));
  std::string text = npy_text("{}", "");
  text[6] = 4;
  EXPECT_THAT(refusal(text), HasSubstr("version 4.0; must be 1.0, 2.0 or 3.0"));
}

TEST(NpyErrors, Header) {
  EXPECT_THAT(refusal(npy_text("", "")), HasSubstr("expected '{'"));
  EXPECT_THAT(refusal(npy_text("{'descr'", "")), HasSubstr("expected a quoted key and ':'"));
  EXPECT_THAT(refusal(npy_text("{'descr': '<f4'", "")), HasSubstr("expected ',' or '}'"));
  EXPECT_THAT(refusal(npy_text("{'descr': '<f4', }", "")), HasSubstr("lacks one of"));
  EXPECT_THAT(refusal(npy_text("{'descr': '<f4', 'descr': '<f4', }", "")), HasSubstr("each once"));
  EXPECT_THAT(refusal(npy_text("{'shape': (1, -2), }", "")), HasSubstr("tuple of integers"));
  EXPECT_THAT(refusal(npy_text("{'shape': (99999999999999999999,), }", "")), HasSubstr("tuple of integers"));
  EXPECT_THAT(refusal(npy_text("{'fortran_order': 0, }", "")), HasSubstr("True or False"));
  EXPECT_THAT(refusal(npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (), } x", "1234")),
              HasSubstr("expected the end of the header"));
}

TEST(NpyErrors, ArraysOfOtherKinds) {
  const auto other = [](const std::string& descr, const std::string& order) {
    return refusal(npy_text("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': (1,), }", "1234"),
                   ErrorCode::kInvalidArgument);
  };
  EXPECT_THAT(other("'>f4'", "False"), HasSubstr("descr '>f4'; must be a little-endian"));
  EXPECT_THAT(other("'<f4'", "True"), HasSubstr("in Fortran order"));
  EXPECT_THAT(other("[('x', '<f4')]", "False"), HasSubstr("[('x', '<f4')]"));
  EXPECT_THAT(other("'<c8'", "False"), HasSubstr("'<c8'"));
}

TEST(NpyErrors, ShapeThatOverflows) {
  EXPECT_THAT(refusal(npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,), }", "1234")),
              HasSubstr("does not match"));
}

TEST(NpyErrors, WriterChecksTheShape) {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> shape{3};
  const Status status = write_npy(folder / "a.npy", ElementType::kF32, shape, std::vector<std::byte>(8));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("shape [3] of float32 does not match 8 bytes"));
}

}  // namespace
}  // namespace zyfa::io
