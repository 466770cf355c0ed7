// The steady loop of runs whose trips are known.
#include "runtime/sim/timing/steady.h"

#include <gtest/gtest.h>

#include "tests/correctness/timing/micro.h"

namespace zyfa::sim_test {
namespace {

using namespace sim::timing;

// "fp8_32" is listed before "branch": a jump back from there is a loop.
Steps loop(std::string_view body, unsigned trips) {
  return micro().steps("add*7") + repeat(micro().steps(body) + micro().steps("branch"), trips) + micro().steps("rcp");
}

TEST(Steady, TripsOfALoop) {
  const auto result = run_waves({loop("fp8_32 fp8fp4_32 add*4", 40)});
  const auto steady = steady_loop(micro().program(), result);
  ASSERT_TRUE(steady.has_value()) << to_string(steady.error());
  EXPECT_EQ(steady->head, micro().op("fp8_32"));
  EXPECT_EQ(steady->tail, micro().op("branch"));
  EXPECT_EQ(steady->trip_cycles, 128);
  EXPECT_EQ(steady->median_cycles, 128u);
  EXPECT_EQ(steady->matrix_cycles, 128);
  EXPECT_EQ(steady->instructions, 7);
  EXPECT_EQ(steady->end - steady->begin, 128u);
  EXPECT_EQ(steady->events.size(), 7u);
}

// Two waves share the pipe: a trip of each takes as long as the matrix work of both.
TEST(Steady, TwoWaves) {
  const Steps wave = loop("fp8_32 fp8fp4_32 add*4", 60);
  const auto result = run_waves({wave, {}, {}, {}, wave});
  const auto steady = steady_loop(micro().program(), result);
  ASSERT_TRUE(steady.has_value());
  EXPECT_NEAR(steady->trip_cycles, 256, 2);
  EXPECT_NEAR(static_cast<double>(steady->events.size()), 14, 2);
}

// A short loop before and after a long one, as a kernel has that masks the ends of each of two tiles: what lies between
// its two runs is none of its trips.
TEST(Steady, CodeBetweenTwoRunsOfALoopIsNotItsOwn) {
  const Steps ends = repeat(micro().steps("fp8fp4_32 branch"), 3),
              middle = repeat(micro().steps("fp8_32 add*4 branch"), 40);
  const auto result = run_waves({micro().steps("add*7") + ends + middle + ends + micro().steps("rcp")});
  const auto steady = steady_loop(micro().program(), result);
  ASSERT_TRUE(steady.has_value()) << to_string(steady.error());
  EXPECT_EQ(steady->head, micro().op("fp8_32"));
  EXPECT_EQ(steady->trip_cycles, 64);
  EXPECT_EQ(steady->instructions, 6);
}

TEST(Steady, NothingToSay) {
  const auto straight = run_waves({micro().steps("add*20")});
  const auto none = steady_loop(micro().program(), straight);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  const auto empty = steady_loop(micro().program(), {});
  ASSERT_FALSE(empty.has_value());
  EXPECT_NE(empty.error().message.find("EventLog::kOn"), std::string::npos);
}

}  // namespace
}  // namespace zyfa::sim_test
