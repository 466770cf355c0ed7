// Facts of decoded instructions against a table written by hand from the CDNA4 operand descriptions (gfx950-isa.md).
#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "jit/isa/facts.h"
#include "tests/unit/jit_llvm/code_helpers.h"
#include "tests/unit/jit_llvm/sample_listing.h"

namespace zyfa::jit {
namespace {

// "v[4:7] s3 vcc" as sorted single-register names, so that the order and the way of splitting ranges do not matter.
std::vector<std::string> expand(const std::vector<RegRange>& ranges) {
  static const char* const kSpecial[] = {"vcc", "exec", "m0", "scc", "mode"};
  static const std::map<Bank, std::string> kPrefix = {{Bank::kVgpr, "v"}, {Bank::kSgpr, "s"}, {Bank::kAgpr, "a"}};
  std::vector<std::string> names;
  for (const RegRange& range : ranges) {
    for (unsigned i = 0; i < range.count; ++i) {
      names.push_back(range.bank == Bank::kSpecial ? kSpecial[range.first]
                                                   : kPrefix.at(range.bank) + std::to_string(range.first + i));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> expand(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream in(list);
  for (std::string token; in >> token;) {
    const std::size_t bracket = token.find('[');
    if (bracket == std::string::npos) {
      names.push_back(token);
      continue;
    }
    const int first = std::stoi(token.substr(bracket + 1));
    const int last = std::stoi(token.substr(token.find(':') + 1));
    for (int i = first; i <= last; ++i) names.push_back(token.substr(0, bracket) + std::to_string(i));
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Row {
  const char* text;
  FactClass cls;
  const char* writes;
  const char* reads;
};

const Row kRows[] = {
    // Scalar
    {"s_mov_b32 s3, s4", FactClass::kSalu, "s3", "s4"},
    {"s_mov_b32 m0, s4", FactClass::kSalu, "m0", "s4"},
    {"s_mov_b64 exec, s[4:5]", FactClass::kSalu, "exec", "s[4:5]"},
    {"s_add_u32 s3, s4, 7", FactClass::kSalu, "s3 scc", "s4"},
    {"s_addc_u32 s3, s4, s5", FactClass::kSalu, "s3 scc", "s4 s5 scc"},
    {"s_cselect_b32 s3, s4, s5", FactClass::kSalu, "s3", "s4 s5 scc"},
    {"s_cmp_lt_i32 s4, s5", FactClass::kSalu, "scc", "s4 s5"},
    {"s_mul_i32 s3, s4, s5", FactClass::kSalu, "s3", "s4 s5"},
    {"s_and_saveexec_b64 s[4:5], vcc", FactClass::kSalu, "s[4:5] exec scc", "vcc exec"},
    {"s_getpc_b64 s[4:5]", FactClass::kSalu, "s[4:5]", ""},
    {"s_branch L", FactClass::kBranch, "", ""},
    {"s_cbranch_scc1 L", FactClass::kBranch, "", "scc"},
    {"s_cbranch_vccz L", FactClass::kBranch, "", "vcc"},
    {"s_cbranch_execz L", FactClass::kBranch, "", "exec"},
    {"s_swappc_b64 s[4:5], s[6:7]", FactClass::kBranch, "s[4:5]", "s[6:7]"},
    {"s_setprio 2", FactClass::kOther, "", ""},
    {"s_sleep 3", FactClass::kOther, "", ""},
    {"s_barrier", FactClass::kBarrier, "", ""},
    {"s_endpgm", FactClass::kEndpgm, "", ""},
    {"s_load_dword s3, s[4:5], 0x10", FactClass::kSmem, "s3", "s[4:5]"},
    {"s_load_dwordx8 s[8:15], s[4:5], 0x10", FactClass::kSmem, "s[8:15]", "s[4:5]"},
    {"s_load_dwordx16 s[16:31], s[4:5], s7", FactClass::kSmem, "s[16:31]", "s[4:5] s7"},
    {"s_buffer_load_dwordx4 s[8:11], s[4:7], 0x10", FactClass::kSmem, "s[8:11]", "s[4:7]"},
    {"s_memtime s[4:5]", FactClass::kSmem, "s[4:5]", ""},
    {"s_setreg_b32 hwreg(HW_REG_MODE), s4", FactClass::kSetreg, "mode", "s4 mode"},
    {"s_getreg_b32 s4, hwreg(HW_REG_MODE)", FactClass::kGetreg, "s4", "mode"},
    // Vector ALU
    {"v_mov_b32 v1, 0x12345678", FactClass::kValu, "v1", ""},
    {"v_add_u32 v1, s2, v3", FactClass::kValu, "v1", "s2 v3"},
    {"v_fma_f32 v1, v2, -v3, |v4|", FactClass::kValu, "v1", "v[2:4]"},
    {"v_fmac_f32 v1, v2, v3", FactClass::kValu, "v1", "v[1:3]"},
    {"v_pk_fma_f32 v[2:3], v[4:5], s[6:7], v[8:9]", FactClass::kValu, "v[2:3]", "v[4:5] s[6:7] v[8:9]"},
    {"v_cmp_gt_f32 vcc, v1, v2", FactClass::kValu, "vcc", "v1 v2"},
    {"v_cmp_gt_f32 s[4:5], v1, v2", FactClass::kValu, "s[4:5]", "v1 v2"},
    {"v_cmpx_gt_f32 vcc, v1, v2", FactClass::kCmpx, "vcc exec", "v1 v2"},
    {"v_cmpx_gt_f32 s[4:5], v1, v2", FactClass::kCmpx, "s[4:5] exec", "v1 v2"},
    {"v_cndmask_b32 v1, v2, v3, vcc", FactClass::kValu, "v1", "v2 v3 vcc"},
    {"v_cndmask_b32 v1, v2, v3, s[4:5]", FactClass::kValu, "v1", "v2 v3 s[4:5]"},
    {"v_addc_co_u32 v1, vcc, v2, v3, vcc", FactClass::kValu, "v1 vcc", "v2 v3 vcc"},
    {"v_mad_u64_u32 v[2:3], s[4:5], v6, v7, v[8:9]", FactClass::kValu, "v[2:3] s[4:5]", "v6 v7 v[8:9]"},
    {"v_exp_f32 v1, v2", FactClass::kTrans, "v1", "v2"},
    {"v_rcp_f32 v1, s2", FactClass::kTrans, "v1", "s2"},
    {"v_sqrt_f64 v[2:3], v[4:5]", FactClass::kTrans, "v[2:3]", "v[4:5]"},
    {"v_permlane32_swap_b32 v1, v2", FactClass::kPermlaneSwap, "v1 v2", "v1 v2"},
    {"v_permlane16_swap_b32 v1, v2", FactClass::kPermlaneSwap, "v1 v2", "v1 v2"},
    {"v_swap_b32 v1, v2", FactClass::kValu, "v1 v2", "v1 v2"},
    {"v_readlane_b32 s1, v2, s3", FactClass::kReadlane, "s1", "v2 s3"},
    {"v_readfirstlane_b32 s1, v2", FactClass::kReadlane, "s1", "v2"},
    {"v_writelane_b32 v1, s2, m0", FactClass::kReadlane, "v1", "v1 s2 m0"},
    {"v_dot2_f32_bf16 v1, v2, v3, v4", FactClass::kDot, "v1", "v[2:4]"},
    {"v_dot2c_f32_f16 v1, v2, v3", FactClass::kDot, "v1", "v[1:3]"},
    {"v_div_fmas_f32 v1, v2, v3, v4", FactClass::kDivFmas, "v1", "v[2:4] vcc"},
    {"v_cvt_pk_fp8_f32 v1, v2, v3", FactClass::kValu, "v1", "v[1:3]"},
    {"v_cvt_pk_u8_f32 v1, v2, 1, v3", FactClass::kValu, "v1", "v2 v3"},
    {"v_accvgpr_read_b32 v1, a2", FactClass::kValu, "v1", "a2"},
    {"v_accvgpr_write_b32 a1, v2", FactClass::kValu, "a1", "v2"},
    {"v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", FactClass::kValu, "v1", "v1 v2"},
    {"v_mov_b32_dpp v1, v2 row_ror:8 row_mask:0xf bank_mask:0xf bound_ctrl:0", FactClass::kValu, "v1", "v2"},
    {"v_add_u32_sdwa v1, v2, v3 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:WORD_1",
     FactClass::kValu, "v1", "v[1:3]"},
    // Matrix
    {"v_mfma_f32_32x32x16_bf16 v[16:31], v[4:7], a[8:11], 0", FactClass::kMfmaXdl, "v[16:31]", "v[4:7] a[8:11]"},
    {"v_mfma_f32_32x32x16_bf16 a[16:31], v[4:7], v[8:11], a[16:31]", FactClass::kMfmaXdl, "a[16:31]",
     "v[4:7] v[8:11] a[16:31]"},
    {"v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15], v40, v41", FactClass::kMfmaXdl, "v[0:15]",
     "v[0:31] v40 v41"},
    {"v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]", FactClass::kMfmaSgemm, "v[0:15]", "v[0:17]"},
    {"v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]", FactClass::kMfmaDgemm, "v[0:7]", "v[0:11]"},
    {"v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[16:19], v[24:31], v40", FactClass::kSmfmac, "v[0:3]",
     "v[0:3] v[16:19] v[24:31] v40"},
    // LDS
    {"ds_read_b128 v[4:7], v1 offset:16", FactClass::kLds, "v[4:7]", "v1"},
    {"ds_read_b64_tr_b16 v[4:5], v1", FactClass::kLds, "v[4:5]", "v1"},
    {"ds_read_u16_d16 v4, v1", FactClass::kLds, "v4", "v1 v4"},
    {"ds_write_b64 v1, a[4:5]", FactClass::kLds, "", "v1 a[4:5]"},
    {"ds_write2_b32 v1, v2, v3 offset0:1 offset1:2", FactClass::kLds, "", "v[1:3]"},
    {"ds_add_rtn_u32 v4, v1, v2", FactClass::kLds, "v4", "v1 v2"},
    {"ds_bpermute_b32 v4, v1, v2", FactClass::kLds, "v4", "v1 v2"},
    {"ds_read_addtid_b32 v4", FactClass::kLds, "v4", "m0"},
    // Vector memory
    {"buffer_load_dwordx4 v[4:7], v1, s[8:11], s3 offen", FactClass::kVmemLoad, "v[4:7]", "v1 s[8:11] s3"},
    {"buffer_load_dwordx4 v1, s[8:11], 0 offen lds", FactClass::kVmemLoad, "", "v1 s[8:11] m0"},
    {"buffer_load_short_d16_hi v4, v1, s[8:11], 0 offen", FactClass::kVmemLoad, "v4", "v1 v4 s[8:11]"},
    {"buffer_store_dwordx4 a[4:7], v1, s[8:11], s3 offen", FactClass::kVmemStore, "", "a[4:7] v1 s[8:11] s3"},
    {"buffer_atomic_add v4, v1, s[8:11], 0 offen sc0", FactClass::kVmemAtomic, "v4", "v4 v1 s[8:11]"},
    {"global_load_dwordx4 v[4:7], v1, s[2:3]", FactClass::kVmemLoad, "v[4:7]", "v1 s[2:3]"},
    {"global_load_short_d16 v4, v[2:3], off", FactClass::kVmemLoad, "v4", "v[2:4]"},
    {"global_load_lds_dwordx4 v[0:1], off", FactClass::kVmemLoad, "", "v[0:1] m0"},
    {"global_store_dwordx3 v[2:3], v[4:6], off", FactClass::kVmemStore, "", "v[2:6]"},
    {"global_atomic_add_f32 v1, v2, s[2:3]", FactClass::kVmemAtomic, "", "v1 v2 s[2:3]"},
    {"global_atomic_add v4, v1, v2, s[2:3] sc0", FactClass::kVmemAtomic, "v4", "v1 v2 s[2:3]"},
    {"flat_load_dword v1, v[2:3]", FactClass::kFlat, "v1", "v[2:3]"},
    {"flat_store_dwordx4 v[2:3], v[4:7]", FactClass::kFlat, "", "v[2:7]"},
    {"scratch_store_dwordx2 v1, v[2:3], off", FactClass::kVmemStore, "", "v[1:3]"},
    {"buffer_wbl2 sc1", FactClass::kVmemStore, "", ""},
};

class FactTableTest : public ::testing::TestWithParam<Row> {};

TEST_P(FactTableTest, ClassReadsAndWrites) {
  const Row& row = GetParam();
  const Decoded decoded = must(disassemble(code_of(std::string("L:\n") + row.text))).front();
  EXPECT_EQ(static_cast<int>(decoded.facts.cls), static_cast<int>(row.cls)) << decoded.text;
  EXPECT_EQ(expand(decoded.facts.writes), expand(row.writes)) << decoded.text;
  EXPECT_EQ(expand(decoded.facts.reads), expand(row.reads)) << decoded.text;
}

INSTANTIATE_TEST_SUITE_P(Hand, FactTableTest, ::testing::ValuesIn(kRows));

TEST(Facts, MatrixRoles) {
  const InstFacts f =
      decoded_one("v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[16:23], a[24:31], a[4:7], v40, v41").facts;
  EXPECT_EQ(f.mfma_d, (RegRange{Bank::kAgpr, 0, 4}));
  EXPECT_EQ(f.mfma_a, (RegRange{Bank::kVgpr, 16, 8}));
  EXPECT_EQ(f.mfma_b, (RegRange{Bank::kAgpr, 24, 8}));
  EXPECT_EQ(f.mfma_c, (RegRange{Bank::kAgpr, 4, 4}));
  EXPECT_EQ(f.mfma_scale_a, (RegRange{Bank::kVgpr, 40, 1}));
  EXPECT_EQ(f.mfma_scale_b, (RegRange{Bank::kVgpr, 41, 1}));
  EXPECT_EQ(decoded_one("v_mfma_f32_32x32x16_bf16 v[16:31], v[4:7], v[8:11], 1.0").facts.mfma_c.count, 0);
  const InstFacts s = decoded_one("v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[16:19], v[24:31], v40").facts;
  EXPECT_EQ(s.mfma_d, (RegRange{Bank::kVgpr, 0, 4}));
  EXPECT_EQ(s.mfma_c, s.mfma_d);
}

// gfx950-isa.md 1.5, 1.7, 1.8.
TEST(Facts, MatrixPasses) {
  const std::pair<const char*, int> rows[] = {
      {"v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]", 16},
      {"v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:27], v[0:15] cbsz:1 blgp:4", 16},
      {"v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:19], v[24:31], v[0:15] cbsz:4", 16},
      {"v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:19], v[24:27], v[0:15] cbsz:4 blgp:4", 8},
      {"v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:21], v[24:29], v[0:15] cbsz:2 blgp:3", 8},
      {"v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15], v40, v41", 16},
      {"v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[16:23], v[24:31], v[0:3]", 8},
      {"v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[16:19], v[24:27], v[0:3] cbsz:4 blgp:4", 4},
      {"v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[24:27], v[0:15]", 8},
      {"v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[24:27], v[0:15]", 8},
      {"v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[16:17], v[24:25], v[0:15]", 8},
      {"v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[24:25], v[0:15]", 8},
      {"v_mfma_f32_16x16x32_bf16 v[0:3], v[16:19], v[24:27], v[0:3]", 4},
      {"v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[16:17], v[24:25], v[0:3]", 4},
      {"v_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[24:25], v[0:3]", 4},
      {"v_mfma_f32_4x4x4_16b_f16 v[0:3], v[16:17], v[24:25], v[0:3]", 2},
      {"v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]", 16},
      {"v_mfma_f32_16x16x4_f32 v[0:3], v16, v17, v[0:3]", 8},
      {"v_mfma_i32_32x32x32_i8 v[0:15], v[16:19], v[20:23], v[0:15]", 8},
      {"v_mfma_i32_16x16x64_i8 v[0:3], v[16:19], v[20:23], v[0:3]", 4},
      {"v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[16:19], v[24:31], v40", 4},
      // Not in the reference: resource cycles that llvm-mca 22 reports for gfx950.
      {"v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]", 16},
      {"v_mfma_f64_4x4x4_4b_f64 v[0:1], v[8:9], v[10:11], v[0:1]", 4},
      {"v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], v[0:31]", 16},
      {"v_mfma_f32_16x16x4_4b_f16 v[0:15], v[32:33], v[34:35], v[0:15]", 8},
      {"v_mfma_i32_32x32x4_2b_i8 v[0:31], v32, v34, v[0:31]", 16},
      {"v_mfma_i32_16x16x4_4b_i8 v[0:15], v32, v34, v[0:15]", 8},
      {"v_mfma_f32_32x32x1_2b_f32 v[0:31], v32, v34, v[0:31]", 16},
      {"v_mfma_f32_16x16x1_4b_f32 v[0:15], v32, v34, v[0:15]", 8},
      {"v_mfma_f32_4x4x1_16b_f32 v[0:3], v32, v34, v[0:3]", 2},
      {"v_smfmac_f32_32x32x32_bf16 v[0:15], v[16:19], v[24:31], v40", 8},
      {"v_smfmac_f32_16x16x32_f16 v[0:3], v[16:17], v[24:27], v40", 4},
      {"v_smfmac_i32_32x32x64_i8 v[0:15], v[16:19], v[24:31], v40", 8},
  };
  for (const auto& [text, passes] : rows) EXPECT_EQ(int{decoded_one(text).facts.mfma_passes}, passes) << text;
  EXPECT_EQ(decoded_one("v_add_u32 v1, v2, v3").facts.mfma_passes, 0);
}

TEST(Facts, Stores) {
  const struct {
    const char* text;
    int dwords;
    RegRange data;
  } rows[] = {
      {"buffer_store_dwordx4 v[4:7], v1, s[8:11], 0 offen", 4, {Bank::kVgpr, 4, 4}},
      {"buffer_store_short v4, v1, s[8:11], 0 offen", 1, {Bank::kVgpr, 4, 1}},
      {"buffer_store_dwordx3 a[4:6], off, s[8:11], 0", 3, {Bank::kAgpr, 4, 3}},
      {"buffer_atomic_add_x2 v[4:5], v1, s[8:11], 0 offen sc0", 2, {Bank::kVgpr, 4, 2}},
      {"global_store_dwordx4 v1, v[4:7], s[2:3]", 4, {Bank::kVgpr, 4, 4}},
      {"global_store_dwordx2 v[0:1], a[4:5], off", 2, {Bank::kAgpr, 4, 2}},
      {"flat_store_dwordx3 v[0:1], v[4:6]", 3, {Bank::kVgpr, 4, 3}},
      {"scratch_store_dwordx4 off, v[4:7], s0", 4, {Bank::kVgpr, 4, 4}},
      {"scratch_store_dword v1, v4, off", 1, {Bank::kVgpr, 4, 1}},
      {"global_atomic_add v9, v1, v4, s[2:3] sc0", 1, {Bank::kVgpr, 4, 1}},
      {"ds_write_b128 v1, v[4:7]", 4, {Bank::kVgpr, 4, 4}},
      {"ds_write2_b64 v1, v[4:5], v[6:7]", 4, {Bank::kVgpr, 4, 2}},
      {"ds_add_u32 v1, v4", 1, {Bank::kVgpr, 4, 1}},
  };
  for (const auto& row : rows) {
    const InstFacts f = decoded_one(row.text).facts;
    EXPECT_EQ(int{f.store_dwords}, row.dwords) << row.text;
    EXPECT_EQ(f.store_data, row.data) << row.text;
  }
  EXPECT_EQ(decoded_one("global_load_dwordx4 v[4:7], v1, s[2:3]").facts.store_dwords, 0);
  EXPECT_EQ(decoded_one("ds_read_b128 v[4:7], v1").facts.store_dwords, 0);
  EXPECT_EQ(decoded_one("ds_bpermute_b32 v4, v1, v2").facts.store_dwords, 0);
}

TEST(Facts, MemoryModifiers) {
  EXPECT_TRUE(decoded_one("buffer_load_dword v1, s[8:11], s3 offen lds").facts.lds_dma);
  EXPECT_TRUE(decoded_one("buffer_load_dword off, s[8:11], s3 offset:16 lds").facts.lds_dma);
  EXPECT_TRUE(decoded_one("global_load_lds_dword v[0:1], off").facts.lds_dma);
  EXPECT_FALSE(decoded_one("buffer_load_dword v2, v1, s[8:11], s3 offen").facts.lds_dma);
  EXPECT_TRUE(decoded_one("buffer_load_dword v2, v1, s[8:11], s3 offen").facts.soffset_is_sgpr);
  EXPECT_TRUE(decoded_one("buffer_load_dword v2, v1, s[8:11], m0 offen").facts.soffset_is_sgpr);
  EXPECT_FALSE(decoded_one("buffer_load_dword v2, v1, s[8:11], 0 offen").facts.soffset_is_sgpr);
}

TEST(Facts, PartialWritesAndSelects) {
  EXPECT_FALSE(decoded_one("v_cvt_pk_fp8_f32 v1, v2, v3").facts.dest_half_select);
  EXPECT_TRUE(decoded_one("v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]").facts.dest_half_select);
  EXPECT_TRUE(decoded_one("v_cvt_sr_fp8_f32 v1, v2, v3").facts.dest_half_select);
  EXPECT_TRUE(decoded_one("v_cvt_scalef32_pk_fp8_f32 v1, v2, v3, v4 op_sel:[0,0,0,1]").facts.dest_half_select);
  EXPECT_TRUE(decoded_one("v_mad_i16 v1, v2, v3, v4 op_sel:[0,0,0,1]").facts.dest_half_select);
  EXPECT_FALSE(decoded_one("v_mad_i16 v1, v2, v3, v4 op_sel:[1,1,1,0]").facts.dest_half_select);
  EXPECT_FALSE(decoded_one("v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9] op_sel:[1,1,1]").facts.dest_half_select);
  EXPECT_TRUE(decoded_one("v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 src0_sel:DWORD").facts.dest_half_select);
  EXPECT_FALSE(decoded_one("v_mov_b32_sdwa v1, v2 dst_sel:DWORD src0_sel:WORD_1").facts.dest_half_select);
  EXPECT_TRUE(decoded_one("v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 src0_sel:DWORD").facts.is_sdwa);
  EXPECT_TRUE(decoded_one("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf").facts.is_dpp);
  EXPECT_EQ(decoded_one("v_readlane_b32 s1, v2, s3").facts.lane_select, (RegRange{Bank::kSgpr, 3, 1}));
  EXPECT_EQ(decoded_one("v_writelane_b32 v1, 5, s3").facts.lane_select, (RegRange{Bank::kSgpr, 3, 1}));
  EXPECT_EQ(decoded_one("v_readlane_b32 s1, v2, 5").facts.lane_select.count, 0);
  EXPECT_TRUE(decoded_one("v_add_u32 v1, src_vccz, v2").facts.reads_vccz);
  EXPECT_TRUE(decoded_one("v_add_u32 v1, src_execz, v2").facts.reads_execz);
}

TEST(Facts, CountersAndNops) {
  EXPECT_EQ(decoded_one("s_waitcnt vmcnt(0)").facts.waitcnt, 0x0f70);
  EXPECT_EQ(decoded_one("s_waitcnt lgkmcnt(0)").facts.waitcnt, 0xc07f);
  EXPECT_EQ(decoded_one("s_waitcnt vmcnt(37)").facts.waitcnt, 0x8f75);
  EXPECT_EQ(decoded_one("s_nop 0").facts.nop_states, 1);
  EXPECT_EQ(decoded_one("s_nop 7").facts.nop_states, 8);
  EXPECT_EQ(decoded_one("v_mov_b32 v1, v2").facts.nop_states, 1);
  EXPECT_EQ(decoded_one("v_mov_b32 v1, v2").facts.waitcnt, 0xffff);
}

// Two independent sources of facts, the opcode table of jit/isa and LLVM's descriptions, agree on every opcode.
TEST(Facts, OpcodeTableAgreesWithLlvm) {
  const Listing listing = sample::every_opcode();
  const auto linked = must(assemble(listing, sample::declaration(listing.symbol)));
  const CodeObject object = must(read_code_object(linked));
  const auto decoded = must(disassemble(object.text.first(object.kernels.at(0).code_bytes)));
  std::size_t at = 0;
  for (const Instruction& instruction : listing.code) {
    if (op_info(instruction.op).unit == Unit::kPseudo) continue;
    const InstFacts listed = facts_of(instruction);
    const Decoded& row = decoded.at(at++);
    SCOPED_TRACE(row.text);
    EXPECT_EQ(static_cast<int>(listed.cls), static_cast<int>(row.facts.cls));
    EXPECT_EQ(expand(listed.writes), expand(row.facts.writes));
    EXPECT_EQ(expand(listed.reads), expand(row.facts.reads));
    EXPECT_EQ(listed.mfma_d, row.facts.mfma_d);
    EXPECT_EQ(listed.mfma_a, row.facts.mfma_a);
    EXPECT_EQ(listed.mfma_b, row.facts.mfma_b);
    EXPECT_EQ(listed.mfma_c, row.facts.mfma_c);
    EXPECT_EQ(listed.mfma_scale_a, row.facts.mfma_scale_a);
    EXPECT_EQ(listed.mfma_passes, row.facts.mfma_passes);
    EXPECT_EQ(listed.lds_dma, row.facts.lds_dma);
    EXPECT_EQ(listed.soffset_is_sgpr, row.facts.soffset_is_sgpr);
    EXPECT_EQ(listed.nop_states, row.facts.nop_states);
    EXPECT_EQ(listed.waitcnt, row.facts.waitcnt);
    EXPECT_EQ(listed.dest_half_select, row.facts.dest_half_select);
    if (row.facts.cls == FactClass::kVmemStore) {
      EXPECT_EQ(listed.store_data, row.facts.store_data);
      EXPECT_EQ(listed.store_dwords, row.facts.store_dwords);
    }
  }
  EXPECT_EQ(at, decoded.size());
}

}  // namespace
}  // namespace zyfa::jit
