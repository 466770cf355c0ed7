// The text form of placements: canonical, and back to the same data.
#include "schedules/select/placement.h"

#include <gmock/gmock.h>

#include "schedules/select/select.h"

namespace zyfa::schedules {
namespace {

using testing::HasSubstr;

TEST(Placement, ShippedTextsAreCanonical) {
  for (const Row& row : kernel_table()) {
    const std::string_view text = row.placement;
    const Expected<Placement> placement = parse_placement(text);
    ASSERT_TRUE(placement) << to_string(placement.error());
    EXPECT_EQ(unparse(*placement), text);
  }
}

TEST(Placement, ReadsEveryClause) {
  const Expected<Placement> p = parse_placement(
      "name=x ; waves=8; groups=2; buffers = v:3, k:2, s:1;  # copies\n loop = {a@2,b:3 / c} , d | e@1 ; prio=1,3");
  ASSERT_TRUE(p) << to_string(p.error());
  EXPECT_EQ(p->name, "x");
  EXPECT_EQ(p->waves, 8U);
  EXPECT_EQ(p->groups, 2U);
  EXPECT_EQ(p->buffers, (std::map<std::string, std::uint32_t>{{"k", 2}, {"v", 3}}));
  ASSERT_EQ(p->loop.size(), 2U);
  ASSERT_EQ(p->loop[0].items.size(), 2U);
  const PhaseItem& mixed = p->loop[0].items[0];
  ASSERT_EQ(mixed.streams.size(), 2U);
  EXPECT_EQ(mixed.streams[0].stages, (std::vector<StageRef>{{"a", 2}, {"b", 0}}));
  EXPECT_EQ(mixed.streams[0].weight, 3U);
  EXPECT_EQ(mixed.streams[1].stages, (std::vector<StageRef>{{"c", 0}}));
  EXPECT_EQ(p->priorities, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(unparse(*p), "name=x;waves=8;groups=2;buffers=k:2,v:3;loop={a@2,b:3/c},d|e@1;prio=1,3");
}

TEST(Placement, TwoLoopsAndScalarMath) {
  const Expected<Placement> p =
      parse_placement("name=x;math=scalar;before=a@1|b;before_buffers=k:3,v:1;loop=c;buffers=k:2");
  ASSERT_TRUE(p) << to_string(p.error());
  EXPECT_EQ(p->math, VectorMath::kScalar);
  ASSERT_EQ(p->before.size(), 2U);
  EXPECT_EQ(p->before_buffers, (std::map<std::string, std::uint32_t>{{"k", 3}}));
  EXPECT_EQ(unparse(*p), "name=x;waves=4;groups=1;buffers=k:2;before_buffers=k:3;before=a@1|b;loop=c;math=scalar");
}

TEST(Placement, TripsOfTwoIterations) {
  const Expected<Placement> p = parse_placement("name=x;loop=a@2,a@3|b,b@1;trip=2;buffers=k:2");
  ASSERT_TRUE(p) << to_string(p.error());
  EXPECT_EQ(p->trip, 2U);
  EXPECT_EQ(unparse(*p), "name=x;waves=4;groups=1;trip=2;buffers=k:2;loop=a@2,a@3|b,b@1");
  const Expected<Placement> one = parse_placement("name=x;trip=1;loop=a");
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_EQ(unparse(*one), "name=x;waves=4;groups=1;loop=a");
}

TEST(Placement, QueriesOfAWave) {
  const Expected<Placement> wide = parse_placement("name=x;queries=64;loop=a");
  ASSERT_TRUE(wide) << to_string(wide.error());
  EXPECT_EQ(wide->queries, 64U);
  EXPECT_EQ(unparse(*wide), "name=x;waves=4;queries=64;groups=1;loop=a");
  const Expected<Placement> usual = parse_placement("name=x;queries=32;loop=a");
  ASSERT_TRUE(usual) << to_string(usual.error());
  EXPECT_EQ(usual->queries, 32U);
  EXPECT_EQ(unparse(*usual), "name=x;waves=4;groups=1;loop=a");
}

TEST(Placement, PacedItems) {
  const Expected<Placement> p = parse_placement("name=x;loop={= a@1,b / c:2 / d},{e/f}");
  ASSERT_TRUE(p) << to_string(p.error());
  ASSERT_EQ(p->loop[0].items.size(), 2U);
  const PhaseItem& paced = p->loop[0].items[0];
  EXPECT_TRUE(paced.paced);
  ASSERT_EQ(paced.streams.size(), 3U);
  EXPECT_EQ(paced.streams[0].stages, (std::vector<StageRef>{{"a", 1}, {"b", 0}}));
  EXPECT_EQ(paced.streams[1].weight, 2U);
  EXPECT_FALSE(p->loop[0].items[1].paced);
  EXPECT_EQ(unparse(*p), "name=x;waves=4;groups=1;loop={=a@1,b/c:2/d},{e/f}");
}

TEST(Placement, ParseOfUnparseIsTheSame) {
  const Expected<Placement> p =
      parse_placement("name=n;before={x/y:3}|z;before_buffers=q:4;loop={a:64/b@8,c/d:2},e|f;prio=0,0;math=scalar");
  ASSERT_TRUE(p);
  const Expected<Placement> again = parse_placement(unparse(*p));
  ASSERT_TRUE(again);
  EXPECT_EQ(*p, *again);
}

struct Bad {
  const char* text;
  const char* says;
};

class BadPlacement : public testing::TestWithParam<Bad> {};

TEST_P(BadPlacement, SaysWhatWasExpected) {
  const Expected<Placement> p = parse_placement(GetParam().text);
  ASSERT_FALSE(p) << GetParam().text;
  EXPECT_EQ(p.error().code, ErrorCode::kScheduleError);
  EXPECT_THAT(p.error().message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BadPlacement,
    testing::Values(
        Bad{"", "name=<identifier>"}, Bad{"name=a", "loop=<phases>"},
        Bad{"name=a;loop=b;waves=3", "waves 1, 2, 4 or 8"}, Bad{"name=a;loop=b;waves=16", "from 1 to 8"},
        Bad{"name=a;loop=b;queries=16", "queries 32 or 64"}, Bad{"name=a;loop=b;queries=128", "queries 32 or 64"},
        Bad{"name=a;loop=b;queries=x", "queries 32 or 64"}, Bad{"name=a;loop=b;queries=", "queries 32 or 64"},
        Bad{"name=a;loop=b;queries=64;queries=64", "not given before"}, Bad{"name=a;loop={=b}", "at least two streams"},
        Bad{"name=a;loop={=/b}", "an identifier"}, Bad{"name=a;loop={=b/c:0}", "a weight from 1 to 64"},
        Bad{"name=a;loop={==b/c}", "an identifier"}, Bad{"name=a;loop=b;groups=3", "groups from 1 to 2"},
        Bad{"name=a;loop=b;trip=3", "iterations of a trip from 1 to 2"},
        Bad{"name=a;loop=b;trip=0", "iterations of a trip from 1 to 2"},
        Bad{"name=a;loop=b;buffers=k:9", "from 1 to 8"}, Bad{"name=a;loop=b;buffers=k:2,k:3", "each tile once"},
        Bad{"name=a;loop=b@9", "a lead from 0 to 8"}, Bad{"name=a;loop={b}", "at least two streams"},
        Bad{"name=a;loop={b/c", "'/' or '}'"}, Bad{"name=a;loop=b|", "an identifier"},
        Bad{"name=a;loop=b;speed=9", "one of name, waves"}, Bad{"name=a;name=b;loop=c", "not given before"},
        Bad{"name=a;loop=b|c;prio=1", "the loop has 2 phases"}, Bad{"name=a;loop=b;math=simd", "packed or scalar"},
        Bad{"name=a;loop=b;before_buffers=k:2,k:3", "each tile once in before_buffers="},
        Bad{"name=a;loop=b;prio=4", "a priority from 0 to 3"}, Bad{"name=a;loop=b c", "';' or the end"},
        Bad{"name=a;loop={b:65/c}", "a weight from 1 to 64"}, Bad{"name=1a;loop=b", "an identifier"}));

}  // namespace
}  // namespace zyfa::schedules
