// Real activations: the kernels, the computation of the harness and the host quantiser of tests/reference, which
// accuracy figures are made with, agree.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "runtime/io/attention_inputs.h"
#include "tests/correctness/quantise/harness.h"
#include "tests/reference/quantise.h"

namespace zyfa::tests {
namespace {

HostTensor tensor_of(const std::vector<std::int64_t>& shape, const std::vector<std::byte>& bytes) {
  HostTensor t{1, shape[0], shape[1], shape[2], std::vector<std::uint16_t>(bytes.size() / 2)};
  std::memcpy(t.bits.data(), bytes.data(), bytes.size());
  return t;
}

reference::Bf16View view_of(const HostTensor& t) {
  return reference::dense_view(t.bits.data(), t.batch, t.tokens, t.heads, t.dim);
}

// Codes may differ, by a step, where a tie of exact arithmetic meets float32: the scale of either side is rounded.
void expect_agreement(const char* name, const Quantised& got, const reference::Codes& expected,
                      std::size_t codes_a_tie) {
  ASSERT_EQ(got.codes.size(), expected.bytes.size()) << name;
  ASSERT_EQ(got.descales.size(), expected.descales.size()) << name;
  for (std::size_t i = 0; i < got.descales.size(); ++i) {
    EXPECT_NEAR(got.descales[i] / expected.descales[i], 1.0, 1e-6) << name << " head " << i;
  }
  std::size_t different = 0;
  for (std::size_t i = 0; i < got.codes.size(); ++i) {
    const int apart = std::abs(static_cast<int>(got.codes[i]) - static_cast<int>(expected.bytes[i]));
    different += apart != 0 ? 1 : 0;
    const bool signs = apart == 128 || apart == 255;  // e4m3: -0 and 0; int8: -1 and 0
    EXPECT_TRUE(apart <= 1 || signs) << name << " code " << i;
  }
  EXPECT_LE(different, got.codes.size() / codes_a_tie) << name;
}

TEST(QuantiseActivations, AgreeWithTheHostQuantiser) {
  const auto file = io::read_attention_inputs(ZYFA_TEST_DATA "/gqa_layer2_512.safetensors");
  ASSERT_TRUE(file) << to_string(file.error());
  Inputs inputs{tensor_of(file->q_shape, file->q), tensor_of(file->k_shape, file->k),
                tensor_of(file->v_shape, file->v)};
  const reference::AttentionCase exact{view_of(inputs.q), view_of(inputs.k), view_of(inputs.v),
                                       reference::Mask::kCausal, static_cast<double>(inputs.softmax_scale)};
  Machine machine = strict_machine();
  struct Variant {
    Fp8Options ours;
    reference::QuantiserOptions host;
  };
  const Variant variants[] = {
      {{}, {.form = reference::ScoreForm::kFolded}},
      {{.form = ScoreForm::kMultiplyAdd}, {}},
      {{.scores = ScoreType::kInt8}, {.scores = reference::CodeType::kInt8}},
      {{.form = ScoreForm::kMultiplyAdd, .rotation = Rotation::kNone}, {.rotation = reference::Rotation::kNone}},
      {{.scores = ScoreType::kInt8, .smoothing = KeySmoothing::kMean},
       {.scores = reference::CodeType::kInt8, .smoothing = reference::Smoothing::kMean}},
      {{.scales = ScaleGranularity::kTensor},
       {.form = reference::ScoreForm::kFolded, .scope = reference::ScaleScope::kTensor}},
  };
  for (const Variant& variant : variants) {
    AttentionProblem problem = fp8_problem();
    problem.fp8 = variant.ours;
    SCOPED_TRACE(to_string(problem));
    const auto outputs = run(machine, problem, inputs);
    ASSERT_TRUE(outputs) << to_string(outputs.error());
    EXPECT_EQ(check(problem, inputs, *outputs), "");
    const reference::QuantisedInputs host = reference::quantise(exact, variant.host);
    expect_agreement("q", outputs->q, host.q, 2000);
    expect_agreement("k", outputs->k, host.k, 2000);
    // Not rotated: values of 8 bits, over a largest value of 8 bits, meet exact ties more often.
    expect_agreement("v", outputs->v, host.v, 100);
  }
}

}  // namespace
}  // namespace zyfa::tests
