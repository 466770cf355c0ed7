// The planner's rules on a small algorithm whose legal and illegal placements were worked out by hand.
//
// load writes LDS tile "t", use reads it into register tile "r", sum adds r to state "s".
#include "schedules/dsl/plan.h"

#include <gmock/gmock.h>

#include "schedules/dsl/early_loads.h"

#include "tests/unit/schedules/small_algorithm.h"

namespace zyfa::schedules {
namespace {

using testing::Contains;
using testing::HasSubstr;
using enum AccessKind;

Expected<Plan> plan_of(const Algorithm& algorithm, const std::string& text) {
  Expected<Placement> placement = parse_placement(text);
  EXPECT_TRUE(placement) << to_string(placement.error());
  return make_plan(algorithm, *placement);
}

std::vector<std::string> problems(const std::string& text) {
  const Algorithm algorithm = small_algorithm();
  const Expected<Plan> plan = plan_of(algorithm, text);
  return plan ? std::vector<std::string>{} : plan.error().details;
}

TEST(Plan, OneGroupNeedsOneBarrierBetweenLoadAndUse) {
  EXPECT_TRUE(problems("name=p;loop=load|use,sum").empty());
  EXPECT_THAT(problems("name=p;loop=load,use|sum"), Contains(HasSubstr("1 phase(s) too early")));
}

// Phases 2, stagger 1. load@1 in phase 0: epoch 2i - 2; use in phase 1: epoch 2i + 1. The copy of i is loaded again at
// 2(i + copies) - 2, which must be at least 2 epochs after 2i + 1: 3 copies.
TEST(Plan, TwoGroupsNeedTwoBarriersAndMoreCopies) {
  EXPECT_THAT(problems("name=p;waves=8;groups=2;loop=load|use,sum"), Contains(HasSubstr("1 phase(s) too early")));
  EXPECT_THAT(problems("name=p;waves=8;groups=2;buffers=t:2;loop=load@1|use,sum"),
              Contains(HasSubstr("overwrites tile 't' 1 phase(s) too early")));
  EXPECT_TRUE(problems("name=p;waves=8;groups=2;buffers=t:3;loop=load@1|use,sum").empty());
}

TEST(Plan, WaitsStandStaggerPlusOnePhasesBeforeTheirPoint) {
  const Algorithm algorithm = small_algorithm();
  const Expected<Plan> plan = plan_of(algorithm, "name=p;waves=8;groups=2;buffers=t:3;loop=load@1|use,sum");
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->awaits.size(), 2U);
  // use(i) at epoch 2i + 1: its data is waited for at the end of epoch 2i - 1, phase 1 of trip i - 1: iteration t + 1.
  EXPECT_EQ(plan->awaits[0].kind, AwaitKind::kArrival);
  EXPECT_EQ(plan->awaits[0].phase, 1U);
  EXPECT_EQ(plan->awaits[0].offset, 1);
  // load(i + 3) at epoch 2i + 4: the reads of i are waited for at the end of epoch 2i + 2, phase 0 of trip i + 1: t
  // - 1.
  EXPECT_EQ(plan->awaits[1].kind, AwaitKind::kReads);
  EXPECT_EQ(plan->awaits[1].phase, 0U);
  EXPECT_EQ(plan->awaits[1].offset, -1);
}

std::vector<std::int64_t> early_iterations(const std::string& text) {
  const Algorithm algorithm = small_algorithm();
  const Expected<Plan> plan = plan_of(algorithm, text);
  EXPECT_TRUE(plan) << to_string(plan.error());
  std::vector<std::int64_t> iterations;
  if (!plan) return iterations;
  for (const EarlyLoad& load : early_loads(*plan)) {
    EXPECT_EQ(load.ref.stage, "load");
    iterations.push_back(load.iteration);
  }
  return iterations;
}

// use@1 works on i in epoch 2i - 2, and two groups wait for its tile two epochs before: the end of the phase in which
// load@2 stands. Iteration 0 is the first to be loaded and stands there anyway; 1 would be waited for at once. One
// group waits a phase later, and so do two where the load is a phase or more ahead.
TEST(Plan, LoadsThatTheirOwnPhaseWaitsForComeEarly) {
  EXPECT_THAT(early_iterations("name=p;waves=8;groups=2;buffers=t:3;loop=use,sum|load@2"), testing::IsEmpty());
  const std::string close = "buffers=t:3,r:2;loop=use@1,load@2|sum";
  EXPECT_THAT(early_iterations("name=p;waves=8;groups=2;" + close), testing::ElementsAre(1));
  EXPECT_THAT(early_iterations("name=p;" + close), testing::IsEmpty());
  EXPECT_THAT(early_iterations("name=p;buffers=t:3;loop=use,sum|load@2"), testing::IsEmpty());
  EXPECT_THAT(early_iterations("name=p;buffers=t:3;loop=load@2|use,sum"), testing::IsEmpty());
}

// In one item use@1 works on i + 1 while sum works on i: legal only when r has two copies.
TEST(Plan, StreamsOfOneItemAreUnordered) {
  EXPECT_THAT(problems("name=p;loop=load|{use/sum}"), Contains(HasSubstr("which does not come before it")));
  EXPECT_THAT(problems("name=p;loop=load@1|{use@1/sum}"), Contains(HasSubstr("there are 1 copies")));
  EXPECT_TRUE(problems("name=p;buffers=r:2;loop=load@1|{use@1/sum}").empty());
}

// A second loop: its LDS follows the first's in time, so the larger of both counts; each loop has its own buffers.
TEST(Plan, TwoLoops) {
  Algorithm algorithm = small_algorithm();
  algorithm.before = std::make_shared<const Algorithm>(small_algorithm());
  const Expected<Plan> plan = plan_of(
      algorithm, "name=p;waves=8;groups=2;buffers=t:3;before_buffers=t:4;before=load@1|use,sum;loop=load@1|use,sum");
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_NE(plan->before, nullptr);
  EXPECT_EQ(plan->copies("t"), 3U);
  EXPECT_EQ(plan->before->copies("t"), 4U);
  EXPECT_EQ(plan->lds_bytes, 4096U);

  const Expected<Plan> missing = plan_of(algorithm, "name=p;loop=load|use,sum");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("before= is missing"));
  const Expected<Plan> surplus = plan_of(small_algorithm(), "name=p;before=load|use,sum;loop=load|use,sum");
  ASSERT_FALSE(surplus);
  EXPECT_THAT(surplus.error().message, HasSubstr("the algorithm has one loop"));
  const Expected<Plan> illegal = plan_of(algorithm, "name=p;before=load,use|sum;loop=load|use,sum");
  ASSERT_FALSE(illegal);
  EXPECT_THAT(illegal.error().details, Contains(HasSubstr("1 phase(s) too early")));
}

TEST(Plan, SpeculationIsAStagePromise) {
  EXPECT_THAT(problems("name=p;loop=load@1|use@1,sum@1"), Contains(HasSubstr("must not run past the last iteration")));
}

TEST(Plan, NamesEveryProblemAtOnce) {
  const std::vector<std::string> all = problems("name=p;waves=2;groups=1;buffers=s:2,x:2;loop=load|use,nothing");
  EXPECT_THAT(all, Contains(HasSubstr("waves=2 cannot divide the loads; allowed: 4, 8")));
  EXPECT_THAT(all, Contains(HasSubstr("tile 's' outlives an iteration")));
  EXPECT_THAT(all, Contains(HasSubstr("names tile 'x'")));
  EXPECT_THAT(all, Contains(HasSubstr("no stage 'nothing'; it has load, use, sum")));
  EXPECT_THAT(all, Contains(HasSubstr("stage 'sum' is not placed")));
}

TEST(Plan, PlacedTwiceIsRefused) {
  EXPECT_THAT(problems("name=p;loop=load|use,sum,use"), Contains(HasSubstr("'use' is placed twice")));
}

TEST(Plan, TripOfTwoPlacesEveryStageTwice) {
  EXPECT_TRUE(problems("name=p;trip=2;buffers=t:2,r:2;loop=load,load@1|use,use@1,sum,sum@1").empty());
  EXPECT_TRUE(problems("name=p;trip=2;buffers=t:2;loop=load,load@1|use,sum,use@1,sum@1").empty());
  const std::vector<std::string> uneven = problems("name=p;trip=2;loop=load,load@2|use,use@1,sum,sum@1");
  EXPECT_THAT(uneven, Contains(HasSubstr("'load' is placed twice with an even lead")));
  EXPECT_THAT(uneven, Contains(HasSubstr("'load' is not placed with an odd lead")));
  EXPECT_THAT(problems("name=p;trip=2;buffers=t:4;loop=load,load@1|use,use@1,sum@1,sum@2"),
              Contains(HasSubstr("its lead must be 0 or 1")));
}

TEST(Plan, TripOfTwoNeedsCopiesOfWhatLivesThroughBoth) {
  EXPECT_THAT(problems("name=p;trip=2;buffers=t:2;loop=load,load@1|use,use@1,sum,sum@1"),
              Contains(HasSubstr("'use@1' (phase 1) works on tile 'r' 1 iteration(s) later while stage 'sum'")));
  EXPECT_THAT(problems("name=p;trip=2;loop=load,load@1|use,sum,use@1,sum@1"),
              Contains(HasSubstr("'load@1' (phase 0) overwrites tile 't' 2 phase(s) too early")));
  // One stage's own iterations too: the state of the first one is not there yet.
  EXPECT_THAT(problems("name=p;trip=2;buffers=t:2,r:2;loop=load,load@1|use,use@1,sum@1,sum"),
              Contains(HasSubstr("'sum@1' (phase 1) works on tile 's' 1 iteration(s) later while stage 'sum'")));
}

// Phases 2, stagger 1. use(2n) and use(2n + 1) are at epoch 2n, load@2 and load@3 of the same two at 2n - 2, so that
// both are waited for at the end of 2n - 2: phase 0 of trip n - 1, its iterations 2t + 2 and 2t + 3. Their copies are
// loaded again, 4 iterations later, at 2n + 2: the reads are waited for at the end of 2n, iterations 2t and 2t + 1.
TEST(Plan, WaitsOfATripOfTwo) {
  const Algorithm algorithm = small_algorithm();
  const std::string loop = "loop=load@2,load@3,use,use@1|sum,sum@1";
  EXPECT_THAT(problems("name=p;waves=8;groups=2;trip=2;buffers=t:2,r:2;" + loop),
              Contains(HasSubstr("overwrites tile 't' 2 phase(s) too early")));
  const Expected<Plan> plan = plan_of(algorithm, "name=p;waves=8;groups=2;trip=2;buffers=t:4,r:2;" + loop);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_EQ(plan->unroll, 4U);
  EXPECT_EQ(plan->prologue_trips(), 2U);
  ASSERT_EQ(plan->awaits.size(), 4U);
  const AwaitKind kinds[] = {AwaitKind::kArrival, AwaitKind::kArrival, AwaitKind::kReads, AwaitKind::kReads};
  const std::int64_t offsets[] = {2, 3, 0, 1};
  for (std::size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(plan->awaits[n].kind, kinds[n]) << n;
    EXPECT_EQ(plan->awaits[n].phase, 0U) << n;
    EXPECT_EQ(plan->awaits[n].offset, offsets[n]) << n;
  }
}

TEST(Plan, LdsLimit) {
  Algorithm algorithm = small_algorithm();
  algorithm.tiles[0].lds_bytes = 100000;
  const Expected<Plan> plan = plan_of(algorithm, "name=p;buffers=t:2;loop=load|use,sum");
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().details, Contains(HasSubstr("a workgroup has 163840")));
}

TEST(Plan, UnrollIsTheLeastCommonMultiple) {
  const Algorithm algorithm = small_algorithm();
  const Expected<Plan> plan = plan_of(algorithm, "name=p;buffers=t:3,r:2;loop=load|use,sum");
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_EQ(plan->unroll, 6U);
  EXPECT_EQ(plan->lds_bytes, 3U * 1024U);
  EXPECT_EQ(plan->lds_offset("t", 2), 2048U);
}

}  // namespace
}  // namespace zyfa::schedules
