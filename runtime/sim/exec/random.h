// Reproducible pseudo-random numbers of the landing and interleaving policies: splitmix64, whose output is
// equidistributed for any seed, so that a seed, a workgroup and a wave give their own stream.
#pragma once

#include <cstdint>

namespace zyfa::sim {

inline std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The start of the stream of one wave of one workgroup.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t workgroup, std::uint64_t wave) {
  std::uint64_t state = seed;
  state = next_random(state) ^ workgroup;
  state = next_random(state) ^ wave;
  return next_random(state);
}

}  // namespace zyfa::sim
