// Arithmetic of floating-point atomics: see float_atomics.h.
#include "runtime/sim/exec/float_atomics.h"

#include <bit>

#include "runtime/sim/exec/memory_lanes.h"
#include "runtime/sim/exec/small_float.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <typename U>
struct Layout;
template <>
struct Layout<u32> {
  using Float = float;
  static constexpr u32 kSign = 0x80000000u, kInfinity = 0x7f800000u, kQuiet = 0x00400000u;
};
template <>
struct Layout<u64> {
  using Float = double;
  static constexpr u64 kSign = 1ull << 63, kInfinity = 0x7ffull << 52, kQuiet = 1ull << 51;
};

template <typename U>
bool is_nan(U x) {
  return (x & ~Layout<U>::kSign) > Layout<U>::kInfinity;
}
template <typename U>
bool is_signaling(U x) {
  return is_nan(x) && !(x & Layout<U>::kQuiet);
}
template <typename U>
U flushed(U x, bool flush) {
  return flush && (x & Layout<U>::kInfinity) == 0 ? x & Layout<U>::kSign : x;
}

template <typename U>
U add(U a, U b, bool flush_in, bool flush_out) {
  a = flushed(a, flush_in);
  b = flushed(b, flush_in);
  if (is_nan(a)) return a | Layout<U>::kQuiet;
  if (is_nan(b)) return b | Layout<U>::kQuiet;
  using Float = typename Layout<U>::Float;
  const U sum = std::bit_cast<U>(std::bit_cast<Float>(a) + std::bit_cast<Float>(b));
  if (is_nan(sum)) return Layout<U>::kInfinity | Layout<U>::kQuiet;  // -INF + INF: only the mantissa's top bit
  return flushed(sum, flush_out);
}

// Numbers in the guide's order, -0 below +0, as unsigned integers.
template <typename U>
U rank(U x) {
  return x & Layout<U>::kSign ? ~x : x | Layout<U>::kSign;
}

template <typename U>
U least(U a, U b, bool flush) {
  if (is_signaling(a)) return a | Layout<U>::kQuiet;
  if (is_signaling(b)) return b | Layout<U>::kQuiet;
  if (is_nan(a) || is_nan(b)) return is_nan(b) ? a : b;  // quiet NaNs come last
  return rank(flushed(b, flush)) < rank(flushed(a, flush)) ? b : a;
}
template <typename U>
U greatest(U a, U b, bool flush) {
  if (is_signaling(a)) return a | Layout<U>::kQuiet;
  if (is_signaling(b)) return b | Layout<U>::kQuiet;
  if (is_nan(a) || is_nan(b)) return is_nan(b) ? a : b;  // quiet NaNs come first
  return rank(flushed(b, flush)) > rank(flushed(a, flush)) ? b : a;
}

template <typename U>
U compare_store(U memory, U compare, U next, bool flush) {
  const U a = flushed(memory, flush), b = flushed(compare, flush);
  const bool zeros = ((a | b) & ~Layout<U>::kSign) == 0;
  if (is_nan(a) || is_nan(b) || (a != b && !zeros)) return memory;
  return flushed(next, flush);
}

// Sums of two numbers of at most 11 significant bits: rounding to float first does no harm.
u32 add_half(SmallFloat f, u32 a, u32 b, const AtomicDenormals& flush) {
  const u32 infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits, quiet = 1u << (f.mantissa_bits - 1);
  const auto flush_half = [&](u32 x, bool on) { return on && (x & infinity) == 0 ? x & 0x8000 : x; };
  a = flush_half(a, flush.f16_in);
  b = flush_half(b, flush.f16_in);
  if ((a & 0x7fff) > infinity) return a | quiet;
  if ((b & 0x7fff) > infinity) return b | quiet;
  const float sum = from_half(f, a) + from_half(f, b);
  if (sum != sum) return infinity | quiet;
  return flush_half(to_half(f, sum), flush.f16_out);
}

u32 add_pair(SmallFloat f, u32 memory, u32 data, const AtomicDenormals& flush) {
  return add_half(f, memory & 0xffff, data & 0xffff, flush) | (add_half(f, memory >> 16, data >> 16, flush) << 16);
}

}  // namespace

std::mutex& memory_atomics() {
  static std::mutex mutex;
  return mutex;
}

AtomicDenormals lds_denormals(const Wave& w) {
  AtomicDenormals d;
  d.f32_in = w.f32_in != ~0u;
  d.f32_out = w.f32_out != ~0u;
  d.f16_in = w.f16_in != 0xffff;
  d.f16_out = w.f16_out != 0xffff;
  d.f64_in = w.f64_in != ~0ull;
  return d;
}

AtomicDenormals memory_denormals(const Wave& w) {
  AtomicDenormals d;
  d.f32_in = d.f32_out = w.rules.atomic_denormals == SimAtomicDenormals::kFlushed;
  return d;
}

u32 atomic_add_f32(u32 memory, u32 data, const AtomicDenormals& d) { return add(memory, data, d.f32_in, d.f32_out); }
u64 atomic_add_f64(u64 memory, u64 data) { return add(memory, data, false, false); }
u32 atomic_pk_add_f16(u32 memory, u32 data, const AtomicDenormals& d) { return add_pair(kF16, memory, data, d); }
u32 atomic_pk_add_bf16(u32 memory, u32 data, const AtomicDenormals& d) { return add_pair(kBf16, memory, data, d); }
u32 atomic_min_f32(u32 memory, u32 data, const AtomicDenormals& d) { return least(memory, data, d.f32_in); }
u32 atomic_max_f32(u32 memory, u32 data, const AtomicDenormals& d) { return greatest(memory, data, d.f32_in); }
u64 atomic_min_f64(u64 memory, u64 data, const AtomicDenormals& d) { return least(memory, data, d.f64_in); }
u64 atomic_max_f64(u64 memory, u64 data, const AtomicDenormals& d) { return greatest(memory, data, d.f64_in); }
u32 atomic_compare_store_f32(u32 memory, u32 compare, u32 next, const AtomicDenormals& d) {
  return compare_store(memory, compare, next, d.f32_in);
}
u64 atomic_compare_store_f64(u64 memory, u64 compare, u64 next, const AtomicDenormals& d) {
  return compare_store(memory, compare, next, d.f64_in);
}

}  // namespace zyfa::sim
