// Input files that `run` must refuse: what is wrong, with the value, and what is allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/io/attention_inputs.h"
#include "tests/correctness/tools/command.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

std::string refusal(const Session& session, int code = 1) {
  const Result result = session.zyfa_jit({"run", "--inputs", session / "in"});
  EXPECT_EQ(result.exit_code, code) << result.out;
  EXPECT_THAT(result.err, testing::StartsWith("zyfa-jit: error: "));
  EXPECT_EQ(result.out, "");
  return result.err;
}

TEST(RunInputs, ShapesThatDoNotFit) {
  const Session session;
  put_inputs(session / "in", {8, 3, 128}, {8, 2, 128}, {8, 2, 128});
  EXPECT_THAT(refusal(session), HasSubstr("query heads 3 must be a multiple of key heads 2"));
  put_inputs(session / "in", {8, 2, 128}, {8, 2, 128}, {9, 2, 128});
  EXPECT_THAT(refusal(session), HasSubstr("k [8, 2, 128], v [9, 2, 128]: k and v must have the same tokens and heads"));
  put_inputs(session / "in", {8, 2, 128}, {8, 2, 64}, {8, 2, 128});
  EXPECT_THAT(refusal(session), HasSubstr("q and k must have the same head dim"));
  put_inputs(session / "in", {8, 128}, {8, 128}, {8, 128});
  EXPECT_THAT(refusal(session), HasSubstr("all must be [tokens, heads, dim] or all [batch, tokens, heads, dim]"));
  put_inputs(session / "in", {1, 8, 2, 128}, {2, 8, 2, 128}, {2, 8, 2, 128});
  EXPECT_THAT(refusal(session), HasSubstr("the batches differ"));
  put_inputs(session / "in", {8, 2, 128}, {8, 0, 128}, {8, 0, 128});
  EXPECT_THAT(refusal(session), HasSubstr("both at least 1"));
  put_inputs(session / "in", {8, 2, 0}, {8, 2, 0}, {8, 2, 0});
  EXPECT_THAT(refusal(session), HasSubstr("head dims must be at least 1"));
}

TEST(RunInputs, HeadDimWithoutAKernel) {
  const Session session;
  put_inputs(session / "in", {8, 2, 96}, {8, 2, 96}, {8, 2, 96});
  EXPECT_THAT(refusal(session, 2), HasSubstr("head_dim_qk 96 is not supported; supported: 128"));
}

TEST(RunInputs, MissingTensor) {
  const Session session;
  put_file(session / "in", io::testing_support::safetensors_text(
                               R"({"q":{"dtype":"BF16","shape":[1,1,1],"data_offsets":[0,2]}})", "ab"));
  EXPECT_THAT(refusal(session), HasSubstr("no tensor 'k'; the file has 'q'"));
}

TEST(RunInputs, Dtypes) {
  const Session session;
  const auto with = [&](const std::string& q, const std::string& k) {
    put_file(session / "in",
             io::testing_support::safetensors_text(R"({"q":{"dtype":")" + q +
                                                       R"(","shape":[1,1,2],"data_offsets":[0,4]},"k":{"dtype":")" + k +
                                                       R"(","shape":[1,1,2],"data_offsets":[4,8]}})",
                                                   "abcdefgh"));
  };
  with("I16", "I16");
  EXPECT_THAT(refusal(session, 2), HasSubstr("tensor 'q' has dtype I16; attention takes BF16, F16 or F8_E4M3"));
  with("BF16", "F16");
  EXPECT_THAT(refusal(session), HasSubstr("tensor 'k' has dtype F16, but q has BF16"));
}

// q, k and v of one token, one head and two elements, and a descale.
TEST(RunInputs, Descales) {
  const Session session;
  const auto with = [&](const char* type, const std::string& descale, std::size_t bytes) {
    const std::size_t width = std::string(type) == "BF16" ? 4 : 2;
    std::string header = "{", data(3 * width + bytes, '\x30');
    for (std::size_t i = 0; i < 3; ++i) {
      header += std::string("\"") + "qkv"[i] + R"(":{"dtype":")" + type + R"(","shape":[1,1,2],"data_offsets":[)" +
                std::to_string(i * width) + "," + std::to_string((i + 1) * width) + "]},";
    }
    header += R"("k_descale":{)" + descale + R"(,"data_offsets":[)" + std::to_string(3 * width) + "," +
              std::to_string(3 * width + bytes) + "]}}";
    put_file(session / "in", io::testing_support::safetensors_text(header, data));
  };
  with("BF16", R"("dtype":"F32","shape":[1])", 4);
  EXPECT_THAT(refusal(session), HasSubstr("tensor 'k_descale' is for inputs of dtype F8_E4M3"));
  with("F8_E4M3", R"("dtype":"F16","shape":[1])", 2);
  EXPECT_THAT(refusal(session), HasSubstr("tensor 'k_descale' has dtype F16; must be F32"));
  with("F8_E4M3", R"("dtype":"F32","shape":[2])", 8);
  EXPECT_THAT(refusal(session), HasSubstr("tensor 'k_descale' is [2]; must be [1] or [batch, key heads], here [1, 1] "
                                          "or [1]"));
  with("F8_E4M3", R"("dtype":"F32","shape":[])", 4);
  EXPECT_THAT(refusal(session), HasSubstr("tensor 'k_descale' is []; must be [1]"));
  with("F8_E4M3", R"("dtype":"F32","shape":[1,1])", 4);
  EXPECT_THAT(refusal(session, 2), HasSubstr("head_dim_qk 2 is not supported; supported: 128, 192"));
}

TEST(RunInputs, Metadata) {
  const Session session;
  put_inputs(session / "in", {8, 2, 128}, {8, 2, 128}, {8, 2, 128}, R"({"mask":"window"})");
  EXPECT_THAT(refusal(session), HasSubstr("metadata mask is 'window'; must be causal or full"));
  for (const char* scale : {"fast", "0.5x", "", "nan", "inf"}) {
    put_inputs(session / "in", {8, 2, 128}, {8, 2, 128}, {8, 2, 128},
               std::string(R"({"softmax_scale":")") + scale + "\"}");
    EXPECT_THAT(refusal(session), HasSubstr("metadata softmax_scale is '" + std::string(scale) + "'"));
  }
}

TEST(RunInputs, TruncatedSample) {
  const Session session;
  const std::string whole = get_file(kSample);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{100}, whole.size() - 1}) {
    put_file(session / "in", whole.substr(0, length));
    EXPECT_THAT(refusal(session), HasSubstr((session / "in").string() + ": "));
  }
}

TEST(RunInputs, OutputThatCannotBeWritten) {
  const Session session;
  put_inputs(session / "in", {8, 2, 128}, {8, 2, 128}, {8, 2, 128});
  const Result result =
      session.zyfa_jit({"run", "--inputs", session / "in", "--output", session / "no" / "such" / "folder"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no such folder: "));
}

}  // namespace
}  // namespace zyfa::tools
