// Joins the ELF tables, kernel descriptors (gfx950-isa.md 5.1), metadata and the listing section into a CodeObject.
#include "jit/object/code_object.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "jit/object/elf_file.h"
#include "jit/object/listing_notes.h"
#include "jit/object/metadata.h"

namespace zyfa::jit {
namespace {

constexpr std::string_view kDescriptorSuffix = ".kd";
constexpr std::size_t kDescriptorSize = 64;
constexpr std::size_t kMaxKernels = 4096;  // keeps crafted symbol tables from costing quadratic time

tl::unexpected<Error> corrupt(std::string what) {
  return make_error(ErrorCode::kCorruptData, "not a valid code object: " + std::move(what));
}

Status read_text(const ElfFile& elf, CodeObject& object) {
  const ElfSection* const text = elf.section(".text");
  if (text == nullptr || !text->executable()) return corrupt("no executable section .text");
  // The loader follows segments, so the section must be the bytes that are loaded at its address.
  const auto loaded = elf.at_address(text->address, text->bytes.size());
  if (!loaded || loaded->data() != text->bytes.data()) return corrupt(".text is not what its segment loads");
  object.text_address = text->address;
  object.text = text->bytes;
  return {};
}

// Where code starting at each function symbol ends: its size, or the next function, or the end of .text.
class CodeRanges {
 public:
  CodeRanges(const ElfFile& elf, const CodeObject& object) : end_(object.text_address + object.text.size()) {
    for (const ElfSymbol& symbol : elf.symbols()) {
      if (symbol.type != 2 || symbol.section == 0) continue;  // STT_FUNC
      starts_.push_back(symbol.value);
      if (symbol.size != 0) sizes_.emplace(symbol.value, symbol.size);
    }
    std::sort(starts_.begin(), starts_.end());
  }

  [[nodiscard]] std::uint64_t code_bytes(std::uint64_t entry) const {
    const std::uint64_t rest = end_ - entry;
    if (const auto it = sizes_.find(entry); it != sizes_.end()) return std::min(it->second, rest);
    const auto next = std::upper_bound(starts_.begin(), starts_.end(), entry);
    return next != starts_.end() && *next < end_ ? *next - entry : rest;
  }

 private:
  std::uint64_t end_;
  std::vector<std::uint64_t> starts_;
  std::unordered_map<std::uint64_t, std::uint64_t> sizes_;
};

Status read_descriptor(const ElfFile& elf, const CodeObject& object, const ElfSymbol& symbol, KernelImage& kernel) {
  const auto bytes = elf.at_address(symbol.value, kDescriptorSize);
  if (!bytes) return corrupt(fmt::format("the descriptor of kernel {} lies in no segment", kernel.name));
  kernel.descriptor_lds = load_little<std::uint32_t>(*bytes, 0);
  kernel.descriptor_private = load_little<std::uint32_t>(*bytes, 4);
  kernel.descriptor_kernarg = load_little<std::uint32_t>(*bytes, 8);
  kernel.rsrc3 = load_little<std::uint32_t>(*bytes, 44);
  kernel.rsrc1 = load_little<std::uint32_t>(*bytes, 48);
  kernel.rsrc2 = load_little<std::uint32_t>(*bytes, 52);
  kernel.properties = load_little<std::uint16_t>(*bytes, 56);
  kernel.preload = load_little<std::uint16_t>(*bytes, 58);
  const std::uint64_t entry = symbol.value + load_little<std::uint64_t>(*bytes, 16);  // signed, wraps as intended
  if (entry < object.text_address || entry - object.text_address >= object.text.size() || entry % 4 != 0) {
    return corrupt(fmt::format("kernel {} starts at address 0x{:x}, outside .text or unaligned", kernel.name, entry));
  }
  kernel.entry_offset = entry - object.text_address;
  return {};
}

Status read_kernels(const ElfFile& elf, CodeObject& object) {
  const CodeRanges ranges(elf, object);
  for (const ElfSymbol& symbol : elf.symbols()) {
    const bool is_descriptor = symbol.section != 0 && symbol.type <= 1 && symbol.name.ends_with(kDescriptorSuffix) &&
                               symbol.name.size() > kDescriptorSuffix.size();
    if (!is_descriptor) continue;
    if (object.kernels.size() == kMaxKernels) return corrupt(fmt::format("more than {} kernels", kMaxKernels));
    KernelImage kernel;
    kernel.name = symbol.name.substr(0, symbol.name.size() - kDescriptorSuffix.size());
    if (object.find(kernel.name) != nullptr) return corrupt("two descriptors for kernel " + kernel.name);
    if (Status s = read_descriptor(elf, object, symbol, kernel); !s) return s;
    kernel.code_bytes = ranges.code_bytes(object.text_address + kernel.entry_offset);
    object.kernels.push_back(std::move(kernel));
  }
  return {};
}

Status join_metadata(const ElfFile& elf, CodeObject& object) {
  const auto note = elf.metadata_note();
  if (!note) return tl::unexpected<Error>(note.error());
  if (note->empty()) return {};
  auto metadata = read_metadata(*note);
  if (!metadata) return tl::unexpected<Error>(metadata.error());
  object.target = std::move(metadata->target);
  for (KernelMetadata& row : metadata->kernels) {
    const auto it = std::find_if(object.kernels.begin(), object.kernels.end(), [&row](const KernelImage& k) {
      return row.symbol.size() == k.name.size() + kDescriptorSuffix.size() && row.symbol.starts_with(k.name) &&
             row.symbol.ends_with(kDescriptorSuffix);
    });
    if (it == object.kernels.end()) return corrupt("metadata names " + row.symbol + ", which is no symbol");
    KernelImage& kernel = *it;
    kernel.has_metadata = true;
    kernel.kernarg_bytes = row.image.kernarg_bytes;
    kernel.group_bytes = row.image.group_bytes;
    kernel.private_bytes = row.image.private_bytes;
    kernel.sgprs = row.image.sgprs;
    kernel.vgprs = row.image.vgprs;
    kernel.agprs = row.image.agprs;
    kernel.max_workgroup = row.image.max_workgroup;
    kernel.wavefront_size = row.image.wavefront_size;
    kernel.required_block = row.image.required_block;
    kernel.arguments = std::move(row.image.arguments);
  }
  return {};
}

Status read_listing(const ElfFile& elf, CodeObject& object) {
  const ElfSection* const section = elf.section(kListingSection);
  if (section == nullptr) return {};
  const std::string_view text(reinterpret_cast<const char*>(section->bytes.data()), section->bytes.size());
  auto notes = read_listing_notes(text, object.text.size() / 4);
  if (!notes) return tl::unexpected<Error>(notes.error());
  object.listing = std::move(*notes);
  return {};
}

}  // namespace

const KernelImage* CodeObject::find(std::string_view name) const {
  const auto it = std::find_if(kernels.begin(), kernels.end(), [name](const KernelImage& k) { return k.name == name; });
  return it != kernels.end() ? &*it : nullptr;
}

Expected<CodeObject> read_code_object(std::vector<std::byte> bytes) {
  CodeObject object;
  object.bytes = std::move(bytes);
  const auto elf = ElfFile::open(object.bytes);
  if (!elf) return tl::unexpected<Error>(elf.error());
  object.e_flags = elf->flags();
  object.abi_version = elf->abi_version();
  object.segments = elf->segments();
  auto relocations = elf->relocations();
  if (!relocations) return tl::unexpected<Error>(relocations.error());
  object.relocations = *std::move(relocations);
  for (const auto step : {read_text, read_kernels, join_metadata, read_listing}) {
    if (Status s = step(*elf, object); !s) return tl::unexpected<Error>(s.error());
  }
  return object;
}

}  // namespace zyfa::jit
