// Exact dot products in fixed point wide enough for any product of doubles: see matrix_exact.h.
#include "runtime/sim/exec/matrix_exact.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace zyfa::sim {
namespace {

using u64 = std::uint64_t;
__extension__ using Wide = unsigned __int128;

// Bit 0 of limb 0 weighs 2^kLowest: below the smallest product of doubles, 2^-2148. The top is above 2^2048 by more
// than any sum of products can carry.
constexpr int kLowest = -2176, kLimbs = 68;

struct Magnitude {
  std::array<u64, kLimbs> limb{};

  void add(Wide value, int exponent) {
    const auto position = static_cast<unsigned>(exponent - kLowest), shift = position % 64;
    std::size_t i = position / 64;
    const u64 low = static_cast<u64>(value), high = static_cast<u64>(value >> 64);
    const u64 piece[3] = {low << shift, shift ? (low >> (64 - shift)) | (high << shift) : high,
                          shift ? high >> (64 - shift) : 0};
    u64 carry = 0;
    for (const u64 p : piece) {
      const Wide sum = static_cast<Wide>(limb[i]) + p + carry;
      limb[i++] = static_cast<u64>(sum);
      carry = static_cast<u64>(sum >> 64);
    }
    for (; carry != 0; ++i) carry = ++limb[i] == 0;
  }

  [[nodiscard]] bool below(const Magnitude& other) const {
    for (std::size_t i = kLimbs; i-- > 0;)
      if (limb[i] != other.limb[i]) return limb[i] < other.limb[i];
    return false;
  }
  void subtract(const Magnitude& other) {
    u64 borrow = 0;
    for (std::size_t i = 0; i < kLimbs; ++i) {
      const Wide difference = static_cast<Wide>(limb[i]) - other.limb[i] - borrow;
      limb[i] = static_cast<u64>(difference);
      borrow = static_cast<u64>(difference >> 64) & 1;
    }
  }
  [[nodiscard]] bool bit(int position) const {
    return position >= 0 && ((limb[static_cast<std::size_t>(position) / 64] >> (position % 64)) & 1);
  }
  [[nodiscard]] int top() const {
    for (int i = kLimbs; i-- > 0;) {
      const u64 x = limb[static_cast<std::size_t>(i)];
      if (x != 0) return 64 * i + 63 - std::countl_zero(x);
    }
    return -1;
  }
  // Rounded to `digits` bits, none below 2^lowest.
  [[nodiscard]] double round(int digits, int lowest) const {
    const int highest = top();
    if (highest < 0) return 0;
    const int unit = std::max(highest - digits + 1, lowest - kLowest);
    u64 value = 0;
    for (int i = highest; i >= unit; --i) value = 2 * value + bit(i);
    bool sticky = false;
    for (int i = 0; i < unit - 1 && !sticky; ++i) {
      if (i % 64 == 0 && i + 64 <= unit - 1 && limb[static_cast<std::size_t>(i) / 64] == 0) {
        i += 63;
      } else {
        sticky = bit(i);
      }
    }
    if (bit(unit - 1) && (sticky || (value & 1))) ++value;
    return std::ldexp(static_cast<double>(value), unit + kLowest);
  }
};

struct Sum {
  Magnitude positive, negative;
  bool negative_zero = true;  // every term so far is -0

  void add(bool minus, Wide value, int exponent) {
    negative_zero &= minus && value == 0;
    if (value != 0) (minus ? negative : positive).add(value, exponent);
  }
  double round(int digits, int lowest) {
    const bool minus = positive.below(negative);
    Magnitude& larger = minus ? negative : positive;
    larger.subtract(minus ? positive : negative);
    const double result = larger.round(digits, lowest);
    return minus || negative_zero ? -result : result;
  }
};

struct Parts {
  u64 value;
  int exponent;
};
Parts split(double x) {
  const u64 code = std::bit_cast<u64>(x), fraction = code & 0xfffffffffffffull;
  const int field = static_cast<int>((code >> 52) & 0x7ff);
  return field == 0 ? Parts{fraction, -1074} : Parts{fraction | (1ull << 52), field - 1075};
}

double dot(int count, const double* a, const double* b, double c, int digits, int lowest) {
  double special = 0;
  bool finite = std::isfinite(c);
  if (!finite) special += c;
  for (int i = 0; i < count; ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) continue;
    finite = false;
    special += a[i] * b[i];
  }
  if (!finite) return special;
  Sum sum;
  for (int i = 0; i < count; ++i) {
    const Parts x = split(a[i]), y = split(b[i]);
    sum.add(std::signbit(a[i]) != std::signbit(b[i]), static_cast<Wide>(x.value) * y.value, x.exponent + y.exponent);
  }
  const Parts z = split(c);
  sum.add(std::signbit(c), z.value, z.exponent);
  return sum.round(digits, lowest);
}

}  // namespace

float exact_dot(int count, const double* a, const double* b, float c) {
  return static_cast<float>(dot(count, a, b, c, 24, -149));
}
double exact_dot(int count, const double* a, const double* b, double c) { return dot(count, a, b, c, 53, -1074); }

}  // namespace zyfa::sim
