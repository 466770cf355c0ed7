// Alignment of addresses outside of LDS, and of the LDS base of direct-to-LDS loads (gfx950-isa.md 3.1, 3.2).
//
// The guide (9.1.7) has dwords at addresses that are no multiple of 4 ignore the low two bits; kernels that AMD ships
// rely on their delivery, and LLVM emits them for HSA. SimRules::unaligned chooses what the simulator does; a finding
// is a warning where it delivers. Scalar loads ignore the bits for certain, and atomics are never delivered.
#include <fmt/format.h>

#include "runtime/sim/exec/strict.h"
#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// The low dword of the address of each lane, all that alignment needs.
class LowAddress {
 public:
  LowAddress(const Wave& wave, const MicroOp& op) : op_(op) {
    if (op.unit == Unit::kSmem) {
      scalar(wave);
    } else if (op.flags & kBuffer) {
      buffer(wave);
    } else {
      global(wave);
    }
  }
  [[nodiscard]] bool known() const { return known_; }
  // A lane that the descriptor clips touches nothing.
  [[nodiscard]] bool touches(unsigned lane) const {
    if (!(op_.flags & kBuffer)) return true;
    if (index_ != nullptr) return index_[lane] < records_;
    return static_cast<u64>(static_cast<u32>(op_.imm)) + (offset_ ? offset_[lane] : 0) < records_;
  }
  [[nodiscard]] u32 at(unsigned lane) const {
    return base_ + (offset_ ? offset_[lane] : 0) + (index_ ? index_[lane] * stride_ : 0);
  }

 private:
  void scalar(const Wave& wave) {
    const Operand& o = op_.src[1];
    base_ = scalar_value(wave, op_.src[0], 0) + (o.kind == OperandKind::kConst ? o.lo : scalar_value(wave, o, 0)) +
            static_cast<u32>(op_.imm);
  }
  void global(const Wave& wave) {
    if (op_.src[0].kind == OperandKind::kVgpr) offset_ = wave.v[op_.src[0].index].lane;
    const Operand& saddr = op_.src[op_.sources - 1];
    const bool has_saddr = (op_.flags & kGlobal) && saddr.kind != OperandKind::kNone;
    base_ = static_cast<u32>(op_.imm) + (has_saddr ? scalar_value(wave, saddr, 0) : 0);
  }
  // [data,] address, resource, soffset.
  void buffer(const Wave& wave) {
    const unsigned soffset = op_.sources - 1u, resource = soffset - 1, address = resource - 1;
    const unsigned r = op_.src[resource].index;
    const u32 word1 = wave.s[r + 1];
    constexpr u32 kSwizzle = 1u << 31, kAddThread = 1u << 23;
    known_ = !(word1 & kSwizzle) && !(wave.s[r + 3] & kAddThread);
    base_ = wave.s[r] + scalar_value(wave, op_.src[soffset], 0) + static_cast<u32>(op_.imm);
    records_ = wave.s[r + 2];
    stride_ = (word1 >> 16) & 0x3fff;
    if (op_.src[address].kind != OperandKind::kVgpr) return;
    const VectorReg* v = wave.v + op_.src[address].index;
    if (op_.idxen) index_ = (v++)->lane;
    if (op_.offen) offset_ = v->lane;
  }

  const MicroOp& op_;
  bool known_ = true;
  u32 base_ = 0, stride_ = 0, records_ = ~0u;
  const u32 *offset_ = nullptr, *index_ = nullptr;
};

}  // namespace

void Strict::check_memory(Wave& wave, const MicroOp& op, const StrictOp& s) {
  const LowAddress address(wave, op);
  if (!address.known()) return;
  const bool scalar = op.unit == Unit::kSmem;
  const u64 lanes = scalar ? 1 : wave.exec();
  const u32 mask = s.memory_align - 1u;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!((lanes >> l) & 1) || (address.at(l) & mask) == 0 || !address.touches(l)) continue;
    const bool delivered = !scalar && !(op.flags & kAtomic) && wave.rules.unaligned == SimUnaligned::kDelivered;
    return report(wave, op, "memory-misaligned", l,
                  fmt::format("an address that ends in 0x{:x}; the access needs a multiple of {}",
                              address.at(l) & 0xffff, s.memory_align),
                  delivered);
  }
}

void Strict::check_dma_base(const Wave& wave, const MicroOp& op, const LdsDma& dma) {
  constexpr u32 kWide = 16;  // bytes of x4
  const u32 align = dma.bytes == kWide ? kWide : 4;
  if (dma.base % align == 0) return;
  report(wave, op, "lds-misaligned", 0,
         fmt::format("LDS base {} of a direct-to-LDS load of {} bytes a lane must be a multiple of {}", dma.base,
                     dma.bytes, align));
}

}  // namespace zyfa::sim
