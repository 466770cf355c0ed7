// zyfa-jit profile and simulate --profile, end to end. Cycles are the cycle model's; here it is what the command makes
// of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/correctness/tools/simulate_fixture.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST(Profile, CountsTheWorkOfAProblem) {
  const Session session;
  const Result result = session.zyfa_jit({"profile", "--problem", "fp8e4m3,d=128,causal", "--tokens", "1024", "--heads",
                                          "4", "--key-heads", "2", "--batch", "3", "--clock", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto p = result.json();
  EXPECT_EQ(p["predicted"], true);
  // Four tiles of 256 queries, 4 heads, 3 batches.
  EXPECT_EQ(p["chip"]["workgroups"], 48);
  EXPECT_EQ(p["chip"]["resident"], 1);
  EXPECT_EQ(p["recorded"].size(), 4u);
  // Causal over equal lengths: half of 4 x 1024 x 1024 x 128 flops a head.
  EXPECT_EQ(p["chip"]["flops"], 2.0 * 1024 * 1024 * 128 * 12);
  EXPECT_EQ(p["chip"]["flops_kind"], "useful");
  // q and o (BF16) of 12 heads, k and v of 6.
  EXPECT_EQ(p["chip"]["unique_bytes"], 12.0 * 1024 * (128 + 256) + 6.0 * 1024 * 256);
  // QK and PV of 128 keys for 32 queries take 1,024 matrix cycles (mi355x-timing.md 2.4).
  const double keys = p["loop"]["keys_per_trip"], cycles = p["loop"]["cycles_per_trip"];
  EXPECT_NEAR(p["loop"]["useful_matrix_busy"].get<double>(),
              1024 * keys / 128 * p["loop"]["waves_per_simd"].get<double>() / cycles, 1e-9);
  EXPECT_GT(p["loop"]["matrix_cycles_per_trip"].get<double>(), 1024 * keys / 128);
  // The last iteration is done behind the loop, its P.V alone takes 512.
  EXPECT_GE(p["loop"]["epilogue_cycles"].get<double>(), 512);
  EXPECT_DOUBLE_EQ(p["chip"]["seconds"]["value"].get<double>(), p["chip"]["cycles"]["value"].get<double>() / 2e9);
  EXPECT_GT(p["toggles_per_mfma"]["a"].get<double>(), 0);
  // The first tile is the longest.
  EXPECT_GT(p["recorded"][0]["cycles"].get<int>(), p["recorded"][3]["cycles"].get<int>());
  EXPECT_EQ(p["chip"]["longest_workgroup_cycles"], p["cycles"]);
}

TEST(Profile, FollowsAParameterAndSaysWhichWasSet) {
  const Session session;
  const auto cycles = [&](const std::string& set) {
    const Result result =
        session.zyfa_jit({"profile", "--problem", "bf16,d=128", "--tokens", "512", "--set", set, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.json()["parameters"], nlohmann::json::array({set}));
    return result.json()["cycles"].get<int>();
  };
  EXPECT_LT(cycles("l2_latency=180"), cycles("l2_latency=1800"));
}

TEST(Profile, TextNamesTheParts) {
  const Session session;
  // A sample of 512 tokens: the naive loop, whose body is one iteration, has trips enough to be steady.
  const Result result = session.zyfa_jit(
      {"profile", "--problem", "bf16,d=128", "--placement", "naive", "--inputs", kSample, "--sensitivity"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part :
       {"512 x 512 tokens, 4 heads (2 key heads), batch 1", "every figure is predicted", "cycles a 128-key tile",
        "matrix busy, useful", "prologue, epilogue", "critical: ", "wave  3 SIMD 3", "operand bits that toggle",
        "bound by", "clock (assumed)", "predicted time: ", "TFLOP/s", "sensitivity: ", "l2_latency "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  const Result list = session.zyfa_jit({"profile", "--parameters"});
  EXPECT_THAT(list.out, HasSubstr("barrier_cycles"));
}

TEST(Profile, CornersOfALoop) {
  const Session session;
  const std::vector<std::string> arguments{"profile",  "--problem", "fp8e4m3,d=128", "--tokens",       "2048",
                                           "--record", "1",         "--corners",     "--no-error-bars"};
  std::vector<std::string> with_json = arguments;
  with_json.emplace_back("--json");
  const Result result = session.zyfa_jit(with_json);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto p = result.json();
  EXPECT_TRUE(p["sensitivity"].empty());
  EXPECT_EQ(p["chip"]["cycles"]["low"], p["chip"]["cycles"]["high"]);
  const auto& corners = p["corners"]["corners"];
  ASSERT_EQ(corners.size(), 768u);
  EXPECT_EQ(p["corners"]["axes"].size(), corners[0]["values"].size());
  EXPECT_LT(corners.front()["useful_matrix_busy"], corners.back()["useful_matrix_busy"]);
  // An excerpt stands for the whole run within some per cent.
  const double whole = p["loop"]["useful_matrix_busy"], part = p["corners"]["as_set"]["useful_matrix_busy"];
  EXPECT_NEAR(part, whole, 0.05 * whole);
  const Result text = session.zyfa_jit(arguments);
  for (const char* said : {"at 768 corners, worst first by the useful share", "  worst    useful ",
                           "  median   useful ", "  best     useful ", "  worst at hold_other_wave="}) {
    EXPECT_THAT(text.out, HasSubstr(said));
  }
}

TEST_F(Simulate, AttentionOfAJobTellsItsUsefulWork) {
  std::string text = kAddText;
  const auto replace = [&](std::string_view from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("  s_endpgm",
          "s_mov_b32 s8, 16\nloop:\n"
          ".rept 16\nv_mfma_f32_32x32x16_bf16 v[32:47], v[16:19], v[20:23], v[32:47]\n.endr\n"
          "s_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n  s_endpgm");
  replace("next_free_vgpr 8", "next_free_vgpr 48");
  replace("accum_offset 8", "accum_offset 48");
  assemble(text);
  put_file(session_ / "in.bin", numbers(128));
  simulate(kArguments);  // writes the job
  const Result result = session_.zyfa_jit({"profile", session_ / "job.json", "--attention", "8/8/32", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // A trip has 2^19 flops, a key 2 x 32 x 16.
  EXPECT_EQ(result.json()["loop"]["keys_per_trip"], 512);
}

TEST_F(Simulate, ProfileOfAJobIsTheSameFromBothCommands) {
  assemble(kAddText);
  put_file(session_ / "in.bin", numbers(128));
  ASSERT_EQ(simulate(kArguments).exit_code, 0);
  const std::string plain = get_file(session_ / "out.npy");
  std::filesystem::remove(session_ / "out.npy");
  const Result ran = simulate(kArguments, {"--profile", session_ / "p.json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(get_file(session_ / "out.npy"), plain);
  const auto written = nlohmann::json::parse(get_file(session_ / "p.json"), nullptr, false);
  const Result result = session_.zyfa_jit({"profile", session_ / "job.json", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  auto printed = result.json();
  printed.erase("job");
  EXPECT_EQ(written, printed);
  EXPECT_EQ(printed["chip"]["workgroups"], 2);
  EXPECT_EQ(printed["recorded"][1]["workgroup"], nlohmann::json::array({1, 0, 0}));
  EXPECT_EQ(printed["recorded"][0]["instructions"], 11);
  // 64 dwords read and written by each of two workgroups; a byte is both read and written at one address.
  EXPECT_EQ(printed["chip"]["requested_bytes"], 1024);
  EXPECT_EQ(printed["chip"]["unique_bytes"], 512);
  EXPECT_TRUE(printed["loop"].is_null());
}

TEST_F(Simulate, ProfileRecordsTheNamedWorkgroupAlone) {
  assemble(kAddText);
  put_file(session_ / "in.bin", numbers(128));
  simulate(kArguments);  // writes the job
  const Result result = session_.zyfa_jit({"profile", session_ / "job.json", "--workgroup", "1,0,0", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(result.json()["recorded"].size(), 1u);
  EXPECT_EQ(result.json()["recorded"][0]["workgroup"], nlohmann::json::array({1, 0, 0}));
  EXPECT_EQ(result.json()["chip"]["workgroups"], 2);
}

}  // namespace
}  // namespace zyfa::tools
