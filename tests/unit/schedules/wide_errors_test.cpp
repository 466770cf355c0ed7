// What a user is told whose placement has 64 queries a wave where it cannot, or not so.
#include <gmock/gmock.h>

#include "schedules/compile.h"
#include "tests/correctness/schedules/wide_shapes.h"

namespace zyfa::schedules {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

KernelSpec fp8(std::uint32_t head_dim) {
  KernelSpec spec;
  spec.element = ElementType::kFp8E4M3;
  spec.head_dim_qk = head_dim;
  return spec;
}

std::string refusal(KernelSpec spec, const std::string& placement) {
  spec.placement = placement;
  const Expected<CompiledKernel> kernel = compile_kernel(spec);
  EXPECT_FALSE(kernel) << placement;
  if (kernel) return {};
  EXPECT_EQ(kernel.error().code, ErrorCode::kScheduleError) << to_string(kernel.error());
  return to_string(kernel.error());
}

TEST(WideErrors, EightWavesHaveNoSimdEach) {
  for (const std::string& text :
       {replaced(tests::kFp8WideNaive, "waves=4", "waves=8"), replaced(tests::kFp8WidePaced, "waves=4", "waves=8")}) {
    EXPECT_THAT(refusal(fp8(128), text), AllOf(HasSubstr("waves=8"), HasSubstr("queries=64"), HasSubstr("allowed: 4")));
  }
  EXPECT_THAT(refusal({}, replaced(tests::kBf16WideNaive, "waves=4", "waves=8")),
              AllOf(HasSubstr("waves=8"), HasSubstr("queries=64"), HasSubstr("allowed: 4")));
  // Both loops of near=bf16 would refuse; one message is enough, but there must be one.
  KernelSpec near = fp8(128);
  near.near_keys = NearKeys::kBf16;
  EXPECT_THAT(refusal(near, replaced(tests::behind_near_keys(tests::kFp8WideNaive), "waves=4", "waves=8")),
              HasSubstr("allowed: 4"));
}

// Of 512 registers 256 are AGPRs. O of two blocks takes 2 * 4 * 16; the fragments of K, 64 keys of 192 bytes a half
// over 64 lanes of 4 bytes, 2 * 48; those of V, 64 keys of 128 bytes, 2 * 32: 288 when all are alive at once.
TEST(WideErrors, SharedFragmentsOf192DimsTakeMoreAgprsThanThereAre) {
  EXPECT_THAT(refusal(fp8(192), tests::kFp8WidePaced),
              AllOf(HasSubstr("does not fit in 256 AGPRs"), HasSubstr("peak demand 288"), HasSubstr("k_frag_b[5]"),
                    HasSubstr("v_frag_b[3]"), HasSubstr("out_q1[3]")));
}

TEST(WideErrors, StagesOfBlocksNeedTheBlocks) {
  EXPECT_THAT(refusal(fp8(128), replaced(tests::kFp8WideNaive, "queries=64", "queries=32")),
              AllOf(HasSubstr("no stage 'qk_a_q0'"), HasSubstr("stage 'qk_a' is not placed")));
  EXPECT_THAT(refusal(fp8(128), replaced(tests::kFp8WideNaive, "qk_a_q0,qk_a_q1", "qk_a")),
              AllOf(HasSubstr("no stage 'qk_a'"), HasSubstr("stage 'qk_a_q1' is not placed")));
}

TEST(WideErrors, FragmentsAreReadForAllBlocksOrForEach) {
  EXPECT_THAT(refusal(fp8(128), replaced(tests::kFp8WideNaive, "read_k_a,", "read_k_a_q0,")),
              HasSubstr("stage 'read_k_a_q1' is not placed"));
  EXPECT_THAT(refusal(fp8(128), replaced(tests::kFp8WideNaive, "read_k_a,", "read_k_a_q1,")),
              HasSubstr("stage 'read_k_a' is not placed"));
  EXPECT_THAT(refusal(fp8(128), replaced(tests::kFp8WideNaive, "read_k_a,", "read_k_a,read_k_a_q0,read_k_a_q1,")),
              HasSubstr("no stage 'read_k_a'"));
}

// A kernel without queries would ignore them.
TEST(WideErrors, TheQuantiserHasNoQueries) {
  for (const Family family : {Family::kQuantise, Family::kQuantiseStatistics}) {
    KernelSpec spec = fp8(128);
    spec.family = family;
    const std::string second = family == Family::kQuantise ? "convert" : "reduce";
    const std::string text = "name=q;waves=1;groups=1;loop=load," + second;
    spec.placement = text;
    const Expected<CompiledKernel> usual = compile_kernel(spec);
    EXPECT_TRUE(usual) << to_string(usual.error());
    EXPECT_THAT(refusal(spec, replaced(text, "groups", "queries=64;groups")),
                AllOf(HasSubstr("queries=64"), HasSubstr("32")));
  }
}

}  // namespace
}  // namespace zyfa::schedules
