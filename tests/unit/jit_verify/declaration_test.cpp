// Budgets and declarations: one field changed at a time from a kernel that is right.
#include <gmock/gmock.h>

#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

using ::testing::HasSubstr;

struct Fault {
  const char* name;
  FindingKind kind;
  const char* message;
  void (*change)(Subject&);
};

const Fault kFaults[] = {
    {"LdsTooLarge", FindingKind::kLdsBudget, "163841 bytes of LDS; at most 163840",
     [](Subject& s) { s.kernel.descriptor_lds = s.kernel.group_bytes = 163841; }},
    {"LdsDisagrees", FindingKind::kLdsBudget, "65536 bytes of LDS, the metadata 65532",
     [](Subject& s) { s.kernel.group_bytes = 65532; }},
    {"PrivateSegment", FindingKind::kScratch, "a private segment of 16 bytes; 0 is required",
     [](Subject& s) { s.kernel.descriptor_private = s.kernel.private_bytes = 16; }},
    {"PrivateInMetadata", FindingKind::kScratch, "the metadata declares a private segment of 16 bytes",
     [](Subject& s) { s.kernel.private_bytes = 16; }},
    {"DynamicStack", FindingKind::kScratch, "dynamic stack", [](Subject& s) { s.kernel.properties |= 1 << 11; }},
    {"WorkgroupTooLargeForRegisters", FindingKind::kRegisterBudget,
     "a workgroup of 1024 work-items puts 4 waves on a SIMD, which leaves 128",
     [](Subject& s) { s.kernel.max_workgroup = 1024; }},
    {"UserSgprs", FindingKind::kDescriptor, "need 4 user SGPRs, rsrc2 declares 2",
     [](Subject& s) { s.kernel.properties |= 1 << 1; }},
    {"TooManyUserSgprs", FindingKind::kDescriptor, "17 user SGPRs are declared; at most 16",
     [](Subject& s) { s.kernel.rsrc2 = 17 << 1 | 7 << 7; }},
    {"Wave32", FindingKind::kDescriptor, "wave32", [](Subject& s) { s.kernel.properties |= 1 << 10; }},
    {"Wavefront", FindingKind::kDescriptor, "wavefront size 32", [](Subject& s) { s.kernel.wavefront_size = 32; }},
    {"Kernarg", FindingKind::kDescriptor, "64 bytes of kernel arguments, the metadata 72",
     [](Subject& s) { s.kernel.kernarg_bytes = 72; }},
    {"ArgumentOutside", FindingKind::kDescriptor, "argument q ends at byte 68 of 64",
     [](Subject& s) { s.kernel.arguments = {{"q", 60, 8, true}}; }},
    {"Workgroup", FindingKind::kDescriptor, "at most 0 work-items", [](Subject& s) { s.kernel.max_workgroup = 0; }},
    {"MetadataVgprs", FindingKind::kDescriptor, "the metadata declares 264 VGPRs, the descriptor allocates 256",
     [](Subject& s) { s.kernel.vgprs = 264; }},
    {"MetadataAgprs", FindingKind::kDescriptor, "the metadata declares 136 AGPRs, the descriptor allocates 128",
     [](Subject& s) { s.kernel.agprs = 136; }},
    {"MetadataVgprsBelowUse", FindingKind::kDescriptor, "declares 64 VGPRs, the code uses 128",
     [](Subject& s) { s.kernel.vgprs = 64; }},
    {"MetadataAgprsBelowUse", FindingKind::kDescriptor, "declares 8 AGPRs, the code uses 64",
     [](Subject& s) { s.kernel.agprs = 8; }},
    {"MetadataSgprsBelowUse", FindingKind::kDescriptor, "declares 8 SGPRs, the code uses 64",
     [](Subject& s) { s.kernel.sgprs = 8; }},
    {"EntryAlignment", FindingKind::kDescriptor, "is not aligned to 256",
     [](Subject& s) { s.object.text_address = 64; }},
};

class DeclarationFault : public ::testing::TestWithParam<Fault> {};

TEST_P(DeclarationFault, IsReportedAlone) {
  const VerifyReport r = verify_body("", GetParam().change);
  ASSERT_EQ(r.findings.size(), 1u) << listing_of(r);
  EXPECT_EQ(r.findings[0].kind, GetParam().kind) << listing_of(r);
  EXPECT_THAT(r.findings[0].message, HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(All, DeclarationFault, ::testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Declaration, TheUnchangedKernelIsClean) {
  const VerifyReport r = verify_body("");
  EXPECT_TRUE(r.findings.empty()) << listing_of(r);
  EXPECT_EQ(r.vgprs, 128u);
  EXPECT_EQ(r.agprs, 64u);
  EXPECT_EQ(r.sgprs, 64u);
}

TEST(Declaration, MaximumLdsIsAllowed) {
  EXPECT_TRUE(
      verify_body("", [](Subject& s) { s.kernel.descriptor_lds = s.kernel.group_bytes = 163840; }).findings.empty());
}

TEST(RegisterBudget, ArchitecturalVgprsAgprsAndSgprs) {
  const auto only = [](const std::string& text, const char* message) {
    const auto found = of_kind(verify_text(text + "s_endpgm\n"), FindingKind::kRegisterBudget);
    ASSERT_EQ(found.size(), 1u) << text;
    EXPECT_THAT(found[0].message, HasSubstr(message));
  };
  only("v_mov_b32 v128, 0\n", "uses v128, but the descriptor allocates 128 architectural VGPRs");
  only("v_accvgpr_write_b32 a128, 0\n", "uses a128, but the descriptor allocates 128 AGPRs");
  only("s_mov_b32 s96, 0\n", "uses s96, but the descriptor allocates 96 SGPRs");
  const VerifyReport edge = verify_text("v_mov_b32 v127, 0\nv_accvgpr_write_b32 a127, 0\ns_mov_b32 s95, 0\ns_endpgm\n");
  EXPECT_TRUE(edge.findings.empty()) << listing_of(edge);
}

TEST(RegisterBudget, AllArchitecturalLeavesNoAgprs) {
  const auto all_arch = [](Subject& s) {
    s.kernel.rsrc3 = 256 / 4 - 1;
    s.kernel.agprs = 0;
  };
  EXPECT_TRUE(verify_text("v_mov_b32 v255, 0\ns_endpgm\n", all_arch).findings.empty());
  const VerifyReport r = verify_text("v_accvgpr_write_b32 a0, 0\ns_endpgm\n", all_arch);
  ASSERT_EQ(of_kind(r, FindingKind::kRegisterBudget).size(), 1u) << listing_of(r);
}

TEST(Scratch, AccessIsReported) {
  const VerifyReport r = verify_body("scratch_store_dword v0, v1, off\n");
  ASSERT_EQ(r.findings.size(), 1u) << listing_of(r);
  EXPECT_EQ(r.findings[0].kind, FindingKind::kScratch);
}

}  // namespace
}  // namespace zyfa::jit::testing
