// Rule numbers: gfx950-isa.md 4.1 to 4.4.
#include "jit/isa/hazards.h"

#include <algorithm>

namespace zyfa::jit {
namespace {

bool is_mfma(FactClass cls) {
  return cls == FactClass::kMfmaXdl || cls == FactClass::kMfmaSgemm || cls == FactClass::kMfmaDgemm ||
         cls == FactClass::kSmfmac;
}

// Vector ALU other than MFMA.
bool is_valu(FactClass cls) {
  switch (cls) {
    case FactClass::kValu:
    case FactClass::kTrans:
    case FactClass::kPermlaneSwap:
    case FactClass::kReadlane:
    case FactClass::kCmpx:
    case FactClass::kDot:
    case FactClass::kDivFmas:
      return true;
    default:
      return false;
  }
}

bool is_vmem(FactClass cls) {
  return cls == FactClass::kVmemLoad || cls == FactClass::kVmemStore || cls == FactClass::kVmemAtomic ||
         cls == FactClass::kFlat;
}

bool is_memory(FactClass cls) { return cls == FactClass::kLds || is_vmem(cls); }

bool is_vector(Bank bank) { return bank == Bank::kVgpr || bank == Bank::kAgpr; }

bool touches(const std::vector<RegRange>& ranges, const RegRange& range) {
  return std::any_of(ranges.begin(), ranges.end(), [&range](const RegRange& r) { return r.overlaps(range); });
}

bool has_special(const std::vector<RegRange>& ranges, Special s) {
  return touches(ranges, {Bank::kSpecial, static_cast<std::uint16_t>(s), 1});
}

bool is_scalar_data(const RegRange& r) {
  return r.bank == Bank::kSgpr || (r.bank == Bank::kSpecial && (r.first == static_cast<std::uint16_t>(Special::kVcc) ||
                                                                r.first == static_cast<std::uint16_t>(Special::kM0)));
}

// Whether the consumer reads a vector register, or scalar data, that the producer writes.
bool reads_vector_result(const InstFacts& producer, const InstFacts& consumer) {
  return std::any_of(producer.writes.begin(), producer.writes.end(),
                     [&consumer](const RegRange& w) { return is_vector(w.bank) && touches(consumer.reads, w); });
}
bool reads_scalar_result(const InstFacts& producer, const InstFacts& consumer) {
  return std::any_of(producer.writes.begin(), producer.writes.end(),
                     [&consumer](const RegRange& w) { return is_scalar_data(w) && touches(consumer.reads, w); });
}

bool overwrites_vector_result(const InstFacts& producer, const InstFacts& consumer) {
  return std::any_of(producer.writes.begin(), producer.writes.end(),
                     [&consumer](const RegRange& w) { return is_vector(w.bank) && touches(consumer.writes, w); });
}

bool writes_vector(const InstFacts& facts) {
  return std::any_of(facts.writes.begin(), facts.writes.end(), [](const RegRange& w) { return is_vector(w.bank); });
}

void raise(Hazard& hazard, int states, std::string_view rule) {
  if (states > hazard.states) hazard = {static_cast<std::uint8_t>(states), rule};
}

// Waits after an MFMA by what it is, 4.1.
struct MfmaWaits {
  int result;         // D read or overwritten by VALU or memory, read as A, B or scale
  int same_c;         // D read as C, the same tuple
  int overlapping_c;  // D read as C, another tuple that overlaps
  int overwrite_c;    // C overwritten by VALU or memory
};

MfmaWaits mfma_waits(const InstFacts& producer) {
  const int n = producer.mfma_passes;
  switch (producer.cls) {
    case FactClass::kMfmaSgemm:
      return {n + 2, n == 2 ? 2 : 0, n, 0};
    case FactClass::kMfmaDgemm:
      // Not in the reference, which has no f64: the largest LLVM 22 uses for any f64 MFMA of gfx950.
      return {19, 0, 17, 0};
    default:
      return n == 2 ? MfmaWaits{5, 2, 4, 1} : MfmaWaits{n + 4, 0, n + 2, n - 1};
  }
}

void mfma_to_mfma(const InstFacts& producer, const InstFacts& consumer, Hazard& hazard) {
  const MfmaWaits waits = mfma_waits(producer);
  for (const RegRange& r : consumer.reads) {
    if (!r.overlaps(producer.mfma_d)) continue;
    const bool as_c = r == consumer.mfma_c && !(r == consumer.mfma_a) && !(r == consumer.mfma_b);
    if (!as_c) {
      raise(hazard, waits.result, "MFMA result read by MFMA as A, B or scale");
    } else if (r == producer.mfma_d) {
      raise(hazard, waits.same_c, "MFMA result read by MFMA as C");
    } else {
      raise(hazard, waits.overlapping_c, "MFMA result read by MFMA as an overlapping C");
    }
  }
}

void after_mfma(const InstFacts& producer, const InstFacts& consumer, Hazard& hazard) {
  if (is_mfma(consumer.cls)) return mfma_to_mfma(producer, consumer, hazard);
  const bool valu = is_valu(consumer.cls);
  if (!valu && !is_memory(consumer.cls)) return;
  const MfmaWaits waits = mfma_waits(producer);
  if (touches(consumer.reads, producer.mfma_d)) {
    raise(hazard, waits.result, valu ? "MFMA result read by VALU" : "MFMA result read by a memory instruction");
  }
  if (touches(consumer.writes, producer.mfma_d)) {
    raise(hazard, waits.result, valu ? "MFMA result overwritten by VALU" : "MFMA result overwritten by a load");
  }
  if (producer.mfma_c.count != 0 && touches(consumer.writes, producer.mfma_c)) {
    raise(hazard, waits.overwrite_c, valu ? "MFMA C overwritten by VALU" : "MFMA C overwritten by a load");
  }
}

void valu_vector_result(const InstFacts& producer, const InstFacts& consumer, Hazard& hazard) {
  if (!writes_vector(producer)) return;
  const bool reads = reads_vector_result(producer, consumer);
  const bool writes = overwrites_vector_result(producer, consumer);
  if (producer.cls == FactClass::kDot) {
    const bool chained = consumer.cls == FactClass::kDot && consumer.mfma_c.count != 0 &&
                         touches(producer.writes, consumer.mfma_c) && consumer.mfma_a.count != 0 &&
                         !touches(producer.writes, consumer.mfma_a) && !touches(producer.writes, consumer.mfma_b);
    if ((reads || writes) && !chained) raise(hazard, 3, "DOT result used by another instruction");
  }
  if (producer.dest_half_select && (reads || writes) && (is_valu(consumer.cls) || is_mfma(consumer.cls))) {
    raise(hazard, 1, "partly written register used by VALU");  // overwriting it: LLVM 22 only
  }
  if (!reads) return;
  if (is_mfma(consumer.cls)) return raise(hazard, 2, "VALU result read by MFMA");
  if (!is_valu(consumer.cls)) return;
  if (producer.cls == FactClass::kTrans && consumer.cls != FactClass::kTrans) {
    raise(hazard, 1, "transcendental result read by VALU");
  }
  if (consumer.cls == FactClass::kPermlaneSwap) raise(hazard, 2, "VALU result read by a permlane swap");
  if (consumer.is_dpp) raise(hazard, 2, "VALU result read by DPP");
  if (consumer.cls == FactClass::kReadlane && !writes_vector(consumer)) {
    raise(hazard, 1, "VALU result read by v_readlane");
  }
}

void valu_scalar_result(const InstFacts& producer, const InstFacts& consumer, Hazard& hazard) {
  if (consumer.reads_vccz && has_special(producer.writes, Special::kVcc)) {
    raise(hazard, 5, "VCC written by VALU, read as vccz");
  }
  if (!reads_scalar_result(producer, consumer)) return;
  if (is_vmem(consumer.cls)) raise(hazard, 5, "scalar written by VALU read by a memory instruction");
  if (!is_valu(consumer.cls)) return;
  raise(hazard, 2, "scalar written by VALU read by VALU");
  if (consumer.lane_select.count != 0 && touches(producer.writes, consumer.lane_select)) {
    raise(hazard, 4, "scalar written by VALU read as lane select");
  }
  if (consumer.cls == FactClass::kDivFmas && has_special(producer.writes, Special::kVcc)) {
    raise(hazard, 4, "VCC written by VALU read by v_div_fmas");
  }
}

void after_cmpx(const InstFacts& consumer, Hazard& hazard) {
  if (consumer.is_dpp) raise(hazard, 5, "EXEC written by VALU before DPP");
  if (consumer.reads_execz) raise(hazard, 5, "EXEC written by VALU, read as execz");
  if (is_vmem(consumer.cls)) raise(hazard, 5, "EXEC written by VALU before a memory instruction");  // LLVM 22 only
  if (is_mfma(consumer.cls)) raise(hazard, 4, "EXEC written by VALU before MFMA");
  if (consumer.cls == FactClass::kPermlaneSwap) raise(hazard, 4, "EXEC written by VALU before a permlane swap");
  if (consumer.cls == FactClass::kReadlane) raise(hazard, 4, "EXEC written by VALU before v_readlane");
}

void after_store(const InstFacts& producer, const InstFacts& consumer, Hazard& hazard) {
  if (producer.store_dwords < 3 || producer.soffset_is_sgpr || !touches(consumer.writes, producer.store_data)) return;
  const bool alu = is_valu(consumer.cls) || is_mfma(consumer.cls);
  raise(hazard, alu ? 2 : 1, "data of a wide store overwritten");
}

}  // namespace

Hazard wait_states_required(const InstFacts& producer, const InstFacts& consumer) {
  Hazard hazard;
  if (is_mfma(producer.cls)) {
    after_mfma(producer, consumer, hazard);
  } else if (is_valu(producer.cls)) {
    valu_vector_result(producer, consumer, hazard);
    valu_scalar_result(producer, consumer, hazard);
    if (has_special(producer.writes, Special::kExec)) after_cmpx(consumer, hazard);
  } else if (is_vmem(producer.cls)) {
    after_store(producer, consumer, hazard);
  } else if (producer.cls == FactClass::kSalu) {
    const bool uses_m0 = consumer.lds_dma || consumer.cls == FactClass::kLds || consumer.cls == FactClass::kOther;
    if (uses_m0 && has_special(producer.writes, Special::kM0) && has_special(consumer.reads, Special::kM0)) {
      raise(hazard, 1, "M0 written by SALU before its use by LDS or a message");
    }
  } else if (producer.cls == FactClass::kSetreg) {
    if (consumer.cls == FactClass::kSetreg || consumer.cls == FactClass::kGetreg) {
      raise(hazard, 2, "hardware register written by s_setreg accessed again");
    }
  }
  return hazard;
}

std::uint8_t max_wait_states(const InstFacts& producer) {
  if (is_mfma(producer.cls)) return static_cast<std::uint8_t>(mfma_waits(producer).result);
  if (is_valu(producer.cls)) {
    const bool scalar = std::any_of(producer.writes.begin(), producer.writes.end(),
                                    [](const RegRange& w) { return !is_vector(w.bank); });
    return scalar ? 5 : producer.cls == FactClass::kDot ? 3 : 2;
  }
  if (is_vmem(producer.cls)) return producer.store_dwords >= 3 && !producer.soffset_is_sgpr ? 2 : 0;
  if (producer.cls == FactClass::kSetreg) return 2;
  return producer.cls == FactClass::kSalu && has_special(producer.writes, Special::kM0) ? 1 : 0;
}

}  // namespace zyfa::jit
