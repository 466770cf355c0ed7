// Derivation of register uses from decoded micro-operations: see strict_table.h.
#include "runtime/sim/exec/strict_table.h"

#include <string_view>

#include "runtime/sim/exec/vmem_address.h"

namespace zyfa::sim {
namespace {

using u8 = std::uint8_t;

IssueClass classify(const MicroOp& op) {
  switch (op.unit) {
    case Unit::kTrans:
      return IssueClass::kTrans;
    case Unit::kValu:
      if ((op.flags & kLaneSwap) && (op.flags & kAllLanesNeeded)) return IssueClass::kSwap;
      if (op.flags & kReadlane) return IssueClass::kReadlane;
      return op.flags & kDot ? IssueClass::kDot : IssueClass::kValu;
    case Unit::kMfma:
      return IssueClass::kMatrix;
    case Unit::kSalu:
      return IssueClass::kSalu;
    case Unit::kSmem:
      return IssueClass::kSmem;
    case Unit::kLds:
      return IssueClass::kLds;
    case Unit::kVmem:
      return IssueClass::kVmem;
    case Unit::kBranch:
      return IssueClass::kBranch;
    default:
      return IssueClass::kOther;
  }
}

RegisterUse use_of(const Operand& o, Role role) {
  RegisterUse use;
  use.vector = o.kind == OperandKind::kVgpr;
  use.accumulation = o.agpr;
  use.role = role;
  use.first = o.index;
  use.count = o.count;
  return use;
}
bool is_register(const Operand& o) { return o.kind == OperandKind::kVgpr || o.kind == OperandKind::kSgpr; }

// Compilers merge lane masks as (old & ~EXEC) | (new & EXEC) or old | EXEC, whose bits of active lanes do not depend on
// the old mask: on the first trip of a loop nobody wrote it.
bool merges_with_exec(const MicroOp& op) {
  const auto is_exec = [](const Operand& o) {
    return o.kind == OperandKind::kSgpr && o.index == kExecLo && o.count == 2;
  };
  const std::string_view name = op.row->mnemonic;
  return (name == "s_or_b64" && (is_exec(op.src[0]) || is_exec(op.src[1]))) ||
         (name == "s_andn2_b64" && is_exec(op.src[1]));
}

Role source_role(const MicroOp& op, unsigned i) {
  const Operand& o = op.src[i];
  if (op.unit == Unit::kMfma) {
    if (op.flags & kSparse) return Role::kMatrixAB;
    return i == 2 ? Role::kMatrixC : Role::kMatrixAB;
  }
  if (op.unit == Unit::kLds || op.unit == Unit::kVmem) {
    const bool is_data = (op.flags & (kStore | kAtomic)) &&
                         (op.unit == Unit::kLds ? i > 0 || (op.flags & kReadsM0) : i == data_source(op));
    // Compilers spill registers without regard to which lanes hold anything.
    if (is_data) return op.flags & kScratch ? Role::kCopied : Role::kStored;
    return Role::kAddress;
  }
  if (op.unit == Unit::kSmem) return (op.flags & kStore) && i == 0 ? Role::kStored : Role::kAddress;
  if (op.flags & kSelects) return i == 2 ? Role::kMask : Role::kCopied;
  if (o.type == 'm') return Role::kCarry;
  if ((op.flags & kDot) && i == 2) return Role::kDotC;
  if (op.flags & kReadlane) return i == 1 ? Role::kLaneSelect : Role::kCopied;
  if (merges_with_exec(op)) return Role::kCopied;
  if (op.flags & kCopies) return op.dpp && i == 0 ? Role::kDppSource : Role::kCopied;
  return op.dpp && i == 0 ? Role::kDppSource : Role::kData;
}

// Packed f32 reads only the dwords that op_sel and op_sel_hi choose.
void read_packed(StrictOp& s, const MicroOp& op, unsigned i, Role role) {
  const unsigned lo = (op.op_sel >> i) & 1, hi = (op.op_sel_hi >> i) & 1;
  RegisterUse use = use_of(op.src[i], role);
  use.first = static_cast<std::uint16_t>(use.first + (lo < hi ? lo : hi));
  use.count = lo == hi ? 1 : 2;
  s.read(use);
}
// v_pk_mov_b32 reads one dword of each source.
bool is_packed_move(const MicroOp& op) { return (op.flags & kPacked) && (op.flags & kCopies); }

void lds_access(StrictOp& s, const MicroOp& op) {
  const std::string_view name = op.row->mnemonic;
  if (name.find("permute") != std::string_view::npos || name == "ds_swizzle_b32" || name == "ds_nop") return;
  s.lds_write = (op.flags & kStore) && !(op.flags & kAtomic);
  s.lds_atomic = op.flags & kAtomic;
  const bool two = name.starts_with("ds_read2") || name.starts_with("ds_write2") || name.starts_with("ds_wrxchg2");
  if (two) {
    s.lds_chunks = 2;
    s.lds_bytes = name.ends_with("b64") ? 8 : 4;
    s.lds_align = s.lds_bytes;
    s.lds_offset = {op.imm * static_cast<std::int32_t>(op.arg), op.imm2 * static_cast<std::int32_t>(op.arg)};
    return;
  }
  s.lds_chunks = 1;
  // Sub-dword forms carry flags above the byte count (lds.cpp); the others are 4 to 16 bytes.
  const u8 low = static_cast<u8>(op.arg & 0xf);
  s.lds_bytes = op.arg == 16 ? 16 : low;
  s.lds_align = s.lds_bytes == 12 ? 4 : s.lds_bytes;
  s.lds_offset = {op.imm, 0};
}

// D may be C exactly; it must not lie over A or B, nor over a part of C (gfx950-isa.md 1.2).
const char* overlapping_operand(const MicroOp& op) {
  const auto meets = [&](const Operand& o) {
    return o.kind == OperandKind::kVgpr && o.index < op.dst.index + op.dst.count && op.dst.index < o.index + o.count;
  };
  if (meets(op.src[0])) return "A";
  if (meets(op.src[1])) return "B";
  if ((op.flags & kSparse) || !meets(op.src[2])) return nullptr;
  return op.src[2].index == op.dst.index && op.src[2].count == op.dst.count ? nullptr : "a part of C";
}

// FLAT instructions reach LDS with the lanes whose address lies in its aperture.
void flat_lds_access(StrictOp& s, const MicroOp& op) {
  s.lds_chunks = 1;
  s.lds_write = (op.flags & kStore) && !(op.flags & kAtomic);
  s.lds_atomic = op.flags & kAtomic;
  s.lds_bytes = static_cast<u8>(op.arg & kBytesMask);
  s.lds_align = s.lds_bytes < 4 ? s.lds_bytes : 4;
}

bool is_vector(IssueClass cls) {
  return is_valu(cls) || cls == IssueClass::kMatrix || cls == IssueClass::kLds || cls == IssueClass::kVmem;
}

bool reads_special(const MicroOp& op, SpecialSource source) {
  for (unsigned i = 0; i < op.sources; ++i) {
    const Operand& o = op.src[i];
    if (o.kind == OperandKind::kSpecial && static_cast<SpecialSource>(o.index) == source) return true;
  }
  return false;
}

// imm2 of both: register | first bit << 6 | (bits - 1) << 11.
void hardware_registers(StrictOp& s, const MicroOp& op) {
  constexpr int kMode = 1, kVskipBit = 28;
  const std::string_view name = op.row->mnemonic;
  const auto id = static_cast<std::int8_t>(op.imm2 & 63);
  if (name == "s_getreg_b32") s.hwreg_read = id;
  s.is_setvskip = name == "s_setvskip";
  if (!name.starts_with("s_setreg_")) return;
  s.hwreg_write = id;
  const int first = (op.imm2 >> 6) & 31, last = first + ((op.imm2 >> 11) & 31);
  s.writes_vskip = id == kMode && first <= kVskipBit && kVskipBit <= last;
}

// 4.4: direct-to-LDS loads, s_sendmsg, s_movrel and LDS accesses at an address by thread number.
bool needs_m0_early(const MicroOp& op) {
  const std::string_view name = op.row->mnemonic;
  return (op.lds && (op.flags & kReadsM0)) || name.starts_with("s_sendmsg") || name.starts_with("s_movrel") ||
         (op.unit == Unit::kLds && name.find("addtid") != std::string_view::npos);
}

bool is_f64_fma(std::string_view name) { return name.starts_with("v_fma_f64") || name.starts_with("v_fmac_f64"); }

// 3.2: bytes and shorts by their size, dwords and wider by 4, atomics by what they update. Scratch has no such rule,
// and typed accesses depend on their descriptor.
u8 memory_align(const MicroOp& op) {
  const std::string_view name = op.row->mnemonic;
  const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (op.unit == Unit::kSmem) return has("load") ? 4 : 0;
  if (op.unit != Unit::kVmem || (op.flags & kScratch) || has("format")) return 0;
  if (!(op.flags & (kLoad | kStore | kAtomic)) && !op.lds) return 0;
  if (op.flags & kAtomic) return has("_x2") || has("_f64") ? 8 : 4;
  return has("byte") ? 1 : has("short") ? 2 : 4;
}

StrictOp describe(const MicroOp& op) {
  StrictOp s;
  s.cls = classify(op);
  s.all_lanes = op.flags & kIgnoresExec;
  s.copies = op.flags & kCopies;
  s.keeps_part = op.flags & kPartialWrite;
  // Conversions that write one byte of the destination; op_sel bits 3:2 name it. The stochastic ones need the wait
  // state for any byte (LLVM's hazard recogniser).
  const std::string_view name = op.row->mnemonic;
  const bool to_byte = name.ends_with("_f32") || name.ends_with("_f16") || name.ends_with("_bf16");
  const bool byte =
      to_byte && (name.starts_with("v_cvt_sr_fp8") || name.starts_with("v_cvt_sr_bf8") ||
                  name.starts_with("v_cvt_scalef32_sr_fp8") || name.starts_with("v_cvt_scalef32_sr_bf8") ||
                  name.find("_pk_fp4_") != std::string_view::npos);
  const bool stochastic = name.starts_with("v_cvt_sr_") || (byte && name.find("_sr_") != std::string_view::npos);
  const u8 high = byte ? 0xc : 0x8;
  s.half_select = stochastic || ((op.flags & kOpSel) && (op.op_sel & high)) || (op.sdwa && op.dst_sel != Sel::kDword);
  s.keeps_part |= op.sdwa && op.dst_unused == Unused::kPreserve;
  s.reads_scc = op.flags & kReadsScc;
  s.writes_scc = op.flags & kWritesScc;
  s.writes_exec = op.flags & kWritesExec;
  s.needs_m0_early = needs_m0_early(op);
  s.reads_vccz = is_valu(s.cls) && reads_special(op, SpecialSource::kVccz);
  s.reads_execz = is_valu(s.cls) && reads_special(op, SpecialSource::kExecz);
  s.any_vector = is_vector(s.cls);
  s.is_f64_fma = is_valu(s.cls) && is_f64_fma(name);
  s.state_rules =
      s.cls == IssueClass::kMatrix || s.needs_m0_early || (op.flags & kAllLanesNeeded) || s.reads_vccz || s.is_f64_fma;
  hardware_registers(s, op);
  // s_movrels and s_movreld name a register that M0 moves; s_set_gpr_idx_* write fields of M0.
  const bool relative_source = name.starts_with("s_movrels_"), relative_destination = name.starts_with("s_movreld_");
  if (name.starts_with("s_set_gpr_idx_") && name != "s_set_gpr_idx_off") s.write({false, false, Role::kData, kM0, 1});
  s.writes_any_scalar = relative_destination;

  for (unsigned i = 0; i < op.sources; ++i) {
    const Operand& o = op.src[i];
    if (!is_register(o) || relative_source) continue;
    const Role role = source_role(op, i);
    if (is_packed_move(op)) {
      RegisterUse use = use_of(o, role);
      use.first = static_cast<std::uint16_t>(use.first + ((op.op_sel >> i) & 1));
      use.count = 1;
      s.read(use);
    } else if ((op.flags & kWideAddend) && i == 2) {
      RegisterUse low = use_of(o, role), high = low;
      low.count = high.count = 1;
      high.first = static_cast<std::uint16_t>(high.first + 1);
      high.role = Role::kCopied;
      s.read(low);
      s.read(high);
    } else if (o.type == 'p' && o.count == 2 && (op.flags & kPacked)) {
      read_packed(s, op, i, role);
    } else {
      s.read(use_of(o, role));
    }
  }
  if (op.flags & kTied)
    s.read(use_of(op.dst, op.unit == Unit::kMfma ? Role::kMatrixC : op.flags & kDot ? Role::kDotC : Role::kData));
  if (op.flags & kReadsVcc) s.read({false, false, Role::kCarry, kVccLo, 2});
  if (is_register(op.dst) && !relative_destination) s.write(use_of(op.dst, Role::kData));
  if (is_register(op.dst2)) s.write(use_of(op.dst2, Role::kData));
  // Both operands of a swap are destinations.
  if (op.flags & kLaneSwap) {
    s.read(use_of(op.dst, Role::kCopied));
    s.reads[0].role = Role::kCopied;
    s.write(use_of(op.src[0], Role::kData));
  }
  if (op.unit == Unit::kMfma) {
    s.passes = static_cast<u8>(op.arg >> 24);
    s.matrix = op.flags & kDgemm ? MatrixKind::kDgemm : op.flags & kSgemm ? MatrixKind::kSgemm : MatrixKind::kXdl;
  }
  if (op.unit == Unit::kMfma) s.overlap = overlapping_operand(op);
  s.ends = std::string_view(op.row->mnemonic) == "s_endpgm";
  if (op.unit == Unit::kLds) lds_access(s, op);
  if ((op.flags & kFlat) && (op.flags & (kLoad | kStore))) flat_lds_access(s, op);
  s.memory_align = memory_align(op);
  if (op.unit == Unit::kVmem && (op.flags & kStore) && !(op.flags & kAtomic)) {
    const Operand& data = op.src[data_source(op)];
    // A buffer store with an SGPR offset is safe (gfx950-isa.md 4.4).
    const bool safe = (op.flags & kBuffer) && op.src[op.sources - 1].kind == OperandKind::kSgpr;
    if (data.count >= 3 && !safe) s.wide_store = data.count;
  }
  return s;
}

}  // namespace

StrictOp describe_strict(const MicroOp& op) { return describe(op); }

StrictTable make_strict_table(const Program& program) {
  StrictTable table(program.ops.size());
  for (std::size_t i = 0; i < table.size(); ++i)
    if (program.ops[i].row != nullptr) table[i] = describe(program.ops[i]);
  return table;
}

}  // namespace zyfa::sim
