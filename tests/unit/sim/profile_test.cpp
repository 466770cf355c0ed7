// What a profile makes of recorded workgroups, against calculations by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/sim/profile.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using Id = std::array<u32, 3>;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
namespace timing = sim::timing;

sim::LaunchCapture recorded(const Id& grid, const std::vector<Id>& ids, std::vector<std::uint64_t> instructions) {
  sim::LaunchCapture capture;
  capture.shape.grid = grid;
  for (const Id& id : ids) {
    capture.groups.emplace_back();
    capture.groups.back().id = id;
  }
  capture.instructions = std::move(instructions);
  return capture;
}

TEST(ProfileGrid, InterpolatesAlongTheAxisOnWhichRecordedWorkgroupsDiffer) {
  const auto capture = recorded({5, 1, 1}, {{0, 0, 0}, {4, 0, 0}}, {9, 0, 0, 0, 1});
  EXPECT_THAT(sim::spread_over_grid(capture, {5, 1, 1}, {100, 20}), ElementsAre(100, 80, 60, 40, 20));
  // One launched workgroup stands for all of an axis.
  EXPECT_THAT(sim::spread_over_grid(capture, {5, 2, 1}, {100, 20}),
              ElementsAre(100, 80, 60, 40, 20, 100, 80, 60, 40, 20));
  // Outside of the recorded ones: the nearest.
  EXPECT_THAT(sim::spread_over_grid(recorded({4, 1, 1}, {{1, 0, 0}, {2, 0, 0}}, {}), {4, 1, 1}, {10, 30}),
              ElementsAre(10, 10, 30, 30));
}

TEST(ProfileGrid, UsesTheInstructionsOfWorkgroupsThatAllRan) {
  const auto capture = recorded({4, 1, 1}, {{0, 0, 0}, {3, 0, 0}}, {200, 150, 400, 100});
  // 150 is half way between 100 and 200; 400 is twice 200.
  EXPECT_THAT(sim::spread_over_grid(capture, {4, 1, 1}, {3000, 1000}), ElementsAre(3000, 2000, 6000, 1000));
}

TEST(ProfileGrid, CountsAlongTheLaunchOrderWhenSeveralAxesDiffer) {
  const auto capture = recorded({2, 2, 1}, {{0, 0, 0}, {1, 1, 0}}, {});
  EXPECT_THAT(sim::spread_over_grid(capture, {2, 2, 1}, {0, 30}),
              ElementsAre(0, DoubleNear(10, 1e-9), DoubleNear(20, 1e-9), 30));
}

TEST(ProfileRange, IsTheRootOfTheSumOfSquaresOfOpenParameters) {
  const auto entry = [](double at_low, double at_high, bool open) {
    ProfileSensitivity s;
    s.at_low = at_low;
    s.at_high = at_high;
    s.open = open;
    return s;
  };
  // Faster: 0.03 and 0.04; slower: 0.06 and 0.08, of which one is at the low end.
  const ProfileRange range =
      sim::relative_range({entry(-0.03, 0.06, true), entry(0.08, -0.04, true), entry(-0.5, 0.5, false)});
  EXPECT_EQ(range.value, 1);
  EXPECT_NEAR(range.low, 0.95, 1e-12);
  EXPECT_NEAR(range.high, 1.10, 1e-12);
  EXPECT_EQ(sim::relative_range({}).low, 1);
}

// Sixteen trips of sixteen 32x32x16 bf16 MFMAs (32 cycles each), one wave: a loop of 512 matrix cycles.
constexpr char kLoop[] =
    "s_mov_b32 s8, 16\ns_nop 7\nloop:\n"
    ".rept 16\nv_mfma_f32_32x32x16_bf16 v[32:47], v[16:19], v[20:23], v[32:47]\n.endr\n"
    "s_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\ns_nop 15\ns_nop 15\n";

class Profile : public testing::Test {
 protected:
  void SetUp() override {
    SimOptions options;
    options.capture = SimCapture{.workgroups = {{0, 0, 0}, {1, 0, 0}}};
    check(device_->set_options(options));
    check(run(*device_, assemble_kernel(kLoop), "k", {.grid = {3, 1, 1}}, Args()));
  }
  std::shared_ptr<SimDevice> device_ = make_device();
};

TEST_F(Profile, SaysWhatALoopOfMfmasCosts) {
  ProfileOptions options;
  options.errors = ProfileOptions::Errors::kNone;
  options.clock_ghz = 2.0;
  const auto profile = device_->last_profile(options);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  ASSERT_TRUE(profile->loop);
  EXPECT_EQ(profile->loop->trips, 16u);
  EXPECT_EQ(profile->loop->instructions, 19);
  EXPECT_EQ(profile->loop->matrix_cycles, 512);
  EXPECT_GE(profile->loop->cycles, 512);
  EXPECT_LE(profile->loop->cycles, 560);
  EXPECT_EQ(profile->loop->waves_per_simd, 1);
  EXPECT_EQ(profile->loop->keys, 0u);
  // One of four SIMDs works.
  ASSERT_EQ(profile->units.front().name, "matrix");
  EXPECT_NEAR(profile->units.front().steady, 512 / profile->loop->cycles / 4, 0.001);
  EXPECT_EQ(profile->groups.size(), 2u);
  EXPECT_EQ(profile->groups[0].instructions, 2u + 16 * 19 + 3);
  EXPECT_EQ(profile->groups[0].cycles, profile->cycles);
  // Three workgroups side by side.
  EXPECT_EQ(profile->chip.workgroups, 3u);
  EXPECT_EQ(profile->chip.cycles.value, static_cast<double>(profile->cycles));
  EXPECT_EQ(profile->chip.cycles.low, profile->chip.cycles.value);
  EXPECT_EQ(profile->chip.resident_limit, "workgroups");
  EXPECT_DOUBLE_EQ(profile->chip.seconds.value, static_cast<double>(profile->cycles) / 2e9);
  // 2 x 32 x 32 x 16 flops, 256 MFMAs, 3 workgroups.
  EXPECT_EQ(profile->chip.flops_kind, "executed");
  EXPECT_DOUBLE_EQ(profile->chip.flops, 2.0 * 32 * 32 * 16 * 256 * 3);
  EXPECT_DOUBLE_EQ(profile->chip.tflops.value, profile->chip.flops / profile->chip.seconds.value / 1e12);
  EXPECT_TRUE(profile->sensitivity.empty());
  EXPECT_TRUE(profile->events.empty());
}

// Head dims of 8 and 8 and 32 queries: a key takes 2 x 32 x 16 flops, a trip of 2^19 flops 512 keys; all of it useful.
TEST_F(Profile, TellsUsefulMatrixWork) {
  ProfileOptions options;
  options.errors = ProfileOptions::Errors::kNone;
  options.attention = ProfileAttention{8, 8, 32};
  const auto profile = device_->last_profile(options);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_EQ(profile->loop->keys, 512u);
  EXPECT_DOUBLE_EQ(profile->loop->tile_cycles, profile->loop->cycles / 4);
  EXPECT_DOUBLE_EQ(profile->loop->useful_busy, 512 / profile->loop->cycles);
}

// Every other trip multiplies twice as much, as code does that repeats products: the trip has 512 keys all the same.
TEST(ProfileOf, RepeatedProductsAreNotUseful) {
  const std::string mfmas = ".rept 16\nv_mfma_f32_32x32x16_bf16 v[32:47], v[16:19], v[20:23], v[32:47]\n.endr\n";
  const std::string text = "s_mov_b32 s8, 16\nloop:\n" + mfmas + "s_bitcmp1_b32 s8, 0\ns_cbranch_scc0 once\n" + mfmas +
                           "once:\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n";
  SimOptions simulator;
  simulator.capture = SimCapture{};
  const auto device = make_device();
  check(device->set_options(simulator));
  check(run(*device, assemble_kernel(text), "k", {}, Args()));
  ProfileOptions options;
  options.attention = ProfileAttention{8, 8, 32};
  const auto profile = device->last_profile(options);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  // Of the middle nine trips five are long.
  EXPECT_NEAR(profile->loop->matrix_cycles, (5 * 1024 + 4 * 512) / 9.0, 1e-9);
  EXPECT_EQ(profile->loop->keys, 512u);
}

// Each wave has a loop of its own, as some kernels give each group of waves; both wait at the same barriers.
TEST(ProfileOf, WavesOfAnotherLoopShareTheSimd) {
  const std::string body =
      ".rept 16\nv_mfma_f32_32x32x16_bf16 v[32:47], v[16:19], v[20:23], v[32:47]\n.endr\ns_barrier\n"
      "s_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\n";
  const std::string text =
      "v_readfirstlane_b32 s9, v0\ns_mov_b32 s8, 16\ns_cmp_lt_u32 s9, 256\ns_cbranch_scc0 second\n" +
      ("first:\n" + body) + "s_cbranch_scc1 first\ns_endpgm\n" + ("second:\n" + body) + "s_cbranch_scc1 second\n";
  SimOptions simulator;
  simulator.capture = SimCapture{};
  const auto device = make_device();
  check(device->set_options(simulator));
  check(run(*device, assemble_kernel(text, {.workgroup = 512}), "k", {.block = {512, 1, 1}}, Args()));
  ProfileOptions options;
  options.attention = ProfileAttention{8, 8, 32};
  const auto profile = device->last_profile(options);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  ASSERT_TRUE(profile->loop);
  EXPECT_EQ(profile->loop->waves_per_simd, 2);
  EXPECT_EQ(profile->loop->keys, 512u);
  // All MFMAs are useful here; two waves of a SIMD make 1,024 matrix cycles a trip.
  EXPECT_DOUBLE_EQ(profile->loop->useful_busy, 1024 / profile->loop->cycles);
  EXPECT_NEAR(profile->loop->useful_busy, profile->units.front().steady, 0.02);
}

// A prologue of two steps (operations 0 and 1), trips of three (2, 3, 4) whose work is their number, and an end (5).
timing::WaveTrace looping(unsigned trips) {
  timing::WaveTrace wave;
  wave.steps = {{0, 100}, {1, 100}};
  for (unsigned trip = 0; trip < trips; ++trip)
    for (const u32 op : {2U, 3U, 4U}) wave.steps.push_back({op, trip});
  wave.steps.push_back({5, 200});
  return wave;
}

std::vector<u32> works(const timing::WaveTrace& wave) {
  std::vector<u32> list;
  for (const timing::Step& step : wave.steps) list.push_back(step.work);
  return list;
}

TEST(LoopExcerpt, IsThePrologueAndWholeTripsFromTheMiddle) {
  const timing::GroupTrace group{{1, 2, 3}, {looping(8), looping(10)}};
  sim::LoopExcerpt part = sim::loop_excerpt(group, 2, 2, 1);
  EXPECT_EQ(part.trips, 2u);
  EXPECT_EQ(part.trace.id, group.id);
  ASSERT_EQ(part.trace.waves.size(), 2u);
  // Seven trips end at another's head; two of them, after two. The head of the next ends the second.
  EXPECT_THAT(works(part.trace.waves[0]), ElementsAre(100, 100, 2, 2, 2, 3, 3, 3, 4));
  EXPECT_THAT(works(part.trace.waves[1]), ElementsAre(100, 100, 3, 3, 3, 4, 4, 4, 5));
  EXPECT_EQ(part.trace.waves[0].steps.back().op, 2u);
  // Trips of both waves have six steps: 24 are four trips.
  EXPECT_EQ(sim::loop_excerpt(group, 2, 2, 24).trips, 4u);
  EXPECT_EQ(sim::loop_excerpt(group, 2, 2, 25).trips, 5u);
  EXPECT_EQ(sim::loop_excerpt(group, 2, 2, 1000).trips, 7u);
  // The shorter wave has no eight.
  part = sim::loop_excerpt(group, 2, 8, 1);
  EXPECT_EQ(part.trips, 0u);
  EXPECT_EQ(works(part.trace.waves[0]), works(group.waves[0]));
}

// One wave whose trip is MFMAs and a barrier for itself alone: of all axes only the barrier's release counts.
constexpr char kBarrierLoop[] =
    "s_mov_b32 s8, 16\ns_nop 7\nloop:\n"
    ".rept 16\nv_mfma_f32_32x32x16_bf16 v[32:47], v[16:19], v[20:23], v[32:47]\n.endr\n"
    "s_nop 15\ns_nop 15\ns_barrier\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n";

TEST(ProfileCorners, AreEveryCombinationWorstFirst) {
  SimOptions simulator;
  simulator.capture = SimCapture{};
  const auto device = make_device();
  check(device->set_options(simulator));
  check(run(*device, assemble_kernel(kBarrierLoop), "k", {}, Args()));
  ProfileOptions options;
  options.errors = ProfileOptions::Errors::kNone;
  options.corners = ProfileOptions::Corners::kAll;
  options.parameters = {"barrier_cycles=60"};
  options.threads = 3;
  const auto profile = device->last_profile(options);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  ASSERT_TRUE(profile->corners);
  const ProfileCorners& c = *profile->corners;
  std::size_t combinations = 1;
  std::size_t barrier = c.axes.size();
  for (std::size_t i = 0; i < c.axes.size(); ++i) {
    combinations *= c.axes[i].values.size();
    if (c.axes[i].parameter == "barrier_cycles") barrier = i;
  }
  EXPECT_EQ(combinations, 768u);
  ASSERT_EQ(c.corners.size(), combinations);
  std::set<std::vector<u32>> different;
  for (const ProfileCorner& corner : c.corners) different.insert(corner.values);
  EXPECT_EQ(different.size(), combinations);
  ASSERT_LT(barrier, c.axes.size());
  for (std::size_t i = 0; i < combinations; ++i)
    EXPECT_EQ(c.corners[i].values[barrier], i < combinations / 2 ? 80u : 20u) << i;
  EXPECT_EQ(c.corners.front().cycles - c.corners.back().cycles, 60);
  EXPECT_EQ(c.corners.front().cycles - c.as_set.cycles, 20);
  EXPECT_EQ(c.as_set.cycles, profile->loop->cycles);
  EXPECT_TRUE(c.as_set.values.empty());
  EXPECT_EQ(c.as_set.matrix_busy, 512 / c.as_set.cycles / 4);
  EXPECT_EQ(c.as_set.useful_busy, 0);
}

TEST(ProfileCorners, AreLeftOutUnlessAskedForAndWithoutALoop) {
  SimOptions simulator;
  simulator.capture = SimCapture{};
  const auto device = make_device();
  check(device->set_options(simulator));
  check(run(*device, assemble_kernel("s_nop 0"), "k", {}, Args()));
  const auto asked = device->last_profile({.corners = ProfileOptions::Corners::kAll});
  ASSERT_TRUE(asked.has_value()) << asked.error().message;
  EXPECT_FALSE(asked->corners);
  check(run(*device, assemble_kernel(kBarrierLoop), "k", {}, Args()));
  const auto plain = device->last_profile({});
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_FALSE(plain->corners);
}

TEST_F(Profile, KeepsEventsWithTheirInstructions) {
  ProfileOptions options;
  options.errors = ProfileOptions::Errors::kNone;
  options.events = ProfileOptions::Events::kLongest;
  const auto profile = device_->last_profile(options);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  ASSERT_EQ(profile->events.size(), profile->groups[0].instructions);
  EXPECT_EQ(profile->instructions[profile->events[0].instruction].text, "s_mov_b32 s8, 16");
  EXPECT_EQ(profile->instructions[profile->events[2].instruction].offset, 8u);
  for (const ProfileEvent& event : profile->events) EXPECT_LT(event.stall, profile->stall_names.size());
}

TEST_F(Profile, ErrorBarsComeFromTheSensitivityAndDoNotDependOnThreads) {
  ProfileOptions options;
  const auto one = device_->last_profile(options);
  options.threads = 3;
  const auto three = device_->last_profile(options);
  ASSERT_TRUE(one.has_value() && three.has_value());
  EXPECT_EQ(one->sensitivity.size(), sim::profile_parameter_list().size());
  ASSERT_EQ(one->sensitivity.size(), three->sensitivity.size());
  for (std::size_t i = 0; i < one->sensitivity.size(); ++i) {
    EXPECT_EQ(one->sensitivity[i].parameter, three->sensitivity[i].parameter);
    EXPECT_EQ(one->sensitivity[i].at_high, three->sensitivity[i].at_high);
  }
  // A loop of MFMAs branches, and nothing else of it is uncertain in the slow direction by as much.
  EXPECT_GT(one->chip.cycles.high, one->chip.cycles.value);
  EXPECT_LE(one->chip.cycles.low, one->chip.cycles.value);
  EXPECT_EQ(one->chip.cycles.high, three->chip.cycles.high);
}

TEST_F(Profile, TimesALargerGridByTheOneThatRan) {
  ProfileOptions options;
  options.errors = ProfileOptions::Errors::kNone;
  options.grid = {0, 1000, 1};
  const auto profile = device_->last_profile(options);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_EQ(profile->chip.workgroups, 3000u);
  // 3000 waves of 128 registers: 12 a compute unit of the 16 that fit (4 a SIMD).
  EXPECT_EQ(profile->chip.resident, 12u);
}

TEST_F(Profile, RefusesWhatItCannotDo) {
  const auto refused = [&](const ProfileOptions& options, const std::string& part) {
    const auto profile = device_->last_profile(options);
    ASSERT_FALSE(profile.has_value()) << part;
    EXPECT_EQ(profile.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(profile.error().message, HasSubstr(part));
  };
  refused({.parameters = {"speed=9"}}, "\"speed\" is no timing parameter");
  refused({.parameters = {"barrier_cycles=1000"}}, "allowed are whole numbers from 4 to 80");
  refused({.grid = {4, 1, 1}}, "a grid of 4 workgroups on axis 0; 3 were launched");
  refused({.grid = {3, 65536, 65536}}, "at most 16777216 are timed");
  refused({.useful_flops = -1}, "useful_flops is -1");
  refused({.clock_ghz = 3.0}, "a clock of 3 GHz");
  refused({.threads = 0}, "threads is 0");
  refused({.attention = ProfileAttention{128, 0, 32}}, "head dims 128 and 0 and 32 queries");
}

// The assembled kernel's s_endpgm is all there is to time.
TEST(ProfileOf, AKernelThatOnlyEndsHasFiniteFigures) {
  const auto device = make_device();
  SimOptions options;
  options.capture = SimCapture{};
  check(device->set_options(options));
  check(run(*device, assemble_kernel(""), "k", {}, Args()));
  const auto profile = device->last_profile({});
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_EQ(profile->cycles, 0U);
  EXPECT_THAT(profile->critical, HasSubstr("takes no cycles"));
  for (const ProfileRange& range : {profile->chip.cycles, profile->chip.seconds, profile->chip.tflops}) {
    EXPECT_EQ(range.value, 0);
    EXPECT_EQ(range.low, 0);
    EXPECT_EQ(range.high, 0);
  }
  for (const ProfileSensitivity& s : profile->sensitivity) EXPECT_EQ(s.at_low, 0) << s.parameter;
}

TEST(ProfileOf, NothingRecordedIsNotFound) {
  const auto device = make_device();
  check(run(*device, assemble_kernel("s_nop 0"), "k", {}, Args()));
  const auto profile = device->last_profile({});
  ASSERT_FALSE(profile.has_value());
  EXPECT_EQ(profile.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace zyfa::sim_test
