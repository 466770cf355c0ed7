// The entry format against bytes written by hand, and every kind of damage to it.
#include "cache/entry.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace zyfa::cache {
namespace {

using std::string_literals::operator""s;

std::string small_file() {
  const Entry entry = Entry::encode("key", as_bytes("meta"), as_bytes("object")).value();
  return std::string(as_text(entry.file_bytes()));
}

std::string with_checksum(std::string body) {
  const auto trailer = canonical_bytes(hash128(as_bytes(body)));
  return body + std::string(as_text(trailer));
}

EntryDefect defect_of(const std::string& file) {
  const auto entry = Entry::decode(as_bytes(file));
  EXPECT_FALSE(entry);
  return entry ? EntryDefect::kUnreadable : entry.error().defect;
}

// Written out by hand from the grammar in entry.h: 64 + 3 + 4 = 71, padded to 80, + 6 = 86, + 16 = 102 bytes.
TEST(Entry, GoldenBytes) {
  const std::string body = "\x89ZYFA\r\n\x1a"s + "\x01\0\0\0"s + "\x40\0\0\0"s + "\x03\0\0\0\0\0\0\0"s +
                           "\x04\0\0\0\0\0\0\0"s + "\x06\0\0\0\0\0\0\0"s + std::string(24, '\0') + "key" + "meta" +
                           std::string(9, '\0') + "object";
  ASSERT_EQ(body.size(), 86u);
  EXPECT_EQ(small_file().size(), 102u);
  EXPECT_EQ(small_file().substr(0, 86), body);
  EXPECT_EQ(small_file(), with_checksum(body));
}

TEST(Entry, DecodeGivesBackTheParts) {
  const Entry entry = Entry::decode(as_bytes(small_file())).value();
  EXPECT_EQ(entry.key(), "key");
  EXPECT_EQ(as_text(entry.metadata()), "meta");
  EXPECT_EQ(as_text(entry.object()), "object");
  EXPECT_EQ(as_text(entry.file_bytes()), small_file());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(entry.object().data()) % kObjectAlignment, 0u);
}

TEST(Entry, PartsOfEverySizeComeBack) {
  for (std::size_t size = 1; size < 70; ++size) {
    const std::string key(size, 'k'), metadata(size - 1, 'm'), object(70 - size, 'o');
    const Entry encoded = Entry::encode(key, as_bytes(metadata), as_bytes(object)).value();
    const Entry entry = Entry::decode(encoded.file_bytes()).value();
    EXPECT_EQ(entry.key(), key);
    EXPECT_EQ(as_text(entry.metadata()), metadata);
    EXPECT_EQ(as_text(entry.object()), object);
  }
}

TEST(Entry, EmptyOrHugePartsAreNotEncoded) {
  EXPECT_FALSE(Entry::encode("", {}, as_bytes("o")));
  EXPECT_FALSE(Entry::encode("k", {}, {}));
  EXPECT_FALSE(Entry::encode(std::string(kMaxKeyBytes + 1, 'k'), {}, as_bytes("o")));
  const std::string large(kMaxMetadataBytes + 1, 'm');
  const auto refused = Entry::encode("k", as_bytes(large), as_bytes("o"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("16777217"), std::string::npos);
}

TEST(Entry, EveryCutIsTruncated) {
  const std::string file = small_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(defect_of(file.substr(0, size)), EntryDefect::kTruncated) << size;
  }
}

TEST(Entry, EveryFlippedBitIsFound) {
  const std::string file = small_file();
  for (std::size_t i = 0; i < file.size() * 8; ++i) {
    std::string damaged = file;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(Entry::decode(as_bytes(damaged))) << "bit " << i;
  }
}

TEST(Entry, EachDefectHasItsOwnName) {
  const std::string file = small_file();
  const std::string body = file.substr(0, 86);
  const auto patched = [&body](std::size_t at, char value) {
    std::string changed = body;
    changed[at] = value;
    return with_checksum(changed);
  };
  EXPECT_EQ(defect_of("ELF"), EntryDefect::kBadMagic);
  EXPECT_EQ(defect_of(patched(0, 'x')), EntryDefect::kBadMagic);
  EXPECT_EQ(defect_of(patched(8, 2)), EntryDefect::kBadVersion);
  EXPECT_EQ(defect_of(patched(12, 65)), EntryDefect::kBadSizes);
  EXPECT_EQ(defect_of(patched(16, 0)), EntryDefect::kBadSizes);       // empty key
  EXPECT_EQ(defect_of(patched(18, 2)), EntryDefect::kBadSizes);       // key of 131,075 bytes
  EXPECT_EQ(defect_of(patched(23, '\x80')), EntryDefect::kBadSizes);  // key of 2^63 and some bytes
  EXPECT_EQ(defect_of(patched(31, '\xff')), EntryDefect::kBadSizes);  // metadata
  EXPECT_EQ(defect_of(patched(39, '\xff')), EntryDefect::kBadSizes);  // object
  EXPECT_EQ(defect_of(patched(40, 1)), EntryDefect::kBadSizes);       // reserved
  EXPECT_EQ(defect_of(patched(79, 1)), EntryDefect::kBadSizes);       // pad
  EXPECT_EQ(defect_of(patched(32, 7)), EntryDefect::kTruncated);
  EXPECT_EQ(defect_of(patched(32, 5)), EntryDefect::kTrailingBytes);
  EXPECT_EQ(defect_of(file + "x"), EntryDefect::kTrailingBytes);
  EXPECT_EQ(defect_of(body.substr(0, 80) + "OBJECT" + file.substr(86)), EntryDefect::kBadChecksum);
}

TEST(Entry, DefectNamesAreDistinct) {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(EntryDefect::kUnreadable); ++i) {
    names.push_back(entry_defect_name(static_cast<EntryDefect>(i)));
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_EQ(std::ranges::find(names, "unknown"), names.end());
}

TEST(Entry, KeyMismatchSaysWhichFieldDiffers) {
  const auto key = [](std::uint64_t dim) { return KeyBuilder(1).add_u64("dim", dim).build()->bytes; };
  const EntryError error = key_mismatch(key(128), key(64));
  EXPECT_EQ(error.defect, EntryDefect::kKeyMismatch);
  ASSERT_EQ(error.error.details.size(), 1u);
  EXPECT_EQ(error.error.details[0], "dim: wanted 128, the entry has 64");
}

TEST(Metadata, GoldenBytesAndRoundTrip) {
  const MetadataPairs pairs = {{"llvm", "22"}, {"empty", ""}};
  const std::string bytes = encode_metadata(pairs);
  EXPECT_EQ(bytes,
            "\x02\0\0\0"s + "\x04\0\0\0"s + "llvm" + "\x02\0\0\0"s + "22" + "\x05\0\0\0"s + "empty" + "\0\0\0\0"s);
  EXPECT_EQ(decode_metadata(as_bytes(bytes)).value(), pairs);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_metadata(as_bytes(bytes).first(size))) << size;
  }
  EXPECT_FALSE(decode_metadata(as_bytes(bytes + "x")));
  EXPECT_FALSE(decode_metadata(as_bytes("\xff\xff\xff\xff"s)));
}

}  // namespace
}  // namespace zyfa::cache
