// What the waves of chosen workgroups executed, as the functional simulator recorded it and the cycle model replays it.
//
// A trace holds no timing and no data, so that one recording serves every set of parameters.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace zyfa::sim::timing {

struct Step {
  std::uint32_t op = 0;    // index into Program::ops
  std::uint32_t work = 0;  // LDS: LdsCost::cycles(); VMEM and SMEM: bytes that active lanes (the wave) ask for; else 0
};

struct WaveTrace {
  std::vector<Step> steps;
  // Of the VMEM steps that touch memory, in order: the first active lane's byte address, 0 when no lane is active.
  std::vector<std::uint64_t> addresses;
};

struct GroupTrace {
  std::array<std::uint32_t, 3> id{};
  std::vector<WaveTrace> waves;
};

}  // namespace zyfa::sim::timing
