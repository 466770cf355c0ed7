// FP8 attention from BF16 inputs is several kernels: compile() obtains and loads them all, launch() queues them in
// order on one stream. On the recording HIP runtime for what is launched, on the simulator for what comes out.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/unit/runtime/fake_hip.h"
#include "zyfa/attention.h"
#include "zyfa/inspect.h"

namespace zyfa {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr AttentionProblem kProblem{.mask = Mask::kCausal, .lse = Lse::kWritten, .compute = Compute::kFp8};

class QuantisedAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "zyfa-quantised-XXXXXX").string();
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
    EXPECT_TRUE(flush_cache(cache()));
    fs::remove_all(root_);
  }

  CacheOptions cache(CacheMode mode = CacheMode::kNormal) const { return {root_, mode}; }

  std::string root_;
  fake_hip::State* hip_ = nullptr;
  std::shared_ptr<Device> device_;
};

LaunchArgs args_of(const Attention& attention) {
  LaunchArgs args{.q = TensorView::contiguous(0x10000, 2, 70, 4, 128),
                  .k = TensorView::contiguous(0x100000, 2, 90, 2, 128),
                  .v = TensorView::contiguous(0x200000, 2, 90, 2, 128),
                  .out = TensorView::contiguous(0x300000, 2, 70, 4, 128),
                  .lse = LseView::contiguous(0x400000, 2, 4, 70)};
  args.workspace = {.address = 0x1000000, .bytes = attention.workspace_bytes(args).value()};
  return args;
}

TEST_F(QuantisedAttention, compile_builds_and_loads_every_kernel_once) {
  const CompileOptions options{.device = device_, .cache = cache()};
  const auto built = Attention::compile(kProblem, options);
  ASSERT_TRUE(built) << to_string(built.error());
  const AttentionInfo info = (*built)->info();
  ASSERT_GE(info.helpers.size(), 3u);
  std::set<std::string> keys{info.key}, symbols{info.symbol};
  for (const HelperKernel& helper : info.helpers) {
    EXPECT_EQ(helper.source, KernelSource::kBuilt);
    EXPECT_TRUE(keys.insert(helper.key).second) << helper.key;
    EXPECT_TRUE(symbols.insert(helper.symbol).second) << helper.symbol;
    EXPECT_THAT(helper.description, HasSubstr("quantise"));
  }
  EXPECT_EQ(hip_->images.size(), info.helpers.size() + 1);
  ASSERT_TRUE(flush_cache(cache()));
  EXPECT_EQ(cache_statistics(cache())->published, info.helpers.size() + 1);

  const auto memory = Attention::compile(kProblem, options);
  ASSERT_TRUE(memory);
  EXPECT_EQ(hip_->images.size(), info.helpers.size() + 1) << "a memory hit loads nothing";
  EXPECT_EQ((*memory)->info().source, KernelSource::kMemory);
  for (const HelperKernel& helper : (*memory)->info().helpers) EXPECT_EQ(helper.source, KernelSource::kMemory);

  const auto disk = Attention::compile(kProblem, {.device = device_, .cache = cache(CacheMode::kRequire)});
  ASSERT_TRUE(disk) << to_string(disk.error());
  for (const HelperKernel& helper : (*disk)->info().helpers) EXPECT_EQ(helper.source, KernelSource::kDisk);
}

TEST_F(QuantisedAttention, launch_queues_the_quantiser_then_attention_and_allocates_nothing) {
  const auto attention = Attention::compile(kProblem, {.device = device_, .cache = cache()});
  ASSERT_TRUE(attention) << to_string(attention.error());
  const AttentionInfo info = (*attention)->info();
  const LaunchArgs args = args_of(**attention);
  int stream = 0;
  const int allocations = hip_->allocations_alive;
  const Status launched = (*attention)->launch(args, &stream);
  ASSERT_TRUE(launched) << to_string(launched.error());
  EXPECT_EQ(hip_->allocations_alive, allocations);
  ASSERT_GT(hip_->launches.size(), 1u);
  for (std::size_t i = 0; i < hip_->launches.size(); ++i) {
    const fake_hip::Launch& launch = hip_->launches[i];
    EXPECT_TRUE(launch.well_formed);
    EXPECT_EQ(launch.stream, &stream);
    if (i + 1 == hip_->launches.size()) {
      EXPECT_EQ(launch.function, info.symbol);
      EXPECT_EQ(launch.kernargs.size(), 336u);
    } else {
      EXPECT_EQ(launch.function, info.helpers[i].symbol);
      EXPECT_EQ(launch.kernargs.size(), 160u);
    }
  }
  EXPECT_TRUE(hip_->synchronized.empty());
}

TEST_F(QuantisedAttention, a_refused_launch_queues_nothing) {
  const auto attention = Attention::compile(kProblem, {.device = device_, .cache = cache()});
  ASSERT_TRUE(attention) << to_string(attention.error());
  LaunchArgs args = args_of(**attention);
  args.workspace.bytes -= 1;
  const Status refused = (*attention)->launch(args);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(hip_->launches.empty());
  args = args_of(**attention);
  args.q.tokens = args.out.tokens = args.lse.tokens = 0;
  EXPECT_TRUE((*attention)->launch(args));
  EXPECT_TRUE(hip_->launches.empty());
}

TEST_F(QuantisedAttention, problems_of_one_attention_kernel_share_it) {
  const auto quantised = Attention::compile(kProblem, {.cache = cache()});
  ASSERT_TRUE(quantised) << to_string(quantised.error());
  AttentionProblem eight_bit{.dtype = DType::kFp8E4M3, .mask = Mask::kCausal, .lse = Lse::kWritten};
  eight_bit.fp8.form = ScoreForm::kFolded;
  const auto taken = Attention::compile(eight_bit, {.cache = cache()});
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_EQ((*taken)->info().key, (*quantised)->info().key);
  EXPECT_NE((*taken)->info().source, KernelSource::kBuilt);
  EXPECT_TRUE((*taken)->info().helpers.empty());
}

TEST_F(QuantisedAttention, a_missing_kernel_names_the_line_that_brings_all) {
  const auto missed = Attention::compile(kProblem, {.cache = cache(CacheMode::kRequire)});
  ASSERT_FALSE(missed);
  EXPECT_EQ(missed.error().code, ErrorCode::kCacheMiss);
  EXPECT_THAT(missed.error().details.back(), HasSubstr("\"bf16,d=128,causal,lse,compute=fp8\""));
}

TEST_F(QuantisedAttention, helper_kernels_can_be_looked_at) {
  const auto helpers = find_helper_kernels(kProblem, cache());
  ASSERT_TRUE(helpers) << to_string(helpers.error());
  ASSERT_GE(helpers->size(), 3u);
  const std::string key_text = explain_key(kProblem).value();
  for (const KernelObject& helper : *helpers) {
    EXPECT_THAT(key_text, HasSubstr("helper=" + helper.entry.key + " " + helper.entry.problem + "\n"));
    EXPECT_FALSE(helper.object.empty());
  }
  ASSERT_TRUE(flush_cache(cache()));
  const auto listed = list_cache(cache());
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->size(), helpers->size());
  EXPECT_TRUE(find_helper_kernels({.mask = Mask::kCausal}, cache())->empty());
  EXPECT_EQ(find_helper_kernels({.dtype = DType::kFp16}, cache()).error().code, ErrorCode::kUnsupported);
}

// One key: P is 1, so the output is its value as e4m3 holds it, and the LSE its score. Values of one bit are exact in
// any scale up to the rounding of the scale itself.
TEST(QuantisedOnTheSimulator, one_key_gives_its_value_and_its_score) {
  const auto device = SimDevice::create({.checks = SimChecks::kStrict}).value();
  const auto attention = Attention::compile({.lse = Lse::kWritten, .compute = Compute::kFp8},
                                            {.device = device, .cache = {.mode = CacheMode::kOff}});
  ASSERT_TRUE(attention) << to_string(attention.error());
  const auto bf16 = [](float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); };
  const auto upload = [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const DeviceAddress address = device->allocate(bytes.size()).value();
    EXPECT_TRUE(device->write(address, bytes));
    return address;
  };
  std::vector<std::uint16_t> q(3 * 128, bf16(0)), k(128, bf16(0)), v(128);
  for (std::size_t row = 0; row < 3; ++row) q[row * 128] = bf16(static_cast<float>(row));
  k[0] = bf16(2);
  for (std::size_t d = 0; d < 128; ++d) v[d] = bf16(d % 2 == 0 ? 4.0F : -2.0F);
  LaunchArgs args{.q = TensorView::contiguous(upload(q), 1, 3, 1, 128),
                  .k = TensorView::contiguous(upload(k), 1, 1, 1, 128),
                  .v = TensorView::contiguous(upload(v), 1, 1, 1, 128),
                  .out = TensorView::contiguous(upload(q), 1, 3, 1, 128),
                  .lse = LseView::contiguous(upload(std::vector<float>(3)), 1, 1, 3),
                  .softmax_scale = 0.25F};
  args.workspace.bytes = (*attention)->workspace_bytes(args).value();
  args.workspace.address = device->allocate(args.workspace.bytes).value();
  const Status launched = (*attention)->launch(args);
  ASSERT_TRUE(launched) << to_string(launched.error());
  std::vector<std::uint16_t> o(q.size());
  std::vector<float> lse(3);
  ASSERT_TRUE(device->read(std::as_writable_bytes(std::span(o)), args.out.address));
  ASSERT_TRUE(device->read(std::as_writable_bytes(std::span(lse)), args.lse.address));
  for (std::size_t i = 0; i < o.size(); ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(o[i]) << 16);
    EXPECT_NEAR(value, i % 2 == 0 ? 4.0F : -2.0F, 0.02) << i;
  }
  for (std::size_t row = 0; row < 3; ++row) EXPECT_NEAR(lse[row], 0.5 * static_cast<double>(row), 0.1) << row;
}

}  // namespace
}  // namespace zyfa
