// Memory counters that fill up: vmcnt holds 63, lgkmcnt 15 (gfx950-isa.md 3.5). An instruction that would count further
// waits for the oldest to complete, so programs without any s_waitcnt still have a bounded number in flight.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using testing::Each;

// s[4:5] input of lane numbers plus 7, s[6:7] output, v1 = 4 * lane.
constexpr char kStart[] =
    "s_load_dwordx4 s[4:7], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, 0\n"
    "v_mov_b32 v3, 0\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v4, s4\nv_mov_b32 v5, s5\n";

std::string loop(const std::string& body, unsigned times) {
  return fmt::format("s_mov_b32 s8, {}\nloop:\n{}\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n",
                     times, body);
}
std::string repeat(const std::string& line, unsigned times) {
  return fmt::format(".rept {}\n{}\n.endr\n", times, line);
}

class Counters : public testing::TestWithParam<SimChecks> {
 protected:
  Status run(const std::string& code) {
    std::vector<u32> values(64);
    for (u32 l = 0; l < 64; ++l) values[l] = l + 7;
    const auto device = make_device(GetParam());
    const Buffer<u32> in(*device, values), out(*device, std::vector<u32>(64, 0));
    const Status status =
        sim_test::run(*device, assemble_kernel(kStart + code, {.lds = 32768}), "k", {}, Args().add(in).add(out));
    result_ = out.read();
    for (u32 l = 0; l < 64; ++l) result_[l] -= l;
    return status;
  }
  std::vector<u32> result_;  // output of each lane less its number
};

constexpr char kAddOneAndStore[] =
    "global_load_dword v40, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_add_u32 v41, 1, v40\nglobal_store_dword v1, v41, s[6:7]";

TEST_P(Counters, AnyNumberOfStoresWithoutAWait) {
  for (const unsigned times : {64u, 65'534u, 65'535u, 65'536u, 70'000u}) {
    const Status status = run(loop("global_store_dword v1, v2, s[6:7]", times) + kAddOneAndStore);
    ASSERT_TRUE(status.has_value()) << to_string(status.error());
    EXPECT_THAT(result_, Each(8u)) << times;
  }
}

TEST_P(Counters, AnyNumberOfFlatStoresWithoutAWait) {
  const Status status = run(loop("flat_store_dword v[4:5], v2", 66'000) +
                            "s_waitcnt vmcnt(0) lgkmcnt(0)\nv_add_u32 v41, 9, v0\nglobal_store_dword v1, v41, s[6:7]");
  ASSERT_TRUE(status.has_value()) << to_string(status.error());
  EXPECT_THAT(result_, Each(9u));
}

TEST_P(Counters, AnyNumberOfFlatLoadsWaitedForOnOneCounter) {
  const Status status = run("v_add_co_u32 v4, vcc, v4, v1\ns_nop 1\nv_addc_co_u32 v5, vcc, 0, v5, vcc\n" +
                            loop("flat_load_dword v40, v[4:5]\ns_waitcnt vmcnt(0)", 66'000) +
                            "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v40, s[6:7]");
  ASSERT_TRUE(status.has_value()) << to_string(status.error());
  EXPECT_THAT(result_, Each(7u));
}

TEST_P(Counters, AnyNumberOfLdsAccessesWithoutAWait) {
  const Status status = run(loop("ds_write_b32 v1, v0\nds_read_b32 v40, v1", 66'000) +
                            "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v40, s[6:7]");
  ASSERT_TRUE(status.has_value()) << to_string(status.error());
  EXPECT_THAT(result_, Each(0u));
}

// The 64th instruction in flight cannot issue before the first has completed.
TEST_P(Counters, FullVmcntCompletesTheOldest) {
  const auto code = [](unsigned later) {
    return "global_load_dword v40, v1, s[4:5]\n" + repeat("global_store_dword v1, v2, s[6:7]", later) +
           "v_add_u32 v41, 1, v40\nglobal_store_dword v1, v41, s[6:7]";
  };
  const Status full = run(code(63));
  ASSERT_TRUE(full.has_value()) << to_string(full.error());
  EXPECT_THAT(result_, Each(8u));
  EXPECT_EQ(run(code(62)).has_value(), GetParam() == SimChecks::kPlain);
}

TEST_P(Counters, FullLgkmcntCompletesTheOldest) {
  const auto code = [](unsigned later) {
    return "ds_write_b32 v1, v0\nds_read_b32 v40, v1\n" + repeat("ds_write_b32 v1, v2", later) +
           "v_add_u32 v41, 1, v40\nglobal_store_dword v1, v41, s[6:7]";
  };
  const Status full = run(code(15));
  ASSERT_TRUE(full.has_value()) << to_string(full.error());
  EXPECT_THAT(result_, Each(1u));
  EXPECT_EQ(run(code(14)).has_value(), GetParam() == SimChecks::kPlain);
}

TEST_P(Counters, FullVmcntLandsADirectLoadInLds) {
  const auto code = [](unsigned later) {
    return "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]\n" +
           repeat("global_store_dword v1, v2, s[6:7]", later) +
           "ds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v40, s[6:7]";
  };
  const Status full = run(code(63));
  ASSERT_TRUE(full.has_value()) << to_string(full.error());
  EXPECT_THAT(result_, Each(7u));
  const Status early = run(code(62));
  EXPECT_EQ(early.has_value(), GetParam() == SimChecks::kPlain);
  if (!early) {
    EXPECT_THAT(to_string(early.error()), testing::HasSubstr("lds-in-flight"));
  } else {
    EXPECT_THAT(result_, Each(0u));  // what was there before
  }
}

// More direct loads in flight than the counter holds, over 128 places in LDS in turn: every byte arrives.
TEST_P(Counters, AnyNumberOfDirectLoadsWithoutAWait) {
  const Status status =
      run("s_mov_b32 s9, 0\n" +
          loop("s_and_b32 m0, s9, 0x7f00\ns_add_u32 s9, s9, 0x100\nglobal_load_lds_dword v1, s[4:5]", 66'000) +
          "s_waitcnt vmcnt(0)\nds_read_b32 v40, v1 offset:0x7f00\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v40, "
          "s[6:7]");
  ASSERT_TRUE(status.has_value()) << to_string(status.error());
  EXPECT_THAT(result_, Each(7u));
}

// Scalar loads return in any order: however many are issued, only lgkmcnt(0) makes one readable.
TEST_P(Counters, ScalarLoadsStayUnknownUntilAllAreWaitedFor) {
  std::string loads;
  for (int i = 0; i < 40; ++i) loads += fmt::format("s_load_dword s{}, s[4:5], {}\n", 20 + i, 4 * i);
  EXPECT_EQ(run(loads + "s_add_u32 s9, s20, 1\ns_waitcnt lgkmcnt(0)").has_value(), GetParam() == SimChecks::kPlain);
  const Status waited = run(loads +
                            "s_waitcnt lgkmcnt(0)\ns_add_u32 s9, s20, s59\nv_add_u32 v41, s9, v0\n"
                            "global_store_dword v1, v41, s[6:7]");
  ASSERT_TRUE(waited.has_value()) << to_string(waited.error());
  EXPECT_THAT(result_, Each(7u + 46u));
}

INSTANTIATE_TEST_SUITE_P(Modes, Counters, testing::Values(SimChecks::kPlain, SimChecks::kStrict),
                         [](const auto& info) { return info.param == SimChecks::kPlain ? "Plain" : "Strict"; });

}  // namespace
}  // namespace zyfa::sim_test
