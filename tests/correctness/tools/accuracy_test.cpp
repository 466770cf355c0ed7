// zyfa-jit accuracy: figures of kernels and of the host model on real activations and on a synthetic sink, and that the
// tables of docs/numerics.md are what it gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/correctness/tools/command.h"
#include "tests/require_tools.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

const json& variant(const json& report, const std::string& name) {
  for (const json& row : report["variants"]) {
    if (row["variant"] == name) {
      return row;
    }
  }
  ADD_FAILURE() << "no variant " << name;
  return report;
}

double rms(const json& report, const std::string& name, const char* source = "model") {
  return variant(report, name)[source]["rms_percent"];
}

double alone(const json& report, const std::string& name, const char* source = "model") {
  return variant(report, name)[source]["p_alone"]["rms_percent"];
}

json run(const Session& session, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"accuracy", "--json"});
  const Result result = session.zyfa_jit(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.json();
}

TEST(Accuracy, ModelOfEveryRuleOnRealActivations) {
  const Session session;
  const json report = run(session, {"--inputs", kSample, "--by", "model"});
  EXPECT_EQ(report["mask"], "causal");
  EXPECT_EQ(report["mask_from"], "file");
  EXPECT_TRUE(report["device"].is_null());
  EXPECT_EQ(report["variants"].size(), 34U);  // bf16, 32 combinations, peer
  int modelled = 0;
  for (const json& row : report["variants"]) {
    EXPECT_TRUE(row["kernel"].is_null());
    modelled += row["model"].is_null() ? 0 : 1;
  }
  EXPECT_EQ(modelled, 21);  // 20 that can be computed, and peer
  const std::string fp8 = ",form=fma,qk=fp8,near=fp8";
  const double exact = rms(report, "p=exact,blocks" + fp8), lean = rms(report, "p=lean,blocks" + fp8);
  EXPECT_GT(exact, 3.0);
  EXPECT_LT(exact, 3.9);
  EXPECT_LE(lean, 1.02 * exact);
  EXPECT_LE(rms(report, "p=lean,blocks,form=folded,qk=fp8,near=fp8"), 1.02 * exact);
  EXPECT_LE(rms(report, "p=lean,blocks,form=fma,qk=int8,near=fp8"), 0.75 * lean);
  EXPECT_LE(rms(report, "p=lean,blocks,form=fma,qk=fp8,near=bf16"), 0.20 * lean);
  EXPECT_GT(rms(report, "p=lean,blocks,form=fma,qk=fp8,near=bf16"), 0.01 * lean);
  // P alone: Lean's rms code error is 3.14%, exact rounding's 2.6%, and keys average.
  EXPECT_LE(alone(report, "p=lean,blocks" + fp8), 0.9);
  EXPECT_GT(alone(report, "p=lean,blocks" + fp8), alone(report, "p=exact,blocks" + fp8));
  EXPECT_GT(alone(report, "p=exact,blocks" + fp8), 0.2);
  EXPECT_GT(alone(report, "peer"), 0.2);
  const json lse = variant(report, "p=lean,blocks" + fp8)["model"]["p_alone"]["lse"];
  EXPECT_LE(std::abs(lse["mean"].get<double>()), 0.005);
  EXPECT_LE(lse["max_abs"], 0.09);
  EXPECT_GT(lse["max_abs"], 0.001);
  // The mean over heads is that of the heads.
  const json row = variant(report, "p=exact,blocks" + fp8)["model"];
  double sum = 0;
  for (const json& head : row["rms_percent_by_head"]) {
    sum += head.get<double>();
  }
  EXPECT_EQ(row["rms_percent_by_head"].size(), 4U);
  EXPECT_NEAR(sum / 4, exact, 1e-9);
}

TEST(Accuracy, RotationHelpsAndSmoothingHasNoLse) {
  const Session session;
  const std::string name = "p=exact,blocks,form=fma,qk=fp8,near=fp8";
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--inputs", kSample, "--by", "model", "--variants", name});
    return run(session, more);
  };
  const json plain = with({}), bare = with({"--with", "no-rotate"}), smooth = with({"--with", "smooth-k"});
  EXPECT_GT(rms(bare, name), 1.02 * rms(plain, name));
  EXPECT_NE(rms(smooth, name), rms(plain, name));
  EXPECT_FALSE(variant(plain, name)["model"]["lse"].is_null());
  EXPECT_TRUE(variant(smooth, name)["model"]["lse"].is_null());
  EXPECT_EQ(plain["variants"].size(), 1U);
}

// Kernels do what their rules say: beside the model's error there is only the rounding of O (and, in mixed precision,
// of the BF16 keys' sums) to BF16, which the BF16 kernel shows.
TEST(Accuracy, KernelsAgreeWithTheModelOfTheirRule) {
  const Session session;
  const json report = run(session, {"--inputs", kSample});
  const double output = rms(report, "bf16", "kernel");
  EXPECT_GT(output, 0.1);
  EXPECT_LT(output, 0.25);
  int compared = 0;
  for (const json& row : report["variants"]) {
    const std::string name = row["variant"];
    if (row["kernel"].is_null() || row["model"].is_null()) {
      EXPECT_TRUE(name == "bf16" || row["no_kernel"].is_string()) << name;
      continue;
    }
    ++compared;
    EXPECT_TRUE(row["no_kernel"].is_null());
    EXPECT_NEAR(row["kernel"]["rms_percent"], std::hypot(row["model"]["rms_percent"].get<double>(), output), 0.02)
        << name;
    const bool folded_with_blocks =
        name.find("form=folded") != std::string::npos && name.find("blocks") != std::string::npos;
    EXPECT_EQ(!row["tiles"].is_null(), folded_with_blocks) << name;
    if (folded_with_blocks) {
      // 8 waves visit, in 4 heads, 2 times 128 keys for the first workgroup and 4 for the second; behind near keys only
      // 128 for the second.
      const int tiles = name.find("near=bf16") != std::string::npos ? 4 * 8 * 1 : 4 * 8 * (2 + 4);
      EXPECT_EQ(row["tiles"]["near"].get<int>() + row["tiles"]["far"].get<int>(), tiles) << name;
    }
    const json& p_alone = row["kernel"]["p_alone"];
    EXPECT_EQ(!p_alone.is_null(), name.find("qk=fp8,near=fp8") != std::string::npos) << name;
    if (!p_alone.is_null()) {
      EXPECT_NEAR(p_alone["rms_percent"], std::hypot(row["model"]["p_alone"]["rms_percent"].get<double>(), output),
                  0.02)
          << name;
      EXPECT_LE(std::abs(p_alone["lse"]["mean"].get<double>()), 0.005) << name;
      EXPECT_LE(p_alone["lse"]["max_abs"], 0.09) << name;
    }
  }
  EXPECT_EQ(compared, 20);
}

// Block exponents keep the tail that one reference loses.
TEST(Accuracy, SyntheticSinkTellsBlockExponentsFromNone) {
  const Session session;
  const json report =
      run(session, {"--synthetic", "sink:18:4096", "--variants", "qk=fp8,near=fp8", "--variants", "peer"});
  EXPECT_EQ(report["shape"]["k"], (std::vector<int>{4097, 1, 128}));
  int compared = 0;
  for (const json& row : report["variants"]) {
    const std::string name = row["variant"];
    for (const char* source : {"kernel", "model"}) {
      if (row[source].is_null()) {
        continue;
      }
      ++compared;
      const double error = row[source]["p_alone"]["rms_percent"];
      if (name.find("blocks") != std::string::npos) {
        EXPECT_LE(error, 2.0) << name;
      } else {
        EXPECT_GE(error, 20.0) << name;
      }
      // The gap survives 8-bit quantisation: without it the whole error would not be P's.
      EXPECT_NEAR(error, row[source]["rms_percent"].get<double>(), 0.3) << name;
    }
  }
  EXPECT_EQ(compared, 13);
  // Far blocks are most of them.
  const json tiles = variant(report, "p=lean,blocks,form=folded,qk=fp8,near=fp8")["tiles"];
  EXPECT_GT(tiles["far"].get<double>(), 10 * tiles["near"].get<double>());
}

TEST(Accuracy, TextNamesWhatIsShown) {
  const Session session;
  const Result result = session.zyfa_jit(
      {"accuracy", "--inputs", kSample, "--by", "model", "--variants", "p=lean,blocks,qk=fp8", "--variants", "peer"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"q [512, 4, 128]", "causal (file), 0.0883883 (file)", "the host model of the rules alone",
                           "by head", "p=lean,blocks,form=folded,qk=fp8,near=bf16 ", "peer ", "no kernel: "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  EXPECT_THAT(result.out, testing::Not(HasSubstr("p=exact")));
}

Result numerics(const Session& session, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {ZYFA_SOURCE_DIR "/tools/numerics", "--zyfa-jit", ZYFA_BUILD_DIR "/bin/zyfa-jit"});
  return session.command("python3", arguments);
}

#define ZYFA_NEED_PYTHON(session)                                                  \
  if ((session).command("/bin/sh", {"-c", "command -v python3"}).exit_code != 0) { \
    ZYFA_SKIP_WITHOUT_TOOL("python3 is not installed");                            \
  }

TEST(NumericsTables, AreWhatTheCodeGives) {
  const Session session;
  ZYFA_NEED_PYTHON(session);
  const Result result = numerics(session, {"--check"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(NumericsTables, AChangedFigureIsFoundAndWrittenAnew) {
  const Session session;
  ZYFA_NEED_PYTHON(session);
  const std::string text = get_file(ZYFA_SOURCE_DIR "/docs/numerics.md");
  const std::size_t at = text.find("+6.46%");
  ASSERT_NE(at, std::string::npos);
  std::string changed = text;
  changed[at + 1] = '7';
  const std::string file = session / "numerics.md";
  put_file(file, changed);
  const std::vector<std::string> codes{"--document", file, "--only", "codes"};
  Result result = numerics(session, {"--check", "--document", file, "--only", "codes"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("table codes of"));
  EXPECT_EQ(get_file(file), changed);
  EXPECT_EQ(numerics(session, codes).exit_code, 0);
  EXPECT_EQ(get_file(file), text);
  put_file(file, "no tables");
  result = numerics(session, codes);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("has 0 tables named codes"));
}

}  // namespace
}  // namespace zyfa::tools
