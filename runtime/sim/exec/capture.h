// Records what the waves of chosen workgroups execute (runtime/sim/timing/trace.h), and how many operand bits toggle
// from one MFMA of a wave to its next.
//
// A recorder belongs to one engine, so to one thread; what it hands out depends on the workgroup alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/program.h"
#include "runtime/sim/timing/trace.h"
#include "zyfa/sim_capture.h"

namespace zyfa::sim {

// What a launch records: workgroups by their number in launch order.
struct CapturePlan {
  bool all = false;
  std::vector<std::uint64_t> groups;  // sorted, unless all
  bool skips_others = false;

  [[nodiscard]] bool records(std::uint64_t group) const {
    return all || std::binary_search(groups.begin(), groups.end(), group);
  }
};

// What was recorded of one workgroup.
struct Recorded {
  timing::GroupTrace trace;
  SimToggles toggles;
};

// A, B and C of the last MFMA of a wave, to compare the next one with.
struct MatrixOperands {
  static constexpr std::size_t kMostRegisters = 32;  // C of 32x32 forms with two blocks
  struct Held {
    std::uint32_t count = 0;
    std::vector<VectorReg> registers;
  };
  std::array<Held, 3> held;  // A, B, C
  bool any = false;
};

// Adds the bits in which the operands of `op` differ from those of the wave's MFMA before it, over all lanes and the
// registers that both have; a constant C counts as that constant in every lane. The first one has nothing to differ
// from.
void count_toggles(const Wave& wave, const MicroOp& op, MatrixOperands& last, SimToggles& to);

class Recorder {
 public:
  void start(const Group& group);
  // Before the instruction `index` (of Program::ops), which `op` is up to GPR indexing, executes.
  void add(Wave& wave, const MicroOp& op, std::size_t index);
  [[nodiscard]] timing::GroupTrace take_trace() { return std::move(trace_); }
  [[nodiscard]] const SimToggles& toggles() const { return toggles_; }

 private:
  timing::GroupTrace trace_;
  SimToggles toggles_;
  std::vector<MatrixOperands> last_;  // by wave
};

}  // namespace zyfa::sim
