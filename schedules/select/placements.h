// The placements that ship, in canonical text form (placement.h). The selection table names them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace zyfa::schedules {

// One wave at a time on a SIMD, one stage after the other: the executable reference, kept for ever.
inline constexpr std::string_view kNaivePlacement =
    "name=naive;waves=4;groups=1;loop=load_k,load_v|read_k,qk,mask,max,rescale,exp,read_v,pv";

// Two waves a SIMD: one group multiplies (S of the next block, O of this one) while the other does its softmax and
// fetches. K and V go to LDS without registers, double-buffered.
inline constexpr std::string_view kPingpongPlacement =
    "name=pingpong;waves=8;groups=2;buffers=k:2,v:2;"
    "loop=load_v@1,{qk@1/read_v:2},pv|load_k@3,{mask@1,max@1,rescale@1,exp@1:8/read_k@2};prio=1,0";

// The naive one for 8-bit attention.
inline constexpr std::string_view kFp8NaivePlacement =
    "name=fp8_naive;waves=4;groups=1;"
    "loop=load_k,load_v|read_k,qk,mask,max,rescale,prob,read_v,pv,sum,add_sum";

namespace detail {

inline constexpr std::string_view kFp8Waves = "waves=8;groups=2;";
inline constexpr std::string_view kFp8Pairs =
    "trip=2;buffers=block_sum:2,factor:2,far:2,k:6,k_frag:2,moves_seen:2,prob:2,prob_scale:2,scaled:2,score:2,"
    "v:6,v_frag:2;";
inline constexpr std::string_view kFp8PairLoop =
    "loop={pv/read_v@1:3},sum,{pv@1/read_k@2,load_v@5,load_k@6:3},{qk@2/read_k@3:2},{load_k@7,mask@2:2/qk@3}|"
    "add_sum,sum@1,add_sum@1,max@2,load_v@6,rescale@2,mask@3,prob@2,max@3,rescale@3,read_v@2,prob@3";
inline constexpr std::string_view kFp8Singles = "buffers=k:2,v:2;";
inline constexpr std::string_view kFp8SingleLoop =
    "loop=load_v@1,{qk@1/read_v:2},pv,sum|load_k@3,add_sum,{mask@1,max@1,rescale@1,prob@1:8/read_k@2};prio=1,0";
// The near keys in BF16, a loop of its own before (near.h).
inline constexpr std::string_view kFp8NearLoop =
    "before_buffers=k:3,v:2;before=load_v@1,qk@1,pv|load_k@3,mask@1,max@1,rescale@1,prob@1;";

inline constexpr std::string_view kNamePingpong = "name=fp8_pingpong;";
inline constexpr std::string_view kNamePingpongScalar = "name=fp8_pingpong_scalar;";
inline constexpr std::string_view kNamePingpong64 = "name=fp8_pingpong64;";
inline constexpr std::string_view kNameNearPingpong = "name=fp8_near_pingpong;";
inline constexpr std::string_view kNameNearPingpongScalar = "name=fp8_near_pingpong_scalar;";
inline constexpr std::string_view kNameNearPingpong64 = "name=fp8_near_pingpong64;";
inline constexpr std::string_view kScalarMath = ";math=scalar";

template <const std::string_view&... kParts>
struct Joined {
  static constexpr auto kText = [] {
    std::array<char, (kParts.size() + ...)> text{};
    std::size_t at = 0;
    const auto append = [&](std::string_view part) {
      for (const char c : part) text[at++] = c;
    };
    (append(kParts), ...);
    return text;
  }();
  static constexpr std::string_view kView{kText.data(), kText.size()};
};

}  // namespace detail

// Two barriers for every 128 keys, as a trip has two blocks: one group multiplies (O of two blocks, then S of the next
// two) while the other does the softmax of two. Fragments are read while the products before theirs run; those of the
// first product while the softmax ends; the order was found by zyfa-jit tune (folded form, 128/128). Six copies in LDS
// give a load two phases and more before it is waited for.
inline constexpr std::string_view kFp8PingpongPlacement =
    detail::Joined<detail::kNamePingpong, detail::kFp8Waves, detail::kFp8Pairs, detail::kFp8PairLoop>::kView;

// This one spends no packed fp32 instruction, whose cycles come out of the matrix pipe of the group that multiplies.
inline constexpr std::string_view kFp8PingpongScalarPlacement =
    detail::Joined<detail::kNamePingpongScalar, detail::kFp8Waves, detail::kFp8Pairs, detail::kFp8PairLoop,
                   detail::kScalarMath>::kView;

// Two barriers for every 64 keys.
inline constexpr std::string_view kFp8Pingpong64Placement =
    detail::Joined<detail::kNamePingpong64, detail::kFp8Waves, detail::kFp8Singles, detail::kFp8SingleLoop>::kView;

// With near keys in BF16.
inline constexpr std::string_view kFp8NearNaivePlacement =
    "name=fp8_near_naive;waves=4;groups=1;"
    "before=load_k,load_v|qk,mask,max,rescale,prob,pv;"
    "loop=load_k,load_v|read_k,qk,mask,max,rescale,prob,read_v,pv,sum,add_sum";
inline constexpr std::string_view kFp8NearPingpongPlacement =
    detail::Joined<detail::kNameNearPingpong, detail::kFp8Waves, detail::kFp8Pairs, detail::kFp8NearLoop,
                   detail::kFp8PairLoop>::kView;
inline constexpr std::string_view kFp8NearPingpongScalarPlacement =
    detail::Joined<detail::kNameNearPingpongScalar, detail::kFp8Waves, detail::kFp8Pairs, detail::kFp8NearLoop,
                   detail::kFp8PairLoop, detail::kScalarMath>::kView;
inline constexpr std::string_view kFp8NearPingpong64Placement =
    detail::Joined<detail::kNameNearPingpong64, detail::kFp8Waves, detail::kFp8Singles, detail::kFp8NearLoop,
                   detail::kFp8SingleLoop>::kView;

// The quantiser: one wave a workgroup, which pays nothing for the barrier of a phase; three blocks of rows on their way
// while one is worked on. The kernel with 12 bytes of state a dim has registers for one.
inline constexpr std::string_view kQuantiseStatisticsPlacement =
    "name=quantise_statistics;waves=1;groups=1;buffers=raw:4;loop=load@3,reduce";
inline constexpr std::string_view kQuantiseMomentsPlacement =
    "name=quantise_moments;waves=1;groups=1;buffers=raw:2;loop=load@1,reduce";
inline constexpr std::string_view kQuantisePlacement =
    "name=quantise;waves=1;groups=1;buffers=raw:4;loop=load@3,convert";

}  // namespace zyfa::schedules
