// The inputs of one attention problem from a safetensors file: tensors q, k and v, [tokens, heads, dim] or
// [batch, tokens, heads, dim], the metadata entries "mask" and "softmax_scale", and for F8_E4M3 inputs the F32 tensors
// "q_descale", "k_descale" and "v_descale": [1], [batch, key heads], or [key heads] where there is one batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/io/safetensors.h"
#include "zyfa/error.h"
#include "zyfa/problem.h"

namespace zyfa::io {

// An 8-bit input's value is code * descale. One value (batch and heads 1), or one per batch and key head.
struct Descale {
  std::int64_t batch = 1, heads = 1;
  std::vector<float> values;  // [batch, heads], dense; empty when the file has none: 1

  [[nodiscard]] float at(std::int64_t b, std::int64_t key_head) const {
    if (values.empty()) return 1.0F;
    return values[static_cast<std::size_t>((batch == 1 ? 0 : b * heads) + (heads == 1 ? 0 : key_head))];
  }
};

struct AttentionInputs {
  DType dtype = DType::kBf16;
  std::vector<std::int64_t> q_shape, k_shape, v_shape;  // as in the file: three extents, or four with a batch
  std::vector<std::byte> q, k, v;                       // dense, in the order of their shapes
  std::optional<Mask> mask;                             // nothing when the file does not say
  std::optional<double> softmax_scale;
  Descale q_descale, k_descale, v_descale;

  // Extents as if the batch were always there.
  [[nodiscard]] std::int64_t batch() const { return q_shape.size() == 4 ? q_shape[0] : 1; }
  [[nodiscard]] std::int64_t query_length() const { return q_shape[q_shape.size() - 3]; }
  [[nodiscard]] std::int64_t key_length() const { return k_shape[k_shape.size() - 3]; }
  [[nodiscard]] std::int64_t query_heads() const { return q_shape[q_shape.size() - 2]; }
  [[nodiscard]] std::int64_t key_heads() const { return k_shape[k_shape.size() - 2]; }
  [[nodiscard]] std::int64_t head_dim_qk() const { return q_shape.back(); }
  [[nodiscard]] std::int64_t head_dim_v() const { return v_shape.back(); }
};

// kNotFound: a tensor is missing. kUnsupported: an element type that attention does not take. kInvalidArgument: shapes
// that do not fit together, a mask or scale that cannot be read, or descales of inputs that are not 8-bit; each names
// the file, the value and what is allowed.
[[nodiscard]] Expected<AttentionInputs> attention_inputs(const Safetensors& file, const std::string& name);
[[nodiscard]] Expected<AttentionInputs> read_attention_inputs(const std::filesystem::path& path);

}  // namespace zyfa::io
