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
// Loads that return in any order are kept apart up to this number, although lgkmcnt counts to 15 only: which of them
// have returned is unknown. Scalar loads do not reach it without overwriting one another, which is a finding.
constexpr std::size_t kMostUnordered = 128;

unsigned first_lane(u64 mask) { return static_cast<unsigned>(__builtin_ctzll(mask)); }

}  // namespace

Strict::Strict(const LaunchPlan& plan, const StrictTable& table, Group& group)
    : plan_(plan), table_(table), group_(group), waves_(group.waves.size()) {}

void Strict::start() {
  shadow_.reset(group_.lds_bytes);
  findings_.clear();
  seen_.clear();
  free_.clear();
  for (std::size_t i = 0; i < pool_.size(); ++i) free_.push_back(static_cast<u32>(i));
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

const StrictOp& Strict::strict_of(const MicroOp& op) const {
  return table_[static_cast<std::size_t>(&op - plan_.program->ops.data())];
}
const std::string& Strict::text_of(const MicroOp& op) const {
  return plan_.program->text[static_cast<std::size_t>(&op - plan_.program->ops.data())];
}
u64 Strict::offset_of(const MicroOp& op) const { return op.offset - plan_.program->entry_offset; }

std::string Strict::name(const RegisterUse& use, unsigned row) const {
  if (!use.vector) return fmt::format("s{}", row);
  return use.accumulation ? fmt::format("a{}", row - plan_.program->registers.accum_offset) : fmt::format("v{}", row);
}

void Strict::report(const Wave& wave, const MicroOp& op, const char* kind, unsigned lane, std::string message) {
  const std::pair<const MicroOp*, const char*> key(&op, kind);
  if (full() || std::find(seen_.begin(), seen_.end(), key) != seen_.end()) return;
  seen_.push_back(key);
  const auto index = static_cast<std::size_t>(&op - plan_.program->ops.data());
  SimFinding f;
  f.kind = kind;
  f.offset = offset_of(op);
  f.workgroup = group_.id;
  f.wave = wave.id;
  f.lane = lane;
  f.instruction = plan_.program->text[index];
  f.message = std::move(message);
  if (plan_.origins != nullptr && index < plan_.origins->size()) f.origin = (*plan_.origins)[index];
  findings_.push_back(std::move(f));
}

void Strict::check_row(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row,
                       u64 lanes) {
  WaveState& ws = waves_[wave.id];
  RowState& r = ws.rows[row];
  if (r.pending != 0) {
    const MicroOp& load = *pool_[r.pending - 1u]->op;
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
    report(wave, op, "uninitialised-register", first_lane(bad),
           fmt::format("{} {}, which was never written in this lane", use.role == Role::kStored ? "stores" : "reads",
                       name(use, row)));
    r.valid |= bad;  // one report is enough
  }
}

void Strict::check_scalar(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use) {
  WaveState& ws = waves_[wave.id];
  for (unsigned i = use.first; i < static_cast<unsigned>(use.first) + use.count; ++i) {
    ScalarState& r = ws.scalars[i];
    if (r.pending != 0) {
      const MicroOp& load = *pool_[r.pending - 1u]->op;
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
      const Pending& p = *pool_[pending - 1u];
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
  ws.issued = 0;
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
  if (s.state_rules || ws.cmpx_at != 0) check_exec(wave, op, s);
  if (s.cls == IssueClass::kSalu || (s.any_vector && ws.vskip_at != 0)) check_hardware_registers(wave, op, s);
  if (s.cls == IssueClass::kLds || s.cls == IssueClass::kVmem || s.cls == IssueClass::kSmem) issue(wave, op, s);
  if (op.vmcnt != kVmcntMax || op.lgkmcnt != kLgkmcntMax) wait(wave, op.vmcnt, op.lgkmcnt);
}

u32 Strict::take_entry() {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<Pending>());
    return static_cast<u32>(pool_.size() - 1);
  }
  const u32 entry = free_.back();
  free_.pop_back();
  return entry;
}

// Enters a memory instruction into the queues of its counters and keeps the old contents of its destination.
void Strict::issue(Wave& wave, const MicroOp& op, const StrictOp& s) {
  WaveState& ws = waves_[wave.id];
  make_room(wave, op, s);
  const u32 entry = take_entry();
  Pending& p = *pool_[entry];
  p.op = &op;
  p.strict = &s;
  p.scalar = s.cls == IssueClass::kSmem;
  p.needs_vm = s.cls == IssueClass::kVmem;
  p.first = op.dst.index;
  p.count = op.flags & kLoad && op.dst.kind != OperandKind::kNone ? op.dst.count : 0;
  // A FLAT store counts on lgkmcnt too, but nothing of it lands.
  p.needs_lgkm = s.cls != IssueClass::kVmem || ((op.flags & kFlat) && p.count != 0);
  p.mask = wave.exec();
  p.lane_valid = ~0ull;
  ws.issued = entry + 1;
  if (p.needs_vm) ws.vm.push_back(entry);
  if (s.cls == IssueClass::kLds) ws.lds.push_back(entry);
  if (p.needs_lgkm && s.cls != IssueClass::kLds) ws.unordered.push_back(entry);
  if (s.lds_chunks != 0) {
    std::memcpy(p.address.data(), wave.v[op.src[0].index].lane, sizeof(p.address));
    check_lds(wave, op, s);
  }
  if (p.scalar) {
    for (unsigned k = 0; k < p.count; ++k) p.scalar_data[k] = wave.s[p.first + k];
  } else {
    for (unsigned k = 0; k < p.count; ++k) p.data[k] = wave.v[p.first + k];
  }
}

// The oldest operations have completed where the counters have no room for another.
void Strict::make_room(Wave& wave, const MicroOp& op, const StrictOp& s) {
  WaveState& ws = waves_[wave.id];
  if (s.cls == IssueClass::kVmem && ws.vm.size() >= kVmcntMax) wait(wave, kVmcntMax - 1, kLgkmcntMax);
  if (s.cls == IssueClass::kLds && ws.lds.size() >= kLgkmcntMax) wait(wave, kVmcntMax, kLgkmcntMax - 1);
  if ((s.cls == IssueClass::kSmem || (op.flags & kFlat)) && ws.unordered.size() >= kMostUnordered)
    release(wave, ws.unordered, kMostUnordered - 1);
}

// After execution: the new values wait in the entry, the registers hold the old ones.
void Strict::capture(Wave& wave, Pending& p) {
  WaveState& ws = waves_[wave.id];
  const u32 tag = ws.issued;
  for (unsigned k = 0; k < p.count; ++k) {
    if (p.scalar) {
      std::swap(p.scalar_data[k], wave.s[p.first + k]);
      ws.scalars[p.first + k].pending = tag;
    } else {
      std::swap(p.data[k], wave.v[p.first + k]);
      ws.rows[p.first + k].pending = tag;
    }
  }
}

void Strict::land(Wave& wave, u32 entry) {
  WaveState& ws = waves_[wave.id];
  Pending& p = *pool_[entry];
  for (unsigned k = 0; k < p.count; ++k) {
    if (p.scalar) {
      ScalarState& r = ws.scalars[p.first + k];
      wave.s[p.first + k] = p.scalar_data[k];
      r.valid = true;
      r.valu_at = 0;
      if (r.pending == entry + 1) r.pending = 0;
      continue;
    }
    RowState& r = ws.rows[p.first + k];
    std::uint32_t* row = wave.v[p.first + k].lane;
    for (unsigned l = 0; l < kLanes; ++l)
      if ((p.mask >> l) & 1) row[l] = p.data[k].lane[l];
    r.valid = (r.valid & ~p.mask) | (p.mask & p.lane_valid);
    r.valu_at = r.matrix_at = 0;
    if (r.pending == entry + 1) r.pending = 0;
  }
  free_.push_back(entry);
}

// Completes the oldest operations of a queue until `keep` remain; an entry lands once no counter holds it back.
void Strict::release(Wave& wave, std::vector<u32>& queue, std::size_t keep) {
  if (queue.size() <= keep) return;
  const bool is_vm = &queue == &waves_[wave.id].vm;
  const std::size_t n = queue.size() - keep;
  for (std::size_t i = 0; i < n; ++i) {
    Pending& p = *pool_[queue[i]];
    (is_vm ? p.needs_vm : p.needs_lgkm) = false;
    if (!p.needs_vm && !p.needs_lgkm) land(wave, queue[i]);
  }
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(n));
}

void Strict::wait(Wave& wave, unsigned vmcnt, unsigned lgkmcnt) {
  WaveState& ws = waves_[wave.id];
  if (vmcnt < kVmcntMax) {
    DmaQueue& q = group_.dma[wave.id];
    for (u32 i = 0; i < q.count && q.at(i).sequence + vmcnt <= wave.vm_issued; ++i) {
      const LdsDma& d = q.at(i);
      for (unsigned l = 0; l < kLanes; ++l) {
        if (((d.mask >> l) & 1) && static_cast<u64>(d.base) + l * d.stride + d.bytes <= group_.lds_bytes)
          shadow_.end_dma(wave.id, d.base + l * d.stride, d.bytes);
      }
    }
    release(wave, ws.vm, vmcnt);
  }
  // LDS operations complete in order; scalar loads in any order, so only 0 says something about them (3.5).
  if (lgkmcnt < kLgkmcntMax) release(wave, ws.lds, lgkmcnt);
  if (lgkmcnt == 0) release(wave, ws.unordered, 0);
}

void Strict::check_lds(Wave& wave, const MicroOp& op, const StrictOp& s) {
  Pending& p = *pool_[waves_[wave.id].issued - 1u];
  const u64 exec = wave.exec();
  for (unsigned chunk = 0; chunk < s.lds_chunks; ++chunk) {
    for (unsigned l = 0; l < kLanes; ++l) {
      if (!((exec >> l) & 1)) continue;
      const u32 address = p.address[l] + static_cast<u32>(s.lds_offset[chunk]);
      if (static_cast<u64>(address) + s.lds_bytes > group_.lds_bytes) {
        report(wave, op, "lds-out-of-bounds", l,
               fmt::format("{} bytes at LDS address {}, the workgroup has {}", s.lds_bytes, address, group_.lds_bytes));
        continue;
      }
      if (address % s.lds_align != 0) {
        report(wave, op, "lds-misaligned", l,
               fmt::format("LDS address {} of a {}-byte access must be a multiple of {}", address, s.lds_bytes,
                           s.lds_align));
      }
      if (!s.lds_atomic && !s.lds_write && shadow_.read_quietly(wave.id, address, s.lds_bytes)) continue;
      LdsVerdict verdict;
      if (s.lds_atomic) {
        verdict = shadow_.atomic(wave.id, address, s.lds_bytes);
      } else if (s.lds_write) {
        verdict = shadow_.write(wave.id, address, s.lds_bytes);
      } else {
        verdict = shadow_.read(wave.id, address, s.lds_bytes);
      }
      if (s.lds_write) {
        shadow_.mark_written(address, s.lds_bytes);
      } else if (!shadow_.written(address, s.lds_bytes)) {
        p.lane_valid &= ~(1ull << l);
      }
      if (verdict.conflict == LdsConflict::kNone) continue;
      const std::string other =
          verdict.other == LdsShadow::kMany ? std::string("several waves") : fmt::format("wave {}", verdict.other);
      const char* what =
          verdict.conflict == LdsConflict::kReadAfterWrite    ? "reads a byte that {} wrote with no barrier between"
          : verdict.conflict == LdsConflict::kWriteAfterWrite ? "writes a byte that {} wrote with no barrier between"
          : verdict.conflict == LdsConflict::kWriteAfterRead
              ? "writes a byte that {} read with no barrier between"
              : "touches a byte that a direct-to-LDS load of {} has yet to write";
      report(wave, op, verdict.conflict == LdsConflict::kInFlight ? "lds-in-flight" : "lds-race", l,
             fmt::format("LDS byte {}: {}", verdict.byte, fmt::format(fmt::runtime(what), other)));
    }
  }
  // Transposed reads mix the lanes of a group of 16.
  if ((op.flags & kAllLanesNeeded) && p.lane_valid != ~0ull) {
    for (unsigned g = 0; g < 4; ++g)
      if (((p.lane_valid >> (16 * g)) & 0xffff) != 0xffff) p.lane_valid &= ~(0xffffull << (16 * g));
  }
}

void Strict::own_reads_in_flight(Wave& wave, const MicroOp& op, const LdsDma& dma) {
  const u64 low = dma.base, high = dma.base + u64{kLanes - 1} * dma.stride + dma.bytes;
  for (const u32 entry : waves_[wave.id].lds) {
    const Pending& p = *pool_[entry];
    if (p.strict->lds_chunks == 0) continue;
    for (unsigned chunk = 0; chunk < p.strict->lds_chunks; ++chunk) {
      for (unsigned l = 0; l < kLanes; ++l) {
        const u64 at = p.address[l] + static_cast<u32>(p.strict->lds_offset[chunk]);
        if (!((p.mask >> l) & 1) || at + p.strict->lds_bytes <= low || at >= high) continue;
        report(wave, op, "lds-in-flight", l,
               fmt::format("overwrites LDS byte {} while `{}` at +0x{:x} of the same wave has not been waited for", at,
                           text_of(*p.op), offset_of(*p.op)));
        return;
      }
    }
  }
}

void Strict::check_dma(Wave& wave, const MicroOp& op) {
  DmaQueue& q = group_.dma[wave.id];
  const LdsDma& d = q.at(q.count - 1);
  own_reads_in_flight(wave, op, d);
  for (unsigned l = 0; l < kLanes; ++l) {
    const u64 at = d.base + u64{l} * d.stride;
    if (!((d.mask >> l) & 1)) continue;
    if (at + d.bytes > group_.lds_bytes) {
      report(wave, op, "lds-out-of-bounds", l,
             fmt::format("{} bytes at LDS address {}, the workgroup has {}", d.bytes, at, group_.lds_bytes));
      continue;
    }
    const LdsVerdict v = shadow_.begin_dma(wave.id, static_cast<u32>(at), d.bytes);
    if (v.conflict == LdsConflict::kNone) continue;
    const std::string other =
        v.other == LdsShadow::kMany ? std::string("several waves") : fmt::format("wave {}", v.other);
    report(wave, op, v.conflict == LdsConflict::kInFlight ? "lds-in-flight" : "lds-race", l,
           fmt::format("LDS byte {}: a direct-to-LDS load overwrites what {} {} with no barrier between", v.byte, other,
                       v.conflict == LdsConflict::kWriteAfterRead ? "read" : "wrote"));
  }
}

void Strict::after(Wave& wave, const MicroOp& op) {
  const StrictOp& s = strict_of(op);
  WaveState& ws = waves_[wave.id];
  if (wave.state == sim::WaveState::kFaulted) return;
  if (ws.issued != 0) {
    capture(wave, *pool_[ws.issued - 1u]);
    if (op.lds) check_dma(wave, op);
  }
  settle(wave, op, s);
  ws.clock += op.nop_states;
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
      r.valid |= 1ull << (scalar_value(wave, op.src[1], 0) & 63);
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
  if (s.writes_exec && op.unit == Unit::kValu) ws.cmpx_at = ws.clock;
  if (s.hwreg_write >= 0) ws.setreg_at[static_cast<std::size_t>(s.hwreg_write)] = ws.clock;
  if (s.writes_vskip) ws.vskip_at = ws.clock;
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
        r.sgemm = s.sgemm;
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
  if (s.cls == IssueClass::kMatrix && !s.sgemm) {
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

void Strict::wave_ended(Wave& wave) { wait(wave, 0, 0); }

// LDS accesses still in flight may happen in the new interval too.
void Strict::enter_again(Wave& wave, const Pending& p) {
  const StrictOp& s = *p.strict;
  for (unsigned chunk = 0; chunk < s.lds_chunks; ++chunk) {
    for (unsigned l = 0; l < kLanes; ++l) {
      const u32 address = p.address[l] + static_cast<u32>(s.lds_offset[chunk]);
      if (!((p.mask >> l) & 1) || static_cast<u64>(address) + s.lds_bytes > group_.lds_bytes) continue;
      if (s.lds_atomic) {
        shadow_.atomic(wave.id, address, s.lds_bytes);
      } else if (s.lds_write) {
        shadow_.write(wave.id, address, s.lds_bytes);
      } else {
        shadow_.read(wave.id, address, s.lds_bytes);
      }
    }
  }
}

void Strict::barrier() {
  shadow_.barrier();
  bool some_ended = false;
  for (const Wave& w : group_.waves) some_ended |= w.state == sim::WaveState::kEnded;
  for (Wave& w : group_.waves) {
    if (w.state != sim::WaveState::kBarrier) continue;
    if (some_ended) {
      report(w, plan_.program->ops[w.pc - 1], "divergent-barrier", 0,
             "waits at a barrier that other waves ended without reaching");
    }
    for (const u32 entry : waves_[w.id].lds) enter_again(w, *pool_[entry]);
    DmaQueue& q = group_.dma[w.id];
    for (u32 i = 0; i < q.count; ++i) {
      const LdsDma& d = q.at(i);
      for (unsigned l = 0; l < kLanes; ++l) {
        if (((d.mask >> l) & 1) && d.base + u64{l} * d.stride + d.bytes <= group_.lds_bytes)
          shadow_.begin_dma(w.id, d.base + l * d.stride, d.bytes);
      }
    }
  }
}

}  // namespace zyfa::sim
