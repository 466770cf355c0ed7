// NumPy .npy files, format versions 1 to 3: magic, version, header length, a Python dict literal, the array's bytes.
// Only little-endian plain types in C order; the header's dict must hold exactly descr, fortran_order and shape, and
// the data exactly the bytes they ask for. Any bytes are safe input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/io/element_type.h"
#include "zyfa/error.h"

namespace zyfa::io {

struct Npy {
  ElementType type = ElementType::kU8;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

// kCorruptData names the file, the value and what is allowed; kInvalidArgument for a well-formed array of another kind
// (big-endian, Fortran order, structured).
[[nodiscard]] Expected<Npy> parse_npy(std::span<const std::byte> bytes, const std::string& name);
[[nodiscard]] Expected<Npy> read_npy(const std::filesystem::path& path);

// Version 1.0, data aligned to 64 bytes. bfloat16 and fp8 are stored as unsigned integers. kInvalidArgument when
// `data` does not match the shape.
[[nodiscard]] Status write_npy(const std::filesystem::path& path, ElementType type, std::span<const std::int64_t> shape,
                               std::span<const std::byte> data);

}  // namespace zyfa::io
