// Bytes against stock LLVM tools: single instructions from the golden file, and whole kernels.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "jit/verify/dump.h"
#include "tests/require_tools.h"
#include "tests/unit/jit_llvm/code_helpers.h"
#include "tests/unit/jit_llvm/sample_listing.h"
#include "tests/unit/jit_llvm/tools.h"

namespace zyfa::jit {
namespace {

using ::testing::HasSubstr;

struct Row {
  std::string text, encoding, form, error;
};

std::vector<Row> golden_rows() {
  std::ifstream in(std::string(ZYFA_SOURCE_DIR) + "/tests/golden/jit_llvm/instructions.txt");
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("//") || line.empty()) continue;
    Row row;
    const std::size_t first = line.find(" ; ");
    row.text = line.substr(0, first);
    const std::string rest = line.substr(first + 3);
    if (rest.starts_with("error: ")) {
      row.error = rest.substr(7);
    } else {
      const std::size_t second = rest.find(" ; ");
      row.encoding = rest.substr(0, second);
      row.form = rest.substr(second + 3);
    }
    rows.push_back(row);
  }
  return rows;
}

std::string encoding_of(std::span<const std::byte> bytes) {
  std::ostringstream out;
  out << "encoding: [";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    char text[8];
    std::snprintf(text, sizeof(text), "%s0x%02x", i == 0 ? "" : ",", std::to_integer<unsigned>(bytes[i]));
    out << text;
  }
  return out.str() + "]";
}

TEST(GoldenInstructions, EncodingsAndRefusals) {
  const std::vector<Row> rows = golden_rows();
  std::size_t accepted = 0, refused = 0;
  for (const Row& row : rows) {
    if (!row.error.empty()) {
      ++refused;
      const auto object = assemble_object(row.text + "\n");
      EXPECT_FALSE(object) << row.text << " must be refused: " << row.error;
      continue;
    }
    ++accepted;
    const auto code = code_of(row.text);
    EXPECT_EQ(encoding_of(code), row.encoding) << row.text;
    const auto decoded = must(disassemble(code));
    ASSERT_EQ(decoded.size(), 1u) << row.text;
    EXPECT_EQ(decoded[0].text, row.form);
    EXPECT_EQ(code_of(decoded[0].text), code) << decoded[0].text;
  }
  EXPECT_GE(accepted, 150u);
  EXPECT_GE(refused, 20u);
}

// The golden file itself is what the installed llvm-mc says today.
TEST(GoldenInstructions, FileIsStockLlvm) {
  if (!have(STOCK_MC)) ZYFA_SKIP_WITHOUT_TOOL("llvm-mc-22 is not installed");
  const ScratchDirectory scratch;
  std::string source;
  std::vector<Row> rows;
  for (const Row& row : golden_rows()) {
    if (!row.error.empty()) continue;
    source += row.text + "\n";
    rows.push_back(row);
  }
  write_file(scratch.file("in.s"), source);
  ASSERT_TRUE(ScratchDirectory::run(std::string(STOCK_MC) + " -triple amdgcn-amd-amdhsa -mcpu=gfx950 -show-encoding '" +
                                    scratch.file("in.s") + "' > '" + scratch.file("out.s") + "'"));
  std::istringstream out(read_text(scratch.file("out.s")));
  std::size_t at = 0;
  for (std::string line; std::getline(out, line);) {
    const std::size_t begin = line.find("encoding: [");
    if (begin == std::string::npos) continue;
    ASSERT_LT(at, rows.size());
    EXPECT_EQ(line.substr(begin), rows[at].encoding) << rows[at].text;
    ++at;
  }
  EXPECT_EQ(at, rows.size());
}

class WholeKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have(STOCK_MC) || !have(STOCK_LLD)) ZYFA_SKIP_WITHOUT_TOOL("llvm-mc-22 or ld.lld-22 is not installed");
  }

  // Assembles and links with the stock tools.
  CodeObject stock(const std::string& assembly, const std::string& features = "+sramecc,-xnack") {
    write_file(scratch_.file("k.s"), assembly);
    const std::string object = scratch_.file("k.o"), linked = scratch_.file("k.co");
    EXPECT_TRUE(ScratchDirectory::run(std::string(STOCK_MC) + " -triple amdgcn-amd-amdhsa -mcpu=gfx950 -mattr=" +
                                      features + " -filetype=obj '" + scratch_.file("k.s") + "' -o '" + object +
                                      "' && " + STOCK_LLD + " -shared '" + object + "' -o '" + linked + "'"))
        << assembly;
    return must(read_code_object(read_bytes(linked)));
  }

  ScratchDirectory scratch_;
};

void expect_same_kernel(const CodeObject& a, const CodeObject& b, const std::string& name) {
  EXPECT_TRUE(std::equal(a.text.begin(), a.text.end(), b.text.begin(), b.text.end()));
  const KernelImage *x = a.find(name), *y = b.find(name);
  ASSERT_NE(x, nullptr);
  ASSERT_NE(y, nullptr);
  EXPECT_EQ(x->code_bytes, y->code_bytes);
  EXPECT_EQ(x->rsrc1, y->rsrc1);
  EXPECT_EQ(x->rsrc2, y->rsrc2);
  EXPECT_EQ(x->rsrc3, y->rsrc3);
  EXPECT_EQ(x->properties, y->properties);
  EXPECT_EQ(x->descriptor_lds, y->descriptor_lds);
  EXPECT_EQ(x->descriptor_kernarg, y->descriptor_kernarg);
  EXPECT_EQ(x->vgprs, y->vgprs);
  EXPECT_EQ(x->sgprs, y->sgprs);
  EXPECT_EQ(x->arguments, y->arguments);
}

TEST_F(WholeKernel, PrintedAssemblyGivesTheSameBytesFromStockTools) {
  for (const Listing& listing : {sample::every_opcode(), sample::attention_like(1500)}) {
    const KernelDeclaration declaration = sample::declaration(listing.symbol);
    const CodeObject ours = must(read_code_object(must(assemble(listing, declaration))));
    const CodeObject theirs = stock(print_assembly(listing, declaration));
    expect_same_kernel(ours, theirs, listing.symbol);
    EXPECT_EQ(ours.e_flags, theirs.e_flags);
    ASSERT_EQ(ours.listing.size(), theirs.listing.size());
    EXPECT_EQ(ours.listing.back().comment, theirs.listing.back().comment);
  }
}

TEST_F(WholeKernel, DumpedAssemblyGivesTheSameBytesFromStockTools) {
  for (const Listing& listing : {sample::every_opcode(), sample::attention_like(300)}) {
    const CodeObject ours = must(read_code_object(must(assemble(listing, sample::declaration(listing.symbol)))));
    expect_same_kernel(ours, stock(must(dump_assembly(ours, listing.symbol))), listing.symbol);
  }
}

TEST_F(WholeKernel, ReadelfParsesOurObject) {
  if (!have(STOCK_READELF)) ZYFA_SKIP_WITHOUT_TOOL("llvm-readelf-22 is not installed");
  const Listing listing = sample::attention_like(100);
  write_file(scratch_.file("k.co"), must(assemble(listing, sample::declaration(listing.symbol))));
  ASSERT_TRUE(ScratchDirectory::run(std::string(STOCK_READELF) + " --all '" + scratch_.file("k.co") + "' > '" +
                                    scratch_.file("out") + "' 2> '" + scratch_.file("err") + "'"));
  EXPECT_EQ(read_text(scratch_.file("err")), "");
  const std::string out = read_text(scratch_.file("out"));
  EXPECT_THAT(out, HasSubstr("EM_AMDGPU"));
  EXPECT_THAT(out, HasSubstr("gfx950, xnack-, sramecc+"));
  EXPECT_THAT(out, HasSubstr(".zyfa.listing"));
  EXPECT_THAT(out, HasSubstr("attention_like.kd"));
  EXPECT_THAT(out, HasSubstr(".max_flat_workgroup_size: 512"));
  EXPECT_THAT(out, ::testing::Not(HasSubstr("nvalid")));
}

// A kernel of a compiler that we did not write.
class CompiledKernel : public WholeKernel {
 protected:
  void SetUp() override {
    WholeKernel::SetUp();
    if (!have(STOCK_CLANG)) ZYFA_SKIP_WITHOUT_TOOL("clang-22 is not installed");
  }

  CodeObject compile(const std::string& source) {
    write_file(scratch_.file("k.cl"), source);
    EXPECT_TRUE(ScratchDirectory::run(std::string(STOCK_CLANG) +
                                      " -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -nogpulib -target "
                                      "amdgcn-amd-amdhsa -mcpu=gfx950 -O2 -w -cl-kernel-arg-info -c '" +
                                      scratch_.file("k.cl") + "' -o '" + scratch_.file("k.o") + "' && " + STOCK_LLD +
                                      " -shared '" + scratch_.file("k.o") + "' -o '" + scratch_.file("k.co") + "'"));
    return must(read_code_object(read_bytes(scratch_.file("k.co"))));
  }
};

constexpr const char* kSource = R"(
typedef float f16v __attribute__((ext_vector_type(16)));
typedef __bf16 b8 __attribute__((ext_vector_type(8)));
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void product(global const b8* a, global const b8* b, global f16v* c, int n, float scale) {
  local float tile[64];
  size_t i = __builtin_amdgcn_workitem_id_x();
  f16v sum = 0;
  for (int k = 0; k < n; ++k) sum = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[k * 64 + i], b[k * 64 + i], sum, 0, 0, 0);
  tile[i % 64] = sum.x;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  c[i] = sum * scale * tile[63 - i % 64];
}
kernel void plain(global int* p) { p[__builtin_amdgcn_workgroup_id_x()] = 1; }
)";

TEST_F(CompiledKernel, IsRead) {
  const CodeObject object = compile(kSource);
  ASSERT_EQ(object.kernels.size(), 2u);
  const KernelImage* k = object.find("product");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->group_bytes, 256u);
  EXPECT_EQ(k->descriptor_lds, 256u);
  EXPECT_EQ(k->max_workgroup, 256u);
  EXPECT_EQ(k->wavefront_size, 64u);
  ASSERT_GE(k->arguments.size(), 5u);
  EXPECT_EQ(k->arguments[0], (KernelArgument{"a", 0, 8, true}));
  EXPECT_EQ(k->arguments[3], (KernelArgument{"n", 24, 4, false}));
  EXPECT_EQ(k->arguments[4], (KernelArgument{"scale", 28, 4, false}));
  EXPECT_TRUE(object.listing.empty());
  bool mfma = false;
  std::size_t invalid = 0;
  for (const Decoded& row : must(disassemble(object.text.subspan(k->entry_offset, k->code_bytes)))) {
    mfma |= row.facts.cls == FactClass::kMfmaXdl;
    invalid += row.valid ? 0 : 1;
  }
  EXPECT_TRUE(mfma);
  EXPECT_EQ(invalid, 0u);
  EXPECT_EQ(must(disassemble(object.text.subspan(k->entry_offset, k->code_bytes))).back().mnemonic, "s_endpgm");
  EXPECT_THAT(dump_metadata(object), HasSubstr("pointer a"));
}

TEST_F(CompiledKernel, DumpAssemblesToTheSameCode) {
  const CodeObject object = compile(kSource);
  for (const char* name : {"product", "plain"}) {
    const KernelImage& kernel = *object.find(name);
    const CodeObject again = stock(must(dump_assembly(object, name)));
    const KernelImage* copy = again.find(name);
    ASSERT_NE(copy, nullptr);
    ASSERT_EQ(copy->code_bytes, kernel.code_bytes);
    const auto a = object.text.subspan(kernel.entry_offset, kernel.code_bytes);
    const auto b = again.text.subspan(copy->entry_offset, copy->code_bytes);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    EXPECT_EQ(copy->rsrc1, kernel.rsrc1);
    EXPECT_EQ(copy->rsrc2, kernel.rsrc2);
    EXPECT_EQ(copy->rsrc3, kernel.rsrc3);
    EXPECT_EQ(copy->properties, kernel.properties);
    EXPECT_EQ(copy->preload, kernel.preload);
  }
}

}  // namespace
}  // namespace zyfa::jit
