#include "cache/key.h"

#include <algorithm>

#include "cache/bytes.h"

namespace zyfa::cache {
namespace {

constexpr std::string_view kMagic = "ZKEY";
constexpr std::size_t kCountOffset = 8;
constexpr std::size_t kFirstField = 12;
constexpr std::string_view kAbsent = "(absent)";

// Text of a value for the eye.
std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto value = static_cast<unsigned char>(c);
    if (value >= 0x20 && value < 0x7f && c != '\\') {
      out.push_back(c);
    } else {
      out += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
    }
  }
  return out;
}

std::string value_text(const KeyField& field) {
  return field.kind == FieldKind::kU64 ? std::to_string(field.number) : printable(field.text);
}

Expected<KeyField> read_field(ByteReader& reader, std::uint32_t index) {
  const std::string where = "field " + std::to_string(index) + " of the key ";
  const char kind = static_cast<char>(reader.u8());
  const std::string_view name = reader.text(reader.u32());
  const std::string_view value = reader.text(reader.u32());
  if (!reader.ok()) return make_error(ErrorCode::kCorruptData, where + "runs past the end of the bytes");
  if (name.empty()) return make_error(ErrorCode::kCorruptData, where + "has an empty name");

  KeyField field{.name = std::string(name), .kind = FieldKind::kString, .text = {}, .number = 0};
  if (kind == 's') {
    field.text = value;
  } else if (kind == 'u' && value.size() == 8) {
    field.kind = FieldKind::kU64;
    field.number = ByteReader(as_bytes(value)).u64();
  } else {
    return make_error(ErrorCode::kCorruptData, where + "is neither a string ('s') nor a u64 ('u' of 8 bytes)");
  }
  return field;
}

const KeyField* find(const DecodedKey& key, std::string_view name) {
  const auto found = std::ranges::find(key.fields, name, &KeyField::name);
  return found == key.fields.end() ? nullptr : &*found;
}

}  // namespace

KeyBuilder::KeyBuilder(std::uint32_t schema) {
  bytes_.reserve(1024);
  bytes_ += kMagic;
  append_u32(bytes_, schema);
  append_u32(bytes_, 0);
}

KeyBuilder& KeyBuilder::add_string(std::string_view name, std::string_view value) {
  add_field('s', name, value);
  return *this;
}

KeyBuilder& KeyBuilder::add_u64(std::string_view name, std::uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  add_field('u', name, {bytes, 8});
  return *this;
}

void KeyBuilder::add_field(char kind, std::string_view name, std::string_view value) {
  if (!problem_.empty()) return;
  if (name.empty()) {
    problem_ = "a key field has an empty name";
  } else if (has_field(name)) {
    problem_ = "key field '" + printable(name) + "' was added twice; every name may occur once";
  } else if (name.size() > kMaxKeyBytes || value.size() > kMaxKeyBytes ||
             bytes_.size() + 9 + name.size() + value.size() > kMaxKeyBytes) {
    problem_ = "key field '" + printable(name.substr(0, 64)) + "' of " + std::to_string(value.size()) +
               " bytes makes the key larger than the " + std::to_string(kMaxKeyBytes) + " bytes allowed";
  }
  if (!problem_.empty()) return;

  bytes_.push_back(kind);
  append_u32(bytes_, static_cast<std::uint32_t>(name.size()));
  bytes_ += name;
  append_u32(bytes_, static_cast<std::uint32_t>(value.size()));
  bytes_ += value;
  ++count_;
}

bool KeyBuilder::has_field(std::string_view name) const {
  ByteReader reader(as_bytes(bytes_).subspan(kFirstField));
  while (reader.left() > 0) {
    reader.u8();
    if (reader.text(reader.u32()) == name) return true;
    reader.take(reader.u32());
  }
  return false;
}

Expected<Key> KeyBuilder::build() const {
  if (!problem_.empty()) return make_error(ErrorCode::kInvalidArgument, problem_);
  Key key{.bytes = bytes_, .hash = {}};
  for (std::size_t i = 0; i < 4; ++i) key.bytes[kCountOffset + i] = static_cast<char>(count_ >> (8 * i));
  key.hash = hash128(as_bytes(key.bytes));
  return key;
}

Expected<DecodedKey> decode_key(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxKeyBytes) {
    return make_error(ErrorCode::kCorruptData, "a key of " + std::to_string(bytes.size()) +
                                                   " bytes is larger than the " + std::to_string(kMaxKeyBytes) +
                                                   " bytes allowed");
  }
  ByteReader reader(bytes);
  const std::string_view magic = reader.text(kMagic.size());
  DecodedKey key{.schema = reader.u32(), .fields = {}};
  const std::uint32_t count = reader.u32();
  if (!reader.ok() || magic != kMagic)
    return make_error(ErrorCode::kCorruptData, "the bytes do not begin as a zyfa key");

  for (std::uint32_t i = 0; i < count; ++i) {
    Expected<KeyField> field = read_field(reader, i);
    if (!field) return tl::unexpected(std::move(field.error()));
    if (find(key, field->name)) {
      return make_error(ErrorCode::kCorruptData, "key field '" + printable(field->name) + "' occurs twice");
    }
    key.fields.push_back(std::move(*field));
  }
  if (reader.left() > 0) {
    return make_error(ErrorCode::kCorruptData, std::to_string(reader.left()) + " bytes follow the last of " +
                                                   std::to_string(count) + " key fields");
  }
  return key;
}

std::string to_string(const KeyField& field) { return printable(field.name) + "=" + value_text(field); }

std::vector<std::string> describe(const DecodedKey& key) {
  std::vector<std::string> lines{"schema=" + std::to_string(key.schema)};
  for (const KeyField& field : key.fields) lines.push_back(to_string(field));
  return lines;
}

std::optional<KeyDifference> first_difference(const DecodedKey& first, const DecodedKey& second) {
  if (first.schema != second.schema) {
    return KeyDifference{"schema", std::to_string(first.schema), std::to_string(second.schema)};
  }
  for (const KeyField& field : first.fields) {
    const KeyField* other = find(second, field.name);
    if (!other) return KeyDifference{field.name, value_text(field), std::string(kAbsent)};
    if (*other != field) return KeyDifference{field.name, value_text(field), value_text(*other)};
  }
  for (const KeyField& field : second.fields) {
    if (!find(first, field.name)) return KeyDifference{field.name, std::string(kAbsent), value_text(field)};
  }
  // The same fields in another order are other bytes: name the first place where the order parts.
  for (std::size_t i = 0; i < first.fields.size(); ++i) {
    if (first.fields[i].name != second.fields[i].name) {
      const std::string place = "(at place " + std::to_string(i) + ")";
      return KeyDifference{"order of fields", first.fields[i].name + " " + place, second.fields[i].name + " " + place};
    }
  }
  return std::nullopt;
}

}  // namespace zyfa::cache
