// Entries that are cut, flipped, foreign or of another version: set aside, counted, rebuilt, never handed out.
#include <sys/stat.h>

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cache/store/cache_testing.h"

namespace zyfa::cache {
namespace {

constexpr std::size_t kSmallObject = 96;

class Damage : public testing::Test {
 protected:
  void SetUp() override {
    Store::open(root(), LayerAccess::kWritable).value();
    sound_ = std::string(as_text(entry_of(1, kSmallObject).file_bytes()));
  }
  [[nodiscard]] std::string root() const { return directory_.path("cache"); }

  // Puts `file` where the entry of key 1 belongs and expects it to be refused, set aside and replaced by a sound one.
  // Returns the error that the observer was told.
  CacheEvent expect_rebuilt(const std::string& file, const PayloadValidator& validator = nullptr) {
    const std::string path = entry_path(root(), key_of(1));
    write_text(path, file);
    EventLog log;
    {
      CacheOptions options;
      options.observer = log.observer();
      options.validator = validator;
      Cache cache(config_for(root()), std::move(options));
      const auto lookup = cache.get_or_build(key_of(1), builder_of(1, kSmallObject));
      EXPECT_TRUE(lookup);
      if (!lookup) return {};
      EXPECT_EQ(lookup->source, CacheSource::kBuilt);
      EXPECT_TRUE(holds(*lookup->entry, object_of(1, kSmallObject)));
      EXPECT_EQ(cache.stats().rejected, 1u);
      EXPECT_EQ(cache.stats().builds, 1u);
    }
    EXPECT_EQ(read_text(path), sound_);
    EXPECT_EQ(log.events().size(), 1u);
    return log.events().empty() ? CacheEvent{} : log.events().front();
  }
  [[nodiscard]] std::vector<std::string> rejected() const {
    std::vector<std::string> names;
    for (const auto& item : std::filesystem::directory_iterator(root() + "/v1/rejected")) {
      names.push_back(item.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  TemporaryDirectory directory_;
  std::string sound_;
};

TEST_F(Damage, CutAtEveryLength) {
  for (std::size_t size = 0; size < sound_.size(); ++size) {
    SCOPED_TRACE(size);
    expect_rebuilt(sound_.substr(0, size));
    if (HasFailure()) return;
  }
  EXPECT_EQ(rejected(), (std::vector<std::string>{key_of(1).name() + ".truncated"}));
}

TEST_F(Damage, EachByteFlipped) {
  for (std::size_t i = 0; i < sound_.size(); ++i) {
    SCOPED_TRACE(i);
    std::string damaged = sound_;
    damaged[i] = static_cast<char>(~damaged[i]);
    expect_rebuilt(damaged);
    if (HasFailure()) return;
  }
}

TEST_F(Damage, RandomPayloadOfTheRightSize) {
  const auto noise = object_of(99, sound_.size());
  EXPECT_NE(expect_rebuilt(std::string(as_text(noise))).error.message.find("does not begin as a zyfa cache entry"),
            std::string::npos);
  std::string payload = sound_;
  const auto object = object_of(98, kSmallObject);
  payload.replace(payload.size() - kEntryTrailerBytes - kSmallObject, kSmallObject, as_text(object));
  EXPECT_NE(expect_rebuilt(payload).error.message.find("checksum"), std::string::npos);
}

TEST_F(Damage, RightChecksumWrongKey) {
  const Entry other = entry_of(2, kSmallObject);
  const CacheEvent event = expect_rebuilt(std::string(as_text(other.file_bytes())));
  EXPECT_EQ(event.kind, CacheEventKind::kEntryRejected);
  EXPECT_EQ(event.key_name, key_of(1).name());
  EXPECT_NE(event.error.message.find("belongs to another key"), std::string::npos);
  ASSERT_EQ(event.error.details.size(), 1u);
  EXPECT_EQ(event.error.details[0], "number: wanted 1, the entry has 2");
  EXPECT_EQ(rejected(), (std::vector<std::string>{key_of(1).name() + ".key-mismatch"}));
}

// The runtime hands in the check of the ELF header; here the object's first byte plays the architecture.
TEST_F(Damage, AnotherArchitecturesObjectUnderThisKey) {
  auto object = object_of(1, kSmallObject);
  const std::byte ours = object[0];
  object[0] = ~ours;
  const Entry foreign = Entry::encode(key_of(1).bytes, as_bytes("metadata"), object).value();
  const auto validator = [ours](const Entry& entry) -> Status {
    if (entry.object()[0] != ours) return make_error(ErrorCode::kArchMismatch, "built for gfx942, not for gfx950");
    return {};
  };
  const CacheEvent event = expect_rebuilt(std::string(as_text(foreign.file_bytes())), validator);
  EXPECT_EQ(event.error.code, ErrorCode::kArchMismatch);
  EXPECT_NE(event.error.message.find("built for gfx942"), std::string::npos);
  EXPECT_EQ(rejected(), (std::vector<std::string>{key_of(1).name() + ".payload-rejected"}));
}

TEST_F(Damage, AnotherFormatVersionIsAMiss) {
  std::string next = sound_.substr(0, sound_.size() - kEntryTrailerBytes);
  next[8] = static_cast<char>(kEntryVersion + 1);
  next += as_text(canonical_bytes(hash128(as_bytes(next))));
  EXPECT_NE(expect_rebuilt(next).error.message.find("format version 2"), std::string::npos);
}

TEST_F(Damage, BytesThatFollowTheEntry) { expect_rebuilt(sound_ + "x"); }

TEST_F(Damage, ADirectoryOrFifoInTheEntrysPlace) {
  const std::string path = entry_path(root(), key_of(1));
  for (const auto make :
       {+[](const char* at) { return ::mkdir(at, 0700); }, +[](const char* at) { return ::mkfifo(at, 0600); }}) {
    ASSERT_EQ(make(path.c_str()), 0);
    {
      Cache cache(config_for(root()), {});
      EXPECT_EQ(cache.get_or_build(key_of(1), builder_of(1, kSmallObject))->source, CacheSource::kBuilt);
      EXPECT_EQ(cache.stats().rejected, 1u);
    }
    EXPECT_EQ(read_text(path), sound_);
    std::filesystem::remove_all(path);
    std::filesystem::remove_all(root() + "/v1/rejected");
  }
}

TEST_F(Damage, LeavingItWhereItIsForTools) {
  const std::string path = entry_path(root(), key_of(1));
  write_text(path, sound_.substr(0, 50));
  const auto store = Store::open(root(), LayerAccess::kWritable).value();
  const auto read = store->read_named(key_of(1).hash, OnReject::kLeave);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().defect, EntryDefect::kTruncated);
  EXPECT_NE(read.error().error.message.find(path), std::string::npos);
  EXPECT_EQ(read_text(path), sound_.substr(0, 50));

  write_text(path, as_text(entry_of(2).file_bytes()));
  EXPECT_EQ(store->read_named(key_of(1).hash, OnReject::kLeave).error().defect, EntryDefect::kKeyMismatch);
  write_text(path, sound_);
  EXPECT_TRUE(store->read_named(key_of(1).hash, OnReject::kLeave).value().has_value());
}

// A device that would not load it: forgotten everywhere, read-only layers included, and built once more.
TEST_F(Damage, ADiscardedEntryIsBuiltAgain) {
  const std::string prebuilt = directory_.path("prebuilt");
  const Entry bad = Entry::encode(key_of(1).bytes, {}, object_of(7)).value();
  ASSERT_TRUE(Store::open(prebuilt, LayerAccess::kWritable).value()->publish(bad));
  Cache cache(config_for(root(), {prebuilt}), {});
  EXPECT_TRUE(holds(*cache.get_or_build(key_of(1), builder_of(1))->entry, object_of(7)));
  cache.discard(key_of(1));
  const auto healed = cache.get_or_build(key_of(1), builder_of(1)).value();
  EXPECT_EQ(healed.source, CacheSource::kBuilt);
  EXPECT_TRUE(holds(*healed.entry, object_of(1)));
  EXPECT_EQ(cache.stats().discarded, 1u);
  cache.flush();
  // The healed entry wins over the prebuilt one in the next process.
  Cache next(config_for(root(), {prebuilt}), {});
  EXPECT_TRUE(holds(*next.get(key_of(1))->entry, object_of(1)));
}

}  // namespace
}  // namespace zyfa::cache
