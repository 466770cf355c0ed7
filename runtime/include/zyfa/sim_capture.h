// Recording what waves execute on the simulator, for the cycle model (SimOptions::capture).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace zyfa {

struct SimCapture {
  enum class Others { kRun, kSkipped };

  // Launches of the kernel with this symbol are recorded, others run as if nothing were asked. Empty: every launch.
  std::string kernel = {};
  // Workgroups to record, in any order; empty: all. One outside of the grid is kInvalidArgument at the launch.
  std::vector<std::array<std::uint32_t, 3>> workgroups = {};
  // kSkipped: workgroups that are not recorded do not run, so their results stay absent.
  Others others = Others::kRun;
};

// Bits that differ between the operands of an MFMA and those of the wave's MFMA before it: the Hamming distance over
// all lanes of the registers that both have. A figure of power: operands that toggle less draw less.
struct SimToggles {
  std::uint64_t mfmas = 0;  // that had one before them in their wave
  std::uint64_t a = 0, b = 0;
  std::uint64_t c = 0;  // the accumulator as it is read
};

}  // namespace zyfa
