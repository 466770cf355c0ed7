// Every instruction that LLVM decodes for gfx950 is known to the simulator or stands in the list of those it refuses,
// and the simulator knows no others. The instructions are found by decoding every opcode of every encoding with many
// operand fields, not from a table of ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jit/llvm/assembler.h"
#include "runtime/sim/exec/inst_text.h"
#include "runtime/sim/exec/program.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;

constexpr u32 kNop = 0xbf800000;
constexpr std::size_t kStride = 5;  // dwords from one candidate to the next: no instruction is longer than 4

// An encoding of the guide's chapter 13: fixed bits, and where the opcode stands.
struct Encoding {
  u32 fixed, shift, opcodes;
  unsigned variants;
  u32 low_bits;  // of the first dword that are operands or modifiers
};
constexpr Encoding kEncodings[] = {
    {0x00000000, 25, 62, 24, 0x01ffffff},    // VOP2
    {0x7c000000, 17, 256, 16, 0x0001ffff},   // VOPC
    {0x7e000000, 9, 256, 24, 0x01fe01ff},    // VOP1
    {0x80000000, 23, 96, 24, 0x007fffff},    // SOP2
    {0xb0000000, 23, 28, 24, 0x007fffff},    // SOPK
    {0xbe800000, 8, 256, 24, 0x007f00ff},    // SOP1
    {0xbf000000, 16, 128, 24, 0x0000ffff},   // SOPC
    {0xbf800000, 16, 128, 24, 0x0000ffff},   // SOPP
    {0xc0000000, 18, 256, 32, 0x0003ffff},   // SMEM
    {0xd0000000, 16, 1024, 32, 0x0000ffff},  // VOP3; VOP3P is its part from 0xd380 on
    {0xd3800000, 16, 128, 64, 0x0000ffff},   // VOP3P
    {0xd8000000, 17, 256, 48, 0x0201ffff},   // DS
    {0xd8010000, 17, 256, 8, 0x0200ffff},    // DS with the GDS bit
    {0xdc000000, 18, 128, 224, 0x0203ffff},  // FLAT, global, scratch
    {0xe0000000, 18, 128, 48, 0x0203ffff},   // MUBUF
    {0xe8000000, 15, 16, 64, 0x03f87fff},    // MTBUF
};

class Fields {
 public:
  // Operand bits of a first dword: none, even register numbers, anything.
  u32 low(unsigned variant) {
    if (variant == 0) return 0;
    return variant % 3 == 0 ? random_() : bytes();
  }
  u32 second(unsigned variant) {
    if (variant == 0) return 0;
    switch (variant % 5) {
      case 0:
        return bytes();
      case 1:
        return random_();
      case 2:  // FLAT: saddr off, or an even SGPR
        return (bytes() & 0xff80ffffu) | ((random_() & 1 ? 0x7fu : random_() & 0x3e) << 16);
      default: {  // VOP3: sources of 9 bits, AGPR and negation bits now and then
        u32 x = source() | (source() << 9) | (source() << 18);
        if (random_() % 4 == 0) x |= random_() & 0xf8000000u;
        return x;
      }
    }
  }

 private:
  u32 bytes() {
    u32 x = 0;
    for (unsigned b = 0; b < 32; b += 8) x |= (random_() & 1 ? random_() & 0x3e : 0u) << b;
    return x;
  }
  u32 source() {
    const u32 r = random_();
    return r % 4 == 0 ? (r >> 8) & 0x3e : r % 8 == 1 ? 0x80u : 0x100u | ((r >> 8) & 0x3e);
  }
  std::mt19937 random_{950};
};

// Mnemonics (without encoding suffix) of the valid instructions among `candidates`.
void collect(const std::vector<u32>& candidates, std::set<std::string>& mnemonics) {
  const auto decoded = jit::disassemble(std::as_bytes(std::span(candidates)));
  ASSERT_TRUE(decoded.has_value());
  for (const jit::Decoded& d : *decoded) {
    if (!d.valid || d.offset % (4 * kStride) != 0) continue;
    if (const auto inst = sim::parse_instruction(d.text)) mnemonics.insert(inst->mnemonic);
  }
}

std::set<std::string> llvm_mnemonics() {
  std::set<std::string> mnemonics;
  Fields fields;
  for (const Encoding& e : kEncodings) {
    std::vector<u32> candidates;
    for (u32 op = 0; op < e.opcodes; ++op) {
      for (unsigned v = 0; v < e.variants; ++v) {
        const u32 first = e.fixed | (op << e.shift) | (fields.low(v) & e.low_bits);
        candidates.insert(candidates.end(), {first, fields.second(v), kNop, kNop, kNop});
      }
    }
    collect(candidates, mnemonics);
  }
  // Scaled MFMA: a prefix of two dwords, then the MFMA with ABID[0] (gfx950-isa.md 1.3).
  collect({0xd3ac0000, 0x00025328, 0xd3ae0800, 0x04023110, kNop,  //
           0xd3ac0000, 0x00025328, 0xd3ad0800, 0x04023110, kNop},
          mnemonics);
  return mnemonics;
}

using Names = std::set<std::string>;

// Refused by name, with the reason, in program.cpp.
const Names kRefused{
    "v_screen_partition_4se_b32",  // no published semantics
    "v_mfma_ld_scale_b32",         // without its MFMA
    "v_clrexcp",                   // exceptions
    "s_cbranch_g_fork",
    "s_cbranch_i_fork",
    "s_cbranch_join",  // fork and join stack
    "s_rfe_b64",
    "s_rfe_restore_b64",
    "s_endpgm_saved",            // trap handlers
    "s_sendmsghalt",             // halts
    "s_endpgm_ordered_ps_done",  // pixel shaders
    "s_atc_probe",
    "s_atc_probe_buffer",
    "ds_gws_init",
    "ds_gws_barrier",
    "ds_gws_sema_br",
    "ds_gws_sema_p",
    "ds_gws_sema_v",
    "ds_gws_sema_release_all",  // not in the CDNA4 guide
};

// Names the assembler prints otherwise.
const Names kAliases{"v_mfma_f32_16x16x16_bf16_1k", "v_mfma_f32_32x32x8_bf16_1k"};

TEST(IsaCoverage, EveryInstructionIsKnownOrListedAsRefused) {
  const Names all = llvm_mnemonics();
  EXPECT_GT(all.size(), 1000u);
  const std::vector<std::string> known = sim::known_mnemonics();
  const auto is_known = [&](const std::string& m) { return std::binary_search(known.begin(), known.end(), m); };
  for (const std::string& m : all) {
    if (kRefused.contains(m)) {
      EXPECT_FALSE(is_known(m)) << m << " is known and listed as refused";
    } else {
      EXPECT_TRUE(is_known(m)) << m << " is neither known nor listed as refused";
    }
  }
  for (const std::string& m : kRefused)
    EXPECT_TRUE(all.contains(m)) << m << " is listed but LLVM decodes no such thing";
  for (const std::string& m : known)
    EXPECT_TRUE(all.contains(m) || kAliases.contains(m)) << m << " is known but LLVM never decodes it";
}

}  // namespace
}  // namespace zyfa::sim_test
