// Rules of gfx950 on which published sources disagree or say nothing: the simulator follows the default and can follow
// the other reading, so that code can be shown to be right under both. docs/simulator.md names the sources.
// Plain data without further includes: the simulator's per-instruction-set code uses this header.
#pragma once

#include <cstdint>

namespace zyfa {

// How an MFMA adds its products up. AMD documents neither order nor width.
enum class SimAccumulation : std::uint8_t {
  kFmaChain,  // one f32 fma per k, ascending, from C
  kExact,     // C plus the exact sum of all products, rounded once
  kChunked,   // groups of 8 (16-bit) or 16 (8-bit and narrower) k, each aligned and cut at 24 fractional bits, as
              // published for CDNA3; f32 inputs as kFmaChain
};
// Whether the SGPR offset takes part in the range check of a raw buffer.
enum class SimSoffset : std::uint8_t { kUnchecked, kChecked };
// Dword and wider VMEM accesses at addresses that are no multiple of 4.
enum class SimUnaligned : std::uint8_t { kDelivered, kTruncated };
// v_cvt_pk_u8_f32: by MODE.FP_ROUND, or toward zero.
enum class SimCvtPkU8 : std::uint8_t { kRounds, kTruncates };
// Direction of the scale of narrowing v_cvt_scalef32_*: the value is divided by it, or multiplied.
enum class SimNarrowScale : std::uint8_t { kDivides, kMultiplies };
// Loads into half of a register (d16, d16_hi): the other half stays, as the instructions' definitions say, or becomes
// 0, as the CDNA4 guide (9.1.6) and LLVM say of chips with SRAM ECC.
enum class SimD16 : std::uint8_t { kKeepsHalf, kClearsHalf };
// Denormals in f32 additions that memory (L2) does: flushed (CDNA4 guide 9.2.2, 10.3.1), or kept, as LLVM assumes.
enum class SimAtomicDenormals : std::uint8_t { kFlushed, kKept };

struct SimRules {
  SimAccumulation accumulation = SimAccumulation::kFmaChain;
  SimSoffset soffset = SimSoffset::kUnchecked;
  SimUnaligned unaligned = SimUnaligned::kDelivered;
  SimCvtPkU8 cvt_pk_u8 = SimCvtPkU8::kRounds;
  SimNarrowScale narrow_scale = SimNarrowScale::kDivides;
  SimD16 d16 = SimD16::kKeepsHalf;
  SimAtomicDenormals atomic_denormals = SimAtomicDenormals::kFlushed;
};

}  // namespace zyfa
