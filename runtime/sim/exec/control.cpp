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

// D = address of the next instruction, then a jump whose target the decoder knows.
void call(Wave& w, const MicroOp& op) {
  w.set_scalar64(op.dst.index, w.group->code_address + op.offset + op.size);
  w.pc = op.target;
}
// No trap handler is installed: the trap ends the launch, as __builtin_trap means it to.
void trap(Wave& w, const MicroOp& op) {
  raise_fault(w, op, 0, fmt::format("executes trap {}; there is no trap handler", op.src[0].lo & 0xff));
}

// Hardware registers (guide 3.3 to 3.5). imm2: id | offset << 6 | (size - 1) << 11, as in the encoding.
constexpr u32 kHwMode = 1, kHwStatus = 2, kHwId = 4, kHwGprAlloc = 5;
u32 hw_register(const Wave& w, u32 id) {
  switch (id) {
    case kHwMode:
      return w.mode;
    case kHwStatus: {
      // SCC, EXECZ, VCCZ, IN_TG, VALID.
      const u32 in_group = w.group->waves.size() > 1;
      return (w.scc & 1) | u32{w.exec() == 0} << 9 | u32{w.scalar64(kVccLo) == 0} << 10 | in_group << 11 | 1u << 16;
    }
    case kHwId:  // one compute unit: SIMD in bits 5:4, slot in bits 3:0
      return (w.id / 4) | (w.id % 4) << 4;
    case kHwGprAlloc:  // VGPR_SIZE in granules of 8, bits 13:8
      return ((w.vgpr_rows + 7) / 8 - 1) << 8;
    default:
      return 0;
  }
}
void getreg(Wave& w, const MicroOp& op) {
  const u32 offset = (op.imm2 >> 6) & 31, size = ((op.imm2 >> 11) & 31) + 1;
  const u64 mask = (1ull << size) - 1;
  w.s[op.dst.index] = static_cast<u32>((hw_register(w, op.imm2 & 63) >> offset) & mask);
}
// Only MODE is writable without privilege to an effect.
void setreg(Wave& w, const MicroOp& op) {
  if ((op.imm2 & 63) != static_cast<int>(kHwMode)) return;
  const u32 offset = (op.imm2 >> 6) & 31, size = ((op.imm2 >> 11) & 31) + 1;
  const u32 mask = static_cast<u32>(((1ull << size) - 1) << offset);
  const u32 value = scalar_value(w, op.src[op.sources - 1], 0);
  apply_mode(w, (w.mode & ~mask) | ((value << offset) & mask));
}

constexpr u32 kGprIdxEn = 1u << 27, kVskip = 1u << 28;
void set_index(Wave& w, u32 index) { w.s[kM0] = (w.s[kM0] & ~0xffu) | (index & 0xff); }
void set_index_mode(Wave& w, u32 enables) { w.s[kM0] = (w.s[kM0] & ~0xf000u) | ((enables & 15) << 12); }
void gpr_idx_on(Wave& w, const MicroOp& op) {
  set_index(w, scalar_value(w, op.src[0], 0));
  set_index_mode(w, op.src[1].lo);
  apply_mode(w, w.mode | kGprIdxEn);
}
void gpr_idx_off(Wave& w, const MicroOp&) { apply_mode(w, w.mode & ~kGprIdxEn); }
void gpr_idx_mode(Wave& w, const MicroOp& op) { set_index_mode(w, op.src[0].lo); }
void gpr_idx_idx(Wave& w, const MicroOp& op) { set_index(w, scalar_value(w, op.src[0], 0)); }
void setvskip(Wave& w, const MicroOp& op) {
  const bool skip = (scalar_value(w, op.src[0], 0) >> (scalar_value(w, op.src[1], 0) & 31)) & 1;
  apply_mode(w, skip ? w.mode | kVskip : w.mode & ~kVskip);
}

constexpr auto kScc0 = [](const Wave& w) { return w.scc == 0; };
constexpr auto kScc1 = [](const Wave& w) { return w.scc != 0; };
constexpr auto kVccz = [](const Wave& w) { return w.scalar64(kVccLo) == 0; };
constexpr auto kVccnz = [](const Wave& w) { return w.scalar64(kVccLo) != 0; };
constexpr auto kExecz = [](const Wave& w) { return w.exec() == 0; };
constexpr auto kExecnz = [](const Wave& w) { return w.exec() != 0; };
constexpr auto kAlways = [](const Wave&) { return true; };
// STATUS.COND_DBG_SYS and COND_DBG_USER are set by a debugger only.
constexpr auto kNever = [](const Wave&) { return false; };

constexpr OpRow kRows[] = {
    {"s_branch", "=k", &branch<kAlways>, Unit::kBranch, 0, 0},
    {"s_cbranch_scc0", "=k", &branch<kScc0>, Unit::kBranch, kReadsScc, 0},
    {"s_cbranch_scc1", "=k", &branch<kScc1>, Unit::kBranch, kReadsScc, 0},
    {"s_cbranch_vccz", "=k", &branch<kVccz>, Unit::kBranch, kReadsVcc, 0},
    {"s_cbranch_vccnz", "=k", &branch<kVccnz>, Unit::kBranch, kReadsVcc, 0},
    {"s_cbranch_execz", "=k", &branch<kExecz>, Unit::kBranch, kReadsExec, 0},
    {"s_cbranch_execnz", "=k", &branch<kExecnz>, Unit::kBranch, kReadsExec, 0},
    {"s_cbranch_cdbgsys", "=k", &branch<kNever>, Unit::kBranch, 0, 0},
    {"s_cbranch_cdbguser", "=k", &branch<kNever>, Unit::kBranch, 0, 0},
    {"s_cbranch_cdbgsys_or_user", "=k", &branch<kNever>, Unit::kBranch, 0, 0},
    {"s_cbranch_cdbgsys_and_user", "=k", &branch<kNever>, Unit::kBranch, 0, 0},
    {"s_call_b64", "S=k", &call, Unit::kBranch, 0, 0},
    {"s_trap", "=k", &trap, Unit::kOther, 0, 0},
    {"s_sethalt", "=k", &nothing, Unit::kOther, 0, 0},
    {"s_sendmsg", "=n", &nothing, Unit::kOther, kReadsM0, 0},
    {"s_wakeup", "=", &nothing, Unit::kOther, 0, 0},
    {"s_setvskip", "=ss", &setvskip, Unit::kSalu, 0, 0},
    {"s_set_gpr_idx_on", "=sk", &gpr_idx_on, Unit::kSalu, 0, 0},
    {"s_set_gpr_idx_off", "=", &gpr_idx_off, Unit::kSalu, 0, 0},
    {"s_set_gpr_idx_mode", "=k", &gpr_idx_mode, Unit::kSalu, 0, 0},
    {"s_set_gpr_idx_idx", "=s", &gpr_idx_idx, Unit::kSalu, 0, 0},
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
