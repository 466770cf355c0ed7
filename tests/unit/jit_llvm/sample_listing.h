// Listings for the tests of jit/llvm: one instruction of every opcode, and kernels of any length with the mix of an
// attention loop. Physical registers only; the code is never run.
#pragma once

#include <algorithm>
#include <vector>

#include "jit/isa/instruction.h"
#include "jit/isa/op_info.h"
#include "jit/object/kernel_descriptor.h"

namespace zyfa::jit::sample {

inline constexpr std::uint32_t kVgprs = 256;

// A register tuple of the bank that differs with `salt`; even start for tuples, multiples of four for wide SGPR tuples.
inline Reg pick(Bank bank, std::uint16_t count, std::uint32_t salt) {
  const std::uint32_t limit = bank == Bank::kSgpr ? 96 : 128;
  const std::uint32_t align = count == 1 ? 1 : (bank == Bank::kSgpr && count >= 4 ? 4 : 2);
  const std::uint32_t first = salt * 37 % (limit - count + 1) / align * align;
  return {bank, false, count, 0, first};
}

inline Operand operand_for(const OpInfo& info, std::size_t index, std::uint32_t salt) {
  const OperandInfo& want = info.operands[index];
  // Operands come from disjoint thirds of the file, so destinations never overlap sources.
  const auto vgprs = [&](std::uint16_t count) {
    Reg reg = pick(Bank::kVgpr, count, salt + static_cast<std::uint32_t>(index));
    reg.id = reg.id % 48 / 2 * 2 + static_cast<std::uint32_t>(index) * 64 % 256;
    return reg;
  };
  switch (want.kind) {
    case Kind::kVgpr:
    case Kind::kVgprOrAgpr:
    case Kind::kMfmaC:
    case Kind::kVectorSource:
    case Kind::kVectorSourceLiteral:
      return vgprs(want.count);
    case Kind::kAgpr:
      return pick(Bank::kAgpr, want.count, salt);
    case Kind::kSgpr:
    case Kind::kScalarSource:
      return pick(Bank::kSgpr, want.count, salt + static_cast<std::uint32_t>(index) * 5);
    case Kind::kImmediate:
      return Imm{static_cast<std::int32_t>(info.unit == Unit::kSmem ? salt % 64 * 4 : salt % 4)};
    case Kind::kLabel:
      return Label{0};
  }
  return Imm{0};
}

// One legal instruction of the opcode.
inline Instruction instruction_of(Op op, std::uint32_t salt) {
  const OpInfo& info = op_info(op);
  Instruction instruction;
  instruction.op = op;
  for (std::size_t i = 0; i < info.operands.size(); ++i) instruction.operands.push_back(operand_for(info, i, salt));
  if (info.unit == Unit::kMfma && info.operands[3].kind == Kind::kMfmaC) {
    instruction.operands[3] = instruction.operands[0];  // accumulate in place
    // Scales apart from D.
    for (std::size_t i = 4; i < instruction.operands.size(); ++i) {
      instruction.operands[i] = vgpr((std::get<Reg>(instruction.operands[0]).id + 16) % (kVgprs - 1));
    }
  }
  if ((info.modifiers & kModOffen) != 0) instruction.mods.offen = true;
  if ((info.modifiers & kModOffset) != 0) instruction.mods.offset = static_cast<std::int32_t>(salt % 128 * 16);
  if ((info.modifiers & kModBitop3) != 0) instruction.mods.bitop3 = 0x96;
  instruction.comment = "sample " + std::to_string(salt % 29);
  instruction.origin = {"stage@" + std::to_string(salt / 64 % 5), "tests/sample.cpp", salt % 97 + 1};
  return instruction;
}

inline KernelDeclaration declaration(std::string symbol) {
  KernelDeclaration d;
  d.symbol = std::move(symbol);
  d.vgprs = kVgprs;
  d.sgprs = 96;
  d.lds_bytes = 131072;
  d.kernarg_bytes = 128;
  d.workgroup_size = 512;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const std::uint32_t size = i % 3 == 2 ? 4 : 8;
    d.arguments.push_back({"argument_" + std::to_string(i), i * 8, size, i % 3 == 0});
  }
  return d;
}

// Every opcode that is machine code, once; branches go to the label at the start.
inline Listing every_opcode() {
  Listing listing;
  listing.symbol = "every_opcode";
  const Label start = listing.new_label();
  listing.code.push_back({});
  listing.code.back().op = Op::kLabel;
  listing.code.back().operands = {start};
  for (std::uint16_t op = 0; op < static_cast<std::uint16_t>(Op::kCount); ++op) {
    if (op_info(static_cast<Op>(op)).unit == Unit::kPseudo || static_cast<Op>(op) == Op::kSEndpgm) continue;
    listing.code.push_back(instruction_of(static_cast<Op>(op), op));
  }
  listing.code.push_back(instruction_of(Op::kSEndpgm, 0));
  return listing;
}

// About `count` instructions in the proportions of an unrolled attention loop.
inline Listing attention_like(std::uint32_t count) {
  static constexpr Op kMix[] = {
      Op::kVMfmaF32_32x32x16Bf16,
      Op::kVFmaF32,
      Op::kVExpF32,
      Op::kVMax3F32,
      Op::kDsReadB128,
      Op::kVFmaF32,
      Op::kVExpF32,
      Op::kVCvtPkBf16F32,
      Op::kVFmaF32,
      Op::kVExpF32,
      Op::kDsReadB64TrB16,
      Op::kVAddF32,
      Op::kVMfmaF32_32x32x16Bf16,
      Op::kVPermlane32Swap,
      Op::kSNop,
      Op::kVMulF32,
      Op::kVFmaF32,
      Op::kBufferLoadDwordx4Lds,
      Op::kVExpF32,
      Op::kSAddU32,
      Op::kVAddU32,
      Op::kVFmaF32,
      Op::kVMax3F32,
      Op::kVCndmaskB32,
  };
  Listing listing;
  listing.symbol = "attention_like";
  const Label start = listing.new_label();
  Instruction label;
  label.op = Op::kLabel;
  label.operands = {start};
  listing.code.push_back(label);
  for (std::uint32_t i = 0; i + 2 < count; ++i) {
    listing.code.push_back(instruction_of(kMix[i % std::size(kMix)], i));
  }
  listing.code.push_back(instruction_of(Op::kSCbranchScc1, 0));
  listing.code.push_back(instruction_of(Op::kSEndpgm, 0));
  return listing;
}

}  // namespace zyfa::jit::sample
