// Bounds-checked view of an ELF64 little-endian AMDGPU shared object. Any bytes are safe input.
//
// Invariant: every span and string_view handed out lies inside the file; every segment's memory range is free of
// overflow and of overlap with the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/object/code_object.h"
#include "zyfa/error.h"

namespace zyfa::jit {

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t flags = 0, address = 0;
  std::uint32_t link = 0;
  std::span<const std::byte> bytes;  // empty for SHT_NOBITS
  [[nodiscard]] bool allocated() const { return (flags & 2) != 0; }
  [[nodiscard]] bool executable() const { return (flags & 4) != 0; }
};

struct ElfSymbol {
  std::string_view name;
  std::uint64_t value = 0, size = 0;
  std::uint8_t type = 0;  // STT_OBJECT 1, STT_FUNC 2
  std::uint16_t section = 0;
};

class ElfFile {
 public:
  // Views `bytes`, which must outlive the result. kCorruptData, or kArchMismatch for another machine or another gfx
  // target than gfx950 with any sramecc and xnack setting.
  [[nodiscard]] static Expected<ElfFile> open(std::span<const std::byte> bytes);

  [[nodiscard]] std::uint32_t flags() const { return flags_; }
  [[nodiscard]] std::uint8_t abi_version() const { return abi_version_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] const ElfSection* section(std::string_view name) const;
  // Of .dynsym, or of .symtab when there is none.
  [[nodiscard]] const std::vector<ElfSymbol>& symbols() const { return symbols_; }
  // Of the loaded relocation tables, against the symbols above. Errors as read_code_object().
  [[nodiscard]] Expected<std::vector<Relocation>> relocations() const;
  // Description of the first note (name "AMDGPU", type 32), empty when there is none.
  [[nodiscard]] Expected<std::span<const std::byte>> metadata_note() const;
  // File bytes behind [address, address + size), or nothing when no segment holds them all.
  [[nodiscard]] std::optional<std::span<const std::byte>> at_address(std::uint64_t address, std::uint64_t size) const;

 private:
  Status read_header(std::span<const std::byte> bytes);
  Status read_segments();
  Status read_sections();
  Status read_symbols();
  [[nodiscard]] std::optional<std::span<const std::byte>> file_range(std::uint64_t offset, std::uint64_t size) const;

  std::span<const std::byte> file_;
  std::uint32_t flags_ = 0;
  std::uint8_t abi_version_ = 0;
  std::uint64_t segment_table_ = 0, section_table_ = 0;
  std::uint16_t segment_count_ = 0, section_count_ = 0, name_section_ = 0;
  std::vector<Segment> segments_;
  std::vector<ElfSection> sections_;
  std::vector<ElfSymbol> symbols_;
};

// Reads a little-endian integer at `offset`. Precondition: it lies inside `bytes`.
template <typename T>
T load_little(std::span<const std::byte> bytes, std::size_t offset) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(bytes[offset + i]) << (8 * i)));
  }
  return value;
}

}  // namespace zyfa::jit
