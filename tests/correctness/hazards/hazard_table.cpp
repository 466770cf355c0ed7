// Rows of gfx950-isa.md 4.3 and 4.4 (hazard_table.h).
#include "tests/correctness/hazards/hazard_table.h"

#include <algorithm>

#include "tests/correctness/hazards/matrix_rows.h"

namespace zyfa::hazards {
namespace {

constexpr const char* kDpp = " quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf";
constexpr const char* kHigh = " op_sel:[0,0,1]";
constexpr const char* kCmpx = "v_cmpx_eq_u32 vcc, v0, v1";
constexpr const char* kCmp = "v_cmp_eq_u32 vcc, v0, v1";
constexpr const char* kOpSelHi = "LLVM 22 reads the default op_sel_hi bit of a packed instruction as a half select";
constexpr const char* kSdwaHigh =
    "v_add_u16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0 src1_sel:WORD_0";

void add_vector_rows(std::vector<HazardRow>& rows) {
  const std::string cvt = "v_cvt_pk_fp8_f32 v0, v1, v2", high = cvt + kHigh, dot = "v_dot2_f32_f16 v0, v1, v2, v3",
                    tied_dot = "v_dot4c_i32_i8 v0, v1, v2";
  const HazardRow list[] = {
      {"trans result read by VALU", "4.3", "v_exp_f32 v0, v1", "v_add_f32 v2, v0, v3", 1},
      {"trans result read by conversion", "4.3", "v_exp_f32 v0, v1", "v_cvt_pk_bf16_f32 v2, v0, v3", 1},
      {"trans result read by readfirstlane", "4.3", "v_rcp_f32 v0, v1", "v_readfirstlane_b32 s40, v0", 1},
      {"trans result read by a dot product", "4.3", "v_log_f32 v0, v1", "v_dot4_i32_i8 v2, v0, v3, v4", 1},
      {"trans result swapped", "4.3", "v_exp_f32 v0, v1", "v_permlane32_swap_b32 v0, v2", 2},
      {"f64 trans result read by VALU", "4.3", "v_rcp_f64 v[0:1], v[2:3]", "v_mov_b32 v4, v1", 1},
      {"f16 trans result read by VALU", "4.3", "v_sqrt_f16 v0, v1", "v_mov_b32 v4, v0", 1},
      {"trans result read by trans", "4.3", "v_exp_f32 v0, v1", "v_log_f32 v2, v0", 0},
      {"trans result stored to LDS", "4.3", "v_exp_f32 v0, v1", "ds_write_b32 v72, v0", 0},
      {"trans result stored", "4.3", "v_exp_f32 v0, v1", "global_store_dword v[70:71], v0, off", 0},
      {"trans result overwritten", "4.3", "v_exp_f32 v0, v1", "v_mov_b32 v0, 0", 0},
      {"trans result not read", "4.3", "v_exp_f32 v0, v1", "v_mov_b32 v2, v3", 0},
      {"VALU result read by VALU", "4.3", "v_add_f32 v0, v1, v2", "v_add_f32 v3, v0, v0", 0},
      {"packed f32 result read by VALU", "4.3", "v_pk_mul_f32 v[0:1], v[2:3], v[4:5]",
       "v_pk_add_f32 v[6:7], v[0:1], v[2:3]", 0, 1, kOpSelHi},
      // Lane exchange.
      {"VALU result swapped, first operand", "4.3", "v_mov_b32 v0, v1", "v_permlane32_swap_b32 v0, v2", 2},
      {"VALU result swapped, second operand", "4.3", "v_mov_b32 v0, v1", "v_permlane16_swap_b32 v2, v0", 2},
      {"swap result swapped again", "LLVM", "v_permlane32_swap_b32 v0, v1", "v_permlane32_swap_b32 v1, v2", 2},
      {"swap result swapped by the other swap", "LLVM", "v_permlane16_swap_b32 v0, v1", "v_permlane32_swap_b32 v0, v2",
       2},
      {"swap result read by VALU", "4.3", "v_permlane32_swap_b32 v0, v1", "v_mov_b32 v2, v0", 0},
      {"swap result stored", "4.3", "v_permlane32_swap_b32 v0, v1", "global_store_dword v[70:71], v1, off", 0},
      {"v_cmpx before a swap", "4.3", kCmpx, "v_permlane32_swap_b32 v2, v3", 4},
      {"v_cmpx before the other swap", "4.3", kCmpx, "v_permlane16_swap_b32 v2, v3", 4},
      {"SALU writes EXEC before a swap", "4.3", "s_mov_b64 exec, -1", "v_permlane32_swap_b32 v2, v3", 0},
      {"VALU result read by DPP", "4.3", "v_mov_b32 v0, v1", std::string("v_mov_b32_dpp v2, v0") + kDpp, 2},
      {"trans result read by DPP", "4.3", "v_exp_f32 v0, v1", std::string("v_mov_b32_dpp v2, v0") + kDpp, 2},
      {"VALU result read by arithmetic DPP", "4.3", "v_mov_b32 v0, v1", std::string("v_add_f32_dpp v2, v0, v3") + kDpp,
       2},
      {"VALU result read by DPP as its other operand", "LLVM", "v_mov_b32 v0, v1",
       std::string("v_add_f32_dpp v2, v3, v0") + kDpp, 2},
      {"v_cmpx before DPP", "4.3", kCmpx, std::string("v_mov_b32_dpp v2, v3") + kDpp, 5},
      {"SALU writes EXEC before DPP", "4.3", "s_mov_b64 exec, -1", std::string("v_mov_b32_dpp v2, v3") + kDpp, 0},
      {"v_cmpx before readlane", "4.3", kCmpx, "v_readlane_b32 s40, v2, 1", 4},
      {"v_cmpx before readfirstlane", "4.3", kCmpx, "v_readfirstlane_b32 s40, v2", 4},
      {"v_cmpx before writelane", "4.3", kCmpx, "v_writelane_b32 v2, s3, 1", 4},
      {"v_cmpx before VALU", "4.3", kCmpx, "v_mov_b32 v2, v3", 0},
      {"v_cmpx before a vector memory instruction", "4.3", kCmpx, "global_load_dword v2, v[70:71], off", 0, 5,
       "LLVM 22 counts EXEC, an implicit operand, among the scalar registers a memory instruction reads"},
      {"v_cmpx before an LDS instruction", "4.3", kCmpx, "ds_read_b32 v2, v72", 0},
      {"v_cmpx before VALU that reads EXEC as data", "LLVM", kCmpx, "v_mov_b32 v2, exec_lo", 2},
      {"VALU result read by readlane", "4.3", "v_mov_b32 v0, v1", "v_readlane_b32 s40, v0, 1", 1},
      {"VALU result read by readfirstlane", "4.3", "v_mov_b32 v0, v1", "v_readfirstlane_b32 s40, v0", 1},
      {"VALU result kept by writelane", "4.3", "v_mov_b32 v0, v1", "v_writelane_b32 v0, s3, 1", 0},
      // Scalars that VALU writes.
      {"SGPR of a compare read by VALU", "4.3", "v_cmp_eq_u32 s[12:13], v0, v1", "v_mov_b32 v2, s12", 2},
      {"SGPR of readfirstlane read by VALU", "4.3", "v_readfirstlane_b32 s12, v0", "v_add_u32 v2, s12, v3", 2},
      {"VCC read by v_cndmask", "4.3", kCmp, "v_cndmask_b32 v2, v3, v4, vcc", 2},
      {"SGPR pair read by v_cndmask", "4.3", "v_cmp_eq_u32 s[12:13], v0, v1", "v_cndmask_b32 v2, v3, v4, s[12:13]", 2},
      {"VCC read as data", "4.3", kCmp, "v_mov_b32 v2, vcc_lo", 2},
      {"VCC read as a carry", "4.3", "v_add_co_u32 v5, vcc, v0, v1", "v_addc_co_u32 v2, vcc, v3, v4, vcc", 0, 2,
       "LLVM 22 takes a carry for data; AMD's guide has 0 for it"},
      {"VCC of a compare read as a carry", "4.3", kCmp, "v_addc_co_u32 v2, vcc, v3, v4, vcc", 0, 2,
       "LLVM 22 takes a carry for data; AMD's guide has 0 for it"},
      {"SGPR pair read as a carry", "4.3", "v_cmp_eq_u32 s[12:13], v0, v1",
       "v_addc_co_u32 v2, s[14:15], v3, v4, s[12:13]", 0, 2,
       "LLVM 22 takes a carry for data; AMD's guide has 0 for it"},
      {"SGPR as the lane of readlane", "4.3", "v_readfirstlane_b32 s12, v0", "v_readlane_b32 s40, v2, s12", 4},
      {"SGPR as the lane of writelane", "4.3", "v_readfirstlane_b32 s12, v0", "v_writelane_b32 v2, 3, s12", 4},
      {"SGPR as the data of writelane", "4.3", "v_readfirstlane_b32 s12, v0", "v_writelane_b32 v2, s12, 3", 2},
      {"VCC as the lane of readlane", "4.3", kCmp, "v_readlane_b32 s40, v2, vcc_lo", 4},
      {"SGPR in a buffer descriptor", "4.3", "v_readfirstlane_b32 s8, v70",
       "buffer_load_dword v2, v72, s[8:11], 0 offen", 5},
      {"SGPR as soffset", "4.3", "v_readfirstlane_b32 s12, v0", "buffer_load_dword v2, v72, s[8:11], s12 offen", 5},
      {"SGPR as soffset of a store", "4.3", "v_readfirstlane_b32 s12, v0",
       "buffer_store_dword v2, v72, s[8:11], s12 offen", 5},
      {"SGPR pair as a global base", "4.3", "v_readfirstlane_b32 s14, v70", "global_load_dword v2, v72, s[14:15]", 5},
      {"SGPR read by SALU", "4.3", "v_readfirstlane_b32 s12, v0", "s_add_u32 s13, s12, 1", 0},
      {"SGPR read by a scalar load", "4.3", "v_readfirstlane_b32 s14, v70", "s_load_dword s40, s[14:15], 0x0", 0},
      {"VCC read by SALU", "4.3", kCmp, "s_and_b64 s[40:41], vcc, exec", 0},
      {"VCC read by v_div_fmas", "4.3", kCmp, "v_div_fmas_f32 v2, v3, v4, v5", 4},
      {"VCC of v_div_scale read by v_div_fmas", "4.3", "v_div_scale_f32 v6, vcc, v0, v1, v0",
       "v_div_fmas_f32 v2, v3, v4, v5", 4},
      {"VCC read by v_div_fmas_f64", "4.3", kCmp, "v_div_fmas_f64 v[2:3], v[4:5], v[6:7], v[8:9]", 4},
      {"VCC written by SALU read by v_div_fmas", "4.3", "s_mov_b64 vcc, 0", "v_div_fmas_f32 v2, v3, v4, v5", 0},
      {"vccz after VALU wrote VCC", "4.3", kCmp, "v_mov_b32 v2, src_vccz", 5, 0,
       "LLVM never makes vccz an operand and has no rule for it"},
      {"execz after VALU wrote EXEC", "4.3", kCmpx, "v_mov_b32 v2, src_execz", 5, 0,
       "LLVM never makes execz an operand and has no rule for it"},
      {"vccz after SALU wrote VCC", "4.3", "s_mov_b64 vcc, 0", "v_mov_b32 v2, src_vccz", 0},
      // Results of which a part is selected.
      {"high half of a conversion read", "4.3", high, "v_mov_b32 v3, v0", 1},
      {"high half of a conversion stored", "4.3", high, "global_store_dword v[70:71], v0, off", 0},
      {"high half, then low half", "4.3", high, cvt, 1},
      {"low half, then high half", "4.3", cvt, high, 0},
      {"low half of a conversion read", "4.3", cvt, "v_mov_b32 v3, v0", 0},
      {"high half overwritten as a whole", "4.3", high, "v_mov_b32 v0, v3", 0, 1,
       "LLVM 22 counts every overwrite; the reference has the readers, and overwriters that keep a part"},
      {"byte 0 of a stochastic conversion read", "4.3", "v_cvt_sr_fp8_f32 v0, v1, v2", "v_mov_b32 v3, v0", 1, 0,
       "the reference has any byte, LLVM 22 the others than byte 0"},
      {"byte 2 of a stochastic conversion read", "4.3", "v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,0,1]",
       "v_mov_b32 v3, v0", 1},
      {"byte 1 of a stochastic conversion read", "4.3", "v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,1,0]",
       "v_mov_b32 v3, v0", 1},
      {"byte 1, then byte 2 of a stochastic conversion", "4.3", "v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,1,0]",
       "v_cvt_sr_fp8_f32 v0, v3, v4 op_sel:[0,0,0,1]", 1},
      {"high half of a scaled fp8 conversion read", "4.3", "v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]",
       "v_mov_b32 v4, v0", 1},
      {"low half of a scaled fp8 conversion read", "4.3", "v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3",
       "v_mov_b32 v4, v0", 0},
      {"byte 2 of a scaled fp4 conversion read", "4.3", "v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]",
       "v_mov_b32 v4, v0", 1},
      {"byte 0 of a scaled fp4 conversion read", "4.3", "v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3", "v_mov_b32 v4, v0",
       0},
      {"byte 0 of a stochastic fp4 conversion read", "4.3", "v_cvt_scalef32_sr_pk_fp4_f32 v0, v[2:3], v4, v5",
       "v_mov_b32 v6, v0", 1},
      {"byte 0 of a stochastic scaled fp8 conversion read", "4.3", "v_cvt_scalef32_sr_fp8_f32 v0, v2, v4, v5",
       "v_mov_b32 v6, v0", 1, 0, "the reference has any byte, LLVM 22 the others than byte 0"},
      {"SDWA high word read", "4.3", kSdwaHigh, "v_mov_b32 v3, v0", 1},
      {"SDWA high word kept by SDWA", "4.3", kSdwaHigh,
       "v_add_u16_sdwa v0, v1, v2 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0 src1_sel:WORD_0", 1},
      // Dot products.
      {"dot product read by VALU", "4.3", dot, "v_mov_b32 v4, v0", 3},
      {"dot product overwritten by VALU", "4.3", dot, "v_mov_b32 v0, v4", 3},
      {"dot product accumulates", "4.3", dot, "v_dot2_f32_f16 v0, v4, v5, v0", 0, 1, kOpSelHi},
      {"tied dot product accumulates", "4.3", tied_dot, "v_dot4c_i32_i8 v0, v4, v5", 0},
      {"dot product overwrites itself", "4.3", dot, "v_dot2_f32_f16 v0, v4, v5, v6", 0, 1, kOpSelHi},
      {"dot product as A of the same", "4.3", dot, "v_dot2_f32_f16 v6, v0, v5, v7", 3},
      {"dot product as B of the same", "4.3", dot, "v_dot2_f32_f16 v6, v5, v0, v7", 3},
      {"dot product as C of another", "4.3", dot, "v_dot4_i32_i8 v6, v4, v5, v0", 3},
      {"dot product stored", "4.3", dot, "global_store_dword v[70:71], v0, off", 3},
      {"dot product stored to LDS", "4.3", dot, "ds_write_b32 v72, v0", 3},
      {"dot product loaded over", "4.3", dot, "ds_read_b32 v0, v72", 3},
      {"dot product read by an MFMA", "4.3", dot, "v_mfma_f32_4x4x4_16b_f16 v[80:83], v[0:1], v[84:85], v[88:91]", 3, 1,
       "LLVM 22 exempts dot products from its VALU to MFMA rule, and what it inserts is for an op_sel_hi bit taken for "
       "a "
       "half select; the reference has 3 for any reader"},
  };
  rows.insert(rows.end(), std::begin(list), std::end(list));
}

void add_scalar_rows(std::vector<HazardRow>& rows) {
  const char* const skip = "LLVM sets vskip nowhere and has no rule for it";
  const HazardRow list[] = {
      {"M0 read by a buffer LDS-DMA", "4.4", "s_mov_b32 m0, s3", "buffer_load_dword v72, s[8:11], 0 offen lds", 1},
      {"M0 read by a wide buffer LDS-DMA", "4.4", "s_mov_b32 m0, s3", "buffer_load_dwordx4 v72, s[8:11], 0 offen lds",
       1},
      {"M0 read by a global LDS-DMA", "4.4", "s_add_u32 m0, s3, 0", "global_load_lds_dwordx4 v[70:71], off", 1},
      {"M0 read by s_sendmsg", "4.4", "s_mov_b32 m0, s3", "s_sendmsg sendmsg(MSG_INTERRUPT)", 1},
      {"M0 read by s_movrels", "4.4", "s_mov_b32 m0, s3", "s_movrels_b32 s40, s41", 1},
      {"M0 read by s_movreld", "4.4", "s_mov_b32 m0, s3", "s_movreld_b32 s40, s41", 1},
      {"M0 read by ds_read_addtid", "4.4", "s_mov_b32 m0, s3", "ds_read_addtid_b32 v2", 1},
      {"M0 read by ds_write_addtid", "4.4", "s_mov_b32 m0, s3", "ds_write_addtid_b32 v2", 1},
      {"M0 not read by an LDS access", "4.4", "s_mov_b32 m0, s3", "ds_read_b32 v2, v72", 0},
      {"M0 not read by an ordinary load", "4.4", "s_mov_b32 m0, s3", "buffer_load_dword v2, v72, s[8:11], 0 offen", 0},
      {"M0 rewritten after an LDS-DMA", "4.4", "buffer_load_dword v72, s[8:11], 0 offen lds", "s_mov_b32 m0, s3", 0},
      {"SALU writes soffset", "4.4", "s_mov_b32 s12, s3", "buffer_load_dword v2, v72, s[8:11], s12 offen", 0},
      {"SALU writes the base of a scalar load", "4.4", "s_mov_b32 s14, s14", "s_load_dword s40, s[14:15], 0x0", 0},
      {"SALU writes a lane select", "4.4", "s_mov_b32 s12, s3", "v_readlane_b32 s40, v2, s12", 0},
      {"VALU writes an address", "4.4", "v_mov_b32 v72, 0", "ds_read_b32 v2, v72", 0},
      {"VALU writes the data of a store", "4.4", "v_mov_b32 v0, v1", "global_store_dword v[70:71], v0, off", 0},
      // Wide stores.
      {"data of a store of 4 dwords overwritten", "4.4", "global_store_dwordx4 v[70:71], v[0:3], off",
       "v_mov_b32 v3, 0", 2},
      {"data of a store of 3 dwords overwritten", "4.4", "global_store_dwordx3 v[70:71], v[0:2], off",
       "v_mov_b32 v2, 0", 2},
      {"data of a flat store overwritten", "4.4", "flat_store_dwordx4 v[70:71], v[0:3]", "v_exp_f32 v3, v4", 2},
      {"data of a buffer store overwritten", "4.4", "buffer_store_dwordx4 v[0:3], v72, s[8:11], 0 offen",
       "v_mov_b32 v0, 0", 2},
      {"data of a buffer store of 3 dwords overwritten", "4.4", "buffer_store_dwordx3 v[0:2], v72, s[8:11], 0 offen",
       "v_mov_b32 v0, 0", 2},
      {"data of a store overwritten by an MFMA", "4.4", "global_store_dwordx4 v[70:71], v[0:3], off",
       "v_mfma_f32_16x16x32_bf16 v[0:3], v[32:35], v[36:39], v[16:19]", 2},
      {"data of a store overwritten by a swap", "4.4", "global_store_dwordx4 v[70:71], v[0:3], off",
       "v_permlane32_swap_b32 v4, v3", 2},
      // The reference asks for 1 here; every compiled program does with LLVM's 0.
      {"data of a store overwritten by an LDS read", "4.4", "global_store_dwordx4 v[70:71], v[0:3], off",
       "ds_read_b32 v3, v72", 0},
      {"data of a store overwritten by a load", "4.4", "global_store_dwordx4 v[70:71], v[0:3], off",
       "buffer_load_dword v3, v72, s[8:11], 0 offen", 0},
      {"data of a store read", "4.4", "global_store_dwordx4 v[70:71], v[0:3], off", "v_mov_b32 v4, v3", 0},
      {"data of a buffer store with an SGPR offset", "4.4", "buffer_store_dwordx4 v[0:3], v72, s[8:11], s12 offen",
       "v_mov_b32 v3, 0", 0},
      {"address of a wide store overwritten", "4.4", "buffer_store_dwordx4 v[0:3], v4, s[8:11], 0 offen",
       "v_mov_b32 v4, 0", 0},
      {"data of a store of 2 dwords overwritten", "4.4", "global_store_dwordx2 v[70:71], v[0:1], off",
       "v_mov_b32 v1, 0", 0},
      {"data of an LDS write overwritten", "4.4", "ds_write_b128 v72, v[0:3]", "v_mov_b32 v3, 0", 0},
      // Hardware registers.
      {"s_setreg, then s_getreg", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3",
       "s_getreg_b32 s40, hwreg(HW_REG_MODE)", 2},
      {"s_setreg_imm32, then s_getreg", "4.4", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
       "s_getreg_b32 s40, hwreg(HW_REG_MODE)", 2},
      {"s_setreg twice", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3",
       "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s3", 2},
      {"s_setreg, then s_getreg of another register", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3",
       "s_getreg_b32 s40, hwreg(HW_REG_HW_ID)", 0},
      {"s_setreg of MODE before VALU", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3", "v_mov_b32 v0, v1", 0},
      {"vskip before VALU", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s3", "v_mov_b32 v0, v1", 2, 0, skip},
      {"vskip before an MFMA", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 24, 8), s3",
       "v_mfma_f32_16x16x32_bf16 v[0:3], v[32:35], v[36:39], v[16:19]", 2, 0, skip},
      {"vskip before an LDS access", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s3", "ds_read_b32 v0, v72", 2, 0,
       skip},
      {"vskip before a store", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s3",
       "global_store_dword v[70:71], v0, off", 2, 0, skip},
      {"vskip before SALU", "4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s3", "s_mov_b32 s40, s3", 0},
  };
  rows.insert(rows.end(), std::begin(list), std::end(list));
}

}  // namespace

const std::vector<HazardRow>& hazard_table() {
  static const std::vector<HazardRow> table = [] {
    std::vector<HazardRow> rows;
    add_matrix_rows(rows);
    add_vector_rows(rows);
    add_scalar_rows(rows);
    return rows;
  }();
  return table;
}

std::string nops(unsigned states) {
  std::string s;
  for (; states > 0; states -= std::min(states, 16u)) s += "s_nop " + std::to_string(std::min(states, 16u) - 1) + "\n";
  return s;
}

}  // namespace zyfa::hazards
