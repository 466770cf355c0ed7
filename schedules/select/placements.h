// The placements that ship, in canonical text form (placement.h). The selection table names them.
#pragma once

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

// The same three for 8-bit attention. The scalar one spends no packed fp32 instruction, whose cycles come out of the
// matrix pipe of the group that multiplies.
inline constexpr std::string_view kFp8NaivePlacement =
    "name=fp8_naive;waves=4;groups=1;"
    "loop=load_k,load_v|read_k,qk,mask,max,rescale,prob,read_v,pv,sum,add_sum";

inline constexpr std::string_view kFp8PingpongPlacement =
    "name=fp8_pingpong;waves=8;groups=2;buffers=k:2,v:2;"
    "loop=load_v@1,{qk@1/read_v:2},pv,sum|load_k@3,add_sum,{mask@1,max@1,rescale@1,prob@1:8/read_k@2};prio=1,0";

inline constexpr std::string_view kFp8PingpongScalarPlacement =
    "name=fp8_pingpong_scalar;waves=8;groups=2;buffers=k:2,v:2;"
    "loop=load_v@1,{qk@1/read_v:2},pv,sum|load_k@3,add_sum,{mask@1,max@1,rescale@1,prob@1:8/read_k@2};prio=1,0;"
    "math=scalar";

// With near keys in BF16, a loop of its own before (near.h).
inline constexpr std::string_view kFp8NearNaivePlacement =
    "name=fp8_near_naive;waves=4;groups=1;"
    "before=load_k,load_v|qk,mask,max,rescale,prob,pv;"
    "loop=load_k,load_v|read_k,qk,mask,max,rescale,prob,read_v,pv,sum,add_sum";

inline constexpr std::string_view kFp8NearPingpongPlacement =
    "name=fp8_near_pingpong;waves=8;groups=2;buffers=k:2,v:2;before_buffers=k:3,v:2;"
    "before=load_v@1,qk@1,pv|load_k@3,mask@1,max@1,rescale@1,prob@1;"
    "loop=load_v@1,{qk@1/read_v:2},pv,sum|load_k@3,add_sum,{mask@1,max@1,rescale@1,prob@1:8/read_k@2};prio=1,0";

inline constexpr std::string_view kFp8NearPingpongScalarPlacement =
    "name=fp8_near_pingpong_scalar;waves=8;groups=2;buffers=k:2,v:2;before_buffers=k:3,v:2;"
    "before=load_v@1,qk@1,pv|load_k@3,mask@1,max@1,rescale@1,prob@1;"
    "loop=load_v@1,{qk@1/read_v:2},pv,sum|load_k@3,add_sum,{mask@1,max@1,rescale@1,prob@1:8/read_k@2};prio=1,0;"
    "math=scalar";

// The quantiser: one wave a workgroup, which pays nothing for the barrier of a phase; three blocks of rows on their way
// while one is worked on. The kernel with 12 bytes of state a dim has registers for one.
inline constexpr std::string_view kQuantiseStatisticsPlacement =
    "name=quantise_statistics;waves=1;groups=1;buffers=raw:4;loop=load@3,reduce";
inline constexpr std::string_view kQuantiseMomentsPlacement =
    "name=quantise_moments;waves=1;groups=1;buffers=raw:2;loop=load@1,reduce";
inline constexpr std::string_view kQuantisePlacement =
    "name=quantise;waves=1;groups=1;buffers=raw:4;loop=load@3,convert";

}  // namespace zyfa::schedules
