// What strict mode needs to know about each instruction, worked out once: registers read and written with their roles,
// and the class that the wait-state rules of gfx950-isa.md section 4 speak of.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/sim/exec/program.h"

namespace zyfa::sim {

enum class Role : std::uint8_t {
  kData,    // looked at by arithmetic, compares, conversions
  kCopied,  // moved as it is: poison travels
  kAddress,
  kStored,
  kMatrixAB,  // A, B and scale operands
  kMatrixC,
  kLaneSelect,
  kMask,       // lane mask of v_cndmask
  kCarry,      // carry-in lane mask
  kDotC,       // addend of a dot product
  kDppSource,  // data that DPP moves between lanes
};

struct RegisterUse {
  bool vector = true;
  bool accumulation = false;  // printed as an AGPR
  Role role = Role::kData;
  std::uint16_t first = 0;
  std::uint8_t count = 0;
};

enum class IssueClass : std::uint8_t {
  kOther,
  kSalu,
  kValu,
  kTrans,
  kSwap,      // v_permlane*_swap
  kReadlane,  // v_readlane, v_readfirstlane, v_writelane
  kDot,
  kMatrix,
  kLds,
  kVmem,
  kSmem,
  kBranch,
};

enum class MatrixKind : std::uint8_t { kXdl, kSgemm, kDgemm };  // by inputs: f32 SGEMM, f64 DGEMM, all others XDL

struct StrictOp {
  IssueClass cls = IssueClass::kOther;
  std::array<RegisterUse, 8> reads;
  std::array<RegisterUse, 3> writes;
  std::uint8_t read_count = 0, write_count = 0;
  bool half_select = false;  // writes a chosen half or byte: the next VALU reader needs a wait state (4.3)
  bool keeps_part = false;   // the rest of the destination is read and kept
  bool all_lanes = false;    // reads and writes every lane whatever EXEC says
  bool copies = false;
  bool reads_scc = false, writes_scc = false, writes_exec = false;
  bool needs_m0_early = false;                    // M0 written by SALU needs a wait state
  bool reads_vccz = false, reads_execz = false;   // as operands
  bool any_vector = false;                        // VALU, MFMA, LDS or VMEM: what MODE.vskip skips
  bool state_rules = false;                       // has rules about EXEC, M0 or vccz of its own
  std::int8_t hwreg_read = -1, hwreg_write = -1;  // of s_getreg and s_setreg
  bool writes_vskip = false;
  bool is_setvskip = false;        // needs wait states before s_getreg of MODE, none itself (guide 4.5)
  bool writes_any_scalar = false;  // s_movreld: M0 says which
  bool is_f64_fma = false;
  std::uint8_t passes = 0;  // of an MFMA
  MatrixKind matrix = MatrixKind::kXdl;
  const char* overlap = nullptr;  // of an MFMA: operands that D must be apart from and is not
  bool ends = false;              // s_endpgm
  std::uint8_t memory_align = 0;  // bytes that the address of a global, flat, buffer or scalar access must divide by
  std::uint8_t wide_store = 0;    // dwords of a store whose data must not be overwritten at once, else 0
  // LDS accesses: chunks of `lds_bytes` at address + chunk offset.
  std::uint8_t lds_chunks = 0;
  std::uint8_t lds_bytes = 0, lds_align = 1;  // a power of 2
  std::array<std::int32_t, 2> lds_offset{};
  bool lds_write = false, lds_atomic = false;

  void read(const RegisterUse& use) {
    if (read_count < reads.size()) reads[read_count++] = use;
  }
  void write(const RegisterUse& use) {
    if (write_count < writes.size()) writes[write_count++] = use;
  }
};

inline bool is_valu(IssueClass c) {
  return c == IssueClass::kValu || c == IssueClass::kTrans || c == IssueClass::kSwap || c == IssueClass::kReadlane ||
         c == IssueClass::kDot;
}

using StrictTable = std::vector<StrictOp>;
StrictTable make_strict_table(const Program& program);
StrictOp describe_strict(const MicroOp& op);

}  // namespace zyfa::sim
