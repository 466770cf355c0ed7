// The quantisation plan: kernels and their order, workspace layout, work division, arguments, sizes that overflow.
#include "runtime/quantise_plan.h"

#include <gmock/gmock.h>

#include <cmath>

#include "schedules/select/select.h"

namespace zyfa {
namespace {

using schedules::ElementType;
using schedules::Family;
using schedules::Operand;
using schedules::QuantiseArgs;

AttentionProblem fp8(std::uint32_t head_dim_qk = 128) { return {.head_dim_qk = head_dim_qk, .compute = Compute::kFp8}; }

LaunchArgs launch_args(std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t heads,
                       std::int64_t key_heads, std::int64_t dim = 128) {
  return {.q = TensorView::contiguous(0x10000, batch, queries, heads, dim),
          .k = TensorView::contiguous(0x20000, batch, keys, key_heads, dim),
          .v = TensorView::contiguous(0x30000, batch, keys, key_heads, 128),
          .out = {},
          .workspace = {0x7000000, std::size_t{1} << 40}};
}

QuantisePlan planned(const AttentionProblem& problem, const LaunchArgs& args) {
  Expected<QuantisePlan> plan = plan_quantisation(problem, args);
  EXPECT_TRUE(plan) << to_string(plan.error());
  return plan.value_or(QuantisePlan{});
}

TEST(QuantiseSpecs, SixKernelsStatisticsFirstAndKeysBeforeQueries) {
  const auto specs = quantise_specs(fp8());
  ASSERT_EQ(specs.size(), kMaxQuantiseLaunches);
  const Operand operands[] = {Operand::kKey, Operand::kValue, Operand::kQuery};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(specs[i].family, i < 3 ? Family::kQuantiseStatistics : Family::kQuantise);
    EXPECT_EQ(specs[i].operand, operands[i % 3]);
    EXPECT_EQ(specs[i].element, ElementType::kFp8E4M3);
    EXPECT_EQ(specs[i].rotation == schedules::Rotation::kHadamard, operands[i % 3] != Operand::kValue);
    EXPECT_EQ(specs[i].feeds, i == 5 ? schedules::ScoreForm::kFolded : schedules::ScoreForm::kMultiplyAdd);
    const auto placement = schedules::resolve_placement(specs[i].placement);
    ASSERT_TRUE(placement);
    EXPECT_EQ(*placement, specs[i].placement) << "canonical";
  }
  EXPECT_TRUE(quantise_specs({}).empty());
}

TEST(QuantiseSpecs, OptionsReachTheKernelsTheyConcern) {
  AttentionProblem problem = fp8(192);
  problem.fp8 = {.scores = ScoreType::kInt8,
                 .rotation = Rotation::kNone,
                 .smoothing = KeySmoothing::kMean,
                 .scales = ScaleGranularity::kTensor};
  const auto specs = quantise_specs(problem);
  ASSERT_EQ(specs.size(), 6U);
  for (const auto& spec : specs) {
    const bool value = spec.operand == Operand::kValue;
    EXPECT_EQ(spec.element, value ? ElementType::kFp8E4M3 : ElementType::kInt8);
    EXPECT_EQ(spec.head_dim_qk, value ? 128U : 192U);
    EXPECT_EQ(spec.rotation, schedules::Rotation::kNone);
    EXPECT_EQ(spec.smoothing == schedules::Smoothing::kMean, spec.operand == Operand::kKey);
    EXPECT_EQ(spec.scales == schedules::ScaleScope::kTensor, spec.family == Family::kQuantise);
    EXPECT_EQ(spec.feeds, schedules::ScoreForm::kMultiplyAdd);
  }
}

// B=2, Sq=5, Sk=3, H=4, Hk=2: by hand. k and v codes 2*3*2*128 = 1536 bytes, q codes 2*5*4*128 = 5120, descales 16
// bytes and partials 2*2*1*4 bytes, each rounded up to 256.
TEST(QuantisePlan, WorkspaceByHand) {
  const LaunchArgs args = launch_args(2, 5, 3, 4, 2);
  EXPECT_EQ(quantise_workspace_bytes(fp8(), args).value(), 2 * (1536 + 256 + 256) + 5120 + 256 + 256U);
  const QuantisePlan plan = planned(fp8(), args);
  ASSERT_EQ(plan.count, 6U);
  const DeviceAddress base = args.workspace.address;
  EXPECT_EQ(plan.k.address, base);
  EXPECT_EQ(plan.k_descale.address, base + 1536);
  EXPECT_EQ(plan.launches[0].args.partials, base + 1792);
  EXPECT_EQ(plan.v.address, base + 2048);
  EXPECT_EQ(plan.q.address, base + 4096);
  EXPECT_EQ(plan.q_descale.address, base + 4096 + 5120);
  EXPECT_EQ(plan.q.batch_stride, 5 * 4 * 128);
  EXPECT_EQ(plan.q.token_stride, 4 * 128);
  EXPECT_EQ(plan.q.head_stride, 128);
  EXPECT_EQ(plan.q_descale.batch_stride, 2);
  EXPECT_EQ(plan.q_descale.heads, 2);
  for (std::size_t i = 0; i < plan.count; ++i) {
    EXPECT_EQ(plan.launches[i].kernel, i);
    EXPECT_THAT(plan.launches[i].shape.grid, testing::ElementsAre(1, 2, 2));
    EXPECT_THAT(plan.launches[i].shape.block, testing::ElementsAre(64, 1, 1));
    EXPECT_EQ(plan.launches[i].args.heads, i % 3 == 2 ? 2 : 1);
    EXPECT_EQ(plan.launches[i].args.tokens, i % 3 == 2 ? 5 : 3);
  }
  const QuantiseArgs& q = plan.launches[5].args;
  EXPECT_EQ(q.input.address, args.q.address);
  EXPECT_EQ(q.input.token_stride, 2U * 4 * 128);
  EXPECT_EQ(q.key_descale.address, plan.k_descale.address);
  EXPECT_EQ(q.key_descale.batch_stride, 8U);
  EXPECT_EQ(q.key_descale.head_stride, 4U);
  EXPECT_EQ(q.partials_head_stride, 4U);
  EXPECT_EQ(q.partials_batch_stride, 8U);
  EXPECT_EQ(q.partial_count, 1U);
}

TEST(QuantisePlan, EveryPartIsAligned) {
  for (const std::int64_t tokens : {1, 7, 33, 4097}) {
    const QuantisePlan plan = planned(fp8(192), launch_args(3, tokens, tokens + 2, 6, 3, 192));
    for (const DeviceAddress address : {plan.q.address, plan.k.address, plan.v.address, plan.q_descale.address,
                                        plan.k_descale.address, plan.v_descale.address}) {
      EXPECT_EQ(address % kWorkspaceAlignment, 0U);
    }
    for (const QuantiseLaunch& launch : plan.launches) EXPECT_EQ(launch.args.partials % kWorkspaceAlignment, 0U);
  }
}

// Every token belongs to one workgroup, none is idle, and the partials fit what the kernels read.
TEST(QuantisePlan, WorkgroupsCoverTheTokens) {
  for (const KeySmoothing smoothing : {KeySmoothing::kNone, KeySmoothing::kMean}) {
    AttentionProblem problem = fp8();
    problem.fp8.smoothing = smoothing;
    for (const std::int64_t tokens : {1, 15, 16, 17, 100, 1000, 4096, 4097, 32768, 1048576, 1 << 30}) {
      for (const std::int64_t heads : {1, 3, 8, 128}) {
        const QuantisePlan plan = planned(problem, launch_args(1, 1, tokens, heads, heads));
        for (const std::size_t i : {0U, 3U}) {
          const QuantiseArgs& args = plan.launches[i].args;
          const std::int64_t groups = plan.launches[i].shape.grid[0], each = args.group_tokens;
          EXPECT_EQ(each % schedules::kQuantiseBlockTokens, 0);
          EXPECT_GE(groups * each, tokens);
          EXPECT_LT((groups - 1) * each, tokens);
        }
        const bool smooths = smoothing == KeySmoothing::kMean;
        EXPECT_LE(plan.launches[0].shape.grid[0], smooths ? schedules::kMaxSmoothingPartials : schedules::kMaxPartials);
        EXPECT_EQ(plan.launches[3].args.partial_count, plan.launches[0].shape.grid[0]);
      }
    }
  }
}

TEST(QuantisePlan, OneScaleATensorReducesEveryPartial) {
  AttentionProblem problem = fp8();
  problem.fp8.scales = ScaleGranularity::kTensor;
  const QuantisePlan plan = planned(problem, launch_args(3, 10, 100, 4, 2));
  EXPECT_EQ(plan.launches[0].args.partials_head_stride, 7 * 4U);
  EXPECT_EQ(plan.launches[3].args.partials_head_stride, 0U);
  EXPECT_EQ(plan.launches[3].args.partials_batch_stride, 0U);
  EXPECT_EQ(plan.launches[3].args.partial_count, 3 * 2 * 7U);
  problem.fp8.smoothing = KeySmoothing::kMean;
  const QuantisePlan smooth = planned(problem, launch_args(3, 10, 100, 4, 2));
  EXPECT_EQ(smooth.launches[3].args.partials_head_stride, smooth.launches[0].args.partials_head_stride);
  EXPECT_EQ(smooth.launches[3].args.partial_count, smooth.launches[0].shape.grid[0]);
  EXPECT_EQ(smooth.launches[3].args.entry_count, 6U);
}

TEST(QuantisePlan, UnusedStridesDoNotCount) {
  LaunchArgs args = launch_args(1, 1, 1, 1, 1);
  args.q.batch_stride = args.q.token_stride = args.q.head_stride = -5;
  const QuantiseArgs q = planned(fp8(), args).launches[5].args;
  EXPECT_EQ(q.input.batch_stride, 0U);
  EXPECT_EQ(q.input.token_stride, 256U);
  EXPECT_EQ(q.input.head_stride, 0U);
}

TEST(QuantisePlan, EmptyShapes) {
  for (const LaunchArgs& args : {launch_args(0, 5, 5, 2, 1), launch_args(1, 0, 5, 2, 1), launch_args(1, 5, 5, 0, 1),
                                 launch_args(1, 5, 5, 0, 0)}) {
    EXPECT_EQ(quantise_workspace_bytes(fp8(), args).value(), 0U);
    EXPECT_EQ(planned(fp8(), args).count, 0U);
  }
  // No keys: codes of nothing, but every descale is written.
  const QuantisePlan plan = planned(fp8(), launch_args(2, 5, 0, 2, 2));
  ASSERT_EQ(plan.count, 6U);
  for (const QuantiseLaunch& launch : plan.launches) EXPECT_THAT(launch.shape.grid, testing::ElementsAre(1, 2, 2));
  EXPECT_EQ(plan.launches[3].args.tokens, 0);
}

TEST(QuantisePlan, OtherProblemsNeedNoWorkspace) {
  EXPECT_EQ(quantise_workspace_bytes({}, launch_args(1, 5, 5, 2, 1)).value(), 0U);
  EXPECT_EQ(quantise_workspace_bytes({.dtype = DType::kFp8E4M3}, launch_args(1, 5, 5, 2, 1)).value(), 0U);
}

TEST(QuantisePlan, SizesThatCannotBeAreRefused) {
  const auto message = [](const LaunchArgs& args) {
    const auto bytes = quantise_workspace_bytes(fp8(), args);
    const auto plan = plan_quantisation(fp8(), args);
    EXPECT_FALSE(bytes || plan);
    if (bytes || plan) return std::string();
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(plan.error().message, bytes.error().message);
    return bytes.error().message;
  };
  EXPECT_THAT(message(launch_args(-1, 5, 5, 2, 1)), testing::HasSubstr("q.batch is -1"));
  EXPECT_THAT(message(launch_args(1, 5, INT64_MAX, 2, 1)), testing::HasSubstr("k.tokens is 9223372036854775807"));
  EXPECT_THAT(message(launch_args(1, 5, 5, 3, 2)), testing::HasSubstr("q.heads is 3 and k.heads is 2"));
  EXPECT_THAT(message(launch_args(1, 5, 5, 3, 0)), testing::HasSubstr("multiple of k.heads"));
  EXPECT_THAT(message(launch_args(65535, 1 << 30, 1 << 30, 32768, 32768)), testing::HasSubstr("48-bit"));
  EXPECT_THAT(message(launch_args(1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30)), testing::HasSubstr("48-bit"));
}

// log2(e) / sqrt(128) = 0.127517 = 1.020140 * 2^-3, worked out by hand.
TEST(QuantisePlan, MantissaOfTheSoftmaxScale) {
  LaunchArgs args = launch_args(1, 5, 5, 2, 1);
  const auto mantissa = [&] { return planned(fp8(), args).launches[5].args.score_mantissa; };
  EXPECT_NEAR(mantissa(), 1.020140, 1e-6);
  args.softmax_scale = -0.0883883476F;
  EXPECT_NEAR(mantissa(), 1.020140, 1e-6);
  args.softmax_scale = 0.0F;
  EXPECT_NEAR(mantissa(), 1.442695, 1e-6);
  args.softmax_scale = 1e-44F;  // times log2(e) rounds to 10 * 2^-149
  EXPECT_EQ(mantissa(), 1.25F);
  args.softmax_scale = 2e38F;
  EXPECT_GE(mantissa(), 1.0F);
  EXPECT_LT(mantissa(), 2.0F);
}

}  // namespace
}  // namespace zyfa
