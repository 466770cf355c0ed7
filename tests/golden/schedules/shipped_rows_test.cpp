// Every shipped kernel: stock LLVM tools give the same bytes for its printed text, compiling twice gives the same
// bytes, it stays within two waves a SIMD and out of scratch, and its loops are aligned.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "jit/object/code_object.h"
#include "jit/verify/dump.h"
#include "jit/verify/verifier.h"
#include "schedules/compile.h"
#include "schedules/select/placement.h"
#include "tests/golden/schedules/shipped.h"

namespace zyfa::schedules {
namespace {

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::vector<const char*> tiles_of(const KernelSpec& spec) {
  if (spec.family != Family::kAttentionForward) return {"raw"};
  if (spec.element == ElementType::kBf16) return {"out[0]", "score[1]", "q[7]", "prob3[1]", "row_sum", "k_frag0[0]"};
  return {"out[0]", "score_a[1]", "q[1]", "prob_b", "row_sum", "k_frag_a[0]"};
}

// "score_a[1]" in a map: as it stands, of a block of queries ("score_a_q0[1]"), one of several copies ("score_a#0[1]").
testing::Matcher<std::string> names_tile(const std::string& tile) {
  const std::size_t index = std::min(tile.find('['), tile.size());
  const std::string name = tile.substr(0, index), element = tile.substr(index);
  std::vector<testing::Matcher<std::string>> forms;
  for (const char* block : {"", "_q0"}) {
    for (const char* copy : {"", "#0"}) forms.push_back(testing::HasSubstr("  " + name + block + copy + element));
  }
  return testing::AnyOfArray(forms);
}

void expect_stock_bytes(const CompiledKernel& kernel) {
  const auto ours = jit::read_code_object(kernel.object);
  ASSERT_TRUE(ours) << to_string(ours.error());
  const auto assembly = jit::dump_assembly(*ours, kernel.info.symbol);
  ASSERT_TRUE(assembly) << to_string(assembly.error());

  // A folder of its own: another build's run of this test may be under way.
  std::string pattern = testing::TempDir() + "/zyfa-rows-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path scratch = pattern;
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

void expect_fit(const KernelSpec& spec, const CompiledKernel& kernel) {
  const auto object = jit::read_code_object(kernel.object);
  ASSERT_TRUE(object);
  const jit::KernelImage* image = object->find(kernel.info.symbol);
  ASSERT_NE(image, nullptr);
  EXPECT_LE(image->total_vgprs(), kernel.info.agprs == 0 ? 256U : 512U);
  EXPECT_EQ(kernel.info.agprs == 0, parse_placement(spec.placement)->queries == 32);
  EXPECT_EQ(image->descriptor_private, 0U);
  EXPECT_EQ(image->private_bytes, 0U);
  EXPECT_EQ(object->listing.size(), kernel.info.instructions);
  // Origins are relative to the repository: the same sources give the same bytes wherever they were built.
  for (const jit::ListingNote& note : object->listing) {
    EXPECT_THAT(note.source, testing::StartsWith("schedules/"));
  }
  // The printed map names what a kernel engineer looks for.
  for (const char* tile : tiles_of(spec)) {
    EXPECT_THAT(kernel.register_map, names_tile(tile));
  }
  const auto report = jit::verify_object(*object);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty());
}

// mi355x-timing.md 1.6: an 8-byte instruction at 4 mod 8 takes a cycle more.
void expect_alignment(const KernelSpec& spec, const CompiledKernel& kernel) {
  const golden::KernelCode code = golden::read_code(kernel);
  EXPECT_EQ(code.address % 256, 0U);
  const std::vector<golden::Loop> loops = code.loops();
  if (spec.family == Family::kAttentionForward) {
    EXPECT_EQ(loops.size(), spec.near_keys == NearKeys::kBf16 ? 2U : 1U);
  } else {
    EXPECT_GE(loops.size(), 1U);
  }
  std::size_t checked = 0;
  for (const golden::Loop& loop : loops) {
    for (std::size_t i = loop.first; i <= loop.last; ++i) {
      const jit::Decoded& instruction = code.lines[i].code;
      if (instruction.size == 4) continue;
      ++checked;
      EXPECT_EQ((code.address + instruction.offset) % 8, 0U) << instruction.text;
    }
  }
  EXPECT_GE(checked, 20U);
}

// Once for every spec of the row.
class ShippedRow : public testing::TestWithParam<std::string> {
 protected:
  template <typename Check>
  void for_each_spec(Check check) {
    const Row* row = find_row(kernel_table(), GetParam());
    ASSERT_NE(row, nullptr);
    const std::vector<KernelSpec> specs = golden::specs_of(*row);
    EXPECT_GE(specs.size(), 4U);
    for (const KernelSpec& spec : specs) {
      SCOPED_TRACE(golden::variant_name(spec));
      const auto kernel = compile_kernel(spec);
      ASSERT_TRUE(kernel) << to_string(kernel.error());
      check(spec, *kernel);
    }
  }
};

TEST_P(ShippedRow, StockToolsGiveTheSameBytes) {
  for_each_spec([](const KernelSpec&, const CompiledKernel& kernel) { expect_stock_bytes(kernel); });
}

TEST_P(ShippedRow, CompilesToTheSameBytesTwice) {
  for_each_spec([](const KernelSpec& spec, const CompiledKernel& kernel) {
    const auto second = compile_kernel(spec);
    ASSERT_TRUE(second);
    EXPECT_EQ(kernel.object, second->object);
  });
}

// Two waves a SIMD, one of 64 queries.
TEST_P(ShippedRow, FitsItsSimdWithoutScratch) { for_each_spec(expect_fit); }

TEST_P(ShippedRow, AlignsLongInstructionsInItsLoops) { for_each_spec(expect_alignment); }

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const Row& row : kernel_table()) names.emplace_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Rows, ShippedRow, testing::ValuesIn(row_names()), [](const auto& info) { return info.param; });

// Every variant of 8-bit attention: e4m3 with 6 and int8 with 4, for both head dims.
TEST(Shipped, SpecsOfARow) {
  EXPECT_EQ(golden::specs_of(*find_row(kernel_table(), "pingpong")).size(), 4U);
  EXPECT_EQ(golden::specs_of(*find_row(kernel_table(), "fp8_pingpong")).size(), 10U);
  EXPECT_EQ(golden::specs_of(*find_row(kernel_table(), "fp8_pingpong_folded")).size(), 4U);
  EXPECT_EQ(golden::specs_of(*find_row(kernel_table(), "fp8_near_naive")).size(), 20U);
  EXPECT_EQ(golden::specs_of(*find_row(kernel_table(), "quantise")).size(), 13U);
}

}  // namespace
}  // namespace zyfa::schedules
