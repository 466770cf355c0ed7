// Placements of the shipped kernels, in text form (placement.h).
#pragma once

#include <string_view>

namespace zyfa::schedules {

inline constexpr std::string_view kNaivePlacement = "name=naive;waves=1;loop=load_k|qk,softmax,load_v|pv";

inline constexpr std::string_view kPingpongPlacement =
    "name=pingpong;waves=8;groups=2;buffers=k:2,v:2;loop=load_k@1,qk|softmax,load_v@1|pv;prio=1,0,1";

}  // namespace zyfa::schedules
