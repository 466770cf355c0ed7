// The assembly text of one kernel, for MC in process and for stock llvm-mc alike.
//
// Comments of the listing are not printed as comments: they travel in the section .zyfa.listing (listing_notes.h), so
// that they survive into the code object and MC has less to lex.
#include "jit/llvm/print_assembly.h"

#include "jit/isa/op_info.h"
#include "jit/llvm/assembler.h"
#include "jit/object/descriptor.h"
#include "jit/object/listing_notes.h"

namespace zyfa::jit {
namespace {

// Code object version 5: every loader that knows gfx950 reads it, and so do older tools; version 6 only adds generic
// targets, which zyfa does not use.
constexpr std::string_view kCodeObjectVersion = "5";

std::string source_of(const Origin& origin) {
  return *origin.file == '\0' ? std::string() : std::string(origin.file) + ":" + std::to_string(origin.line);
}

// The bytes as the operand of .ascii.
std::string quoted(std::string_view bytes) {
  std::string out = "\"";
  out.reserve(bytes.size() + bytes.size() / 8 + 2);
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (value < 0x20 || value >= 0x7f) {
      out.push_back('\\');
      for (int shift = 6; shift >= 0; shift -= 3) out.push_back(static_cast<char>('0' + (value >> shift & 7)));
    } else {
      out.push_back(c);
    }
  }
  return out += '"';
}

std::string listing_section(const Listing& listing) {
  ListingNotesWriter notes;
  for (const Instruction& instruction : listing.code) {
    if (is_machine(instruction))
      notes.add(instruction.origin.stage, instruction.comment, source_of(instruction.origin));
  }
  return ".section " + std::string(kListingSection) + ",\"\",@progbits\n.ascii " + quoted(notes.finish()) + "\n";
}

}  // namespace

bool is_machine(const Instruction& instruction) { return op_info(instruction.op).unit != Unit::kPseudo; }

std::string text_header(std::string_view symbol) {
  const std::string name(symbol);
  return ".amdgcn_target \"" + std::string(kTargetId) + "\"\n.amdhsa_code_object_version " +
         std::string(kCodeObjectVersion) + "\n.text\n.globl " + name + "\n.p2align 8\n.type " + name + ",@function\n" +
         name + ":\n";
}

// The instruction fetcher runs ahead of the program counter: 16 cache lines of s_nop keep it inside the segment, as
// LLVM does for this family (AMDGPU EmitCodeEnd).
std::string text_footer(std::string_view symbol) {
  const std::string name(symbol);
  return ".size " + name + ", .-" + name + "\n.p2alignl 6, 0xbf800000\n.fill 256, 4, 0xbf800000\n";
}

PrintedAssembly print_with_lines(const Listing& listing, const KernelDeclaration& declaration) {
  PrintedAssembly printed;
  std::string& text = printed.text;
  text.reserve(1024 + listing.code.size() * 56);
  text = text_header(declaration.symbol);
  printed.first_line = 1;
  for (const char c : text) printed.first_line += static_cast<std::uint32_t>(c == '\n');
  printed.begin.reserve(listing.code.size() + 1);
  for (const Instruction& instruction : listing.code) {
    printed.begin.push_back(text.size());
    text += print(instruction);
    text.push_back('\n');
  }
  printed.begin.push_back(text.size());
  text += text_footer(declaration.symbol);
  const KernelImage image = expected_image(declaration);
  text += descriptor_directives(image);
  text += metadata_directives(image);
  text += listing_section(listing);
  return printed;
}

std::string print_assembly(const Listing& listing, const KernelDeclaration& declaration) {
  return print_with_lines(listing, declaration).text;
}

}  // namespace zyfa::jit
