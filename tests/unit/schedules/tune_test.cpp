// The tuner's steps and its walk, on small_algorithm.h: load writes LDS tile "t", use reads it into
// register tile "r", sum adds r to state "s".
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "schedules/dsl/plan.h"
#include "schedules/tune/moves.h"
#include "schedules/tune/search.h"

#include "tests/unit/schedules/small_algorithm.h"

namespace zyfa::schedules {
namespace {

using testing::Contains;
using testing::HasSubstr;

Placement parse(const std::string& text) { return parse_placement(text).value(); }

std::set<std::string> texts_after(const std::string& from) {
  std::set<std::string> texts;
  for (const Move& move : moves(small_algorithm(), parse(from))) texts.insert(unparse(move.placement));
  return texts;
}

TEST(Moves, ReachEveryKindOfNeighbour) {
  const std::set<std::string> texts = texts_after("name=p;waves=4;groups=1;loop=load|use,sum");
  for (const char* text : {
           "name=p;waves=4;groups=1;loop=load,use|sum",              // a stage to another phase
           "name=p;waves=4;groups=1;loop=load|sum,use",              // before another
           "name=p;waves=4;groups=1;loop=load@1|use,sum",            // a lead
           "name=p;waves=4;groups=1;loop=load|{use/sum}",            // woven
           "name=p;waves=4;groups=1;loop=load|use|sum",              // a barrier more
           "name=p;waves=4;groups=1;loop=load,use,sum",              // a barrier less
           "name=p;waves=4;groups=1;buffers=t:2;loop=load|use,sum",  // copies
           "name=p;waves=4;groups=1;buffers=r:2;loop=load|use,sum",
           "name=p;waves=4;groups=2;loop=load|use,sum",
           "name=p;waves=8;groups=1;loop=load|use,sum",
           "name=p;waves=4;groups=1;loop=load|use,sum;prio=1,0",
           "name=p;waves=4;groups=1;loop=load|use,sum;math=scalar",
       }) {
    EXPECT_THAT(texts, Contains(text));
  }
  const std::set<std::string> woven = texts_after("name=p;waves=4;groups=1;loop=load|{use:2/sum};prio=1,0");
  for (const char* text : {
           "name=p;waves=4;groups=1;loop=load|{use:3/sum};prio=1,0",  // a weight
           "name=p;waves=4;groups=1;loop=load|{use/sum};prio=1,0",
           "name=p;waves=4;groups=1;loop=load|{use:2/sum:2};prio=1,0",
           "name=p;waves=4;groups=1;loop=load|use,sum;prio=1,0",    // apart again
           "name=p;waves=4;groups=1;loop={use:2/sum,load};prio=0",  // into a stream; the phase it leaves goes
           "name=p;waves=4;groups=1;loop=load|{use:2/sum}",         // priorities
           "name=p;waves=4;groups=1;loop=load|{use:2/sum};prio=1,1",
       }) {
    EXPECT_THAT(woven, Contains(text));
  }
}

TEST(Moves, AreCanonicalDifferentAndNotTheStart) {
  for (const std::string from : {"name=p;waves=4;groups=1;loop=load|use,sum",
                                 "name=p;waves=8;groups=2;buffers=t:3;loop=load@1|{use:4/sum};prio=1,0",
                                 "name=p;waves=4;groups=1;trip=2;buffers=t:2;loop=load@2,load@3|use,use@1,sum,sum@1"}) {
    std::set<std::string> texts{from};
    for (const Move& move : moves(small_algorithm(), parse(from))) {
      const std::string text = unparse(move.placement);
      EXPECT_TRUE(texts.insert(text).second) << text;
      EXPECT_EQ(unparse(parse(text)), text);
      EXPECT_EQ(parse(text), move.placement) << text;
      EXPECT_FALSE(move.change.empty());
      EXPECT_EQ(move.placement.name, "p");
      EXPECT_TRUE(move.placement.priorities.empty() || move.placement.priorities.size() == move.placement.loop.size());
    }
  }
}

// A walk can undo what it did: what makes any placement reachable from any other.
TEST(Moves, EveryLegalStepLeadsBack) {
  const Algorithm algorithm = small_algorithm();
  std::size_t legal = 0;
  const std::string from = "name=p;waves=4;groups=1;buffers=t:2;loop=load@1|use|sum";
  for (const Move& move : moves(algorithm, parse(from))) {
    if (!make_plan(algorithm, move.placement)) continue;
    ++legal;
    EXPECT_THAT(texts_after(unparse(move.placement)), Contains(from)) << move.change;
  }
  EXPECT_GT(legal, 10U);
}

// Worked out by hand: iteration 2t of every phase, then 2t + 1 of every phase.
TEST(Moves, TwoIterationsOfATripAreEachPhaseTwice) {
  EXPECT_EQ(unparse(with_two_iterations(parse("name=p;waves=8;groups=2;buffers=t:3;loop=load@1|{use:2/sum};prio=1,0"))),
            "name=p;waves=8;groups=2;trip=2;buffers=t:3;loop=load@1|{use:2/sum}|load@2|{use@1:2/sum@1};prio=1,0,1,0");
}

// Barriers, then leads; unlucky: the count of copies is not allowed to matter.
Expected<std::vector<Algorithm>> of_small(const Placement&) { return std::vector{small_algorithm()}; }

double toy_cost(const Placement& p) {
  double cost = 10.0 * static_cast<double>(p.loop.size()) + (p.groups == 1 ? 5 : 0) + (p.waves == 4 ? 3 : 0);
  for (const Phase& phase : p.loop) {
    for (const PhaseItem& item : phase.items) cost += item.streams.size() > 1 ? 0 : 1;
  }
  return cost;
}

// Least by hand: two groups of 8 waves (0 + 0); one phase is illegal for a load that its own phase reads, but not for
// data loaded by an earlier trip (lead), so 10; all three stages in one woven item: 0.
TEST(TuneSearch, FindsTheLeastOfASmallSpace) {
  const Algorithm algorithm = small_algorithm();
  std::map<std::string, int> tried;
  std::uint64_t steps = 0;
  const SearchCalls calls{.algorithms = of_small,
                          .try_out = [&](const Placement& p) -> Expected<Trial> {
                            ++tried[unparse(p)];
                            return Trial{.cost = toy_cost(p)};
                          },
                          .step =
                              [&](const SearchStep& step) {
                                EXPECT_EQ(step.number, ++steps);
                                return true;
                              }};
  const auto found = search({parse("name=p;waves=4;groups=1;loop=load|use,sum")}, {.seed = 3, .trials = 800}, calls);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->trial.cost, 10.0) << unparse(found->placement);
  EXPECT_TRUE(make_plan(algorithm, found->placement));
  EXPECT_EQ(found->trials, steps);
  EXPECT_LE(found->trials, 800U);
  for (const auto& [text, times] : tried) {
    EXPECT_EQ(times, 1) << text;
    EXPECT_TRUE(make_plan(algorithm, parse(text))) << text;
  }
}

std::vector<std::string> walk(std::uint64_t seed) {
  std::vector<std::string> texts;
  const SearchCalls calls{.algorithms = of_small,
                          .try_out = [](const Placement& p) -> Expected<Trial> { return Trial{.cost = toy_cost(p)}; },
                          .step =
                              [&](const SearchStep& step) {
                                texts.push_back(unparse(step.placement));
                                return true;
                              }};
  EXPECT_TRUE(search({parse("name=p;waves=4;groups=1;loop=load|use,sum")}, {.seed = seed, .trials = 200}, calls));
  return texts;
}

TEST(TuneSearch, IsAFunctionOfTheSeed) {
  EXPECT_EQ(walk(1), walk(1));
  EXPECT_NE(walk(1), walk(2));
  EXPECT_EQ(walk(1).size(), 200U);
}

// 64 queries cost 5 more: the walk of 32 alone would win, and both have their half of the trials.
TEST(TuneSearch, WalksFromEachNumberOfQueries) {
  std::map<std::uint32_t, std::uint64_t> tried;
  std::set<std::uint32_t> asked;
  const SearchCalls calls{.algorithms =
                              [&](const Placement& p) {
                                asked.insert(p.queries);
                                return of_small(p);
                              },
                          .try_out = [&](const Placement& p) -> Expected<Trial> {
                            ++tried[p.queries];
                            return Trial{.cost = toy_cost(p) + (p.queries == 64 ? 5 : 0)};
                          }};
  const auto found = search({parse("name=wide;waves=4;queries=64;groups=1;loop=load|use,sum"),
                             parse("name=p;waves=4;groups=1;loop=load|use,sum")},
                            {.seed = 3, .trials = 300}, calls);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(asked, (std::set<std::uint32_t>{32, 64}));
  EXPECT_EQ(tried[32] + tried[64], 300U);
  EXPECT_GE(tried[32], 149U);
  EXPECT_GE(tried[64], 149U);
  EXPECT_EQ(found->placement.queries, 32U);
  EXPECT_EQ(found->trial.cost, toy_cost(found->placement));
}

TEST(TuneSearch, EndsWhenTheCallerSaysSo) {
  const SearchCalls calls{.algorithms = of_small,
                          .try_out = [](const Placement& p) -> Expected<Trial> { return Trial{.cost = toy_cost(p)}; },
                          .step = [](const SearchStep& step) { return step.number < 7; }};
  const auto found = search({parse("name=p;waves=4;groups=1;loop=load|use,sum")}, {}, calls);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->trials, 7U);
}

TEST(TuneSearch, TieBreakDecidesAmongEqualCosts) {
  EXPECT_TRUE((Trial{.cost = 1, .tie_break = 2}).better_than({.cost = 1, .tie_break = 3}));
  EXPECT_TRUE((Trial{.cost = 1, .tie_break = 9}).better_than({.cost = 2, .tie_break = 3}));
  EXPECT_FALSE((Trial{.cost = 1}).better_than({.cost = 1}));
  EXPECT_FALSE(Trial{}.better_than({}));
  EXPECT_TRUE((Trial{.cost = 1}).better_than({}));
}

TEST(TuneSearch, RefusesStartsThatAreNoUse) {
  const Algorithm algorithm = small_algorithm();
  const SearchCalls calls{.algorithms = of_small, .try_out = [](const Placement&) -> Expected<Trial> {
                            return Trial{.cost = {}, .why = "too slow"};
                          }};
  const auto none = search({}, {}, calls);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  const auto illegal = search({parse("name=p;waves=4;groups=1;loop=use|load,sum")}, {}, calls);
  ASSERT_FALSE(illegal);
  EXPECT_EQ(illegal.error().code, ErrorCode::kScheduleError);
  const auto useless = search({parse("name=p;waves=4;groups=1;loop=load|use,sum")}, {}, calls);
  ASSERT_FALSE(useless);
  EXPECT_THAT(useless.error().details, Contains(HasSubstr("p: too slow")));
}

TEST(TuneSearch, AnErrorOfATrialEndsIt) {
  const SearchCalls calls{.algorithms = of_small, .try_out = [](const Placement&) -> Expected<Trial> {
                            return make_error(ErrorCode::kDeviceError, "gone");
                          }};
  const auto found = search({parse("name=p;waves=4;groups=1;loop=load|use,sum")}, {}, calls);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "gone");
}

}  // namespace
}  // namespace zyfa::schedules
