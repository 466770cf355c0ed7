// The listing section: what is written comes back, and malformed bytes are refused without harm.
#include <random>

#include <gtest/gtest.h>

#include "jit/object/listing_notes.h"

namespace zyfa::jit {
namespace {

std::string sample_section(int instructions) {
  ListingNotesWriter writer;
  for (int i = 0; i < instructions; ++i) {
    writer.add("stage" + std::to_string(i % 7), "comment " + std::to_string(i % 100), "file.cpp:" + std::to_string(i));
  }
  return writer.finish();
}

TEST(ListingNotes, ComesBack) {
  const auto notes = read_listing_notes(sample_section(1000), 1000);
  ASSERT_TRUE(notes) << to_string(notes.error());
  ASSERT_EQ(notes->size(), 1000u);
  EXPECT_EQ((*notes)[999].stage, "stage5");
  EXPECT_EQ((*notes)[999].comment, "comment 99");
  EXPECT_EQ((*notes)[999].source, "file.cpp:999");
  EXPECT_EQ((*notes)[0].source, "file.cpp:0");
}

// Grammar example worked out by hand: strings "a", "", one note (0, 1, 1), two instructions.
TEST(ListingNotes, FollowsTheGrammar) {
  ListingNotesWriter writer;
  writer.add("a", "", "");
  writer.add("a", "", "");
  EXPECT_EQ(writer.finish(), "zyfa-listing 1\nCBaABABBCAA");
}

TEST(ListingNotes, LongTextIsCut) {
  ListingNotesWriter writer;
  writer.add(std::string(5000, 'x'), "", "");
  const auto notes = read_listing_notes(writer.finish(), 1);
  ASSERT_TRUE(notes);
  EXPECT_EQ((*notes)[0].stage, std::string(kMaxNoteText, 'x'));
}

TEST(ListingNotes, TruncationAtEveryLengthIsRefused) {
  const std::string section = sample_section(20);
  for (std::size_t n = 0; n < section.size(); ++n) {
    const auto notes = read_listing_notes(std::string_view(section).substr(0, n), 1000);
    ASSERT_FALSE(notes) << n;
    EXPECT_EQ(notes.error().code, ErrorCode::kCorruptData);
  }
  EXPECT_FALSE(read_listing_notes(section + "A", 1000));
  EXPECT_FALSE(read_listing_notes(section, 19));
}

TEST(ListingNotes, RandomDamageIsHarmless) {
  std::mt19937 random(7);
  const std::string section = sample_section(50);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = section;
    for (unsigned k = 0; k < 1 + random() % 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto notes = read_listing_notes(damaged, 50);
    if (notes) {
      EXPECT_LE(notes->size(), 50u);
    }
  }
}

}  // namespace
}  // namespace zyfa::jit
