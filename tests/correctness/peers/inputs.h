// Query, key and value arrays for the vendor kernels: Gaussian, or activations of a model, in the formats and layouts
// that the kernels read. Every element is also kept as bf16 bits of the value that its code and block scale stand for,
// which is exact, and which the fp64 reference reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/reference/attention.h"
#include "zyfa/error.h"

namespace zyfa::peers {

// Scales: one f32 a tensor for kE4m3 and kI8, one f32 a channel for kE4m3Channel (V only), one E8M0 for every 32
// elements for kMx*, along the head dim in Q and K and along the keys in V.
enum class Format { kBf16, kE4m3, kI8, kE4m3Channel, kMxE4m3, kMxE2m3, kMxE2m1 };
[[nodiscard]] constexpr bool is_mx(Format f) {
  return f == Format::kMxE4m3 || f == Format::kMxE2m3 || f == Format::kMxE2m1;
}

struct Shape {
  std::int64_t batch = 1, queries = 0, keys = 0, heads = 1, key_heads = 1;
};

// [batch, tokens, heads, dim].
struct Array {
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0;
  std::vector<std::uint16_t> values;  // bf16, dense, without the descale of a whole tensor
  float descale = 1;                  // of the tensor
  std::vector<std::uint8_t> bytes;    // what the kernel reads
  std::int64_t token_stride = 0, head_stride = 0, batch_stride = 0;  // of `bytes`
  std::vector<std::uint8_t> descales;                                // what the kernel reads, empty for bf16
  std::int64_t descale_head_stride = 0, descale_batch_stride = 0;    // bytes

  [[nodiscard]] reference::Bf16View view() const {
    return reference::dense_view(values.data(), batch, tokens, heads, dim);
  }
};

struct Inputs {
  Array q, k, v;
  float softmax_scale = 0;
  double score_scale = 0;  // what turns q . k of `values` into scores
};

struct Formats {
  Format qk, v;
};

// Standard normal values; the seed fixes them.
[[nodiscard]] Inputs gaussian(const Shape& shape, std::int64_t dim_qk, std::int64_t dim_v, Formats formats,
                              unsigned seed);

enum class KeyHeads { kShared, kOneEach };  // kOneEach: repeated for kernels that want one for every query head
// Tensors q, k, v [tokens, heads, dim] of a safetensors file: the last `queries` tokens of the first `keys` as queries.
[[nodiscard]] Expected<Inputs> activations(const std::filesystem::path& file, std::int64_t queries, std::int64_t keys,
                                           Formats formats, KeyHeads key_heads);

}  // namespace zyfa::peers
