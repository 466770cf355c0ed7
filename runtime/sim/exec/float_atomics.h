// Floating-point atomics of LDS and memory (CDNA4 guide 9.2): additions round to nearest even; denormals by MODE in
// LDS, by kind in memory; NaNs are selected and made quiet; -0 is less than +0.
//
// Operands are bits. The first operand is the value in memory, the second the data: the guide speaks of src0 and src1
// only, and takes the NaN of src0 when both are NaN.
#pragma once

#include <cstdint>

#include "runtime/sim/exec/machine.h"

namespace zyfa::sim {

// Which denormals become 0, sign kept.
struct AtomicDenormals {
  bool f32_in = false, f32_out = false;
  bool f16_in = false, f16_out = false;
  bool f64_in = false;
};
AtomicDenormals lds_denormals(const Wave& wave);
AtomicDenormals memory_denormals(const Wave& wave);

std::uint32_t atomic_add_f32(std::uint32_t memory, std::uint32_t data, const AtomicDenormals& flush);
std::uint64_t atomic_add_f64(std::uint64_t memory, std::uint64_t data);  // keeps denormals everywhere
std::uint32_t atomic_pk_add_f16(std::uint32_t memory, std::uint32_t data, const AtomicDenormals& flush);
std::uint32_t atomic_pk_add_bf16(std::uint32_t memory, std::uint32_t data, const AtomicDenormals& flush);
// Flushed for the comparison only: the result is one of the operands as it is.
std::uint32_t atomic_min_f32(std::uint32_t memory, std::uint32_t data, const AtomicDenormals& flush);
std::uint32_t atomic_max_f32(std::uint32_t memory, std::uint32_t data, const AtomicDenormals& flush);
std::uint64_t atomic_min_f64(std::uint64_t memory, std::uint64_t data, const AtomicDenormals& flush);
std::uint64_t atomic_max_f64(std::uint64_t memory, std::uint64_t data, const AtomicDenormals& flush);
// Stores `next` when the numbers are equal; +0 equals -0, a NaN equals nothing.
std::uint32_t atomic_compare_store_f32(std::uint32_t memory, std::uint32_t compare, std::uint32_t next,
                                       const AtomicDenormals& flush);
std::uint64_t atomic_compare_store_f64(std::uint64_t memory, std::uint64_t compare, std::uint64_t next,
                                       const AtomicDenormals& flush);

// The same as operations of a handler template: (memory, data, second, flush).
inline constexpr auto kAddF32 = [](std::uint32_t a, std::uint32_t b, std::uint32_t, const AtomicDenormals& d) {
  return atomic_add_f32(a, b, d);
};
inline constexpr auto kAddF64 = [](std::uint64_t a, std::uint64_t b, std::uint64_t, const AtomicDenormals&) {
  return atomic_add_f64(a, b);
};
inline constexpr auto kPkAddF16 = [](std::uint32_t a, std::uint32_t b, std::uint32_t, const AtomicDenormals& d) {
  return atomic_pk_add_f16(a, b, d);
};
inline constexpr auto kPkAddBf16 = [](std::uint32_t a, std::uint32_t b, std::uint32_t, const AtomicDenormals& d) {
  return atomic_pk_add_bf16(a, b, d);
};
inline constexpr auto kMinF32 = [](std::uint32_t a, std::uint32_t b, std::uint32_t, const AtomicDenormals& d) {
  return atomic_min_f32(a, b, d);
};
inline constexpr auto kMaxF32 = [](std::uint32_t a, std::uint32_t b, std::uint32_t, const AtomicDenormals& d) {
  return atomic_max_f32(a, b, d);
};
inline constexpr auto kMinF64 = [](std::uint64_t a, std::uint64_t b, std::uint64_t, const AtomicDenormals& d) {
  return atomic_min_f64(a, b, d);
};
inline constexpr auto kMaxF64 = [](std::uint64_t a, std::uint64_t b, std::uint64_t, const AtomicDenormals& d) {
  return atomic_max_f64(a, b, d);
};
inline constexpr auto kCompareStoreF32 = [](std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                            const AtomicDenormals& d) { return atomic_compare_store_f32(a, b, c, d); };
inline constexpr auto kCompareStoreF64 = [](std::uint64_t a, std::uint64_t b, std::uint64_t c,
                                            const AtomicDenormals& d) { return atomic_compare_store_f64(a, b, c, d); };

}  // namespace zyfa::sim
