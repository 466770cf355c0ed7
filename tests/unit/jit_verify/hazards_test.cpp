// Wait states: every row of gfx950-isa.md section 4, one state short and exactly met; loops and branches.
#include <gmock/gmock.h>

#include <set>

#include "jit/verify/hazard_rules.h"
#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

using ::testing::HasSubstr;

// Expected counts are copied by hand from the reference's tables, not from the verifier's.
struct Row {
  const char* section;
  const char* producer;
  const char* consumer;
  unsigned states;
};

constexpr const char* kXdl2 = "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[20:21], v[22:23], v[4:7]";
constexpr const char* kXdl4 = "v_mfma_f32_16x16x32_bf16 v[0:3], v[20:23], v[24:27], v[4:7]";
constexpr const char* kXdl8 = "v_mfma_f32_32x32x16_bf16 v[0:15], v[40:43], v[44:47], v[16:31]";
constexpr const char* kXdl16 = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[40:47], v[48:55], v[16:31]";
constexpr const char* kXdl16Scaled = "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[40:47], v[48:55], v[16:31], v60, v61";
constexpr const char* kXdl8Fp4 = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[40:43], v[44:47], v[16:31] cbsz:4 blgp:4";
constexpr const char* kXdl4Fp4 = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[40:43], v[44:47], v[4:7] cbsz:4 blgp:4";
constexpr const char* kXdl8Fp8 = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[40:47], v[48:55], v[4:7]";
constexpr const char* kXdlAcc = "v_mfma_f32_32x32x16_bf16 a[0:15], v[40:43], v[44:47], a[16:31]";
constexpr const char* kXdl8Int = "v_mfma_i32_32x32x32_i8 v[0:15], v[40:43], v[44:47], v[16:31]";
constexpr const char* kSparse = "v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[40:43], v[48:55], v60";
constexpr const char* kSgemm16 = "v_mfma_f32_32x32x2_f32 v[0:15], v40, v41, v[16:31]";
constexpr const char* kSgemm8 = "v_mfma_f32_16x16x4_f32 v[0:3], v40, v41, v[16:19]";
constexpr const char* kReadD = "v_mov_b32 v70, v1";
constexpr const char* kWriteD = "v_mov_b32 v1, 0";
constexpr const char* kAsA = "v_mfma_f32_16x16x32_bf16 v[80:83], v[0:3], v[84:87], v[88:91]";
constexpr const char* kOtherC = "v_mfma_f32_16x16x32_bf16 v[80:83], v[84:87], v[92:95], v[2:5]";
constexpr const char* kOverC4 = "v_mov_b32 v7, 0";
constexpr const char* kOverC16 = "v_mov_b32 v31, 0";

const Row kRows[] = {
    // 4.1: VALU reads D
    {"4.1", kXdl2, kReadD, 5},
    {"4.1", kXdl4, kReadD, 8},
    {"4.1", kXdl8, kReadD, 12},
    {"4.1", kXdl16, kReadD, 20},
    {"4.1", kXdl16Scaled, kReadD, 20},
    {"4.1", kXdl8Fp4, kReadD, 12},
    {"4.1", kXdl4Fp4, kReadD, 8},
    {"4.1", kXdl8Fp8, kReadD, 12},
    {"4.1", kXdl8Int, kReadD, 12},
    {"4.1", kSparse, kReadD, 8},
    {"4.1", kXdlAcc, "v_accvgpr_read_b32 v70, a15", 12},
    {"4.1", kXdl16, "v_permlane32_swap_b32 v1, v70", 20},
    {"4.1", kXdl16, "v_cvt_pk_bf16_f32 v70, v14, v15", 20},
    {"4.1", kXdl16, "v_exp_f32 v70, v15", 20},
    {"4.1", kXdl16, "v_mov_b32_dpp v70, v0 row_shl:1 row_mask:0xf bank_mask:0xf", 20},
    {"4.1", kXdl16, "v_readfirstlane_b32 s40, v0", 20},
    // VALU overwrites D
    {"4.1", kXdl2, kWriteD, 5},
    {"4.1", kXdl4, kWriteD, 8},
    {"4.1", kXdl8, kWriteD, 12},
    {"4.1", kXdl16, kWriteD, 20},
    // memory reads or loads into D
    {"4.1", kXdl2, "global_store_dword v[70:71], v1, off", 5},
    {"4.1", kXdl16, "global_store_dword v[70:71], v1, off", 20},
    {"4.1", kXdl8, "ds_write_b32 v70, v1", 12},
    {"4.1", kXdl8, "buffer_load_dword v70, v1, s[8:11], 0 offen", 12},
    {"4.1", kXdl8, "ds_read_b32 v1, v70", 12},
    {"4.1", kXdl16, "buffer_load_dwordx4 v[12:15], v70, s[8:11], 0 offen", 20},
    // MFMA reads D as A, B or scale
    {"4.1", kXdl2, kAsA, 5},
    {"4.1", kXdl4, kAsA, 8},
    {"4.1", kXdl8, kAsA, 12},
    {"4.1", kXdl16, kAsA, 20},
    {"4.1", kXdl16, "v_mfma_f32_16x16x32_bf16 v[80:83], v[84:87], v[0:3], v[88:91]", 20},
    {"4.1", kXdl16, "v_mfma_scale_f32_32x32x64_f8f6f4 v[64:79], v[40:47], v[48:55], v[80:95], v3, v61", 20},
    {"4.1", kXdl16, "v_mfma_scale_f32_32x32x64_f8f6f4 v[64:79], v[40:47], v[48:55], v[80:95], v60, v3", 20},
    // same C, other C
    {"4.1", kXdl2, "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[20:21], v[22:23], v[0:3]", 2},
    {"4.1", kXdl4, "v_mfma_f32_16x16x32_bf16 v[0:3], v[20:23], v[24:27], v[0:3]", 0},
    {"4.1", kXdl8, "v_mfma_f32_32x32x16_bf16 v[0:15], v[40:43], v[44:47], v[0:15]", 0},
    {"4.1", kXdl16, "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[40:47], v[48:55], v[0:15]", 0},
    {"4.1", kSparse, "v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[40:43], v[48:55], v60", 0},
    {"4.1", kXdl2, kOtherC, 4},
    {"4.1", kXdl4, kOtherC, 6},
    {"4.1", kXdl8, kOtherC, 10},
    {"4.1", kXdl16, kOtherC, 18},
    // D written again
    {"4.1", kXdl16, "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[40:47], v[48:55], v[64:79]", 0},
    // C overwritten
    {"4.1", kXdl2, kOverC4, 1},
    {"4.1", kXdl4, kOverC4, 3},
    {"4.1", kXdl8, kOverC16, 7},
    {"4.1", kXdl16, kOverC16, 15},
    {"4.1", kXdl16, "ds_read_b128 v[28:31], v70", 15},
    {"4.1", kXdl8, "buffer_load_dword v16, v70, s[8:11], 0 offen", 7},
    // A, B or scale overwritten
    {"4.1", kXdl16Scaled, "v_mov_b32 v40, 0", 0},
    {"4.1", kXdl16Scaled, "v_mov_b32 v55, 0", 0},
    {"4.1", kXdl16Scaled, "v_mov_b32 v60, 0", 0},
    // SGEMM
    {"4.1", kSgemm16, kReadD, 18},
    {"4.1", kSgemm8, kReadD, 10},
    {"4.1", kSgemm16, kWriteD, 18},
    {"4.1", kSgemm16, "ds_write_b32 v70, v1", 18},
    {"4.1", kSgemm8, "ds_read_b32 v1, v70", 10},
    {"4.1", kSgemm16, kAsA, 18},
    {"4.1", kSgemm16, kOtherC, 16},
    {"4.1", kSgemm8, kOtherC, 8},
    {"4.1", kSgemm16, kOverC16, 0},
    // 4.2
    {"4.2", "v_mov_b32 v40, 0", kXdl8, 2},
    {"4.2", "v_exp_f32 v44, v70", kXdl8, 2},
    {"4.2", "v_cvt_pk_fp8_f32 v44, v70, v71", kXdl16, 2},
    {"4.2", "v_mov_b32 v16, 0", kXdl8, 2},
    {"4.2", "v_mov_b32 v60, 0", kXdl16Scaled, 2},
    {"4.2", "v_mov_b32 v60, 0", kSparse, 2},
    {"4.2", "v_permlane32_swap_b32 v40, v70", kXdl8, 2},
    {"4.2", "v_accvgpr_write_b32 a16, 0", kXdlAcc, 2},
    {"4.2", "v_cmpx_eq_u32 v0, v1", kXdl8, 4},
    // 4.3
    {"4.3", "v_exp_f32 v0, v1", "v_add_f32 v2, v0, v3", 1},
    {"4.3", "v_rcp_f32 v0, v1", "v_readfirstlane_b32 s40, v0", 1},
    {"4.3", "v_exp_f32 v0, v1", "v_log_f32 v2, v0", 0},
    {"4.3", "v_exp_f32 v0, v1", "ds_write_b32 v2, v0", 0},
    {"4.3", "v_exp_f32 v0, v1", "v_mov_b32 v0, 0", 0},
    {"4.3", "v_add_f32 v0, v1, v2", "v_add_f32 v3, v0, v0", 0},
    {"4.3", "v_mov_b32 v0, v1", "v_permlane32_swap_b32 v0, v2", 2},
    {"4.3", "v_mov_b32 v0, v1", "v_permlane16_swap_b32 v2, v0", 2},
    {"4.3", "v_permlane32_swap_b32 v0, v1", "v_permlane32_swap_b32 v1, v2", 2},
    {"4.3", "v_permlane32_swap_b32 v0, v1", "v_mov_b32 v2, v0", 0},
    {"4.3", "v_permlane32_swap_b32 v0, v1", "global_store_dword v[70:71], v0, off", 0},
    {"4.3", "v_cmpx_eq_u32 v0, v1", "v_permlane32_swap_b32 v2, v3", 4},
    {"4.3", "v_mov_b32 v0, v1", "v_mov_b32_dpp v2, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 2},
    {"4.3", "v_cmpx_eq_u32 v0, v1", "v_mov_b32_dpp v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 5},
    {"4.3", "s_mov_b64 exec, -1", "v_mov_b32_dpp v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 0},
    {"4.3", "v_cmpx_eq_u32 v0, v1", "v_readlane_b32 s40, v2, 1", 4},
    {"4.3", "v_cmpx_eq_u32 v0, v1", "v_readfirstlane_b32 s40, v2", 4},
    {"4.3", "v_cmpx_eq_u32 v0, v1", "v_writelane_b32 v2, s3, 1", 4},
    {"4.3", "v_cmpx_eq_u32 v0, v1", "v_mov_b32 v2, v3", 0},
    {"4.3", "v_mov_b32 v0, v1", "v_readlane_b32 s40, v0, 1", 1},
    {"4.3", "v_mov_b32 v0, v1", "v_readfirstlane_b32 s40, v0", 1},
    {"4.3", "v_cmp_eq_u32 s[12:13], v0, v1", "v_mov_b32 v2, s12", 2},
    {"4.3", "v_readfirstlane_b32 s12, v0", "v_add_u32 v2, s12, v3", 2},
    {"4.3", "v_cmp_eq_u32 vcc, v0, v1", "v_cndmask_b32 v2, v3, v4, vcc", 2},
    {"4.3", "v_add_co_u32 v5, vcc, v0, v1", "v_addc_co_u32 v2, vcc, v3, v4, vcc", 0},
    {"4.3", "v_readfirstlane_b32 s12, v0", "v_readlane_b32 s40, v2, s12", 4},
    {"4.3", "v_readfirstlane_b32 s12, v0", "v_writelane_b32 v2, 3, s12", 4},
    {"4.3", "v_readfirstlane_b32 s8, v0", "buffer_load_dword v2, v3, s[8:11], 0 offen", 5},
    {"4.3", "v_readfirstlane_b32 s12, v0", "buffer_load_dword v2, v3, s[8:11], s12 offen", 5},
    {"4.3", "v_readfirstlane_b32 s12, v0", "global_load_dword v2, v3, s[12:13]", 5},
    {"4.3", "v_readfirstlane_b32 s12, v0", "s_add_u32 s13, s12, 1", 0},
    {"4.3", "v_readfirstlane_b32 s12, v0", "s_load_dword s14, s[12:13], 0x0", 0},
    {"4.3", "v_cmp_eq_u32 vcc, v0, v1", "v_div_fmas_f32 v2, v3, v4, v5", 4},
    {"4.3", "v_cmp_eq_u32 vcc, v0, v1", "v_mov_b32 v2, src_vccz", 5},
    {"4.3", "v_cmpx_eq_u32 v0, v1", "v_mov_b32 v2, src_execz", 5},
    {"4.3", "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", "v_mov_b32 v3, v0", 1},
    {"4.3", "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", "v_cvt_pk_fp8_f32 v0, v3, v4", 1},
    {"4.3", "v_cvt_pk_fp8_f32 v0, v1, v2", "v_cvt_pk_fp8_f32 v0, v3, v4 op_sel:[0,0,1]", 0},
    {"4.3", "v_cvt_sr_fp8_f32 v0, v1, v2", "v_mov_b32 v3, v0", 1},
    {"4.3", "v_add_u16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0 src1_sel:WORD_0",
     "v_mov_b32 v3, v0", 1},
    {"4.3", "v_dot2_f32_f16 v0, v1, v2, v3", "v_mov_b32 v4, v0", 3},
    {"4.3", "v_dot2_f32_f16 v0, v1, v2, v3", "v_mov_b32 v0, v4", 3},
    {"4.3", "v_dot2_f32_f16 v0, v1, v2, v3", "v_dot2_f32_f16 v0, v4, v5, v0", 0},
    {"4.3", "v_dot2_f32_f16 v0, v1, v2, v3", "v_dot2_f32_f16 v6, v0, v5, v7", 3},
    {"4.3", "v_dot2_f32_f16 v0, v1, v2, v3", "v_dot4_i32_i8 v6, v4, v5, v0", 3},
    {"4.3", "v_dot2_f32_f16 v0, v1, v2, v3", "global_store_dword v[70:71], v0, off", 3},
    {"4.3", "v_pk_mul_f32 v[0:1], v[2:3], v[4:5]", "v_pk_add_f32 v[6:7], v[0:1], v[2:3]", 0},
    // 4.4
    {"4.4", "s_mov_b32 m0, s3", "buffer_load_dwordx4 v1, s[8:11], 0 offen lds", 1},
    {"4.4", "s_mov_b32 m0, s3", "global_load_lds_dwordx4 v[0:1], off", 1},
    {"4.4", "s_add_u32 m0, m0, 16", "s_sendmsg sendmsg(MSG_INTERRUPT)", 1},
    {"4.4", "s_mov_b32 m0, s3", "s_movrels_b32 s4, s5", 1},
    {"4.4", "s_mov_b32 m0, s3", "ds_read_addtid_b32 v2", 1},
    {"4.4", "s_mov_b32 m0, s3", "ds_read_b32 v2, v3", 0},
    {"4.4", "s_mov_b32 s12, s3", "buffer_load_dword v2, v3, s[8:11], s12 offen", 0},
    {"4.4", "s_mov_b32 s12, s3", "v_readlane_b32 s40, v2, s12", 0},
    {"4.4", "global_store_dwordx4 v[70:71], v[0:3], off", "v_mov_b32 v3, 0", 2},
    {"4.4", "global_store_dwordx3 v[70:71], v[0:2], off", "v_mov_b32 v2, 0", 2},
    {"4.4", "flat_store_dwordx4 v[70:71], v[0:3]", "v_mov_b32 v3, 0", 2},
    {"4.4", "buffer_store_dwordx4 v[0:3], v70, s[8:11], 0 offen", "v_mov_b32 v3, 0", 2},
    {"4.4", "global_store_dwordx4 v[70:71], v[0:3], off", "v_mfma_f32_16x16x32_bf16 v[0:3], v[20:23], v[24:27], v[4:7]",
     2},
    {"4.4", "global_store_dwordx4 v[70:71], v[0:3], off", "ds_read_b32 v3, v4", 1},
    {"4.4", "buffer_store_dwordx4 v[0:3], v70, s[8:11], s12 offen", "v_mov_b32 v3, 0", 0},
    {"4.4", "global_store_dwordx2 v[70:71], v[0:1], off", "v_mov_b32 v1, 0", 0},
    {"4.4", "ds_write_b128 v70, v[0:3]", "v_mov_b32 v3, 0", 0},
    {"4.4", "v_mov_b32 v0, v1", "global_store_dword v[70:71], v0, off", 0},
    {"4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3", "s_getreg_b32 s4, hwreg(HW_REG_MODE)", 2},
    {"4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3", "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s3", 2},
    {"4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3", "v_mov_b32 v0, v1", 0},
    {"4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s3", "v_mov_b32 v0, v1", 2},
    {"4.4", "s_setreg_b32 hwreg(HW_REG_MODE, 28, 1), s3", "ds_read_b32 v0, v1", 2},
};

std::string between(const Row& row, unsigned states) {
  return std::string(row.producer) + "\n" + nops(states) + row.consumer + "\ns_waitcnt vmcnt(0) lgkmcnt(0)\n";
}

class HazardRow : public ::testing::TestWithParam<Row> {};

TEST_P(HazardRow, OneStateShortIsReportedAndEnoughIsNot) {
  const Row& row = GetParam();
  const VerifyReport met = verify_body(between(row, row.states));
  EXPECT_TRUE(met.findings.empty()) << listing_of(met);
  if (row.states == 0) return;
  const VerifyReport shy = verify_body(between(row, row.states - 1));
  ASSERT_EQ(shy.findings.size(), 1u) << listing_of(shy);
  EXPECT_EQ(shy.findings[0].kind, FindingKind::kWaitStates);
  EXPECT_THAT(shy.findings[0].message, HasSubstr(std::to_string(row.states - 1) + " wait states after"));
  EXPECT_THAT(shy.findings[0].message, HasSubstr("; " + std::to_string(row.states) + " required"));
}

std::string row_name(const ::testing::TestParamInfo<Row>& info) {
  std::string name = "Row" + std::to_string(info.index) + "_";
  for (char c : std::string(info.param.section)) name += c == '.' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(Section4, HazardRow, ::testing::ValuesIn(kRows), row_name);

TEST(Hazards, EveryRuleOfTheTableIsProvokedByARow) {
  std::string all;
  for (const Row& row : kRows)
    if (row.states != 0) all += listing_of(verify_body(between(row, row.states - 1)));
  for (const verify::HazardRule& rule : verify::hazard_rules())
    EXPECT_THAT(all, HasSubstr("(" + std::string(rule.name) + ")"));
}

TEST(Hazards, AnyInstructionCountsAsOneState) {
  std::string fill;
  for (int i = 0; i < 19; ++i) fill += i % 2 ? "s_mov_b32 s20, 0\n" : "v_mov_b32 v90, 0\n";
  const std::string head = std::string(kXdl16) + "\n" + fill;
  EXPECT_EQ(of_kind(verify_body(head + "v_mov_b32 v70, v1\n"), FindingKind::kWaitStates).size(), 1u);
  EXPECT_TRUE(verify_body(head + "s_setprio 0\nv_mov_b32 v70, v1\n").findings.empty());
}

TEST(Hazards, FindingNamesInstructionRegisterProducerAndCounts) {
  const VerifyReport r = verify_body(std::string(kXdl16) + "\ns_nop 2\nglobal_store_dwordx2 v[70:71], v[4:5], off\n");
  ASSERT_EQ(r.findings.size(), 1u) << listing_of(r);
  EXPECT_THAT(r.findings[0].instruction, HasSubstr("global_store_dwordx2"));
  EXPECT_THAT(r.findings[0].message, HasSubstr("reads v[4:5] 3 wait states after `v_mfma_f32_32x32x64_f8f6f4"));
  EXPECT_THAT(r.findings[0].message, HasSubstr("20 required"));
}

TEST(Hazards, OnlyTheNearestMatrixWriterCounts) {
  // The 16-pass result is rewritten by an 8-pass MFMA that accumulates on it; only the latter's 10 states are owed, but
  // half a rewrite leaves the other half with the first.
  const std::string first = std::string(kXdl16) + "\n";
  const std::string chained = "v_mfma_f32_32x32x16_bf16 v[0:15], v[40:43], v[44:47], v[0:15]\n";
  const std::string use = std::string(kOtherC) + "\n";
  EXPECT_TRUE(verify_body(first + chained + nops(10) + use).findings.empty());
  EXPECT_EQ(verify_body(first + chained + nops(9) + use).findings.size(), 1u);
  const std::string part = "v_mfma_f32_16x16x32_bf16 v[0:3], v[40:43], v[44:47], v[64:67]\n" + nops(17);
  EXPECT_TRUE(verify_body(first + part + "v_mov_b32 v70, v3\n").findings.empty());
  EXPECT_EQ(verify_body(first + part + "v_mov_b32 v70, v4\n").findings.size(), 1u);
}

TEST(Hazards, FollowsTheBackEdgeOfALoop) {
  // The consumer stands before the producer: only the second trip meets the hazard.
  const auto loop = [](unsigned tail) {
    return "s_mov_b32 s30, 4\nloop:\nv_mov_b32 v70, v1\n" + std::string(kXdl16) + "\n" + nops(tail) +
           "s_sub_u32 s30, s30, 1\ns_cmp_lg_u32 s30, 0\ns_cbranch_scc1 loop\n" + nops(20);
  };
  const VerifyReport bad = verify_body(loop(16));
  ASSERT_EQ(bad.findings.size(), 1u) << listing_of(bad);
  EXPECT_THAT(bad.findings[0].message, HasSubstr("19 wait states after"));
  EXPECT_TRUE(verify_body(loop(17)).findings.empty());
}

TEST(Hazards, FollowsEveryBranch) {
  // The short path jumps over the filler.
  const auto fork = [](unsigned before) {
    return std::string(kXdl8) + "\n" + nops(before) + "s_cbranch_scc0 join\n" + nops(12) + "join:\nv_mov_b32 v70, v1\n";
  };
  const VerifyReport bad = verify_body(fork(10));
  ASSERT_EQ(bad.findings.size(), 1u) << listing_of(bad);
  EXPECT_THAT(bad.findings[0].message, HasSubstr("11 wait states after"));
  EXPECT_TRUE(verify_body(fork(11)).findings.empty());
}

TEST(Hazards, TinyLoopsDoNotStall) {
  // Many one-instruction blocks: the walk must stay bounded.
  std::string body = std::string(kXdl16) + "\n";
  for (int i = 0; i < 60; ++i) body += "l" + std::to_string(i) + ":\ns_cbranch_scc0 l" + std::to_string(i) + "\n";
  const VerifyReport r = verify_body(body + "v_mov_b32 v70, v1\n");
  EXPECT_TRUE(r.findings.empty()) << listing_of(r);
}

TEST(WaitStates, DoublePrecisionMfmaIsNotedAsUnchecked) {
  const VerifyReport r =
      verify_body("v_mfma_f64_16x16x4_f64 v[0:7], v[40:41], v[42:43], v[0:7]\n" + std::string(kReadD) +
                  "\nv_mfma_f64_16x16x4_f64 v[0:7], v[40:41], v[42:43], v[0:7]\n");
  ASSERT_EQ(r.notes.size(), 1u) << listing_of(r);
  EXPECT_THAT(r.notes[0], HasSubstr("not checked: wait states after the results of f64 MFMAs"));
  EXPECT_THAT(r.notes[0], HasSubstr(": 2, the first `v_mfma_f64_16x16x4_f64 v[0:7]"));
  EXPECT_TRUE(verify_body(std::string(kXdl4) + "\n").notes.empty());
}

// A chain of branches, each to an MFMA of its own; all meet before an instruction that reads none of the results. The
// nearest way into the chain is the one looked at first, so that all others arrive where it has been.
std::string fan(int ways) {
  std::string chain, targets;
  for (int i = 0; i < ways; ++i) {
    const std::string name = "way" + std::to_string(i);
    chain += "s_cbranch_scc0 " + name + "\n";
    targets = name + ":\nv_mfma_f32_16x16x32_bf16 v[0:3], v[20:23], v[24:27], v[4:7]\ns_branch meet\n" + targets;
  }
  return chain + "s_branch meet\n" + targets + "meet:\nv_mov_b32 v70, v90\n";
}

TEST(WaitStates, PathsLeftOutAreNoted) {
  EXPECT_TRUE(verify_body(fan(4)).notes.empty());
  const VerifyReport r = verify_body(fan(400));
  EXPECT_TRUE(r.findings.empty()) << listing_of(r);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_THAT(r.notes[0], HasSubstr("checked in part: instructions with so many paths before them"));
  EXPECT_THAT(r.notes[0], HasSubstr("the first `v_m"));
}

}  // namespace
}  // namespace zyfa::jit::testing
