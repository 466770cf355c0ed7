// The kernel-argument segment of the quantise kernels, both families: one layout, read by the emitted code and packed
// by runtime. Strides are in bytes. Changing anything here changes their argument-layout hash.
//
// A workgroup is one wave; workgroup (x, y, z) works on tokens [x, x + 1) * group_tokens of batch z, for all heads that
// share key head y. It takes blocks of kQuantiseBlockTokens tokens of one head, heads innermost.
//
// Partials, one for each workgroup of the statistics kernel. Without smoothing: a float, the largest |value| of finite
// values (int8: +inf when any value was not finite); of rotated values, divided by sqrt(128). With smoothing: three
// rows of `dims` floats: sum, smallest and largest of each dim, in units that only the quantise kernel knows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schedules/select/kernel_args.h"
#include "schedules/select/kernel_spec.h"

namespace zyfa::schedules {

inline constexpr std::uint32_t kQuantiseBlockTokens = 16;
inline constexpr std::uint32_t kMaxPartials = 256;          // of a (batch, key head), without smoothing
inline constexpr std::uint32_t kMaxSmoothingPartials = 32;  // with it

// Bytes of one workgroup's partial.
[[nodiscard]] constexpr std::uint32_t partial_bytes(Smoothing smoothing, std::uint32_t dims) {
  return smoothing == Smoothing::kMean ? 12 * dims : 4;
}

struct QuantiseArgs {
  TensorArgs input = {};  // BF16 [B, S, H, D]
  TensorArgs codes = {};  // quantise: 8-bit, written
  // Partial x of (b, key head h): address + b * batch_stride + h * head_stride + x * partial_bytes(). Quantise with
  // one scale a tensor: strides of 0 where that does not select what is read (below).
  std::uint64_t partials = 0, partials_head_stride = 0, partials_batch_stride = 0;
  DescaleArgs descale = {};      // quantise: [B, Hk], written by workgroups of x = 0
  DescaleArgs key_descale = {};  // quantise q, folded form: k's, read
  std::int32_t tokens = 0;
  std::int32_t group_tokens = 0;  // of a workgroup; a multiple of kQuantiseBlockTokens
  std::int32_t heads = 0;         // that share a key head: query heads per key head for q, 1 for k and v
  // Quantise. Without smoothing: floats to reduce, from the selected address on: those of the key head, or (strides 0)
  // of the whole tensor. With smoothing: partials of a (batch, key head).
  std::uint32_t partial_count = 0;
  std::uint32_t entry_count =
      0;  // quantise with smoothing, one scale a tensor: B * Hk entries, head_stride apart; else 0
  float score_mantissa = 1.0F;  // quantise q, folded form: |softmax_scale| * log2(e) times a power of two, in [1, 2)
};

static_assert(sizeof(QuantiseArgs) == 160 && offsetof(QuantiseArgs, codes) == 32 &&
              offsetof(QuantiseArgs, partials) == 64 && offsetof(QuantiseArgs, descale) == 88 &&
              offsetof(QuantiseArgs, key_descale) == 112 && offsetof(QuantiseArgs, tokens) == 136);

}  // namespace zyfa::schedules
