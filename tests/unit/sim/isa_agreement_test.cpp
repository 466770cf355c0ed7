// The vector handlers are compiled once per host instruction set: every build must give the same bits. Each instruction
// of a broad list runs on the same random registers with every build this host has.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "jit/object/code_object.h"
#include "runtime/sim/exec/group.h"
#include "runtime/sim/exec/program.h"
#include "runtime/sim/exec/rows.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using sim::MicroOp;
using sim::VectorReg;
using sim::Wave;

constexpr char kCode[] = R"(
v_add_f32 v0, v1, v2
v_sub_f32 v0, v1, v2
v_mul_f32 v0, v1, v2
v_add_f32 v0, |v1|, -v2 clamp
v_mul_f32 v0, v1, v2 mul:2
v_fma_f32 v0, v1, v2, v3
v_fmac_f32 v0, v1, v2
v_max_f32 v0, v1, v2
v_min_f32 v0, v1, v2
v_max3_f32 v0, v1, v2, v3
v_med3_f32 v0, v1, v2, v3
v_maximum3_f32 v0, v1, v2, v3
v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]
v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel_hi:[0,1]
v_exp_f32 v0, v1
v_log_f32 v0, v1
v_rcp_f32 v0, v1
v_rsq_f32 v0, v1
v_sqrt_f32 v0, v1
v_floor_f32 v0, v1
v_rndne_f32 v0, v1
v_fract_f32 v0, v1
v_ldexp_f32 v0, v1, v2
v_cvt_pk_bf16_f32 v0, v1, v2
v_cvt_pk_fp8_f32 v0, v1, v2
v_cvt_pk_bf8_f32 v0, v1, v2
v_cvt_pk_u8_f32 v0, v1, v2, v3
v_cvt_f16_f32 v0, v1
v_cvt_f32_f16 v0, v1
v_cvt_i32_f32 v0, v1
v_cvt_u32_f32 v0, v1
v_cvt_f32_i32 v0, v1
v_cvt_f32_u32 v0, v1
v_cvt_pkrtz_f16_f32 v0, v1, v2
v_fma_f16 v0, v1, v2, v3
v_pk_fma_f16 v0, v1, v2, v3
v_pk_add_f16 v0, v1, v2
v_add_f64 v[0:1], v[2:3], v[4:5]
v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]
v_rcp_f64 v[0:1], v[2:3]
v_div_scale_f32 v0, vcc, v1, v2, v1
v_div_fmas_f32 v0, v1, v2, v3
v_div_fixup_f32 v0, v1, v2, v3
v_cmp_lt_f32 vcc, v1, v2
v_cmp_nge_f32 vcc, v1, v2
v_cmp_gt_i32 vcc, v1, v2
v_cmp_lt_u64 vcc, v[2:3], v[4:5]
v_cmp_class_f32 vcc, v1, v2
v_add_u32 v0, v1, v2
v_add_co_u32 v0, vcc, v1, v2
v_addc_co_u32 v0, vcc, v1, v2, vcc
v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]
v_cndmask_b32 v0, v1, v2, vcc
v_bitop3_b32 v0, v1, v2, v3 bitop3:0x5a
v_perm_b32 v0, v1, v2, v3
v_mul_hi_u32 v0, v1, v2
v_lshlrev_b64 v[0:1], v2, v[4:5]
v_bfe_i32 v0, v1, v2, v3
v_mov_b32_dpp v0, v1 row_ror:3 row_mask:0xf bank_mask:0xf
v_add_u32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:WORD_0
v_permlane32_swap_b32 v0, v1
v_permlane16_swap_b32 v0, v1
v_mbcnt_lo_u32_b32 v0, v1, v2
v_dot2_f32_bf16 v0, v1, v2, v3
v_dot2_f32_f16 v0, v1, v2, v3
v_dot4_i32_i8 v0, v1, v2, v3
v_dot8c_i32_i4 v0, v1, v2
v_add_f16 v0, v1, v2 mul:2
v_mul_f16 v0, v1, v2 clamp
v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,1,1]
v_mad_f16 v0, v1, v2, v3
v_mac_f16 v0, v1, v2
v_med3_f16 v0, v1, v2, v3
v_max3_f16 v0, v1, v2, v3
v_div_fixup_f16 v0, v1, v2, v3
v_rcp_f16 v0, v1
v_sqrt_f16 v0, v1
v_rsq_f16 v0, v1
v_exp_f16 v0, v1
v_log_f16 v0, v1
v_sin_f16 v0, v1
v_cos_f16 v0, v1
v_fract_f16 v0, v1
v_rndne_f16 v0, v1
v_ldexp_f16 v0, v1, v2
v_pk_fmac_f16 v0, v1, v2
v_pk_maximum3_f16 v0, v1, v2, v3
v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,1]
v_fma_mixhi_f16 v0, v1, v2, v3 op_sel_hi:[1,0,1]
v_sin_f32 v0, v1
v_cos_f32 v0, v1
v_cubeid_f32 v0, v1, v2, v3
v_cubema_f32 v0, v1, v2, v3
v_cvt_u16_f16 v0, v1
v_cvt_norm_i16_f16 v0, v1
v_cvt_pknorm_u16_f16 v0, v1, v2
v_cvt_pknorm_i16_f32 v0, v1, v2
v_cvt_pk_f16_f32 v0, v1, v2
v_cvt_pkaccum_u8_f32 v0, v1, v2
v_frexp_exp_i16_f16 v0, v1
v_add_i16 v0, v1, v2 clamp
v_mad_i16 v0, v1, v2, v3 clamp
v_med3_u16 v0, v1, v2, v3
v_pk_mad_u16 v0, v1, v2, v3 clamp
v_mad_u32_u24 v0, v1, v2, v3 clamp
v_bitop3_b16 v0, v1, v2, v3 bitop3:0x5a
v_mqsad_u32_u8 v[0:3], v[4:5], v6, v[8:11]
v_prng_b32 v0, v1
v_trig_preop_f64 v[0:1], v[2:3], v4
v_max_f64 v[0:1], v[2:3], v[4:5]
v_mul_f64 v[0:1], v[2:3], v[4:5] clamp
v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3
v_cvt_scalef32_pk_fp4_bf16 v0, v1, v2
v_cvt_scalef32_sr_bf8_f16 v0, v1, v2, v3
v_cvt_scalef32_pk_f16_fp8 v0, v1, v2
v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[16:31], v[32:47], v50
v_cvt_scalef32_sr_pk32_bf6_bf16 v[0:5], v[16:31], v50, v51
v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[32:37], v50
v_cvt_sr_bf16_f32 v0, v1, v2
v_cvt_sr_fp8_f32 v0, v1, v2
v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], v[24:39]
v_mfma_f32_16x16x32_f16 v[0:3], v[16:19], v[20:23], v[24:27]
v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[40:47], v[24:39]
v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:21], v[40:43], v[24:39] cbsz:2 blgp:4
v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[16:23], v[40:47], v[24:27], v50, v51
v_mfma_i32_32x32x32_i8 v[0:15], v[16:19], v[20:23], v[24:39]
v_mfma_f32_32x32x1_2b_f32 v[0:31], v32, v40, v[0:31]
v_mfma_f32_16x16x1_4b_f32 v[0:15], v32, v40, v[0:15]
v_mfma_f32_4x4x1_16b_f32 v[0:3], v32, v40, v[0:3]
v_mfma_f32_32x32x2_f32 v[0:15], v32, v40, v[0:15]
v_mfma_f32_16x16x4_f32 v[0:3], v32, v40, v[0:3]
v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[40:41], v[0:31]
v_mfma_f32_16x16x4_4b_f16 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_4x4x4_16b_f16 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x8_f16 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_16x16x16_f16 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x16_f16 v[0:15], v[32:35], v[40:43], v[0:15]
v_mfma_f32_16x16x32_f16 v[0:3], v[32:35], v[40:43], v[0:3]
v_mfma_f32_32x32x4_2b_bf16 v[0:31], v[32:33], v[40:41], v[0:31]
v_mfma_f32_16x16x4_4b_bf16 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_4x4x4_16b_bf16 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x8_bf16 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_16x16x16_bf16 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x16_bf16 v[0:15], v[32:35], v[40:43], v[0:15]
v_mfma_f32_16x16x32_bf16 v[0:3], v[32:35], v[40:43], v[0:3]
v_mfma_i32_32x32x4_2b_i8 v[0:31], v32, v40, v[0:31]
v_mfma_i32_16x16x4_4b_i8 v[0:15], v32, v40, v[0:15]
v_mfma_i32_4x4x4_16b_i8 v[0:3], v32, v40, v[0:3]
v_mfma_i32_32x32x16_i8 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_i32_16x16x32_i8 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_i32_16x16x64_i8 v[0:3], v[32:35], v[40:43], v[0:3]
v_mfma_f64_16x16x4_f64 v[0:7], v[32:33], v[40:41], v[0:7]
v_mfma_f64_4x4x4_4b_f64 v[0:1], v[32:33], v[40:41], v[0:1] neg:[1,0,1]
v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x16_fp8_bf8 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x16_bf8_fp8 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_16x16x32_bf8_fp8 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x16_bf8_bf8 v[0:15], v[32:33], v[40:41], v[0:15]
v_mfma_f32_16x16x32_bf8_bf8 v[0:3], v[32:33], v[40:41], v[0:3]
v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[40:41], v[0:31] cbsz:1 abid:1 blgp:3
v_mfma_i32_4x4x4_16b_i8 v[0:3], v32, v40, v[0:3] cbsz:3 abid:5 blgp:6
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[40:45], v[0:3] cbsz:0 blgp:2
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[32:37], v[40:47], v[0:15], v50, v51 op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:2 blgp:0
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[40:45], v[0:3] cbsz:1 blgp:3
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[32:37], v[40:47], v[0:15], v50, v51 op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:3 blgp:1
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:37], v[40:43], v[0:3] cbsz:2 blgp:4
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[32:35], v[40:45], v[0:15], v50, v51 op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:4 blgp:2
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:37], v[40:47], v[0:3] cbsz:3 blgp:0
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:45], v[0:15], v50, v51 op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:0 blgp:3
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:35], v[40:47], v[0:3] cbsz:4 blgp:1
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:43], v[0:15], v50, v51 op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:1 blgp:4
v_smfmac_f32_16x16x32_f16 v[0:3], v[32:33], v[40:43], v50
v_smfmac_f32_32x32x16_f16 v[0:15], v[32:33], v[40:43], v50
v_smfmac_f32_16x16x64_f16 v[0:3], v[32:35], v[40:47], v50
v_smfmac_f32_32x32x32_f16 v[0:15], v[32:35], v[40:47], v50
v_smfmac_f32_16x16x32_bf16 v[0:3], v[32:33], v[40:43], v50
v_smfmac_f32_32x32x16_bf16 v[0:15], v[32:33], v[40:43], v50
v_smfmac_f32_16x16x64_bf16 v[0:3], v[32:35], v[40:47], v50
v_smfmac_f32_32x32x32_bf16 v[0:15], v[32:35], v[40:47], v50
v_smfmac_f32_16x16x64_fp8_fp8 v[0:3], v[32:33], v[40:43], v50
v_smfmac_f32_32x32x32_fp8_fp8 v[0:15], v[32:33], v[40:43], v50
v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[32:35], v[40:47], v50
v_smfmac_f32_32x32x64_fp8_fp8 v[0:15], v[32:35], v[40:47], v50
v_smfmac_f32_16x16x64_fp8_bf8 v[0:3], v[32:33], v[40:43], v50
v_smfmac_f32_32x32x32_fp8_bf8 v[0:15], v[32:33], v[40:43], v50
v_smfmac_f32_16x16x128_fp8_bf8 v[0:3], v[32:35], v[40:47], v50
v_smfmac_f32_32x32x64_fp8_bf8 v[0:15], v[32:35], v[40:47], v50
v_smfmac_f32_16x16x64_bf8_fp8 v[0:3], v[32:33], v[40:43], v50
v_smfmac_f32_32x32x32_bf8_fp8 v[0:15], v[32:33], v[40:43], v50
v_smfmac_f32_16x16x128_bf8_fp8 v[0:3], v[32:35], v[40:47], v50
v_smfmac_f32_32x32x64_bf8_fp8 v[0:15], v[32:35], v[40:47], v50
v_smfmac_f32_16x16x64_bf8_bf8 v[0:3], v[32:33], v[40:43], v50
v_smfmac_f32_32x32x32_bf8_bf8 v[0:15], v[32:33], v[40:43], v50
v_smfmac_f32_16x16x128_bf8_bf8 v[0:3], v[32:35], v[40:47], v50
v_smfmac_f32_32x32x64_bf8_bf8 v[0:15], v[32:35], v[40:47], v50
v_smfmac_i32_16x16x64_i8 v[0:3], v[32:33], v[40:43], v50
v_smfmac_i32_32x32x32_i8 v[0:15], v[32:33], v[40:43], v50
v_smfmac_i32_16x16x128_i8 v[0:3], v[32:35], v[40:47], v50
v_smfmac_i32_32x32x64_i8 v[0:15], v[32:35], v[40:47], v50
)";

// Random words, with floats of moderate size, corner values and small integers among them.
std::uint32_t random_word(std::mt19937& rng) {
  const auto x = static_cast<std::uint32_t>(rng());
  switch (rng() % 8) {
    case 0:
      return x % 64;
    case 1:
      return (x & 0x807fffff) | (0x3d000000 + (x & 0x03800000));
    case 2: {
      const std::uint32_t corner[] = {0,          0x80000000, 1,          0x7f800000, 0xff800000,
                                      0x7fc01234, 0x7f801234, 0x00800000, 0x3f800000};
      return corner[x % 9];
    }
    default:
      return (x & 0xbfffffff) | 0x20000000;
  }
}

TEST(IsaAgreement, EveryBuildGivesTheSameBits) {
  const auto object = jit::read_code_object(assemble_kernel(kCode, {.vgprs = 64}));
  ASSERT_TRUE(object.has_value());
  const auto program =
      sim::decode_program(object->text, object->kernels.at(0).entry_offset, {.accum_offset = 64, .rows = 64});
  ASSERT_TRUE(program.has_value()) << to_string(program.error());
  const auto builds = sim::runnable_vector_tables();
  const sim::VectorTables& own = sim::vector_tables();
  std::mt19937 rng(1);
  unsigned compared = 0;
  for (std::size_t i = 0; i < program->ops.size(); ++i) {
    const MicroOp& op = program->ops[i];
    if (op.row == nullptr || op.unit == sim::Unit::kOther) continue;
    for (int trial = 0; trial < 24; ++trial) {
      std::vector<VectorReg> start(64);
      for (auto& r : start)
        for (auto& x : r.lane) x = random_word(rng);
      const std::uint64_t exec = trial % 3 == 0 ? rng() * 0x100000001ull : ~0ull, vcc = rng() * 0x100000001ull;
      std::vector<std::vector<VectorReg>> results;
      std::vector<std::uint64_t> masks;
      for (const auto& build : builds) {
        // The same row of the other build.
        MicroOp other = op;
        for (std::size_t t = 0; t < own.tables.size(); ++t) {
          const auto& table = own.tables[t];
          if (op.row >= table.rows && op.row < table.rows + table.count)
            other.run = build.tables[t].rows[op.row - table.rows].run;
        }
        std::vector<VectorReg> registers = start;
        sim::Group group;
        Wave wave;
        wave.v = registers.data();
        wave.group = &group;
        sim::apply_mode(wave, trial % 2 ? 0xf0u : 0xc0u);
        wave.rules.accumulation = static_cast<SimAccumulation>(trial / 2 % 3);
        wave.set_scalar64(sim::kExecLo, exec);
        wave.set_scalar64(sim::kVccLo, vcc);
        other.run(wave, other);
        results.push_back(registers);
        masks.push_back(wave.scalar64(sim::kVccLo));
        ASSERT_EQ(masks.back(), masks.front()) << program->text[i] << ": " << build.name;
        for (std::size_t r = 0; r < registers.size(); ++r)
          for (int l = 0; l < 64; ++l)
            ASSERT_EQ(registers[r].lane[l], results.front()[r].lane[l])
                << program->text[i] << ": " << build.name << " differs from " << builds.front().name << " in v" << r
                << " lane " << l << std::hex << " v1 " << start[1].lane[l] << " v2 " << start[2].lane[l] << " v3 "
                << start[3].lane[l];
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 140u * 24u);
}

}  // namespace
}  // namespace zyfa::sim_test
