// The rows of gfx950-isa.md 4.1 to 4.4, LLVM's for f64, and the traits that select instructions for them
// (hazard_rules.h).
#include "jit/verify/hazard_rules.h"

#include "jit/verify/text.h"

namespace zyfa::jit::verify {
namespace {

constexpr HazardRule kRules[] = {
    // 4.1 MFMA as producer.
    {"VALU read of an XDL MFMA result", kTraitXdl, 0, Source::kMfmaD, kTraitValu, 0, Sink::kReads, Need::kXdlResult, 0},
    {"VALU overwrite of an XDL MFMA result", kTraitXdl, 0, Source::kMfmaD, kTraitValu, 0, Sink::kWrites,
     Need::kXdlResult, 0},
    {"memory read of an XDL MFMA result", kTraitXdl, 0, Source::kMfmaD, kAnyMemory, 0, Sink::kReads, Need::kXdlResult,
     0},
    {"load into an XDL MFMA result", kTraitXdl, 0, Source::kMfmaD, kAnyMemory, 0, Sink::kWrites, Need::kXdlResult, 0},
    {"XDL MFMA result as A, B or scale of an MFMA", kTraitXdl, 0, Source::kMfmaD, kAnyMfma, 0, Sink::kReadsAbOrScale,
     Need::kXdlResult, 0},
    {"XDL MFMA result as the same C of an MFMA", kTraitXdl | kTraitSgemm, 0, Source::kMfmaD, kAnyMfma, 0,
     Sink::kReadsSameC, Need::kXdlSameC, 0},
    {"XDL MFMA result overlapping C of an MFMA", kTraitXdl, 0, Source::kMfmaD, kAnyMfma, 0, Sink::kReadsOtherC,
     Need::kXdlOtherC, 0},
    {"VALU overwrite of an XDL MFMA's C", kTraitXdl, 0, Source::kMfmaC, kTraitValu, 0, Sink::kWrites, Need::kXdlWar, 0},
    {"load into an XDL MFMA's C", kTraitXdl, 0, Source::kMfmaC, kAnyMemory, 0, Sink::kWrites, Need::kXdlWar, 0},
    {"VALU read of an SGEMM MFMA result", kTraitSgemm, 0, Source::kMfmaD, kTraitValu, 0, Sink::kReads,
     Need::kPassesPlus2, 0},
    {"VALU overwrite of an SGEMM MFMA result", kTraitSgemm, 0, Source::kMfmaD, kTraitValu, 0, Sink::kWrites,
     Need::kPassesPlus2, 0},
    {"memory read of an SGEMM MFMA result", kTraitSgemm, 0, Source::kMfmaD, kAnyMemory, 0, Sink::kReads,
     Need::kPassesPlus2, 0},
    {"load into an SGEMM MFMA result", kTraitSgemm, 0, Source::kMfmaD, kAnyMemory, 0, Sink::kWrites, Need::kPassesPlus2,
     0},
    {"SGEMM MFMA result as A, B or scale of an MFMA", kTraitSgemm, 0, Source::kMfmaD, kAnyMfma, 0,
     Sink::kReadsAbOrScale, Need::kPassesPlus2, 0},
    {"SGEMM MFMA result overlapping C of an MFMA", kTraitSgemm, 0, Source::kMfmaD, kAnyMfma, 0, Sink::kReadsOtherC,
     Need::kPasses, 0},
    {"MFMA result as the same C of an MFMA of another pass count", kTraitXdl, 0, Source::kMfmaD, kAnyMfma, 0,
     Sink::kReadsSameCUnequal, Need::kXdlOtherC, 0, true},
    {"SGEMM MFMA result as the same C of an MFMA of another pass count", kTraitSgemm, 0, Source::kMfmaD, kAnyMfma, 0,
     Sink::kReadsSameCUnequal, Need::kPasses, 0, true},
    // f64 MFMA as producer, from LLVM.
    {"VALU read of an f64 MFMA result", kTraitDgemm, 0, Source::kMfmaD, kTraitValu, 0, Sink::kReads, Need::kDgemmRead,
     0},
    {"VALU overwrite of an f64 MFMA result", kTraitDgemm, 0, Source::kMfmaD, kTraitValu, 0, Sink::kWrites,
     Need::kDgemmWrite, 0},
    {"memory read of an f64 MFMA result", kTraitDgemm, 0, Source::kMfmaD, kAnyMemory, 0, Sink::kReads,
     Need::kDgemmMemory, 0},
    {"load into an f64 MFMA result", kTraitDgemm, 0, Source::kMfmaD, kAnyMemory, 0, Sink::kWrites, Need::kDgemmWrite,
     0},
    {"f64 MFMA result as A, B or scale of an MFMA", kTraitDgemm, 0, Source::kMfmaD, kAnyMfma, 0, Sink::kReadsAbOrScale,
     Need::kDgemmRead, 0},
    {"f64 MFMA result as the same C of an MFMA", kTraitDgemm, 0, Source::kMfmaD, kAnyMfma, 0, Sink::kReadsSameC,
     Need::kDgemmSameC, 0},
    {"f64 MFMA result overlapping C of an MFMA", kTraitDgemm, 0, Source::kMfmaD, kTraitSgemm | kTraitDgemm, 0,
     Sink::kReadsOtherC, Need::kDgemmOtherC, 0},
    {"f64 fma next to an f64 MFMA", kTraitDgemm, 0, Source::kNothing, kTraitF64Fma, 0, Sink::kAnything, Need::kFixed,
     2},
    // 4.2 MFMA as consumer.
    {"VALU result read by an MFMA", kTraitValu, 0, Source::kVectorWritten, kAnyMfma, 0, Sink::kReads, Need::kFixed, 2},
    {"v_cmpx before an MFMA", kTraitValu, 0, Source::kExecWritten, kAnyMfma, 0, Sink::kAnything, Need::kFixed, 4},
    // 4.3 VALU to VALU.
    {"transcendental result read by another VALU instruction", kTraitTrans, 0, Source::kVectorWritten, kTraitValu,
     kTraitTrans, Sink::kReads, Need::kFixed, 1},
    {"VALU result read by a permlane swap", kTraitValu, kTraitSwap, Source::kVectorWritten, kTraitSwap, 0, Sink::kReads,
     Need::kFixed, 2},
    {"permlane swap result read by a permlane swap", kTraitSwap, 0, Source::kVectorWritten, kTraitSwap, 0, Sink::kReads,
     Need::kFixed, 2},
    {"v_cmpx before a permlane swap", kTraitValu, 0, Source::kExecWritten, kTraitSwap, 0, Sink::kAnything, Need::kFixed,
     4},
    {"VALU result read by DPP", kTraitValu, 0, Source::kVectorWritten, kTraitDpp, 0, Sink::kReads, Need::kFixed, 2},
    {"v_cmpx before DPP", kTraitValu, 0, Source::kExecWritten, kTraitDpp, 0, Sink::kAnything, Need::kFixed, 5},
    {"v_cmpx before a lane access", kTraitValu, 0, Source::kExecWritten, kTraitLaneAccess, 0, Sink::kAnything,
     Need::kFixed, 4},
    {"VALU result read by v_readlane or v_readfirstlane", kTraitValu, 0, Source::kVectorWritten, kTraitLaneRead, 0,
     Sink::kReads, Need::kFixed, 1},
    {"scalar written by VALU read by VALU", kTraitValu, 0, Source::kScalarWritten, kTraitValu, kTraitCarryIn,
     Sink::kReads, Need::kFixed, 2},
    {"EXEC written by VALU read by VALU as data", kTraitValu, 0, Source::kExecWritten, kTraitValu, 0, Sink::kReads,
     Need::kFixed, 2},
    {"scalar written by VALU as lane select", kTraitValu, 0, Source::kScalarWritten, kTraitLaneAccess, 0,
     Sink::kLaneSelect, Need::kFixed, 4},
    {"scalar written by VALU read by vector memory", kTraitValu, 0, Source::kScalarWritten, kTraitVmem, 0, Sink::kReads,
     Need::kFixed, 5},
    {"VCC written by VALU before v_div_fmas", kTraitValu, 0, Source::kVccWritten, kTraitDivFmas, 0, Sink::kAnything,
     Need::kFixed, 4},
    {"VCC written by VALU before vccz as an operand", kTraitValu, 0, Source::kVccWritten, kTraitReadsVccz, 0,
     Sink::kAnything, Need::kFixed, 5},
    {"EXEC written by VALU before execz as an operand", kTraitValu, 0, Source::kExecWritten, kTraitReadsExecz, 0,
     Sink::kAnything, Need::kFixed, 5},
    {"partial register write read by VALU", kTraitHalfDest, 0, Source::kVectorWritten, kTraitValu, 0, Sink::kReads,
     Need::kFixed, 1},
    {"dot product result touched by another instruction", kTraitDot, 0, Source::kVectorWritten,
     kTraitValu | kAnyMfma | kAnyMemory, 0, Sink::kDotTouches, Need::kFixed, 3},
    // 4.4 Scalar, M0, memory.
    {"M0 written by SALU before its use", kTraitSalu, 0, Source::kM0Written, kTraitM0User, 0, Sink::kAnything,
     Need::kFixed, 1},
    {"store data overwritten by VALU or MFMA", kTraitWideStore, 0, Source::kStoreData, kTraitValu | kAnyMfma, 0,
     Sink::kWrites, Need::kFixed, 2},
    {"s_setreg before an access to the same hardware register", kTraitSetreg, 0, Source::kHardwareRegister,
     kTraitSetreg | kTraitGetreg, 0, Sink::kSameHardwareRegister, Need::kFixed, 2},
    {"s_setreg of MODE.vskip before a vector instruction", kTraitSetsVskip, 0, Source::kNothing,
     kTraitValu | kAnyMfma | kAnyMemory, 0, Sink::kAnything, Need::kFixed, 2},
};
static_assert(std::size(kRules) <= 64, "the checker keeps the rules of a node in a 64-bit set");

Traits class_traits(FactClass cls) {
  switch (cls) {
    case FactClass::kValu:
    case FactClass::kCmpx:
      return kTraitValu;
    case FactClass::kTrans:
      return kTraitValu | kTraitTrans;
    case FactClass::kPermlaneSwap:
      return kTraitValu | kTraitSwap;
    case FactClass::kReadlane:
      return kTraitValu | kTraitLaneAccess;
    case FactClass::kDot:
      return kTraitValu | kTraitDot;
    case FactClass::kDivFmas:
      return kTraitValu | kTraitDivFmas;
    case FactClass::kMfmaXdl:
    case FactClass::kSmfmac:
      return kTraitXdl;
    case FactClass::kMfmaSgemm:
      return kTraitSgemm;
    case FactClass::kMfmaDgemm:
      return kTraitDgemm;
    case FactClass::kLds:
      return kTraitLds;
    case FactClass::kFlat:
    case FactClass::kVmemLoad:
    case FactClass::kVmemStore:
    case FactClass::kVmemAtomic:
      return kTraitVmem;
    case FactClass::kSalu:
      return kTraitSalu;
    case FactClass::kSetreg:
      return kTraitSetreg;
    case FactClass::kGetreg:
      return kTraitGetreg;
    default:
      return 0;
  }
}

bool uses_m0(const Decoded& inst) {
  const std::string_view m = inst.mnemonic;
  return inst.facts.lds_dma || m.starts_with("s_sendmsg") || m.starts_with("s_movrel") ||
         (m.starts_with("ds_") && m.find("addtid") != std::string_view::npos);
}

// A buffer store is exempt when its soffset is an SGPR (gfx950-isa.md 4.4).
bool is_wide_store(const Decoded& inst) {
  if (inst.facts.store_dwords < 3 || inst.facts.store_data.count == 0) return false;
  return !(inst.mnemonic.starts_with("buffer_") && inst.facts.soffset_is_sgpr);
}

}  // namespace

std::span<const HazardRule> hazard_rules() { return kRules; }

std::uint32_t states_needed(const HazardRule& rule, std::uint32_t passes) {
  switch (rule.need) {
    case Need::kFixed:
      return rule.states;
    case Need::kXdlResult:
      return passes <= 2 ? 5 : passes + 4;
    case Need::kXdlSameC:
      return passes <= 2 ? 2 : 0;
    case Need::kXdlOtherC:
    case Need::kPassesPlus2:
      return passes + 2;
    case Need::kXdlWar:
      return passes == 0 ? 0 : passes - 1;
    case Need::kPasses:
      return passes;
    case Need::kDgemmRead:
      return passes <= 4 ? 6 : 19;
    case Need::kDgemmMemory:
      return passes <= 4 ? 9 : 18;
    case Need::kDgemmWrite:
      return passes <= 4 ? 6 : 11;
    case Need::kDgemmSameC:
      return passes <= 4 ? 4 : 0;
    case Need::kDgemmOtherC:
      return passes <= 4 ? 4 : 17;
  }
  return 0;
}

Traits traits_of(const Decoded& inst) {
  const InstFacts& f = inst.facts;
  const std::string_view m = inst.mnemonic;
  Traits t = class_traits(f.cls);
  if ((t & kTraitLaneAccess) && !m.starts_with("v_writelane")) t |= kTraitLaneRead;
  if (f.is_dpp) t |= kTraitDpp;
  if (m.starts_with("v_addc_") || m.starts_with("v_subb")) t |= kTraitCarryIn;
  if ((t & kTraitValu) && (f.dest_half_select || m.starts_with("v_cvt_sr_"))) t |= kTraitHalfDest;
  if (m.starts_with("v_fma_f64") || m.starts_with("v_fmac_f64")) t |= kTraitF64Fma;
  if (uses_m0(inst)) t |= kTraitM0User;
  if ((t & kTraitVmem) && is_wide_store(inst)) t |= kTraitWideStore;
  if (f.reads_vccz && (t & kTraitValu)) t |= kTraitReadsVccz;
  if (f.reads_execz && (t & kTraitValu)) t |= kTraitReadsExecz;
  if (t & kTraitSetreg) {
    constexpr std::uint32_t kVskipBit = 28;  // MODE.vskip
    const auto field = parse_hwreg(inst.text);
    if (field && field->name == "HW_REG_MODE" && field->offset <= kVskipBit && field->offset + field->width > kVskipBit)
      t |= kTraitSetsVskip;
  }
  return t;
}

}  // namespace zyfa::jit::verify
