// Branches, waits, barriers, MODE access and the other program-control instructions.
#include <fmt/format.h>

#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

void nothing(Wave&, const MicroOp&) {}

template <auto Condition>
void branch(Wave& w, const MicroOp& op) {
  if (Condition(w)) w.pc = op.target;
}

void endpgm(Wave& w, const MicroOp&) { w.state = WaveState::kEnded; }
void barrier(Wave& w, const MicroOp&) { w.state = WaveState::kBarrier; }

// SCC-independent program counter reads give the address of the next instruction.
void getpc(Wave& w, const MicroOp& op) { w.set_scalar64(op.dst.index, w.group->code_address + op.offset + op.size); }
void jump(Wave& w, const MicroOp& op, u64 address) {
  const u64 offset = address - w.group->code_address;
  if (!jump_to_offset(w, offset))
    raise_fault(w, op, 0, fmt::format("jumps to 0x{:x}, which is no instruction of this kernel", address));
}
void setpc(Wave& w, const MicroOp& op) {
  jump(w, op,
       static_cast<u64>(scalar_value(w, op.src[0], 0)) | (static_cast<u64>(scalar_value(w, op.src[0], 1)) << 32));
}
void swappc(Wave& w, const MicroOp& op) {
  const u64 to =
      static_cast<u64>(scalar_value(w, op.src[0], 0)) | (static_cast<u64>(scalar_value(w, op.src[0], 1)) << 32);
  w.set_scalar64(op.dst.index, w.group->code_address + op.offset + op.size);
  jump(w, op, to);
}

// imm2: id | offset << 6 | (size - 1) << 11, as in the encoding. Register 1 is MODE, 4 HW_ID.
constexpr u32 kHwMode = 1;
// gpr_idx_en and vskip change what every vector instruction does.
constexpr u32 kUnknownModes = 1u << 27 | 1u << 28;
u32 hw_register(const Wave& w, u32 id) { return id == kHwMode ? w.mode : 0; }
void getreg(Wave& w, const MicroOp& op) {
  const u32 offset = (op.imm2 >> 6) & 31, size = ((op.imm2 >> 11) & 31) + 1;
  const u64 mask = (1ull << size) - 1;
  w.s[op.dst.index] = static_cast<u32>((hw_register(w, op.imm2 & 63) >> offset) & mask);
}
void setreg(Wave& w, const MicroOp& op) {
  if ((op.imm2 & 63) != static_cast<int>(kHwMode)) return;
  const u32 offset = (op.imm2 >> 6) & 31, size = ((op.imm2 >> 11) & 31) + 1;
  const u32 mask = static_cast<u32>(((1ull << size) - 1) << offset);
  const u32 value = scalar_value(w, op.src[op.sources - 1], 0);
  const u32 mode = (w.mode & ~mask) | ((value << offset) & mask);
  if ((mode & kUnknownModes) != 0)
    return raise_fault(w, op, 0, fmt::format("sets MODE to 0x{:08x}; gpr_idx_en and vskip are not simulated", mode));
  apply_mode(w, mode);
}

constexpr auto kScc0 = [](const Wave& w) { return w.scc == 0; };
constexpr auto kScc1 = [](const Wave& w) { return w.scc != 0; };
constexpr auto kVccz = [](const Wave& w) { return w.scalar64(kVccLo) == 0; };
constexpr auto kVccnz = [](const Wave& w) { return w.scalar64(kVccLo) != 0; };
constexpr auto kExecz = [](const Wave& w) { return w.exec() == 0; };
constexpr auto kExecnz = [](const Wave& w) { return w.exec() != 0; };
constexpr auto kAlways = [](const Wave&) { return true; };

constexpr OpRow kRows[] = {
    {"s_branch", "=k", &branch<kAlways>, Unit::kBranch, 0, 0},
    {"s_cbranch_scc0", "=k", &branch<kScc0>, Unit::kBranch, kReadsScc, 0},
    {"s_cbranch_scc1", "=k", &branch<kScc1>, Unit::kBranch, kReadsScc, 0},
    {"s_cbranch_vccz", "=k", &branch<kVccz>, Unit::kBranch, kReadsVcc, 0},
    {"s_cbranch_vccnz", "=k", &branch<kVccnz>, Unit::kBranch, kReadsVcc, 0},
    {"s_cbranch_execz", "=k", &branch<kExecz>, Unit::kBranch, kReadsExec, 0},
    {"s_cbranch_execnz", "=k", &branch<kExecnz>, Unit::kBranch, kReadsExec, 0},
    {"s_endpgm", "=", &endpgm, Unit::kOther, 0, 0},
    {"s_barrier", "=", &barrier, Unit::kBarrier, 0, 0},
    {"s_waitcnt", "=", &nothing, Unit::kOther, 0, 0},
    {"s_nop", "=k", &nothing, Unit::kOther, 0, 0},
    {"s_setprio", "=k", &nothing, Unit::kOther, 0, 0},
    {"s_sleep", "=k", &nothing, Unit::kOther, 0, 0},
    {"s_setkill", "=k", &nothing, Unit::kOther, 0, 0},
    {"s_incperflevel", "=k", &nothing, Unit::kOther, 0, 0},
    {"s_decperflevel", "=k", &nothing, Unit::kOther, 0, 0},
    {"s_icache_inv", "=", &nothing, Unit::kOther, 0, 0},
    {"s_dcache_wb", "=", &nothing, Unit::kOther, 0, 0},
    {"s_dcache_inv", "=", &nothing, Unit::kOther, 0, 0},
    {"s_ttracedata", "=", &nothing, Unit::kOther, 0, 0},
    {"buffer_wbl2", "=", &nothing, Unit::kVmem, 0, 0},
    {"buffer_inv", "=", &nothing, Unit::kVmem, 0, 0},
    {"s_getpc_b64", "S=", &getpc, Unit::kSalu, 0, 0},
    {"s_setpc_b64", "=S", &setpc, Unit::kBranch, 0, 0},
    {"s_swappc_b64", "S=S", &swappc, Unit::kBranch, 0, 0},
    {"s_getreg_b32", "s=w", &getreg, Unit::kSalu, 0, 0},
    {"s_setreg_b32", "=ws", &setreg, Unit::kSalu, 0, 0},
    {"s_setreg_imm32_b32", "=ws", &setreg, Unit::kSalu, 0, 0},
};

}  // namespace

RowTable control_rows() { return {kRows, sizeof(kRows) / sizeof(kRows[0])}; }

}  // namespace zyfa::sim
