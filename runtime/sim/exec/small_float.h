// IEEE-like formats narrower than float: f16, bf16, and the unsigned 11- and 10-bit floats of buffer formats.
// Magnitudes only: signs are the caller's.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace zyfa::sim {

struct SmallFloat {
  unsigned exponent_bits, mantissa_bits;
};
inline constexpr SmallFloat kF16{5, 10}, kBf16{8, 7}, kFloat11{5, 6}, kFloat10{5, 5};

inline float from_small(SmallFloat f, std::uint32_t code) {
  const std::uint32_t exponent = code >> f.mantissa_bits, mantissa = code & ((1u << f.mantissa_bits) - 1);
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  if (exponent == (1u << f.exponent_bits) - 1)
    return std::bit_cast<float>(0x7f800000u | (mantissa << (23 - f.mantissa_bits)));
  const int least = 1 - bias - static_cast<int>(f.mantissa_bits);
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), least);
  return std::ldexp(static_cast<float>(mantissa | (1u << f.mantissa_bits)), least + static_cast<int>(exponent) - 1);
}

// To nearest even; overflow gives infinity; a NaN keeps its upper payload and becomes quiet. `x` is not negative.
inline std::uint32_t to_small(SmallFloat f, float x) {
  const std::uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  const auto bits = std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
  if (bits > 0x7f800000u) {
    const std::uint32_t payload = (bits >> (23 - f.mantissa_bits)) & ((1u << f.mantissa_bits) - 1);
    return infinity | payload | (1u << (f.mantissa_bits - 1));
  }
  if (bits == 0x7f800000u) return infinity;
  if (bits == 0) return 0;
  const int bias = (1 << (f.exponent_bits - 1)) - 1, mantissa_bits = static_cast<int>(f.mantissa_bits);
  const double value = std::bit_cast<float>(bits);
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const auto rounded = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(value, mantissa_bits - exponent)));
  const std::uint32_t code = (static_cast<std::uint32_t>(exponent - (1 - bias)) << f.mantissa_bits) + rounded;
  return std::min(code, infinity);
}

// f16 and bf16 with their sign.
inline float from_half(SmallFloat f, std::uint32_t code) {
  const float magnitude = from_small(f, code & 0x7fff);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | ((code & 0x8000) << 16));
}
inline std::uint32_t to_half(SmallFloat f, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return to_small(f, std::bit_cast<float>(bits & 0x7fffffffu)) | ((bits >> 16) & 0x8000);
}

}  // namespace zyfa::sim
