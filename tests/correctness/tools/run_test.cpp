// zyfa-jit run on real activations and on small tensors: figures, sources, schedules, output file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/io/safetensors.h"
#include "tests/correctness/tools/command.h"
#include "tests/reference/compare.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

template <typename T>
std::vector<T> values(const io::Tensor& tensor) {
  std::vector<T> result(tensor.bytes.size() / sizeof(T));
  std::memcpy(result.data(), tensor.bytes.data(), tensor.bytes.size());
  return result;
}

// Compares the output file of a run with fp64 attention that this test computes itself.
void check_output(const std::filesystem::path& inputs, const std::filesystem::path& output, reference::Mask mask,
                  double scale) {
  const auto in = io::Safetensors::read(inputs), out = io::Safetensors::read(output);
  ASSERT_TRUE(in && out);
  const auto view = [](const io::Tensor& tensor, const std::vector<std::uint16_t>& bits) {
    const auto& s = tensor.shape;
    return s.size() == 4 ? reference::dense_view(bits.data(), s[0], s[1], s[2], s[3])
                         : reference::dense_view(bits.data(), 1, s[0], s[1], s[2]);
  };
  const auto tq = in->find("q"), tk = in->find("k"), tv = in->find("v"), to = out->find("o"), tl = out->find("lse");
  ASSERT_TRUE(tq && tk && tv && to && tl);
  const auto q = values<std::uint16_t>(*tq), k = values<std::uint16_t>(*tk), v = values<std::uint16_t>(*tv),
             o = values<std::uint16_t>(*to);
  const auto expected = reference::attention({view(*tq, q), view(*tk, k), view(*tv, v), mask, scale});
  ASSERT_TRUE(expected);
  const auto figures = reference::compare(*expected, view(*to, o), values<float>(*tl));
  ASSERT_TRUE(figures);
  EXPECT_LT(figures->relative_rms_percent, 0.25);
  EXPECT_LT(figures->lse_max_abs, 1e-3);
  EXPECT_EQ(figures->mismatched_nan, 0);
  EXPECT_EQ(figures->nonzero_empty, 0);
}

TEST(Run, RealActivationsBuiltThenFromDisk) {
  const Session session;
  const Result built =
      session.zyfa_jit({"run", "--inputs", kSample, "--repeat", "2", "--output", session / "out", "--json"});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const auto first = built.json();
  EXPECT_EQ(first["source"], "built");
  EXPECT_EQ(first["problem"], "bf16,d=128,causal,lse");
  EXPECT_EQ(first["mask_from"], "file");
  EXPECT_EQ(first["row"], "pingpong");
  EXPECT_EQ(first["shape"]["q"], (std::vector<int>{512, 4, 128}));
  EXPECT_EQ(first["launches"], 2);
  EXPECT_GT(first["publish_ms"], 0.0);
  EXPECT_EQ(first["launches_that_differ"], 0);
  EXPECT_TRUE(first["within_tolerance"]);
  EXPECT_LT(first["rms_percent"], 0.25);
  EXPECT_GT(first["rms_percent"], 0.01);  // bfloat16 cannot be better: a smaller figure would mean nothing was compared
  EXPECT_LT(first["lse_max_abs"], 1e-3);
  check_output(kSample, session / "out", reference::Mask::kCausal, 0.08838834764831845);

  const Result again = session.zyfa_jit({"run", "--inputs", kSample, "--output", session / "out2", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto second = again.json();
  EXPECT_EQ(second["source"], "disk");
  EXPECT_EQ(second["key"], first["key"]);
  EXPECT_EQ(second["layer"], session.cache().string());
  EXPECT_EQ(second["compile_ms"]["build"], 0.0);
  EXPECT_EQ(second["publish_ms"], 0.0);  // nothing to publish
  EXPECT_EQ(get_file(session / "out"), get_file(session / "out2"));
}

TEST(Run, TextSaysWhatWasRunAndHowItCompares) {
  const Session session;
  put_inputs(session / "in", {40, 2, 128}, {70, 1, 128}, {70, 1, 128}, R"({"mask":"full","softmax_scale":"0.125"})");
  const Result result = session.zyfa_jit({"run", "--inputs", session / "in"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"q [40, 2, 128], k [70, 1, 128]", "bf16,d=128,full,lse (mask: file)", "scale 0.125 (file)",
                           "built now with LLVM", "rms error", "agrees with fp64 attention", "not a GPU's time"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

// Shape, mask, extra options; the file says nothing of mask and scale.
struct Case {
  std::vector<int> q, k;
  std::string mask;
  std::vector<std::string> options;
};

class RunCases : public testing::TestWithParam<Case> {};

TEST_P(RunCases, AgreesWithFp64InStrictMode) {
  const Case& c = GetParam();
  const Session session;
  put_inputs(session / "in", c.q, c.k, c.k);
  std::vector<std::string> arguments{"run",  "--inputs", session / "in", "--mask",
                                     c.mask, "--strict", "--output",     session / "out"};
  arguments.insert(arguments.end(), c.options.begin(), c.options.end());
  const Result result = session.zyfa_jit(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  check_output(session / "in", session / "out", c.mask == "causal" ? reference::Mask::kCausal : reference::Mask::kFull,
               1.0 / std::sqrt(128.0));
}

INSTANTIATE_TEST_SUITE_P(Shapes, RunCases,
                         testing::Values(Case{{65, 3, 128}, {130, 1, 128}, "causal", {}},
                                         Case{{130, 2, 128}, {65, 1, 128}, "causal", {"--threads", "1"}},
                                         Case{{2, 33, 2, 128}, {2, 64, 2, 128}, "full", {"--placement", "naive"}},
                                         Case{{1, 2, 128}, {0, 1, 128}, "full", {}},
                                         Case{{0, 2, 128}, {5, 1, 128}, "causal", {}}));

TEST(Run, ThreadsDoNotChangeTheBits) {
  const Session session;
  for (const char* threads : {"1", "2"}) {
    const Result result = session.zyfa_jit(
        {"run", "--inputs", kSample, "--threads", threads, "--output", session / ("out" + std::string(threads))});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(get_file(session / "out1"), get_file(session / "out2"));
}

TEST(Run, OutsideTheToleranceIsExitCode4) {
  const Session session;
  put_inputs(session / "in", {33, 1, 128}, {33, 1, 128}, {33, 1, 128});
  const Result result = session.zyfa_jit({"run", "--inputs", session / "in", "--max-rms", "0.0001"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.out, HasSubstr("WRONG: outside the limits"));
}

TEST(Run, WithoutLse) {
  const Session session;
  put_inputs(session / "in", {33, 1, 128}, {33, 1, 128}, {33, 1, 128});
  const Result result =
      session.zyfa_jit({"run", "--inputs", session / "in", "--no-lse", "--output", session / "out", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["problem"], "bf16,d=128,full");
  EXPECT_EQ(result.json()["mask_from"], "default");
  EXPECT_TRUE(result.json()["lse_max_abs"].is_null());
  EXPECT_FALSE(io::Safetensors::read(session / "out")->find("lse"));
}

TEST(Run, ScheduleFromAFile) {
  const Session session;
  put_inputs(session / "in", {33, 1, 128}, {33, 1, 128}, {33, 1, 128});
  const Result named = session.zyfa_jit({"run", "--inputs", session / "in", "--schedule", "naive", "--json"});
  ASSERT_EQ(named.exit_code, 0) << named.err;
  put_file(session / "placement", "# the same, from a file\n" + named.json()["schedule"].get<std::string>() + "\n");
  const Result from_file = session.zyfa_jit(
      {"run", "--inputs", session / "in", "--schedule", "@" + (session / "placement").string(), "--json"});
  ASSERT_EQ(from_file.exit_code, 0) << from_file.err;
  EXPECT_EQ(from_file.json()["key"], named.json()["key"]);
  EXPECT_EQ(from_file.json()["source"], "disk");
}

}  // namespace
}  // namespace zyfa::tools
