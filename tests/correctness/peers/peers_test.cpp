// Vendor attention kernels on the simulator against fp64: machine code that nobody here wrote, on Gaussian inputs of
// plain, ragged, grouped and batched shapes and on activations of trained models.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/correctness/peers/peer.h"

namespace zyfa::peers {
namespace {

// Runs and compares; the figures go to the test's record, which tools/peers prints.
void check(const Peer& kernel, const Inputs& inputs, const Launch& launch, double rms_percent) {
  const Outcome outcome = simulate(kernel, inputs, expected(kernel, inputs), launch);
  ASSERT_TRUE(outcome.ran()) << "exit " << outcome.run.exit_code << "\n" << outcome.run.err << outcome.run.out;
  const Array &q = inputs.q, &k = inputs.k;
  testing::Test::RecordProperty("kernel", kernel.name);
  testing::Test::RecordProperty(
      "shape", std::to_string(q.batch) + "x" + std::to_string(q.tokens) + "x" + std::to_string(k.tokens));
  testing::Test::RecordProperty("heads", std::to_string(q.heads) + "/" + std::to_string(k.heads));
  std::string flags;
  for (const std::string& flag : launch.flags) {
    flags += (flags.empty() ? "" : " ") + flag;
  }
  testing::Test::RecordProperty("flags", flags);
  testing::Test::RecordProperty("rms_percent", std::to_string(outcome.rms_percent));
  testing::Test::RecordProperty("lse_error", launch.lse == Lse::kOn ? std::to_string(1e6 * outcome.lse_error) : "");
  testing::Test::RecordProperty("seconds", std::to_string(outcome.seconds));
  EXPECT_EQ(outcome.wrong_nan, 0);
  EXPECT_LT(outcome.rms_percent, rms_percent);
  if (launch.lse == Lse::kOn) {
    EXPECT_LT(outcome.lse_error, kernel.lse_error);
  }
}

struct Case {
  std::string peer;
  Shape shape;
  Lse lse = Lse::kOff;
};

std::string shape_name(const Shape& s) {
  return std::to_string(s.queries) + "x" + std::to_string(s.keys) + "_heads" + std::to_string(s.heads) + "of" +
         std::to_string(s.key_heads) + (s.batch == 1 ? "" : "_batch" + std::to_string(s.batch));
}

std::string text_of(const Case& c) { return c.peer + "_" + shape_name(c.shape) + (c.lse == Lse::kOn ? "_lse" : ""); }
void PrintTo(const Case& c, std::ostream* os) { *os << text_of(c); }

// The nearest key length that the kernel takes.
std::int64_t allowed_keys(const Peer& kernel, std::int64_t keys) {
  return std::max(keys / kernel.key_multiple * kernel.key_multiple, std::max(kernel.least_keys, kernel.key_multiple));
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const std::string& name : peer_names()) {
    const Peer& kernel = peer(name);
    const Lse lse = kernel.writes_lse ? Lse::kOn : Lse::kOff;
    const auto add = [&](Shape shape, Lse with) {
      shape.keys = allowed_keys(kernel, shape.keys);
      list.push_back({name, shape, with});
    };
    for (const auto& [queries, keys] : {std::pair(512, 512), {300, 411}, {400, 200}, {257, 129}, {1, 1}, {1, 700}}) {
      add({1, queries, keys, 1, 1}, lse);
    }
    add({2, 300, 411, 2, 2}, lse);
    if (kernel.writes_lse) {
      add({1, 512, 512, 1, 1}, Lse::kOff);
    }
    if (kernel.grouped) {
      add({1, 300, 411, 2, 1}, lse);
      add({2, 300, 411, 16, 2}, Lse::kOff);
    }
  }
  return list;
}

class PeerGaussian : public testing::TestWithParam<Case> {};

TEST_P(PeerGaussian, AgreesWithFp64) {
  const Peer& kernel = peer(GetParam().peer);
  check(kernel, gaussian(GetParam().shape, kernel.dim_qk, kernel.dim_v, kernel.formats, 1), {.lse = GetParam().lse},
        kernel.rms_percent);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PeerGaussian, testing::ValuesIn(cases()),
                         [](const auto& info) { return text_of(info.param); });

// Nothing lies behind K and V: a load outside of them is a memory fault.
class PeerSoffset : public testing::TestWithParam<const char*> {};

TEST_P(PeerSoffset, StaysInsideWhenTheSgprOffsetIsChecked) {
  const Peer& kernel = peer(GetParam());
  check(kernel, gaussian({1, 300, 411, 2, 1}, kernel.dim_qk, kernel.dim_v, kernel.formats, 2),
        {.lse = Lse::kOn, .flags = {"--rule", "soffset=checked"}, .behind = Behind::kNothing}, kernel.rms_percent);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PeerSoffset,
                         testing::Values("v3_bf16", "v3_bf16_causal", "v3_bf16_192", "v3_bf16_192_causal"),
                         [](const auto& info) { return info.param; });

struct RealCase {
  std::string peer;
  std::filesystem::path file;
  std::int64_t queries = 0, keys = 0;
};

std::string text_of(const RealCase& c) {
  return c.peer + "_" + c.file.stem().string() + "_" + std::to_string(c.queries) + "x" + std::to_string(c.keys);
}
void PrintTo(const RealCase& c, std::ostream* os) { *os << text_of(c); }

// The sample of this repository, and the folder of longer ones when there is one.
std::vector<RealCase> real_cases() {
  std::vector<RealCase> list;
  const auto add = [&](const std::filesystem::path& file, std::int64_t queries, std::int64_t keys) {
    const std::int64_t dim = file.stem().string().starts_with("mla") ? 192 : 128;
    for (const std::string& name : peer_names()) {
      if (peer(name).dim_qk == dim) {
        list.push_back({name, file, queries, allowed_keys(peer(name), keys)});
      }
    }
  };
  add(ZYFA_TEST_DATA "/gqa_layer2_512.safetensors", 512, 512);
  if (const std::filesystem::path folder = ZYFA_PEER_ACTIVATIONS; !folder.empty()) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".safetensors") {
        files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      add(file, 4096, 4096);
      add(file, 333, 1999);
    }
  }
  return list;
}

class PeerActivations : public testing::TestWithParam<RealCase> {};

TEST_P(PeerActivations, AgreesWithFp64) {
  const Peer& kernel = peer(GetParam().peer);
  const Expected<Inputs> inputs = activations(GetParam().file, GetParam().queries, GetParam().keys, kernel.formats,
                                              kernel.grouped ? KeyHeads::kShared : KeyHeads::kOneEach);
  ASSERT_TRUE(inputs) << inputs.error().message;
  const bool long_rows = GetParam().queries == 4096 && kernel.trained_percent != 0;
  check(kernel, *inputs, {.lse = kernel.writes_lse ? Lse::kOn : Lse::kOff},
        long_rows ? kernel.trained_percent : kernel.rms_percent);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PeerActivations, testing::ValuesIn(real_cases()),
                         [](const auto& info) { return text_of(info.param); });

}  // namespace
}  // namespace zyfa::peers
