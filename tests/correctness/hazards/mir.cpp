// Assembly to LLVM machine IR by templates, one for each mnemonic of the hazard table (mir.h).
#include "tests/correctness/hazards/mir.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>

namespace zyfa::hazards {
namespace {

// Key: mnemonic, and those modifiers that choose another template. {n}: operand n; {cd}: the opcode suffix of an MFMA
// whose C and D are VGPRs. An operand "off" counts.
const std::map<std::string, std::string, std::less<>> kTemplates = {
    {"v_mov_b32", "{0} = V_MOV_B32_e32 {1}, implicit $exec"},
    {"v_mov_b32_dpp", "{0} = V_MOV_B32_dpp {0}, {1}, 0, 15, 15, 0, implicit $exec"},
    {"v_add_f32_dpp", "{0} = V_ADD_F32_dpp {0}, 0, {1}, 0, {2}, 0, 15, 15, 0, implicit $mode, implicit $exec"},
    {"v_add_u16_sdwa", "{0} = V_ADD_U16_sdwa 0, {1}, 0, {2}, 0, 6, 0, 4, 4, implicit $exec"},
    {"v_add_u16_sdwa dst_sel:WORD_0",
     "{0} = V_ADD_U16_sdwa 0, {1}, 0, {2}, 0, 4, 2, 4, 4, implicit $exec, implicit {0}(tied-def 0)"},
    {"v_add_u16_sdwa dst_sel:WORD_1",
     "{0} = V_ADD_U16_sdwa 0, {1}, 0, {2}, 0, 5, 2, 4, 4, implicit $exec, implicit {0}(tied-def 0)"},
    {"v_exp_f32", "{0} = V_EXP_F32_e32 {1}, implicit $mode, implicit $exec"},
    {"v_log_f32", "{0} = V_LOG_F32_e32 {1}, implicit $mode, implicit $exec"},
    {"v_rcp_f32", "{0} = V_RCP_F32_e32 {1}, implicit $mode, implicit $exec"},
    {"v_rcp_f64", "{0} = V_RCP_F64_e32 {1}, implicit $mode, implicit $exec"},
    {"v_sqrt_f16", "{0} = V_SQRT_F16_e32 {1}, implicit $mode, implicit $exec"},
    {"v_add_f32", "{0} = V_ADD_F32_e32 {1}, {2}, implicit $mode, implicit $exec"},
    {"v_add_f64", "{0} = V_ADD_F64_e64 0, {1}, 0, {2}, 0, 0, implicit $mode, implicit $exec"},
    {"v_fma_f64", "{0} = V_FMA_F64_e64 0, {1}, 0, {2}, 0, {3}, 0, 0, implicit $mode, implicit $exec"},
    {"v_add_u32", "{0} = V_ADD_U32_e32 {1}, {2}, implicit $exec"},
    {"v_pk_mul_f32", "{0} = V_PK_MUL_F32 8, {1}, 8, {2}, 0, 0, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_pk_add_f32", "{0} = V_PK_ADD_F32 8, {1}, 8, {2}, 0, 0, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_cvt_pk_bf16_f32", "{0} = V_CVT_PK_BF16_F32_e64 0, {1}, 0, {2}, 0, 0, implicit $mode, implicit $exec"},
    {"v_cvt_pk_fp8_f32", "{0} = V_CVT_PK_FP8_F32_e64 0, {1}, 0, {2}, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_pk_fp8_f32 op_sel:[0,0,1]",
     "{0} = V_CVT_PK_FP8_F32_e64 8, {1}, 0, {2}, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_sr_fp8_f32", "{0} = V_CVT_SR_FP8_F32_e64 0, {1}, 0, {2}, 0, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_sr_fp8_f32 op_sel:[0,0,1,0]",
     "{0} = V_CVT_SR_FP8_F32_e64 0, {1}, 0, {2}, 4, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_sr_fp8_f32 op_sel:[0,0,0,1]",
     "{0} = V_CVT_SR_FP8_F32_e64 8, {1}, 0, {2}, 0, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_scalef32_pk_fp8_f32",
     "{0} = V_CVT_SCALEF32_PK_FP8_F32_e64 0, {1}, 0, {2}, 0, {3}, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_scalef32_pk_fp8_f32 op_sel:[0,0,0,1]",
     "{0} = V_CVT_SCALEF32_PK_FP8_F32_e64 8, {1}, 0, {2}, 0, {3}, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_scalef32_pk_fp4_f32 op_sel:[0,0,0,1]",
     "{0} = V_CVT_SCALEF32_PK_FP4_F32_e64 8, {1}, 0, {2}, 0, {3}, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_scalef32_pk_fp4_f32",
     "{0} = V_CVT_SCALEF32_PK_FP4_F32_e64 0, {1}, 0, {2}, 0, {3}, {0}, 0, implicit $mode, implicit $exec"},
    {"v_cvt_scalef32_sr_pk_fp4_f32",
     "early-clobber {0} = V_CVT_SCALEF32_SR_PK_FP4_F32_e64 0, {1}, 0, {2}, 0, {3}, {0}, 0, implicit $mode, implicit "
     "$exec"},
    {"v_cvt_scalef32_sr_fp8_f32",
     "early-clobber {0} = V_CVT_SCALEF32_SR_FP8_F32_e64 0, {1}, 0, {2}, 0, {3}, {0}, 0, implicit $mode, implicit "
     "$exec"},
    {"v_cmp_gt_f32", "V_CMP_GT_F32_e32 {1}, {2}, implicit-def $vcc, implicit $mode, implicit $exec"},
    {"v_cmp_eq_u32 vcc", "V_CMP_EQ_U32_e32 {1}, {2}, implicit-def $vcc, implicit $exec"},
    {"v_cmp_eq_u32", "{0} = V_CMP_EQ_U32_e64 {1}, {2}, implicit $exec"},
    {"v_cmpx_eq_u32", "V_CMPX_EQ_U32_e32 {1}, {2}, implicit-def $vcc, implicit-def $exec, implicit $exec"},
    {"v_cndmask_b32 vcc", "{0} = V_CNDMASK_B32_e32 {1}, {2}, implicit $vcc, implicit $exec"},
    {"v_cndmask_b32", "{0} = V_CNDMASK_B32_e64 0, {1}, 0, {2}, {3}, implicit $exec"},
    {"v_add_co_u32", "{0} = V_ADD_CO_U32_e32 {2}, {3}, implicit-def $vcc, implicit $exec"},
    {"v_addc_co_u32 vcc", "{0} = V_ADDC_U32_e32 {2}, {3}, implicit-def $vcc, implicit $vcc, implicit $exec"},
    {"v_addc_co_u32", "{0}, {1} = V_ADDC_U32_e64 {2}, {3}, {4}, 0, implicit $exec"},
    {"v_div_fmas_f32",
     "{0} = V_DIV_FMAS_F32_e64 0, {1}, 0, {2}, 0, {3}, 0, 0, implicit $mode, implicit $vcc, implicit $exec"},
    {"v_div_fmas_f64",
     "{0} = V_DIV_FMAS_F64_e64 0, {1}, 0, {2}, 0, {3}, 0, 0, implicit $mode, implicit $vcc, implicit $exec"},
    {"v_div_scale_f32", "{0}, {1} = V_DIV_SCALE_F32_e64 0, {2}, 0, {3}, 0, {4}, 0, 0, implicit $mode, implicit $exec"},
    {"v_dot2_f32_f16", "{0} = V_DOT2_F32_F16 8, {1}, 8, {2}, 8, {3}, 0, 0, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_dot4_i32_i8", "{0} = V_DOT4_I32_I8 8, {1}, 8, {2}, 8, {3}, 0, 0, 0, implicit $exec"},
    {"v_dot4c_i32_i8", "{0} = V_DOT4C_I32_I8_e32 {1}, {2}, {0}, implicit $exec"},
    {"v_permlane32_swap_b32", "{0}, {1} = V_PERMLANE32_SWAP_B32_e32 {0}, {1}, implicit $exec"},
    {"v_permlane16_swap_b32", "{0}, {1} = V_PERMLANE16_SWAP_B32_e32 {0}, {1}, implicit $exec"},
    {"v_readfirstlane_b32", "{0} = V_READFIRSTLANE_B32 {1}, implicit $exec"},
    {"v_readlane_b32", "{0} = V_READLANE_B32 {1}, {2}"},
    {"v_writelane_b32", "{0} = V_WRITELANE_B32 {1}, {2}, {0}"},
    {"v_accvgpr_read_b32", "{0} = V_ACCVGPR_READ_B32_e64 {1}, implicit $exec"},
    {"v_accvgpr_write_b32", "{0} = V_ACCVGPR_WRITE_B32_e64 {1}, implicit $exec"},
    // Matrix.
    {"v_mfma_f32_4x4x4_16b_f16",
     "{0} = V_MFMA_F32_4X4X4F16{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_16x16x32_bf16",
     "{0} = V_MFMA_F32_16X16X32_BF16{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_32x32x16_bf16",
     "{0} = V_MFMA_F32_32X32X16_BF16{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_32x32x4_2b_f16",
     "{0} = V_MFMA_F32_32X32X4F16{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_16x16x32_fp8_fp8",
     "{0} = V_MFMA_F32_16X16X32_FP8_FP8{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_i32_32x32x32_i8",
     "{0} = V_MFMA_I32_32X32X32_I8{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_32x32x64_f8f6f4",
     "{0} = V_MFMA_F32_32X32X64_F8F6F4_f8_f8{cd}_e64 {1}, {2}, {3}, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_32x32x64_f8f6f4 cbsz:4 blgp:4",
     "{0} = V_MFMA_F32_32X32X64_F8F6F4_f4_f4{cd}_e64 {1}, {2}, {3}, 4, 4, implicit $mode, implicit $exec"},
    {"v_mfma_f32_16x16x128_f8f6f4",
     "{0} = V_MFMA_F32_16X16X128_F8F6F4_f8_f8{cd}_e64 {1}, {2}, {3}, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_16x16x128_f8f6f4 cbsz:4 blgp:4",
     "{0} = V_MFMA_F32_16X16X128_F8F6F4_f4_f4{cd}_e64 {1}, {2}, {3}, 4, 4, implicit $mode, implicit $exec"},
    {"v_mfma_f32_16x16x128_f8f6f4 cbsz:2 blgp:2",
     "{0} = V_MFMA_F32_16X16X128_F8F6F4_f6_f6{cd}_e64 {1}, {2}, {3}, 2, 2, implicit $mode, implicit $exec"},
    {"v_mfma_f32_16x16x128_f8f6f4 blgp:4",
     "{0} = V_MFMA_F32_16X16X128_F8F6F4_f8_f4{cd}_e64 {1}, {2}, {3}, 0, 4, implicit $mode, implicit $exec"},
    {"v_mfma_scale_f32_32x32x64_f8f6f4",
     "{0} = V_MFMA_SCALE_F32_32X32X64_F8F6F4_f8_f8{cd}_e64 {1}, {2}, {3}, 0, 0, {4}, {5}, 0, 0, implicit $mode, "
     "implicit $exec"},
    {"v_smfmac_f32_16x16x128_fp8_fp8",
     "{0} = V_SMFMAC_F32_16X16X128_FP8_FP8_e64 {1}, {2}, {3}, 0, 0, {0}, implicit $mode, implicit $exec"},
    {"v_mfma_f32_32x32x2_f32",
     "{0} = V_MFMA_F32_32X32X2F32{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f32_16x16x4_f32",
     "{0} = V_MFMA_F32_16X16X4F32{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f64_16x16x4_f64",
     "{0} = V_MFMA_F64_16X16X4F64{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    {"v_mfma_f64_4x4x4_4b_f64",
     "{0} = V_MFMA_F64_4X4X4F64{cd}_e64 {1}, {2}, {3}, 0, 0, 0, implicit $mode, implicit $exec"},
    // Memory.
    {"ds_write_b32", "DS_WRITE_B32_gfx9 {0}, {1}, 0, 0, implicit $exec"},
    {"ds_write_b64", "DS_WRITE_B64_gfx9 {0}, {1}, 0, 0, implicit $exec"},
    {"ds_write_b128", "DS_WRITE_B128_gfx9 {0}, {1}, 0, 0, implicit $exec"},
    {"ds_read_b32", "{0} = DS_READ_B32_gfx9 {1}, 0, 0, implicit $exec"},
    {"ds_read_b128", "{0} = DS_READ_B128_gfx9 {1}, 0, 0, implicit $exec"},
    {"ds_read_addtid_b32", "{0} = DS_READ_ADDTID_B32 0, 0, implicit $m0, implicit $exec"},
    {"ds_write_addtid_b32", "DS_WRITE_ADDTID_B32 {0}, 0, 0, implicit $m0, implicit $exec"},
    {"global_store_dword", "GLOBAL_STORE_DWORD {0}, {1}, 0, 0, implicit $exec"},
    {"global_store_dwordx2", "GLOBAL_STORE_DWORDX2 {0}, {1}, 0, 0, implicit $exec"},
    {"global_store_dwordx3", "GLOBAL_STORE_DWORDX3 {0}, {1}, 0, 0, implicit $exec"},
    {"global_store_dwordx4", "GLOBAL_STORE_DWORDX4 {0}, {1}, 0, 0, implicit $exec"},
    {"flat_store_dwordx4", "FLAT_STORE_DWORDX4 {0}, {1}, 0, 0, implicit $exec, implicit $flat_scr"},
    {"global_load_dword off", "{0} = GLOBAL_LOAD_DWORD {1}, 0, 0, implicit $exec"},
    {"global_load_dword", "{0} = GLOBAL_LOAD_DWORD_SADDR {2}, {1}, 0, 0, implicit $exec"},
    {"buffer_load_dword offen", "{0} = BUFFER_LOAD_DWORD_OFFEN {1}, {2}, {3}, 0, 0, 0, implicit $exec"},
    {"buffer_load_dwordx4 offen", "{0} = BUFFER_LOAD_DWORDX4_OFFEN {1}, {2}, {3}, 0, 0, 0, implicit $exec"},
    {"buffer_store_dword offen", "BUFFER_STORE_DWORD_OFFEN_exact {0}, {1}, {2}, {3}, 0, 0, 0, implicit $exec"},
    {"buffer_store_dwordx3 offen", "BUFFER_STORE_DWORDX3_OFFEN_exact {0}, {1}, {2}, {3}, 0, 0, 0, implicit $exec"},
    {"buffer_store_dwordx4 offen", "BUFFER_STORE_DWORDX4_OFFEN_exact {0}, {1}, {2}, {3}, 0, 0, 0, implicit $exec"},
    {"buffer_load_dword offen lds", "BUFFER_LOAD_DWORD_LDS_OFFEN {0}, {1}, {2}, 0, 0, 0, implicit $exec, implicit $m0"},
    {"buffer_load_dwordx4 offen lds",
     "BUFFER_LOAD_DWORDX4_LDS_OFFEN {0}, {1}, {2}, 0, 0, 0, implicit $exec, implicit $m0"},
    {"global_load_lds_dwordx4", "GLOBAL_LOAD_LDS_DWORDX4 {0}, 0, 0, implicit $m0, implicit $exec"},
    {"s_load_dword", "{0} = S_LOAD_DWORD_IMM {1}, 0, 0"},
    // Scalar.
    {"s_mov_b32", "{0} = S_MOV_B32 {1}"},
    {"s_mov_b64", "{0} = S_MOV_B64 {1}"},
    {"s_add_u32", "{0} = S_ADD_U32 {1}, {2}, implicit-def $scc"},
    {"s_and_b64", "{0} = S_AND_B64 {1}, {2}, implicit-def $scc"},
    {"s_sendmsg", "S_SENDMSG 1, implicit $exec, implicit $m0"},
    {"s_movrels_b32", "{0} = S_MOVRELS_B32 {1}, implicit $m0"},
    {"s_movreld_b32", "S_MOVRELD_B32 {0}, {1}, implicit $m0"},
    // The immediate holds the register in its low six bits: MODE is 1, HW_ID 4.
    {"s_setreg_b32", "S_SETREG_B32 {1}, 6145, implicit-def $mode, implicit $mode"},
    {"s_setreg_imm32_b32", "S_SETREG_IMM32_B32 3, 2305, implicit-def $mode, implicit $mode"},
    {"s_getreg_b32", "{0} = S_GETREG_B32 63489, implicit $mode"},
    {"s_getreg_b32 hwreg(HW_REG_HW_ID)", "{0} = S_GETREG_B32 63492, implicit $mode"},
};

struct Parsed {
  std::string_view mnemonic;
  std::vector<std::string_view> operands;
  std::string_view modifiers;  // after the last operand
};

Parsed parse(std::string_view text) {
  Parsed p;
  const std::size_t space = text.find(' ');
  p.mnemonic = text.substr(0, space);
  if (space == std::string_view::npos) return p;
  text.remove_prefix(space + 1);
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '[' || text[i] == '(') - (text[i] == ']' || text[i] == ')');
    if (depth != 0 || (text[i] != ',' && text[i] != ' ')) continue;
    p.operands.push_back(text.substr(begin, i - begin));
    if (text[i] == ' ') {
      p.modifiers = text.substr(i + 1);
      return p;
    }
    while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
    begin = i + 1;
  }
  p.operands.push_back(text.substr(begin));
  return p;
}

bool parse_number(std::string_view text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// "v[0:1]" -> "$vgpr0_vgpr1"; names and numbers as they are.
std::string operand(std::string_view text) {
  const char* bank = text[0] == 'v' ? "vgpr" : text[0] == 's' ? "sgpr" : text[0] == 'a' ? "agpr" : nullptr;
  if (bank != nullptr && text.size() > 1) {
    unsigned first = 0, last = 0;
    if (parse_number(text.substr(1), first)) return "$" + std::string(bank) + std::to_string(first);
    const std::size_t colon = text.find(':');
    if (text[1] == '[' && colon != std::string_view::npos && parse_number(text.substr(2, colon - 2), first) &&
        parse_number(text.substr(colon + 1, text.size() - colon - 2), last)) {
      std::string name = "$";
      for (unsigned r = first; r <= last; ++r) {
        name += r == first ? "" : "_";
        name += bank + std::to_string(r);
      }
      return name;
    }
  }
  if (text == "vcc" || text == "vcc_lo" || text == "m0" || text == "exec" || text == "exec_lo" ||
      text.starts_with("src_")) {
    return "$" + std::string(text);
  }
  return std::string(text.substr(0, text == "0x0" ? 1 : std::string_view::npos));
}

// The template of the most particular key that fits.
const std::string& template_of(const Parsed& p, std::string_view whole) {
  const std::string* found = nullptr;
  std::size_t most = 0;
  for (const auto& [key, text] : kTemplates) {
    const Parsed k = parse(key);
    if (k.mnemonic != p.mnemonic) continue;
    bool fits = true;
    std::string_view rest = std::string_view(key).substr(k.mnemonic.size());
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::size_t end = rest.find(' ');
      fits &= whole.find(" " + std::string(rest.substr(0, end))) != std::string_view::npos;
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
    }
    if (fits && key.size() > most) {
      most = key.size();
      found = &text;
    }
  }
  if (found == nullptr) throw std::runtime_error("no machine IR template for '" + std::string(whole) + "'");
  return *found;
}

std::string translate(std::string_view text) {
  const Parsed p = parse(text);
  std::string mir = template_of(p, text);
  const auto replace_all = [&mir](const std::string& what, const std::string& with) {
    for (std::size_t at = mir.find(what); at != std::string::npos; at = mir.find(what, at + with.size()))
      mir.replace(at, what.size(), with);
  };
  for (std::size_t i = 0; i < p.operands.size(); ++i)
    replace_all("{" + std::to_string(i) + "}", operand(p.operands[i]));
  replace_all("{cd}", p.operands[0].starts_with("a") ? "" : "_vgprcd");
  return mir;
}

std::string function_text(const MirPair& pair, std::size_t index) {
  std::string s =
      "---\nname: pair" + std::to_string(index) + "\nbody: |\n  bb.0:\n    " + translate(pair.producer) + "\n";
  for (unsigned i = 0; i < pair.between; ++i) s += "    S_NOP 0\n";
  return s + "    " + translate(pair.consumer) + "\n    S_ENDPGM 0\n...\n";
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

bool has_llc() { return !std::string_view(ZYFA_LLC).empty(); }

std::vector<unsigned> states_llvm_adds(const std::vector<MirPair>& pairs) {
  const std::filesystem::path stem =
      std::filesystem::temp_directory_path() / ("zyfa_hazards_" + std::to_string(getpid()));
  const std::string in = stem.string() + ".mir", out = stem.string() + ".out", log = stem.string() + ".log";
  {
    std::ofstream file(in);
    for (std::size_t i = 0; i < pairs.size(); ++i) file << function_text(pairs[i], i);
  }
  const std::string command = std::string(ZYFA_LLC) +
                              " -mtriple=amdgcn-amd-amdhsa -mcpu=gfx950 -run-pass=post-RA-hazard-rec " + in + " -o " +
                              out + " 2> " + log;
  const int status = std::system(command.c_str());
  const std::string text = read_file(out), errors = read_file(log);
  for (const std::string& path : {in, out, log}) std::filesystem::remove(path);
  if (status != 0) throw std::runtime_error(command + "\n" + errors);
  std::vector<unsigned> states(pairs.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    at = text.find("name:            pair" + std::to_string(i) + "\n", at);
    if (at == std::string::npos) throw std::runtime_error("llc left out pair " + std::to_string(i));
    const std::size_t end = text.find("\n...", at);
    for (std::size_t nop = text.find("S_NOP ", at); nop < end; nop = text.find("S_NOP ", nop + 1))
      states[i] += static_cast<unsigned>(std::strtoul(text.c_str() + nop + 6, nullptr, 10)) + 1;
    states[i] -= pairs[i].between;
  }
  return states;
}

}  // namespace zyfa::hazards
