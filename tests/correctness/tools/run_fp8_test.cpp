// zyfa-jit run in FP8: on 8-bit inputs with descales, and on BF16 inputs that our kernels quantise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "runtime/io/attention_inputs.h"
#include "runtime/io/safetensors.h"
#include "tests/correctness/tools/command.h"
#include "tests/reference/compare.h"

namespace zyfa::tools {
namespace {

using namespace testing_support;
using testing::HasSubstr;

// OCP e4m3fn by its definition: bias 7, three bits of mantissa.
double e4m3(unsigned code) {
  const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
  const double size =
      exponent == 0 ? std::ldexp(mantissa / 8.0, -6) : std::ldexp(1.0 + mantissa / 8.0, static_cast<int>(exponent) - 7);
  return (code & 0x80) != 0 ? -size : size;
}

struct EightBitInputs {
  std::vector<std::int64_t> q, k, v;  // shapes
  std::vector<float> q_descale, k_descale, v_descale;
  std::vector<std::int64_t> descale_shape;
};

// Values of 0.25 to 3.75 in size, either sign.
std::vector<std::byte> random_codes(const std::vector<std::int64_t>& shape, unsigned& state) {
  std::size_t elements = 1;
  for (const std::int64_t extent : shape) {
    elements *= static_cast<std::size_t>(extent);
  }
  std::vector<std::byte> codes(elements);
  for (std::byte& code : codes) {
    state = state * 1664525U + 1013904223U;
    code = static_cast<std::byte>((0x28 + (state >> 24 & 31)) | (state >> 16 & 0x80));
  }
  return codes;
}

void put_fp8_inputs(const std::filesystem::path& path, const EightBitInputs& in) {
  unsigned state = 4711;
  const auto q = random_codes(in.q, state), k = random_codes(in.k, state), v = random_codes(in.v, state);
  std::map<std::string, io::Tensor> tensors{{"q", {io::ElementType::kF8E4M3, in.q, q}},
                                            {"k", {io::ElementType::kF8E4M3, in.k, k}},
                                            {"v", {io::ElementType::kF8E4M3, in.v, v}}};
  for (const auto& [name, values] :
       {std::pair("q_descale", &in.q_descale), {"k_descale", &in.k_descale}, {"v_descale", &in.v_descale}}) {
    if (!values->empty()) {
      tensors[name] = {io::ElementType::kF32, in.descale_shape, std::as_bytes(std::span(*values))};
    }
  }
  ASSERT_TRUE(io::write_safetensors(path, tensors, {}));
}

// O and LSE of an output file against fp64 attention that this test computes, from codes and descales.
reference::ErrorFigures figures_of(const std::filesystem::path& inputs, const std::filesystem::path& output,
                                   const EightBitInputs& in, double scale) {
  const auto file = io::Safetensors::read(inputs), out = io::Safetensors::read(output);
  EXPECT_TRUE(file && out);
  const std::int64_t key_heads = in.k[1];
  const auto values = [&](const char* name, const std::vector<float>& descale, const std::vector<std::int64_t>& shape) {
    const io::Tensor tensor = file->find(name).value();
    std::vector<double> result;
    for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
      const auto head = static_cast<std::int64_t>(i) / shape[2] % shape[1];
      const auto at = static_cast<std::size_t>(head / (shape[1] / key_heads));
      const double factor = descale.empty() ? 1.0 : descale.size() == 1 ? descale[0] : descale[at];
      result.push_back(factor * e4m3(std::to_integer<unsigned>(tensor.bytes[i])));
    }
    return result;
  };
  const auto q = values("q", in.q_descale, in.q), k = values("k", in.k_descale, in.k),
             v = values("v", in.v_descale, in.v);
  const auto view = [](const std::vector<double>& data, const std::vector<std::int64_t>& shape) {
    return reference::dense_double_view(data.data(), 1, shape[0], shape[1], shape[2]);
  };
  const auto expected = reference::attention(
      reference::DoubleCase{view(q, in.q), view(k, in.k), view(v, in.v), reference::Mask::kFull, scale});
  EXPECT_TRUE(expected);
  const io::Tensor to = out->find("o").value(), tl = out->find("lse").value();
  EXPECT_EQ(to.type, io::ElementType::kBf16);
  std::vector<std::uint16_t> o(to.bytes.size() / 2);
  std::memcpy(o.data(), to.bytes.data(), to.bytes.size());
  std::vector<float> lse(tl.bytes.size() / 4);
  std::memcpy(lse.data(), tl.bytes.data(), tl.bytes.size());
  const auto figures =
      reference::compare(*expected, reference::dense_view(o.data(), 1, in.q[0], in.q[1], in.v[2]), lse);
  EXPECT_TRUE(figures);
  return *figures;
}

struct Case {
  EightBitInputs inputs;
  std::vector<std::string> options;
};

class RunFp8Inputs : public testing::TestWithParam<Case> {};

TEST_P(RunFp8Inputs, AgreesWithFp64OnTheDequantisedInputs) {
  const Case& c = GetParam();
  const Session session;
  put_fp8_inputs(session / "in", c.inputs);
  std::vector<std::string> arguments{"run",      "--inputs",      session / "in", "--strict",
                                     "--output", session / "out", "--json"};
  arguments.insert(arguments.end(), c.options.begin(), c.options.end());
  const Result result = session.zyfa_jit(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.json()["problem"].get<std::string>(), testing::StartsWith("fp8e4m3,d="));
  EXPECT_EQ(result.json()["helpers"].size(), 0u);
  EXPECT_EQ(result.json()["workspace_bytes"], 0);
  const auto figures = figures_of(session / "in", session / "out", c.inputs,
                                  static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.inputs.q[2]))));
  EXPECT_LT(figures.relative_rms_percent, 4.0);
  EXPECT_GT(figures.relative_rms_percent, 0.1);  // P has eight bits: a smaller figure would mean nothing was compared
  EXPECT_NEAR(figures.relative_rms_percent, result.json()["rms_percent"].get<double>(), 1e-6);
  EXPECT_LT(figures.lse_max_abs, 0.1);
  EXPECT_EQ(figures.mismatched_nan, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RunFp8Inputs,
    testing::Values(
        Case{{{70, 2, 128}, {200, 1, 128}, {200, 1, 128}, {}, {}, {}, {}}, {}},
        Case{{{33, 4, 128}, {130, 2, 128}, {130, 2, 128}, {0.25F}, {0.5F}, {3.0F}, {1}}, {"--p", "exact"}},
        Case{{{40, 4, 128}, {300, 2, 128}, {300, 2, 128}, {0.25F, 0.125F}, {0.5F, 2.0F}, {-1.5F, 0.75F}, {1, 2}},
             {"--unscaled"}},
        Case{{{40, 2, 192}, {100, 2, 192}, {100, 2, 128}, {}, {0.25F, 0.5F}, {}, {2}}, {"--form", "fma"}}));

// 8 log2(e) / sqrt(128) = 1.02014 is no power of two; with this descale it is 1.
TEST(RunFp8, FoldedFormRefusesDescalesThatDoNotFit) {
  const Session session;
  EightBitInputs inputs{{40, 2, 128}, {70, 1, 128}, {70, 1, 128}, {}, {}, {}, {}};
  put_fp8_inputs(session / "in", inputs);
  const std::vector<std::string> command{"run", "--inputs", session / "in", "--form", "folded"};
  const Result refused = session.zyfa_jit(command);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("form=folded needs 8 log2(e) * softmax_scale * q_descale * k_descale to be a "
                                     "power of two; for batch 0 key head 0 it is 1.02013"));
  inputs.q_descale = {static_cast<float>(std::sqrt(128.0) / (8 * std::numbers::log2e))};
  inputs.descale_shape = {1};
  put_fp8_inputs(session / "in", inputs);
  const Result taken = session.zyfa_jit(command);
  EXPECT_EQ(taken.exit_code, 0) << taken.err << taken.out;
}

TEST(RunFp8, QuantisesRealActivations) {
  const Session session;
  const Result result = session.zyfa_jit(
      {"run", "--inputs", kSample, "--compute", "fp8", "--repeat", "2", "--output", session / "out", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const auto json = result.json();
  EXPECT_EQ(json["problem"], "bf16,d=128,causal,lse,compute=fp8");
  EXPECT_EQ(json["launches_that_differ"], 0);
  EXPECT_LT(json["rms_percent"], 6.0);
  EXPECT_GT(json["rms_percent"], 1.0);  // eight-bit inputs cannot do better
  EXPECT_LT(json["lse_max_abs"], 1.0);
  EXPECT_GT(json["workspace_bytes"], 512 * (4 + 1 + 1) * 128);
  EXPECT_GE(json["helpers"].size(), 3u);
  for (const auto& helper : json["helpers"]) {
    EXPECT_EQ(helper["source"], "built");
  }
  // Two workgroups of 256 queries in each of 4 heads: their 8 waves visit the 2 and 4 times 128 keys that any of
  // them sees.
  const auto tiles = json["tile_paths"]["near"].get<int>() + json["tile_paths"]["far"].get<int>();
  EXPECT_EQ(tiles, 4 * 8 * (2 + 4));
  EXPECT_GT(json["tile_paths"]["near"], 0);
}

// One process builds; another finds every kernel on disk, in the mode that builds nothing.
TEST(RunFp8, PrewarmMakesAllKernels) {
  Session session;
  put_file(session / "shapes", "bf16,d=128,causal,lse,compute=fp8\n");
  const Result prewarm = session.zyfa_jit({"prewarm", "--shapes", session / "shapes", "--json"});
  ASSERT_EQ(prewarm.exit_code, 0) << prewarm.err;
  const auto helper_keys = prewarm.json()["problems"][0]["helper_keys"];
  EXPECT_GE(helper_keys.size(), 3u);
  const Result list = session.zyfa_jit({"list", "--json"});
  EXPECT_EQ(list.json()["kernels"].size(), helper_keys.size() + 1);
  EXPECT_THAT(list.out, HasSubstr("quantise k fp8e4m3,d=128,rotate"));
  session.environment["ZYFA_CACHE"] = "require";
  const Result run = session.zyfa_jit({"run", "--inputs", kSample, "--compute", "fp8", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const auto& helper : run.json()["helpers"]) {
    EXPECT_EQ(helper["source"], "disk");
  }
  const Result other = session.zyfa_jit({"run", "--inputs", kSample, "--compute", "fp8", "--no-rotate"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("all kernels of the problem: zyfa-jit prewarm --shapes FILE, with the line "
                                   "\"bf16,d=128,causal,lse,compute=fp8,no-rotate\" in FILE"));
}

TEST(RunFp8, ExplainAndDumpTellOfTheQuantiser) {
  const Session session;
  const std::string problem = "bf16,d=128,causal,compute=fp8";
  const Result text = session.zyfa_jit({"explain", "--problem", problem});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("kernels that run before it:\n  "));
  EXPECT_THAT(text.out, HasSubstr("quantise q fp8e4m3,d=128,rotate,form=folded"));
  const auto helpers = session.zyfa_jit({"explain", "--problem", problem, "--json"}).json()["helpers"];
  ASSERT_GE(helpers.size(), 3u);
  EXPECT_EQ(helpers[0]["cached"], false);
  const Result dump = session.zyfa_jit({"dump", "--problem", problem, "--helper", "quantise q", "--json"});
  ASSERT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_EQ(dump.json()["problem"], "quantise q fp8e4m3,d=128,rotate,form=folded");
  EXPECT_THAT(dump.out, HasSubstr("s_endpgm"));
}

}  // namespace
}  // namespace zyfa::tools
