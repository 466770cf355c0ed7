// Text views of a code object. The ISA dump pairs decoded instructions with the notes of .zyfa.listing by their order
// from the kernel's entry.
#include "jit/verify/dump.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "jit/llvm/assembler.h"
#include "jit/llvm/print_assembly.h"
#include "jit/object/descriptor.h"

namespace zyfa::jit {
namespace {

struct KernelCode {
  const KernelImage* kernel = nullptr;
  std::span<const std::byte> bytes;
  std::vector<Decoded> decoded;
};

Expected<KernelCode> decode_kernel(const CodeObject& object, std::string_view name) {
  KernelCode code;
  code.kernel = object.find(name);
  if (code.kernel == nullptr) {
    std::vector<std::string> names;
    for (const KernelImage& kernel : object.kernels) names.push_back(kernel.name);
    return make_error(ErrorCode::kNotFound,
                      fmt::format("the code object has no kernel \"{}\"; it holds {}", name,
                                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  code.bytes = object.text.subspan(code.kernel->entry_offset, code.kernel->code_bytes);
  auto decoded = disassemble(code.bytes);
  if (!decoded) return tl::unexpected<Error>(decoded.error());
  code.decoded = std::move(*decoded);
  return code;
}

std::string encoding(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    if (i != 0) text.push_back(' ');
    for (std::size_t j = std::min(i + 4, bytes.size()); j > i; --j) {
      fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(bytes[j - 1]));
    }
  }
  return text;
}

std::string note_text(const ListingNote& note) {
  std::string text = note.comment;
  if (!note.stage.empty()) text += fmt::format("{}[{}]", text.empty() ? "" : " ", note.stage);
  if (!note.source.empty()) text += fmt::format("{}{}", text.empty() ? "" : " ", note.source);
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

// Labels by offset: every branch target that is the start of a decoded instruction or the end of the code.
std::map<std::uint64_t, std::string> find_labels(const KernelCode& code) {
  std::map<std::uint64_t, std::string> labels;
  const auto is_start = [&code](std::uint64_t offset) {
    const auto it = std::lower_bound(code.decoded.begin(), code.decoded.end(), offset,
                                     [](const Decoded& d, std::uint64_t o) { return d.offset < o; });
    return it == code.decoded.end() ? offset == code.bytes.size() : it->offset == offset;
  };
  for (const Decoded& row : code.decoded) {
    if (row.branch_target >= 0 && is_start(static_cast<std::uint64_t>(row.branch_target))) {
      labels.emplace(static_cast<std::uint64_t>(row.branch_target), "");
    }
  }
  std::size_t next = 0;
  for (auto& [offset, name] : labels) name = fmt::format("L{}", next++);
  return labels;
}

// The instruction with its branch target replaced by a label, when it has one.
std::string with_label(const Decoded& row, const std::map<std::uint64_t, std::string>& labels) {
  const auto label = labels.find(static_cast<std::uint64_t>(row.branch_target));
  if (row.branch_target < 0 || label == labels.end()) return row.text;
  const std::size_t operand = row.text.rfind(' ');
  return row.text.substr(0, operand) + " " + label->second;
}

const ListingNote* note_at(const CodeObject& object, std::size_t index) {
  return index < object.listing.size() ? &object.listing[index] : nullptr;
}

}  // namespace

Expected<std::string> dump_isa(const CodeObject& object, std::string_view kernel) {
  const auto code = decode_kernel(object, kernel);
  if (!code) return tl::unexpected<Error>(code.error());
  const auto labels = find_labels(*code);
  std::string out =
      fmt::format("; kernel {}, {} bytes, {} instructions\n", kernel, code->bytes.size(), code->decoded.size());
  for (std::size_t i = 0; i < code->decoded.size(); ++i) {
    const Decoded& row = code->decoded[i];
    if (const auto label = labels.find(row.offset); label != labels.end()) out += label->second + ":\n";
    const std::string bytes = encoding(code->bytes.subspan(row.offset, row.size));
    const ListingNote* const note = note_at(object, i);
    const std::string comment = note != nullptr ? note_text(*note) : std::string();
    std::string line = fmt::format("{:06x}  {:<17}  {}", row.offset, bytes, with_label(row, labels));
    if (!comment.empty()) line = fmt::format("{:<88} ; {}", line, comment);
    out += line;
    out.push_back('\n');
  }
  return out;
}

Expected<std::string> dump_assembly(const CodeObject& object, std::string_view kernel) {
  const auto code = decode_kernel(object, kernel);
  if (!code) return tl::unexpected<Error>(code.error());
  const auto labels = find_labels(*code);
  std::string out = text_header(kernel);
  for (std::size_t i = 0; i < code->decoded.size(); ++i) {
    const Decoded& row = code->decoded[i];
    if (const auto label = labels.find(row.offset); label != labels.end()) out += label->second + ":\n";
    const ListingNote* const note = note_at(object, i);
    const std::string comment = note != nullptr ? note_text(*note) : std::string();
    const std::string text = with_label(row, labels);
    out += comment.empty() ? "  " + text + "\n" : fmt::format("  {:<64} // {}\n", text, comment);
  }
  if (const auto label = labels.find(code->bytes.size()); label != labels.end()) out += label->second + ":\n";
  out += text_footer(kernel);
  out += descriptor_directives(*code->kernel);
  if (code->kernel->has_metadata) out += metadata_directives(*code->kernel);
  return out;
}

std::string dump_metadata(const CodeObject& object) {
  std::string out;
  const auto line = [&out](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(out), "{:<22}{}\n", name, value);
  };
  line("target", object.target.empty() ? "not named" : object.target);
  line("e_flags", fmt::format("0x{:x}", object.e_flags));
  line("code object version", std::to_string(object.abi_version + 2));
  line("file", fmt::format("{} bytes", object.bytes.size()));
  line("text", fmt::format("{} bytes at 0x{:x}", object.text.size(), object.text_address));
  line("listing notes", std::to_string(object.listing.size()));
  for (const KernelImage& k : object.kernels) {
    fmt::format_to(std::back_inserter(out), "\nkernel {}\n", k.name);
    line("  entry", fmt::format("0x{:x} in .text", k.entry_offset));
    line("  code", fmt::format("{} bytes", k.code_bytes));
    line("  VGPRs allocated", fmt::format("{} ({} arch)", k.total_vgprs(), k.accum_offset()));
    line("  LDS", fmt::format("{} bytes", k.descriptor_lds));
    line("  scratch", fmt::format("{} bytes", k.descriptor_private));
    line("  kernel arguments", fmt::format("{} bytes", k.descriptor_kernarg));
    line("  rsrc1, rsrc2, rsrc3", fmt::format("0x{:08x} 0x{:08x} 0x{:08x}", k.rsrc1, k.rsrc2, k.rsrc3));
    line("  properties, preload", fmt::format("0x{:04x} 0x{:04x}", k.properties, k.preload));
    if (!k.has_metadata) {
      line("  metadata", "none");
      continue;
    }
    line("  metadata registers", fmt::format("{} VGPRs, {} AGPRs, {} SGPRs", k.vgprs, k.agprs, k.sgprs));
    line("  metadata sizes",
         fmt::format("LDS {}, scratch {}, arguments {}", k.group_bytes, k.private_bytes, k.kernarg_bytes));
    line("  workgroup, wave", fmt::format("at most {} work-items, {} lanes", k.max_workgroup, k.wavefront_size));
    for (const KernelArgument& a : k.arguments) {
      line("  argument",
           fmt::format("{:>4} +{:<3} {} {}", a.offset, a.size, a.is_pointer ? "pointer" : "value  ", a.name));
    }
  }
  return out;
}

}  // namespace zyfa::jit
