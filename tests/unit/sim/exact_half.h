// f16 arithmetic from its definition: values are integers in units of 2^-48, exact in 128 bits; a result is the code
// whose value lies next to the exact one. For the tests of the simulator's f16 instructions.
#pragma once

#include <cmath>
#include <cstdint>

namespace zyfa::sim_test {

__extension__ using Wide = __int128;

inline bool is_nan_code(std::uint32_t h) { return (h & 0x7fff) > 0x7c00; }
inline bool is_inf_code(std::uint32_t h) { return (h & 0x7fff) == 0x7c00; }
inline bool is_finite_code(std::uint32_t h) { return (h & 0x7fff) < 0x7c00; }

// Magnitude of code `m` (0 to 0x7c00, which counts as 2^16) in units of 2^-48.
inline Wide magnitude_of(std::uint32_t m) {
  const std::uint32_t e = m >> 10, f = m & 0x3ff;
  return e == 0 ? static_cast<Wide>(f) << 24 : static_cast<Wide>(0x400 + f) << (24 + e - 1);
}
inline Wide exact_of(std::uint32_t h) { return h & 0x8000 ? -magnitude_of(h & 0x7fff) : magnitude_of(h & 0x7fff); }
inline long double real_of(std::uint32_t h) {
  const long double x = std::ldexp(static_cast<long double>(magnitude_of(h & 0x7fff)), -48);
  return h & 0x8000 ? -x : x;
}

// FP_ROUND: 0 nearest even, 1 up, 2 down, 3 toward zero. `below` and `above` the neighbours of a magnitude, `distance`
// its place between them: negative when nearer to `below`, 0 in the middle, and whether it is `below` exactly.
inline std::uint32_t choose(std::uint32_t below, bool exact, int nearer, unsigned round, bool negative) {
  if (exact) return below;
  if (round == 3) return below;
  if (round != 0) return (round == 1) != negative ? below + 1 : below;
  return nearer < 0 ? below : nearer > 0 ? below + 1 : below + (below & 1);
}

// Code of `n` (units of 2^-48); the sign of an exact zero is `zero_sign`.
inline std::uint32_t code_of(Wide n, unsigned round, bool saturate, std::uint32_t zero_sign = 0) {
  if (n == 0) return zero_sign;
  const bool negative = n < 0;
  const Wide m = negative ? -n : n;
  std::uint32_t lo = 0, hi = 0x7c00;  // magnitude_of(lo) <= m
  while (hi - lo > 1) {
    const std::uint32_t mid = (lo + hi) / 2;
    (magnitude_of(mid) <= m ? lo : hi) = mid;
  }
  std::uint32_t code;
  if (m >= magnitude_of(0x7c00)) {
    code = round == 3 || (round != 0 && (round == 1) == negative) ? 0x7bff : 0x7c00;
  } else {
    const Wide twice = 2 * m - magnitude_of(lo) - magnitude_of(lo + 1);
    code = choose(lo, magnitude_of(lo) == m, twice < 0 ? -1 : twice > 0, round, negative);
  }
  if (code == 0x7c00 && saturate) code = 0x7bff;
  return code | (negative ? 0x8000u : 0u);
}
// To nearest even of a real number that is no f16 midpoint but by chance.
inline std::uint32_t code_of_real(long double x) {
  const std::uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0xfe00;
  const long double m = std::fabs(x);
  if (m >= 65520.0L) return sign | 0x7c00;
  std::uint32_t lo = 0, hi = 0x7c00;
  while (hi - lo > 1) {
    const std::uint32_t mid = (lo + hi) / 2;
    (real_of(mid) <= m ? lo : hi) = mid;
  }
  const long double twice = 2 * m - real_of(lo) - std::ldexp(static_cast<long double>(magnitude_of(lo + 1)), -48);
  return sign | choose(lo, real_of(lo) == m, twice < 0 ? -1 : twice > 0, 0, false);
}
inline std::uint32_t flushed(std::uint32_t h) { return (h & 0x7c00) ? h : h & 0x8000; }

}  // namespace zyfa::sim_test
