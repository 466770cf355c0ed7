// Damaged and invented bytes into every reader of the cache, from fixed seeds; run it under asan-ubsan to see memory
// errors. Mutants get a right checksum half of the time, or nothing behind the checksum would ever be reached.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(std::string bytes) {
    for (std::uint64_t count = 1 + below(4); count > 0; --count) mutate_once(bytes);
    return bytes;
  }
  std::string invent(std::size_t most) {
    std::string bytes(below(most), '\0');
    std::ranges::generate(bytes, [this] { return static_cast<char>(random_()); });
    return bytes;
  }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  void mutate_once(std::string& bytes) {
    if (bytes.empty()) return;
    const std::size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random_());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, invent(40));
        break;
      case 4:
        bytes.erase(at, below(40));
        break;
      default:  // a size field that is extreme or off by little
        constexpr std::uint64_t kValues[] = {0, 1, 0x7fffffff, 0xffffffff, 0x100000000, ~std::uint64_t{0}, 1u << 26};
        std::uint64_t value = kValues[below(std::size(kValues))] + below(3) - 1;
        for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i, value >>= 8)
          bytes[i] = static_cast<char>(value);
    }
  }

  std::mt19937_64 random_;
};

std::string with_checksum(std::string file) {
  if (file.size() < kEntryTrailerBytes) return file;
  file.resize(file.size() - kEntryTrailerBytes);
  return file + std::string(as_text(canonical_bytes(hash128(as_bytes(file)))));
}

// What decodes must encode to the same bytes: the reader accepts nothing that the writer would not write.
void expect_canonical(const std::string& file) {
  const EntryExpected<Entry> entry = Entry::decode(as_bytes(file));
  if (!entry) {
    EXPECT_FALSE(entry.error().error.message.empty());
    return;
  }
  const Entry again = Entry::encode(entry->key(), entry->metadata(), entry->object()).value();
  EXPECT_EQ(as_text(again.file_bytes()), file);
}

TEST(EntryFuzz, MutatedEntries) {
  Mutator mutator(1);
  const std::string sound(as_text(entry_of(1, 300).file_bytes()));
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string file = mutator.mutate(sound);
    if (mutator.below(2) == 0) file = with_checksum(std::move(file));
    accepted += Entry::decode(as_bytes(file)).has_value() ? 1 : 0;
    expect_canonical(file);
  }
  EXPECT_GT(accepted, 1000);  // so the checks behind the checksum were reached
}

TEST(EntryFuzz, InventedBytes) {
  Mutator mutator(2);
  for (int i = 0; i < 50'000; ++i) expect_canonical(mutator.invent(400));
}

TEST(EntryFuzz, MutatedFilesInAStore) {
  const TemporaryDirectory directory;
  const auto store = Store::open(directory.path("cache"), LayerAccess::kWritable).value();
  Mutator mutator(3);
  const Key key = key_of(1);
  const std::string sound(as_text(entry_of(1, 300).file_bytes()));
  for (int i = 0; i < 2'000; ++i) {
    std::string file = mutator.mutate(sound);
    if (mutator.below(2) == 0) file = with_checksum(std::move(file));
    write_text(entry_path(store->root(), key), file);
    const auto read = store->read(key, nullptr, OnReject::kLeave);
    if (!read) continue;
    ASSERT_TRUE(read->has_value());
    EXPECT_EQ((*read)->key(), key.bytes);
  }
}

// A key that decodes is one that a builder makes from the same fields.
TEST(KeyFuzz, MutatedKeys) {
  Mutator mutator(4);
  const std::string sound =
      KeyBuilder(1).add_string("target", "gfx950").add_u64("dim", 128).add_string("s", "").build()->bytes;
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string bytes = mutator.mutate(sound);
    const auto key = decode_key(as_bytes(bytes));
    if (!key) continue;
    ++accepted;
    KeyBuilder builder(key->schema);
    for (const KeyField& field : key->fields) {
      if (field.kind == FieldKind::kU64) builder.add_u64(field.name, field.number);
      if (field.kind == FieldKind::kString) builder.add_string(field.name, field.text);
    }
    EXPECT_EQ(builder.build().value().bytes, bytes);
  }
  EXPECT_GT(accepted, 1000);
}

TEST(MetadataFuzz, MutatedPairs) {
  Mutator mutator(5);
  const std::string sound = encode_metadata({{"llvm", "22"}, {"listing", std::string(100, 'x')}, {"", ""}});
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string bytes = mutator.mutate(sound);
    const auto pairs = decode_metadata(as_bytes(bytes));
    if (!pairs) continue;
    ++accepted;
    EXPECT_EQ(encode_metadata(*pairs), bytes);
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace zyfa::cache
