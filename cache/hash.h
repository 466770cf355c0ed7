// XXH3-128 as the cache uses it: names files and guards payloads against damage. It is no defence against an adversary,
// so whole keys are always compared as well.
//
// The canonical form is big-endian (XXH128_canonicalFromHash): high 64 bits first. Hex and trailer bytes use that form.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace zyfa::cache {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};

inline constexpr std::size_t kHashBytes = 16;
inline constexpr std::size_t kHashHexDigits = 32;

[[nodiscard]] Hash128 hash128(std::span<const std::byte> bytes);

[[nodiscard]] std::array<std::byte, kHashBytes> canonical_bytes(const Hash128& hash);
[[nodiscard]] std::string to_hex(const Hash128& hash);                        // 32 lower-case digits
[[nodiscard]] std::optional<Hash128> hash_from_hex(std::string_view digits);  // exactly what to_hex writes

inline std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace zyfa::cache
