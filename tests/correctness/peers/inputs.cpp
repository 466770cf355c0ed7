#include "tests/correctness/peers/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <utility>

#include "runtime/io/safetensors.h"
#include "tests/correctness/peers/pack.h"

namespace zyfa::peers {
namespace {

// Dense values before quantisation.
struct Raw {
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0;
  std::vector<double> values;
};

Raw with_heads(const Raw& raw, std::int64_t heads) {
  Raw result{raw.batch, raw.tokens, heads, raw.dim, {}};
  for (auto row = raw.values.begin(); row != raw.values.end(); row += raw.dim) {
    for (std::int64_t i = 0; i < heads / raw.heads; ++i) {
      result.values.insert(result.values.end(), row, row + raw.dim);
    }
  }
  return result;
}

Inputs make_inputs(Raw q, const Raw& k, const Raw& v, Formats formats) {
  Inputs inputs;
  inputs.softmax_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(q.dim)));
  // With block scales Q holds the softmax scale, and scores are in base 2.
  if (is_mx(formats.qk)) {
    for (double& x : q.values) {
      x *= inputs.softmax_scale * std::numbers::log2e;
    }
  }
  const auto packed = [](const Raw& r, Format format, Operand operand) {
    return pack(r.batch, r.tokens, r.heads, r.dim, r.values, format, operand);
  };
  inputs.q = packed(q, formats.qk, Operand::kQ);
  inputs.k = packed(k, formats.qk, Operand::kK);
  inputs.v = packed(v, formats.v, Operand::kV);
  inputs.score_scale = is_mx(formats.qk)
                           ? std::numbers::ln2
                           : static_cast<double>(inputs.softmax_scale) * inputs.q.descale * inputs.k.descale;
  return inputs;
}

}  // namespace

Inputs gaussian(const Shape& shape, std::int64_t dim_qk, std::int64_t dim_v, Formats formats, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto draw = [&](std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
    Raw raw{shape.batch, tokens, heads, dim, {}};
    raw.values.resize(static_cast<std::size_t>(shape.batch * tokens * heads * dim));
    std::generate(raw.values.begin(), raw.values.end(), [&] { return normal(random); });
    return raw;
  };
  Raw q = draw(shape.queries, shape.heads, dim_qk);
  const Raw k = draw(shape.keys, shape.key_heads, dim_qk), v = draw(shape.keys, shape.key_heads, dim_v);
  return make_inputs(std::move(q), k, v, formats);
}

Expected<Inputs> activations(const std::filesystem::path& file, std::int64_t queries, std::int64_t keys,
                             Formats formats, KeyHeads key_heads) {
  const Expected<io::Safetensors> tensors = io::Safetensors::read(file);
  if (!tensors) {
    return tl::unexpected<Error>(tensors.error());
  }
  Raw q, k, v;
  for (const auto& [name, raw] : {std::pair("q", &q), {"k", &k}, {"v", &v}}) {
    const Expected<io::Tensor> tensor = tensors->find(name);
    if (!tensor) {
      return tl::unexpected<Error>(tensor.error());
    }
    if (tensor->type != io::ElementType::kBf16 || tensor->shape.size() != 3 || tensor->shape[0] < keys ||
        queries > keys) {
      return make_error(ErrorCode::kInvalidArgument, file.string() + ": " + name + " is " +
                                                         io::shape_text(tensor->shape) +
                                                         "; must be bf16 [tokens, heads, dim] with enough tokens");
    }
    *raw = {1, raw == &q ? queries : keys, tensor->shape[1], tensor->shape[2], {}};
    raw->values.resize(static_cast<std::size_t>(raw->tokens * raw->heads * raw->dim));
    const std::byte* from = tensor->bytes.data() + 2 * (keys - raw->tokens) * raw->heads * raw->dim;
    for (double& value : raw->values) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof bits);
      from += sizeof bits;
      value = reference::bf16_to_double(bits);
    }
  }
  if (key_heads == KeyHeads::kOneEach) {
    k = with_heads(k, q.heads);
    v = with_heads(v, q.heads);
  }
  return make_inputs(std::move(q), k, v, formats);
}

}  // namespace zyfa::peers
