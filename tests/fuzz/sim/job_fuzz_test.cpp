// Random jobs, executed: any launch shape, arguments and buffers with a real kernel end in a result or in an error that
// says something; none crashes or hangs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/io/job.h"
#include "runtime/io/job_run.h"
#include "tests/unit/sim/harness.h"
#include "zyfa/inspect.h"

namespace zyfa::sim_test {
namespace {

// Reads two pointers, a count and an offset, loads, meets at barriers as often as the count says, and stores.
constexpr char kKernel[] =
    "s_load_dwordx4 s[4:7], s[0:1], 0\ns_load_dwordx2 s[8:9], s[0:1], 16\nv_and_b32 v1, 0x3ff, v0\n"
    "v_lshlrev_b32 v1, 2, v1\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v2, s9\nglobal_load_dword v3, v1, s[4:5]\nloop:\n"
    "ds_write_b32 v2, v1\ns_barrier\nds_read_b32 v4, v2 offset:4\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_sub_u32 s8, s8, 1\n"
    "s_cmp_gt_i32 s8, 0\ns_cbranch_scc1 loop\nv_add_u32 v3, v3, v4\nglobal_store_dword v1, v3, s[6:7]\n";

class JobText {
 public:
  explicit JobText(std::uint32_t seed) : random_(seed) {}

  std::string text() {
    std::string args;
    const int count = static_cast<int>(below(7));
    for (int i = 0; i < count; ++i) args += (i ? "," : "") + argument();
    return fmt::format(R"({{"object":"k","kernel":"k","grid":[{},{},{}],"block":[{},{},{}],"lds":{},"args":[{}]}})",
                       below(4), number(), below(3), number(), 1 + below(2), 1 + below(2), number(), args);
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  // Mostly sensible, now and then at or past a limit.
  std::uint64_t number() {
    constexpr std::uint64_t kOdd[] = {0, 1, 64, 128, 256, 1024, 1025, 65536, 163840, 163841, 0xffffffff};
    return below(4) == 0 ? kOdd[below(11)] : 1 + below(3);
  }
  std::string argument() {
    std::string where = below(6) == 0 ? fmt::format(R"(,"offset":{})", 4 * below(12)) : "";
    switch (below(8)) {
      case 0:
        return fmt::format(R"({{"i32":{}{}}})", static_cast<std::int32_t>(random_()), where);
      case 1:
        return fmt::format(R"({{"i32":{}{}}})", below(20), where);
      case 2:
        return fmt::format(R"({{"i64":{}{}}})", static_cast<std::int32_t>(random_()), where);
      case 3:
        return fmt::format(R"({{"null":true{}}})", where);
      default:
        return fmt::format(R"({{"bytes":{},"fill":{}{}}})", below(2) ? 4096 : 4 * below(300), below(256), where);
    }
  }

  std::mt19937 random_;
};

TEST(FuzzJobs, RandomJobsRunOrSayWhyNot) {
  const Bytes object = assemble_kernel(kKernel, {.lds = 1024, .kernarg = 24, .workgroup = 1024});
  const ObjectKernel kernel = describe_object(object).value().kernels.at(0);
  int ran = 0, faults = 0, refused = 0, malformed = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const std::string text = JobText(seed).text();
    const auto job = io::parse_job(text, "folder", "j");
    if (!job) {
      EXPECT_EQ(job.error().code, ErrorCode::kCorruptData) << text;
      ++malformed;
      continue;
    }
    std::uint64_t groups = 1;
    for (const std::uint32_t n : job->launch.grid) groups *= n;
    if (groups > 64) continue;  // legal, and only long
    SimOptions options;
    options.checks = seed % 2 ? SimChecks::kStrict : SimChecks::kPlain;
    options.max_instructions = 2000;
    options.landing = static_cast<SimLanding>(seed % 3);
    options.interleave = static_cast<SimInterleave>(seed / 3 % 3);
    const auto device = sim::make_sim_device(options).value();
    const auto outputs = io::execute_job(*job, object, kernel, *device);
    if (outputs) {
      ++ran;
      continue;
    }
    EXPECT_FALSE(outputs.error().message.empty()) << text;
    const ErrorCode code = outputs.error().code;
    (code == ErrorCode::kInvalidArgument ? refused : faults) += 1;
    EXPECT_TRUE(code == ErrorCode::kInvalidArgument || code == ErrorCode::kMemoryFault ||
                code == ErrorCode::kDeviceError || code == ErrorCode::kStrictFinding)
        << text << to_string(outputs.error());
  }
  // Every way to end is met, or the generator no longer tests it.
  EXPECT_GT(ran, 20);
  EXPECT_GT(faults, 20);
  EXPECT_GT(refused, 20);
  EXPECT_GT(malformed, 20);
}

}  // namespace
}  // namespace zyfa::sim_test
