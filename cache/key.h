// The key of a kernel: canonical bytes that hold everything which fixes its machine code, and their XXH3-128, which
// names the entry's file. Two keys are equal when their bytes are; the hash only finds them.
//
// Grammar, integers little-endian:
//   key   := "ZKEY" schema:u32 count:u32 field*count
//   field := kind:u8 name_size:u32 name value_size:u32 value
//   kind  := 's' (value is text or raw bytes) | 'u' (value is 8 bytes, a u64)
// Names are not empty and occur once. The caller adds the fields in one fixed order; every part is length-prefixed, so
// two different sequences of fields never give the same bytes. At most kMaxKeyBytes.
//
// Nothing from the environment (paths, locale, time, host) and no address may enter a key: equal input gives equal
// bytes in every process on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/hash.h"
#include "zyfa/error.h"

namespace zyfa::cache {

inline constexpr std::size_t kMaxKeyBytes = 64 * 1024;

struct Key {
  std::string bytes;
  Hash128 hash;

  [[nodiscard]] std::string name() const { return to_hex(hash); }  // 32 hex digits
  bool operator==(const Key& other) const { return hash == other.hash && bytes == other.bytes; }
};

class KeyBuilder {
 public:
  explicit KeyBuilder(std::uint32_t schema);

  // A name that is empty or was added before, or a key that grows too large, is reported by build().
  KeyBuilder& add_string(std::string_view name, std::string_view value);
  KeyBuilder& add_u64(std::string_view name, std::uint64_t value);

  // kInvalidArgument: what was wrong with the fields. The builder may be extended and built again.
  [[nodiscard]] Expected<Key> build() const;

 private:
  void add_field(char kind, std::string_view name, std::string_view value);
  [[nodiscard]] bool has_field(std::string_view name) const;

  std::string bytes_;
  std::uint32_t count_ = 0;
  std::string problem_;  // the first misuse, empty when none
};

enum class FieldKind : std::uint8_t { kString, kU64 };

struct KeyField {
  std::string name;
  FieldKind kind = FieldKind::kString;
  std::string text;          // of a string field
  std::uint64_t number = 0;  // of a u64 field
  bool operator==(const KeyField&) const = default;
};

struct DecodedKey {
  std::uint32_t schema = 0;
  std::vector<KeyField> fields;
  bool operator==(const DecodedKey&) const = default;
};

// kCorruptData: which part of the grammar the bytes break. Accepts exactly what KeyBuilder can build.
[[nodiscard]] Expected<DecodedKey> decode_key(std::span<const std::byte> bytes);

// "name=value" for the eye; bytes of a string that are not printable ASCII stand as \xHH.
[[nodiscard]] std::string to_string(const KeyField& field);
[[nodiscard]] std::vector<std::string> describe(const DecodedKey& key);

struct KeyDifference {
  std::string field;          // "schema" when the schema versions differ
  std::string first, second;  // the values for the eye; "(absent)" where a key has no such field
};

// The first field, in the order of the keys, that differs; nothing when the keys are equal.
[[nodiscard]] std::optional<KeyDifference> first_difference(const DecodedKey& first, const DecodedKey& second);

}  // namespace zyfa::cache
