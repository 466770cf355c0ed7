#include "tests/reference/quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/reference/eight_bit.h"
#include "tests/reference/loops.h"

namespace zyfa::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Dense values of one operand, and which scale each row takes.
struct Values {
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 0, key_heads = 0;
  std::vector<double> data;

  std::int64_t scale_index(std::int64_t b, std::int64_t head) const {
    return b * key_heads + head / (heads / key_heads);
  }
  std::span<double> row(std::int64_t b, std::int64_t token, std::int64_t head) {
    return {data.data() + ((b * tokens + token) * heads + head) * dim, index(dim)};
  }
  template <typename Visit>
  void for_each_row(const Visit& visit) {
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t h = 0; h < heads; ++h) {
          visit(row(b, t, h), scale_index(b, h));
        }
      }
    }
  }
};

Values read(const Bf16View& view, std::int64_t key_heads, Rotation rotation) {
  Values result{view.batch, view.tokens, view.heads, view.dim, key_heads, {}};
  result.data.resize(index(view.batch * view.tokens * view.heads * view.dim));
  for (std::int64_t b = 0; b < view.batch; ++b) {
    for (std::int64_t t = 0; t < view.tokens; ++t) {
      for (std::int64_t h = 0; h < view.heads; ++h) {
        const std::span<double> row = result.row(b, t, h);
        std::transform(view.row(b, t, h), view.row(b, t, h) + view.dim, row.begin(), bf16_to_double);
        if (rotation == Rotation::kHadamard) {
          rotate(row);
        }
      }
    }
  }
  return result;
}

void subtract_mean(Values& k) {
  std::vector<double> mean(index(k.batch * k.key_heads * k.dim));
  k.for_each_row([&](std::span<double> row, std::int64_t scale) {
    for (std::size_t d = 0; d < row.size(); ++d) {
      mean[index(scale * k.dim) + d] += row[d] / static_cast<double>(k.tokens);
    }
  });
  k.for_each_row([&](std::span<double> row, std::int64_t scale) {
    for (std::size_t d = 0; d < row.size(); ++d) {
      row[d] -= mean[index(scale * k.dim) + d];
    }
  });
}

// Largest finite magnitude of each (batch, key head), all the same for one scale a tensor.
std::vector<double> magnitudes(Values& values, ScaleScope scope) {
  std::vector<double> result(index(values.batch * values.key_heads));
  values.for_each_row([&](std::span<double> row, std::int64_t scale) {
    for (const double value : row) {
      result[index(scale)] =
          std::isfinite(value) ? std::max(result[index(scale)], std::abs(value)) : result[index(scale)];
    }
  });
  if (scope == ScaleScope::kTensor && !result.empty()) {
    std::fill(result.begin(), result.end(), *std::max_element(result.begin(), result.end()));
  }
  return result;
}

// Scales by the magnitudes, not yet rounded to float.
std::vector<double> plain_scales(const std::vector<double>& magnitudes, CodeType type) {
  std::vector<double> result;
  for (const double amax : magnitudes) {
    result.push_back(amax == 0.0 ? 1.0 : amax / (type == CodeType::kE4m3 ? kE4m3Max : kInt8Max));
  }
  return result;
}

// q's scales for the folded form from its plain ones and k's scales.
std::vector<double> folded_scales(const std::vector<double>& plain, const std::vector<float>& k, double softmax_scale) {
  std::vector<double> result;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double size = softmax_scale == 0.0 ? 1.0 : std::abs(softmax_scale);
    const double unit = 8.0 * std::numbers::log2e * size * static_cast<double>(k[i]);
    result.push_back(std::exp2(std::ceil(std::log2(plain[i] * unit))) / unit);
  }
  return result;
}

Codes encode(Values& values, CodeType type, const std::vector<double>& scales) {
  Codes result{type, values.batch, values.tokens, values.heads, values.dim, values.key_heads, {}, {}};
  std::transform(scales.begin(), scales.end(), std::back_inserter(result.descales),
                 [](double scale) { return static_cast<float>(scale); });
  result.bytes.reserve(values.data.size());
  std::vector<bool> poisoned(scales.size());
  values.for_each_row([&](std::span<double> row, std::int64_t scale) {
    const double divisor = static_cast<double>(static_cast<float>(scales[index(scale)]));
    for (const double value : row) {
      if (type == CodeType::kE4m3) {
        result.bytes.push_back(double_to_e4m3(value / divisor));
      } else if (std::isfinite(value)) {
        result.bytes.push_back(static_cast<std::uint8_t>(double_to_int8(value / divisor)));
      } else {
        result.bytes.push_back(0);
        poisoned[index(scale)] = true;
      }
    }
  });
  for (std::size_t i = 0; i < scales.size(); ++i) {
    result.descales[i] = poisoned[i] ? static_cast<float>(kNan) : result.descales[i];
  }
  return result;
}

}  // namespace

void rotate(std::span<double> row) {
  while (!row.empty()) {
    const std::size_t size = std::bit_floor(row.size());
    for (std::size_t half = 1; half < size; half *= 2) {
      for (std::size_t first = 0; first < size; first += 2 * half) {
        for (std::size_t i = first; i < first + half; ++i) {
          const double a = row[i], b = row[i + half];
          row[i] = a + b;
          row[i + half] = a - b;
        }
      }
    }
    for (double& value : row.first(size)) {
      value /= std::sqrt(static_cast<double>(size));
    }
    row = row.subspan(size);
  }
}

QuantisedInputs quantise(const AttentionCase& problem, const QuantiserOptions& options) {
  const std::int64_t key_heads = problem.k.heads;
  Values q = read(problem.q, key_heads, options.rotation), k = read(problem.k, key_heads, options.rotation),
         v = read(problem.v, key_heads, Rotation::kNone);
  if (options.smoothing == Smoothing::kMean) {
    subtract_mean(k);
  }
  QuantisedInputs result;
  result.k = encode(k, options.scores, plain_scales(magnitudes(k, options.scope), options.scores));
  result.v = encode(v, CodeType::kE4m3, plain_scales(magnitudes(v, options.scope), CodeType::kE4m3));
  std::vector<double> scales = plain_scales(magnitudes(q, options.scope), options.scores);
  if (options.form == ScoreForm::kFolded) {
    scales = folded_scales(scales, result.k.descales, problem.softmax_scale);
  }
  result.q = encode(q, options.scores, scales);
  return result;
}

std::vector<double> dequantise(const Codes& codes) {
  std::array<double, 256> value{};
  for (unsigned code = 0; code < value.size(); ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    value[code] =
        codes.type == CodeType::kE4m3 ? e4m3_to_double(byte) : static_cast<double>(static_cast<std::int8_t>(byte));
  }
  std::vector<double> result;
  result.reserve(codes.bytes.size());
  const std::int64_t group = codes.key_heads == 0 ? 1 : codes.heads / codes.key_heads;
  for (std::size_t i = 0; i < codes.bytes.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / codes.dim;
    const std::int64_t b = row / (codes.tokens * codes.heads), head = row % codes.heads;
    result.push_back(value[codes.bytes[i]] *
                     static_cast<double>(codes.descales[index(b * codes.key_heads + head / group)]));
  }
  return result;
}

}  // namespace zyfa::reference
