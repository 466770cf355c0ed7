#include "runtime/sim/exec/launch_counts.h"

#include "runtime/sim/exec/lds_banks.h"

namespace zyfa::sim {

void LaunchCounts::add(const Wave& wave, const MicroOp& op, std::size_t index) {
  InstructionTally& tally = by_op_[index];
  ++tally.executed;
  if (op.unit != Unit::kLds && op.unit != Unit::kVmem && op.unit != Unit::kSmem) return;
  traffic_ += traffic_of(wave, op);
  if (op.unit != Unit::kLds) return;
  const LdsCost cost = lds_cost_of(wave, op);
  tally.lds.phases += cost.phases;
  tally.lds.conflict_cycles += cost.extra_cycles;
}

void LaunchCounts::merge(const LaunchCounts& other) {
  if (by_op_.size() < other.by_op_.size()) by_op_.resize(other.by_op_.size());
  for (std::size_t i = 0; i < other.by_op_.size(); ++i) {
    by_op_[i].executed += other.by_op_[i].executed;
    by_op_[i].lds.phases += other.by_op_[i].lds.phases;
    by_op_[i].lds.conflict_cycles += other.by_op_[i].lds.conflict_cycles;
  }
  traffic_ += other.traffic_;
}

SimTraffic LaunchCounts::traffic() const {
  const MemoryTraffic& t = traffic_;
  SimTraffic bytes;
  bytes.lds_read = t.lds_read;
  bytes.lds_written = t.lds_written;
  bytes.lds_dma = t.lds_dma;
  bytes.global_read = t.global_read;
  bytes.global_written = t.global_written;
  bytes.scalar_read = t.scalar_read;
  bytes.scratch_read = t.scratch_read;
  bytes.scratch_written = t.scratch_written;
  bytes.atomics = t.atomics;
  return bytes;
}

SimLdsCost LaunchCounts::lds() const {
  SimLdsCost sum;
  for (const InstructionTally& tally : by_op_) {
    sum.phases += tally.lds.phases;
    sum.conflict_cycles += tally.lds.conflict_cycles;
  }
  return sum;
}

}  // namespace zyfa::sim
