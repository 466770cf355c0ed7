// Wait states that software must provide (gfx950-isa.md section 4; f64 MFMA, EXEC as data and swap after swap from LLVM
// 22's GCNHazardRecognizer), checked by issue order.
#include <fmt/format.h>

#include <string>

#include "runtime/sim/exec/strict.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;

// Of an f64 MFMA of 4 or of 16 passes.
u32 by_passes(const RowState& r, u32 four, u32 sixteen) { return r.passes == 4 ? four : sixteen; }

bool is_memory(IssueClass c) { return c == IssueClass::kLds || c == IssueClass::kVmem; }

// 4.1: a result of an MFMA of N passes read by anything but an MFMA's C operand, or overwritten by anything but an
// MFMA.
u32 result_read(const RowState& r, IssueClass reader) {
  if (r.matrix == MatrixKind::kDgemm) return is_memory(reader) ? by_passes(r, 9, 18) : by_passes(r, 6, 19);
  return r.matrix == MatrixKind::kSgemm ? r.passes + 2u : r.passes == 2 ? 5u : r.passes + 4u;
}
u32 result_overwritten(const RowState& r) {
  return r.matrix == MatrixKind::kDgemm ? by_passes(r, 6, 11) : result_read(r, IssueClass::kValu);
}

bool same_tuple(const RowState& r, const RegisterUse& use) {
  return r.tuple_first == use.first && r.tuple_count == use.count;
}
// 4.1: the C operand of a following MFMA.
u32 other_c(const RowState& r, MatrixKind reader) {
  if (r.matrix == MatrixKind::kDgemm) return reader == MatrixKind::kXdl ? 0 : by_passes(r, 4, 17);
  return r.matrix == MatrixKind::kSgemm ? r.passes : r.passes + 2u;
}
u32 result_as_c(const RowState& r, const RegisterUse& use, MatrixKind reader) {
  if (!same_tuple(r, use)) return other_c(r, reader);
  return r.matrix == MatrixKind::kDgemm ? by_passes(r, 4, 0) : r.passes == 2 ? 2u : 0u;
}

}  // namespace

void Strict::report_wait_states(const Wave& wave, const MicroOp& op, unsigned need, std::uint64_t have,
                                const std::string& what) {
  report(wave, op, "wait-states", 0,
         fmt::format("{}: {} wait states are needed between them, there are {}", what, need, have));
}

// 4.1: that C is forwarded is stated for equal pass counts only.
void Strict::check_unequal_passes(const Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use,
                                  const RowState& r, unsigned row) {
  if (!same_tuple(r, use) || r.passes == s.passes || r.matrix == MatrixKind::kDgemm) return;
  const std::uint64_t have = waves_[wave.id].clock - r.matrix_at - 1;
  const u32 need = other_c(r, s.matrix);
  if (have >= need) return;
  report(wave, op, "wait-states-unconfirmed", 0,
         fmt::format("an MFMA of {} passes accumulates on {}, the result of one of {}: forwarding is stated for equal "
                     "passes only; {} wait states would be enough, there are {}",
                     s.passes, name(use, row), r.passes, need, have),
         true);
}

void Strict::read_hazards(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row) {
  const RowState& r = waves_[wave.id].rows[row];
  if (r.matrix_at != 0) {
    const u32 need = use.role == Role::kMatrixC ? result_as_c(r, use, s.matrix) : result_read(r, s.cls);
    if (use.role == Role::kMatrixC) check_unequal_passes(wave, op, s, use, r, row);
    require(wave, op, need, r.matrix_at,
            [&] { return fmt::format("reads {}, the result of an MFMA of {} passes", name(use, row), r.passes); });
  }
  if (r.valu_at == 0) return;
  // Only the same opcode accumulating on the result is forwarded.
  if (r.dot != nullptr && (r.dot != op.row || use.role != Role::kDotC)) {
    require(wave, op, 3, r.valu_at,
            [&] { return fmt::format("reads {}, the result of a dot product", name(use, row)); });
  }
  if (s.cls == IssueClass::kMatrix) {
    require(wave, op, 2, r.valu_at,
            [&] { return fmt::format("an MFMA reads {}, written by the VALU", name(use, row)); });
  }
  if (!is_valu(s.cls)) return;
  if (r.writer == IssueClass::kTrans && s.cls != IssueClass::kTrans) {
    require(wave, op, 1, r.valu_at,
            [&] { return fmt::format("reads {}, the result of a transcendental instruction", name(use, row)); });
  }
  if (s.cls == IssueClass::kSwap) {
    require(wave, op, 2, r.valu_at,
            [&] { return fmt::format("a permlane swap reads {}, written by the VALU", name(use, row)); });
  }
  if (op.dpp != nullptr)
    require(wave, op, 2, r.valu_at, [&] { return fmt::format("DPP reads {}, written by the VALU", name(use, row)); });
  if (s.cls == IssueClass::kReadlane) {
    require(wave, op, 1, r.valu_at,
            [&] { return fmt::format("a lane of {} is read, written by the VALU", name(use, row)); });
  }
  if (r.half_select) {
    require(wave, op, 1, r.valu_at,
            [&] { return fmt::format("reads {}, of which the VALU just wrote a part", name(use, row)); });
  }
}

void Strict::write_hazards(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row) {
  const RowState& r = waves_[wave.id].rows[row];
  const bool valu = is_valu(s.cls);
  if (valu || is_memory(s.cls)) {
    if (r.matrix_at != 0) {
      require(wave, op, result_overwritten(r), r.matrix_at, [&] {
        return fmt::format("overwrites {}, the result of an MFMA of {} passes", name(use, row), r.passes);
      });
    }
    if (r.c_read_at != 0) {
      require(wave, op, r.c_passes - 1u, r.c_read_at, [&] {
        return fmt::format("overwrites {}, the C operand of an MFMA of {} passes", name(use, row), r.c_passes);
      });
    }
  }
  // A load comes long after the store has read its data, and compilers put nothing between.
  if (r.store_at != 0 && (valu || s.cls == IssueClass::kMatrix)) {
    require(wave, op, 2, r.store_at,
            [&] { return fmt::format("overwrites {}, data of a store of 3 or 4 dwords", name(use, row)); });
  }
  if (r.dot != nullptr && r.dot != op.row) {
    require(wave, op, 3, r.valu_at,
            [&] { return fmt::format("overwrites {}, the result of a dot product", name(use, row)); });
  }
  if (valu && s.keeps_part && r.half_select && r.valu_at != 0) {
    require(wave, op, 1, r.valu_at,
            [&] { return fmt::format("keeps a part of {}, of which the VALU just wrote the other", name(use, row)); });
  }
}

void Strict::scalar_hazards(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use) {
  const WaveState& ws = waves_[wave.id];
  for (unsigned i = use.first; i < static_cast<unsigned>(use.first) + use.count; ++i) {
    const std::uint64_t at = i == kExecLo || i == kExecLo + 1 ? ws.cmpx_at : ws.scalars[i].valu_at;
    if (at == 0) continue;
    const auto what = [&] { return fmt::format("reads scalar register {}, written by the VALU", i); };
    if (use.role == Role::kLaneSelect) {
      require(wave, op, 4, at, what);
    } else if (s.cls == IssueClass::kVmem) {
      require(wave, op, 5, at, what);
    } else if (is_valu(s.cls)) {
      // A carry-in needs none by AMD's guide; v_div_fmas reads VCC after 4.
      require(wave, op, op.flags & kReadsVcc ? 4 : use.role == Role::kCarry ? 0 : 2, at, what);
    }
  }
}

void Strict::check_exec(Wave& wave, const MicroOp& op, const StrictOp& s) {
  const WaveState& ws = waves_[wave.id];
  const bool swap = s.cls == IssueClass::kSwap, matrix = s.cls == IssueClass::kMatrix;
  if ((matrix || (op.flags & kAllLanesNeeded)) && wave.exec() != ~0ull) {
    const auto lane = static_cast<unsigned>(__builtin_ctzll(~wave.exec()));
    report(wave, op, "exec-mask", lane, "EXEC must be all ones here, the lane is inactive");
  }
  if (ws.cmpx_at != 0) {
    const auto what = [] { return std::string("v_cmpx wrote EXEC just before"); };
    if (matrix || swap || s.cls == IssueClass::kReadlane) require(wave, op, 4, ws.cmpx_at, what);
    if (op.dpp != nullptr) require(wave, op, 5, ws.cmpx_at, what);
  }
  if (s.needs_m0_early && ws.m0_at != 0)
    require(wave, op, 1, ws.m0_at, [] { return std::string("reads M0, written by the SALU"); });
  if (s.is_f64_fma && ws.dgemm_at != 0)
    require(wave, op, 2, ws.dgemm_at, [] { return std::string("an f64 fma next to an f64 MFMA"); });
  if (s.reads_vccz && ws.scalars[kVccLo].valu_at != 0) {
    require(wave, op, 5, ws.scalars[kVccLo].valu_at,
            [&] { return std::string("reads vccz after the VALU wrote VCC"); });
  }
  if (s.reads_execz && ws.cmpx_at != 0)
    require(wave, op, 5, ws.cmpx_at, [&] { return std::string("reads execz after the VALU wrote EXEC"); });
}

// 4.4: s_setreg before an access to the same register, and MODE.vskip before a vector instruction.
void Strict::check_hardware_registers(Wave& wave, const MicroOp& op, const StrictOp& s) {
  WaveState& ws = waves_[wave.id];
  if (s.any_vector) {
    require(wave, op, 2, ws.vskip_at, [] { return std::string("s_setreg wrote MODE.vskip just before"); });
    return;
  }
  const int id = s.hwreg_write >= 0 ? s.hwreg_write : s.hwreg_read;
  if (id < 0) return;
  if (const std::uint64_t at = ws.setreg_at[static_cast<std::size_t>(id)]; at != 0) {
    require(wave, op, 2, at,
            [&] { return fmt::format("hardware register {}, written by s_setreg, is accessed again", id); });
  }
}

}  // namespace zyfa::sim
