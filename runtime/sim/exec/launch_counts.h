// Counts of a launch by instruction, with the bytes and the bank conflicts of its memory instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/sim/exec/traffic.h"
#include "zyfa/device.h"

namespace zyfa::sim {

struct InstructionTally {
  std::uint64_t executed = 0;
  SimLdsCost lds;
};

class LaunchCounts {
 public:
  void start(std::size_t instructions) { by_op_.assign(instructions, {}); }
  [[nodiscard]] bool empty() const { return by_op_.empty(); }
  // Before micro-operation `index` executes.
  void add(const Wave& wave, const MicroOp& op, std::size_t index);
  void merge(const LaunchCounts& other);

  [[nodiscard]] const std::vector<InstructionTally>& by_op() const { return by_op_; }
  [[nodiscard]] SimTraffic traffic() const;
  [[nodiscard]] SimLdsCost lds() const;

 private:
  std::vector<InstructionTally> by_op_;  // by micro-operation
  MemoryTraffic traffic_;
};

}  // namespace zyfa::sim
