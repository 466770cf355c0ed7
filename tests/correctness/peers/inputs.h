// Query, key and value arrays for the vendor kernels: Gaussian, or activations of a model, in bf16 or quantised to
// e4m3 with one descale per tensor. Every element is kept as the bits the kernel reads and as bf16 bits of the same
// value (without the descale), which the fp64 reference reads: e4m3 is a subset of bf16.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/reference/attention.h"
#include "zyfa/error.h"

namespace zyfa::peers {

enum class Format { kBf16, kE4m3 };

struct Shape {
  std::int64_t batch = 1, queries = 0, keys = 0, heads = 1, key_heads = 1;
};

// [batch, tokens, heads, dim], dense.
struct Array {
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0;
  std::vector<std::uint16_t> values;  // bf16, before the descale
  std::vector<std::uint8_t> e4m3;     // kE4m3 only
  float descale = 1;

  [[nodiscard]] reference::Bf16View view() const {
    return reference::dense_view(values.data(), batch, tokens, heads, dim);
  }
};

struct Inputs {
  Array q, k, v;
  float softmax_scale = 0;
};

// Standard normal values; the seed fixes them.
[[nodiscard]] Inputs gaussian(const Shape& shape, std::int64_t dim_qk, std::int64_t dim_v, Format format,
                              unsigned seed);
// Tensors q, k, v [tokens, heads, dim] of a safetensors file: the last `queries` tokens of the first `keys` as queries.
[[nodiscard]] Expected<Inputs> activations(const std::filesystem::path& file, std::int64_t queries, std::int64_t keys,
                                           Format format);

// The same attention for kernels that want a key head for every query head.
[[nodiscard]] Inputs one_key_head_each(Inputs inputs);

// Nearest e4m3fn, ties to even, saturating at 448 (OCP 8-bit floating point specification).
[[nodiscard]] std::uint8_t to_e4m3(double value);
[[nodiscard]] double from_e4m3(std::uint8_t bits);

}  // namespace zyfa::peers
