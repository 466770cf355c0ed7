// Helpers of kernel_text.h: in-process assembly and a hand-made kernel image.
#include "tests/unit/jit_verify/kernel_text.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace zyfa::jit::testing {
namespace {

std::vector<std::byte> text_section(const std::vector<std::byte>& elf) {
  const auto read = [&](std::size_t at, auto& value) { std::memcpy(&value, elf.data() + at, sizeof value); };
  Elf64_Ehdr header;
  read(0, header);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    read(header.e_shoff + i * sizeof section, section);
    if (section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_EXECINSTR)) {
      const auto begin = elf.begin() + static_cast<std::ptrdiff_t>(section.sh_offset);
      return {begin, begin + static_cast<std::ptrdiff_t>(section.sh_size)};
    }
  }
  return {};
}

}  // namespace

std::string defines_everything() {
  static const std::string text = [] {
    std::string s;
    for (int i = 0; i < 128; ++i) s += "v_mov_b32 v" + std::to_string(i) + ", 0\n";
    for (int i = 0; i < 64; ++i) s += "v_accvgpr_write_b32 a" + std::to_string(i) + ", 0\n";
    for (int i = 0; i < 64; ++i) s += "s_mov_b32 s" + std::to_string(i) + ", 0\n";
    return s + "s_mov_b64 vcc, 0\ns_mov_b32 m0, s0\ns_cmp_eq_u32 s0, 0\n" + nops(32);
  }();
  return text;
}

std::string nops(unsigned states) {
  std::string s;
  for (; states > 0; states -= std::min(states, 16u)) s += "s_nop " + std::to_string(std::min(states, 16u) - 1) + "\n";
  return s;
}

std::vector<std::byte> machine_code(const std::string& text) {
  const auto object = assemble_object(".text\n" + text);
  if (!object) throw std::runtime_error(to_string(object.error()));
  return text_section(*object);
}

Subject subject_of(std::vector<std::byte> code) {
  Subject s;
  s.object.bytes = std::move(code);
  s.object.text = s.object.bytes;
  auto decoded = disassemble(s.object.text);
  if (!decoded) throw std::runtime_error(to_string(decoded.error()));
  s.decoded = std::move(*decoded);
  KernelImage& k = s.kernel;
  k.name = "subject";
  k.code_bytes = s.object.text.size();
  k.descriptor_lds = k.group_bytes = 65536;
  k.descriptor_kernarg = k.kernarg_bytes = 64;
  k.rsrc1 = (256 / 8 - 1) | (96 / 8 - 1) << 6;
  k.rsrc2 = 2 << 1 | 7 << 7;  // two user SGPRs, three workgroup ids
  k.rsrc3 = 128 / 4 - 1;
  k.properties = 1 << 3;
  k.has_metadata = true;
  k.sgprs = 96;
  k.vgprs = 256;
  k.agprs = 128;
  k.max_workgroup = 512;
  k.wavefront_size = 64;
  return s;
}

VerifyReport verify_text(const std::string& text, const std::function<void(Subject&)>& change) {
  Subject s = subject_of(machine_code(text));
  if (change) change(s);
  return verify_kernel(s.object, s.kernel, s.decoded);
}

VerifyReport verify_body(const std::string& body, const std::function<void(Subject&)>& change) {
  return verify_text(defines_everything() + body + "s_endpgm\n", change);
}

std::string listing_of(const VerifyReport& report) {
  std::string s;
  for (const Finding& f : report.findings) s += to_string(f) + "\n";
  for (const std::string& n : report.notes) s += "note: " + n + "\n";
  return s;
}

std::vector<Finding> of_kind(const VerifyReport& report, FindingKind kind) {
  std::vector<Finding> result;
  for (const Finding& f : report.findings)
    if (f.kind == kind) result.push_back(f);
  return result;
}

}  // namespace zyfa::jit::testing
