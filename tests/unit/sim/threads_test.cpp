// Launches over several threads: results, counts and reports do not depend on how many, nor on whether the host gives
// them. Run under ThreadSanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <bit>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>
#include <system_error>

#include "runtime/sim/crew.h"
#include "runtime/sim/launch_capture.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using testing::HasSubstr;

TEST(Threads, ResultsAndCountsDoNotDependOnThreads) {
  std::vector<std::uint32_t> first;
  std::uint64_t instructions = 0;
  for (const unsigned threads : {1u, 2u, 5u}) {
    const auto device = make_device(threads == 2 ? SimChecks::kStrict : SimChecks::kPlain, threads);
    const Buffer<std::uint32_t> out(*device, std::vector<std::uint32_t>(64 * 33, 0));
    ASSERT_TRUE(run(*device,
                    assemble_kernel("s_load_dwordx2 s[4:5], s[0:1], 0\nv_and_b32 v0, 63, v0\ns_lshl_b32 s6, s2, "
                                    "6\nv_add_u32 v1, s6, v0\nv_mul_lo_u32 v2, v1, v1\n"
                                    "v_lshlrev_b32 v1, 2, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[4:5]"),
                    "k", {.grid = {33, 1, 1}}, Args().add(out))
                    .has_value());
    const auto values = out.read();
    for (std::uint32_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i * i);
    if (instructions == 0) instructions = device->last_statistics().instructions;
    EXPECT_EQ(device->last_statistics().instructions, instructions);
  }
}

TEST(Threads, RecordedWorkgroupsDoNotDependOnThreads) {
  const Bytes object =
      assemble_kernel("s_add_u32 s8, s2, 1\nloop:\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\n");
  for (const unsigned threads : {1u, 5u}) {
    const auto device = make_device(SimChecks::kPlain, threads);
    SimOptions options = device->options();
    options.capture = SimCapture{};
    check(device->set_options(options));
    check(run(*device, object, "k", {.grid = {33, 1, 1}}, Args()));
    const auto capture = sim::last_capture(*device);
    ASSERT_TRUE(capture);
    ASSERT_EQ(capture->groups.size(), 33u);
    for (std::uint32_t i = 0; i < 33; ++i) {
      EXPECT_EQ(capture->groups[i].id[0], i);
      EXPECT_EQ(capture->groups[i].waves[0].steps.size(), 2 + 3 * (i + 1));
      EXPECT_EQ(capture->instructions[i], 2 + 3 * (i + 1));
    }
  }
}

// Tickets that workgroups draw, and a float sum whose rounding depends on the order.
TEST(Threads, OrderOfAtomicsDoesNotDependOnThreads) {
  constexpr std::uint32_t kGroups = 400;
  const Bytes object = assemble_kernel(
      "s_load_dwordx4 s[4:7], s[0:1], 0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 1\nv_cvt_f32_u32 v3, s2\nv_add_f32 v3, 0.5, "
      "v3\nv_rcp_f32 v3, v3\ns_mov_b64 exec, 1\ns_waitcnt lgkmcnt(0)\nglobal_atomic_add v4, v1, v2, s[4:5] sc0\n"
      "global_atomic_add_f32 v1, v3, s[4:5] offset:4\ns_lshl_b32 s8, s2, 2\nv_mov_b32 v5, s8\ns_waitcnt vmcnt(0)\n"
      "global_store_dword v5, v4, s[6:7]");
  for (const unsigned threads : {1u, 2u, 5u}) {
    const auto device = make_device(SimChecks::kPlain, threads);
    const Buffer<std::uint32_t> sums(*device, {0, 0}), tickets(*device, std::vector<std::uint32_t>(kGroups, 0));
    check(run(*device, object, "k", {.grid = {kGroups, 1, 1}}, Args().add(sums).add(tickets)));
    float expected = 0;
    for (std::uint32_t i = 0; i < kGroups; ++i) expected += 1.0f / (static_cast<float>(i) + 0.5f);
    EXPECT_EQ(sums.read()[1], std::bit_cast<std::uint32_t>(expected)) << threads;
    const auto drawn = tickets.read();
    for (std::uint32_t i = 0; i < kGroups; ++i) ASSERT_EQ(drawn[i], i) << threads;
  }
}

TEST(Threads, FaultsReadTheSame) {
  const Bytes object = assemble_kernel(
      "s_load_dwordx2 s[4:5], s[0:1], 0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\n"
      "v_lshl_add_u32 v1, s2, 4, v1\ns_waitcnt lgkmcnt(0)\nglobal_load_dword v4, v1, s[4:5]");
  std::string first;
  for (const unsigned threads : {1u, 2u, 4u}) {
    const auto device = make_device(SimChecks::kPlain, threads);
    const Buffer<std::uint32_t> in(*device, std::vector<std::uint32_t>(64, 1));
    const Status status = run(*device, object, "k", {.grid = {64, 1, 1}}, Args().add(in));
    ASSERT_FALSE(status.has_value());
    if (first.empty()) first = status.error().details.at(0);
    EXPECT_EQ(status.error().details.at(0), first);
  }
}

// Every lane of every workgroup adds to one word; the sum is exact whatever the interleaving.
TEST(Threads, AtomicsOfAllWorkgroupsAreCounted) {
  const auto device = make_device(SimChecks::kStrict, 4);
  const Buffer<std::uint32_t> out(*device, {0});
  const Status status =
      run(*device,
          assemble_kernel("s_load_dwordx2 s[4:5], s[0:1], 0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 3\ns_waitcnt "
                          "lgkmcnt(0)\nglobal_atomic_add v1, v2, s[4:5]"),
          "k", {.grid = {50, 1, 1}}, Args().add(out));
  ASSERT_TRUE(status.has_value()) << to_string(status.error());
  EXPECT_EQ(out.read()[0], 50u * 64 * 3);
}

TEST(Crew, RunsOnTheThreadsThatStart) {
  for (const unsigned allowed : {0u, 1u, 3u}) {
    std::atomic<unsigned> runs{0};
    unsigned started = 0;
    const Status status = sim::run_crew(
        8, [&] { ++runs; },
        [&](const std::function<void()>& work) {
          if (started == allowed) throw std::system_error(EAGAIN, std::generic_category(), "no thread");
          ++started;
          return std::thread(work);
        });
    EXPECT_TRUE(status.has_value());
    EXPECT_EQ(runs, allowed + 1);
  }
}

TEST(Crew, AnExceptionOnAnyThreadIsAStatus) {
  for (const bool on_caller : {true, false}) {
    const auto caller = std::this_thread::get_id();
    std::atomic<unsigned> runs{0};
    const Status status = sim::run_crew(3, [&] {
      ++runs;
      if ((std::this_thread::get_id() == caller) == on_caller) throw std::bad_alloc();
    });
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kDeviceError);
    EXPECT_THAT(status.error().message, HasSubstr("no host memory"));
    EXPECT_EQ(runs, 3u);
  }
  EXPECT_THAT(sim::run_crew(1, [] { throw std::runtime_error("out of luck"); }).error().message,
              HasSubstr("out of luck"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In a process of its own whose address space has room for a few thread stacks only.
void launch_in_little_space() {
  const auto device = make_device(SimChecks::kPlain, 512);
  const Buffer<std::uint32_t> out(*device, {0});
  const Bytes object = assemble_kernel(
      "s_load_dwordx2 s[4:5], s[0:1], 0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 1\ns_waitcnt lgkmcnt(0)\nglobal_atomic_add v1, "
      "v2, s[4:5]");
  const auto kernel = device->load(object, "k");
  unsigned long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{100} << 20);
  const rlimit space{limit, limit};
  if (!kernel || setrlimit(RLIMIT_AS, &space) != 0) std::_Exit(2);
  const Status status = device->launch(**kernel, {.grid = {1000, 1, 1}}, Args().add(out).bytes(), nullptr);
  // Too few threads are no error. A thread that started and found no memory is one, said in words.
  if (!status) {
    std::fprintf(stderr, "%s\n", to_string(status.error()).c_str());
    std::_Exit(status.error().code == ErrorCode::kDeviceError ? 0 : 1);
  }
  std::_Exit(out.read()[0] == 64'000 ? 0 : 1);
}

TEST(CrewDeathTest, ALaunchSurvivesAHostWithoutThreads) {
  EXPECT_EXIT(launch_in_little_space(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace zyfa::sim_test
