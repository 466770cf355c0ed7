// Planted faults: each is caught by strict mode with a finding of its kind at its instruction, and its clean twin runs
// without a finding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

struct Fault {
  const char* name;
  const char* kind;         // of the finding
  const char* instruction;  // start of the disassembly it must name
  const char* code;         // "@" marks the place of the cure
  const char* cure;
  unsigned workgroup = 64;
  unsigned lds = 0;
};

// Every kernel starts with: s[4:5] input, s[6:7] output, v0 work-item, v1 = 4 * v0, v2 and v3 = 1.0, v[8:23] = 0.
constexpr char kSetup[] = R"(
s_load_dwordx4 s[4:7], s[0:1], 0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
v_mov_b32 v2, 1.0
v_mov_b32 v3, 1.0
v_mov_b32 v4, 1.0
v_mov_b32 v5, 1.0
v_mov_b32 v6, 1.0
v_mov_b32 v7, 1.0
.set i, 8
.rept 24
v_mov_b32 v[i], 0
.set i, i+1
.endr
s_waitcnt lgkmcnt(0)
s_nop 4
)";

const Fault kFaults[] = {
    // Waits.
    {"GlobalLoadNotWaited", "missing-wait", "v_add_u32_e32 v41, v40, v1",
     "global_load_dword v40, v1, s[4:5]\n@v_add_u32 v41, v40, v1", "s_waitcnt vmcnt(0)\n"},
    {"VmcntTooLarge", "missing-wait", "v_add_u32_e32 v42, v41, v40",
     "global_load_dword v40, v1, s[4:5]\nglobal_load_dword v41, v1, s[4:5]\ns_waitcnt vmcnt(1)\n@v_add_u32 v42, v41, "
     "v40",
     "s_waitcnt vmcnt(0)\n"},
    {"StoreOfLoadNotWaited", "missing-wait", "global_store_dword",
     "global_load_dword v40, v1, s[4:5]\n@global_store_dword v1, v40, s[6:7]", "s_waitcnt vmcnt(0)\n"},
    {"AddressNotWaited", "missing-wait", "global_load_dword v41",
     "global_load_dword v40, v1, s[4:5]\n@global_load_dword v41, v40, s[4:5]\ns_waitcnt vmcnt(0)",
     "s_waitcnt vmcnt(0)\n"},
    {"ScalarLoadNotWaited", "missing-wait", "s_add_u32", "s_load_dword s20, s[0:1], 0\n@s_add_u32 s21, s20, 1",
     "s_waitcnt lgkmcnt(0)\n"},
    {"ScalarLoadWaitedByCount", "missing-wait", "s_add_u32",
     "s_load_dword s20, s[0:1], 0\ns_load_dword s22, s[0:1], 0\ns_waitcnt lgkmcnt(1)\n@s_add_u32 s21, s20, 1",
     "s_waitcnt lgkmcnt(0)\n"},
    {"LdsReadNotWaited", "missing-wait", "v_add_u32_e32 v41",
     "ds_write_b32 v1, v0\nds_read_b32 v40, v1\n@v_add_u32 v41, v40, v1", "s_waitcnt lgkmcnt(0)\n", 64, 1024},
    {"LdsReadByCount", "missing-wait", "v_add_u32_e32 v42, v41",
     "ds_write_b32 v1, v0\nds_read_b32 v40, v1\nds_read_b32 v41, v1\ns_waitcnt lgkmcnt(1)\n@v_add_u32 v42, v41, v40",
     "s_waitcnt lgkmcnt(0)\n", 64, 1024},
    {"OverwriteBeforeLanding", "missing-wait", "v_mov_b32_e32 v40",
     "global_load_dword v40, v1, s[4:5]\n@v_mov_b32 v40, 0", "s_waitcnt vmcnt(0)\n"},
    {"BranchOnLoadedScalar", "missing-wait", "s_cmp_eq_u32",
     "s_load_dword s20, s[0:1], 0\n@s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 1\ns_nop 0", "s_waitcnt lgkmcnt(0)\n"},
    // Wait states: one short, and enough.
    {"MfmaToValu8Passes", "wait-states", "v_add_f32_e32 v40, v8",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 10\n@v_add_f32 v40, v8, v8", "s_nop 0\n"},
    {"MfmaToValuLastRegister", "wait-states", "v_add_f32_e32 v40, v23",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 10\n@v_add_f32 v40, v23, v23", "s_nop 0\n"},
    {"MfmaToValu4Passes", "wait-states", "v_add_f32_e32 v40, v8",
     "v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0\ns_nop 6\n@v_add_f32 v40, v8, v8", "s_nop 0\n"},
    {"MfmaToValu16Passes", "wait-states", "v_add_f32_e32 v40, v8",
     "v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[24:31], v[24:31], 0\ns_nop 15\ns_nop 2\n@v_add_f32 v40, v8, v8",
     "s_nop 0\n"},
    {"MfmaToStore", "wait-states", "global_store_dword",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 10\n@global_store_dword v1, v8, s[6:7]", "s_nop 0\n"},
    {"MfmaToA", "wait-states", "v_mfma_f32_16x16x32_bf16 v[24:27], v[8:11]",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 10\n@v_mfma_f32_16x16x32_bf16 v[24:27], v[8:11], "
     "v[2:5], 0",
     "s_nop 0\n"},
    {"MfmaToOverlappingC", "wait-states", "v_mfma_f32_16x16x32_bf16 v[24:27], v[2:5], v[4:7], v[8:11]",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 8\n@v_mfma_f32_16x16x32_bf16 v[24:27], v[2:5], "
     "v[4:7], v[8:11]",
     "s_nop 0\n"},
    {"MfmaThenValuOverwrite", "wait-states", "v_mov_b32_e32 v9",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 10\n@v_mov_b32 v9, 0", "s_nop 0\n"},
    {"OverwriteOfC", "wait-states", "v_mov_b32_e32 v9",
     "v_mfma_f32_32x32x16_bf16 v[32:47], v[2:5], v[4:7], v[8:23]\ns_nop 5\n@v_mov_b32 v9, 0", "s_nop 0\n"},
    {"LoadIntoC", "wait-states", "global_load_dword v9",
     "v_mfma_f32_32x32x16_bf16 v[32:47], v[2:5], v[4:7], v[8:23]\ns_nop 5\n@global_load_dword v9, v1, s[4:5]",
     "s_nop 0\n"},
    {"ValuToMfma", "wait-states", "v_mfma_f32_16x16x32_bf16",
     "v_mov_b32 v2, 1.0\ns_nop 0\n@v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0", "s_nop 0\n"},
    {"TransToValu", "wait-states", "v_add_f32_e32 v41, v40", "v_exp_f32 v40, v2\n@v_add_f32 v41, v40, v2", "s_nop 0\n"},
    {"TransToReadlane", "wait-states", "v_readfirstlane_b32", "v_exp_f32 v40, v2\n@v_readfirstlane_b32 s20, v40",
     "s_nop 0\n"},
    {"ValuToSwap", "wait-states", "v_permlane32_swap_b32", "v_mov_b32 v2, 1.0\ns_nop 0\n@v_permlane32_swap_b32 v2, v3",
     "s_nop 0\n"},
    {"ValuToSwapSecond", "wait-states", "v_permlane16_swap_b32",
     "v_mov_b32 v3, 1.0\ns_nop 0\n@v_permlane16_swap_b32 v2, v3", "s_nop 0\n"},
    {"ValuToDpp", "wait-states", "v_mov_b32_dpp",
     "v_mov_b32 v2, 1.0\ns_nop 0\n@v_mov_b32_dpp v40, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "s_nop 0\n"},
    {"ValuToReadfirstlane", "wait-states", "v_readfirstlane_b32", "v_mov_b32 v40, 1.0\n@v_readfirstlane_b32 s20, v40",
     "s_nop 0\n"},
    {"ValuSgprToValu", "wait-states", "v_add_u32_e32", "v_readfirstlane_b32 s20, v2\ns_nop 0\n@v_add_u32 v40, s20, v2",
     "s_nop 0\n"},
    {"CompareToCndmask", "wait-states", "v_cndmask_b32_e32",
     "v_cmp_gt_u32 vcc, 32, v0\ns_nop 0\n@v_cndmask_b32 v40, v2, v3, vcc", "s_nop 0\n"},
    {"ValuSgprToVmem", "wait-states", "global_load_dword",
     "v_mov_b32 v24, s4\ns_nop 0\nv_readfirstlane_b32 s20, v24\ns_mov_b32 s21, s5\ns_nop 2\n@global_load_dword v40, "
     "v1, s[20:21]",
     "s_nop 0\n"},
    {"ValuSgprToLaneSelect", "wait-states", "v_readlane_b32",
     "v_readfirstlane_b32 s20, v0\ns_nop 2\n@v_readlane_b32 s21, v2, s20", "s_nop 0\n"},
    {"HalfSelectThenRead", "wait-states", "v_add_u32_e32",
     "v_cvt_pk_fp8_f32 v40, v2, v3\nv_cvt_pk_fp8_f32 v40, v2, v3 op_sel:[0,0,1]\n@v_add_u32 v41, v40, v2", "s_nop 0\n"},
    {"WideStoreOverwritten", "wait-states", "v_mov_b32_e32 v8",
     "global_store_dwordx4 v1, v[8:11], s[6:7] offset:0\ns_nop 0\n@v_mov_b32 v8, 0", "s_nop 0\n"},
    {"M0ToDma", "wait-states", "global_load_lds_dword",
     "s_mov_b32 m0, 0\n@global_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)", "s_nop 0\n", 64, 1024},
    {"CmpxToMfma", "wait-states", "v_mfma_f32_16x16x32_bf16",
     "v_cmpx_le_u32 vcc, 0, v0\ns_nop 2\n@v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0", "s_nop 0\n"},
    {"CmpxToDpp", "wait-states", "v_mov_b32_dpp",
     "v_cmpx_le_u32 vcc, 0, v0\ns_nop 3\n@v_mov_b32_dpp v40, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "s_nop 0\n"},
    {"CmpxToReadlane", "wait-states", "v_readlane_b32", "v_cmpx_le_u32 vcc, 0, v0\ns_nop 2\n@v_readlane_b32 s20, v2, 3",
     "s_nop 0\n"},
    {"CmpxToReadfirstlane", "wait-states", "v_readfirstlane_b32",
     "v_cmpx_le_u32 vcc, 0, v0\ns_nop 2\n@v_readfirstlane_b32 s20, v2", "s_nop 0\n"},
    {"CmpxToWritelane", "wait-states", "v_writelane_b32",
     "v_cmpx_le_u32 vcc, 0, v0\ns_nop 2\n@v_writelane_b32 v8, s4, 3", "s_nop 0\n"},
    {"CmpxToSwap", "wait-states", "v_permlane32_swap_b32",
     "v_cmpx_le_u32 vcc, 0, v0\ns_nop 2\n@v_permlane32_swap_b32 v2, v3", "s_nop 0\n"},
    {"CompareToDivFmas", "wait-states", "v_div_fmas_f32",
     "v_cmp_gt_u32 vcc, 32, v0\ns_nop 2\n@v_div_fmas_f32 v40, v2, v3, v4", "s_nop 0\n"},
    {"VcczOfValu", "wait-states", "v_add_u32_e32", "v_cmp_gt_u32 vcc, 32, v0\ns_nop 3\n@v_add_u32 v40, src_vccz, v0",
     "s_nop 0\n"},
    {"VcczOfTrans", "wait-states", "v_exp_f32_e32", "v_cmp_gt_u32 vcc, 32, v0\ns_nop 3\n@v_exp_f32 v40, src_vccz",
     "s_nop 0\n"},
    {"VcczOfDot", "wait-states", "v_dot4_i32_i8",
     "v_cmp_gt_u32 vcc, 32, v0\ns_nop 3\n@v_dot4_i32_i8 v40, v2, v3, src_vccz", "s_nop 0\n"},
    {"ExeczOfValu", "wait-states", "v_add_u32_e32", "v_cmpx_le_u32 vcc, 0, v0\ns_nop 3\n@v_add_u32 v40, src_execz, v0",
     "s_nop 0\n"},
    {"ExeczOfTrans", "wait-states", "v_exp_f32_e32", "v_cmpx_le_u32 vcc, 0, v0\ns_nop 3\n@v_exp_f32 v40, src_execz",
     "s_nop 0\n"},
    {"DotToOtherValu", "wait-states", "v_add_u32_e32 v41",
     "v_dot4_i32_i8 v40, v2, v3, v4\ns_nop 1\n@v_add_u32 v41, v40, v2", "s_nop 0\n"},
    {"DotToOtherDot", "wait-states", "v_dot4_u32_u8",
     "v_dot4_i32_i8 v40, v2, v3, v4\ns_nop 1\n@v_dot4_u32_u8 v41, v2, v3, v40", "s_nop 0\n"},
    {"DotToSameDotAsA", "wait-states", "v_dot4_i32_i8 v41",
     "v_dot4_i32_i8 v40, v2, v3, v4\ns_nop 1\n@v_dot4_i32_i8 v41, v40, v3, v4", "s_nop 0\n"},
    {"DotToSameDotAsB", "wait-states", "v_dot4_i32_i8 v41",
     "v_dot4_i32_i8 v40, v2, v3, v4\ns_nop 1\n@v_dot4_i32_i8 v41, v3, v40, v4", "s_nop 0\n"},
    {"DotToStore", "wait-states", "global_store_dword",
     "v_dot4_i32_i8 v40, v2, v3, v4\ns_nop 1\n@global_store_dword v1, v40, s[6:7]", "s_nop 0\n"},
    {"DotToMfma", "wait-states", "v_mfma_f32_16x16x32_bf16",
     "v_dot4_i32_i8 v2, v6, v3, v4\ns_nop 1\n@v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0", "s_nop 0\n"},
    {"DotOverwrittenByValu", "wait-states", "v_mov_b32_e32 v40",
     "v_dot4_i32_i8 v40, v2, v3, v4\ns_nop 1\n@v_mov_b32 v40, 0", "s_nop 0\n"},
    {"DotOverwrittenByLoad", "wait-states", "global_load_dword v40",
     "v_dot4_i32_i8 v40, v2, v3, v4\ns_nop 1\n@global_load_dword v40, v1, s[4:5]", "s_nop 0\n"},
    {"SetregThenGetreg", "wait-states", "s_getreg_b32",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\ns_nop 0\n@s_getreg_b32 s20, hwreg(HW_REG_MODE)", "s_nop 0\n"},
    {"SetregTwice", "wait-states", "s_setreg_b32",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\ns_nop 0\n@s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s2",
     "s_nop 0\n"},
    {"SetregTwiceWithAnotherBetween", "wait-states", "s_getreg_b32",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\ns_setreg_b32 hwreg(HW_REG_GPR_ALLOC), s2\n@s_getreg_b32 s20, "
     "hwreg(HW_REG_MODE)",
     "s_nop 0\n"},
    {"VskipToValu", "wait-states", "v_mov_b32_e32",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0\ns_nop 0\n@v_mov_b32 v40, 0", "s_nop 0\n"},
    {"VskipToMfma", "wait-states", "v_mfma_f32_16x16x32_bf16",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 8), 0\ns_nop 0\n@v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0",
     "s_nop 0\n"},
    {"VskipToLds", "wait-states", "ds_write_b32",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0\ns_nop 0\n@ds_write_b32 v1, v0", "s_nop 0\n", 64, 1024},
    {"VskipToStore", "wait-states", "global_store_dword",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0\ns_nop 0\n@global_store_dword v1, v0, s[6:7]", "s_nop 0\n"},
    // Definedness.
    {"UnwrittenVgpr", "uninitialised-register", "v_add_u32_e32", "@v_add_u32 v41, v40, v1", "v_mov_b32 v40, 0\n"},
    {"UnwrittenLane", "uninitialised-register", "v_add_u32_e32",
     "s_mov_b64 exec, 1\nv_mov_b32 v40, 0\ns_mov_b64 exec, -1\n@v_add_u32 v41, v40, v1", "v_mov_b32 v40, 0\n"},
    {"CopyOfUnwrittenUsed", "uninitialised-register", "v_add_u32_e32 v41",
     "@v_mov_b32 v42, v40\nv_add_u32 v41, v42, v1", "v_mov_b32 v40, 0\n"},
    {"UnwrittenMfmaSource", "uninitialised-register", "v_mfma_f32_16x16x32_bf16",
     "@v_mfma_f32_16x16x32_bf16 v[8:11], v[40:43], v[4:7], 0",
     "v_mov_b32 v40, 0\nv_mov_b32 v41, 0\nv_mov_b32 v42, 0\nv_mov_b32 v43, 0\ns_nop 1\n"},
    {"UnwrittenSgpr", "uninitialised-register", "s_add_u32", "@s_add_u32 s21, s20, 1", "s_mov_b32 s20, 0\n"},
    {"UnwrittenScc", "uninitialised-register", "s_cbranch_scc1", "@s_cbranch_scc1 1\ns_nop 0", "s_cmp_eq_u32 s4, s4\n"},
    {"UnwrittenStore", "uninitialised-register", "global_store_dword", "@global_store_dword v1, v40, s[6:7]",
     "v_mov_b32 v40, 0\n"},
    {"UnwrittenM0", "uninitialised-register", "global_load_lds_dword",
     "@global_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)", "s_mov_b32 m0, 0\ns_nop 0\n", 64, 1024},
    {"UnwrittenLds", "uninitialised-register", "v_add_u32_e32 v41",
     "@ds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)\nv_add_u32 v41, v40, v1", "ds_write_b32 v1, v0\n", 64, 1024},
    {"UnwrittenLdsByte", "uninitialised-register", "v_add_u32_e32 v41",
     "ds_write_b16 v1, v0\nds_write_b8 v1, v0 offset:2\n@ds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)\nv_add_u32 v41, "
     "v40, v1",
     "ds_write_b8 v1, v0 offset:3\n", 64, 1024},
    // LDS between waves. Wave 0 is lanes 0-63 of v0; v24 = 4 * (v0 ^ 64): the other wave's slot.
    {"ReadAfterWriteWithoutBarrier", "lds-race", "ds_read_b32",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n@ds_read_b32 v40, "
     "v24\ns_waitcnt lgkmcnt(0)",
     "s_barrier\n", 128, 1024},
    // The other wave's slot through the aperture of LDS in FLAT addresses.
    {"FlatReadAfterWriteWithoutBarrier", "lds-race", "flat_load_dword",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\ns_mov_b64 s[20:21], src_shared_base\nv_mov_b32 v25, "
     "s21\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n@flat_load_dword v40, v[24:25]\ns_waitcnt vmcnt(0) lgkmcnt(0)",
     "s_barrier\n", 128, 1024},
    {"FlatWriteAfterReadWithoutBarrier", "lds-race", "flat_store_dword",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\ns_mov_b64 s[20:21], src_shared_base\nv_mov_b32 v25, "
     "s21\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v40, v1\ns_waitcnt "
     "lgkmcnt(0)\n@flat_store_dword v[24:25], v0\ns_waitcnt vmcnt(0) lgkmcnt(0)",
     "s_barrier\n", 128, 1024},
    {"FlatReadOfUnwrittenLds", "uninitialised-register", "v_add_u32_e32 v41",
     "v_mov_b32 v24, v1\ns_mov_b64 s[20:21], src_shared_base\nv_mov_b32 v25, s21\n@flat_load_dword v40, "
     "v[24:25]\ns_waitcnt vmcnt(0) lgkmcnt(0)\nv_add_u32 v41, v40, v1",
     "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n", 64, 1024},
    {"WriteAfterReadWithoutBarrier", "lds-race", "ds_write_b32 v24",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nds_write_b32 v1, v0\ns_waitcnt "
     "lgkmcnt(0)\ns_barrier\nds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)\n@ds_write_b32 v24, v0\ns_waitcnt lgkmcnt(0)",
     "s_barrier\n", 128, 1024},
    {"WriteAfterWriteWithoutBarrier", "lds-race", "ds_write_b32 v24",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n@ds_write_b32 v24, "
     "v0\ns_waitcnt lgkmcnt(0)",
     "s_barrier\n", 128, 1024},
    {"WriteNotWaitedBeforeBarrier", "lds-race", "ds_read_b32",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nds_write_b32 v1, v0\n@s_barrier\nds_read_b32 v40, "
     "v24\ns_waitcnt lgkmcnt(0)",
     "s_waitcnt lgkmcnt(0)\n", 128, 1024},
    {"ReadNotWaitedBeforeBarrier", "lds-race", "ds_write_b32 v24",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nds_read_b32 v40, "
     "v1\n@s_barrier\nds_write_b32 v24, v0\ns_waitcnt lgkmcnt(0)",
     "s_waitcnt lgkmcnt(0)\n", 128, 1024},
    {"DmaNotWaited", "lds-in-flight", "ds_read_b32",
     "s_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]\n@ds_read_b32 v40, v1\ns_waitcnt "
     "lgkmcnt(0)\ns_waitcnt vmcnt(0)",
     "s_waitcnt vmcnt(0)\n", 64, 1024},
    {"DmaNotWaitedBeforeBarrier", "lds-in-flight", "ds_read_b32",
     "v_lshrrev_b32 v25, 6, v0\ns_nop 0\nv_readfirstlane_b32 s20, v25\ns_lshl_b32 s20, s20, 8\ns_mov_b32 m0, "
     "s20\nv_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nglobal_load_lds_dword v1, s[4:5]\n@s_barrier\nds_read_b32 "
     "v40, v24\ns_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0)",
     "s_waitcnt vmcnt(0)\n", 128, 1024},
    {"DmaWaitedAfterTheBarrier", "lds-race", "ds_read_b32",
     "v_lshrrev_b32 v25, 6, v0\ns_nop 0\nv_readfirstlane_b32 s20, v25\ns_lshl_b32 s20, s20, 8\ns_mov_b32 m0, "
     "s20\nv_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nglobal_load_lds_dword v1, s[4:5]\n@s_barrier\ns_waitcnt "
     "vmcnt(0)\ns_nop 0\nds_read_b32 v40, v24\ns_waitcnt lgkmcnt(0)",
     "s_waitcnt vmcnt(0)\n", 128, 1024},
    {"DmaOverOwnRead", "lds-in-flight", "global_load_lds_dword",
     "s_mov_b32 m0, 0\nds_write_b32 v1, v0\nds_read_b32 v40, v1\n@global_load_lds_dword v1, s[4:5]\ns_waitcnt "
     "vmcnt(0)\ns_waitcnt lgkmcnt(0)",
     "s_waitcnt lgkmcnt(0)\n", 64, 1024},
    // Lanes that are off write nothing: the half that reads is not the half that the load fills.
    {"DmaOverOwnReadOfOtherLanes", "lds-in-flight", "global_load_lds_dword",
     "s_mov_b32 m0, 0\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_lshl_b64 exec, -1, 32\nds_read_b32 v40, "
     "v1\ns_mov_b64 exec, -1\n@global_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)\ns_waitcnt lgkmcnt(0)",
     "s_lshr_b64 exec, -1, 32\n", 64, 1024},
    {"LdsOutOfBounds", "lds-out-of-bounds", "ds_write_b32", "v_mov_b32 v24, v1\n@ds_write_b32 v24, v0 offset:772",
     "v_sub_u32 v24, v24, 4\nv_max_i32 v24, 0, v24\n", 64, 1024},
    {"LdsMisaligned", "lds-misaligned", "ds_write_b64",
     "v_lshlrev_b32 v24, 3, v0\nv_or_b32 v24, 4, v24\n@ds_write_b64 v24, v[8:9]", "v_and_b32 v24, -8, v24\n", 64, 1024},
    // EXEC and barriers.
    {"MfmaWithInactiveLanes", "exec-mask", "v_mfma_f32_16x16x32_bf16",
     "s_mov_b64 exec, 1\ns_nop 3\n@v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0", "s_mov_b64 exec, -1\n"},
    {"SwapWithInactiveLanes", "exec-mask", "v_permlane32_swap_b32", "s_mov_b64 exec, 1\n@v_permlane32_swap_b32 v2, v3",
     "s_mov_b64 exec, -1\n"},
    {"TransposeWithInactiveLanes", "exec-mask", "ds_read_b64_tr_b16",
     "v_lshlrev_b32 v24, 3, v0\nds_write_b64 v24, v[8:9]\ns_waitcnt lgkmcnt(0)\ns_mov_b64 exec, 1\n@ds_read_b64_tr_b16 "
     "v[40:41], v24\ns_waitcnt lgkmcnt(0)",
     "s_mov_b64 exec, -1\n", 64, 1024},
    {"BarrierThatSomeSkip", "divergent-barrier", "s_barrier",
     "v_readfirstlane_b32 s20, v0\ns_cmp_lg_u32 s20, 0\n@s_cbranch_scc1 1\ns_barrier", "s_cmp_lg_u32 s4, s4\n", 128},
};

Status run_fault(const Fault& fault, bool cured, std::vector<SimFinding>* findings) {
  std::string code = fault.code;
  const auto at = code.find('@');
  code.replace(at, 1, cured ? fault.cure : "");
  const Bytes object = assemble_kernel(std::string(kSetup) + code, {.lds = fault.lds, .workgroup = fault.workgroup});
  const auto device = make_device(SimChecks::kStrict);
  const Buffer<std::uint32_t> in(*device, std::vector<std::uint32_t>(1024, 0)),
      out(*device, std::vector<std::uint32_t>(1024, 0));
  const Status status = run(*device, object, "k", {.block = {fault.workgroup, 1, 1}}, Args().add(in).add(out));
  *findings = device->last_findings();
  return status;
}

class StrictFault : public testing::TestWithParam<Fault> {};

TEST_P(StrictFault, IsCaught) {
  std::vector<SimFinding> findings;
  const Status status = run_fault(GetParam(), false, &findings);
  ASSERT_FALSE(status.has_value()) << "the fault passed unnoticed";
  EXPECT_EQ(status.error().code, ErrorCode::kStrictFinding) << to_string(status.error());
  bool named = false;
  for (const SimFinding& f : findings)
    named |= f.kind == GetParam().kind && f.instruction.starts_with(GetParam().instruction);
  EXPECT_TRUE(named) << to_string(status.error());
}

TEST_P(StrictFault, CleanTwinPasses) {
  std::vector<SimFinding> findings;
  const Status status = run_fault(GetParam(), true, &findings);
  EXPECT_TRUE(status.has_value()) << to_string(status.error());
}

// What needs no wait states: the rules name the exact pair.
TEST(StrictRules, DoNotReachFurtherThanTheTables) {
  const std::pair<const char*, const char*> codes[] = {
      {"the same dot product accumulates", "v_dot4_i32_i8 v40, v2, v3, v4\nv_dot4_i32_i8 v40, v2, v3, v40"},
      {"the same dot product overwrites", "v_dot4_i32_i8 v40, v2, v3, v4\nv_dot4_i32_i8 v40, v3, v3, v4"},
      {"a tied dot product accumulates", "v_dot4c_i32_i8 v8, v2, v3\nv_dot4c_i32_i8 v8, v2, v3"},
      {"s_setreg of MODE before VALU", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\nv_mov_b32 v40, 0"},
      {"s_setreg of another register",
       "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\ns_getreg_b32 s20, hwreg(HW_REG_HW_ID)"},
      {"SALU write of EXEC before DPP",
       "s_mov_b64 exec, -1\nv_mov_b32_dpp v40, v2 row_shr:1 row_mask:0xf bank_mask:0xf"},
      {"v_cmpx before plain VALU", "v_cmpx_le_u32 vcc, 0, v0\nv_add_u32 v40, v2, v3"},
      {"vccz after a scalar write of VCC", "s_mov_b64 vcc, 0\nv_exp_f32 v40, src_vccz"},
  };
  for (const auto& [what, code] : codes) {
    const auto device = make_device(SimChecks::kStrict);
    const Buffer<std::uint32_t> in(*device, std::vector<std::uint32_t>(64, 0)),
        out(*device, std::vector<std::uint32_t>(64, 0));
    const Status status = run(*device, assemble_kernel(std::string(kSetup) + code), "k", {}, Args().add(in).add(out));
    EXPECT_TRUE(status.has_value()) << what << ": " << to_string(status.error());
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, StrictFault, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zyfa::sim_test
