// Runs one workgroup: initial state, interleaving of its waves, barriers, faults and limits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/program.h"
#include "runtime/sim/exec/strict_table.h"
#include "zyfa/device.h"

namespace zyfa::sim {

// What every workgroup of a launch shares.
struct LaunchPlan {
  const Program* program = nullptr;
  const Memory* memory = nullptr;
  LaunchShape shape;
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;  // private memory of a lane
  std::uint32_t mode = 0;           // initial MODE
  std::uint64_t code_address = 0;
  // User SGPRs in order; workgroup ids follow.
  std::vector<std::uint32_t> user_sgprs;
  std::array<bool, 3> workgroup_id{true, true, true};
  bool workgroup_info = false;
  std::uint64_t max_instructions = 0;
  std::size_t max_findings = 16;
  SimRules rules;
  bool strict = false;
  const StrictTable* strict_table = nullptr;          // when strict
  const std::vector<std::string>* origins = nullptr;  // by micro-operation; empty strings where unknown
};

struct GroupResult {
  bool failed = false;  // the launch stops here
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::vector<SimFinding> findings;
  SimStatistics statistics;
};

// Instructions by Unit, in its order.
using UnitCounts = std::array<std::uint64_t, 10>;

// Storage of a workgroup, reused from one to the next by a simulator thread.
class Strict;

class Engine {
 public:
  explicit Engine(const LaunchPlan& plan);
  ~Engine();
  GroupResult run(std::array<std::uint32_t, 3> id);

 private:
  void start(std::array<std::uint32_t, 3> id);
  void start_wave(std::uint32_t index);
  // Round-robin by instruction until all waves have ended, one faults or the limit is reached.
  template <bool Watched>
  void interleave(GroupResult& result);
  template <bool Watched>
  void step(Wave& wave);
  void release_barrier();
  void report_limit(GroupResult& result, const Wave& wave) const;
  void report_fault(GroupResult& result) const;

  const LaunchPlan& plan_;
  Group group_;
  std::vector<std::uint8_t> lds_;
  UnitCounts counts_{};
  std::uint64_t flops_ = 0;
  std::unique_ptr<Strict> strict_;
};

}  // namespace zyfa::sim
