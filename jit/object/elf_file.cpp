// ELF64 tables. Offsets are those of the ELF specification; machine and flag values those of gfx950-isa.md 5.3.
#include "jit/object/elf_file.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace zyfa::jit {
namespace {

constexpr std::size_t kHeaderSize = 64, kSegmentSize = 56, kSectionSize = 64, kSymbolSize = 24;
constexpr std::uint16_t kMachineAmdgpu = 224;
constexpr std::uint8_t kOsAbiAmdhsa = 64;
constexpr std::uint32_t kMachGfx950 = 0x4f;
constexpr std::uint32_t kTypeNote = 7, kTypeNoBits = 8, kTypeSymbols = 2, kTypeDynamicSymbols = 11,
                        kTypeRelocations = 4;
constexpr std::size_t kRelocationSize = 24;
constexpr std::uint32_t kAbsolute64 = 3, kRelative64 = 13;   // R_AMDGPU_ABS64, R_AMDGPU_RELATIVE64 (AMDGPUUsage)
constexpr std::uint64_t kMaxImage = std::uint64_t{1} << 32;  // no kernel image comes near 4 GiB

tl::unexpected<Error> corrupt(std::string what) {
  return make_error(ErrorCode::kCorruptData, "not a valid code object: " + std::move(what));
}

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case 3:
      return "x86 (3)";
    case 62:
      return "x86-64 (62)";
    case 183:
      return "AArch64 (183)";
    case 190:
      return "CUDA (190)";
    default:
      return std::to_string(machine);
  }
}

// EF_AMDGPU_MACH values of the targets that someone may hand in by mistake.
std::string gfx_name(std::uint32_t mach) {
  struct Row {
    std::uint32_t mach;
    std::string_view name;
  };
  static constexpr std::array<Row, 24> kRows = {
      {{0x2c, "gfx900"},  {0x2d, "gfx902"},         {0x2e, "gfx904"},       {0x2f, "gfx906"},  {0x30, "gfx908"},
       {0x31, "gfx909"},  {0x32, "gfx90c"},         {0x3f, "gfx90a"},       {0x40, "gfx940"},  {0x4b, "gfx941"},
       {0x4c, "gfx942"},  {0x33, "gfx1010"},        {0x36, "gfx1030"},      {0x37, "gfx1031"}, {0x41, "gfx1100"},
       {0x46, "gfx1101"}, {0x47, "gfx1102"},        {0x44, "gfx1103"},      {0x48, "gfx1200"}, {0x4e, "gfx1201"},
       {0x49, "gfx1250"}, {0x5f, "gfx9-4-generic"}, {0x51, "gfx9-generic"}, {0x2a, "gfx803"}}};
  const auto* const row = std::find_if(kRows.begin(), kRows.end(), [mach](const Row& r) { return r.mach == mach; });
  return row != kRows.end() ? std::string(row->name) : fmt::format("unknown AMDGPU machine 0x{:x}", mach);
}

// The NUL-terminated string at `offset` of a string table, or nothing when it runs off the table.
std::optional<std::string_view> string_at(std::span<const std::byte> table, std::uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const auto* const first = reinterpret_cast<const char*>(table.data()) + offset;
  const std::string_view rest(first, table.size() - offset);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

}  // namespace

Expected<ElfFile> ElfFile::open(std::span<const std::byte> bytes) {
  ElfFile file;
  if (Status s = file.read_header(bytes); !s) return tl::unexpected<Error>(s.error());
  if (Status s = file.read_segments(); !s) return tl::unexpected<Error>(s.error());
  if (Status s = file.read_sections(); !s) return tl::unexpected<Error>(s.error());
  if (Status s = file.read_symbols(); !s) return tl::unexpected<Error>(s.error());
  return file;
}

std::optional<std::span<const std::byte>> ElfFile::file_range(std::uint64_t offset, std::uint64_t size) const {
  if (offset > file_.size() || size > file_.size() - offset) return std::nullopt;
  return file_.subspan(offset, size);
}

Status ElfFile::read_header(std::span<const std::byte> bytes) {
  file_ = bytes;
  if (bytes.size() < kHeaderSize) {
    return corrupt(fmt::format("{} bytes, an ELF header alone has {}", bytes.size(), kHeaderSize));
  }
  static constexpr std::array<std::uint8_t, 4> kMagic = {0x7f, 'E', 'L', 'F'};
  const auto byte = [bytes](std::size_t i) { return std::to_integer<std::uint8_t>(bytes[i]); };
  for (std::size_t i = 0; i < kMagic.size(); ++i) {
    if (byte(i) != kMagic[i]) return corrupt("no ELF magic at its start");
  }
  if (byte(4) != 2 || byte(5) != 1 || byte(6) != 1) {
    return corrupt(fmt::format("ELF class {}, data encoding {}, version {}; allowed is 64-bit (2) little-endian (1), 1",
                               byte(4), byte(5), byte(6)));
  }
  const auto machine = load_little<std::uint16_t>(bytes, 18);
  if (machine != kMachineAmdgpu) {
    return make_error(ErrorCode::kArchMismatch,
                      fmt::format("an object for machine {}; allowed is AMDGPU (224), gfx950", machine_name(machine)));
  }
  flags_ = load_little<std::uint32_t>(bytes, 48);
  if ((flags_ & 0xff) != kMachGfx950) {
    return make_error(ErrorCode::kArchMismatch,
                      fmt::format("a code object for {} (e_flags 0x{:x}); allowed is gfx950 (machine 0x4f in the low "
                                  "byte of e_flags)",
                                  gfx_name(flags_ & 0xff), flags_));
  }
  if (byte(7) != kOsAbiAmdhsa) {
    return make_error(ErrorCode::kArchMismatch,
                      fmt::format("a code object for OS ABI {}; allowed is AMDGPU_HSA (64)", byte(7)));
  }
  abi_version_ = byte(8);
  if (abi_version_ < 2 || abi_version_ > 4) {
    return make_error(
        ErrorCode::kArchMismatch,
        fmt::format("code object ABI version {}; allowed are 2 to 4 (code object v4 to v6)", abi_version_));
  }
  const auto type = load_little<std::uint16_t>(bytes, 16);
  if (type == 1) return corrupt("a relocatable object; link it to a shared object first");
  if (type != 3) return corrupt(fmt::format("ELF type {}; allowed is a shared object (3)", type));

  segment_table_ = load_little<std::uint64_t>(bytes, 32);
  section_table_ = load_little<std::uint64_t>(bytes, 40);
  segment_count_ = load_little<std::uint16_t>(bytes, 56);
  section_count_ = load_little<std::uint16_t>(bytes, 60);
  name_section_ = load_little<std::uint16_t>(bytes, 62);
  const auto segment_size = load_little<std::uint16_t>(bytes, 54);
  const auto section_size = load_little<std::uint16_t>(bytes, 58);
  if (segment_count_ == 0 || segment_size != kSegmentSize ||
      !file_range(segment_table_, std::uint64_t{segment_count_} * kSegmentSize)) {
    return corrupt(fmt::format("program header table of {} entries of {} bytes at offset {} in a file of {} bytes",
                               segment_count_, segment_size, segment_table_, bytes.size()));
  }
  if (section_count_ == 0 || section_size != kSectionSize || name_section_ >= section_count_ ||
      !file_range(section_table_, std::uint64_t{section_count_} * kSectionSize)) {
    return corrupt(fmt::format("section header table of {} entries of {} bytes at offset {} in a file of {} bytes",
                               section_count_, section_size, section_table_, bytes.size()));
  }
  return {};
}

Status ElfFile::read_segments() {
  for (std::uint16_t i = 0; i < segment_count_; ++i) {
    const auto header = file_.subspan(segment_table_ + std::uint64_t{i} * kSegmentSize, kSegmentSize);
    if (load_little<std::uint32_t>(header, 0) != 1) continue;  // PT_LOAD
    const auto flags = load_little<std::uint32_t>(header, 4);
    const auto file_size = load_little<std::uint64_t>(header, 32);
    const auto bytes = file_range(load_little<std::uint64_t>(header, 8), file_size);
    Segment segment;
    segment.address = load_little<std::uint64_t>(header, 16);
    segment.memory_size = load_little<std::uint64_t>(header, 40);
    if (!bytes || segment.memory_size < file_size) {
      return corrupt(fmt::format("segment {} holds more bytes than the file or its memory range", i));
    }
    if (segment.address > kMaxImage || segment.memory_size > kMaxImage) {
      return corrupt(fmt::format("segment {} reaches beyond 4 GiB", i));
    }
    segment.bytes = *bytes;
    segment.executable = (flags & 1) != 0;
    segment.writable = (flags & 2) != 0;
    segments_.push_back(segment);
  }
  std::vector<Segment> sorted = segments_;
  std::sort(sorted.begin(), sorted.end(), [](const Segment& a, const Segment& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1].address + sorted[i - 1].memory_size > sorted[i].address) {
      return corrupt("two loadable segments overlap");
    }
  }
  return {};
}

Status ElfFile::read_sections() {
  std::vector<std::uint32_t> names;
  for (std::uint16_t i = 0; i < section_count_; ++i) {
    const auto header = file_.subspan(section_table_ + std::uint64_t{i} * kSectionSize, kSectionSize);
    ElfSection section;
    names.push_back(load_little<std::uint32_t>(header, 0));
    section.type = load_little<std::uint32_t>(header, 4);
    section.flags = load_little<std::uint64_t>(header, 8);
    section.address = load_little<std::uint64_t>(header, 16);
    section.link = load_little<std::uint32_t>(header, 40);
    if (section.type != 0 && section.type != kTypeNoBits) {
      const auto bytes = file_range(load_little<std::uint64_t>(header, 24), load_little<std::uint64_t>(header, 32));
      if (!bytes) return corrupt(fmt::format("section {} lies outside the file", i));
      section.bytes = *bytes;
    }
    sections_.push_back(section);
  }
  for (std::uint16_t i = 0; i < section_count_; ++i) {
    const auto name = string_at(sections_[name_section_].bytes, names[i]);
    if (!name) return corrupt(fmt::format("section {} has its name outside the name table", i));
    sections_[i].name = *name;
  }
  return {};
}

Status ElfFile::read_symbols() {
  const auto of_type = [this](std::uint32_t type) {
    return std::find_if(sections_.begin(), sections_.end(), [type](const ElfSection& s) { return s.type == type; });
  };
  auto table = of_type(kTypeDynamicSymbols);
  if (table == sections_.end()) table = of_type(kTypeSymbols);
  if (table == sections_.end()) return {};
  if (table->link >= sections_.size()) return corrupt("the symbol table names no string table");
  const std::span<const std::byte> strings = sections_[table->link].bytes;
  const std::size_t count = table->bytes.size() / kSymbolSize;
  symbols_.reserve(count);
  for (std::size_t i = 1; i < count; ++i) {
    const auto entry = table->bytes.subspan(i * kSymbolSize, kSymbolSize);
    const auto name = string_at(strings, load_little<std::uint32_t>(entry, 0));
    if (!name) return corrupt(fmt::format("symbol {} has its name outside the string table", i));
    ElfSymbol symbol;
    symbol.name = *name;
    symbol.type = std::to_integer<std::uint8_t>(entry[4]) & 0xf;
    symbol.section = load_little<std::uint16_t>(entry, 6);
    symbol.value = load_little<std::uint64_t>(entry, 8);
    symbol.size = load_little<std::uint64_t>(entry, 16);
    symbols_.push_back(symbol);
  }
  return {};
}

Expected<std::vector<Relocation>> ElfFile::relocations() const {
  std::vector<Relocation> found;
  for (const ElfSection& section : sections_) {
    if (section.type != kTypeRelocations || !section.allocated()) continue;
    for (std::size_t at = 0; at + kRelocationSize <= section.bytes.size(); at += kRelocationSize) {
      const auto entry = section.bytes.subspan(at, kRelocationSize);
      const auto address = load_little<std::uint64_t>(entry, 0);
      const auto type = load_little<std::uint32_t>(entry, 8), index = load_little<std::uint32_t>(entry, 12);
      Relocation relocation{address, load_little<std::uint64_t>(entry, 16)};
      if (type == kAbsolute64) {
        // symbols_ leaves out the table's first entry, which stands for no symbol.
        if (index == 0 || index > symbols_.size()) {
          return corrupt(
              fmt::format("a relocation at 0x{:x} against symbol {} of {}", address, index, symbols_.size()));
        }
        const ElfSymbol& symbol = symbols_[index - 1];
        if (symbol.section == 0) {
          return make_error(ErrorCode::kUnsupported,
                            fmt::format("the code object needs '{}' of another object", symbol.name));
        }
        relocation.value += symbol.value;
      } else if (type != kRelative64) {
        return make_error(ErrorCode::kUnsupported,
                          fmt::format("a relocation of type {} at 0x{:x}; R_AMDGPU_ABS64 (3) and R_AMDGPU_RELATIVE64 "
                                      "(13) are allowed",
                                      type, address));
      }
      if (!at_address(address, 8)) return corrupt(fmt::format("a relocation at 0x{:x}, outside the segments", address));
      found.push_back(relocation);
    }
  }
  return found;
}

const ElfSection* ElfFile::section(std::string_view name) const {
  const auto it =
      std::find_if(sections_.begin(), sections_.end(), [name](const ElfSection& s) { return s.name == name; });
  return it != sections_.end() ? &*it : nullptr;
}

Expected<std::span<const std::byte>> ElfFile::metadata_note() const {
  for (const ElfSection& section : sections_) {
    if (section.type != kTypeNote) continue;
    std::span<const std::byte> rest = section.bytes;
    while (rest.size() >= 12) {
      const std::uint64_t name_size = load_little<std::uint32_t>(rest, 0);
      const std::uint64_t size = load_little<std::uint32_t>(rest, 4);
      const auto type = load_little<std::uint32_t>(rest, 8);
      const std::uint64_t begin = 12 + (name_size + 3) / 4 * 4;
      if (begin > rest.size() || size > rest.size() - begin) return corrupt("a note runs off its section");
      const std::string_view name(reinterpret_cast<const char*>(rest.data()) + 12, name_size);
      if (type == 32 && name == std::string_view("AMDGPU\0", 7)) return rest.subspan(begin, size);
      rest = rest.subspan(std::min<std::uint64_t>(rest.size(), begin + (size + 3) / 4 * 4));
    }
  }
  return std::span<const std::byte>{};
}

std::optional<std::span<const std::byte>> ElfFile::at_address(std::uint64_t address, std::uint64_t size) const {
  for (const Segment& segment : segments_) {
    if (address < segment.address) continue;
    const std::uint64_t offset = address - segment.address;
    if (offset <= segment.bytes.size() && size <= segment.bytes.size() - offset) {
      return segment.bytes.subspan(offset, size);
    }
  }
  return std::nullopt;
}

}  // namespace zyfa::jit
