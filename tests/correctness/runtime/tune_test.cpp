// zyfa/tune.h by its API: where walks begin, and placements that must serve more kernels than the one that is timed.
#include "zyfa/tune.h"

#include <gmock/gmock.h>

#include <set>

#include "schedules/select/placement.h"
#include "schedules/select/select.h"

namespace zyfa {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(std::string_view row) {
  return std::string(schedules::find_row(schedules::kernel_table(), row)->placement);
}

AttentionProblem problem(std::string_view text) { return parse_problem(text).value(); }

TEST(TuneStarts, AreTheChoiceAndRowsOfOtherQueries) {
  EXPECT_THAT(tune_starts(problem("bf16,d=128,causal")).value(), ElementsAre(text_of("pingpong"), text_of("wide")));
  EXPECT_THAT(tune_starts(problem("fp8e4m3,d=128,causal")).value(),
              ElementsAre(text_of("fp8_pingpong"), text_of("fp8_wide")));
  EXPECT_THAT(tune_starts(problem("fp8e4m3,d=192/128,full,form=folded")).value(),
              ElementsAre(text_of("fp8_pingpong_folded_192"), text_of("fp8_wide_192")));
  EXPECT_THAT(tune_starts(problem("bf16,d=128,causal,compute=fp8,near=bf16")).value(),
              ElementsAre(text_of("fp8_near_pingpong"), text_of("fp8_near_wide")));
  const auto none = tune_starts(problem("bf16,d=64"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
}

// Both are tried, and the walk goes on from each.
TEST(Tune, WalksWith32And64Queries) {
  std::set<std::uint32_t> changed;
  const auto result =
      tune(problem("fp8e4m3,d=128,full"), {.tokens = 256, .trials = 24, .step = [&](const TuneStep& step) {
                                             if (step.change == "start") return true;
                                             changed.insert(schedules::parse_placement(step.trial.placement)->queries);
                                             return true;
                                           }});
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(changed, (std::set<std::uint32_t>{32, 64}));
}

// Without exponents of blocks the row sum accumulates, so that its products keep their order.
TEST(TuneRow, APlacementMustBeLegalForAllThatTheRowServes) {
  const std::string start =
      "name=swapped;waves=4;groups=1;loop=load_k_a,load_k_b,load_v_a,load_v_b|"
      "read_k_a,qk_a,read_k_b,qk_b,mask_a,mask_b,max,rescale,exponents,prob_a,prob_b,"
      "read_v_a,pv_a,read_v_b,pv_b,sum_b,sum_a,add_sums";
  const AttentionProblem timed = problem("fp8e4m3,d=128,full");
  TuneOptions options{.tokens = 128, .trials = 1, .starts = {start}};
  const auto alone = tune(timed, options);
  EXPECT_TRUE(alone) << to_string(alone.error());
  options.row = "fp8_pingpong";
  const auto served = tune(timed, options);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kScheduleError);
  EXPECT_THAT(served.error().message + to_string(served.error()), HasSubstr("sum_b"));
}

// Fragments that both blocks share take 288 AGPRs with head dim 192, and there are 256.
TEST(TuneRow, APlacementMustFitTheRegistersOfAllThatTheRowServes) {
  TuneOptions options{.tokens = 128, .trials = 1, .starts = {text_of("fp8_wide")}};
  const AttentionProblem timed = problem("fp8e4m3,d=128,full");
  const auto alone = tune(timed, options);
  EXPECT_TRUE(alone) << to_string(alone.error());
  options.row = "fp8_pingpong_packed";  // of both head dims
  const auto served = tune(timed, options);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(served.error().details, Contains(HasSubstr("no placement for fp8e4m3,d=192/128")));
  EXPECT_THAT(served.error().details, Contains(HasSubstr("256 AGPRs: peak demand 288")));
}

TEST(TuneRow, RefusesRowsThatAreNone) {
  const auto unknown = tune(problem("bf16,d=128"), {.trials = 1, .row = "nonesuch"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.error().message, HasSubstr("'nonesuch'"));
  const auto other = tune(problem("bf16,d=128"), {.trials = 1, .row = "fp8_pingpong"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(other.error().message, HasSubstr("'fp8_pingpong' does not serve the problem: element is bf16"));
}

}  // namespace
}  // namespace zyfa
