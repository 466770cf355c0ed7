// The instruction that aligns loops, by its bits and by LLVM's reading: it waits for nothing.
#include <gmock/gmock.h>

#include <cstring>

#include "jit/passes/passes.h"
#include "tests/unit/jit_llvm/code_helpers.h"
#include "tests/unit/jit_llvm/sample_listing.h"

namespace zyfa::jit {
namespace {

Instruction make(Op op, std::vector<Operand> operands) {
  Instruction instruction;
  instruction.op = op;
  instruction.operands = std::move(operands);
  return instruction;
}

// A long instruction behind another that starts at 4, with nothing between that could grow.
Listing loop_off_by_a_dword() {
  Listing listing;
  listing.symbol = "k";
  const Label top = listing.new_label();
  const Instruction longer = make(Op::kVMax3F32, {vgpr(0), vgpr(1), vgpr(2), vgpr(3)});
  listing.code = {make(Op::kSSetprio, {Imm{1}}),  longer,
                  make(Op::kLabel, {top}),        longer,
                  make(Op::kSCbranchScc1, {top}), make(Op::kSEndpgm, {})};
  return listing;
}

TEST(AlignLoops, ThePaddingWaitsForNothing) {
  Listing listing = loop_off_by_a_dword();
  align_loops(listing);
  const CodeObject object = must(read_code_object(must(assemble(listing, sample::declaration("k")))));
  const KernelImage* kernel = object.find("k");
  ASSERT_NE(kernel, nullptr);
  const auto text = object.text.subspan(kernel->entry_offset, kernel->code_bytes);
  const std::vector<Decoded> decoded = must(disassemble(text));
  ASSERT_EQ(decoded.size(), 6U);
  const Decoded& padding = decoded[2];
  ASSERT_EQ(padding.mnemonic, "s_waitcnt") << padding.text;
  EXPECT_EQ(decoded[3].offset % 8, 0U);
  EXPECT_EQ(padding.size, 4);

  // gfx950-isa.md 3.5: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8; each counter at its largest.
  std::uint32_t word = 0;
  std::memcpy(&word, text.data() + padding.offset, sizeof(word));
  EXPECT_EQ(word >> 16, 0xbf8cU);
  EXPECT_EQ((word & 15) | (word >> 14 & 3) << 4, 63U);
  EXPECT_EQ(word >> 4 & 7, 7U);
  EXPECT_EQ(word >> 8 & 15, 15U);
  // The same from text, by LLVM's assembler.
  std::uint32_t asked = 0;
  const std::vector<std::byte> code = code_of("s_waitcnt vmcnt(63) & expcnt(7) & lgkmcnt(15)");
  std::memcpy(&asked, code.data(), sizeof(asked));
  EXPECT_EQ(word, asked);
}

}  // namespace
}  // namespace zyfa::jit
