// A predicted execution as data: its checks, windows, states of waves and units of instructions.
#include "runtime/sim/picture/execution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/sim/exec/program.h"
#include "tests/unit/picture/sample.h"

namespace zyfa::sim_test {
namespace {

using namespace sim::picture;
using testing::HasSubstr;

TEST(PictureUnits, OfEveryMnemonicThatTheSimulatorKnows) {
  std::size_t seen[kUnits] = {};
  for (const std::string& name : sim::known_mnemonics()) {
    const Unit unit = unit_of(name + " v0, v1");
    ++seen[static_cast<std::size_t>(unit)];
    EXPECT_EQ(unit, unit_of(name)) << name;
    const bool vector = unit == Unit::kMatrix || unit == Unit::kValu || unit == Unit::kTrans;
    EXPECT_EQ(vector, name.starts_with("v_")) << name;
    EXPECT_EQ(unit == Unit::kLds, name.starts_with("ds_")) << name;
    EXPECT_EQ(unit == Unit::kMatrix, name.find("mfma") != name.npos || name.find("smfmac") != name.npos) << name;
  }
  for (std::size_t unit = 0; unit < kUnits; ++unit) EXPECT_GT(seen[unit], 0U) << unit_name(static_cast<Unit>(unit));
}

// Of the ISA's transcendental list and of SOPP.
TEST(PictureUnits, OfSingleInstructions) {
  EXPECT_EQ(unit_of("v_exp_f32_e32 v0, v1"), Unit::kTrans);
  EXPECT_EQ(unit_of("v_rcp_f64_e32 v[0:1], v[2:3]"), Unit::kTrans);
  EXPECT_EQ(unit_of("v_ldexp_f32 v0, v1, v2"), Unit::kValu);
  EXPECT_EQ(unit_of("s_waitcnt vmcnt(0)"), Unit::kInternal);
  EXPECT_EQ(unit_of("s_nop 1"), Unit::kNop);
  EXPECT_EQ(unit_of("s_barrier"), Unit::kBarrier);
  EXPECT_EQ(unit_of("s_load_dwordx4 s[0:3], s[0:1], 0x0"), Unit::kScalarMemory);
  EXPECT_EQ(unit_of("s_cbranch_scc1 65000"), Unit::kScalar);
  EXPECT_EQ(unit_of("buffer_load_dwordx4 v0, s[0:3], 0 offen lds"), Unit::kVmem);
  EXPECT_EQ(unit_of(""), Unit::kInternal);
}

TEST(PictureCheck, AcceptsTheSampleAndNamesEachFault) {
  ASSERT_TRUE(check(sample_execution()));
  const auto fault = [](auto&& spoil) {
    Execution e = sample_execution();
    spoil(e);
    const Status status = check(e);
    EXPECT_FALSE(status);
    return status ? std::string() : status.error().message;
  };
  EXPECT_THAT(fault([](Execution& e) { e.spans[3].wave = 3; }), HasSubstr("span 3 of a picture: wave 3"));
  EXPECT_THAT(fault([](Execution& e) { e.spans[3].instruction = 6; }), HasSubstr("instruction 6"));
  EXPECT_THAT(fault([](Execution& e) { e.spans[3].stall = 9; }), HasSubstr("stall 9"));
  EXPECT_THAT(fault([](Execution& e) { e.spans[6].issue = 130; }), HasSubstr("issues at 130, after one at 136"));
  EXPECT_THAT(fault([](Execution& e) { e.spans[4].stalled = 33; }), HasSubstr("waited 33 cycles"));
  EXPECT_THAT(fault([](Execution& e) { e.spans[4].end = 131; }), HasSubstr("ends at 131"));
  EXPECT_THAT(fault([](Execution& e) { e.loop = {5, 5}; }), HasSubstr("must not be empty"));
}

TEST(PictureWindow, IsAskedForElseTheLoopElseEverything) {
  Execution e = sample_execution();
  EXPECT_EQ(choose_window(e, {}).value(), (Window{100, 200}));
  EXPECT_EQ(choose_window(e, Window{0, 101}).value(), (Window{0, 101}));
  e.loop.reset();
  EXPECT_EQ(choose_window(e, {}).value(), (Window{0, 300}));
  EXPECT_EQ(choose_window(e, Window{50, ~std::uint64_t{0}}).value(), (Window{50, 300}));
  const auto none = choose_window(e, Window{0, 100});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("window 0:100; the run takes cycles 0:300"));
}

TEST(PictureWindow, HasATextForm) {
  EXPECT_EQ(parse_window("20:40").value(), (Window{20, 40}));
  for (const char* text :
       {"", ":", "20", "20:", ":40", "40:20", "20:20", "-1:3", "1:2 ", "1:2:3", "1:99999999999999999999"}) {
    const auto window = parse_window(text);
    ASSERT_FALSE(window) << text;
    EXPECT_THAT(window.error().message, HasSubstr("FROM:TO")) << text;
  }
}

struct Expected {
  std::uint64_t begin, end;
  bool waits;
  std::string_view reason;
};
void expect_states(const std::vector<State>& states, const std::vector<Expected>& expected) {
  ASSERT_EQ(states.size(), expected.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].begin, expected[i].begin) << i;
    EXPECT_EQ(states[i].end, expected[i].end) << i;
    EXPECT_EQ(states[i].waits, expected[i].waits) << i;
    EXPECT_EQ(states[i].reason, expected[i].reason) << i;
  }
}

TEST(PictureStates, CoverAWavesTime) {
  const Execution e = sample_execution();
  const auto states = wave_states(e, {100, 200});
  ASSERT_EQ(states.size(), 3U);
  expect_states(states[0], {{100, 104, false, ""},
                            {104, 132, true, "matrix busy"},
                            {132, 136, false, ""},
                            {136, 184, true, "barrier"},
                            {184, 188, false, ""}});
  expect_states(states[1], {{104, 108, false, ""},
                            {108, 116, false, ""},
                            {116, 120, false, ""},
                            {120, 170, true, "lds wait"},
                            {170, 172, false, ""},
                            {172, 184, true, "barrier"},
                            {184, 218, false, ""}});
  expect_states(wave_states(e, {110, 120})[1], {{108, 116, false, ""}, {116, 120, false, ""}});
}

TEST(PictureNames, OfWaves) {
  Execution e = sample_execution();
  EXPECT_EQ(wave_name(e, 1), "wave 4");
  e.waves.push_back({{7, 0, 0}, 4, 2});
  EXPECT_EQ(wave_name(e, 3), "wave 4, copy 2");
  e.waves.push_back({{8, 1, 0}, 4, 2});
  EXPECT_EQ(wave_name(e, 1), "wave 4 of workgroup (7, 0, 0)");
  EXPECT_EQ(wave_name(e, 4), "wave 4 of workgroup (8, 1, 0)");
}

}  // namespace
}  // namespace zyfa::sim_test
