// Strict mode: watches every instruction of a workgroup and records what hardware would turn into wrong numbers.
//
// Checked: registers with a memory result that was not waited for, wait states of gfx950-isa.md section 4 counted by
// issue order, registers and LDS bytes that were never written, LDS accesses of two waves without a barrier between,
// LDS bounds, alignment, EXEC where all lanes are needed, barriers that some waves never reach.
// Whenever a result lands (in_flight.h), it counts as there only once its wave has waited for it.
// A value that was never written may be copied; it is reported where arithmetic, an address, a branch or a store uses
// it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sim/exec/engine.h"
#include "runtime/sim/exec/in_flight.h"
#include "runtime/sim/exec/strict_lds.h"
#include "runtime/sim/exec/strict_races.h"
#include "runtime/sim/exec/strict_table.h"

namespace zyfa::sim {

// What the last instructions did to one vector register. Clocks count wait states of the wave; 0 = never.
struct RowState {
  std::uint64_t valid = 0;  // lanes written
  std::uint64_t valu_at = 0, matrix_at = 0, c_read_at = 0, store_at = 0;
  std::uint64_t last = 0;     // latest of the above
  std::uint32_t pending = 0;  // 1 + index of the load in flight
  std::uint16_t tuple_first = 0;
  std::uint8_t tuple_count = 0, passes = 0, c_passes = 0;
  MatrixKind matrix = MatrixKind::kXdl;
  IssueClass writer = IssueClass::kOther;
  bool half_select = false;
  const OpRow* dot = nullptr;
  const MicroOp* unwritten_load = nullptr;  // the load from LDS bytes that nobody wrote, of lanes that are not valid
  std::uint32_t unwritten_byte = 0;
};
struct ScalarState {
  bool valid = false;
  std::uint32_t pending = 0;
  std::uint64_t valu_at = 0;
};

// What strict mode keeps of a memory instruction in flight, beside its FlightOp.
struct Pending {
  const StrictOp* strict = nullptr;
  std::uint16_t first = 0;  // destination registers
  std::uint8_t count = 0;
  bool scalar = false;
  std::uint64_t mask = 0;            // lanes that receive data
  std::uint64_t lane_valid = ~0ull;  // lanes whose data was all written before
  std::uint32_t unwritten_byte = 0;  // of the first lane whose data was not
  LdsAccess access;                  // LDS instructions
};

class Strict final : public FlightObserver {
 public:
  Strict(const LaunchPlan& plan, const StrictTable& table, Group& group, const InFlight& flight);

  void start();
  // In the order of execution; the middle two for memory instructions only.
  // The next before() and after() are about `op`, a copy of `from` whose registers GPR indexing has moved.
  void follow_indexed(const MicroOp& op, const MicroOp& from);
  void before(Wave& wave, const MicroOp& op);
  void issued(Wave& wave, const MicroOp& op, std::uint32_t entry);
  void loaded(Wave& wave, const MicroOp& op, std::uint32_t entry);
  void after(Wave& wave, const MicroOp& op);
  void retired(Wave& wave, std::uint32_t entry, const FlightOp& op, const LdsDma* dma) override;
  // All waves that still run have arrived.
  void barrier();

  [[nodiscard]] bool full() const { return errors_ != 0 && errors_ >= plan_.max_findings; }
  [[nodiscard]] std::vector<SimFinding> take_findings() { return std::move(findings_); }

 private:
  struct WaveState {
    std::vector<RowState> rows;
    std::array<ScalarState, kScalars> scalars;
    std::uint64_t clock = 0;
    std::uint64_t m0_at = 0, cmpx_at = 0, vskip_at = 0, dgemm_at = 0;
    std::array<std::uint64_t, 64> setreg_at{};  // by hardware register
    bool scc_valid = false;
  };

  void report(const Wave& wave, const MicroOp& op, const char* kind, unsigned lane, std::string message,
              bool warning = false);
  void add_finding(const Wave& wave, const MicroOp& op, const char* kind, unsigned lane, std::string message,
                   bool warning = false);
  // Reports when fewer than `need` wait states lie between the producer and now; `what` makes the text only then.
  template <typename What>
  void require(const Wave& wave, const MicroOp& op, unsigned need, std::uint64_t producer_at, What&& what) {
    const std::uint64_t have = waves_[wave.id].clock - producer_at - 1;
    if (have < need) report_wait_states(wave, op, need, have, what());
  }
  void report_wait_states(const Wave& wave, const MicroOp& op, unsigned need, std::uint64_t have,
                          const std::string& what);
  void check_unequal_passes(const Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use,
                            const RowState& r, unsigned row);

  void check_read(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, std::uint64_t lanes);
  void check_row(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row,
                 std::uint64_t lanes);
  void check_scalar(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use);
  void check_write(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use);
  void check_exec(Wave& wave, const MicroOp& op, const StrictOp& s);
  // strict_memory.cpp
  void check_memory(Wave& wave, const MicroOp& op, const StrictOp& s);
  void check_dma_base(const Wave& wave, const MicroOp& op, const LdsDma& dma);
  // strict_lds_rules.cpp
  void check_lds(Wave& wave, const MicroOp& op, const StrictOp& s, Pending& p);
  LdsVerdict enter(std::uint32_t wave, const StrictOp& s, std::uint32_t address);
  void check_dma(Wave& wave, const MicroOp& op);
  void own_reads_in_flight(Wave& wave, const MicroOp& op, const LdsDma& dma);
  void report_races(const Wave& wave, const MicroOp& op, const LdsAccess& access);
  void report_in_flight(const Wave& wave, const MicroOp& op, unsigned lane, const LdsVerdict& verdict);
  // strict_hazards.cpp
  void check_hardware_registers(Wave& wave, const MicroOp& op, const StrictOp& s);
  void read_hazards(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row);
  void write_hazards(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row);
  void scalar_hazards(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use);

  Pending& pending(std::uint32_t entry);
  void settle(Wave& wave, const MicroOp& op, const StrictOp& s);
  void settle_vector(Wave& wave, const MicroOp& op, const StrictOp& s);
  void settle_scalar(Wave& wave, const MicroOp& op, const RegisterUse& use);
  void enter_again(Wave& wave, const Pending& p);
  void enter_again(Wave& wave, const LdsDma& dma);
  std::uint64_t source_valid(const Wave& wave, const Operand& operand, unsigned dword) const;

  [[nodiscard]] std::string name(const RegisterUse& use, unsigned row) const;
  [[nodiscard]] const StrictOp& strict_of(const MicroOp& op) const;
  [[nodiscard]] const std::string& text_of(const MicroOp& op) const;
  [[nodiscard]] std::uint64_t offset_of(const MicroOp& op) const;

  // The decoded instruction behind `op`, which may be an indexed copy.
  [[nodiscard]] const MicroOp* decoded(const MicroOp& op) const { return &op == indexed_op_ ? indexed_from_ : &op; }

  const LaunchPlan& plan_;
  const StrictTable& table_;
  const MicroOp *indexed_op_ = nullptr, *indexed_from_ = nullptr;
  StrictOp indexed_strict_;
  Group& group_;
  const InFlight& flight_;
  LdsShadow shadow_;
  LdsAccessLog log_;  // of this barrier interval
  std::vector<WaveState> waves_;
  std::vector<std::unique_ptr<Pending>> pool_;  // by entry of the flight
  std::vector<SimFinding> findings_;
  std::size_t errors_ = 0;                                    // findings that are no warnings
  std::vector<std::pair<const MicroOp*, const char*>> seen_;  // one finding of a kind per instruction
};

}  // namespace zyfa::sim
