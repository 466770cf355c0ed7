// Little-endian writing and bounded reading, as the key and the entry use them. A reader never reads past its span:
// once a read fails, ok() is false and every later read gives zero or an empty span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cache/hash.h"

namespace zyfa::cache {

inline void append_u32(std::string& to, std::uint32_t value) {
  const char bytes[4] = {static_cast<char>(value), static_cast<char>(value >> 8), static_cast<char>(value >> 16),
                         static_cast<char>(value >> 24)};
  to.append(bytes, 4);
}

inline void append_u64(std::string& to, std::uint64_t value) {
  append_u32(to, static_cast<std::uint32_t>(value));
  append_u32(to, static_cast<std::uint32_t>(value >> 32));
}

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t u64() { return little_endian(8); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little_endian(4)); }
  std::uint8_t u8() { return static_cast<std::uint8_t>(little_endian(1)); }

  std::span<const std::byte> take(std::uint64_t size) {
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const auto taken = bytes_.first(static_cast<std::size_t>(size));
    bytes_ = bytes_.subspan(static_cast<std::size_t>(size));
    return taken;
  }
  std::string_view text(std::uint64_t size) { return as_text(take(size)); }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

 private:
  std::uint64_t little_endian(std::size_t size) {
    std::uint64_t value = 0;
    const auto taken = take(size);
    for (std::size_t i = 0; i < taken.size(); ++i) value |= std::to_integer<std::uint64_t>(taken[i]) << (8 * i);
    return value;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace zyfa::cache
