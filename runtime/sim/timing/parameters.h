// The uncertain rules of the cycle model as named numbers, each with its default, its plausible range and its source.
//
// Every value is a whole number. The defaults describe gfx950; what is certain (cycles of an MFMA shape, say) is in
// op_cost.cpp beside its source instead. Sections are those of the timing reference, quoted in
// docs/performance-model.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zyfa/error.h"

namespace zyfa::sim::timing {

inline constexpr std::uint32_t kSimds = 4, kMaxWavesPerSimd = 8;  // of a compute unit; section 0

// X(name, evidence, default, low, high, unit, source, meaning)
#define ZYFA_TIMING_PARAMETERS(X)                                                                                      \
  X(hold_other_wave, kOpen, 1, 0, 1, "switch", "1.3, 2.4",                                                             \
    "an MFMA's hold of the VALU port also stops the SIMD's other waves")                                               \
  X(hold_hides_under_trans, kOpen, 0, 0, 1, "switch", "1.3, 2.4",                                                      \
    "an MFMA may issue in the second half of another wave's TRANS")                                                    \
  X(pk_matrix_cycles, kOpen, 5, 0, 8, "cycles", "1.3c", "packed fp32 takes from the matrix pipe")                      \
  X(cvt_pk_fp8_is_packed_like, kOpen, 0, 0, 1, "switch", "1.3d",                                                       \
    "v_cvt_pk_{fp8,bf8}_f32 follow the rule of packed fp32")                                                           \
  X(trans_cycles, kSettled, 8, 4, 16, "cycles", "2.2", "TRANS (exp, log, rcp, ...) on the VALU port")                  \
  X(trans_matrix_cycles, kSettled, 0, 0, 16, "cycles", "1.3b", "TRANS takes from the matrix pipe")                     \
  X(permlane_cycles, kOpen, 8, 4, 20, "cycles", "2.2", "v_permlane{16,32}_swap_b32 on the VALU port")                  \
  X(cvt_pk_u8_cycles, kOpen, 4, 4, 8, "cycles", "2.2", "v_cvt_pk_u8_f32 on the VALU port")                             \
  X(cvt_scale_cycles, kOpen, 4, 4, 16, "cycles", "2.2", "v_cvt_scalef32_* on the VALU port")                           \
  X(mul_lo_cycles, kOpen, 4, 4, 16, "cycles", "2.2", "32-bit integer multiplication on the VALU port")                 \
  X(f64_cycles, kOpen, 8, 4, 16, "cycles", "2.2", "fp64 arithmetic on the VALU port")                                  \
  X(misaligned_fetch_cycles, kOpen, 1, 0, 1, "cycles", "1.6", "more for an 8-byte VALU instruction at PC mod 8 = 4")   \
  X(taken_branch_cycles, kOpen, 8, 4, 40, "cycles", "1.6", "a taken branch to the next instruction of its wave")       \
  X(waitcnt_cycles, kOpen, 0, 0, 4, "cycles", "1.2, 1.5", "a satisfied s_waitcnt in its wave")                         \
  X(setprio_cycles, kOpen, 4, 0, 4, "cycles", "2.3", "s_setprio and other internal instructions in their wave")        \
  X(nop_overlap_cycles, kOpen, 0, 0, 4, "cycles", "1.2, 2.3", "part of an s_nop that hides behind its predecessor")    \
  X(barrier_cycles, kOpen, 16, 4, 80, "cycles", "1.5", "last arrival at s_barrier to the next instruction")            \
  X(memory_after_mfma_slots, kOpen, 1, 1, 3, "slots", "1.3d", "first slot for LDS and VMEM after an MFMA of the wave") \
  X(mfma_type_change_cycles, kOpen, 0, 0, 4, "cycles", "1.3d", "lost when consecutive MFMAs of a SIMD change type")    \
  X(scaled_idle_cycles, kOpen, 4, 0, 4, "cycles", "1.3a", "later start of a scaled MFMA in an idle matrix pipe")       \
  X(oldest_first, kSettled, 0, 0, 1, "switch", "1.1",                                                                  \
    "lowest wave wins a turn among equals, else the least recently issued")                                            \
  X(shared_memory_port, kOpen, 1, 0, 1, "switch", "1.1", "LDS and VMEM share one issue port")                          \
  X(lds_bytes_per_clock, kOpen, 256, 180, 256, "bytes", "3.1", "LDS reads of a CU")                                    \
  X(tr_b8_bytes_per_clock, kOpen, 256, 163, 256, "bytes", "3.1", "ds_read_b64_tr_b8 of a CU")                          \
  X(lds_queue, kSettled, 8, 4, 16, "entries", "3.1", "LDS instructions queued for a SIMD pair")                        \
  X(lds_latency, kOpen, 36, 26, 55, "cycles", "1.2, 3.1", "LDS service start to result, beyond the service itself")    \
  X(valu_to_lds_cycles, kOpen, 8, 4, 12, "cycles", "1.2",                                                              \
    "VALU issue to an LDS instruction that takes its address from it")                                                 \
  X(l1_bytes_per_clock, kSettled, 64, 32, 64, "bytes", "3.2", "vector memory path of a CU")                            \
  X(vmem_queue, kSettled, 12, 4, 32, "entries", "3.2", "vector memory instructions queued before the L1 path of a CU") \
  X(vmem_in_flight_bytes, kOpen, 45056, 32768, 49152, "bytes", "3.2", "outstanding vector memory of a CU")             \
  X(l2_latency, kOpen, 1000, 180, 1800, "cycles", "3.2", "vector memory: end of the L1 path to result")                \
  X(smem_latency, kOpen, 760, 100, 760, "cycles", "1.2", "scalar load to result")

struct Parameters {
#define ZYFA_TIMING_FIELD(name, evidence, initial, low, high, unit, source, meaning) std::uint32_t name = initial;
  ZYFA_TIMING_PARAMETERS(ZYFA_TIMING_FIELD)
#undef ZYFA_TIMING_FIELD
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

// Whether the sources leave a value open, so that a prediction has to be read over its range, or measurements on gfx950
// or of the rule itself settle it and the range is for other machines and for what-if questions.
enum class Evidence : std::uint8_t { kOpen, kSettled };

struct ParameterInfo {
  std::string_view name;
  Evidence evidence;
  std::uint32_t Parameters::* member;
  std::uint32_t initial, low, high;
  std::string_view unit, source, meaning;
};

// In the order above.
std::span<const ParameterInfo> parameter_table();

// kInvalidArgument: no such parameter, outside of its range, or not a whole number.
[[nodiscard]] Expected<Parameters> with_parameter(Parameters parameters, std::string_view name, double value);
// The same of "name=value".
[[nodiscard]] Expected<Parameters> with_parameter_text(Parameters parameters, std::string_view text);

// The gfx942 (MI300X, MI308X) on which some rules were measured: TRANS at half the rate of gfx950 (2.2).
Parameters gfx942_parameters();

}  // namespace zyfa::sim::timing
