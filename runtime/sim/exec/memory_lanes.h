// What LDS and memory instructions have in common: rows and lanes of their operands, operations of the integer atomics.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {

inline std::uint32_t* row(Wave& w, const Operand& o, unsigned dword = 0) { return w.v[o.index + dword].lane; }
inline bool active(std::uint64_t exec, unsigned lane) { return (exec >> lane) & 1; }

// One atomic on device memory at a time over all simulator threads.
std::mutex& memory_atomics();

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

// A 32- or 64-bit operand of lane l.
template <typename T>
std::uint64_t lane_value(Wave& w, const Operand& o, unsigned l, unsigned dword = 0) {
  std::uint64_t value = row(w, o, dword)[l];
  if constexpr (sizeof(T) == 8) value |= static_cast<std::uint64_t>(row(w, o, dword + 1)[l]) << 32;
  return value;
}
template <typename T>
void set_lane_value(Wave& w, const Operand& o, unsigned l, std::uint64_t value, unsigned dword = 0) {
  row(w, o, dword)[l] = static_cast<std::uint32_t>(value);
  if constexpr (sizeof(T) == 8) row(w, o, dword + 1)[l] = static_cast<std::uint32_t>(value >> 32);
}

// A 16-bit result into the low or high half of a register.
inline std::uint32_t into_low_half(const Wave& w, std::uint32_t old, std::uint32_t value) {
  return (w.rules.d16 == SimD16::kClearsHalf ? 0 : old & 0xffff0000u) | (value & 0xffff);
}
inline std::uint32_t into_high_half(const Wave& w, std::uint32_t old, std::uint32_t value) {
  return (w.rules.d16 == SimD16::kClearsHalf ? 0 : old & 0xffff) | (value << 16);
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
// Memory: the new value comes first, then the one to compare with.
inline constexpr auto kCompareSwap = [](auto a, auto b, auto c) { return a == c ? b : a; };

// Rows of the integer atomics of memory, scalar and vector alike: `ROW(name, type, operation, bytes)` makes those of
// one.
#define ZYFA_SIM_INTEGER_ATOMICS(ROW, suffix, U, S, bytes)                                                        \
  ROW("swap" suffix, U, kExchange, bytes), ROW("cmpswap" suffix, U, kCompareSwap, bytes),                         \
      ROW("add" suffix, U, kAdd, bytes), ROW("sub" suffix, U, kSub, bytes), ROW("smin" suffix, S, kMin, bytes),   \
      ROW("umin" suffix, U, kMin, bytes), ROW("smax" suffix, S, kMax, bytes), ROW("umax" suffix, U, kMax, bytes), \
      ROW("and" suffix, U, kAnd, bytes), ROW("or" suffix, U, kOr, bytes), ROW("xor" suffix, U, kXor, bytes),      \
      ROW("inc" suffix, U, kInc, bytes), ROW("dec" suffix, U, kDec, bytes)

}  // namespace zyfa::sim
