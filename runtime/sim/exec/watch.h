// Calls the watches of a launch (zyfa/sim_watch.h) for the workgroup an engine runs.
#pragma once

#include <optional>
#include <vector>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/program.h"
#include "zyfa/device.h"

namespace zyfa::sim {

class Watchers {
 public:
  Watchers(const Program& program, const std::vector<SimWatch>* watches) : program_(program), watches_(watches) {}

  // A new workgroup; true when some watch is for it.
  bool start(const Group& group);
  // The instruction that `wave` executes next, or has just executed as number `number`. False: the launch stops.
  bool call(SimMoment moment, const Wave& wave, const MicroOp& op, std::uint64_t number,
            SimStep::Result result = SimStep::Result::kThere) const;

 private:
  const Program& program_;
  const std::vector<SimWatch>* watches_;
  const Group* group_ = nullptr;
  std::vector<const SimWatch*> active_;
};

// The registers that an instruction writes, by its destinations.
std::vector<SimRegisters> registers_written(const MicroOp& op, const RegisterFile& registers);

}  // namespace zyfa::sim
