// What LDS and vector memory instructions have in common: rows and lanes of their operands, operations of the atomics.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {

inline std::uint32_t* row(Wave& w, const Operand& o, unsigned dword = 0) { return w.v[o.index + dword].lane; }
inline bool active(std::uint64_t exec, unsigned lane) { return (exec >> lane) & 1; }

// The low bytes of a 64-bit memory operand as a value, and back.
template <typename T>
T as(std::uint64_t raw) {
  T t;
  std::memcpy(&t, &raw, sizeof(T));
  return t;
}
template <typename T>
std::uint64_t raw_of(T t) {
  std::uint64_t r = 0;
  std::memcpy(&r, &t, sizeof(T));
  return r;
}

// New value of an atomic from the old one and its data; the third argument is for compare-and-swap.
inline constexpr auto kAdd = [](auto a, auto b, auto) { return a + b; };
inline constexpr auto kSub = [](auto a, auto b, auto) { return a - b; };
inline constexpr auto kInc = [](auto a, auto b, auto) { return a >= b ? 0 : a + 1; };
inline constexpr auto kDec = [](auto a, auto b, auto) { return (a == 0 || a > b) ? b : a - 1; };
inline constexpr auto kMin = [](auto a, auto b, auto) { return std::min(a, b); };
inline constexpr auto kMax = [](auto a, auto b, auto) { return std::max(a, b); };
inline constexpr auto kAnd = [](auto a, auto b, auto) { return a & b; };
inline constexpr auto kOr = [](auto a, auto b, auto) { return a | b; };
inline constexpr auto kXor = [](auto a, auto b, auto) { return a ^ b; };
inline constexpr auto kExchange = [](auto, auto b, auto) { return b; };

}  // namespace zyfa::sim
