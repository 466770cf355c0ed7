#include "runtime/io/attention_inputs.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/io/file.h"

namespace zyfa::io {
namespace {

tl::unexpected<Error> bad(const std::string& message) { return make_error(ErrorCode::kInvalidArgument, message); }

std::optional<DType> dtype_of(ElementType type) {
  switch (type) {
    case ElementType::kBf16:
      return DType::kBf16;
    case ElementType::kF16:
      return DType::kFp16;
    case ElementType::kF8E4M3:
      return DType::kFp8E4M3;
    default:
      return std::nullopt;
  }
}

Status check_shapes(const AttentionInputs& in, const std::string& name) {
  const std::string shapes =
      name + ": q " + shape_text(in.q_shape) + ", k " + shape_text(in.k_shape) + ", v " + shape_text(in.v_shape);
  const std::size_t rank = in.q_shape.size();
  if ((rank != 3 && rank != 4) || in.k_shape.size() != rank || in.v_shape.size() != rank) {
    return bad(shapes + ": all must be [tokens, heads, dim] or all [batch, tokens, heads, dim]");
  }
  if (rank == 4 && (in.k_shape[0] != in.q_shape[0] || in.v_shape[0] != in.q_shape[0])) {
    return bad(shapes + ": the batches differ");
  }
  if (in.v_shape[rank - 3] != in.key_length() || in.v_shape[rank - 2] != in.key_heads()) {
    return bad(shapes + ": k and v must have the same tokens and heads");
  }
  if (in.k_shape.back() != in.head_dim_qk()) {
    return bad(shapes + ": q and k must have the same head dim");
  }
  if (in.query_heads() == 0 || in.key_heads() == 0 || in.query_heads() % in.key_heads() != 0) {
    return bad(shapes + ": query heads " + std::to_string(in.query_heads()) + " must be a multiple of key heads " +
               std::to_string(in.key_heads()) + ", both at least 1");
  }
  if (in.head_dim_qk() == 0 || in.head_dim_v() == 0) {
    return bad(shapes + ": head dims must be at least 1");
  }
  return {};
}

Status read_metadata(const Safetensors& file, AttentionInputs& in, const std::string& name) {
  const auto mask = file.metadata().find("mask");
  if (mask != file.metadata().end()) {
    if (mask->second != "causal" && mask->second != "full") {
      return bad(name + ": metadata mask is " + quote(mask->second) + "; must be causal or full");
    }
    in.mask = mask->second == "causal" ? Mask::kCausal : Mask::kFull;
  }
  const auto scale = file.metadata().find("softmax_scale");
  if (scale != file.metadata().end()) {
    const std::string& text = scale->second;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      return bad(name + ": metadata softmax_scale is " + quote(text) + "; must be a finite number");
    }
    in.softmax_scale = value;
  }
  return {};
}

Status read_descale(const Safetensors& file, const AttentionInputs& in, const std::string& name,
                    const std::string& tensor_name, Descale& descale) {
  const auto found = file.tensors().find(tensor_name);
  if (found == file.tensors().end()) {
    return {};
  }
  const Tensor& tensor = found->second;
  const std::string what = name + ": tensor '" + tensor_name + "'";
  if (in.dtype != DType::kFp8E4M3) {
    return bad(what + " is for inputs of dtype F8_E4M3");
  }
  if (tensor.type != ElementType::kF32) {
    return bad(what + " has dtype " + std::string(safetensors_name(tensor.type)) + "; must be F32");
  }
  const std::vector<std::int64_t> one{1}, heads{in.key_heads()}, all{in.batch(), in.key_heads()};
  if (tensor.shape == all || (tensor.shape == heads && in.batch() == 1)) {
    descale.batch = in.batch();
    descale.heads = in.key_heads();
  } else if (tensor.shape != one) {
    return bad(what + " is " + shape_text(tensor.shape) + "; must be [1] or [batch, key heads], here " +
               shape_text(all) + (in.batch() == 1 ? " or " + shape_text(heads) : ""));
  }
  descale.values.resize(tensor.bytes.size() / sizeof(float));
  if (!descale.values.empty()) {
    std::memcpy(descale.values.data(), tensor.bytes.data(), tensor.bytes.size());
  }
  return {};
}

}  // namespace

Expected<AttentionInputs> attention_inputs(const Safetensors& file, const std::string& name) {
  AttentionInputs in;
  struct Role {
    const char* tensor;
    std::vector<std::int64_t>& shape;
    std::vector<std::byte>& bytes;
  };
  std::optional<ElementType> first;
  for (const Role& role : {Role{"q", in.q_shape, in.q}, Role{"k", in.k_shape, in.k}, Role{"v", in.v_shape, in.v}}) {
    Expected<Tensor> tensor = file.find(role.tensor);
    if (!tensor) {
      return tl::unexpected<Error>(tensor.error());
    }
    if (!first.has_value()) {
      first = tensor->type;
    }
    const std::optional<DType> dtype = dtype_of(tensor->type);
    if (!dtype) {
      return make_error(ErrorCode::kUnsupported, name + ": tensor '" + role.tensor + "' has dtype " +
                                                     std::string(safetensors_name(tensor->type)) +
                                                     "; attention takes BF16, F16 or F8_E4M3");
    }
    if (tensor->type != *first) {
      return bad(name + ": tensor '" + role.tensor + "' has dtype " + std::string(safetensors_name(tensor->type)) +
                 ", but q has " + std::string(safetensors_name(*first)) + "; q, k and v must have the same");
    }
    in.dtype = *dtype;
    role.shape = tensor->shape;
    role.bytes.assign(tensor->bytes.begin(), tensor->bytes.end());
  }
  if (Status status = check_shapes(in, name); !status) {
    return tl::unexpected<Error>(status.error());
  }
  Status status = read_metadata(file, in, name);
  for (const auto& [tensor, descale] :
       {std::pair("q_descale", &in.q_descale), {"k_descale", &in.k_descale}, {"v_descale", &in.v_descale}}) {
    if (status) {
      status = read_descale(file, in, name, tensor, *descale);
    }
  }
  if (!status) {
    return tl::unexpected<Error>(status.error());
  }
  return in;
}

Expected<AttentionInputs> read_attention_inputs(const std::filesystem::path& path) {
  const Expected<Safetensors> file = Safetensors::read(path);
  if (!file) {
    return tl::unexpected<Error>(file.error());
  }
  return attention_inputs(*file, path.string());
}

}  // namespace zyfa::io
