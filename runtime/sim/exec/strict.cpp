// Definedness, landing of memory results, and bookkeeping of strict mode: see strict.h.
#include "runtime/sim/exec/strict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// No wait-state rule looks further back (16 passes + 4).
constexpr u64 kHorizon = 24;
constexpr u64 kFirstClock = 64;

unsigned first_lane(u64 mask) { return static_cast<unsigned>(__builtin_ctzll(mask)); }

}  // namespace

Strict::Strict(const LaunchPlan& plan, const StrictTable& table, Group& group, const InFlight& flight)
    : plan_(plan), table_(table), group_(group), flight_(flight), waves_(group.waves.size()) {}

void Strict::start() {
  shadow_.reset(group_.lds_bytes);
  findings_.clear();
  errors_ = 0;
  seen_.clear();
  log_.reset();
  const std::size_t initial = plan_.user_sgprs.size() + plan_.workgroup_id[0] + plan_.workgroup_id[1] +
                              plan_.workgroup_id[2] + plan_.workgroup_info;
  for (std::size_t i = 0; i < waves_.size(); ++i) {
    WaveState& ws = waves_[i];
    ws = WaveState{};
    ws.clock = kFirstClock;
    ws.rows.assign(plan_.program->registers.rows, RowState{});
    ws.rows[0].valid = group_.waves[i].exec();
    for (std::size_t k = 0; k < initial; ++k) ws.scalars[k].valid = true;
    ws.scalars[kExecLo].valid = ws.scalars[kExecLo + 1].valid = true;
  }
}

void Strict::follow_indexed(const MicroOp& op, const MicroOp& from) {
  indexed_op_ = &op;
  indexed_from_ = &from;
  indexed_strict_ = describe_strict(op);
}

const StrictOp& Strict::strict_of(const MicroOp& op) const {
  if (&op == indexed_op_) return indexed_strict_;
  return table_[static_cast<std::size_t>(&op - plan_.program->ops.data())];
}
const std::string& Strict::text_of(const MicroOp& op) const {
  return plan_.program->text[static_cast<std::size_t>(decoded(op) - plan_.program->ops.data())];
}
u64 Strict::offset_of(const MicroOp& op) const { return op.offset - plan_.program->entry_offset; }

std::string Strict::name(const RegisterUse& use, unsigned row) const {
  if (!use.vector) return fmt::format("s{}", row);
  return use.accumulation ? fmt::format("a{}", row - plan_.program->registers.accum_offset) : fmt::format("v{}", row);
}

void Strict::report(const Wave& wave, const MicroOp& op, const char* kind, unsigned lane, std::string message,
                    bool warning) {
  const std::pair<const MicroOp*, const char*> key(decoded(op), kind);
  if (full() || std::find(seen_.begin(), seen_.end(), key) != seen_.end()) return;
  seen_.push_back(key);
  add_finding(wave, op, kind, lane, std::move(message), warning);
}

void Strict::add_finding(const Wave& wave, const MicroOp& op, const char* kind, unsigned lane, std::string message,
                         bool warning) {
  if (full()) return;
  if (!warning) ++errors_;
  const auto index = static_cast<std::size_t>(decoded(op) - plan_.program->ops.data());
  SimFinding f;
  f.kind = kind;
  f.offset = offset_of(op);
  f.workgroup = group_.id;
  f.wave = wave.id;
  f.lane = lane;
  f.instruction = plan_.program->text[index];
  f.message = std::move(message);
  f.warning = warning;
  if (plan_.origins != nullptr && index < plan_.origins->size()) f.origin = (*plan_.origins)[index];
  findings_.push_back(std::move(f));
}

void Strict::check_row(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row,
                       u64 lanes) {
  WaveState& ws = waves_[wave.id];
  RowState& r = ws.rows[row];
  if (r.pending != 0) {
    const MicroOp& load = *flight_.at(r.pending - 1u).op;
    report(wave, op, "missing-wait", 0,
           fmt::format("{} {}, but `{}` at +0x{:x} has not been waited for",
                       use.role == Role::kStored ? "stores" : "reads", name(use, row), text_of(load), offset_of(load)));
  }
  if (ws.clock <= r.last + kHorizon) read_hazards(wave, op, s, use, row);
  if (use.role == Role::kCopied || r.pending != 0) return;
  u64 needed = lanes;
  if (use.role == Role::kDppSource) {
    needed = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
      const unsigned from = op.dpp->source[l];
      if (((lanes >> l) & 1) && from != 0xff && ((wave.exec() >> from) & 1)) needed |= 1ull << from;
    }
  }
  if (const u64 bad = needed & ~r.valid; bad != 0) {
    std::string text = fmt::format("{} {}, which was never written in this lane",
                                   use.role == Role::kStored ? "stores" : "reads", name(use, row));
    if (r.unwritten_load != nullptr) {
      text += fmt::format(": `{}` at +0x{:x} read LDS byte {}, which nobody wrote", text_of(*r.unwritten_load),
                          offset_of(*r.unwritten_load), r.unwritten_byte);
    }
    report(wave, op, "uninitialised-register", first_lane(bad), std::move(text));
    r.valid |= bad;  // one report is enough
  }
}

void Strict::check_scalar(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use) {
  WaveState& ws = waves_[wave.id];
  for (unsigned i = use.first; i < static_cast<unsigned>(use.first) + use.count; ++i) {
    ScalarState& r = ws.scalars[i];
    if (r.pending != 0) {
      const MicroOp& load = *flight_.at(r.pending - 1u).op;
      report(wave, op, "missing-wait", 0,
             fmt::format("reads s{}, but `{}` at +0x{:x} has not been waited for", i, text_of(load), offset_of(load)));
    } else if (!r.valid && use.role != Role::kCopied) {
      report(wave, op, "uninitialised-register", 0,
             fmt::format("reads scalar register {}, which was never written", i));
      r.valid = true;
    }
  }
  scalar_hazards(wave, op, s, use);
}

void Strict::check_read(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, u64 lanes) {
  if (!use.vector) return check_scalar(wave, op, s, use);
  for (unsigned row = use.first; row < static_cast<unsigned>(use.first) + use.count; ++row)
    check_row(wave, op, s, use, row, lanes);
}

void Strict::check_write(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use) {
  WaveState& ws = waves_[wave.id];
  for (unsigned i = use.first; i < static_cast<unsigned>(use.first) + use.count; ++i) {
    const u32 pending = use.vector ? ws.rows[i].pending : ws.scalars[i].pending;
    if (pending != 0) {
      const FlightOp& p = flight_.at(pending - 1u);
      // Loads of one kind return in order, so the later one wins.
      const bool in_order = (s.cls == IssueClass::kLds && p.op->unit == Unit::kLds) ||
                            (s.cls == IssueClass::kVmem && p.op->unit == Unit::kVmem);
      if (!in_order) {
        report(wave, op, "missing-wait", 0,
               fmt::format("writes {}, into which `{}` at +0x{:x} still has to load", name(use, i), text_of(*p.op),
                           offset_of(*p.op)));
      }
    }
    if (use.vector && ws.clock <= ws.rows[i].last + kHorizon) write_hazards(wave, op, s, use, i);
  }
}

void Strict::before(Wave& wave, const MicroOp& op) {
  const StrictOp& s = strict_of(op);
  WaveState& ws = waves_[wave.id];
  const u64 lanes = s.all_lanes ? ~0ull : wave.exec();
  for (unsigned i = 0; i < s.read_count; ++i) check_read(wave, op, s, s.reads[i], lanes);
  for (unsigned i = 0; i < s.write_count; ++i) check_write(wave, op, s, s.writes[i]);
  if (s.reads_scc && !ws.scc_valid) {
    report(wave, op, "uninitialised-register", 0, "reads SCC, which was never written");
    ws.scc_valid = true;
  }
  if ((op.flags & kReadsM0) && !ws.scalars[kM0].valid) {
    report(wave, op, "uninitialised-register", 0, "reads M0, which was never written");
    ws.scalars[kM0].valid = true;
  }
  if (s.overlap != nullptr) {
    // LLVM keeps results of more than 4 registers apart, so that compiled code has smaller ones.
    report(wave, op, "operand-overlap", 0, fmt::format("D lies over {}; they must be apart", s.overlap),
           op.dst.count <= 4);
  }
  if (s.ends && group_.dma[wave.id].count != 0) {
    const MicroOp& load = *group_.dma[wave.id].at(0).op;
    report(wave, op, "lds-in-flight", 0,
           fmt::format(
               "the wave ends while `{}` at +0x{:x} has yet to write LDS, which may belong to another workgroup by "
               "then; it must wait for vmcnt first",
               text_of(load), offset_of(load)));
  }
  if (s.memory_align > 1) check_memory(wave, op, s);
  if (s.state_rules || ws.cmpx_at != 0) check_exec(wave, op, s);
  if (s.cls == IssueClass::kSalu || (s.any_vector && ws.vskip_at != 0)) check_hardware_registers(wave, op, s);
}

Pending& Strict::pending(u32 entry) {
  while (pool_.size() <= entry) pool_.push_back(std::make_unique<Pending>());
  return *pool_[entry];
}

void Strict::issued(Wave& wave, const MicroOp& op, u32 entry) {
  const StrictOp& s = strict_of(op);
  Pending& p = pending(entry);
  p.strict = &s;
  p.first = op.dst.index;
  p.count = (op.flags & kLoad) && op.dst.kind != OperandKind::kNone ? op.dst.count : 0;
  p.scalar = op.unit == Unit::kSmem;
  p.mask = wave.exec();
  p.lane_valid = ~0ull;
  if (s.lds_chunks != 0) check_lds(wave, op, s, p);
}

// After execution: the destination belongs to the load until it is waited for.
void Strict::loaded(Wave& wave, const MicroOp& op, u32 entry) {
  WaveState& ws = waves_[wave.id];
  const Pending& p = *pool_[entry];
  for (unsigned k = 0; k < p.count; ++k) {
    if (p.scalar) {
      ws.scalars[p.first + k].pending = entry + 1;
    } else {
      ws.rows[p.first + k].pending = entry + 1;
    }
  }
  if (op.lds) check_dma(wave, op);
}

void Strict::retired(Wave& wave, u32 entry, const FlightOp& op, const LdsDma* dma) {
  WaveState& ws = waves_[wave.id];
  const Pending& p = *pool_[entry];
  for (unsigned k = 0; k < p.count; ++k) {
    if (p.scalar) {
      ScalarState& r = ws.scalars[p.first + k];
      r.valid = true;
      r.valu_at = 0;
      if (r.pending == entry + 1) r.pending = 0;
      continue;
    }
    RowState& r = ws.rows[p.first + k];
    r.valid = (r.valid & ~p.mask) | (p.mask & p.lane_valid);
    r.unwritten_load = (p.mask & ~p.lane_valid) != 0 ? op.op : nullptr;
    r.unwritten_byte = p.unwritten_byte;
    r.valu_at = r.matrix_at = 0;
    if (r.pending == entry + 1) r.pending = 0;
  }
  if (dma == nullptr) return;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 at = dma->base + u64{l} * dma->stride;
    if (((dma->mask >> l) & 1) && at + dma->bytes <= group_.lds_bytes)
      shadow_.end_dma(wave.id, static_cast<u32>(at), dma->bytes);
  }
}

void Strict::after(Wave& wave, const MicroOp& op) {
  if (wave.state == sim::WaveState::kFaulted) return;
  settle(wave, op, strict_of(op));
  waves_[wave.id].clock += op.nop_states;
}

u64 Strict::source_valid(const Wave& wave, const Operand& o, unsigned dword) const {
  const WaveState& ws = waves_[wave.id];
  if (o.kind == OperandKind::kVgpr) return ws.rows[o.index + dword].valid;
  if (o.kind == OperandKind::kSgpr) return ws.scalars[o.index + dword].valid ? ~0ull : 0;
  return ~0ull;
}

// Lanes of the destination that hold something defined now, and when and by what they were written.
void Strict::settle_vector(Wave& wave, const MicroOp& op, const StrictOp& s) {
  WaveState& ws = waves_[wave.id];
  const u64 exec = wave.exec();
  const RegisterUse& use = s.writes[0];
  for (unsigned k = 0; k < use.count; ++k) {
    RowState& r = ws.rows[use.first + k];
    if (s.copies && op.dpp == nullptr) {
      const bool packed = op.flags & kPacked;
      const u64 v = packed ? source_valid(wave, op.src[k], (op.op_sel >> k) & 1) : source_valid(wave, op.src[0], k);
      r.valid = (r.valid & ~exec) | (v & exec);
    } else if (op.flags & kSelects) {
      const u64 mask = scalar_value(wave, op.src[2], 0) | (static_cast<u64>(scalar_value(wave, op.src[2], 1)) << 32);
      const u64 v = (source_valid(wave, op.src[1], 0) & mask) | (source_valid(wave, op.src[0], 0) & ~mask);
      r.valid = (r.valid & ~exec) | (v & exec);
    } else if ((op.flags & kWideAddend) && k == 1) {
      r.valid = (r.valid & ~exec) | (source_valid(wave, op.src[2], 1) & exec);
    } else if (op.flags & kReadlane) {
      const u64 lane = 1ull << (scalar_value(wave, op.src[1], 0) & 63);
      r.valid = source_valid(wave, op.src[0], 0) != 0 ? r.valid | lane : r.valid & ~lane;
    } else {
      r.valid |= s.all_lanes ? ~0ull : exec;
    }
  }
}

void Strict::settle_scalar(Wave& wave, const MicroOp& op, const RegisterUse& use) {
  WaveState& ws = waves_[wave.id];
  const bool vector = op.unit == Unit::kValu || op.unit == Unit::kTrans;
  for (unsigned k = 0; k < use.count; ++k) {
    ScalarState& r = ws.scalars[use.first + k];
    r.valid = true;
    r.valu_at = vector ? ws.clock : 0;
    if (op.flags & kReadlane) {
      const u64 exec = wave.exec();
      const unsigned lane = op.sources > 1 ? scalar_value(wave, op.src[1], 0) & 63 : exec ? first_lane(exec) : 0;
      r.valid = (source_valid(wave, op.src[0], 0) >> lane) & 1;
    } else if (op.flags & kCopies) {
      r.valid = source_valid(wave, op.src[0], k) != 0;
    }
    if (use.first + k == kM0) ws.m0_at = vector ? 0 : ws.clock;
  }
}

void Strict::settle(Wave& wave, const MicroOp& op, const StrictOp& s) {
  WaveState& ws = waves_[wave.id];
  if (s.writes_scc) ws.scc_valid = true;
  if (s.writes_any_scalar) {
    for (ScalarState& r : ws.scalars) r.valid = true;
  }
  if (s.writes_exec && op.unit == Unit::kValu) ws.cmpx_at = ws.clock;
  if (s.hwreg_write >= 0) ws.setreg_at[static_cast<std::size_t>(s.hwreg_write)] = ws.clock;
  if (s.is_setvskip) ws.setreg_at[1] = ws.clock;  // register 1 is MODE
  if (s.writes_vskip) ws.vskip_at = ws.clock;
  if (s.cls == IssueClass::kMatrix && s.matrix == MatrixKind::kDgemm) ws.dgemm_at = ws.clock;
  const bool memory = s.cls == IssueClass::kLds || s.cls == IssueClass::kVmem || s.cls == IssueClass::kSmem;
  if (memory) {
    if (s.wide_store != 0) {
      const Operand& data = op.src[op.flags & kBuffer ? 0 : 1];
      for (unsigned k = 0; k < data.count; ++k) {
        RowState& r = ws.rows[data.index + k];
        r.store_at = r.last = ws.clock;
      }
    }
    return;
  }
  if (op.flags & kLaneSwap) {
    u64 &x = ws.rows[op.dst.index].valid, &y = ws.rows[op.src[0].index].valid;
    const u64 a = x, b = y;
    if (s.cls != IssueClass::kSwap) {
      x = (a & ~wave.exec()) | (b & wave.exec());
      y = (b & ~wave.exec()) | (a & wave.exec());
    } else {
      const unsigned n = std::string_view(op.row->mnemonic).starts_with("v_permlane32") ? 32 : 16;
      const u64 low = n == 32 ? 0x00000000ffffffffull : 0x0000ffff0000ffffull;
      x = (a & low) | ((b & low) << n);
      y = (b & ~low) | ((a & ~low) >> n);
    }
  } else if (s.write_count != 0 && s.writes[0].vector) {
    settle_vector(wave, op, s);
  }
  for (unsigned i = 0; i < s.write_count; ++i) {
    const RegisterUse& use = s.writes[i];
    if (!use.vector) {
      settle_scalar(wave, op, use);
      continue;
    }
    for (unsigned k = 0; k < use.count; ++k) {
      RowState& r = ws.rows[use.first + k];
      r.last = ws.clock;
      r.store_at = 0;
      r.c_read_at = 0;
      if (s.cls == IssueClass::kMatrix) {
        r.matrix_at = ws.clock;
        r.valu_at = 0;
        r.passes = s.passes;
        r.matrix = s.matrix;
        r.tuple_first = use.first;
        r.tuple_count = use.count;
      } else {
        r.matrix_at = 0;
        r.valu_at = ws.clock;
        r.writer = s.cls;
        r.half_select = s.half_select;
        r.dot = s.cls == IssueClass::kDot ? op.row : nullptr;
      }
    }
  }
  // The C operand must stay for passes - 1 wait states (XDL only); D = C is covered by the rules for D.
  if (s.cls == IssueClass::kMatrix && s.matrix == MatrixKind::kXdl) {
    for (unsigned i = 0; i < s.read_count; ++i) {
      const RegisterUse& use = s.reads[i];
      if (use.role != Role::kMatrixC || !use.vector) continue;
      for (unsigned k = 0; k < use.count; ++k) {
        RowState& r = ws.rows[use.first + k];
        r.c_read_at = r.last = ws.clock;
        r.c_passes = s.passes;
      }
    }
  }
}

}  // namespace zyfa::sim
