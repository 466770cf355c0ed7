// Wait states: how they are counted, over loops and branches, and how a finding reads. The table itself is judged in
// tests/correctness/hazards.
#include <gmock/gmock.h>

#include "jit/verify/hazard_rules.h"
#include "tests/correctness/hazards/hazard_table.h"
#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kXdl8 = "v_mfma_f32_32x32x16_bf16 v[0:15], v[40:43], v[44:47], v[16:31]";
constexpr const char* kXdl16 = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[40:47], v[48:55], v[16:31]";
constexpr const char* kOtherC = "v_mfma_f32_16x16x32_bf16 v[80:83], v[84:87], v[92:95], v[2:5]";

TEST(Hazards, EveryRuleOfTheTableIsProvokedByARow) {
  std::string all;
  for (const hazards::HazardRow& row : hazards::hazard_table()) {
    if (row.states == 0) continue;
    const VerifyReport r = verify_body(row.producer + "\n" + nops(row.states - 1) + row.consumer + "\n");
    all += listing_of(r);
  }
  for (const verify::HazardRule& rule : verify::hazard_rules())
    EXPECT_THAT(all, HasSubstr("(" + std::string(rule.name) + ")"));
}

TEST(Hazards, AnyInstructionCountsAsOneState) {
  std::string fill;
  for (int i = 0; i < 19; ++i) fill += i % 2 ? "s_mov_b32 s20, 0\n" : "v_mov_b32 v90, 0\n";
  const std::string head = std::string(kXdl16) + "\n" + fill;
  EXPECT_EQ(of_kind(verify_body(head + "v_mov_b32 v70, v1\n"), FindingKind::kWaitStates).size(), 1u);
  EXPECT_TRUE(verify_body(head + "s_setprio 0\nv_mov_b32 v70, v1\n").findings.empty());
}

TEST(Hazards, FindingNamesInstructionRegisterProducerAndCounts) {
  const VerifyReport r = verify_body(std::string(kXdl16) + "\ns_nop 2\nglobal_store_dwordx2 v[70:71], v[4:5], off\n");
  ASSERT_EQ(r.findings.size(), 1u) << listing_of(r);
  EXPECT_THAT(r.findings[0].instruction, HasSubstr("global_store_dwordx2"));
  EXPECT_THAT(r.findings[0].message, HasSubstr("reads v[4:5] 3 wait states after `v_mfma_f32_32x32x64_f8f6f4"));
  EXPECT_THAT(r.findings[0].message, HasSubstr("20 required"));
}

TEST(Hazards, OnlyTheNearestMatrixWriterCounts) {
  // The 16-pass result is rewritten by an 8-pass MFMA that accumulates on it; only the latter's 10 states are owed, but
  // half a rewrite leaves the other half with the first.
  const std::string first = std::string(kXdl16) + "\n";
  const std::string chained = "v_mfma_f32_32x32x16_bf16 v[0:15], v[40:43], v[44:47], v[0:15]\n";
  const std::string use = std::string(kOtherC) + "\n";
  EXPECT_TRUE(verify_body(first + chained + nops(10) + use).findings.empty());
  EXPECT_EQ(verify_body(first + chained + nops(9) + use).findings.size(), 1u);
  const std::string part = "v_mfma_f32_16x16x32_bf16 v[0:3], v[40:43], v[44:47], v[64:67]\n" + nops(17);
  EXPECT_TRUE(verify_body(first + part + "v_mov_b32 v70, v3\n").findings.empty());
  EXPECT_EQ(verify_body(first + part + "v_mov_b32 v70, v4\n").findings.size(), 1u);
}

TEST(Hazards, FollowsTheBackEdgeOfALoop) {
  // The consumer stands before the producer: only the second trip meets the hazard.
  const auto loop = [](unsigned tail) {
    return "s_mov_b32 s30, 4\nloop:\nv_mov_b32 v70, v1\n" + std::string(kXdl16) + "\n" + nops(tail) +
           "s_sub_u32 s30, s30, 1\ns_cmp_lg_u32 s30, 0\ns_cbranch_scc1 loop\n" + nops(20);
  };
  const VerifyReport bad = verify_body(loop(16));
  ASSERT_EQ(bad.findings.size(), 1u) << listing_of(bad);
  EXPECT_THAT(bad.findings[0].message, HasSubstr("19 wait states after"));
  EXPECT_TRUE(verify_body(loop(17)).findings.empty());
}

TEST(Hazards, FollowsEveryBranch) {
  // The short path jumps over the filler.
  const auto fork = [](unsigned before) {
    return std::string(kXdl8) + "\n" + nops(before) + "s_cbranch_scc0 join\n" + nops(12) + "join:\nv_mov_b32 v70, v1\n";
  };
  const VerifyReport bad = verify_body(fork(10));
  ASSERT_EQ(bad.findings.size(), 1u) << listing_of(bad);
  EXPECT_THAT(bad.findings[0].message, HasSubstr("11 wait states after"));
  EXPECT_TRUE(verify_body(fork(11)).findings.empty());
}

TEST(Hazards, TinyLoopsDoNotStall) {
  // Many one-instruction blocks: the walk must stay bounded.
  std::string body = std::string(kXdl16) + "\n";
  for (int i = 0; i < 60; ++i) body += "l" + std::to_string(i) + ":\ns_cbranch_scc0 l" + std::to_string(i) + "\n";
  const VerifyReport r = verify_body(body + "v_mov_b32 v70, v1\n");
  EXPECT_TRUE(r.findings.empty()) << listing_of(r);
}

// A chain of branches, each to an MFMA of its own; all meet before an instruction that reads none of the results. The
// nearest way into the chain is the one looked at first, so that all others arrive where it has been.
std::string fan(int ways) {
  std::string chain, targets;
  for (int i = 0; i < ways; ++i) {
    const std::string name = "way" + std::to_string(i);
    chain += "s_cbranch_scc0 " + name + "\n";
    targets = name + ":\nv_mfma_f32_16x16x32_bf16 v[0:3], v[20:23], v[24:27], v[4:7]\ns_branch meet\n" + targets;
  }
  return chain + "s_branch meet\n" + targets + "meet:\nv_mov_b32 v70, v90\n";
}

TEST(WaitStates, PathsLeftOutAreNoted) {
  EXPECT_TRUE(verify_body(fan(4)).notes.empty());
  const VerifyReport r = verify_body(fan(400));
  EXPECT_TRUE(r.findings.empty()) << listing_of(r);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_THAT(r.notes[0], HasSubstr("checked in part: instructions with so many paths before them"));
  EXPECT_THAT(r.notes[0], HasSubstr("the first `v_m"));
}

}  // namespace
}  // namespace zyfa::jit::testing
