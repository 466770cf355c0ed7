// Control flow, definedness, operand rules, and the form of a report.
#include <gmock/gmock.h>

#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

using ::testing::HasSubstr;

void expect_clean(const VerifyReport& r) { EXPECT_TRUE(r.findings.empty()) << listing_of(r); }

void expect_one(const VerifyReport& r, FindingKind kind, const std::string& text) {
  ASSERT_EQ(r.findings.size(), 1u) << listing_of(r);
  EXPECT_EQ(r.findings[0].kind, kind) << listing_of(r);
  EXPECT_THAT(r.findings[0].message, HasSubstr(text));
}

TEST(ControlFlow, FallingOffTheEnd) {
  expect_one(verify_text("s_nop 0\n"), FindingKind::kControlFlow, "runs past the end");
  expect_one(verify_text("s_cmp_eq_u32 s0, 0\ns_cbranch_scc0 2\ns_endpgm\ns_nop 0\ns_cbranch_scc1 -2\n"),
             FindingKind::kControlFlow, "runs past the end");
  expect_clean(verify_text("s_nop 0\ns_endpgm\n"));
}

TEST(ControlFlow, BranchOutsideTheKernel) {
  expect_one(verify_text("s_branch 100\ns_endpgm\n"), FindingKind::kControlFlow,
             "branches to kernel offset 404, outside");
  expect_one(verify_text("s_branch -10\n"), FindingKind::kControlFlow, "branches to kernel offset -36, outside");
  expect_one(verify_text("s_branch 1\ns_nop 0\ns_endpgm\n", [](Subject& s) { s.kernel.code_bytes = 8; }),
             FindingKind::kControlFlow, "outside the kernel's 8 bytes");
  expect_clean(verify_text("s_branch 1\ns_nop 0\ns_endpgm\n"));
}

TEST(ControlFlow, BranchIntoAnInstruction) {
  const std::string tail = "s_mov_b32 s3, 0x12345678\ns_endpgm\n";
  expect_one(verify_text("s_branch 1\n" + tail), FindingKind::kControlFlow, "inside an instruction");
  expect_clean(verify_text("s_branch 2\n" + tail));
}

TEST(ControlFlow, UndecodableBytesOnlyWhereReachable) {
  expect_one(verify_text(".long 0xffffffff\ns_endpgm\n"), FindingKind::kControlFlow, "decode to no gfx950 instruction");
  expect_clean(verify_text("s_branch 1\n.long 0xffffffff\ns_endpgm\n"));
  expect_clean(verify_text("s_endpgm\n.long 0xffffffff\n"));
}

TEST(ControlFlow, IndirectJumpsAreNotedAndNotFollowed) {
  const VerifyReport r = verify_text("s_setpc_b64 s[0:1]\n");
  expect_clean(r);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_THAT(r.notes[0], HasSubstr("not followed: `s_setpc_b64 s[0:1]` at 0x0"));
}

TEST(ControlFlow, CodeOnNoPathIsCountedAndNoted) {
  const VerifyReport behind = verify_text("s_endpgm\nv_mov_b32 v1, v2\ns_nop 0\ns_endpgm\n");
  expect_clean(behind);
  EXPECT_EQ(behind.instructions, 1u);
  EXPECT_EQ(behind.not_reached, 2u);  // s_nop is padding
  ASSERT_EQ(behind.notes.size(), 1u);
  EXPECT_THAT(behind.notes[0], HasSubstr("no followed path reaches: 2"));
  const VerifyReport between = verify_text("s_branch 1\nv_mov_b32 v1, v2\ns_endpgm\n");
  EXPECT_EQ(between.instructions, 2u);
  EXPECT_EQ(between.not_reached, 1u);
  const VerifyReport all = verify_text("s_branch 1\ns_nop 0\ns_endpgm\ns_nop 0\n");
  EXPECT_EQ(all.not_reached, 0u);
  EXPECT_TRUE(all.notes.empty());
}

TEST(ControlFlow, CodeOfNoKernelIsCountedAndNoted) {
  Subject s = subject_of(machine_code("s_endpgm\nv_mov_b32 v1, v2\ns_setpc_b64 s[30:31]\n"));
  s.kernel.code_bytes = 4;
  s.object.kernels = {s.kernel};
  const Expected<VerifyReport> r = verify_object(s.object);
  ASSERT_TRUE(r);
  expect_clean(*r);
  EXPECT_EQ(r->not_reached, 2u);
  ASSERT_EQ(r->notes.size(), 1u);
  EXPECT_THAT(r->notes[0], HasSubstr("belong to no kernel (functions, say): 2"));
}

TEST(ControlFlow, PreloadedArgumentsEnterTwice) {
  const std::string text = "s_branch entry\n.fill 63, 4, 0xbf800000\nentry:\n";
  const auto preload = [](Subject& s) {
    s.kernel.preload = 2;
    s.kernel.rsrc2 = 4 << 1 | 7 << 7;
  };
  expect_clean(verify_text(text + "s_endpgm\n", preload));
  expect_one(verify_text("s_endpgm\n", preload), FindingKind::kControlFlow, "256 bytes after the entry");
}

TEST(Uninitialised, InitialState) {
  // Two user SGPRs and three workgroup ids: s0 to s4, and v0.
  expect_clean(verify_text("s_mov_b32 s9, s4\nv_mov_b32 v1, v0\ns_mov_b64 s[10:11], exec\ns_endpgm\n"));
  expect_one(verify_text("s_mov_b32 s9, s5\ns_endpgm\n"), FindingKind::kUninitialised, "reads s5, which no path");
  expect_one(verify_text("v_mov_b32 v1, v2\ns_endpgm\n"), FindingKind::kUninitialised, "reads v2, which no path");
  expect_one(verify_text("v_accvgpr_read_b32 v1, a3\ns_endpgm\n"), FindingKind::kUninitialised, "reads a3");
  expect_one(verify_text("v_cndmask_b32 v1, v0, v0, vcc\ns_endpgm\n"), FindingKind::kUninitialised, "reads vcc");
  expect_one(verify_text("s_mov_b32 s9, m0\ns_endpgm\n"), FindingKind::kUninitialised, "reads m0");
  expect_one(verify_text("s_cbranch_scc0 0\ns_endpgm\n"), FindingKind::kUninitialised, "reads scc");
  expect_one(verify_text("s_mov_b32 s9, s4\ns_endpgm\n", [](Subject& s) { s.kernel.rsrc2 = 2 << 1 | 3 << 7; }),
             FindingKind::kUninitialised, "reads s4");
}

TEST(Uninitialised, PartOfATuple) {
  const std::string store = "v_mov_b32 v4, v0\nv_mov_b32 v5, v0\n";
  expect_one(verify_text(store + "global_store_dwordx4 v[4:5], v[4:7], off\ns_endpgm\n"), FindingKind::kUninitialised,
             "reads v[6:7] (of v[4:7])");
  expect_clean(verify_text(store + "global_store_dwordx2 v[4:5], v[4:5], off\ns_endpgm\n"));
}

// Marks the object as one of zyfa's, in which every path must define.
void own(Subject& s) { s.object.listing.resize(1); }

// Code of others may rely on branches that agree: a note, not a finding.
void expect_note_elsewhere(const std::string& text, const std::string& note) {
  const VerifyReport r = verify_text(text);
  expect_clean(r);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_THAT(r.notes[0], HasSubstr(note));
}

TEST(Uninitialised, OnOnePathOnly) {
  const auto fork = [](const char* second) {
    return "s_cmp_eq_u32 s2, 0\ns_cbranch_scc0 other\nv_mov_b32 v3, 0\ns_branch join\nother:\n" + std::string(second) +
           "join:\nv_mov_b32 v4, v3\ns_endpgm\n";
  };
  expect_one(verify_text(fork("s_nop 0\n"), own), FindingKind::kUninitialised,
             "v3, which is not written on every path");
  expect_clean(verify_text(fork("v_mov_b32 v3, 1\n"), own));
  expect_note_elsewhere(fork("s_nop 0\n"), "1 reads of registers that some path does not write");
}

TEST(Uninitialised, FirstTripOfALoop) {
  const auto loop = [](const char* before) {
    return std::string(before) +
           "s_mov_b32 s9, 4\nloop:\nv_add_u32 v4, v3, v0\nv_mov_b32 v3, v4\ns_sub_u32 s9, s9, 1\n"
           "s_cmp_lg_u32 s9, 0\ns_cbranch_scc1 loop\ns_endpgm\n";
  };
  expect_one(verify_text(loop(""), own), FindingKind::kUninitialised, "reads v3");
  expect_clean(verify_text(loop("v_mov_b32 v3, 0\n"), own));
  expect_note_elsewhere(loop(""), "reads v3");
}

TEST(Uninitialised, SkippingWithNoActiveLaneDefinesVectors) {
  // if (mask) v3 = 0; under the same mask v3 is read: nothing reads an undefined lane.
  const std::string text =
      "v_cmp_eq_u32 vcc, 0, v0\ns_and_saveexec_b64 s[10:11], vcc\ns_cbranch_execz skip\nv_mov_b32 v3, 0\nskip:\n"
      "v_mov_b32 v4, v3\ns_endpgm\n";
  expect_clean(verify_text(text, own));
  // The same jump does not hide a register that nobody writes.
  expect_one(verify_text("s_cbranch_execz skip\ns_nop 0\nskip:\nv_mov_b32 v4, v3\ns_endpgm\n"),
             FindingKind::kUninitialised, "reads v3, which no path");
}

TEST(Uninitialised, PartialWritesKeepWhatTheyFind) {
  expect_clean(verify_text("v_cvt_pk_fp8_f32 v3, v0, v0\nv_cvt_pk_fp8_f32 v3, v0, v0 op_sel:[0,0,1]\ns_endpgm\n"));
  expect_clean(verify_text("v_writelane_b32 v3, s4, 0\ns_endpgm\n"));
  expect_one(verify_text("v_fmac_f32 v3, v0, v0\ns_endpgm\n"), FindingKind::kUninitialised, "reads v3");
  expect_one(verify_text("v_cvt_pk_fp8_f32 v3, v3, v0\ns_endpgm\n"), FindingKind::kUninitialised, "reads v3");
}

TEST(Uninitialised, PackedInstructionsReadOnlyTheChosenDwords) {
  const std::string both = "v_mov_b32 v2, 0\nv_mov_b32 v3, 0\nv_mov_b32 v4, 0\n";
  expect_clean(verify_text(both + "v_pk_add_f32 v[6:7], v[2:3], v[4:5] op_sel_hi:[1,0]\ns_endpgm\n"));
  expect_one(verify_text(both + "v_pk_add_f32 v[6:7], v[2:3], v[4:5]\ns_endpgm\n"), FindingKind::kUninitialised,
             "reads v5 (of v[4:5])");
  expect_one(verify_text(both + "v_pk_add_f32 v[6:7], v[2:3], v[4:5] op_sel:[0,1]\ns_endpgm\n"),
             FindingKind::kUninitialised, "reads v5");
}

TEST(Alignment, OddTuple) {
  // llvm-mc refuses odd tuples, so the register fields are set by hand: vdst of a dwordx2 load is bits 63:56.
  std::vector<std::byte> code = machine_code(defines_everything() + "global_load_dwordx2 v[2:3], v[70:71], off\n" +
                                             "s_waitcnt vmcnt(0)\ns_endpgm\n");
  Subject even = subject_of(code);
  expect_clean(verify_kernel(even.object, even.kernel, even.decoded));
  code[code.size() - 9] = std::byte{3};
  Subject odd = subject_of(code);
  const VerifyReport r = verify_kernel(odd.object, odd.kernel, odd.decoded);
  ASSERT_GE(r.findings.size(), 1u);
  EXPECT_TRUE(r.findings[0].kind == FindingKind::kAlignment || r.findings[0].kind == FindingKind::kControlFlow)
      << listing_of(r);
}

TEST(Alignment, OddTupleInFacts) {
  Subject s =
      subject_of(machine_code(defines_everything() + "ds_read_b64 v[2:3], v70\ns_waitcnt lgkmcnt(0)\ns_endpgm\n"));
  Decoded& read = s.decoded[s.decoded.size() - 3];
  read.facts.writes = {{Bank::kVgpr, 3, 2}};
  expect_one(verify_kernel(s.object, s.kernel, s.decoded), FindingKind::kAlignment, "v[3:4] starts at an odd register");
  read.mnemonic = "ds_read_b96_tr_b6";
  expect_clean(verify_kernel(s.object, s.kernel, s.decoded));
}

TEST(Alignment, MatrixOverlaps) {
  // The f8f6f4 forms are the ones llvm-mc lets through (gfx950-isa.md 1.2).
  const auto mfma = [](const char* a, const char* b, const char* c) {
    return verify_body("v_mfma_f32_32x32x64_f8f6f4 v[0:15], " + std::string(a) + ", " + b + ", " + c + "\n");
  };
  expect_clean(mfma("v[40:47]", "v[48:55]", "v[0:15]"));
  expect_clean(mfma("v[40:47]", "v[48:55]", "v[16:31]"));
  expect_clean(mfma("v[40:47]", "v[40:47]", "0"));
  expect_one(mfma("v[40:47]", "v[48:55]", "v[8:23]"), FindingKind::kAlignment, "D v[0:15] overlaps C v[8:23]");
  expect_one(mfma("v[8:15]", "v[48:55]", "v[0:15]"), FindingKind::kAlignment, "D v[0:15] overlaps A v[8:15]");
  expect_one(mfma("v[40:47]", "v[14:21]", "v[0:15]"), FindingKind::kAlignment, "D v[0:15] overlaps B v[14:21]");
}

TEST(Report, OriginComesFromTheListing) {
  const auto with_listing = [](Subject& s) {
    s.object.listing = {{"load@0", "first", "schedules/x.cpp:1"}, {"qk@1", "K tile 2", "schedules/x.cpp:7"}, {}};
  };
  const VerifyReport r = verify_text("s_nop 0\nv_mov_b32 v1, v2\ns_endpgm\n", with_listing);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].origin, "qk@1, K tile 2, schedules/x.cpp:7");
  EXPECT_EQ(r.findings[0].offset, 4u);
  EXPECT_EQ(to_string(r.findings[0]),
            "uninitialised at 0x4 `v_mov_b32_e32 v1, v2`: reads v2, which no path from the entry writes; a definition "
            "before this instruction is required [qk@1, K tile 2, schedules/x.cpp:7]");
}

TEST(Report, CountsAndCaps) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "v_mov_b32 v0, v100\n";
  const VerifyReport r = verify_text(text + "s_endpgm\n");
  EXPECT_EQ(r.instructions, 301u);
  EXPECT_EQ(r.vgprs, 101u);
  EXPECT_EQ(r.findings.size(), 200u);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_THAT(r.notes[0], HasSubstr("100 further findings"));
}

}  // namespace
}  // namespace zyfa::jit::testing
