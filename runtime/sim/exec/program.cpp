// Decoding of a kernel: walk from the entry, look each instruction up, refuse what is not known (program.h).
#include "runtime/sim/exec/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "jit/llvm/assembler.h"
#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/matrix_decode.h"
#include "runtime/sim/exec/operand_decode.h"
#include "runtime/sim/exec/rows.h"

namespace zyfa::sim {
namespace {

using RowMap = std::unordered_multimap<std::string_view, const OpRow*>;

template <typename F>
void for_each_row(F&& use) {
  const auto table = [&](const RowTable& t) {
    for (std::size_t i = 0; i < t.count; ++i) use(t.rows[i]);
  };
  for (const RowTable& t : vector_tables().tables) table(t);
  table(scalar_rows());
  table(control_rows());
  table(scalar_memory_rows());
  table(scalar_store_rows());
  table(lds_rows());
  table(lds_atomic_rows());
  table(lane_permute_rows());
  table(vector_memory_rows());
  table(vector_atomic_rows());
  table(typed_buffer_rows());
}

const RowMap& rows_by_mnemonic() {
  static const RowMap map = [] {
    RowMap m;
    for_each_row([&](const OpRow& row) { m.emplace(row.mnemonic, &row); });
    return m;
  }();
  return map;
}

std::size_t operand_count(const OpRow& row) {
  const std::string_view s = row.signature;
  return s.size() - 1 - static_cast<std::size_t>(std::count(s.begin(), s.end(), ','));
}

// Instructions that are refused by name, and why. Everything else without a row is refused as unknown.
struct RefusedName {
  std::string_view mnemonic, reason;
};
constexpr std::array kRefused{
    RefusedName{"v_screen_partition_4se_b32", "AMD publishes no semantics for it"},
    RefusedName{"v_mfma_ld_scale_b32", "a scale load without the MFMA that it belongs to"},
    RefusedName{"v_clrexcp", "exceptions are not simulated"},
    RefusedName{"s_cbranch_g_fork", "the fork and join stack of MODE.csp is not simulated"},
    RefusedName{"s_cbranch_i_fork", "the fork and join stack of MODE.csp is not simulated"},
    RefusedName{"s_cbranch_join", "the fork and join stack of MODE.csp is not simulated"},
    RefusedName{"s_rfe_b64", "belongs to a trap handler"},
    RefusedName{"s_rfe_restore_b64", "belongs to a trap handler"},
    RefusedName{"s_sendmsghalt", "halts the wave until the host resumes it"},
    RefusedName{"s_endpgm_saved", "belongs to a trap handler"},
    RefusedName{"s_endpgm_ordered_ps_done", "belongs to pixel shaders"},
    RefusedName{"s_atc_probe", "address translation probes are not in the CDNA4 guide"},
    RefusedName{"s_atc_probe_buffer", "address translation probes are not in the CDNA4 guide"},
    RefusedName{"ds_gws_init", "global wave sync is not in the CDNA4 guide"},
    RefusedName{"ds_gws_barrier", "global wave sync is not in the CDNA4 guide"},
    RefusedName{"ds_gws_sema_br", "global wave sync is not in the CDNA4 guide"},
    RefusedName{"ds_gws_sema_v", "global wave sync is not in the CDNA4 guide"},
    RefusedName{"ds_gws_sema_p", "global wave sync is not in the CDNA4 guide"},
    RefusedName{"ds_gws_sema_release_all", "global wave sync is not in the CDNA4 guide"},
};

std::string unknown_instruction(std::string_view mnemonic) {
  for (const RefusedName& r : kRefused)
    if (r.mnemonic == mnemonic) return fmt::format("not simulated: {}", r.reason);
  return "instruction not known to the simulator";
}

// Operand values under which a known instruction is refused.
Refusal check_values(const InstText& inst, const MicroOp& op) {
  if (inst.mnemonic == "s_sethalt" && (op.src[0].lo & 1)) return "halts the wave until the host resumes it";
  if (inst.mnemonic == "s_sendmsg" && inst.operands.at(0).text != "sendmsg(MSG_INTERRUPT)")
    return "only the message MSG_INTERRUPT, which the wave does not see an effect of, is simulated";
  if (inst.mnemonic == "s_getreg_b32") {
    const int id = op.imm2 & 63;
    if (id != 1 && id != 2 && id != 3 && id != 4 && id != 5 && id != 20)
      return "of the hardware registers only MODE, STATUS, TRAPSTS, HW_ID, GPR_ALLOC and XCC_ID can be read";
  }
  return {};
}

// LLVM decodes VOP3 forms of 16-bit instructions whose op_sel field it neither prints nor assembles; hardware of this
// family has the field on all of them, so its meaning is not guessed.
Refusal check_unprinted(std::span<const std::byte> bytes, const jit::Decoded& d, const MicroOp& op) {
  constexpr std::uint32_t kVop3 = 0x34, kVop3p = 0x1a7, kOpSelBits = 0x7800;
  if ((op.unit != Unit::kValu && op.unit != Unit::kTrans) || d.size < 8) return {};
  if ((op.flags & (kOpSel | kPacked | kLaneSwap)) || op.dst.type == 'm' || op.dst2.kind != OperandKind::kNone)
    return {};
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + d.offset, sizeof(word));
  if (word >> 26 != kVop3 || word >> 23 == kVop3p || (word & kOpSelBits) == 0) return {};
  const std::string_view name = op.row->mnemonic;
  for (const std::string_view type : {"_f16", "_i16", "_u16", "_b16", "_fp8", "_bf8"})
    if (name.find(type) != std::string_view::npos) return "op_sel bits in a form for which LLVM prints none";
  return {};
}

// Rows of one mnemonic differ in the number of operands (loads to registers and to LDS, atomics with a result).
const OpRow* find_row(const InstText& inst) {
  const auto [first, last] = rows_by_mnemonic().equal_range(inst.mnemonic);
  for (auto it = first; it != last; ++it)
    if (operand_count(*it->second) == inst.operands.size()) return it->second;
  return first == last ? nullptr : first->second;
}

// Floats round, and a result shows what came before; sums, extremes and bits of integers alone do not.
bool depends_on_order(const MicroOp& op) {
  if (op.returns || op.dst.kind != OperandKind::kNone) return true;
  const std::string_view name = op.row->mnemonic;
  for (const std::string_view part : {"_f16", "_bf16", "_f32", "_f64", "swap", "_inc", "_dec"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

// A load into half of a register leaves the other half alone.
std::uint32_t written_bits(std::string_view mnemonic) {
  if (mnemonic.find("d16_hi") != std::string_view::npos) return 0xffff0000u;
  return mnemonic.ends_with("_d16") || mnemonic.ends_with("_d16_x") ? 0x0000ffffu : ~0u;
}

Refusal decode_one(const jit::Decoded& d, const RegisterFile& registers, std::deque<DppControl>& dpp, MicroOp& op) {
  const auto inst = parse_instruction(d.text);
  if (!d.valid || !inst) return "bytes that decode to no gfx950 instruction";
  op.row = find_row(*inst);
  if (op.row == nullptr) return unknown_instruction(inst->mnemonic);
  op.unit = op.row->unit;
  op.flags = op.row->flags;
  op.arg = op.row->arg;
  if (Refusal refusal = decode_operands(*inst, registers, op); !refusal.empty()) return refusal;
  if (Refusal refusal = decode_modifiers(*inst, dpp, op); !refusal.empty()) return refusal;
  if (Refusal refusal = check_values(*inst, op); !refusal.empty()) return refusal;
  op.run = op.row->run;
  if ((op.flags & kLoad) && (op.flags & kPartialWrite)) op.dst_bits = written_bits(inst->mnemonic);
  if (op.unit == Unit::kMfma) {
    if (Refusal refusal = finish_matrix(*inst, op); !refusal.empty()) return refusal;
  }
  if (inst->mnemonic == "s_nop") op.nop_states = static_cast<std::uint8_t>((op.src[0].lo & 15) + 1);
  if (inst->mnemonic.find("_load_lds_") != std::string::npos) op.lds = true;
  if (op.lds !=
      (op.dst.kind == OperandKind::kNone && (op.flags & kLoad) && (op.flags & (kBuffer | kGlobal | kScratch))))
    return "the lds modifier on this instruction";
  // An atomic with a result: the rows of buffer and scalar atomics name the register as data only. Of the two values
  // of a compare-and-swap the first is overwritten.
  if ((op.flags & kAtomic) && (op.unit == Unit::kVmem || op.unit == Unit::kSmem)) {
    const bool named = op.unit == Unit::kVmem && !(op.flags & kBuffer);
    if (named) op.returns = op.dst.kind != OperandKind::kNone;
    if (op.returns && !named) {
      op.dst = op.src[0];
      op.dst.count = static_cast<std::uint8_t>(op.arg / 4);
    }
    if (op.returns) op.flags |= kLoad;
  } else {
    op.returns = false;
  }
  return {};
}

// A jump to an instruction that the pre-scan did not reach.
void unreached(Wave& w, const MicroOp& op) {
  raise_fault(w, op, 0, "execution reached an instruction that the pre-scan did not find or does not support");
}

struct Scan {
  const std::vector<jit::Decoded>& code;
  std::span<const std::byte> bytes;
  Program& program;
  std::vector<std::string> refusals;
  bool indirect = false;

  void decode(std::uint32_t index, bool required);
  void walk();
};

void Scan::decode(std::uint32_t index, bool required) {
  const jit::Decoded& d = code[index];
  MicroOp op;
  op.offset = static_cast<std::uint32_t>(d.offset);
  op.size = d.size;
  Refusal refusal = decode_one(d, program.registers, program.dpp, op);
  if (refusal.empty()) refusal = check_unprinted(bytes, d, op);
  if (!refusal.empty()) {
    if (required) refusals.push_back(fmt::format("+0x{:x}: {}: {}", d.offset - program.entry_offset, d.text, refusal));
    return;
  }
  // The printed form of a rotating swizzle leaves its mask out: the pattern is the low half of the first dword.
  if (std::string_view(op.row->mnemonic) == "ds_swizzle_b32")
    op.imm = std::to_integer<int>(bytes[d.offset]) | std::to_integer<int>(bytes[d.offset + 1]) << 8;
  if (op.unit == Unit::kBranch) {
    const bool to_register = std::string_view(op.row->signature).find("=S") != std::string_view::npos;
    indirect |= to_register;
    if (!to_register) {
      // The disassembler knows the targets of branches, not that of a call: simm16 dwords from the next instruction.
      const std::int64_t from_next = 4 * static_cast<std::int16_t>(op.src[0].lo);
      const std::int64_t to = op.dst.kind == OperandKind::kSgpr
                                  ? static_cast<std::int64_t>(d.offset) + d.size + from_next
                                  : d.branch_target;
      const auto target = static_cast<std::uint64_t>(to);
      if (to < 0 || target / 4 >= program.op_at.size() || target % 4 != 0 ||
          program.op_at[target / 4] == Program::kNoOp) {
        refusals.push_back(fmt::format("+0x{:x}: {}: branches to no instruction of this section",
                                       d.offset - program.entry_offset, d.text));
        return;
      }
      op.target = program.op_at[target / 4];
    }
  }
  program.ordered_atomics |= (op.flags & kAtomic) && op.unit != Unit::kLds && depends_on_order(op);
  program.ops[index] = op;
}

void Scan::walk() {
  std::vector<bool> seen(code.size(), false);
  std::vector<std::uint32_t> work{program.entry};
  const auto push = [&](std::uint32_t index, const jit::Decoded& from) {
    if (index >= code.size()) {
      refusals.push_back(fmt::format("+0x{:x}: {}: execution runs past the end of the section",
                                     from.offset - program.entry_offset, from.text));
    } else if (!seen[index]) {
      seen[index] = true;
      work.push_back(index);
    }
  };
  seen[program.entry] = true;
  while (!work.empty()) {
    const std::uint32_t index = work.back();
    work.pop_back();
    decode(index, true);
    const MicroOp& op = program.ops[index];
    if (op.row == nullptr || refusals.size() > 32) continue;
    const std::string_view mnemonic = op.row->mnemonic;
    if (mnemonic == "s_endpgm" || mnemonic == "s_setpc_b64" || mnemonic == "s_trap") continue;
    if (op.unit == Unit::kBranch && mnemonic != "s_swappc_b64") push(op.target, code[index]);
    if (mnemonic != "s_branch") push(index + 1, code[index]);
  }
  // Jumps through registers may land anywhere: decode the rest too, and refuse only what is executed.
  if (indirect) {
    for (std::uint32_t i = 0; i < code.size(); ++i)
      if (!seen[i]) decode(i, false);
  }
}

}  // namespace

std::vector<VectorTables> runnable_vector_tables() {
#define ZYFA_TABLES(isa)                                                                                          \
  VectorTables {                                                                                                  \
    #isa, {                                                                                                       \
      isa::float_rows(), isa::half_rows(), isa::double_rows(), isa::integer_rows(), isa::convert_rows(),          \
          isa::compare_rows(), isa::cross_rows(), isa::int16_rows(), isa::misc_rows(), isa::scale_rows(),         \
          isa::dense_matrix_rows(), isa::scaled_matrix_rows(), isa::block_matrix_rows(), isa::int8_matrix_rows(), \
          isa::sparse_matrix_rows(), isa::double_matrix_rows()                                                    \
    }                                                                                                             \
  }
  std::vector<VectorTables> runnable;
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (has_avx512) runnable.push_back(ZYFA_TABLES(avx512));
  if (has_avx2) runnable.push_back(ZYFA_TABLES(avx2));
#endif
  runnable.push_back(ZYFA_TABLES(baseline));
#undef ZYFA_TABLES
  return runnable;
}

const VectorTables& vector_tables() {
  static const VectorTables chosen = [] {
    const std::vector<VectorTables> runnable = runnable_vector_tables();
    const char* wanted = std::getenv("ZYFA_SIM_ISA");
    for (const VectorTables& t : runnable)
      if (wanted != nullptr && std::string_view(wanted) == t.name) return t;
    return runnable.front();
  }();
  return chosen;
}

Expected<Program> decode_program(std::span<const std::byte> text, std::uint64_t entry, const RegisterFile& registers) {
  if (entry >= text.size() || entry % 4 != 0) {
    return make_error(
        ErrorCode::kCorruptData,
        fmt::format("the kernel's entry 0x{:x} lies outside of the {} bytes of code", entry, text.size()));
  }
  auto decoded = jit::disassemble(text);
  if (!decoded) return tl::unexpected(decoded.error());
  auto at = std::lower_bound(decoded->begin(), decoded->end(), entry,
                             [](const jit::Decoded& d, std::uint64_t offset) { return d.offset < offset; });
  if (at == decoded->end() || at->offset != entry) {
    // Data before the entry made the linear decoder lose step: decode from the entry alone.
    decoded = jit::disassemble(text.subspan(entry));
    if (!decoded) return tl::unexpected(decoded.error());
    for (jit::Decoded& d : *decoded) {
      d.offset += entry;
      if (d.branch_target >= 0) d.branch_target += static_cast<std::int64_t>(entry);
    }
    at = decoded->begin();
    if (at == decoded->end()) return make_error(ErrorCode::kCorruptData, "the kernel has no instruction");
  }

  Program program;
  program.registers = registers;
  program.entry_offset = entry;
  program.entry = static_cast<std::uint32_t>(at - decoded->begin());
  program.text_bytes = text.size();
  program.op_at.assign(text.size() / 4 + 1, Program::kNoOp);
  program.ops.resize(decoded->size());
  program.text.reserve(decoded->size());
  for (std::uint32_t i = 0; i < decoded->size(); ++i) {
    const jit::Decoded& d = (*decoded)[i];
    if (d.offset % 4 == 0 && d.offset / 4 < program.op_at.size()) program.op_at[d.offset / 4] = i;
    program.ops[i].run = &unreached;
    program.ops[i].offset = static_cast<std::uint32_t>(d.offset);
    program.ops[i].size = d.size;
    program.text.push_back(d.text);
  }
  Scan scan{*decoded, text, program, {}};
  scan.walk();
  if (!scan.refusals.empty()) {
    const std::string first = scan.refusals.front();
    return make_error(ErrorCode::kUnsupported, fmt::format("the simulator does not support {}", first),
                      std::move(scan.refusals));
  }
  return program;
}

std::vector<std::string> known_mnemonics() {
  std::vector<std::string> names;
  for_each_row([&](const OpRow& row) { names.emplace_back(row.mnemonic); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace zyfa::sim
