// Reads a gfx950 code object (ELF64, amdhsa): kernels, descriptors, metadata, text, and zyfa's own listing section.
// Every size and offset is checked before use; any bytes are safe input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/object/kernel_descriptor.h"
#include "zyfa/error.h"

namespace zyfa::jit {

struct KernelImage {
  std::string name;                // symbol without ".kd"
  std::uint64_t entry_offset = 0;  // byte offset of the first instruction inside `text`
  std::uint64_t code_bytes = 0;    // size of the function symbol, or up to the next one / end of text
  std::uint32_t descriptor_lds = 0, descriptor_private = 0, descriptor_kernarg = 0;
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint16_t properties = 0, preload = 0;
  // From the metadata note; kernarg_bytes and the rest are 0 or empty when there is none.
  bool has_metadata = false;
  std::uint32_t kernarg_bytes = 0, group_bytes = 0, private_bytes = 0, sgprs = 0, vgprs = 0, agprs = 0,
                max_workgroup = 0;
  std::uint32_t wavefront_size = 0;
  std::array<std::uint32_t, 3> required_block{};  // .reqd_workgroup_size; zeros: any
  std::vector<KernelArgument> arguments;

  // rsrc3 / rsrc1 decoded: allocated arch VGPRs (accum_offset) and total.
  [[nodiscard]] std::uint32_t accum_offset() const { return ((rsrc3 & 0x3f) + 1) * 4; }
  [[nodiscard]] std::uint32_t total_vgprs() const { return ((rsrc1 & 0x3f) + 1) * 8; }
};

// A loadable segment: bytes at a virtual address (memory size may exceed the file bytes: zero fill).
struct Segment {
  std::uint64_t address = 0, memory_size = 0;
  std::span<const std::byte> bytes;
  bool executable = false, writable = false;
};

// What the loader adds the load address to: the 64-bit word at `address` becomes base + value (pointers in constant
// tables, global offset table). Every word lies inside a segment's file bytes.
struct Relocation {
  std::uint64_t address = 0, value = 0;
};

// Per instruction of one kernel, in program order: the comment and stage the listing had (section .zyfa.listing).
struct ListingNote {
  std::string stage, comment, source;  // source: "schedules/attention/forward.cpp:120"
};

// Move-only: text and segments are views into bytes.
struct CodeObject {
  CodeObject() = default;
  CodeObject(CodeObject&&) = default;
  CodeObject& operator=(CodeObject&&) = default;

  std::vector<std::byte> bytes;
  std::uint32_t e_flags = 0;
  std::uint8_t abi_version = 0;     // 3: code object v5, 4: v6
  std::string target;               // from metadata, e.g. "amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-"
  std::uint64_t text_address = 0;   // virtual address of .text
  std::span<const std::byte> text;  // into bytes
  std::vector<Segment> segments;
  std::vector<Relocation> relocations;
  std::vector<KernelImage> kernels;
  std::vector<ListingNote> listing;  // empty when the object carries none

  [[nodiscard]] const KernelImage* find(std::string_view name) const;
};

// kCorruptData for anything malformed, kArchMismatch (naming the machine or e_flags and what is allowed) for another
// target, kUnsupported for a relocation against a symbol of another object or of another kind than a 64-bit address.
[[nodiscard]] Expected<CodeObject> read_code_object(std::vector<std::byte> bytes);

}  // namespace zyfa::jit
