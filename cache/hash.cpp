#include "cache/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace zyfa::cache {

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::array<std::byte, kHashBytes> canonical_bytes(const Hash128& hash) {
  std::array<std::byte, kHashBytes> bytes;
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = std::byte(hash.high >> (56 - 8 * i));
    bytes[8 + i] = std::byte(hash.low >> (56 - 8 * i));
  }
  return bytes;
}

std::string to_hex(const Hash128& hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(kHashHexDigits);
  for (const std::byte value : canonical_bytes(hash)) {
    text.push_back(kDigits[std::to_integer<unsigned>(value >> 4)]);
    text.push_back(kDigits[std::to_integer<unsigned>(value & std::byte{15})]);
  }
  return text;
}

std::optional<Hash128> hash_from_hex(std::string_view digits) {
  if (digits.size() != kHashHexDigits) return std::nullopt;
  Hash128 hash;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const char c = digits[i];
    std::uint64_t value = 0;
    if (c >= '0' && c <= '9') {
      value = static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = static_cast<std::uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
    std::uint64_t& half = i < 16 ? hash.high : hash.low;
    half = half << 4 | value;
  }
  return hash;
}

}  // namespace zyfa::cache
