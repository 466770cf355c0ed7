// Attention in double precision, as textbooks write it: the yardstick for every kernel. Shares no code with kernels.
//
// Semantics (attention-semantics.md): s[i,j] = softmax_scale * (q_i . k_j); query head h reads key head h / (H / Hk);
// every row sees one interval of keys (visible_keys), and the bytes of a key outside it are never read, so they may
// be NaN. A row with an empty interval gives O = 0 and LSE = -inf. LSE is the natural log of the sum divided by.
// Results are the same bits for every thread count and instruction set: the order of additions is fixed and
// multiply-adds are never contracted.
#pragma once

#include <cstdint>
#include <vector>

#include "zyfa/error.h"

namespace zyfa::reference {

// A [batch, tokens, heads, dim] view; strides in elements, dim contiguous. Strides may be 0 or negative. `data` may be
// null when the view holds no element.
template <typename Element>
struct BasicView {
  const Element* data = nullptr;
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0;
  std::int64_t batch_stride = 0, token_stride = 0, head_stride = 0;

  [[nodiscard]] const Element* row(std::int64_t b, std::int64_t token, std::int64_t head) const {
    return data + b * batch_stride + token * token_stride + head * head_stride;
  }
};

using Bf16View = BasicView<std::uint16_t>;  // bfloat16 bit patterns
using DoubleView = BasicView<double>;       // e.g. dequantised inputs

// View of a dense [batch, tokens, heads, dim] array.
[[nodiscard]] Bf16View dense_view(const std::uint16_t* data, std::int64_t batch, std::int64_t tokens,
                                  std::int64_t heads, std::int64_t dim);

[[nodiscard]] DoubleView dense_double_view(const double* data, std::int64_t batch, std::int64_t tokens,
                                           std::int64_t heads, std::int64_t dim);

enum class Mask { kFull, kCausal };  // causal is aligned to the bottom right: j <= i + Sk - Sq

template <typename View>
struct BasicCase {
  View q, k, v;
  Mask mask = Mask::kFull;
  double softmax_scale = 0.0;  // no default: 1/sqrt(D) is the caller's business
};
using AttentionCase = BasicCase<Bf16View>;
using DoubleCase = BasicCase<DoubleView>;

struct AttentionResult {
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0;
  std::vector<double> o;    // [batch, tokens, heads, dim]
  std::vector<double> lse;  // [batch, heads, tokens]

  [[nodiscard]] const double* o_row(std::int64_t b, std::int64_t token, std::int64_t head) const {
    return o.data() + ((b * tokens + token) * heads + head) * dim;
  }
  [[nodiscard]] double lse_at(std::int64_t b, std::int64_t head, std::int64_t token) const {
    return lse[static_cast<std::size_t>((b * heads + head) * tokens + token)];
  }
};

struct KeyInterval {
  std::int64_t begin = 0, end = 0;  // empty when begin >= end
};

// Keys that query `i` of `query_length` sees among `key_length`.
[[nodiscard]] KeyInterval visible_keys(Mask mask, std::int64_t i, std::int64_t query_length, std::int64_t key_length);

// kInvalidArgument, naming the values, when the shapes do not fit together.
[[nodiscard]] Status check_case(const AttentionCase& problem);
[[nodiscard]] Status check_case(const DoubleCase& problem);

// kInvalidArgument, naming the values, when the shapes do not fit together. `threads` = 0 means one per core.
[[nodiscard]] Expected<AttentionResult> attention(const AttentionCase& problem, unsigned threads = 0);
[[nodiscard]] Expected<AttentionResult> attention(const DoubleCase& problem, unsigned threads = 0);

// Exact value of a bfloat16 bit pattern.
[[nodiscard]] double bf16_to_double(std::uint16_t bits);
// Nearest bfloat16, ties to even; NaN stays NaN.
[[nodiscard]] std::uint16_t double_to_bf16(double value);

}  // namespace zyfa::reference
