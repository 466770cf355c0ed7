// Runs one workgroup: initial state, interleaving of its waves, barriers, faults and limits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sim/exec/capture.h"
#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/in_flight.h"
#include "runtime/sim/exec/launch_counts.h"
#include "runtime/sim/exec/program.h"
#include "runtime/sim/exec/strict_table.h"
#include "runtime/sim/exec/watch.h"
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
  SimLanding landing = SimLanding::kLate;
  SimInterleave interleave = SimInterleave::kRoundRobin;
  std::uint64_t landing_seed = 0, interleave_seed = 0;
  SimCounts counts = SimCounts::kByUnit;
  const std::vector<SimWatch>* watches = nullptr;
  const CapturePlan* capture = nullptr;  // null: nothing is recorded
  std::function<void()> heartbeat;       // called now and then while a workgroup runs; may be empty
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
  std::optional<Recorded> recorded;  // of a workgroup that the plan's capture names
};

// Instructions by Unit, in its order.
using UnitCounts = std::array<std::uint64_t, 10>;

class Strict;

// Storage of a workgroup, reused from one to the next by a simulator thread.
class Engine {
 public:
  explicit Engine(const LaunchPlan& plan);
  ~Engine();
  GroupResult run(std::array<std::uint32_t, 3> id);
  // Over all workgroups that ran; empty unless the plan asks for SimCounts::kByInstruction.
  [[nodiscard]] const LaunchCounts& counts() const { return launch_counts_; }

 private:
  void start(std::array<std::uint32_t, 3> id);
  void start_wave(std::uint32_t index);
  [[nodiscard]] std::uint64_t group_number() const;
  // Until all waves have ended, one faults, the limit is reached or strict mode has enough; the policies of
  // SimInterleave.
  template <bool Watched>
  void interleave(GroupResult& result);
  template <bool Watched>
  void take_turns(GroupResult& result, std::uint64_t instructions);
  template <bool Watched>
  void draw_lots(GroupResult& result);
  // One instruction of a running wave; false when the launch stops here.
  template <bool Watched>
  bool advance(Wave& wave, GroupResult& result);
  template <bool Watched>
  void step(Wave& wave);
  // Strict mode, watches, counts and captures, around the execution of an instruction. `index` of Program::ops: `op`
  // may be a copy with other registers.
  void before(Wave& wave, const MicroOp& op, std::size_t index);
  void after(Wave& wave, const MicroOp& op);
  void report_stop(GroupResult& result, const Wave& wave) const;
  template <bool Watched>
  void access_memory(Wave& wave, const MicroOp& op);
  void wave_ended(Wave& wave);
  // Lets the waves go when all that still run wait at a barrier: only their number matters, not where they wait.
  void release_barrier();
  void report_limit(GroupResult& result, const Wave& wave) const;
  void report_fault(GroupResult& result) const;

  const LaunchPlan& plan_;
  Group group_;
  std::vector<std::uint8_t> lds_;
  InFlight flight_;
  std::uint32_t live_ = 0, waiting_ = 0;  // waves that have not ended; those of them at a barrier
  MicroOp indexed_;  // the instruction being executed, with the registers that GPR indexing gives it
  UnitCounts counts_{};
  LaunchCounts launch_counts_;
  Watchers watchers_;
  bool watching_ = false;  // some watch is for this workgroup
  bool stopped_ = false;   // by a watch
  std::uint64_t flops_ = 0;
  Recorder recorder_;
  bool recording_ = false;  // this workgroup
  std::unique_ptr<Strict> strict_;
};

}  // namespace zyfa::sim
