#include "runtime/sim/timing/op_cost.h"

#include <algorithm>
#include <string_view>

#include "runtime/sim/exec/traffic.h"

namespace zyfa::sim::timing {
namespace {

using namespace std::string_view_literals;
using u16 = std::uint16_t;
using u8 = std::uint8_t;

constexpr std::uint32_t kSlot = 4;         // cycles; a SIMD's turn, a pass, a wait state (reference, units)
constexpr std::uint32_t kPlainCycles = 4;  // 2.2
constexpr int kDword = 4;                  // bytes
constexpr float kPairBytes = 128;          // a SIMD pair's path to LDS, each way, a clock (3.1)
constexpr float kReadPhase = 256;          // bytes; 64 banks (3.1)
constexpr float kWritePhase = 128;         // bytes; 32 banks (3.1)
constexpr std::uint32_t kSmfmacSlots = 3;  // 1.3a, both sizes
constexpr std::uint32_t kDrainSlots = 2;   // 1.3a: packed fp32 after an MFMA, any VALU after an fp32 or fp64 MFMA

u16 cycles(std::uint32_t slots) { return static_cast<u16>(kSlot * slots); }

// Cycles are those of 2.1: 4 a pass, which decoding put into the row's argument (formats of f8f6f4 included).
void matrix_cost(const MicroOp& op, const Parameters& p, OpCost& c) {
  const std::uint32_t passes = op.arg >> 24;
  const std::uint32_t widest = 4u * std::max(op.src[0].count, op.src[1].count);
  c.kind = Kind::kMatrix;
  c.category = p.hold_other_wave ? Category::kVector : Category::kMatrix;
  c.matrix = cycles(passes);
  c.scaled = op.flags & kScaled;
  if (op.flags & kSparse) {
    c.hold = c.shadow = c.pk_shadow = cycles(kSmfmacSlots);
  } else if (op.flags & kSgemm) {
    c.hold = cycles(passes);
    c.shadow = c.pk_shadow = cycles(passes + kDrainSlots);
  } else {
    c.hold = c.shadow = cycles(1 + widest / 16);
    c.pk_shadow = cycles(passes + kDrainSlots + (op.src[0].count >= 4 ? 1 : 0));
  }
}

bool is_packed_like(const MicroOp& op, std::string_view name, const Parameters& p) {
  return name == "v_pk_fma_f32"sv || name == "v_pk_mul_f32"sv || name == "v_pk_add_f32"sv || name == "v_pk_mov_b32"sv ||
         (op.flags & kDot) ||
         (p.cvt_pk_fp8_is_packed_like && (name == "v_cvt_pk_fp8_f32"sv || name == "v_cvt_pk_bf8_f32"sv));
}

bool is_double(std::string_view name) { return name.find("f64") != name.npos && !name.starts_with("v_cvt"); }

bool is_wide_product(std::string_view name) {
  return name.starts_with("v_mul_lo_u32") || name.starts_with("v_mul_hi_u32") || name.starts_with("v_mul_hi_i32") ||
         name.starts_with("v_mad_u64_u32") || name.starts_with("v_mad_i64_i32");
}

std::uint32_t plain_cycles(const MicroOp& op, std::string_view name, const Parameters& p) {
  if (op.flags & kLaneSwap) return p.permlane_cycles;
  if (name == "v_cvt_pk_u8_f32"sv) return p.cvt_pk_u8_cycles;
  if (name.starts_with("v_cvt_scalef32_")) return p.cvt_scale_cycles;
  if (is_wide_product(name)) return p.mul_lo_cycles;
  if (is_double(name)) return p.f64_cycles;
  return kPlainCycles;
}

void vector_cost(const MicroOp& op, std::string_view name, const Parameters& p, OpCost& c) {
  c.category = Category::kVector;
  if (op.dst.kind == OperandKind::kVgpr) {
    c.result_row = op.dst.index;
    c.result_count = op.dst.count;
  }
  if (op.unit == Unit::kTrans) {
    c.kind = Kind::kTrans;
    c.port = static_cast<u8>(p.trans_cycles);
    c.matrix = static_cast<u16>(p.trans_matrix_cycles);
    return;
  }
  c.port = static_cast<u8>(plain_cycles(op, name, p));
  c.kind = is_packed_like(op, name, p) ? Kind::kPacked : Kind::kPlain;
  if (c.kind == Kind::kPacked) c.matrix = static_cast<u16>(p.pk_matrix_cycles);
}

// A phase of a read moves 256 bytes and one of a write 128, over a pair's path of 128 a clock; the array serves one a
// clock. Conflicts take the array's time alone: a lone wave's two-way conflict costs nothing (GLUON's LDS experiment).
void lds_cost(const MicroOp& op, std::string_view name, const Parameters& p, OpCost& c) {
  c.category = Category::kLds;
  const bool write = op.flags & (kStore | kAtomic);
  c.kind = write ? Kind::kLdsWrite : Kind::kLdsRead;
  const auto rate = static_cast<float>(name == "ds_read_b64_tr_b8"sv ? p.tr_b8_bytes_per_clock : p.lds_bytes_per_clock);
  const float slower = write ? 1.0F : kReadPhase / rate;
  const LdsShape shape = lds_shape_of(op);
  const int bytes = std::max<int>(shape.elements, 1) * std::max<int>(shape.bytes, kDword) * kLanes;
  c.pair_cycles = slower * (write ? kWritePhase : kReadPhase) / kPairBytes;
  c.pair_most = slower * static_cast<float>(bytes) / kPairBytes;
  c.array_cycles = slower;
  if (op.sources > 0 && op.src[0].kind == OperandKind::kVgpr) {
    c.address_row = op.src[0].index;
    c.address_count = op.src[0].count;
  }
}

void vmem_cost(const MicroOp& op, std::string_view name, const Parameters& p, OpCost& c) {
  c.category = Category::kVmem;
  c.kind = Kind::kVmem;
  c.lds_dma = op.lds && (op.flags & kLoad);
  // dwordx2 takes the time of dwordx4 (3.2).
  const float waste = name.ends_with("dwordx2") ? 2.0F : 1.0F;
  c.path_cycles = waste / static_cast<float>(p.l1_bytes_per_clock);
}

void internal_cost(const MicroOp& op, std::string_view name, const Parameters& p, OpCost& c) {
  c.wave_cycles = static_cast<u16>(p.setprio_cycles);
  if (name == "s_nop"sv) {
    c.kind = Kind::kNop;
    c.wave_cycles = static_cast<u16>(kSlot * op.nop_states - p.nop_overlap_cycles);
  } else if (name == "s_waitcnt"sv) {
    c.kind = Kind::kWait;
    c.vmcnt = op.vmcnt;
    c.lgkmcnt = op.lgkmcnt;
    c.wave_cycles = static_cast<u16>(p.waitcnt_cycles);
  } else if (name == "s_setprio"sv) {
    c.kind = Kind::kPriority;
    c.priority = static_cast<u8>(op.src[0].lo & 3);
  } else if (name == "s_endpgm"sv) {
    c.kind = Kind::kEnd;
  } else if (name == "s_sleep"sv) {
    // Sleeps about 64 cycles for each unit of its operand (ISA guide, s_sleep).
    c.kind = Kind::kNop;
    c.wave_cycles = static_cast<u16>(64 * (op.src[0].lo & 0x7f) + kSlot);
  }
}

}  // namespace

OpCost op_cost(const MicroOp& op, const Parameters& parameters) {
  OpCost c;
  const std::string_view name = op.row != nullptr ? op.row->mnemonic : "";
  switch (op.unit) {
    case Unit::kValu:
    case Unit::kTrans:
      vector_cost(op, name, parameters, c);
      break;
    case Unit::kMfma:
      matrix_cost(op, parameters, c);
      break;
    case Unit::kSalu:
      c.category = Category::kScalar;
      c.kind = Kind::kSalu;
      break;
    case Unit::kSmem:
      c.category = Category::kScalar;
      c.kind = Kind::kSmem;
      break;
    case Unit::kLds:
      lds_cost(op, name, parameters, c);
      break;
    case Unit::kVmem:
      vmem_cost(op, name, parameters, c);
      break;
    case Unit::kBranch:
      c.category = Category::kBranch;
      c.kind = Kind::kBranch;
      break;
    case Unit::kBarrier:
      c.kind = Kind::kBarrier;
      break;
    case Unit::kOther:
      internal_cost(op, name, parameters, c);
      break;
  }
  const bool vector = op.unit == Unit::kValu || op.unit == Unit::kTrans;
  c.misaligned = vector && op.size == 8 && op.offset % 8 == 4;
  return c;
}

std::vector<OpCost> op_costs(const Program& program, const Parameters& parameters) {
  std::vector<OpCost> costs;
  costs.reserve(program.ops.size());
  for (const MicroOp& op : program.ops) costs.push_back(op_cost(op, parameters));
  return costs;
}

}  // namespace zyfa::sim::timing
