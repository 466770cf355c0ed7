// Element types of tensor files: one table joins their size and their names in safetensors, NumPy and job files.
// NumPy has no bfloat16 and no fp8; they travel as unsigned integers of the same width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zyfa::io {

enum class ElementType : std::uint8_t {
  kBool,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kF8E4M3,
  kF8E5M2,
};

[[nodiscard]] std::size_t element_bytes(ElementType type);

// "BF16", "F8_E4M3", ...
[[nodiscard]] std::string_view safetensors_name(ElementType type);
[[nodiscard]] std::optional<ElementType> from_safetensors_name(std::string_view name);

// "<f4", "|u1", ...; bfloat16 gives "<u2" and fp8 "|u1". From a descriptor: the plain type it spells.
[[nodiscard]] std::string_view npy_descriptor(ElementType type);
[[nodiscard]] std::optional<ElementType> from_npy_descriptor(std::string_view descriptor);

// Names of job files: NumPy's ("float32") and bfloat16, float8_e4m3fn, float8_e5m2; "fp8" means float8_e4m3fn.
[[nodiscard]] std::string_view dtype_name(ElementType type);
[[nodiscard]] std::optional<ElementType> from_dtype_name(std::string_view name);

// "bool, int8, ..." for messages.
[[nodiscard]] std::string dtype_names();
[[nodiscard]] std::string safetensors_names();

}  // namespace zyfa::io
