// Rows of MFMA as producer and as consumer: gfx950-isa.md 4.1 and 4.2, and LLVM 22 for f64 (matrix_rows.h).
#include "tests/correctness/hazards/matrix_rows.h"

#include <array>
#include <utility>

namespace zyfa::hazards {
namespace {

constexpr std::array<unsigned, 4> kPasses = {2, 4, 8, 16};
// D = v[0:3] or v[0:15], C = v[16:19] or v[16:31].
constexpr std::array<const char*, 4> kXdl = {
    "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[32:33], v[34:35], v[16:19]",
    "v_mfma_f32_16x16x32_bf16 v[0:3], v[32:35], v[36:39], v[16:19]",
    "v_mfma_f32_32x32x16_bf16 v[0:15], v[32:35], v[36:39], v[16:31]",
    "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:47], v[16:31]",
};
constexpr const char* kScaled = "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:47], v[16:31], v60, v61";
constexpr const char* kSparse = "v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[32:35], v[40:47], v60";
constexpr const char* kAcc = "v_mfma_f32_32x32x16_bf16 a[0:15], v[32:35], v[36:39], a[16:31]";
constexpr const char* kSgemm16 = "v_mfma_f32_32x32x2_f32 v[0:15], v32, v33, v[16:31]";
constexpr const char* kSgemm8 = "v_mfma_f32_16x16x4_f32 v[0:3], v32, v33, v[16:19]";
constexpr const char* kDgemm16 = "v_mfma_f64_16x16x4_f64 v[0:7], v[32:33], v[34:35], v[16:23]";
constexpr const char* kDgemm4 = "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[32:33], v[34:35], v[16:17]";

struct Consumer {
  const char* what;
  const char* text;
};
// Everything that waits for D as a whole: rows 1 to 4 of the table of 4.1.
constexpr Consumer kNeedsResult[] = {
    {"VALU reads D", "v_mov_b32 v76, v1"},
    {"trans reads D", "v_exp_f32 v76, v1"},
    {"conversion reads D", "v_cvt_pk_bf16_f32 v76, v2, v3"},
    {"fp8 conversion reads D", "v_cvt_pk_fp8_f32 v76, v0, v1"},
    {"packed VALU reads D", "v_pk_mul_f32 v[76:77], v[0:1], v[2:3]"},
    {"compare reads D", "v_cmp_gt_f32 vcc, v1, v76"},
    {"DPP reads D", "v_mov_b32_dpp v76, v1 row_shr:1 row_mask:0xf bank_mask:0xf"},
    {"SDWA reads D", "v_add_u16_sdwa v76, v1, v77 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:WORD_0"},
    {"permlane32 swap reads D", "v_permlane32_swap_b32 v1, v76"},
    {"permlane16 swap reads D second", "v_permlane16_swap_b32 v76, v1"},
    {"readfirstlane reads D", "v_readfirstlane_b32 s40, v1"},
    {"readlane reads D", "v_readlane_b32 s40, v1, 3"},
    {"dot product reads D", "v_dot4_i32_i8 v76, v1, v77, v78"},
    {"VALU writes D", "v_mov_b32 v1, 0"},
    {"trans writes D", "v_exp_f32 v1, v76"},
    {"writelane writes D", "v_writelane_b32 v1, s3, 1"},
    {"ds_write reads D as data", "ds_write_b32 v72, v1"},
    {"ds_read reads D as address", "ds_read_b32 v76, v1"},
    {"global store reads D as data", "global_store_dword v[70:71], v1, off"},
    {"buffer store reads D as data", "buffer_store_dwordx4 v[0:3], v72, s[8:11], 0 offen"},
    {"buffer load reads D as address", "buffer_load_dword v76, v1, s[8:11], 0 offen"},
    {"ds_read loads into D", "ds_read_b32 v1, v72"},
    {"global load into D", "global_load_dword v1, v[70:71], off"},
    {"buffer load into D", "buffer_load_dwordx4 v[0:3], v72, s[8:11], 0 offen"},
    {"MFMA reads D as A", "v_mfma_f32_16x16x32_bf16 v[80:83], v[0:3], v[84:87], v[88:91]"},
    {"MFMA reads D as B", "v_mfma_f32_16x16x32_bf16 v[80:83], v[84:87], v[0:3], v[88:91]"},
    {"SGEMM reads D as A", "v_mfma_f32_16x16x4_f32 v[80:83], v1, v84, v[88:91]"},
    {"MFMA reads D as A scale", "v_mfma_scale_f32_32x32x64_f8f6f4 v[80:95], v[32:39], v[40:47], v[48:63], v3, v64"},
    {"MFMA reads D as B scale", "v_mfma_scale_f32_32x32x64_f8f6f4 v[80:95], v[32:39], v[40:47], v[48:63], v64, v3"},
    {"sparse MFMA reads D as index", "v_smfmac_f32_16x16x128_fp8_fp8 v[80:83], v[32:35], v[40:47], v1"},
};
constexpr Consumer kOverwritesC[] = {
    {"VALU overwrites C", "v_mov_b32 v17, 0"},
    {"trans overwrites C", "v_exp_f32 v17, v76"},
    {"permlane swap overwrites C", "v_permlane32_swap_b32 v76, v17"},
    {"ds_read overwrites C", "ds_read_b128 v[16:19], v72"},
    {"global load overwrites C", "global_load_dword v17, v[70:71], off"},
    {"buffer load overwrites C", "buffer_load_dword v17, v72, s[8:11], 0 offen"},
};
constexpr const char* kOverlappingC = "v_mfma_f32_16x16x32_bf16 v[80:83], v[84:87], v[92:95], v[2:5]";
constexpr const char* kOverlappingC32 = "v_mfma_f32_32x32x16_bf16 v[80:95], v[32:35], v[36:39], v[2:17]";
constexpr const char* kSgemmOverlappingC = "v_mfma_f32_16x16x4_f32 v[80:83], v84, v92, v[2:5]";

constexpr std::array<unsigned, 4> kResult = {5, 8, 12, 20};
constexpr std::array<unsigned, 4> kSameC = {2, 0, 0, 0};
constexpr std::array<unsigned, 4> kOtherC = {4, 6, 10, 18};
constexpr std::array<unsigned, 4> kWar = {1, 3, 7, 15};

std::string after(const char* what, unsigned passes) {
  return std::string(what) + " of an MFMA of " + std::to_string(passes) + " passes";
}

void add_xdl(std::vector<HazardRow>& rows) {
  for (std::size_t i = 0; i < kPasses.size(); ++i) {
    const unsigned n = kPasses[i];
    for (const Consumer& c : kNeedsResult) rows.push_back({after(c.what, n), "4.1", kXdl[i], c.text, kResult[i]});
    for (const Consumer& c : kOverwritesC) rows.push_back({after(c.what, n), "4.1", kXdl[i], c.text, kWar[i]});
    const std::string own(kXdl[i]);
    const std::string d = n <= 4 ? "v[0:3]" : "v[0:15]", c = n <= 4 ? "v[16:19]" : "v[16:31]";
    std::string same = own;
    same.replace(same.find(c), c.size(), d);
    rows.push_back({after("the same opcode reads D as C", n), "4.1", own, same, kSameC[i]});
    std::string again = own;
    again.replace(again.find(c), c.size(), n <= 4 ? "v[80:83]" : "v[80:95]");
    rows.push_back({after("the same opcode writes D again", n), "4.1", own, again, 0});
    rows.push_back({after("MFMA reads an overlapping C", n), "4.1", own, kOverlappingC, kOtherC[i]});
    rows.push_back({after("MFMA reads a wider overlapping C", n), "4.1", own, kOverlappingC32, kOtherC[i]});
    HazardRow sgemm{after("SGEMM reads an overlapping C", n), "4.1", own, kSgemmOverlappingC, kOtherC[i]};
    if (n == 2) {
      sgemm.llvm = 3;
      sgemm.why_not =
          "LLVM 22 has one less for SGEMM and f64 consumers; the reference has one number for every consumer";
    }
    rows.push_back(std::move(sgemm));
  }
}

HazardRow row(const char* what, const char* producer, const char* consumer, unsigned states) {
  return {what, "4.1", producer, consumer, states};
}

void add_forms(std::vector<HazardRow>& rows) {
  const HazardRow forms[] = {
      row("VALU reads D of a scaled MFMA", kScaled, "v_mov_b32 v76, v15", 20),
      row("VALU reads D of an MFMA of fp4, 32x32",
          "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:35], v[36:39], v[16:31] cbsz:4 blgp:4", "v_mov_b32 v76, v1", 12),
      row("VALU reads D of an MFMA of fp4, 16x16",
          "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:35], v[36:39], v[16:19] cbsz:4 blgp:4", "v_mov_b32 v76, v1", 8),
      row("VALU reads D of an MFMA of fp6, 16x16",
          "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:37], v[40:45], v[16:19] cbsz:2 blgp:2", "v_mov_b32 v76, v1", 8),
      row("VALU reads D of an MFMA of fp8 and fp4, 16x16",
          "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[40:43], v[16:19] blgp:4", "v_mov_b32 v76, v1", 12),
      row("VALU reads D of an MFMA of fp8, 16x16x128",
          "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[40:47], v[16:19]", "v_mov_b32 v76, v1", 12),
      row("VALU reads D of an MFMA of fp8, 16x16x32",
          "v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[32:33], v[34:35], v[16:19]", "v_mov_b32 v76, v1", 8),
      row("VALU reads D of an MFMA of i8", "v_mfma_i32_32x32x32_i8 v[0:15], v[32:35], v[36:39], v[16:31]",
          "v_mov_b32 v76, v1", 12),
      row("VALU overwrites C of an MFMA of i8", "v_mfma_i32_32x32x32_i8 v[0:15], v[32:35], v[36:39], v[16:31]",
          "v_mov_b32 v31, 0", 7),
      row("VALU reads D of an MFMA of two blocks", "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], v[36:67]",
          "v_mov_b32 v76, v1", 20),
      row("VALU reads D of a sparse MFMA", kSparse, "v_mov_b32 v76, v1", 8),
      row("a sparse MFMA accumulates on its own D", kSparse, kSparse, 0),
      row("VALU overwrites D, which is C, of a sparse MFMA", kSparse, "v_mov_b32 v1, 0", 8),
      row("accvgpr_read reads D", kAcc, "v_accvgpr_read_b32 v76, a15", 12),
      row("store reads D in an AGPR", kAcc, "global_store_dword v[70:71], a3, off", 12),
      row("accvgpr_write overwrites D", kAcc, "v_accvgpr_write_b32 a0, 0", 12),
      row("accvgpr_write overwrites C", kAcc, "v_accvgpr_write_b32 a31, 0", 7),
      row("MFMA reads the same C in AGPRs", kAcc, "v_mfma_f32_32x32x16_bf16 a[0:15], v[32:35], v[36:39], a[0:15]", 0),
      row("MFMA reads D in AGPRs as A", kAcc, "v_mfma_f32_16x16x32_bf16 v[80:83], a[0:3], v[84:87], v[88:91]", 12),
      row("VALU overwrites A of an MFMA", kScaled, "v_mov_b32 v32, 0", 0),
      row("VALU overwrites B of an MFMA", kScaled, "v_mov_b32 v47, 0", 0),
      row("VALU overwrites the scale of an MFMA", kScaled, "v_mov_b32 v60, 0", 0),
      row("a load overwrites A of an MFMA", kScaled, "ds_read_b128 v[32:35], v72", 0),
      row("VALU reads an operand of an MFMA", kScaled, "v_mov_b32 v76, v16", 0),
      row("VALU next to an MFMA", kScaled, "v_mov_b32 v76, v77", 0),
  };
  rows.insert(rows.end(), std::begin(forms), std::end(forms));
  // Forwarding of C is stated for equal pass counts only.
  const std::pair<const char*, const char*> unequal[] = {
      {kXdl[2], "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:47], v[0:15]"},
      {kXdl[3], "v_mfma_f32_32x32x16_bf16 v[0:15], v[32:35], v[36:39], v[0:15]"},
      {kXdl[1], "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[40:47], v[0:3]"},
      {kSgemm8, "v_mfma_f32_16x16x32_bf16 v[0:3], v[32:35], v[36:39], v[0:3]"},
  };
  constexpr unsigned kUnequal[] = {10, 18, 6, 8};
  for (std::size_t i = 0; i < std::size(unequal); ++i) {
    rows.push_back({"the same C with another pass count", "4.1", unequal[i].first, unequal[i].second, kUnequal[i], 0,
                    "the guide states forwarding for equal pass counts only; LLVM and AMD's kernels rely on it", true});
  }
}

void add_float(std::vector<HazardRow>& rows) {
  const std::pair<const char*, unsigned> producers[] = {{kSgemm8, 10}, {kSgemm16, 18}};
  for (const auto& [producer, states] : producers) {
    for (const Consumer& c : kNeedsResult)
      rows.push_back({std::string(c.what) + " of an SGEMM MFMA", "4.1", producer, c.text, states});
    rows.push_back({"VALU overwrites C of an SGEMM MFMA", "4.1", producer, "v_mov_b32 v17, 0", 0});
    rows.push_back({"SGEMM reads an overlapping C of an SGEMM MFMA", "4.1", producer, kSgemmOverlappingC, states - 2});
    rows.push_back({"XDL reads an overlapping C of an SGEMM MFMA", "4.1", producer, kOverlappingC, states - 2, 0,
                    "LLVM 22 takes an XDL MFMA after an SGEMM one as interlocked; the reference has one number"});
  }
  rows.push_back({"an SGEMM MFMA accumulates", "4.1", kSgemm8, "v_mfma_f32_16x16x4_f32 v[0:3], v32, v33, v[0:3]", 0});
  rows.push_back(
      {"an SGEMM MFMA accumulates", "4.1", kSgemm16, "v_mfma_f32_32x32x2_f32 v[0:15], v32, v33, v[0:15]", 0});
}

// No document has these in text form; the numbers are LLVM 22's for gfx950.
void add_double(std::vector<HazardRow>& rows) {
  struct Double {
    const char* what;
    const char* consumer;
    unsigned dgemm4, dgemm16;
  };
  constexpr Double kRows[] = {
      {"VALU reads D of an f64 MFMA", "v_mov_b32 v76, v1", 6, 19},
      {"f64 VALU reads D of an f64 MFMA", "v_add_f64 v[76:77], v[0:1], v[78:79]", 6, 19},
      {"VALU writes D of an f64 MFMA", "v_mov_b32 v1, 0", 6, 11},
      {"ds_write reads D of an f64 MFMA", "ds_write_b64 v72, v[0:1]", 9, 18},
      {"global store reads D of an f64 MFMA", "global_store_dwordx2 v[70:71], v[0:1], off", 9, 18},
      {"load into D of an f64 MFMA", "ds_read_b32 v1, v72", 6, 11},
      {"f64 MFMA reads D as A", "v_mfma_f64_4x4x4_4b_f64 v[80:81], v[0:1], v[84:85], v[88:89]", 6, 19},
      {"XDL MFMA reads D of an f64 MFMA as B", "v_mfma_f32_4x4x4_16b_f16 v[80:83], v[84:85], v[0:1], v[88:91]", 6, 19},
      {"SGEMM MFMA reads an overlapping C of an f64 MFMA", "v_mfma_f32_16x16x4_f32 v[80:83], v84, v92, v[0:3]", 4, 17},
      {"XDL MFMA reads an overlapping C of an f64 MFMA",
       "v_mfma_f32_16x16x32_bf16 v[80:83], v[84:87], v[92:95], v[0:3]", 0, 0},
      {"VALU overwrites C of an f64 MFMA", "v_mov_b32 v17, 0", 0, 0},
      {"v_fma_f64 next to an f64 MFMA", "v_fma_f64 v[76:77], v[78:79], v[78:79], v[78:79]", 2, 2},
  };
  for (const Double& r : kRows) {
    rows.push_back({std::string(r.what) + ", 4 passes", "LLVM", kDgemm4, r.consumer, r.dgemm4});
    rows.push_back({std::string(r.what) + ", 16 passes", "LLVM", kDgemm16, r.consumer, r.dgemm16});
  }
  rows.push_back({"an f64 MFMA of 4 passes accumulates", "LLVM", kDgemm4,
                  "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[32:33], v[34:35], v[0:1]", 4});
  rows.push_back({"an f64 MFMA of 16 passes accumulates", "LLVM", kDgemm16,
                  "v_mfma_f64_16x16x4_f64 v[0:7], v[32:33], v[34:35], v[0:7]", 0});
  rows.push_back({"an f64 MFMA reads an overlapping C of an f64 MFMA", "LLVM", kDgemm16,
                  "v_mfma_f64_16x16x4_f64 v[80:87], v[32:33], v[34:35], v[2:9]", 17});
  rows.push_back({"an f64 MFMA reads an overlapping C of an XDL MFMA", "4.1", kXdl[2],
                  "v_mfma_f64_16x16x4_f64 v[80:87], v[32:33], v[34:35], v[2:9]", 10});
}

void add_consumers(std::vector<HazardRow>& rows) {
  const HazardRow consumers[] = {
      {"VALU writes A of an MFMA", "4.2", "v_mov_b32 v32, 0", kXdl[2], 2},
      {"VALU writes the last register of B of an MFMA", "4.2", "v_mov_b32 v39, 0", kXdl[2], 2},
      {"VALU writes C of an MFMA", "4.2", "v_mov_b32 v16, 0", kXdl[2], 2},
      {"trans writes B of an MFMA", "4.2", "v_exp_f32 v36, v76", kXdl[2], 2},
      {"conversion writes B of an MFMA", "4.2", "v_cvt_pk_fp8_f32 v40, v76, v77", kXdl[3], 2},
      {"conversion of the high half writes B of an MFMA", "4.2", "v_cvt_pk_fp8_f32 v40, v76, v77 op_sel:[0,0,1]",
       kXdl[3], 2},
      {"permlane swap writes A of an MFMA", "4.2", "v_permlane32_swap_b32 v32, v76", kXdl[2], 2},
      {"accvgpr_write writes C of an MFMA", "4.2", "v_accvgpr_write_b32 a16, 0", kAcc, 2},
      {"VALU writes a scale of an MFMA", "4.2", "v_mov_b32 v60, 0", kScaled, 2},
      {"VALU writes the B scale of an MFMA", "4.2", "v_mov_b32 v61, 0", kScaled, 2},
      {"VALU writes the index of a sparse MFMA", "4.2", "v_mov_b32 v60, 0", kSparse, 2},
      {"VALU writes C of a sparse MFMA", "4.2", "v_mov_b32 v0, 0", kSparse, 2},
      {"VALU writes A of an SGEMM MFMA", "4.2", "v_mov_b32 v32, 0", kSgemm16, 2},
      {"VALU writes A of an f64 MFMA", "4.2", "v_mov_b32 v32, 0", kDgemm16, 2},
      {"VALU writes D, not read, of an MFMA", "4.2", "v_mov_b32 v0, 0", kXdl[2], 0},
      {"v_cmpx before an MFMA", "4.2", "v_cmpx_eq_u32 vcc, v76, v77", kXdl[2], 4},
      {"v_cmpx before a sparse MFMA", "4.2", "v_cmpx_eq_u32 vcc, v76, v77", kSparse, 4},
      {"v_cmpx before an SGEMM MFMA", "4.2", "v_cmpx_eq_u32 vcc, v76, v77", kSgemm8, 4},
      {"SALU writes EXEC before an MFMA", "4.2", "s_mov_b64 exec, -1", kXdl[2], 0},
  };
  rows.insert(rows.end(), std::begin(consumers), std::end(consumers));
}

}  // namespace

void add_matrix_rows(std::vector<HazardRow>& rows) {
  add_xdl(rows);
  add_forms(rows);
  add_float(rows);
  add_double(rows);
  add_consumers(rows);
}

}  // namespace zyfa::hazards
