// Every ALU instruction of the tables assembles with operands made from its signature and runs, in plain and in strict
// mode: no row without a handler, none that strict mode misreads when all registers are defined.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

#include "runtime/sim/exec/rows.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using sim::OpRow;
using sim::Unit;

// Registers of each operand: 32 of them from v64 on for destinations, sources below.
struct Writer {
  unsigned vector = 10;
  bool scalar_used = false;  // a VALU instruction reads one SGPR at most
  std::string tuple(unsigned count) {
    const std::string text = fmt::format("v[{}:{}]", vector, vector + count - 1);
    vector += count;
    return text;
  }
};

// Tuple sizes of the conversions with 32 elements.
unsigned tuple_size(std::string_view name, bool destination) {
  if (name == "v_mqsad_u32_u8") return 4;
  if (name.find("2xpk16") != std::string_view::npos) return destination ? 6 : 16;
  const bool narrow = name.ends_with("fp6") || name.ends_with("bf6");  // the source is narrow
  const bool f32 = name.find("_f32_") != std::string_view::npos ? narrow : name.ends_with("_f32");
  const unsigned wide = f32 ? 32 : 16;
  return destination == narrow ? wide : 6;
}

std::string operand(char type, bool destination, bool salu, std::string_view name, Writer& w) {
  switch (type) {
    case 'd':
    case 'l':
    case 'p':
      return w.tuple(2);
    case 't':
      return w.tuple(tuple_size(name, destination));
    case 'm':
      return "vcc";
    case 's':
      if (salu) return destination ? "s40" : "s41";
      return destination ? "s40" : std::exchange(w.scalar_used, true) ? "3" : "s41";
    case 'S':
      return destination ? "s[42:43]" : "s[44:45]";
    case 'k':
      return "1";
    default:
      return fmt::format("v{}", w.vector++);
  }
}

std::string instruction(const OpRow& row) {
  const std::string_view name = row.mnemonic, signature = row.signature;
  Writer w;
  std::string text(name);
  const auto equals = signature.find('=');
  bool first = true;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    if (signature[i] == '=' || signature[i] == ',') continue;
    const bool destination = i < equals, salu = row.unit == Unit::kSalu;
    // Tuples of 64 bits and more start at even registers.
    w.vector = (w.vector + 1) & ~1u;
    text += (first ? " " : ", ") + operand(signature[i], destination, salu, name, w);
    first = false;
  }
  if (name.starts_with("v_bitop3_")) text += " bitop3:0x96";
  return text;
}

// Instructions whose operands do not follow from the signature, or that cannot run in a list.
const std::map<std::string_view, std::string_view> kByHand{
    {"v_accvgpr_read_b32", "v_accvgpr_read_b32 v10, a2"},
    {"v_accvgpr_write_b32", "v_accvgpr_write_b32 a2, v10"},
    {"v_accvgpr_mov_b32", "v_accvgpr_mov_b32 a2, a3"},
    {"v_div_scale_f32", "v_div_scale_f32 v10, vcc, v12, v12, v14"},
    {"v_div_scale_f64", "v_div_scale_f64 v[10:11], vcc, v[12:13], v[12:13], v[14:15]"},
    {"v_fmaak_f32", "v_fmaak_f32 v10, v11, v12, 0x40490fdb"},
    {"v_fmamk_f32", "v_fmamk_f32 v10, v11, 0x40490fdb, v12"},
    {"v_madak_f16", "v_madak_f16 v10, v11, v12, 0x4249"},
    {"v_madmk_f16", "v_madmk_f16 v10, v11, 0x4249, v12"},
    {"v_writelane_b32", "v_writelane_b32 v10, s41, 3"},
    {"s_getreg_b32", "s_getreg_b32 s40, hwreg(HW_REG_MODE)"},
    {"s_setreg_b32", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s46"},
    {"s_setreg_imm32_b32", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0"},
    {"s_sendmsg", "s_sendmsg sendmsg(MSG_INTERRUPT)"},
    {"s_sethalt", "s_sethalt 0"},
    {"s_setvskip", "s_setvskip 0, 0"},
    {"s_set_gpr_idx_on", "s_set_gpr_idx_on 0, gpr_idx(SRC0)"},
    {"s_set_gpr_idx_mode", "s_set_gpr_idx_mode gpr_idx(SRC0)\ns_set_gpr_idx_off"},
    {"s_movreld_b32", "s_mov_b32 m0, 0\ns_nop 0\ns_movreld_b32 s40, s41"},
    {"s_movreld_b64", "s_mov_b32 m0, 0\ns_nop 0\ns_movreld_b64 s[42:43], s[44:45]"},
    {"s_movrels_b32", "s_mov_b32 m0, 0\ns_nop 0\ns_movrels_b32 s40, s41"},
    {"s_movrels_b64", "s_mov_b32 m0, 0\ns_nop 0\ns_movrels_b64 s[42:43], s[44:45]"},
    {"s_waitcnt", "s_waitcnt vmcnt(0)"},
    {"s_swappc_b64", ""},
    {"s_setpc_b64", ""},
    {"s_getpc_b64", "s_getpc_b64 s[42:43]"},
    {"s_call_b64", ""},
    {"s_endpgm", ""},
    {"s_trap", ""},
};

TEST(Smoke, EveryAluInstructionRuns) {
  std::string code;
  for (unsigned r = 0; r < 4; ++r) code += fmt::format("v_accvgpr_write_b32 a{}, v0\n", r);
  for (unsigned r = 10; r < 110; ++r) code += fmt::format("v_cvt_f32_u32 v{}, v0\n", r);
  for (unsigned s = 40; s < 48; ++s) code += fmt::format("s_mov_b32 s{}, {}\n", s, s - 46 == 0 ? 0 : 3);
  code += "s_mov_b64 vcc, -1\ns_mov_b32 m0, 0\ns_cmp_eq_u32 s40, s40\n";
  unsigned count = 0;
  std::set<std::string_view> seen;
  const auto add = [&](const OpRow& row) {
    const bool alu =
        row.unit == Unit::kValu || row.unit == Unit::kTrans || row.unit == Unit::kSalu || row.unit == Unit::kOther;
    if (!alu || !seen.insert(row.mnemonic).second) return;
    const auto by_hand = kByHand.find(row.mnemonic);
    const std::string text = by_hand == kByHand.end() ? instruction(row) : std::string(by_hand->second);
    if (text.empty()) return;
    ++count;
    // Wait states for whatever follows, and EXEC as it was.
    code += text + "\ns_nop 7\ns_mov_b64 exec, -1\ns_nop 7\n";
  };
  const auto table = [&](const sim::RowTable& t) {
    for (std::size_t i = 0; i < t.count; ++i) add(t.rows[i]);
  };
  for (const sim::RowTable& t : sim::vector_tables().tables) table(t);
  table(sim::scalar_rows());
  table(sim::control_rows());
  EXPECT_GT(count, 700u);
  for (const SimChecks checks : {SimChecks::kPlain, SimChecks::kStrict}) {
    const auto device = make_device(checks);
    const Bytes object = assemble_kernel(code, {.vgprs = 112, .agprs = 4});
    ASSERT_FALSE(object.empty());
    check(run(*device, object, "k", {}, Args()));
    for (const SimFinding& f : device->last_findings()) ADD_FAILURE() << f.instruction << ": " << f.message;
  }
}

}  // namespace
}  // namespace zyfa::sim_test
