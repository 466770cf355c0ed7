// Attention::compile() from memory, disk and JIT through libzyfa as a user links it, with the recording HIP runtime as
// the device: where a kernel comes from, what is launched, and how the cache modes and a refusing device behave.
#include "zyfa/attention.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/runtime/fake_hip.h"
#include "zyfa/inspect.h"

namespace zyfa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// Each test has cache directories of its own, so nothing is ready in memory when it starts.
class AttentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "zyfa-attention-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    setenv("ZYFA_HIP_LIBRARY", ZYFA_FAKE_HIP, 1);
    void* handle = dlopen(ZYFA_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    hip_ = reinterpret_cast<FakeHipReset>(dlsym(handle, "fake_hip_reset"))();
    device_ = HipDevice::create().value();
  }

  void TearDown() override {
    device_.reset();
    for (const CacheOptions& options : {cache("a"), cache("b"), layered()}) EXPECT_TRUE(flush_cache(options));
    fs::remove_all(root_);
  }

  std::string directory(const char* name) const { return root_ + "/" + name; }

  CacheOptions cache(const char* name, CacheMode mode = CacheMode::kNormal) const { return {directory(name), mode}; }

  // "a" read-only below "b".
  CacheOptions layered() const { return {directory("a") + ":" + directory("b"), CacheMode::kNormal}; }

  // Publishes the kernel to `name` and waits for it.
  void prewarm(const AttentionProblem& problem, const char* name) {
    ASSERT_TRUE(Attention::compile(problem, {.cache = cache(name)}));
    ASSERT_TRUE(flush_cache(cache(name)));
    ASSERT_EQ(cache_statistics(cache(name))->published, 1u);
  }

  std::string root_;
  fake_hip::State* hip_ = nullptr;
  std::shared_ptr<Device> device_;
  const AttentionProblem problem_{.mask = Mask::kCausal, .lse = Lse::kWritten};
};

TEST_F(AttentionTest, is_built_then_found_in_memory_then_on_disk) {
  const CompileOptions options{.device = device_, .cache = cache("a")};
  const auto built = Attention::compile(problem_, options);
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_EQ((*built)->info().source, KernelSource::kBuilt);
  EXPECT_GT((*built)->info().times.build, 0);
  const auto memory = Attention::compile(problem_, options);
  ASSERT_TRUE(memory);
  EXPECT_EQ((*memory)->info().source, KernelSource::kMemory);
  EXPECT_EQ(hip_->images.size(), 1u) << "a memory hit loads nothing";
  EXPECT_EQ(cache_statistics(options.cache)->memory_hits, 1u);
  ASSERT_TRUE(flush_cache(options.cache));
  EXPECT_GT((*built)->info().times.publish, 0);

  // Another cache configuration of this process, with the first directory as a read-only layer.
  const auto disk = Attention::compile(problem_, {.device = device_, .cache = layered()});
  ASSERT_TRUE(disk) << to_string(disk.error());
  const AttentionInfo info = (*disk)->info();
  EXPECT_EQ(info.source, KernelSource::kDisk);
  EXPECT_EQ(info.layer, directory("a"));
  EXPECT_EQ(info.times.build, 0);
  EXPECT_TRUE(std::ranges::equal((*disk)->object(), (*built)->object()));
}

TEST_F(AttentionTest, info_says_what_was_made) {
  const auto attention = Attention::compile(problem_, {.device = device_, .cache = cache("a")});
  ASSERT_TRUE(attention) << to_string(attention.error());
  const AttentionInfo info = (*attention)->info();
  EXPECT_EQ(info.problem, problem_);
  EXPECT_THAT(info.key, ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_THAT(explain_key(problem_).value(), HasSubstr("key=" + info.key + "\n"));
  EXPECT_EQ(info.schedule_row, select(problem_)->row);
  EXPECT_EQ(info.schedule, select(problem_)->schedule);
  EXPECT_EQ(info.kernarg_bytes, 336u);
  EXPECT_LE(info.vgprs + info.agprs, 256u);  // two waves a SIMD
  EXPECT_LE(info.lds_bytes, 163840u);
  EXPECT_GT(info.instructions, 0u);
  EXPECT_EQ(info.object_bytes, (*attention)->object().size());
  EXPECT_EQ(info.llvm_version, version_info().llvm);
  EXPECT_GE(info.times.total, info.times.build);
  const auto described = describe_object((*attention)->object());
  ASSERT_TRUE(described);
  ASSERT_EQ(described->kernels.size(), 1u);
  EXPECT_EQ(described->kernels[0].symbol, info.symbol);
}

TEST_F(AttentionTest, launch_sends_the_packed_arguments_and_the_grid) {
  const auto attention = Attention::compile(problem_, {.device = device_, .cache = cache("a")});
  ASSERT_TRUE(attention) << to_string(attention.error());
  const AttentionInfo info = (*attention)->info();
  LaunchArgs args{.q = TensorView::contiguous(0x1000, 2, 300, 6, 128),
                  .k = TensorView::contiguous(0x2000, 2, 77, 2, 128),
                  .v = TensorView::contiguous(0x3000, 2, 77, 2, 128),
                  .out = TensorView::contiguous(0x4000, 2, 300, 6, 128),
                  .lse = LseView::contiguous(0x5000, 2, 6, 300)};
  int stream = 0;
  ASSERT_TRUE((*attention)->launch(args, &stream));
  ASSERT_EQ(hip_->launches.size(), 1u);
  const fake_hip::Launch& launch = hip_->launches.front();
  EXPECT_TRUE(launch.well_formed);
  EXPECT_EQ(launch.function, info.symbol);
  EXPECT_EQ(launch.stream, &stream);
  EXPECT_THAT(launch.grid, ElementsAre((300 + info.query_tile - 1) / info.query_tile, 6, 2));
  EXPECT_THAT(launch.block, ElementsAre(64 * info.waves, 1, 1));
  ASSERT_EQ(launch.kernargs.size(), info.kernarg_bytes);
  std::int32_t lengths[2] = {};
  std::memcpy(lengths, launch.kernargs.data() + 152, sizeof lengths);
  EXPECT_THAT(lengths, ElementsAre(300, 77));
  EXPECT_TRUE(hip_->synchronized.empty()) << "launch must not wait";
  EXPECT_EQ(hip_->allocations_alive, 0) << "launch must not allocate";

  args.q.tokens = args.out.tokens = args.lse.tokens = 0;
  EXPECT_TRUE((*attention)->launch(args, &stream));
  args.q.heads = 5;
  const Status wrong = (*attention)->launch(args, &stream);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(hip_->launches.size(), 1u) << "neither empty nor wrong arguments reach the device";
}

TEST_F(AttentionTest, without_a_device_there_is_an_object_but_no_launch) {
  const auto attention = Attention::compile(problem_, {.cache = cache("a")});
  ASSERT_TRUE(attention) << to_string(attention.error());
  EXPECT_FALSE((*attention)->object().empty());
  const Status launched = (*attention)->launch({});
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(launched.error().message, HasSubstr("compiled without a device"));
}

TEST_F(AttentionTest, each_device_loads_its_own_copy) {
  const CacheOptions options = cache("a");
  ASSERT_TRUE(Attention::compile(problem_, {.device = device_, .cache = options}));
  for (int i = 0; i < 20; ++i) {  // addresses of gone devices come back
    std::shared_ptr<Device> other = HipDevice::create().value();
    const auto attention = Attention::compile(problem_, {.device = other, .cache = options});
    ASSERT_TRUE(attention);
    EXPECT_EQ((*attention)->info().source, KernelSource::kMemory) << "the bytes are known, the module is not";
    EXPECT_EQ(hip_->images.size(), static_cast<std::size_t>(i) + 2);
  }
  EXPECT_LE(hip_->modules_alive, 3) << "modules of gone devices are unloaded";
  EXPECT_EQ(cache_statistics(options)->builds, 1u);
}

TEST_F(AttentionTest, one_build_serves_every_thread) {
  const CompileOptions options{.device = device_, .cache = cache("a")};
  std::vector<std::shared_ptr<Attention>> made(8);
  {
    std::vector<std::jthread> threads;
    for (auto& attention : made) {
      threads.emplace_back([&] { attention = Attention::compile(problem_, options).value_or(nullptr); });
    }
  }
  for (const auto& attention : made) {
    ASSERT_NE(attention, nullptr);
    EXPECT_EQ(attention->info().key, made[0]->info().key);
  }
  EXPECT_EQ(cache_statistics(options.cache)->builds, 1u);
}

TEST_F(AttentionTest, require_mode_reports_a_miss_with_the_prewarm_line) {
  ASSERT_TRUE(flush_cache(cache("a")));  // makes the directory
  const auto missed = Attention::compile(problem_, {.device = device_, .cache = cache("a", CacheMode::kRequire)});
  ASSERT_FALSE(missed);
  EXPECT_EQ(missed.error().code, ErrorCode::kCacheMiss);
  EXPECT_THAT(to_string(missed.error()), HasSubstr("zyfa-jit prewarm --shapes FILE"));
  EXPECT_THAT(to_string(missed.error()), HasSubstr("bf16,d=128,causal,lse"));
  EXPECT_THAT(to_string(missed.error()), HasSubstr("mask=causal"));
  prewarm(problem_, "a");
  const auto found = Attention::compile(problem_, {.device = device_, .cache = cache("a", CacheMode::kRequire)});
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ((*found)->info().source, KernelSource::kDisk);
}

TEST_F(AttentionTest, a_load_the_device_refuses_heals_by_one_rebuild) {
  prewarm(problem_, "a");
  hip_->failing_call = "hipModuleLoadData";
  hip_->failing_error = 200;
  hip_->failures_left = 1;
  const auto healed = Attention::compile(problem_, {.device = device_, .cache = layered()});
  ASSERT_TRUE(healed) << to_string(healed.error());
  EXPECT_EQ((*healed)->info().source, KernelSource::kBuilt);
  EXPECT_EQ(cache_statistics(layered())->discarded, 1u);

  hip_->failures_left = 2;
  const auto refused = Attention::compile({}, {.device = device_, .cache = layered()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(hip_->failures_left, 1) << "what a fresh build gives is final";
}

TEST_F(AttentionTest, damaged_and_foreign_entries_are_rebuilt) {
  prewarm(problem_, "a");
  const std::string path = list_cache(cache("a"))->at(0).path;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-100, std::ios::end);
  file.put('\x5a');
  file.close();
  const auto healed = Attention::compile(problem_, {.device = device_, .cache = cache("a", CacheMode::kReadOnly)});
  ASSERT_TRUE(healed) << to_string(healed.error());
  EXPECT_EQ((*healed)->info().source, KernelSource::kBuilt);
  EXPECT_EQ(cache_statistics(cache("a", CacheMode::kReadOnly))->rejected, 1u);
}

TEST_F(AttentionTest, a_placement_of_ones_own_has_a_key_of_its_own) {
  const auto table = Attention::compile(problem_, {.cache = cache("a")});
  const auto naive = Attention::compile(problem_, {.placement = "naive", .cache = cache("a")});
  ASSERT_TRUE(table && naive);
  EXPECT_NE((*table)->info().key, (*naive)->info().key);
  EXPECT_EQ((*naive)->info().schedule_row, "naive");
  const auto text = Attention::compile(problem_, {.placement = (*naive)->info().schedule, .cache = cache("a")});
  ASSERT_TRUE(text);
  EXPECT_EQ((*text)->info().key, (*naive)->info().key);
  EXPECT_EQ((*text)->info().source, KernelSource::kMemory);
}

TEST_F(AttentionTest, inspection_finds_what_compile_published) {
  prewarm(problem_, "a");
  const auto listed = list_cache(cache("a"));
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  const CachedKernel& entry = listed->front();
  EXPECT_EQ(entry.problem, "bf16,d=128,causal,lse");
  EXPECT_EQ(entry.schedule, select(problem_)->schedule);
  EXPECT_EQ(entry.generator, version_info().generator);
  EXPECT_EQ(entry.layer, directory("a"));
  EXPECT_EQ(entry.file_bytes, fs::file_size(entry.path));
  const auto found = find_cached_kernel(std::string_view(entry.key).substr(0, 6), cache("a"));
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->entry.path, entry.path);
  EXPECT_FALSE(found->register_map.empty());
  EXPECT_FALSE(found->schedule_chart.empty());
  EXPECT_THAT(dump_object(found->object, Dump::kIsa).value(), HasSubstr("v_mfma_f32_32x32x16_bf16"));
  EXPECT_THAT(dump_object(found->object, Dump::kAssembly).value(), HasSubstr(".amdhsa_kernel " + entry.symbol));
  EXPECT_THAT(dump_object(found->object, Dump::kMetadata).value(), HasSubstr(entry.symbol));
  EXPECT_EQ(dump_object(found->object, Dump::kIsa, "other").error().code, ErrorCode::kNotFound);
  const auto verified = verify_object(found->object);
  ASSERT_TRUE(verified) << to_string(verified.error());
  EXPECT_THAT(verified->findings, ::testing::IsEmpty());
  EXPECT_THAT(verified->kernels, ElementsAre(entry.symbol));
  const auto fresh = find_kernel(problem_, cache("b"));
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->object, found->object) << "the same bytes whether built or read";

  EXPECT_EQ(find_cached_kernel("00000000", cache("a")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(find_cached_kernel("xyz!", cache("a")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(find_cached_kernel("abc", cache("a")).error().code, ErrorCode::kInvalidArgument);
}

// Runs the small program of tests/performance/runtime in an environment; its first line.
struct ProgramRun {
  std::string line;
  int status = -1;
};
ProgramRun run_program(const std::string& environment, const std::string& problem,
                       const std::string& program = ZYFA_DISK_HIT) {
  ProgramRun run;
  FILE* pipe = popen((environment + " " + program + " " + problem + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return run;
  char line[512] = {};
  if (std::fgets(line, sizeof line, pipe) != nullptr) run.line = line;
  run.status = pclose(pipe);
  return run;
}

// Destructors of statics that are older than anything of zyfa's: memory and disk serve, a build is an error or works,
// nothing crashes, and what main() built has been published.
TEST_F(AttentionTest, compiles_while_the_process_exits) {
  const std::string environment = "ZYFA_CACHE_PATH=" + directory("a"), problems = "bf16,d=128 bf16,d=128,causal";
  const ProgramRun cold = run_program(environment, problems, ZYFA_LATE_COMPILE);
  EXPECT_EQ(cold.status, 0);
  const int unavailable = static_cast<int>(ErrorCode::kDeviceUnavailable);
  EXPECT_EQ(cold.line, "main=built known=memory other=error " + std::to_string(unavailable) + " end\n");
  EXPECT_EQ(list_cache(cache("a"))->size(), 1u);
  const ProgramRun warm = run_program(environment, problems, ZYFA_LATE_COMPILE);
  EXPECT_EQ(warm.status, 0);
  EXPECT_EQ(warm.line, "main=disk known=memory other=built end\n");  // libzyfa_jit is opened by the destructor
  EXPECT_EQ(list_cache(cache("a"))->size(), 2u);
}

// A fresh process that finds its kernel on disk maps neither libzyfa_jit nor LLVM.
TEST_F(AttentionTest, a_disk_hit_in_a_fresh_process_never_opens_libzyfa_jit) {
  prewarm(problem_, "a");
  const std::string environment = "ZYFA_JIT_LIBRARY=/nonexistent ZYFA_CACHE_PATH=" + directory("a");
  const ProgramRun hit = run_program(environment, to_string(problem_));
  EXPECT_EQ(hit.status, 0);
  EXPECT_THAT(hit.line, ::testing::StartsWith("disk "));
  EXPECT_THAT(hit.line, HasSubstr(" mapped=none"));
  const ProgramRun miss = run_program(environment, "bf16,d=128,full");
  EXPECT_NE(miss.status, 0) << "the kernel is not there, and cannot be built";
  EXPECT_THAT(miss.line, HasSubstr("device-unavailable"));
}

// Publishing is in the background, but leaving main() waits for it.
TEST_F(AttentionTest, a_process_that_builds_and_leaves_has_published) {
  const std::string environment = "ZYFA_CACHE_PATH=" + directory("a");
  const ProgramRun first = run_program(environment, to_string(problem_));
  EXPECT_EQ(first.status, 0);
  EXPECT_THAT(first.line, ::testing::StartsWith("built "));
  EXPECT_THAT(run_program(environment, to_string(problem_)).line, ::testing::StartsWith("disk "));
}

TEST_F(AttentionTest, compile_refuses_with_a_code_and_every_reason) {
  const auto unsupported = Attention::compile({.dtype = DType::kFp16, .head_dim_qk = 64}, {.cache = cache("a")});
  ASSERT_FALSE(unsupported);
  EXPECT_EQ(unsupported.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(unsupported.error().details, ElementsAre(HasSubstr("fp16"), HasSubstr("head_dim_qk 64")));
  const auto illegal = Attention::compile(problem_, {.placement = "name=x;waves=4;loop=pv", .cache = cache("a")});
  ASSERT_FALSE(illegal);
  EXPECT_EQ(illegal.error().code, ErrorCode::kScheduleError);
  const ProgramRun bad_mode = run_program("ZYFA_CACHE=sometimes", to_string(problem_));
  EXPECT_NE(bad_mode.status, 0);
  EXPECT_THAT(bad_mode.line, ::testing::AllOf(HasSubstr("invalid-argument"), HasSubstr("sometimes")));
}

}  // namespace
}  // namespace zyfa
