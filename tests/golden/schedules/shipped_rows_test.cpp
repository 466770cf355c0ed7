// Every shipped kernel: stock LLVM tools give the same bytes for its printed text, compiling twice gives the same
// bytes, and it stays within two waves a SIMD and out of scratch.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "jit/object/code_object.h"
#include "jit/verify/dump.h"
#include "jit/verify/verifier.h"
#include "schedules/compile.h"
#include "schedules/select/placements.h"

namespace zyfa::schedules {
namespace {

using Row = std::tuple<const char*, MaskKind, LseOutput>;

KernelSpec spec_of(const Row& row) {
  const auto& [placement, mask, lse] = row;
  KernelSpec spec;
  spec.placement = std::string(placement) == "naive" ? kNaivePlacement : kPingpongPlacement;
  spec.mask = mask;
  spec.lse = lse;
  return spec;
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

class ShippedRow : public testing::TestWithParam<Row> {};

TEST_P(ShippedRow, StockToolsGiveTheSameBytes) {
  const auto kernel = compile_kernel(spec_of(GetParam()));
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  const auto ours = jit::read_code_object(kernel->object);
  ASSERT_TRUE(ours) << to_string(ours.error());
  const auto assembly = jit::dump_assembly(*ours, kernel->info.symbol);
  ASSERT_TRUE(assembly) << to_string(assembly.error());

  const std::filesystem::path scratch = std::filesystem::path(testing::TempDir()) / kernel->info.symbol;
  std::filesystem::create_directories(scratch);
  std::ofstream(scratch / "k.s") << *assembly;
  const std::string in = (scratch / "k").string();
  const std::string command = std::string(STOCK_MC) +
                              " -triple amdgcn-amd-amdhsa -mcpu=gfx950 -mattr=+sramecc,-xnack -filetype=obj '" + in +
                              ".s' -o '" + in + ".o' && " + STOCK_LLD + " -shared '" + in + ".o' -o '" + in + ".co'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto stock = jit::read_code_object(read_bytes(scratch / "k.co"));
  ASSERT_TRUE(stock) << to_string(stock.error());
  const std::vector<std::byte> a(ours->text.begin(), ours->text.end()), b(stock->text.begin(), stock->text.end());
  EXPECT_EQ(a, b);
  std::filesystem::remove_all(scratch);
}

TEST_P(ShippedRow, CompilesToTheSameBytesTwice) {
  const auto first = compile_kernel(spec_of(GetParam()));
  const auto second = compile_kernel(spec_of(GetParam()));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->object, second->object);
}

TEST_P(ShippedRow, FitsTwoWavesASimdWithoutScratch) {
  const auto kernel = compile_kernel(spec_of(GetParam()));
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  const auto object = jit::read_code_object(kernel->object);
  ASSERT_TRUE(object);
  const jit::KernelImage* image = object->find(kernel->info.symbol);
  ASSERT_NE(image, nullptr);
  EXPECT_LE(image->total_vgprs(), 256U);
  EXPECT_EQ(image->descriptor_private, 0U);
  EXPECT_EQ(image->private_bytes, 0U);
  EXPECT_EQ(object->listing.size(), kernel->info.instructions);
  // Origins are relative to the repository: the same sources give the same bytes wherever they were built.
  for (const jit::ListingNote& note : object->listing) {
    EXPECT_THAT(note.source, testing::StartsWith("schedules/"));
  }
  // The printed map names what a kernel engineer looks for.
  for (const char* tile : {"out[0]", "score[1]", "q[7]", "prob[3]", "row_sum", "k_frag[0]"}) {
    EXPECT_THAT(kernel->register_map, testing::HasSubstr(tile));
  }
  const auto report = jit::verify_object(*object);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty());
}

std::string name_of(const testing::TestParamInfo<Row>& info) {
  const auto& [placement, mask, lse] = info.param;
  return std::string(placement) + (mask == MaskKind::kCausal ? "_causal" : "_full") +
         (lse == LseOutput::kWritten ? "_lse" : "");
}

INSTANTIATE_TEST_SUITE_P(Rows, ShippedRow,
                         testing::Combine(testing::Values("naive", "pingpong"),
                                          testing::Values(MaskKind::kFull, MaskKind::kCausal),
                                          testing::Values(LseOutput::kNone, LseOutput::kWritten)),
                         name_of);

}  // namespace
}  // namespace zyfa::schedules
