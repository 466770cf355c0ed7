#include "cache/entry.h"

#include <algorithm>
#include <array>

#include "cache/bytes.h"

namespace zyfa::cache {
namespace {

constexpr std::string_view kMagic("\x89ZYFA\r\n\x1a", 8);
constexpr std::size_t kReservedBytes = 24;

tl::unexpected<EntryError> defect(EntryDefect kind, std::string message) {
  return tl::unexpected(EntryError{kind, Error{ErrorCode::kCorruptData, std::move(message), {}}});
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

std::string size_text(std::uint64_t size, std::uint64_t least, std::uint64_t most) {
  return std::to_string(size) + " bytes (allowed: " + std::to_string(least) + " to " + std::to_string(most) + ")";
}

// The first size outside its limit, as a sentence; empty when all are inside.
std::string size_problem(const EntryLayout& layout) {
  if (layout.key_size < 1 || layout.key_size > kMaxKeyBytes) {
    return "the entry's key has " + size_text(layout.key_size, 1, kMaxKeyBytes);
  }
  if (layout.metadata_size > kMaxMetadataBytes) {
    return "the entry's metadata has " + size_text(layout.metadata_size, 0, kMaxMetadataBytes);
  }
  if (layout.object_size < 1 || layout.object_size > kMaxObjectBytes) {
    return "the entry's code object has " + size_text(layout.object_size, 1, kMaxObjectBytes);
  }
  return {};
}

std::string encode_header(const EntryLayout& layout) {
  std::string header(kMagic);
  append_u32(header, kEntryVersion);
  append_u32(header, kEntryHeaderBytes);
  append_u64(header, layout.key_size);
  append_u64(header, layout.metadata_size);
  append_u64(header, layout.object_size);
  header.append(kReservedBytes, '\0');
  return header;
}

}  // namespace

std::string_view entry_defect_name(EntryDefect defect) {
  switch (defect) {
    case EntryDefect::kTruncated:
      return "truncated";
    case EntryDefect::kTrailingBytes:
      return "trailing-bytes";
    case EntryDefect::kBadMagic:
      return "bad-magic";
    case EntryDefect::kBadVersion:
      return "bad-version";
    case EntryDefect::kBadSizes:
      return "bad-sizes";
    case EntryDefect::kBadChecksum:
      return "bad-checksum";
    case EntryDefect::kKeyMismatch:
      return "key-mismatch";
    case EntryDefect::kPayloadRejected:
      return "payload-rejected";
    case EntryDefect::kUnsafeFile:
      return "unsafe-file";
    case EntryDefect::kUnreadable:
      return "unreadable";
  }
  return "unknown";
}

EntryExpected<EntryLayout> check_entry_header(std::span<const std::byte> header, std::uint64_t file_size) {
  header = header.first(std::min(header.size(), kEntryHeaderBytes));
  const auto magic = header.first(std::min(header.size(), kMagic.size()));
  if (as_text(magic) != kMagic.substr(0, magic.size())) {
    return defect(EntryDefect::kBadMagic, "the file does not begin as a zyfa cache entry");
  }
  if (header.size() < kEntryHeaderBytes) {
    return defect(EntryDefect::kTruncated, "the entry ends inside its header, after " + std::to_string(header.size()) +
                                               " of " + std::to_string(kEntryHeaderBytes) + " bytes");
  }

  ByteReader reader(header.subspan(kMagic.size()));
  const std::uint32_t version = reader.u32();
  const std::uint32_t header_size = reader.u32();
  if (version != kEntryVersion) {
    return defect(EntryDefect::kBadVersion, "the entry has format version " + std::to_string(version) +
                                                "; this library reads version " + std::to_string(kEntryVersion));
  }
  EntryLayout layout{.key_size = reader.u64(), .metadata_size = reader.u64(), .object_size = reader.u64()};
  if (header_size != kEntryHeaderBytes) {
    return defect(EntryDefect::kBadSizes, "the entry's header claims " + std::to_string(header_size) + " bytes, not " +
                                              std::to_string(kEntryHeaderBytes));
  }
  if (std::string problem = size_problem(layout); !problem.empty()) {
    return defect(EntryDefect::kBadSizes, std::move(problem));
  }
  if (!all_zero(reader.take(kReservedBytes))) {
    return defect(EntryDefect::kBadSizes, "the reserved bytes of the entry's header are not zero");
  }
  const std::string lengths = "the entry has " + std::to_string(file_size) + " bytes where its header asks for " +
                              std::to_string(layout.file_size());
  if (file_size < layout.file_size()) return defect(EntryDefect::kTruncated, lengths);
  if (file_size > layout.file_size()) return defect(EntryDefect::kTrailingBytes, lengths);
  return layout;
}

Expected<Entry> Entry::encode(std::string_view key_bytes, std::span<const std::byte> metadata,
                              std::span<const std::byte> object) {
  const EntryLayout layout{
      .key_size = key_bytes.size(), .metadata_size = metadata.size(), .object_size = object.size()};
  if (std::string problem = size_problem(layout); !problem.empty()) {
    return make_error(ErrorCode::kInvalidArgument, std::move(problem));
  }
  Buffer file(static_cast<std::size_t>(layout.file_size()));
  std::byte* const to = file.bytes().data();
  const auto put = [to](std::uint64_t offset, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), to + offset);
  };
  put(0, as_bytes(encode_header(layout)));
  put(kEntryHeaderBytes, as_bytes(key_bytes));
  put(layout.metadata_offset(), metadata);
  std::fill(to + layout.metadata_offset() + layout.metadata_size, to + layout.object_offset(), std::byte{0});
  put(layout.object_offset(), object);
  const std::span<const std::byte> body = file.bytes().first(static_cast<std::size_t>(layout.trailer_offset()));
  put(layout.trailer_offset(), canonical_bytes(hash128(body)));
  return Entry(std::move(file), layout);
}

EntryExpected<Entry> Entry::decode(Buffer file) {
  const std::span<const std::byte> bytes = std::as_const(file).bytes();
  const EntryExpected<EntryLayout> layout = check_entry_header(bytes, bytes.size());
  if (!layout) return tl::unexpected(layout.error());

  const auto body = bytes.first(static_cast<std::size_t>(layout->trailer_offset()));
  if (!std::ranges::equal(canonical_bytes(hash128(body)), bytes.subspan(body.size()))) {
    return defect(EntryDefect::kBadChecksum, "the entry's checksum does not match its bytes");
  }
  const auto pad_begin = static_cast<std::size_t>(layout->metadata_offset() + layout->metadata_size);
  if (!all_zero(bytes.subspan(pad_begin, static_cast<std::size_t>(layout->object_offset()) - pad_begin))) {
    return defect(EntryDefect::kBadSizes, "the pad bytes before the entry's code object are not zero");
  }
  return Entry(std::move(file), *layout);
}

EntryExpected<Entry> Entry::decode(std::span<const std::byte> file) {
  if (const auto layout = check_entry_header(file, file.size()); !layout) return tl::unexpected(layout.error());
  Buffer copy(file.size());
  std::ranges::copy(file, copy.bytes().begin());
  return decode(std::move(copy));
}

EntryError key_mismatch(std::string_view wanted, std::string_view found) {
  Error error{ErrorCode::kCorruptData, "the entry is sound but belongs to another key", {}};
  const auto wanted_key = decode_key(as_bytes(wanted));
  const auto found_key = decode_key(as_bytes(found));
  if (wanted_key && found_key) {
    if (const auto difference = first_difference(*wanted_key, *found_key)) {
      error.details.push_back(difference->field + ": wanted " + difference->first + ", the entry has " +
                              difference->second);
    }
  }
  return EntryError{EntryDefect::kKeyMismatch, std::move(error)};
}

std::string encode_metadata(const MetadataPairs& pairs) {
  std::string bytes;
  append_u32(bytes, static_cast<std::uint32_t>(pairs.size()));
  for (const auto& [name, value] : pairs) {
    append_u32(bytes, static_cast<std::uint32_t>(name.size()));
    bytes += name;
    append_u32(bytes, static_cast<std::uint32_t>(value.size()));
    bytes += value;
  }
  return bytes;
}

Expected<MetadataPairs> decode_metadata(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const std::uint32_t count = reader.u32();
  MetadataPairs pairs;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    std::string name(reader.text(reader.u32()));
    std::string value(reader.text(reader.u32()));
    if (reader.ok()) pairs.emplace_back(std::move(name), std::move(value));
  }
  if (!reader.ok()) return make_error(ErrorCode::kCorruptData, "the metadata pairs run past the end of their bytes");
  if (reader.left() > 0) {
    return make_error(ErrorCode::kCorruptData,
                      std::to_string(reader.left()) + " bytes follow the last of the metadata pairs");
  }
  return pairs;
}

}  // namespace zyfa::cache
