// Attention on the simulated device through the public API, on inputs whose result is known by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "zyfa/attention.h"

namespace zyfa {
namespace {

constexpr std::int64_t kDim = 128;

// bfloat16 of a value that needs no rounding.
std::uint16_t bf16(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }
float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

class SimAttentionTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto device = SimDevice::create({.checks = SimChecks::kStrict});
    ASSERT_TRUE(device) << to_string(device.error());
    device_ = *device;
  }

  template <typename T>
  DeviceAddress upload(const std::vector<T>& values) {
    const DeviceAddress address = device_->allocate(values.size() * sizeof(T)).value();
    EXPECT_TRUE(device_->write(address, std::as_bytes(std::span(values))));
    return address;
  }

  template <typename T>
  std::vector<T> download(DeviceAddress address, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(device_->read(std::as_writable_bytes(std::span(values)), address));
    return values;
  }

  std::shared_ptr<Attention> compile(Mask mask) {
    const auto attention =
        Attention::compile({.mask = mask, .lse = Lse::kWritten},
                           {.device = device_, .placement = GetParam(), .cache = {.mode = CacheMode::kOff}});
    EXPECT_TRUE(attention) << to_string(attention.error());
    return attention.value_or(nullptr);
  }

  std::shared_ptr<SimDevice> device_;
};

// One key: the output is its value, exactly, and the LSE its score. Two batches, two query heads on one key head.
TEST_P(SimAttentionTest, one_key_gives_its_value_and_its_score) {
  const auto attention = compile(Mask::kFull);
  ASSERT_NE(attention, nullptr);
  std::vector<std::uint16_t> q(2 * 3 * 2 * kDim, bf16(0)), k(2 * kDim, bf16(0)), v(2 * kDim);
  for (std::int64_t row = 0; row < 12; ++row) q[static_cast<std::size_t>(row * kDim)] = bf16(static_cast<float>(row));
  k[0] = bf16(2);         // batch 0: score 2 * row
  k[kDim] = bf16(-0.5f);  // batch 1: score -row / 2
  for (std::size_t d = 0; d < v.size(); ++d) v[d] = bf16(static_cast<float>(d) - 128);
  const DeviceAddress out = upload(std::vector<std::uint16_t>(q.size())), lse = upload(std::vector<float>(12));
  const Status launched = attention->launch({.q = TensorView::contiguous(upload(q), 2, 3, 2, kDim),
                                             .k = TensorView::contiguous(upload(k), 2, 1, 1, kDim),
                                             .v = TensorView::contiguous(upload(v), 2, 1, 1, kDim),
                                             .out = TensorView::contiguous(out, 2, 3, 2, kDim),
                                             .lse = LseView::contiguous(lse, 2, 2, 3),
                                             .softmax_scale = 0.25f});
  ASSERT_TRUE(launched) << to_string(launched.error());
  const auto o = download<std::uint16_t>(out, q.size());
  const auto l = download<float>(lse, 12);
  for (std::size_t batch = 0; batch < 2; ++batch) {
    for (std::size_t token = 0; token < 3; ++token) {
      for (std::size_t head = 0; head < 2; ++head) {
        const std::size_t row = (batch * 3 + token) * 2 + head;
        for (std::size_t d = 0; d < kDim; ++d) {
          ASSERT_EQ(from_bf16(o[row * kDim + d]), from_bf16(v[batch * kDim + d])) << row << " " << d;
        }
        const double score = static_cast<double>(row) * (batch == 0 ? 2 : -0.5) * 0.25;
        EXPECT_NEAR(l[(batch * 2 + head) * 3 + token], score, 1e-5) << row;
      }
    }
  }
}

// Equal scores: the output is the mean of the visible values and the LSE the logarithm of their count. Bottom-right
// causal with 3 queries and 5 keys: query i sees keys 0 to i + 2.
TEST_P(SimAttentionTest, equal_scores_average_the_visible_keys) {
  const auto attention = compile(Mask::kCausal);
  ASSERT_NE(attention, nullptr);
  const std::vector<std::uint16_t> zeros(5 * kDim, bf16(0));
  std::vector<std::uint16_t> v(5 * kDim);
  for (std::size_t key = 0; key < 5; ++key) {
    for (std::size_t d = 0; d < kDim; ++d) v[key * kDim + d] = bf16(static_cast<float>(12 * key));
  }
  const DeviceAddress out = upload(zeros), lse = upload(std::vector<float>(3));
  const Status launched = attention->launch({.q = TensorView::contiguous(upload(zeros), 1, 3, 1, kDim),
                                             .k = TensorView::contiguous(upload(zeros), 1, 5, 1, kDim),
                                             .v = TensorView::contiguous(upload(v), 1, 5, 1, kDim),
                                             .out = TensorView::contiguous(out, 1, 3, 1, kDim),
                                             .lse = LseView::contiguous(lse, 1, 1, 3)});
  ASSERT_TRUE(launched) << to_string(launched.error());
  const auto o = download<std::uint16_t>(out, 3 * kDim);
  const auto l = download<float>(lse, 3);
  const float means[] = {12, 18, 24};  // of 0 12 24, of 0 12 24 36, of 0 12 24 36 48
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t d = 0; d < kDim; ++d) ASSERT_NEAR(from_bf16(o[i * kDim + d]), means[i], 0.1) << i << " " << d;
    EXPECT_NEAR(l[i], std::log(static_cast<double>(i + 3)), 1e-5);
  }
}

// Causal with more queries than keys: the first rows see nothing. No keys at all: no row does.
TEST_P(SimAttentionTest, rows_that_see_no_key_give_zero_and_minus_infinity) {
  const auto attention = compile(Mask::kCausal);
  ASSERT_NE(attention, nullptr);
  for (std::int64_t keys : {0, 1}) {
    const std::vector<std::uint16_t> ones(4 * kDim, bf16(1));
    const DeviceAddress out = upload(ones), lse = upload(std::vector<float>(4, 7.0f));
    const DeviceAddress kv = keys == 0 ? 0 : upload(ones);
    const Status launched = attention->launch({.q = TensorView::contiguous(upload(ones), 1, 4, 1, kDim),
                                               .k = TensorView::contiguous(kv, 1, keys, 1, kDim),
                                               .v = TensorView::contiguous(kv, 1, keys, 1, kDim),
                                               .out = TensorView::contiguous(out, 1, 4, 1, kDim),
                                               .lse = LseView::contiguous(lse, 1, 1, 4)});
    ASSERT_TRUE(launched) << to_string(launched.error());
    const auto o = download<std::uint16_t>(out, 4 * kDim);
    const auto l = download<float>(lse, 4);
    for (std::size_t i = 0; i < 4; ++i) {
      const bool sees = static_cast<std::int64_t>(i) + keys >= 4;
      EXPECT_EQ(o[i * kDim], sees ? bf16(1) : 0) << i << " of " << keys;
      EXPECT_EQ(o[i * kDim + 127], sees ? bf16(1) : 0);
      if (!sees) {
        EXPECT_EQ(l[i], -std::numeric_limits<float>::infinity());
      }
    }
  }
}

// The device survives a launch that faults, and says where it went wrong.
TEST_P(SimAttentionTest, a_view_past_its_buffer_is_a_memory_fault_not_a_crash) {
  const auto attention = compile(Mask::kFull);
  ASSERT_NE(attention, nullptr);
  const DeviceAddress small = upload(std::vector<std::uint16_t>(kDim, bf16(1)));
  const DeviceAddress lse = upload(std::vector<float>(64));
  const TensorView view = TensorView::contiguous(small, 1, 64, 1, kDim);
  const Status launched =
      attention->launch({.q = view, .k = view, .v = view, .out = view, .lse = LseView::contiguous(lse, 1, 1, 64)});
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, ErrorCode::kMemoryFault);
}

INSTANTIATE_TEST_SUITE_P(Schedules, SimAttentionTest, ::testing::Values("pingpong", "naive"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace zyfa
