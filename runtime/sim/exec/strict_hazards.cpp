// Wait states that software must provide (gfx950-isa.md section 4), checked by issue order.
#include <fmt/format.h>

#include <string>

#include "runtime/sim/exec/strict.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;

// 4.1: a result of an MFMA of N passes read or overwritten by anything but an MFMA's C operand.
u32 after_matrix(const RowState& r) { return r.sgemm ? r.passes + 2u : r.passes == 2 ? 5u : r.passes + 4u; }

// 4.1: the C operand of a following MFMA.
u32 matrix_to_c(const RowState& r, const RegisterUse& use) {
  const bool exact = r.tuple_first == use.first && r.tuple_count == use.count;
  if (exact) return r.passes == 2 ? 2u : 0u;
  return r.sgemm ? r.passes : r.passes + 2u;
}

}  // namespace

void Strict::report_wait_states(const Wave& wave, const MicroOp& op, unsigned need, std::uint64_t have,
                                const std::string& what) {
  report(wave, op, "wait-states", 0,
         fmt::format("{}: {} wait states are needed between them, there are {}", what, need, have));
}

void Strict::read_hazards(Wave& wave, const MicroOp& op, const StrictOp& s, const RegisterUse& use, unsigned row) {
  const RowState& r = waves_[wave.id].rows[row];
  if (r.matrix_at != 0) {
    const u32 need = use.role == Role::kMatrixC ? matrix_to_c(r, use) : after_matrix(r);
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
  if (use.role == Role::kDppSource)
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
  const bool valu = is_valu(s.cls), memory = s.cls == IssueClass::kLds || s.cls == IssueClass::kVmem;
  if (valu || memory) {
    if (r.matrix_at != 0) {
      require(wave, op, after_matrix(r), r.matrix_at, [&] {
        return fmt::format("overwrites {}, the result of an MFMA of {} passes", name(use, row), r.passes);
      });
    }
    if (r.c_read_at != 0) {
      require(wave, op, r.c_passes - 1u, r.c_read_at, [&] {
        return fmt::format("overwrites {}, the C operand of an MFMA of {} passes", name(use, row), r.c_passes);
      });
    }
  }
  if (r.store_at != 0) {
    const u32 need = valu || s.cls == IssueClass::kMatrix ? 2 : 1;
    require(wave, op, need, r.store_at,
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
    const std::uint64_t at = ws.scalars[i].valu_at;
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
  if (s.reads_m0_for_dma && ws.m0_at != 0)
    require(wave, op, 1, ws.m0_at, [&] { return std::string("a direct-to-LDS load reads M0, written by the SALU"); });
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
