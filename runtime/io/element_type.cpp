#include "runtime/io/element_type.h"

#include <array>

namespace zyfa::io {
namespace {

struct Row {
  ElementType type;
  std::size_t bytes;
  std::string_view safetensors, npy, dtype;
};

// In the order of the enumeration. A NumPy descriptor means the first row that has it.
constexpr std::array<Row, 15> kRows{{
    {ElementType::kBool, 1, "BOOL", "|b1", "bool"},
    {ElementType::kI8, 1, "I8", "|i1", "int8"},
    {ElementType::kU8, 1, "U8", "|u1", "uint8"},
    {ElementType::kI16, 2, "I16", "<i2", "int16"},
    {ElementType::kU16, 2, "U16", "<u2", "uint16"},
    {ElementType::kI32, 4, "I32", "<i4", "int32"},
    {ElementType::kU32, 4, "U32", "<u4", "uint32"},
    {ElementType::kI64, 8, "I64", "<i8", "int64"},
    {ElementType::kU64, 8, "U64", "<u8", "uint64"},
    {ElementType::kF16, 2, "F16", "<f2", "float16"},
    {ElementType::kBf16, 2, "BF16", "<u2", "bfloat16"},
    {ElementType::kF32, 4, "F32", "<f4", "float32"},
    {ElementType::kF64, 8, "F64", "<f8", "float64"},
    {ElementType::kF8E4M3, 1, "F8_E4M3", "|u1", "float8_e4m3fn"},
    {ElementType::kF8E5M2, 1, "F8_E5M2", "|u1", "float8_e5m2"},
}};

const Row& row(ElementType type) { return kRows[static_cast<std::size_t>(type)]; }

std::optional<ElementType> find(std::string_view Row::* column, std::string_view name) {
  for (const Row& candidate : kRows) {
    if (candidate.*column == name) {
      return candidate.type;
    }
  }
  return std::nullopt;
}

std::string join(std::string_view Row::* column) {
  std::string text;
  for (const Row& candidate : kRows) {
    text.append(text.empty() ? "" : ", ").append(candidate.*column);
  }
  return text;
}

}  // namespace

std::size_t element_bytes(ElementType type) { return row(type).bytes; }

std::string_view safetensors_name(ElementType type) { return row(type).safetensors; }
std::optional<ElementType> from_safetensors_name(std::string_view name) { return find(&Row::safetensors, name); }

std::string_view npy_descriptor(ElementType type) { return row(type).npy; }
std::optional<ElementType> from_npy_descriptor(std::string_view descriptor) {
  // One-byte types have no byte order; NumPy writes '|' and accepts '<'.
  if (descriptor.size() == 3 && descriptor[0] == '<' && descriptor[2] == '1') {
    return find(&Row::npy, std::string("|").append(descriptor.substr(1)));
  }
  return find(&Row::npy, descriptor);
}

std::string_view dtype_name(ElementType type) { return row(type).dtype; }
std::optional<ElementType> from_dtype_name(std::string_view name) {
  return name == "fp8" ? ElementType::kF8E4M3 : find(&Row::dtype, name);
}

std::string dtype_names() { return join(&Row::dtype); }
std::string safetensors_names() { return join(&Row::safetensors); }

}  // namespace zyfa::io
