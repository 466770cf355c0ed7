// Linear decoding through LLVM's MCDisassembler and MCInstPrinter.
//
// An undecodable word costs four bytes: every gfx950 encoding is a whole number of dwords.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include <llvm/ADT/SmallString.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/Support/raw_ostream.h>

#include "jit/llvm/assembler.h"
#include "jit/llvm/mc_facts.h"
#include "jit/llvm/mc_target.h"

namespace zyfa::jit {
namespace {

std::uint32_t little_dword(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, bytes.size()); ++i) {
    value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  }
  return value;
}

// "\tv_add_u32_e32 v0,  v1" -> "v_add_u32_e32 v0, v1".
std::string single_spaced(std::string_view printed) {
  std::string text;
  text.reserve(printed.size());
  for (const char c : printed) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank) {
      text.push_back(c);
    } else if (!text.empty() && text.back() != ' ') {
      text.push_back(' ');
    }
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string hex_directive(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  if (bytes.size() == 4) {
    std::string text = ".long 0x";
    const std::uint32_t word = little_dword(bytes);
    for (int shift = 28; shift >= 0; shift -= 4) text.push_back(kDigits[word >> shift & 15]);
    return text;
  }
  std::string text = ".byte ";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i != 0) text += ", ";
    const auto value = std::to_integer<unsigned>(bytes[i]);
    text += "0x";
    text.push_back(kDigits[value >> 4]);
    text.push_back(kDigits[value & 15]);
  }
  return text;
}

// s_branch, s_cbranch_* and s_call_b64 hold a signed count of dwords from the next instruction in the low half.
std::int64_t branch_target(std::string_view mnemonic, std::uint64_t offset, std::uint32_t word) {
  if (!mnemonic.starts_with("s_branch") && !mnemonic.starts_with("s_cbranch_") && !mnemonic.starts_with("s_call_")) {
    return -1;
  }
  return static_cast<std::int64_t>(offset) + 4 +
         4 * static_cast<std::int64_t>(static_cast<std::int16_t>(word & 0xffff));
}

// VOP1, VOP2 and VOPC words whose first source is 0xf9 carry an SDWA dword; LLVM's printer has undefined behaviour for
// reserved selects (7) and a reserved dst_unused (3).
bool has_reserved_sdwa(std::uint32_t word, std::uint32_t next) {
  if (word >> 31 != 0 || (word & 0x1ff) != 0xf9) return false;
  const bool is_compare = word >> 25 == 0x3e;  // VOPC: an SGPR stands where others have dst_sel and dst_unused
  const bool bad_destination = !is_compare && ((next >> 8 & 7) == 7 || (next >> 11 & 3) == 3);
  return bad_destination || (next >> 16 & 7) == 7 || (next >> 24 & 7) == 7;
}

// f8f6f4 MFMA (VOP3P-MAI opcodes 0x2d, 0x2e; gfx950-isa.md 1.4) with a format above 4 or a source that is no vector
// register: LLVM's decoder takes both for granted.
bool has_reserved_f8f6f4(std::uint32_t word, std::uint32_t next) {
  const std::uint32_t opcode = word >> 16 & 0x7f;
  if (word >> 23 != 0x1a7 || (opcode != 0x2d && opcode != 0x2e)) return false;
  return (word >> 8 & 7) > 4 || next >> 29 > 4 || (next & 0x100) == 0 || (next & 0x20000) == 0;
}

// Encodings that LLVM 22 crashes on (found by decoding random words; llvm-mc crashes alike).
bool crashes_llvm(std::span<const std::byte> bytes) {
  const auto word = [bytes](std::size_t i) { return little_dword(bytes.subspan(4 * i)); };
  const bool is_scaled = word(0) >> 16 == 0xd3ac;
  return has_reserved_sdwa(word(0), word(1)) || has_reserved_f8f6f4(word(0), word(1)) ||
         (is_scaled && has_reserved_f8f6f4(word(2), word(3)));
}

const FactTable& fact_table(const McTarget& mc) {
  static const FactTable table(mc);
  return table;
}

}  // namespace

Expected<std::vector<Decoded>> disassemble(std::span<const std::byte> text) {
  const auto mc_or = mc_target();
  if (!mc_or) {
    return tl::unexpected<Error>(mc_or.error());
  }
  const McTarget& mc = **mc_or;
  const FactTable& table = fact_table(mc);
  llvm::MCContext context(mc.triple, mc.asm_info.get(), mc.registers.get(), mc.subtarget.get(), nullptr, &mc.options);
  const std::unique_ptr<llvm::MCDisassembler> decoder(mc.target->createMCDisassembler(*mc.subtarget, context));
  const std::unique_ptr<llvm::MCInstPrinter> printer(
      mc.target->createMCInstPrinter(mc.triple, 0, *mc.asm_info, *mc.instructions, *mc.registers));
  if (decoder == nullptr || printer == nullptr) {
    return make_error(ErrorCode::kInternal, "LLVM " + llvm_version() + " has no AMDGPU disassembler");
  }

  // LLVM 22's decoder dereferences a null stream when a literal is cut off by the end of the bytes. Padding keeps every
  // literal inside; an instruction that reaches into it is refused below.
  std::vector<std::uint8_t> padded(text.size() + 16);
  if (!text.empty()) std::memcpy(padded.data(), text.data(), text.size());

  std::vector<Decoded> decoded;
  decoded.reserve(text.size() / 6);
  llvm::SmallString<128> printed;
  std::size_t offset = 0;
  while (offset < text.size()) {
    const std::span<const std::byte> rest = text.subspan(offset);
    Decoded row;
    row.offset = offset;
    llvm::MCInst inst;
    std::uint64_t size = 0;
    const llvm::ArrayRef<std::uint8_t> bytes(padded.data() + offset, padded.size() - offset);
    const bool readable = rest.size() >= 4 && !crashes_llvm(std::as_bytes(std::span(padded).subspan(offset)));
    const auto status =
        readable ? decoder->getInstruction(inst, size, bytes, offset, llvm::nulls()) : llvm::MCDisassembler::Fail;
    row.valid =
        status == llvm::MCDisassembler::Success && size >= 4 && size <= 16 && size % 4 == 0 && size <= rest.size();
    if (row.valid) {
      row.size = static_cast<std::uint8_t>(size);
      printed.clear();
      llvm::raw_svector_ostream stream(printed);
      printer->printInst(&inst, offset, "", *mc.subtarget, stream);
      row.text = single_spaced(std::string_view(printed.data(), printed.size()));
      row.mnemonic = row.text.substr(0, row.text.find(' '));
      const std::uint32_t word = little_dword(rest);
      row.branch_target = branch_target(row.mnemonic, offset, word);
      row.facts = table.facts_of(inst, row.mnemonic, row.text, word);
    } else {
      row.size = static_cast<std::uint8_t>(std::min<std::size_t>(4, rest.size()));
      row.text = hex_directive(rest.first(row.size));
      row.mnemonic = row.text.substr(0, row.text.find(' '));
    }
    offset += row.size;
    decoded.push_back(std::move(row));
  }
  return decoded;
}

}  // namespace zyfa::jit
