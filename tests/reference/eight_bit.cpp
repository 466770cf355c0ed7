#include "tests/reference/eight_bit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace zyfa::reference {
namespace {

// Magnitudes of codes 0 to 126, ascending.
std::array<double, kE4m3MaxCode + 1> make_magnitudes() {
  std::array<double, kE4m3MaxCode + 1> result{};
  for (unsigned code = 0; code < result.size(); ++code) {
    const int exponent = static_cast<int>(code >> 3);
    const double mantissa = static_cast<double>(code & 7) / 8.0;
    result[code] = exponent == 0 ? std::ldexp(mantissa, -6) : std::ldexp(1.0 + mantissa, exponent - 7);
  }
  return result;
}

const std::array<double, kE4m3MaxCode + 1>& magnitudes() {
  static const std::array<double, kE4m3MaxCode + 1> table = make_magnitudes();
  return table;
}

}  // namespace

double e4m3_to_double(std::uint8_t code) {
  const unsigned magnitude = code & 0x7fU;
  const double value = magnitude == kE4m3Nan ? std::numeric_limits<double>::quiet_NaN() : magnitudes()[magnitude];
  return (code & 0x80U) != 0 ? -value : value;
}

std::uint8_t double_to_e4m3(double value) {
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (!std::isfinite(value)) {
    return sign | kE4m3Nan;
  }
  const auto& table = magnitudes();
  const double size = std::abs(value);
  const auto above = std::lower_bound(table.begin(), table.end(), size);
  if (above == table.end()) {
    return sign | kE4m3MaxCode;
  }
  auto code = static_cast<std::uint8_t>(above - table.begin());
  if (code != 0) {
    // Differences of neighbours and of a double that lies between them are exact.
    const double down = size - table[code - 1U], up = *above - size;
    code = static_cast<std::uint8_t>(down < up || (down == up && code % 2 == 1) ? code - 1 : code);
  }
  return sign | code;
}

std::int8_t double_to_int8(double value) {
  return static_cast<std::int8_t>(std::nearbyint(std::clamp(value, -kInt8Max, kInt8Max)));
}

std::uint8_t double_to_byte(double value, ByteRounding rounding) {
  const double clamped = std::clamp(value, 0.0, 255.0);
  return static_cast<std::uint8_t>(rounding == ByteRounding::kTruncate ? std::floor(clamped) : std::nearbyint(clamped));
}

}  // namespace zyfa::reference
