// zyfa-jit simulate on kernels that stock LLVM assembled: results worked out by hand, and the exit
// codes of the job file's description.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/io/npy.h"
#include "tests/correctness/tools/simulate_fixture.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST_F(Simulate, RunsAndWrites) {
  assemble(kAddText);
  put_file(session_ / "in.bin", numbers(128));
  const Result result = simulate(kArguments, {"--strict", "--stats"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto out = io::read_npy(session_ / "out.npy");
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_EQ(out->type, io::ElementType::kI32);
  EXPECT_THAT(out->shape, testing::ElementsAre(2, 64));
  for (int i = 0; i < 128; ++i) {
    std::int32_t value = 0;
    std::memcpy(&value, out->data.data() + 4 * i, sizeof value);
    ASSERT_EQ(value, 3 * i + 1000);
  }
  // Two waves of eleven instructions: 4 scalar (2 of them memory loads), 2 waits, 1 end, 3 vector, 2 vector memory.
  EXPECT_THAT(result.out, HasSubstr("ran add: 2 workgroups, no finding"));
  const Result json = simulate(kArguments, {"--json"});
  const auto statistics = json.json()["statistics"];
  EXPECT_EQ(statistics["instructions"], 22) << json.out;
  EXPECT_EQ(statistics["vmem"], 4);
  EXPECT_EQ(statistics["smem"], 4);
  EXPECT_EQ(statistics["valu"], 6);
  EXPECT_EQ(statistics["mfma"], 0);
  EXPECT_EQ(statistics["waves"], 2);
}

TEST_F(Simulate, OwnOffsetsAgreeWithMetadata) {
  assemble(kAddText);
  const Result result = simulate(R"({"bytes":512,"fill":1,"write":"out.bin","offset":16},{"u32":1,"offset":4})");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::string expected;
  for (int i = 0; i < 128; ++i) {
    expected += std::string("\x02\x01\x01\x01", 4);
  }
  EXPECT_EQ(get_file(session_ / "out.bin"), expected);
}

TEST_F(Simulate, MemoryFaultIs3AndNamesThePlace) {
  assemble(kAddText);
  const Result result = simulate(R"({"i32":1},{"bytes":508})");
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_THAT(result.err, testing::StartsWith("zyfa-jit: error: "));
  EXPECT_THAT(result.err, HasSubstr("global_load_dword v2, v1, s[4:5]"));
  const Result json = simulate(R"({"i32":1},{"null":true})", {"--json"});
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_EQ(json.json()["error"]["code"], "memory-fault");
  ASSERT_FALSE(json.json()["findings"].empty()) << json.out;
  const auto finding = json.json()["findings"][0];
  EXPECT_EQ(finding["kind"], "memory-fault");
  // s_load_dword 8, s_load_dwordx2 8, s_lshl 4, v_lshlrev 4, v_add 4, s_waitcnt 4 bytes.
  EXPECT_EQ(finding["offset"], 32);
  EXPECT_THAT(finding["instruction"].get<std::string>(), HasSubstr("global_load_dword"));
}

TEST_F(Simulate, StrictFindingIs3) {
  assemble(kAddText, "  s_waitcnt vmcnt(0)\n", "");
  put_file(session_ / "in.bin", numbers(128));
  EXPECT_EQ(simulate(kArguments).exit_code, 0);
  const Result result = simulate(kArguments, {"--strict", "--json"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.json()["error"]["code"], "strict-finding");
  ASSERT_FALSE(result.json()["findings"].empty());
  EXPECT_THAT(result.json()["findings"][0]["instruction"].get<std::string>(), HasSubstr("v_add_u32"));
  EXPECT_THAT(result.err, HasSubstr("v_add_u32"));
}

TEST_F(Simulate, UnknownInstructionIs2AndNamed) {
  assemble(kAddText, "  s_endpgm\n", "  s_sethalt 1\n  s_endpgm\n");
  put_file(session_ / "in.bin", numbers(128));
  const Result result = simulate(kArguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("s_sethalt"));
}

TEST_F(Simulate, AnythingElseIs1) {
  assemble(kAddText);
  put_file(session_ / "in.bin", numbers(128));
  Result result = simulate(R"({"i32":1},{"buffer":"gone.bin"})");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("gone.bin: cannot open"));
  result = simulate(R"({"i64":1},{"buffer":"in.bin"})");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("args[0] has 8 bytes, but argument 0 of add takes 4"));
  put_file(session_ / "job.json", R"({"object":"k.hsaco","kernel":"sub","grid":[2,1,1],"block":[64,1,1],"args":[]})");
  result = session_.zyfa_jit({"simulate", session_ / "job.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no kernel 'sub' in the code object\n  it has add"));
  put_file(session_ / "k.hsaco", get_file(session_ / "k.hsaco").substr(0, 700));
  EXPECT_EQ(simulate(kArguments).exit_code, 1);
}

TEST_F(Simulate, AnotherArchitectureIs1) {
  processor_ = "gfx90a";
  assemble(kAddText, "--gfx950", "--gfx90a");
  put_file(session_ / "in.bin", numbers(128));
  const Result result = simulate(kArguments, {"--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.json()["error"]["code"], "arch-mismatch");
  EXPECT_THAT(result.err, HasSubstr("gfx950"));
  EXPECT_EQ(session_.zyfa_jit({"verify", session_ / "k.hsaco"}).exit_code, 1);
}

TEST_F(Simulate, VerifierFindsTheMissingWaitToo) {
  assemble(kAddText, "  s_waitcnt vmcnt(0)\n", "");
  const Result result = session_.zyfa_jit({"verify", session_ / "k.hsaco", "--json"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  ASSERT_FALSE(result.json()["findings"].empty());
  EXPECT_EQ(result.json()["findings"][0]["kind"], "missing-wait");
  EXPECT_THAT(result.json()["findings"][0]["instruction"].get<std::string>(), HasSubstr("v_add_u32"));
}

}  // namespace
}  // namespace zyfa::tools
