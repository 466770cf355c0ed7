// The vendor kernels under other schedules than the friendliest: what they get right because of the pace of waves and
// loads alone comes out wrong here, and what they order themselves stays right (docs/simulator-peers.md).
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/correctness/peers/peer.h"

namespace zyfa::peers {
namespace {

struct Policy {
  const char* peer;
  const char* landing;
  const char* interleave;
  bool right;
};
void PrintTo(const Policy& p, std::ostream* os) { *os << p.peer << " " << p.landing << " " << p.interleave; }

class PeerPolicies : public testing::TestWithParam<Policy> {};

TEST_P(PeerPolicies, AreRightOrWrongAsRecorded) {
  const Policy& p = GetParam();
  const Peer& kernel = peer(p.peer);
  const Inputs inputs = gaussian({1, 700, 1152, 1, 1}, kernel.dim_qk, kernel.dim_v, kernel.formats, 3);
  const Outcome outcome = simulate(kernel, inputs, expected(kernel, inputs),
                                   {.flags = {"--landing", p.landing, "--interleave", p.interleave}});
  ASSERT_TRUE(outcome.ran()) << outcome.run.err;
  RecordProperty("kernel", p.peer);
  RecordProperty("shape", "1x700x1152");
  RecordProperty("heads", "1/1");
  RecordProperty("flags", std::string(p.landing) + " " + p.interleave);
  RecordProperty("rms_percent", std::to_string(outcome.rms_percent));
  RecordProperty("seconds", std::to_string(outcome.seconds));
  EXPECT_EQ(outcome.wrong_nan == 0 && outcome.rms_percent < kernel.rms_percent, p.right) << outcome.rms_percent;
}

std::string name_of(const testing::TestParamInfo<Policy>& info) {
  std::string name = std::string(info.param.peer) + "_" + info.param.landing + "_" + info.param.interleave;
  for (char& c : name) {
    c = c == '-' || c == ':' ? '_' : c;
  }
  return name;
}

// Latest landing shows LDS reads that are used before their wave waited for them; a wave that runs on alone to its next
// barrier, with loads that arrive at once, shows LDS bytes that only the pace of the waves keeps apart.
constexpr Policy kPolicies[] = {
    {"v3_bf16_causal", "late", "round-robin", true},
    {"v3_bf16_causal", "late", "to-barrier", false},
    {"v3_fp8", "late", "to-barrier", true},
    {"v3_fp8_causal", "late", "to-barrier", true},
    {"v4_fp8", "late", "to-barrier", true},
    {"v3_bf16_causal", "latest", "round-robin", true},
    {"v3_bf16_causal", "early", "to-barrier", false},
    {"v3_bf16_causal", "latest", "to-barrier", false},
    {"v3_fp8", "late", "round-robin", true},
    {"v3_fp8", "latest", "round-robin", false},
    {"v3_fp8", "early", "to-barrier", false},
    {"v3_fp8_causal", "late", "round-robin", true},
    {"v3_fp8_causal", "latest", "round-robin", false},
    {"v3_fp8_causal", "early", "to-barrier", false},
    {"v4_fp8", "late", "round-robin", true},
    {"v4_fp8", "latest", "round-robin", true},
    {"v4_fp8", "early", "to-barrier", false},
    {"v4_fp8", "latest", "to-barrier", true},
    {"v3_bf16", "late", "round-robin", true},
    {"v3_bf16", "latest", "round-robin", true},
    {"v3_bf16", "early", "to-barrier", true},
    {"v3_bf16", "latest", "to-barrier", true},
    {"v3_bf16", "random:1", "random:2", true},
    {"v3_bf16_192", "late", "round-robin", true},
    {"v3_bf16_192", "latest", "to-barrier", true},
    {"v3_bf16_192", "early", "to-barrier", false},
    {"v3_bf16_192_causal", "late", "round-robin", true},
    {"v3_bf16_192_causal", "late", "to-barrier", false},
    {"v3_bf16_192_causal", "latest", "to-barrier", false},
    {"v3_bf16_192_causal", "early", "to-barrier", false},
    {"v3_fp8_256", "late", "round-robin", true},
    {"v3_fp8_256", "latest", "round-robin", false},
    {"v3_fp8_256", "early", "to-barrier", false},
    {"v3_fp8_256_causal", "late", "round-robin", true},
    {"v3_fp8_256_causal", "latest", "round-robin", false},
    {"v3_fp8_256_causal", "early", "to-barrier", false},
    {"v4_i8fp8", "latest", "round-robin", true},
    {"v4_i8fp8", "latest", "to-barrier", true},
    {"v4_i8fp8", "early", "to-barrier", false},
    {"v4_mxfp8", "latest", "round-robin", true},
    {"v4_mxfp8", "latest", "to-barrier", true},
    {"v4_mxfp8", "early", "to-barrier", false},
    {"v4_f8f6", "latest", "round-robin", true},
    {"v4_f8f6", "latest", "to-barrier", true},
    {"v4_f8f6", "early", "to-barrier", false},
    {"v4_mxfp4", "latest", "round-robin", true},
    {"v4_mxfp4", "latest", "to-barrier", true},
    {"v4_mxfp4", "early", "to-barrier", false},
    {"v4_mxfp6", "late", "round-robin", true},
    {"v4_mxfp6", "latest", "round-robin", false},
    {"v4_mxfp6", "early", "to-barrier", false},
    {"v4_f6f4", "late", "round-robin", true},
    {"v4_f6f4", "latest", "round-robin", false},
    {"v4_f6f4", "early", "to-barrier", false},
    {"v4_f4f4", "early", "to-barrier", true},
    {"v4_f4f4", "latest", "round-robin", true},
    {"v4_f4f4", "latest", "to-barrier", false},
};
INSTANTIATE_TEST_SUITE_P(Kernels, PeerPolicies, testing::ValuesIn(kPolicies), name_of);

}  // namespace
}  // namespace zyfa::peers
