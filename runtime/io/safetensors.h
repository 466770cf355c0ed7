// Safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
//
//   file   := u64 N, N bytes of JSON object, data
//   header := { "__metadata__": {string: string}?, name: {"dtype": D, "shape": [int...], "data_offsets": [begin,
//   end]}... }
// Offsets count from the end of the header. The reader holds the format's own rules: N <= 100,000,000; offsets inside
// the data; end - begin = product of the shape times the element size; tensors do not overlap and leave no byte of the
// data unused; no name twice. Everything is checked before it is used, so any bytes are safe input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/element_type.h"
#include "zyfa/error.h"

namespace zyfa::io {

struct Tensor {
  ElementType type = ElementType::kU8;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // no alignment is promised
};

// Owns the bytes its tensors point into. Moving keeps them valid; copying is not offered for that reason.
class Safetensors {
 public:
  // `name` stands for the file in messages. kCorruptData names the file, the value and what is allowed.
  [[nodiscard]] static Expected<Safetensors> parse(std::vector<std::byte> bytes, const std::string& name);
  // Also kNotFound and kIoError.
  [[nodiscard]] static Expected<Safetensors> read(const std::filesystem::path& path);

  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;

  [[nodiscard]] const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // kNotFound: lists the tensors the file has.
  [[nodiscard]] Expected<Tensor> find(const std::string& tensor) const;

 private:
  Safetensors() = default;

  std::string name_;
  std::vector<std::byte> bytes_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Tensors are written in name order behind a header padded to a multiple of 8 bytes. kInvalidArgument when a tensor's
// bytes do not match its shape.
[[nodiscard]] Status write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                                       const std::map<std::string, std::string>& metadata);

// "[4096, 4, 128]"
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace zyfa::io
