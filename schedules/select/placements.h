// The placements written by hand, in canonical text form (placement.h); tuned_rows.h has the others.
#pragma once

#include <string_view>

namespace zyfa::schedules {

// One wave at a time on a SIMD, one stage after the other: the executable reference, kept for ever.
inline constexpr std::string_view kNaivePlacement =
    "name=naive;waves=4;groups=1;loop=load_k,load_v_first,load_v_rest|"
    "read_k0,qk0,read_k1,qk1,read_k2,qk2,read_k3,qk3,mask,max,rescale,exp0,exp1,exp2,exp3,"
    "read_v0,pv0,read_v1,pv1,read_v2,pv2,read_v3,pv3";

// For 8-bit attention, and with near keys in BF16.
inline constexpr std::string_view kFp8NaivePlacement =
    "name=fp8_naive;waves=4;groups=1;"
    "loop=load_k_a,load_k_b,load_v_a,load_v_b|read_k_a,qk_a,read_k_b,qk_b,mask_a,mask_b,max,rescale,exponents,"
    "prob_a,prob_b,read_v_a,pv_a,read_v_b,pv_b,sum_a,sum_b,add_sums";
inline constexpr std::string_view kFp8NearNaivePlacement =
    "name=fp8_near_naive;waves=4;groups=1;"
    "before=load_k,load_v|qk,mask,max,rescale,prob,pv;"
    "loop=load_k_a,load_k_b,load_v_a,load_v_b|read_k_a,qk_a,read_k_b,qk_b,mask_a,mask_b,max,rescale,exponents,"
    "prob_a,prob_b,read_v_a,pv_a,read_v_b,pv_b,sum_a,sum_b,add_sums";

// The quantiser: one wave a workgroup, which pays nothing for the barrier of a phase; three blocks of rows on their way
// while one is worked on. The kernel with 12 bytes of state a dim has registers for one.
inline constexpr std::string_view kQuantiseStatisticsPlacement =
    "name=quantise_statistics;waves=1;groups=1;buffers=raw:4;loop=load@3,reduce";
inline constexpr std::string_view kQuantiseMomentsPlacement =
    "name=quantise_moments;waves=1;groups=1;buffers=raw:2;loop=load@1,reduce";
inline constexpr std::string_view kQuantisePlacement =
    "name=quantise;waves=1;groups=1;buffers=raw:4;loop=load@3,convert";

}  // namespace zyfa::schedules
