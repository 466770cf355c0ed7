// Missing s_waitcnt, LDS-DMA and barriers: counters, paths and loops, each fault with its clean twin.
#include <gmock/gmock.h>

#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

using ::testing::HasSubstr;

void expect_clean(const std::string& body) {
  const VerifyReport r = verify_body(body);
  EXPECT_TRUE(r.findings.empty()) << listing_of(r) << body;
}

void expect_one(const std::string& body, FindingKind kind, const std::string& text) {
  const VerifyReport r = verify_body(body);
  ASSERT_EQ(r.findings.size(), 1u) << listing_of(r) << body;
  EXPECT_EQ(r.findings[0].kind, kind) << listing_of(r);
  EXPECT_THAT(r.findings[0].message, HasSubstr(text));
}

void expect_missing(const std::string& body, const std::string& text) {
  expect_one(body, FindingKind::kMissingWait, text);
}

const std::string kLoadA = "buffer_load_dword v0, v70, s[8:11], 0 offen\n";
const std::string kLoadB = "buffer_load_dword v1, v70, s[8:11], 0 offen offset:4\n";
const std::string kUseA = "v_add_f32 v2, v0, v0\n";

TEST(MissingWait, VectorLoadReadBeforeTheWait) {
  expect_missing(kLoadA + kUseA, "reads v0, the result of `buffer_load_dword");
  expect_missing(kLoadA + kUseA, "vmcnt(0) or less required");
  expect_clean(kLoadA + "s_waitcnt vmcnt(0)\n" + kUseA);
}

TEST(MissingWait, CountsYoungerOperations) {
  expect_clean(kLoadA + kLoadB + "s_waitcnt vmcnt(1)\n" + kUseA);
  expect_missing(kLoadA + kLoadB + "s_waitcnt vmcnt(2)\n" + kUseA, "vmcnt(1) or less required");
  expect_missing(kLoadA + kLoadB + "s_waitcnt vmcnt(1)\nv_mov_b32 v2, v1\n", "reads v1");
}

TEST(MissingWait, StoresAndLdsLoadsCountInVmcnt) {
  const std::string store = "global_store_dword v[70:71], v5, off\n";
  expect_clean(kLoadA + store + store + "s_waitcnt vmcnt(2)\n" + kUseA);
  const std::string dma = "buffer_load_dword v70, s[8:11], 0 offen lds\n";
  expect_clean(kLoadA + dma + "s_waitcnt vmcnt(1)\n" + kUseA + "s_waitcnt vmcnt(0)\n");
  expect_missing(kLoadA + "s_waitcnt vmcnt(1)\n" + dma + kUseA + "s_waitcnt vmcnt(0)\n", "vmcnt(1) or less required");
}

TEST(MissingWait, HighBitsOfVmcnt) {
  std::string many;
  for (int i = 0; i < 40; ++i) many += "buffer_load_dword v1, v70, s[8:11], 0 offen\n";
  expect_clean(kLoadA + many + "s_waitcnt vmcnt(40)\n" + kUseA);
  expect_missing(kLoadA + many + "s_waitcnt vmcnt(41)\n" + kUseA, "vmcnt(40) or less required");
}

TEST(MissingWait, MemoryInstructionsNeedTheirAddressAndData) {
  expect_missing(kLoadA + "ds_write_b32 v70, v0\n", "reads v0");
  expect_missing(kLoadA + "ds_read_b32 v5, v0\ns_waitcnt lgkmcnt(0)\n", "reads v0");
  expect_missing("s_load_dwordx4 s[8:11], s[0:1], 0x0\n" + kLoadA + "s_waitcnt vmcnt(0)\n", "reads s[8:11]");
  expect_clean("s_load_dwordx4 s[8:11], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n" + kLoadA);
}

TEST(MissingWait, OverwritingAPendingResult) {
  expect_missing(kLoadA + "v_mov_b32 v0, 0\n", "overwrites v0");
  expect_missing(kLoadA + "ds_read_b32 v0, v70\n", "overwrites v0");
  expect_missing("s_load_dword s20, s[0:1], 0x0\ns_mov_b32 s20, 0\n", "overwrites s20");
  // Two loads of one in-order queue arrive in order.
  expect_clean(kLoadA + kLoadA + "s_waitcnt vmcnt(0)\n" + kUseA);
}

TEST(MissingWait, LdsReadsCountInLgkmcntInOrder) {
  const std::string a = "ds_read_b128 v[0:3], v70\n", b = "ds_read_b128 v[4:7], v70 offset:16\n";
  expect_clean(a + b + "s_waitcnt lgkmcnt(1)\nv_mov_b32 v8, v3\n");
  expect_missing(a + b + "s_waitcnt lgkmcnt(1)\nv_mov_b32 v8, v4\n", "lgkmcnt(0) or less required");
  expect_missing(a + "s_waitcnt vmcnt(0)\nv_mov_b32 v8, v0\n", "reads v0");
  expect_clean(a + "ds_write_b32 v70, v9\ns_waitcnt lgkmcnt(1)\nv_mov_b32 v8, v0\n");
}

TEST(MissingWait, ScalarLoadsReturnOutOfOrder) {
  const std::string a = "s_load_dword s20, s[0:1], 0x0\n", b = "s_load_dword s21, s[0:1], 0x4\n";
  expect_missing(a + b + "s_waitcnt lgkmcnt(1)\ns_mov_b32 s22, s20\n", "lgkmcnt(0) (scalar loads return out of order)");
  expect_clean(a + b + "s_waitcnt lgkmcnt(0)\ns_mov_b32 s22, s20\n");
  // A scalar load in flight does not count as younger than an LDS read.
  expect_missing("ds_read_b32 v0, v70\n" + a + "s_waitcnt lgkmcnt(1)\nv_mov_b32 v8, v0\n", "reads v0");
  expect_clean("ds_read_b32 v0, v70\n" + a + "ds_read_b32 v1, v70\ns_waitcnt lgkmcnt(1)\nv_mov_b32 v8, v0\n");
}

TEST(MissingWait, FlatNeedsBothCounters) {
  const std::string flat = "flat_load_dword v0, v[70:71]\n";
  expect_missing(flat + "s_waitcnt vmcnt(0)\n" + kUseA, "(FLAT)");
  expect_missing(flat + "s_waitcnt lgkmcnt(0)\n" + kUseA, "(FLAT)");
  expect_clean(flat + "s_waitcnt vmcnt(0) lgkmcnt(0)\n" + kUseA);
  expect_clean(flat + "s_waitcnt vmcnt(0)\ns_waitcnt lgkmcnt(0)\n" + kUseA);
}

TEST(MissingWait, AgprResultsAndReturningAtomics) {
  expect_missing("ds_read_b32 a0, v70\nv_accvgpr_read_b32 v2, a0\n", "reads a0");
  expect_missing("global_atomic_add v0, v[70:71], v5, off sc0\n" + kUseA, "reads v0");
  expect_clean("global_atomic_add v0, v[70:71], v5, off sc0\ns_waitcnt vmcnt(0)\n" + kUseA);
}

TEST(MissingWait, OnOnePathOnly) {
  const auto fork = [](const char* second) {
    return kLoadA + "s_cbranch_scc0 other\ns_waitcnt vmcnt(0)\ns_branch join\nother:\n" + second + "join:\n" + kUseA;
  };
  expect_missing(fork("s_nop 0\n"), "on some path");
  expect_clean(fork("s_waitcnt vmcnt(0)\n"));
}

TEST(MissingWait, AroundALoop) {
  // The result of the last trip is read at the top of the next one.
  const auto loop = [](const char* wait) {
    return "s_mov_b32 s30, 4\nloop:\n" + std::string(wait) + kUseA + kLoadA + kLoadB +
           "s_sub_u32 s30, s30, 1\ns_cmp_lg_u32 s30, 0\ns_cbranch_scc1 loop\n";
  };
  expect_missing(loop("s_nop 0\n"), "vmcnt(1) or less required");
  expect_clean(loop("s_waitcnt vmcnt(1)\n"));
}

const std::string kDma = "s_mov_b32 m0, 0x400\ns_nop 0\nbuffer_load_dwordx4 v70, s[8:11], 0 offen lds\n";
const std::string kReadInside = "v_mov_b32 v71, 0x400\nds_read_b128 v[0:3], v71 offset:1008\n";

TEST(Barrier, LdsLoadStillOutstandingAtTheEnd) {
  expect_one(kDma, FindingKind::kBarrier, "the program may end while the direct-to-LDS load");
  expect_clean(kDma + "s_waitcnt vmcnt(0)\n");
}

TEST(Barrier, ReaderNeedsTheWaitAndThenTheBarrier) {
  const std::string wait = "s_waitcnt vmcnt(0)\n", barrier = "s_barrier\n";
  expect_clean(kDma + wait + barrier + kReadInside);
  expect_one(kDma + barrier + kReadInside + wait, FindingKind::kBarrier, "reads LDS bytes [2032, 2048)");
  expect_one(kDma + barrier + wait + kReadInside, FindingKind::kBarrier, "without an s_barrier after the s_waitcnt");
  expect_one(kDma + wait + kReadInside, FindingKind::kBarrier, "without an s_barrier after the s_waitcnt");
}

TEST(Barrier, OneWaveNeedsNoBarrier) {
  const auto one_wave = [](Subject& s) { s.kernel.max_workgroup = 64; };
  EXPECT_TRUE(verify_body(kDma + "s_waitcnt vmcnt(0)\n" + kReadInside, one_wave).findings.empty());
  EXPECT_EQ(of_kind(verify_body(kDma + kReadInside + "s_waitcnt vmcnt(0)\n", one_wave), FindingKind::kBarrier).size(),
            1u);
}

TEST(Barrier, SilentWhereRangesAreApartOrUnknown) {
  const std::string wait = "s_waitcnt vmcnt(0)\n";
  // 64 lanes of 16 bytes from 0x400: up to 0x800.
  expect_clean(kDma + "v_mov_b32 v71, 0x400\nds_read_b128 v[0:3], v71 offset:1024\n" + wait);
  expect_clean(kDma + "v_mov_b32 v71, 0x3f0\nds_read_b128 v[0:3], v71\n" + wait);
  expect_clean(kDma + "v_mov_b32 v71, v72\nds_read_b128 v[0:3], v71\n" + wait);
  expect_clean(
      "s_getreg_b32 s40, hwreg(HW_REG_HW_ID)\ns_mov_b32 m0, s40\ns_nop 0\n"
      "buffer_load_dwordx4 v70, s[8:11], 0 offen lds\n" +
      kReadInside + wait);
}

TEST(Barrier, OnOnePathOnly) {
  const auto fork = [](const char* second) {
    return kDma + "s_cbranch_scc0 other\ns_waitcnt vmcnt(0)\ns_barrier\ns_branch join\nother:\n" + second + "join:\n" +
           kReadInside + "s_waitcnt vmcnt(0)\n";
  };
  expect_one(fork("s_waitcnt vmcnt(1)\ns_barrier\n"), FindingKind::kBarrier, "without waiting for it");
  expect_clean(fork("s_waitcnt vmcnt(0)\ns_barrier\n"));
}

}  // namespace
}  // namespace zyfa::jit::testing
