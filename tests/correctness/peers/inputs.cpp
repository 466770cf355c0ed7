#include "tests/correctness/peers/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "runtime/io/safetensors.h"

namespace zyfa::peers {
namespace {

constexpr double kLargestE4m3 = 448;

Array make_array(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t dim,
                 const std::vector<double>& exact, Format format) {
  Array array{.batch = batch, .tokens = tokens, .heads = heads, .dim = dim, .values = {}, .e4m3 = {}, .descale = 1};
  if (format == Format::kE4m3) {
    double largest = 0;
    for (const double x : exact) {
      largest = std::max(largest, std::abs(x));
    }
    array.descale = largest == 0 ? 1.0F : static_cast<float>(largest / kLargestE4m3);
  }
  array.values.reserve(exact.size());
  for (const double x : exact) {
    double value = x;
    if (format == Format::kE4m3) {
      array.e4m3.push_back(to_e4m3(x / array.descale));
      value = from_e4m3(array.e4m3.back());
    }
    array.values.push_back(reference::double_to_bf16(value));
  }
  return array;
}

}  // namespace

double from_e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) {
    return std::nan("");
  }
  const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (bits & 0x80) != 0 ? -size : size;
}

std::uint8_t to_e4m3(double value) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  const double size = std::min(std::abs(value), kLargestE4m3);
  // The step is 2^-9 up to 2^-6 and doubles with every binade; rounding up may carry into the next one, which the sum
  // of exponent and mantissa fields takes care of.
  const int binade = size < std::ldexp(1, -6) ? -6 : std::ilogb(size);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - binade)));
  return static_cast<std::uint8_t>(sign | ((binade + 6) * 8 + steps));
}

Inputs gaussian(const Shape& shape, std::int64_t dim_qk, std::int64_t dim_v, Format format, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto draw = [&](std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
    std::vector<double> exact(static_cast<std::size_t>(shape.batch * tokens * heads * dim));
    std::generate(exact.begin(), exact.end(), [&] { return normal(random); });
    return make_array(shape.batch, tokens, heads, dim, exact, format);
  };
  Inputs inputs;
  inputs.q = draw(shape.queries, shape.heads, dim_qk);
  inputs.k = draw(shape.keys, shape.key_heads, dim_qk);
  inputs.v = draw(shape.keys, shape.key_heads, dim_v);
  inputs.softmax_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim_qk)));
  return inputs;
}

Inputs one_key_head_each(Inputs inputs) {
  const auto repeat = [&](auto& values, const Array& array) {
    const std::int64_t times = inputs.q.heads / array.heads;
    auto old = std::exchange(values, {});
    for (auto row = old.begin(); row != old.end(); row += array.dim) {
      for (std::int64_t i = 0; i < times; ++i) {
        values.insert(values.end(), row, row + array.dim);
      }
    }
  };
  for (Array* array : {&inputs.k, &inputs.v}) {
    repeat(array->values, *array);
    repeat(array->e4m3, *array);
    array->heads = inputs.q.heads;
  }
  return inputs;
}

Expected<Inputs> activations(const std::filesystem::path& file, std::int64_t queries, std::int64_t keys,
                             Format format) {
  const Expected<io::Safetensors> tensors = io::Safetensors::read(file);
  if (!tensors) {
    return tl::unexpected<Error>(tensors.error());
  }
  Inputs inputs;
  for (const auto& [name, array] : {std::pair("q", &inputs.q), {"k", &inputs.k}, {"v", &inputs.v}}) {
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
    const std::int64_t tokens = array == &inputs.q ? queries : keys;
    const std::int64_t heads = tensor->shape[1], dim = tensor->shape[2];
    std::vector<double> exact(static_cast<std::size_t>(tokens * heads * dim));
    const std::byte* from = tensor->bytes.data() + 2 * (keys - tokens) * heads * dim;
    for (double& value : exact) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof bits);
      from += sizeof bits;
      value = reference::bf16_to_double(bits);
    }
    *array = make_array(1, tokens, heads, dim, exact, format);
  }
  inputs.softmax_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(inputs.q.dim)));
  return inputs;
}

}  // namespace zyfa::peers
