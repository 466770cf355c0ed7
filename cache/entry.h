// One cache entry is one file. Grammar, integers little-endian, offsets from the start of the file:
//
//   entry   := header key metadata pad object trailer
//   header  := magic       8 bytes   89 'Z' 'Y' 'F' 'A' 0d 0a 1a   (a text-mode copy breaks it at once)
//              version     u32       kEntryVersion
//              header_size u32       64
//              key_size    u64       1 .. kMaxKeyBytes
//              meta_size   u64       0 .. kMaxMetadataBytes
//              object_size u64       1 .. kMaxObjectBytes
//              reserved    24 bytes  zero
//   key     := key_size bytes        the whole canonical key (key.h)
//   metadata:= meta_size bytes       opaque here; by custom name/value pairs, see below
//   pad     := 0 .. 15 zero bytes    up to the next multiple of 16, so that the object is aligned in memory
//   object  := object_size bytes     the code object
//   trailer := 16 bytes              XXH3-128, canonical (big-endian), of everything before it
//
// The file ends with the trailer; not one byte may follow. The version also stands in the directory's name (store.h),
// so two versions of zyfa share a root without setting each other's entries aside.
//
// A reader checks in this order and stops at the first defect: length of the header, magic, version, sizes against
// their limits and against the length of the file (before any allocation), checksum, pad and reserved bytes, key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/hash.h"
#include "cache/key.h"
#include "zyfa/error.h"

namespace zyfa::cache {

inline constexpr std::uint32_t kEntryVersion = 1;
inline constexpr std::size_t kEntryHeaderBytes = 64;
inline constexpr std::size_t kEntryTrailerBytes = kHashBytes;
inline constexpr std::size_t kObjectAlignment = 16;
inline constexpr std::uint64_t kMaxMetadataBytes = 16u << 20;
inline constexpr std::uint64_t kMaxObjectBytes = 64u << 20;

enum class EntryDefect : std::uint8_t {
  kTruncated,        // shorter than its header says, or than a header
  kTrailingBytes,    // longer than its header says
  kBadMagic,         // not a zyfa entry
  kBadVersion,       // an entry of another format version
  kBadSizes,         // a size outside its limit, or reserved or pad bytes that are not zero
  kBadChecksum,      // the trailer does not match the bytes
  kKeyMismatch,      // a sound entry of another key
  kPayloadRejected,  // sound, but the caller's validator refuses the object or metadata
  kUnsafeFile,       // a symlink, not a regular file, foreign-owned, or writable by others: never read
  kUnreadable,       // the operating system refused to open or read it; says nothing about its bytes
};

// Stable lower-case name ("truncated", "key-mismatch", ...), also the suffix of a file that is set aside.
[[nodiscard]] std::string_view entry_defect_name(EntryDefect defect);

struct EntryError {
  EntryDefect defect = EntryDefect::kTruncated;
  Error error;  // kCorruptData, or what the validator gave
};

template <typename T>
using EntryExpected = tl::expected<T, EntryError>;

// Bytes that own their memory, 16-byte aligned and not zeroed first.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}
  Buffer(Buffer&& other) noexcept : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  [[nodiscard]] std::span<std::byte> bytes() { return {bytes_.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

// Where the parts of an entry lie, from a header that was checked.
struct EntryLayout {
  std::uint64_t key_size = 0, metadata_size = 0, object_size = 0;

  [[nodiscard]] std::uint64_t metadata_offset() const { return kEntryHeaderBytes + key_size; }
  [[nodiscard]] std::uint64_t object_offset() const {
    return (metadata_offset() + metadata_size + kObjectAlignment - 1) / kObjectAlignment * kObjectAlignment;
  }
  [[nodiscard]] std::uint64_t trailer_offset() const { return object_offset() + object_size; }
  [[nodiscard]] std::uint64_t file_size() const { return trailer_offset() + kEntryTrailerBytes; }
};

// Checks the header (as many of its bytes as there are) against the length of the whole file; allocates nothing.
[[nodiscard]] EntryExpected<EntryLayout> check_entry_header(std::span<const std::byte> header, std::uint64_t file_size);

// A whole, checked entry in memory. Immutable; the spans live as long as it does.
class Entry {
 public:
  // kInvalidArgument when a part is empty that must not be, or larger than its limit.
  [[nodiscard]] static Expected<Entry> encode(std::string_view key_bytes, std::span<const std::byte> metadata,
                                              std::span<const std::byte> object);
  // Every check of the grammar on the bytes of one file.
  [[nodiscard]] static EntryExpected<Entry> decode(Buffer file);
  [[nodiscard]] static EntryExpected<Entry> decode(std::span<const std::byte> file);  // copies after the size checks

  [[nodiscard]] std::string_view key() const { return as_text(part(kEntryHeaderBytes, layout_.key_size)); }
  [[nodiscard]] std::span<const std::byte> metadata() const {
    return part(layout_.metadata_offset(), layout_.metadata_size);
  }
  [[nodiscard]] std::span<const std::byte> object() const { return part(layout_.object_offset(), layout_.object_size); }
  [[nodiscard]] std::span<const std::byte> file_bytes() const { return file_.bytes(); }

 private:
  Entry(Buffer file, EntryLayout layout) : file_(std::move(file)), layout_(layout) {}
  [[nodiscard]] std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    return file_.bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }

  Buffer file_;
  EntryLayout layout_;
};

[[nodiscard]] EntryError key_mismatch(std::string_view wanted, std::string_view found);

// Metadata by custom: pairs := count:u32 (name_size:u32 name value_size:u32 value)*count. Values may be any bytes.
using MetadataPairs = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string encode_metadata(const MetadataPairs& pairs);
[[nodiscard]] Expected<MetadataPairs> decode_metadata(std::span<const std::byte> bytes);  // kCorruptData

}  // namespace zyfa::cache
