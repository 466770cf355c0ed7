// Register-level facts of one instruction, whichever way it was made: from a listing (after allocation) or from decoded
// machine code. Wait, hazard and verifier passes see instructions only through this.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/isa/instruction.h"
#include "jit/isa/reg.h"

namespace zyfa::jit {

enum class FactClass : std::uint8_t {
  kOther,  // s_nop, s_setprio, s_sleep, s_sethalt, ...
  kSalu,
  kBranch,
  kEndpgm,
  kBarrier,
  kWaitcnt,
  kSetreg,
  kGetreg,
  kSmem,
  kValu,          // plain VALU
  kTrans,         // transcendental
  kPermlaneSwap,  // v_permlane16/32_swap
  kReadlane,      // v_readlane, v_readfirstlane, v_writelane
  kCmpx,          // VALU that writes EXEC
  kDot,
  kDivFmas,
  kMfmaXdl,
  kMfmaSgemm,
  kMfmaDgemm,
  kSmfmac,
  kLds,
  kFlat,
  kVmemLoad,
  kVmemStore,
  kVmemAtomic,
};

struct RegRange {
  Bank bank;
  std::uint16_t first, count;  // Special: first = id
  bool operator==(const RegRange&) const = default;
  [[nodiscard]] bool overlaps(const RegRange& o) const {
    return bank == o.bank && first < o.first + o.count && o.first < first + count;
  }
};

struct InstFacts {
  FactClass cls = FactClass::kOther;
  std::vector<RegRange> reads,
      writes;  // explicit and implicit; EXEC as implicit input of vector instructions is left out
  // MFMA roles (also contained in reads/writes)
  RegRange mfma_d{}, mfma_a{}, mfma_b{}, mfma_c{};  // count 0 when absent or inline constant
  RegRange mfma_scale_a{}, mfma_scale_b{};
  std::uint8_t mfma_passes = 0;
  // Memory
  bool lds_dma = false;           // load direct to LDS
  std::uint8_t store_dwords = 0;  // dwords of data of a store
  RegRange store_data{};
  bool soffset_is_sgpr = false;  // buffer instruction with an SGPR as soffset
  RegRange lane_select{};        // SGPR lane select of readlane / writelane
  bool is_dpp = false, is_sdwa = false;
  bool dest_half_select = false;   // op_sel[3], high-half cvt_pk_fp8, SDWA dst_sel: partial register write
  std::uint8_t nop_states = 1;     // wait states this instruction counts for: n+1 for s_nop n, else 1
  std::uint16_t waitcnt = 0xffff;  // SIMM16 of s_waitcnt
  bool reads_vccz = false, reads_execz = false;  // as an operand
};

// Facts of a listing instruction with physical registers. kLabel and kAwait give kOther with nop_states 0.
InstFacts facts_of(const Instruction& instruction);

}  // namespace zyfa::jit
