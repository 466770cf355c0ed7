// prewarm, list, dump, explain and verify, each on what the one before it left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/correctness/tools/command.h"
#include "tests/require_tools.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST(CacheCommands, PrewarmListExplainDump) {
  const Session session;
  put_file(session / "shapes", "bf16,d=128,causal  # prefill\nbf16,d=128,full,lse\nbf16,d=128,causal\n");
  Result result = session.zyfa_jit({"prewarm", "--shapes", session / "shapes", "-j", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("3 problems: 2 built, 0 read from the cache, 0 failed; publishing, in the "));

  result = session.zyfa_jit({"prewarm", "--shapes", session / "shapes"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("3 problems: 0 built, 2 read from the cache, 0 failed"));

  result = session.zyfa_jit({"list", "--json"});
  ASSERT_EQ(result.exit_code, 0);
  const auto kernels = result.json()["kernels"];
  ASSERT_EQ(kernels.size(), 2U);
  std::map<std::string, std::string> keys;
  for (const auto& kernel : kernels) {
    keys[kernel["problem"]] = kernel["key"];
    EXPECT_TRUE(std::filesystem::exists(kernel["path"].get<std::string>()));
    EXPECT_EQ(kernel["layer"], session.cache().string());
  }
  EXPECT_THAT(keys,
              testing::UnorderedElementsAre(testing::Key("bf16,d=128,causal"), testing::Key("bf16,d=128,full,lse")));
  result = session.zyfa_jit({"list"});
  EXPECT_THAT(result.out, HasSubstr("2 kernels"));
  EXPECT_THAT(result.out, HasSubstr(keys["bf16,d=128,causal"]));

  result = session.zyfa_jit({"explain", "--problem", "bf16,d=128,causal", "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.json()["key"], keys["bf16,d=128,causal"]);
  EXPECT_TRUE(result.json()["cached"]);
  EXPECT_EQ(result.json()["row"], "pingpong");
  result = session.zyfa_jit({"explain", "--problem", "bf16,d=128,full", "--json"});
  EXPECT_FALSE(result.json()["cached"]);

  result =
      session.zyfa_jit({"dump", keys["bf16,d=128,causal"].substr(0, 8), "--schedule", "--registers", "--metadata"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"== schedule\nname=pingpong;", "== registers\n", "== metadata\n", "gfx950"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(CacheCommands, ExplainOfANamedPlacementIsWhatCompileUses) {
  const Session session;
  const Result run = session.zyfa_jit({"dump", "--problem", "bf16,d=128", "--placement", "naive", "--schedule"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string canonical = run.out.substr(0, run.out.find('\n'));
  Result result = session.zyfa_jit({"explain", "--problem", "bf16,d=128", "--placement", "naive", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["row"], "naive");
  EXPECT_EQ(result.json()["schedule"], canonical);
  EXPECT_TRUE(result.json()["cached"]);
  // The same placement as text, by the other name of the option; what is built to check it is not stored.
  std::string other = canonical;
  other.replace(0, std::string_view("name=naive").size(), "name=mine");
  result = session.zyfa_jit({"explain", "--problem", "bf16,d=128", "--schedule", other, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["row"], "custom");
  EXPECT_EQ(result.json()["schedule"], other);
  EXPECT_FALSE(result.json()["cached"]);
  EXPECT_EQ(session.zyfa_jit({"list", "--json"}).json()["kernels"].size(), 1U);
  result = session.zyfa_jit({"explain", "--problem", "bf16,d=128", "--placement", "naive"});
  EXPECT_THAT(result.out, HasSubstr("asked for instead, and legal: naive\n  " + canonical + "\n"));
}

TEST(CacheCommands, DumpedAssemblyGivesTheSameCodeWithStockTools) {
  if (std::string_view(ZYFA_CLANG).empty() || std::string_view(ZYFA_LD_LLD).empty() ||
      std::string_view(ZYFA_OBJCOPY).empty()) {
    ZYFA_SKIP_WITHOUT_TOOL("no clang, lld or llvm-objcopy");
  }
  const Session session;
  Result result = session.zyfa_jit({"dump", "--problem", "bf16,d=128,causal", "--asm", "--save", session / "ours"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  put_file(session / "k.s", result.out);
  result = session.command(ZYFA_CLANG, {"-x", "assembler", "-target", "amdgcn-amd-amdhsa",
                                        "-mcpu=gfx950:sramecc+:xnack-", "-c", session / "k.s", "-o", session / "k.o"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = session.command(ZYFA_LD_LLD, {"-shared", session / "k.o", "-o", session / "stock"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto machine_code = [&](const std::string& file) {
    const Result cut = session.command(
        ZYFA_OBJCOPY, {"-O", "binary", "--only-section=.text", session / file, session / (file + ".text")});
    EXPECT_EQ(cut.exit_code, 0) << cut.err;
    return get_file(session / (file + ".text"));
  };
  EXPECT_GT(machine_code("ours").size(), 4000U);
  EXPECT_TRUE(machine_code("ours") == machine_code("stock"));  // without printing a kernel
}

TEST(CacheCommands, OurKernelsVerify) {
  const Session session;
  for (const char* placement : {"pingpong", "naive"}) {
    for (const char* problem : {"bf16,d=128,causal,lse", "bf16,d=128,full"}) {
      Result result =
          session.zyfa_jit({"dump", "--problem", problem, "--placement", placement, "--save", session / "k"});
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.out, "");
      result = session.zyfa_jit({"verify", session / "k"});
      EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
      EXPECT_THAT(result.out, HasSubstr("nothing wrong was found"));
    }
  }
}

TEST(CacheCommands, EmptyCacheListsNothing) {
  const Session session;
  const Result result = session.zyfa_jit({"list"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "0 kernels\n");
}

TEST(CacheCommands, PrewarmedCacheServesReadOnly) {
  Session session;
  put_file(session / "shapes", R"(["bf16,d=128,full,lse"])");
  ASSERT_EQ(session.zyfa_jit({"prewarm", "--shapes", session / "shapes"}).exit_code, 0);
  put_inputs(session / "in", {16, 1, 128}, {16, 1, 128}, {16, 1, 128});
  session.environment["ZYFA_CACHE"] = "require";
  const Result result = session.zyfa_jit({"run", "--inputs", session / "in", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["source"], "disk");
}

TEST(CacheCommands, PrewarmThatCannotPublishFails) {
  Session session;
  session.environment["ZYFA_CACHE"] = "readonly";
  put_file(session / "shapes", "bf16,d=128,full\n");
  const Result result = session.zyfa_jit({"prewarm", "--shapes", session / "shapes"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("1 kernel could not be written to the cache"));
}

TEST(CacheCommands, VersionNamesLlvmAndGenerator) {
  const Session session;
  const Result result = session.zyfa_jit({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, testing::StartsWith("zyfa 0."));
  EXPECT_THAT(result.out, HasSubstr("\ngenerator "));
  EXPECT_THAT(result.out, HasSubstr("\nllvm 2"));
}

}  // namespace
}  // namespace zyfa::tools
