// Watches (zyfa/sim_watch.h) and counts by instruction: what they say of a program followed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/object/listing_notes.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using testing::ElementsAre;
using testing::HasSubstr;

// Offsets: 0 s_mov, 4 v_mov, 8 loop: v_add, 12 s_sub, 16 s_cmp, 20 branch, 24 ds_write (8 bytes), 32 s_endpgm.
constexpr char kCode[] =
    "s_mov_b32 s8, 3\nv_mov_b32 v2, 0\nloop:\nv_add_u32 v2, v2, v0\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\n"
    "s_cbranch_scc1 loop\nds_write_b32 v0, v2\n";

struct Seen {
  std::vector<std::uint64_t> offsets, numbers;
  std::vector<u32> waves;
};

class Watch : public testing::Test {
 protected:
  Status run(SimWatch watch, unsigned waves = 1, unsigned groups = 1, unsigned threads = 1) {
    SimOptions options;
    options.threads = threads;
    options.watches.push_back(std::move(watch));
    check(device_->set_options(options));
    return sim_test::run(*device_, assemble_kernel(kCode, {.lds = 4096, .workgroup = 64 * waves}), "k",
                         {.grid = {groups, 1, 1}, .block = {64 * waves, 1, 1}}, Args());
  }
  std::shared_ptr<SimDevice> device_ = make_device();
};

TEST_F(Watch, TracesEveryInstructionOfOneWave) {
  Seen seen;
  SimWatch watch;
  watch.moment = SimMoment::kAfter;
  watch.wave = 1;
  watch.workgroup = {2, 0, 0};
  watch.call = [&](const SimStep& step, const SimWaveView&) {
    EXPECT_EQ(step.workgroup, (std::array<u32, 3>{2, 0, 0}));
    seen.offsets.push_back(step.offset);
    seen.numbers.push_back(step.number);
    seen.waves.push_back(step.wave);
    return SimAction::kContinue;
  };
  check(run(std::move(watch), 2, 4, 2));
  EXPECT_THAT(seen.offsets, ElementsAre(0, 4, 8, 12, 16, 20, 8, 12, 16, 20, 8, 12, 16, 20, 24, 32));
  for (std::size_t i = 0; i < seen.numbers.size(); ++i) EXPECT_EQ(seen.numbers[i], i);
  EXPECT_THAT(seen.waves, testing::Each(1u));
}

TEST_F(Watch, ShowsRegistersAndLdsBeforeAndAfter) {
  std::vector<u32> before, after;
  for (const SimMoment moment : {SimMoment::kBefore, SimMoment::kAfter}) {
    SimWatch watch;
    watch.moment = moment;
    watch.offset = 8;
    watch.call = [&](const SimStep& step, const SimWaveView& wave) {
      EXPECT_EQ(step.instruction, "v_add_u32_e32 v2, v2, v0");
      EXPECT_EQ(step.writes.size(), 1u);
      EXPECT_EQ(step.writes[0].bank, 'v');
      EXPECT_EQ(step.writes[0].first, 2u);
      EXPECT_EQ(step.writes[0].count, 1u);
      EXPECT_EQ(wave.exec(), ~0ull);
      EXPECT_EQ(wave.lds().size(), 4096u);
      EXPECT_EQ(wave.sgpr(8), 3u - step.number / 4);
      EXPECT_FALSE(wave.vgpr(2, 64).has_value());
      EXPECT_FALSE(wave.vgpr(128, 0).has_value());
      EXPECT_FALSE(wave.agpr(0, 0).has_value());
      EXPECT_FALSE(wave.sgpr(128).has_value());
      (moment == SimMoment::kBefore ? before : after).push_back(*wave.vgpr(2, 5));
      return SimAction::kContinue;
    };
    check(run(std::move(watch)));
  }
  EXPECT_THAT(before, ElementsAre(0, 5, 10));
  EXPECT_THAT(after, ElementsAre(5, 10, 15));
}

TEST_F(Watch, StopEndsTheLaunch) {
  unsigned calls = 0;
  SimWatch watch;
  watch.offset = 12;
  watch.call = [&](const SimStep&, const SimWaveView&) {
    return ++calls == 2 ? SimAction::kStop : SimAction::kContinue;
  };
  const Status status = run(std::move(watch));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kDeviceError);
  EXPECT_THAT(status.error().message, HasSubstr("a watch stopped wave 0 of workgroup (0, 0, 0)"));
  EXPECT_EQ(calls, 2u);
}

TEST_F(Watch, AgprsAreTheirOwnBank) {
  SimOptions options;
  std::vector<u32> seen;
  SimWatch watch;
  watch.moment = SimMoment::kAfter;
  watch.offset = 0;
  watch.call = [&](const SimStep& step, const SimWaveView& wave) {
    EXPECT_EQ(step.writes[0].bank, 'a');
    EXPECT_EQ(step.writes[0].first, 3u);
    seen.push_back(*wave.agpr(3, 7));
    return SimAction::kContinue;
  };
  options.watches.push_back(std::move(watch));
  check(device_->set_options(options));
  check(sim_test::run(*device_, assemble_kernel("v_accvgpr_write_b32 a3, v0\n", {.vgprs = 16, .agprs = 8}), "k", {},
                      Args()));
  EXPECT_THAT(seen, ElementsAre(7u));
}

TEST_F(Watch, CountsByInstruction) {
  SimOptions options;
  options.counts = SimCounts::kByInstruction;
  options.threads = 3;
  check(device_->set_options(options));
  const Bytes object = assemble_kernel(kCode, {.lds = 4096, .workgroup = 128});
  check(sim_test::run(*device_, object, "k", {.grid = {5, 1, 1}, .block = {128, 1, 1}}, Args()));
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;
  for (const SimInstructionCount& c : device_->last_instruction_counts()) counts.emplace_back(c.offset, c.executed);
  using P = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_THAT(counts, ElementsAre(P(0, 10), P(4, 10), P(8, 30), P(12, 30), P(16, 30), P(20, 30), P(24, 10), P(32, 10)));
  options.counts = SimCounts::kByUnit;
  check(device_->set_options(options));
  check(sim_test::run(*device_, object, "k", {.block = {128, 1, 1}}, Args()));
  EXPECT_TRUE(device_->last_instruction_counts().empty());
}

TEST_F(Watch, CountsCarryTheListingsComments) {
  SimOptions options;
  options.counts = SimCounts::kByInstruction;
  check(device_->set_options(options));
  jit::ListingNotesWriter notes;
  for (const char* comment : {"count", "sum", "head of the loop", "", "", "back", "out", "end"}) {
    notes.add("stage", comment, "source");
  }
  std::string text = notes.finish();
  text.replace(text.find('\n'), 1, "\\n");
  const std::string listing = ".section .zyfa.listing,\"\",@progbits\n.ascii \"" + text + "\"\n.text\n";
  const auto comments = [&](const std::string& code) {
    check(sim_test::run(*device_, assemble_kernel(code, {.lds = 4096, .workgroup = 64}), "k", {}, Args()));
    std::vector<std::pair<std::string, std::uint64_t>> counts;
    for (const SimInstructionCount& c : device_->last_instruction_counts()) counts.emplace_back(c.comment, c.executed);
    return counts;
  };
  using P = std::pair<std::string, std::uint64_t>;
  EXPECT_THAT(comments(listing + kCode), ElementsAre(P("count", 1), P("sum", 1), P("head of the loop", 3), P("", 3),
                                                     P("", 3), P("back", 3), P("out", 1), P("end", 1)));
  EXPECT_THAT(comments(kCode), testing::Each(testing::Field(&P::first, "")));
}

TEST_F(Watch, ProgressGoesFromNothingToAll) {
  for (const unsigned threads : {1u, 3u}) {
    SimOptions options;
    options.threads = threads;
    std::vector<std::uint64_t> ended;
    options.progress = [&](std::uint64_t done, std::uint64_t all) {
      EXPECT_EQ(all, 7u);
      ended.push_back(done);
    };
    check(device_->set_options(options));
    check(sim_test::run(*device_, assemble_kernel(kCode, {.lds = 4096}), "k", {.grid = {7, 1, 1}}, Args()));
    EXPECT_TRUE(std::is_sorted(ended.begin(), ended.end()));
    EXPECT_EQ(ended.front(), 0u);
    EXPECT_EQ(ended.back(), 7u);
  }
}

}  // namespace
}  // namespace zyfa::sim_test
