// .npy files against bytes that NumPy's format document prescribes.
#include "runtime/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/io/files.h"

namespace zyfa::io {
namespace {

using testing::ElementsAre;
using namespace testing_support;

std::string npy_text(int major, std::string_view header, std::string_view data) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return text.append(header).append(data);
}

TEST(Npy, ReadsAllVersions) {
  for (const int major : {1, 2, 3}) {
    const auto array =
        parse_npy(to_bytes(npy_text(major, "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 1, 3), }   \n",
                                    "abcdefghijkl")),
                  "x");
    ASSERT_TRUE(array) << to_string(array.error());
    EXPECT_EQ(array->type, ElementType::kU16);
    EXPECT_THAT(array->shape, ElementsAre(2, 1, 3));
    EXPECT_EQ(to_text(array->data), "abcdefghijkl");
  }
}

TEST(Npy, ScalarVectorAndFreeSpelling) {
  auto array =
      parse_npy(to_bytes(npy_text(1, "{\"shape\":(),\"fortran_order\":False,\"descr\":\"<f8\"}", "12345678")), "x");
  ASSERT_TRUE(array) << to_string(array.error());
  EXPECT_TRUE(array->shape.empty());
  EXPECT_EQ(array->type, ElementType::kF64);
  array = parse_npy(to_bytes(npy_text(1, "{ 'descr' : '|i1' , 'fortran_order' : False , 'shape' : ( 2 , ) , }", "ab")),
                    "x");
  ASSERT_TRUE(array) << to_string(array.error());
  EXPECT_THAT(array->shape, ElementsAre(2));
}

TEST(Npy, WritesWhatNumpyWrites) {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> shape{128, 2};
  ASSERT_TRUE(write_npy(folder / "a.npy", ElementType::kBf16, shape, std::vector<std::byte>(512, std::byte{7})));
  // np.save of a (128, 2) uint16 array: version 1.0, header length 0x76, padded to 128 bytes with a line break last.
  std::string header = "{'descr': '<u2', 'fortran_order': False, 'shape': (128, 2), }";
  header.resize(0x75, ' ');
  header += '\n';
  EXPECT_EQ(get_file(folder / "a.npy"),
            std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + std::string(512, '\x07'));
}

TEST(Npy, VectorKeepsItsComma) {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> shape{3};
  ASSERT_TRUE(write_npy(folder / "a.npy", ElementType::kF8E4M3, shape, to_bytes("abc")));
  EXPECT_THAT(get_file(folder / "a.npy"),
              testing::HasSubstr("'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"));
  const auto back = read_npy(folder / "a.npy");
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_THAT(back->shape, ElementsAre(3));
  EXPECT_EQ(back->type, ElementType::kU8);
}

TEST(Npy, DataIsAligned) {
  const TemporaryFolder folder;
  for (std::int64_t rank = 0; rank < 12; ++rank) {
    const std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
    ASSERT_TRUE(write_npy(folder / "a.npy", ElementType::kU8, shape, to_bytes("x")));
    EXPECT_EQ(get_file(folder / "a.npy").size() % 64, 1U);
    EXPECT_TRUE(read_npy(folder / "a.npy"));
  }
}

}  // namespace
}  // namespace zyfa::io
