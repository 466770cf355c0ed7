// Watches: see watch.h.
#include "runtime/sim/exec/watch.h"

namespace zyfa::sim {
namespace {

class View final : public SimWaveView {
 public:
  View(const Group& group, const Wave& wave, const RegisterFile& registers)
      : group_(group), wave_(wave), registers_(registers) {}

  [[nodiscard]] std::optional<std::uint32_t> vgpr(unsigned index, unsigned lane) const override {
    if (index >= registers_.accum_offset) return std::nullopt;
    return row(index, lane);
  }
  [[nodiscard]] std::optional<std::uint32_t> agpr(unsigned index, unsigned lane) const override {
    if (index > 255) return std::nullopt;
    return row(index + registers_.accum_offset, lane);
  }
  [[nodiscard]] std::optional<std::uint32_t> sgpr(unsigned index) const override {
    if (index >= kScalars) return std::nullopt;
    return wave_.s[index];
  }
  [[nodiscard]] std::uint64_t exec() const override { return wave_.exec(); }
  [[nodiscard]] std::uint64_t vcc() const override { return wave_.scalar64(kVccLo); }
  [[nodiscard]] std::uint32_t scc() const override { return wave_.scc; }
  [[nodiscard]] std::uint32_t m0() const override { return wave_.s[kM0]; }
  [[nodiscard]] std::uint32_t mode() const override { return wave_.mode; }
  [[nodiscard]] std::span<const std::byte> lds() const override {
    return std::as_bytes(std::span(group_.lds, group_.lds_bytes));
  }

 private:
  [[nodiscard]] std::optional<std::uint32_t> row(unsigned index, unsigned lane) const {
    if (index >= wave_.vgpr_rows || lane >= kLanes) return std::nullopt;
    return wave_.v[index].lane[lane];
  }

  const Group& group_;
  const Wave& wave_;
  const RegisterFile& registers_;
};

}  // namespace

std::vector<SimRegisters> registers_written(const MicroOp& op, const RegisterFile& registers) {
  std::vector<SimRegisters> written;
  const auto add = [&](const Operand& o) {
    if (o.kind == OperandKind::kSgpr) written.push_back({'s', o.index, o.count});
    if (o.kind != OperandKind::kVgpr) return;
    const auto base = static_cast<std::uint16_t>(o.agpr ? registers.accum_offset : 0);
    written.push_back({o.agpr ? 'a' : 'v', static_cast<std::uint16_t>(o.index - base), o.count});
  };
  add(op.dst);
  add(op.dst2);
  if (op.flags & kLaneSwap) add(op.src[0]);
  return written;
}

bool Watchers::start(const Group& group) {
  group_ = &group;
  active_.clear();
  if (watches_ == nullptr) return false;
  for (const SimWatch& watch : *watches_)
    if (watch.workgroup == group.id && watch.call) active_.push_back(&watch);
  return !active_.empty();
}

bool Watchers::call(SimMoment moment, const Wave& wave, const MicroOp& op, std::uint64_t number,
                    SimStep::Result result) const {
  const std::uint64_t offset = op.offset - program_.entry_offset;
  bool go_on = true;
  for (const SimWatch* watch : active_) {
    if (watch->moment != moment || watch->wave.value_or(wave.id) != wave.id || watch->offset.value_or(offset) != offset)
      continue;
    const std::vector<SimRegisters> writes = registers_written(op, program_.registers);
    SimStep step;
    step.workgroup = group_->id;
    step.wave = wave.id;
    step.number = number;
    step.offset = offset;
    step.instruction = program_.text[program_.op_at[op.offset / 4]];  // `op` may be a copy
    step.writes = writes;
    step.result = result;
    go_on &= watch->call(step, View(*group_, wave, program_.registers)) == SimAction::kContinue;
  }
  return go_on;
}

}  // namespace zyfa::sim
