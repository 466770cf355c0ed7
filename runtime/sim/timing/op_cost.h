// What an instruction costs by itself: its category, its unit's cycles, and what it imposes on later instructions of
// its wave. Static: worked out once an operation and set of parameters. Sections are those of the timing reference.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sim/exec/program.h"
#include "runtime/sim/timing/parameters.h"

namespace zyfa::sim::timing {

// At its turn a SIMD issues at most one instruction of each (1.1); internal ones need none.
enum class Category : std::uint8_t { kVector, kMatrix, kLds, kVmem, kScalar, kBranch, kInternal };
inline constexpr std::uint32_t kCategories = 6;  // that compete

enum class Kind : std::uint8_t {
  kPlain,   // vector
  kPacked,  // v_pk_{add,mul,fma}_f32, v_pk_mov_b32, v_dot*: does not overlap with the matrix pipe
  kTrans,
  kMatrix,
  kLdsRead,
  kLdsWrite,  // also atomics
  kVmem,
  kSmem,
  kSalu,
  kBranch,
  kNop,
  kWait,
  kBarrier,
  kPriority,
  kInternal,
  kEnd,
};

struct OpCost {
  Kind kind = Kind::kInternal;
  Category category = Category::kInternal;
  std::uint8_t port = 0;        // VALU cycles
  std::uint16_t matrix = 0;     // cycles of the matrix pipe
  std::uint16_t hold = 0;       // cycles from an MFMA's issue to any other vector instruction
  std::uint16_t shadow = 0;     // the same for ordinary vector instructions of its own wave
  std::uint16_t pk_shadow = 0;  // and for packed ones
  bool scaled = false;          // later start in an idle matrix pipe
  bool misaligned = false;      // 8 bytes at PC mod 8 = 4
  bool lds_dma = false;         // also writes LDS
  std::uint8_t vmcnt = 0, lgkmcnt = 0;
  std::uint8_t priority = 0;
  std::uint16_t wave_cycles = 0;                     // of an internal instruction, in its wave
  std::uint16_t address_row = 0, address_count = 0;  // VGPRs of an LDS address
  std::uint16_t result_row = 0, result_count = 0;    // VGPRs a vector instruction writes
  float pair_cycles = 0;                             // LDS: of the SIMD pair's path, a phase
  float pair_most = 0;                               // LDS: the same for all that a wave can move
  float array_cycles = 0;                            // LDS: of the array, a phase or conflict
  float path_cycles = 0;                             // VMEM: of the L1 path, a byte
};

[[nodiscard]] OpCost op_cost(const MicroOp& op, const Parameters& parameters);
[[nodiscard]] std::vector<OpCost> op_costs(const Program& program, const Parameters& parameters);

}  // namespace zyfa::sim::timing
