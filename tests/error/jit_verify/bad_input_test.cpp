// The verifier on input that no assembler would make: random words, truncated code, absurd declarations. It must
// return.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "tests/unit/jit_verify/kernel_text.h"

namespace zyfa::jit::testing {
namespace {

TEST(BadInput, NoCodeAtAll) {
  Subject s = subject_of({});
  const VerifyReport r = verify_kernel(s.object, s.kernel, s.decoded);
  EXPECT_EQ(of_kind(r, FindingKind::kControlFlow).size(), 1u) << listing_of(r);
}

TEST(BadInput, NoKernelIsAnError) {
  Subject s = subject_of(machine_code("s_endpgm\n"));
  s.object.kernels.clear();
  const Expected<VerifyReport> r = verify_object(s.object);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(r.error().message, ::testing::HasSubstr("holds no kernel"));
}

TEST(BadInput, EntryOutsideOrInsideAnInstruction) {
  const std::string text = "s_mov_b32 s3, 0x12345678\ns_endpgm\n";
  for (const std::uint64_t entry : {std::uint64_t{4}, std::uint64_t{1000}, ~std::uint64_t{0}}) {
    const VerifyReport r = verify_text(text, [entry](Subject& s) { s.kernel.entry_offset = entry; });
    EXPECT_EQ(of_kind(r, FindingKind::kControlFlow).size(), 1u) << entry << "\n" << listing_of(r);
  }
}

TEST(BadInput, AbsurdDeclarations) {
  const VerifyReport r = verify_text("s_endpgm\n", [](Subject& s) {
    KernelImage& k = s.kernel;
    k.rsrc1 = k.rsrc2 = k.rsrc3 = ~0u;
    k.code_bytes = ~std::uint64_t{0};
    k.descriptor_lds = k.descriptor_private = k.descriptor_kernarg = k.max_workgroup = ~0u;
    k.properties = k.preload = 0xffff;
    k.arguments = {{"x", ~0u, ~0u, false}};
  });
  EXPECT_GE(r.findings.size(), 5u) << listing_of(r);
}

TEST(BadInput, RandomWordsReturn) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::byte> code(4 * (1 + random() % 400));
    for (std::size_t i = 0; i < code.size(); i += 4) {
      // Half of the words come from the scalar and vector opcode spaces, so that many decode.
      std::uint32_t word = random();
      if (random() % 2) word = (word & 0x00ffffff) | (random() % 2 ? 0xbf000000 : 0x7e000000);
      std::memcpy(code.data() + i, &word, 4);
    }
    Subject s = subject_of(std::move(code));
    const VerifyReport r = verify_kernel(s.object, s.kernel, s.decoded);
    EXPECT_LE(r.findings.size(), 200u);
  }
}

}  // namespace
}  // namespace zyfa::jit::testing
