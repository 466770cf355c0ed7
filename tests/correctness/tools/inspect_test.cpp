// zyfa-jit simulate --trace, --break, --dump, --compare-rules and the simulator's policies, on a kernel followed by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/correctness/tools/simulate_fixture.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::Not;

// The instruction that adds `value`: 8 + 8 + 4 + 4 + 4 + 4 + 8 + 4 bytes before it (two scalar loads, a shift, two VALU
// instructions, a wait, a load, a wait).
constexpr const char* kAddOffset = "0x2c";

class Inspect : public Simulate {
 protected:
  void SetUp() override {
    Simulate::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) {
      assemble(kAddText);
      put_file(session_ / "in.bin", numbers(128));
    }
  }
  Result run(const std::vector<std::string>& options) { return simulate(kArguments, options); }
};

TEST_F(Inspect, TraceHasEveryInstructionWithItsResults) {
  const Result result = run({"--trace", "0", "--workgroup", "1,0,0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("       0 +0x00000 exec=ffffffffffffffff scc=0  s_load_dword s6, s[0:1], 0x4"));
  EXPECT_THAT(result.out, HasSubstr("(load in flight)"));
  // s7 = workgroup 1 << 8; v1 = 0 << 2 + s7 in lane 0; element 64 holds 192.
  EXPECT_THAT(result.out, HasSubstr("s7=00000100"));
  EXPECT_THAT(result.out, HasSubstr("v1=00000100 (lane 0)"));
  EXPECT_THAT(result.out, HasSubstr("v2=000004a8 (lane 0)"));
  EXPECT_THAT(result.out, HasSubstr("      10 +0x00038"));
  EXPECT_THAT(result.out, HasSubstr("s_endpgm"));
}

TEST_F(Inspect, TraceGoesToAFile) {
  const Result result = run({"--trace", "0", "--trace-file", session_ / "trace.txt", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.json().is_discarded());
  EXPECT_THAT(get_file(session_ / "trace.txt"), HasSubstr("s_endpgm"));
}

TEST_F(Inspect, BreakShowsRegistersAndStops) {
  const Result result = run({"--break", kAddOffset, "--dump", "v0-1,s6,lds:0x0-0x3,a0", "--workgroup", "1,0,0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("break at +0x2c `v_add_u32_e32 v2, s6, v2`, workgroup (1, 0, 0), wave 0, instruction 8"));
  EXPECT_THAT(result.out, HasSubstr("v0    lane  0: 00000000 00000001 00000002 00000003 00000004"));
  EXPECT_THAT(result.out, HasSubstr("v1    lane  0: 00000100 00000104"));
  EXPECT_THAT(result.out, HasSubstr("s6    000003e8"));
  EXPECT_THAT(result.out, HasSubstr("lds:0x00000  -- -- -- --"));
  EXPECT_THAT(result.out, HasSubstr("a0    the kernel has no such register"));
  EXPECT_THAT(result.out, HasSubstr("stopped add at the breakpoint; nothing was stored"));
  EXPECT_FALSE(std::filesystem::exists(session_ / "out.npy"));
}

TEST_F(Inspect, BreakAsData) {
  const auto json = run({"--break", "44", "--dump", "v2,s6,vcc", "--json"}).json();
  EXPECT_EQ(json["stopped"], true);
  ASSERT_EQ(json["breaks"].size(), 1U);
  const auto& hit = json["breaks"][0];
  EXPECT_EQ(hit["offset"], 0x2c);
  EXPECT_EQ(hit["number"], 8);
  EXPECT_EQ(hit["dump"]["s6-6"][0], 1000);
  EXPECT_EQ(hit["dump"]["v2-2"][0][5], 15);
  EXPECT_EQ(hit["dump"]["v2-2"][0].size(), 64U);
}

TEST_F(Inspect, ABreakpointThatIsNeverReachedIsAnError) {
  const Result result = run({"--break", "0x30000"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the breakpoint at +0x30000 was never reached"));
}

TEST_F(Inspect, BadOptionsNameTheValueAndWhatIsAllowed) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--break", "x"}, "--break 'x': an offset in bytes, 0x... or decimal, is allowed"},
      {{"--break", ""}, "--break ''"},
      {{"--break", "4", "--dump", "v0-"}, "--dump 'v0-': v0-15"},
      {{"--break", "4", "--dump", "v9-3"}, "--dump 'v9-3'"},
      {{"--break", "4", "--dump", "v512"}, "--dump 'v512'"},
      {{"--break", "4", "--dump", "v0,,s0"}, "--dump ''"},
      {{"--break", "4", "--dump", "lds:0-0x28000"}, "--dump 'lds:0-0x28000'"},
      {{"--dump", "v0"}, "--dump v0 needs --break"},
      {{"--hits", "2"}, "--break-wave and --hits need --break"},
      {{"--break-wave", "0"}, "--break-wave and --hits need --break"},
      {{"--workgroup", "1,0,0"}, "--workgroup needs --trace WAVE or --break"},
      {{"--trace-file", "t"}, "--trace-file t needs --trace"},
      {{"--trace", "0", "--json"}, "--trace with --json needs --trace-file"},
      {{"--trace", "0", "--trace-file", "/nowhere/t"}, "cannot write '/nowhere/t'"},
      {{"--break", "0x10", "--workgroup", "0,0,0", "--hits", "5"}, "was reached 1 of 5 times"},
      {{"--compare-rules", "--break", "0x10"}, "--compare-rules runs the job many times"},
      {{"--max-instructions", "-5"}, "--max-instructions"},
      {{"--trace", "7"}, "the launch has no such wave to trace"},
      {{"--landing", "soon"}, "landing 'soon'; late, latest, early or random:SEED"},
      {{"--landing", ""}, "landing ''"},
      {{"--landing", "random:x"}, "landing 'random:x'"},
      {{"--interleave", "random"}, "interleave 'random'; round-robin, to-barrier or random:SEED"},
      {{"--rule", "soffset=maybe"}, "rule 'soffset=maybe' is none of the simulator's"},
      {{"--rule", "soffset"}, "soffset=unchecked|checked"},
      {{"--max-findings", "0"}, "--max-findings"},
  };
  for (const auto& [options, message] : cases) {
    const Result result = run(options);
    EXPECT_EQ(result.exit_code, 1) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

TEST_F(Inspect, PoliciesGiveTheSameResultForAKernelThatWaits) {
  ASSERT_EQ(run({}).exit_code, 0);
  const std::string expected = get_file(session_ / "out.npy");
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--landing", "early"},
           {"--landing", "random:3"},
           {"--interleave", "to-barrier"},
           {"--interleave", "random:4", "--rule", "soffset=checked", "--rule", "accumulation=exact"}}) {
    ASSERT_EQ(run(options).exit_code, 0);
    EXPECT_EQ(get_file(session_ / "out.npy"), expected);
  }
}

// 128 elements read and written; each of the two waves loads 4 + 8 bytes of arguments.
TEST_F(Inspect, StatisticsCountUnitsAndBytes) {
  const auto json = run({"--stats", "--json"}).json();
  const auto& counts = json["statistics"];
  EXPECT_EQ(counts["instructions"], 22);
  EXPECT_EQ(counts["valu"], 6);
  EXPECT_EQ(counts["vmem"], 4);
  EXPECT_EQ(counts["smem"], 4);
  EXPECT_EQ(counts["bytes"]["global_read"], 512);
  EXPECT_EQ(counts["bytes"]["global_written"], 512);
  EXPECT_EQ(counts["bytes"]["scalar_read"], 24);
  EXPECT_EQ(counts["bytes"]["lds_read"], 0);
  EXPECT_EQ(counts["lds"]["conflict_cycles"], 0);
  EXPECT_THAT(run({"--stats"}).out, HasSubstr("global_read                   512"));
}

// 64 lanes 256 bytes apart all meet in bank 0: the write of a dword takes two phases of 32 lanes.
TEST_F(Inspect, StatisticsNameTheInstructionsWithBankConflicts) {
  assemble(kAddText, "  s_waitcnt vmcnt(0)\n",
           "  s_waitcnt vmcnt(0)\n  v_lshlrev_b32_e32 v4, 8, v0\n  ds_write_b32 v4, v2\n");
  const Result text = run({"--stats"});
  EXPECT_THAT(text.out, HasSubstr("ds_write_b32 v4, v2"));
  const auto conflicts = run({"--stats", "--json"}).json()["statistics"]["lds"]["conflicts"];
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0]["executed"], 2);
  EXPECT_EQ(conflicts[0]["phases"], 4);
  EXPECT_EQ(conflicts[0]["conflict_cycles"], 2 * 2 * 31);
}

// What a breakpoint saw is kept when the run fails behind it.
TEST_F(Inspect, BreaksAreReportedOfARunThatFails) {
  const Result result =
      simulate(R"({"i32":1000},{"null":true})", {"--break", "0x10", "--dump", "v0", "--hits", "9", "--json"});
  EXPECT_EQ(result.exit_code, 3);
  const auto json = result.json();
  EXPECT_EQ(json["error"]["code"], "memory-fault");
  ASSERT_GE(json["breaks"].size(), 1U);
  EXPECT_EQ(json["breaks"][0]["offset"], 16);
}

TEST_F(Inspect, WhatCannotBeWrittenIsAnError) {
  const Result trace = run({"--trace", "0", "--trace-file", "/dev/full"});
  EXPECT_EQ(trace.exit_code, 1);
  EXPECT_THAT(trace.err, HasSubstr("cannot write the trace"));
  const Result out = session_.command("/bin/sh", {"-c", std::string(ZYFA_BUILD_DIR "/bin/zyfa-jit simulate ") +
                                                            (session_ / "job.json").string() + " --json >/dev/full"});
  EXPECT_EQ(out.exit_code, 1);
  EXPECT_THAT(out.err, HasSubstr("cannot write to stdout"));
}

// Without its wait the kernel adds to what v2 held before: only early landing hides that.
TEST_F(Inspect, LandingShowsAMissingWait) {
  assemble(kAddText, "  s_waitcnt vmcnt(0)\n", "");
  ASSERT_EQ(run({"--landing", "early"}).exit_code, 0);
  const std::string early = get_file(session_ / "out.npy");
  ASSERT_EQ(run({"--landing", "late"}).exit_code, 0);
  EXPECT_NE(get_file(session_ / "out.npy"), early);
}

TEST_F(Inspect, ComparisonSaysWhichResultsDependOnARule) {
  Result result = run({"--compare-rules"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("cvt-pk-u8=truncates        out.npy: the same bits"));
  EXPECT_THAT(result.out, Not(HasSubstr("depends on it")));
  EXPECT_FALSE(std::filesystem::exists(session_ / "out.npy"));
  // 1.75 becomes 2 or 1.
  assemble(kAddText, "v_add_u32_e32 v2, s6, v2",
           "v_mov_b32_e32 v3, 0x3fe00000\n  v_mov_b32_e32 v2, 0\n  v_cvt_pk_u8_f32 v2, v3, 0, v2");
  result = run({"--compare-rules"});
  EXPECT_THAT(result.out,
              HasSubstr("cvt-pk-u8=truncates        out.npy: depends on it: 128 of 128 elements differ, by 1 at most"));
  EXPECT_THAT(result.out, HasSubstr("accumulation=exact         out.npy: the same bits"));
  const auto json = run({"--compare-rules", "--json"}).json();
  for (const auto& rule : json["rules"]) {
    EXPECT_EQ(rule["buffers"][0]["different"], rule["rule"] == "cvt-pk-u8=truncates" ? 128 : 0) << rule;
  }
  const Result nothing = simulate(R"({"i32":1000},{"buffer":"in.bin"})", {"--compare-rules"});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("nothing to compare"));
}

}  // namespace
}  // namespace zyfa::tools
