// The kernel-argument segment of the attention forward kernels: one layout, read by the emitted code and packed by
// runtime. Strides are in bytes. Changing anything here changes the argument-layout hash and so every cache key.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zyfa::schedules {

struct TensorArgs {
  std::uint64_t address;
  std::uint64_t token_stride, head_stride, batch_stride;
};

// float32, one value or [B, Hk]: the value of (b, key head) stands at address + b * batch_stride + h * head_stride.
struct DescaleArgs {
  std::uint64_t address;
  std::uint64_t batch_stride, head_stride;
};

struct AttentionForwardArgs {
  TensorArgs q, k, v, o;      // [B, S, H, D] views, last dim contiguous
  std::uint64_t lse_address;  // float32 [B, H, Sq], rows contiguous; unused when the kernel has no LSE output
  std::uint64_t lse_head_stride, lse_batch_stride;
  std::int32_t query_length, key_length;
  // 2^31 / (query heads per key head), rounded up: key head = mulhi(2 * head + 1, head_ratio_magic); exact for
  // heads <= 32768, because (2h+1)/(2r) is never an integer and lies at least 1/(2r) from the next one.
  std::uint32_t head_ratio_magic;
  float score_scale_log2;  // softmax_scale * log2(e)
  // 8-bit kernels.
  DescaleArgs q_descale = {}, k_descale = {}, v_descale = {};  // address null: 1.0
  TensorArgs q_near = {}, k_near = {}, v_near = {};            // NearKeys::kBf16: the inputs before quantisation
};

static_assert(sizeof(AttentionForwardArgs) == 336 && offsetof(AttentionForwardArgs, lse_address) == 128 &&
              offsetof(AttentionForwardArgs, query_length) == 152 && offsetof(AttentionForwardArgs, q_descale) == 168 &&
              offsetof(AttentionForwardArgs, q_near) == 240);

}  // namespace zyfa::schedules
