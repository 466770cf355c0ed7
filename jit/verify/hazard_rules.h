// The hazard table of gfx950-isa.md section 4, written again for the verifier so that it checks jit/isa/hazards; what
// that section leaves out (f64 MFMA, EXEC as data) is LLVM 22's GCNHazardRecognizer.
//
// A rule says: after a producer (source: which of its registers), a consumer (sink: how it touches them) needs `states`
// wait states. Rules are data; what an instruction is (its traits) and what it touches are computed once per node.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "jit/verify/program.h"

namespace zyfa::jit::verify {

using Traits = std::uint32_t;
enum Trait : Traits {
  kTraitValu = 1u << 0,  // every vector ALU instruction but MFMA
  kTraitTrans = 1u << 1,
  kTraitSwap = 1u << 2,
  kTraitLaneAccess = 1u << 3,  // v_readlane, v_readfirstlane, v_writelane
  kTraitLaneRead = 1u << 4,    // the first two
  kTraitDot = 1u << 5,
  kTraitDivFmas = 1u << 6,
  kTraitDpp = 1u << 7,
  kTraitCarryIn = 1u << 8,   // v_addc, v_subb: VCC is a carry, not data
  kTraitHalfDest = 1u << 9,  // writes part of a register by op_sel, SDWA dst_sel or byte select
  kTraitXdl = 1u << 10,      // MFMA of the matrix core proper
  kTraitSgemm = 1u << 11,    // f32-input MFMA
  kTraitDgemm = 1u << 12,
  kTraitLds = 1u << 13,
  kTraitVmem = 1u << 14,
  kTraitM0User = 1u << 15,     // LDS-DMA, s_sendmsg, s_movrel, ds add-tid
  kTraitWideStore = 1u << 16,  // 3 or 4 dwords of data, and the soffset condition of 4.4
  kTraitSalu = 1u << 17,
  kTraitSetreg = 1u << 18,
  kTraitGetreg = 1u << 19,
  kTraitSetsVskip = 1u << 20,
  kTraitReadsVccz = 1u << 21,
  kTraitReadsExecz = 1u << 22,
  kTraitF64Fma = 1u << 23,
};
inline constexpr Traits kAnyMfma = kTraitXdl | kTraitSgemm | kTraitDgemm;
inline constexpr Traits kAnyMemory = kTraitLds | kTraitVmem;

// Which registers of the producer the rule watches.
enum class Source : std::uint8_t {
  kVectorWritten,  // VGPRs and AGPRs
  kScalarWritten,  // SGPRs, VCC, M0
  kVccWritten,
  kExecWritten,
  kM0Written,
  kMfmaD,
  kMfmaC,
  kStoreData,
  kHardwareRegister,
  kNothing,  // the producer's class is enough
};
// How the consumer must touch them.
enum class Sink : std::uint8_t {
  kReads,
  kWrites,
  kReadsAbOrScale,     // MFMA operand other than C
  kReadsSameC,         // C is exactly the tuple
  kReadsSameCUnequal,  // and the two have different pass counts
  kReadsOtherC,        // C overlaps it otherwise
  kLaneSelect,
  kDotTouches,  // reads or writes, but for the same dot opcode accumulating
  kSameHardwareRegister,
  kAnything,
};
// Wait states as a function of the producer's passes N.
enum class Need : std::uint8_t {
  kFixed,
  kXdlResult,
  kXdlSameC,
  kXdlOtherC,
  kXdlWar,
  kPassesPlus2,
  kPasses,
  // f64, of 4 or 16 passes (LLVM 22)
  kDgemmRead,
  kDgemmMemory,
  kDgemmWrite,
  kDgemmSameC,
  kDgemmOtherC,
};

struct HazardRule {
  std::string_view name;  // completes "... required: <name>"
  Traits producer, producer_not;
  Source source;
  Traits consumer, consumer_not;
  Sink sink;
  Need need;
  std::uint8_t states;     // for kFixed
  bool is_advice = false;  // not known to be wrong: a note, no finding
};

std::span<const HazardRule> hazard_rules();
std::uint32_t states_needed(const HazardRule& rule, std::uint32_t passes);

Traits traits_of(const Decoded& inst);

}  // namespace zyfa::jit::verify
