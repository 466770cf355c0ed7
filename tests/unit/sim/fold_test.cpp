// LLVM folds many AMDGPU intrinsics of constant operands: its folder, written from AMD's documents by others, against
// the simulator. One OpenCL source is compiled with the operands as constants and as values loaded from memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "tests/require_tools.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// A function of up to three operands in OpenCL, and the operands' and result's types.
struct Folded {
  const char* expression;  // of a, b, c
  const char *type, *result;
};
const Folded kFolded[] = {
    {"__builtin_amdgcn_cubeid(a, b, c)", "float", "float"},
    {"__builtin_amdgcn_cubesc(a, b, c)", "float", "float"},
    {"__builtin_amdgcn_cubetc(a, b, c)", "float", "float"},
    {"__builtin_amdgcn_cubema(a, b, c)", "float", "float"},
    {"__builtin_amdgcn_fmed3f(a, b, c)", "float", "float"},
    {"__builtin_amdgcn_fractf(a)", "float", "float"},
    {"__builtin_amdgcn_frexp_mantf(a)", "float", "float"},
    {"__builtin_amdgcn_frexp_expf(a)", "float", "int"},
    {"__builtin_amdgcn_classf(a, 0x155)", "float", "int"},
    {"__builtin_amdgcn_frexp_mant(a)", "double", "double"},
    {"__builtin_amdgcn_frexp_exp(a)", "double", "int"},
    {"__builtin_amdgcn_fract(a)", "double", "double"},
    {"__builtin_amdgcn_class(a, 0x2aa)", "double", "int"},
    {"__builtin_amdgcn_trig_preop(a, 0)", "double", "double"},
    {"__builtin_amdgcn_trig_preop(a, 1)", "double", "double"},
    {"__builtin_amdgcn_trig_preop(a, 7)", "double", "double"},
    {"__builtin_amdgcn_ubfe(a, b & 31, c & 31)", "uint", "uint"},
    {"__builtin_amdgcn_sbfe(a, b & 31, c & 31)", "uint", "int"},
    {"__builtin_amdgcn_alignbit(a, b, c)", "uint", "uint"},
    {"__builtin_amdgcn_perm(a, b, c)", "uint", "uint"},
    {"as_uint(__builtin_amdgcn_cvt_pkrtz(a, b))", "float", "uint"},
    {"__builtin_popcount(a) + __builtin_clz(a | 1)", "uint", "uint"},
};

u64 random_bits(std::mt19937_64& rng, const std::string& type) {
  const u64 x = rng();
  if (type == "double") {
    const u64 corners[] = {0, 1ull << 63, 0x7ff0000000000000, 0x3ff0000000000000, 1, 0x7fefffffffffffff};
    if (x % 5 == 0) return corners[(x >> 8) % 6];
    return (x & 0x800fffffffffffffull) | ((600 + rng() % 900) << 52);
  }
  const u64 corners[] = {0, 0x80000000, 0x3f800000, 0xbf000000, 0x7f7fffff, 0xffffffff, 31, 8};
  if (x % 4 == 0) return corners[(x >> 8) % (type == "float" ? 5 : 8)];
  if (type == "float") return (x & 0x807fffff) | ((100 + rng() % 50) << 23);
  return x & 0xffffffff;
}

TEST(Fold, SimulatorAgreesWithLlvm) {
  constexpr unsigned kCases = 6;
  std::mt19937_64 rng(1);
  std::string
      constants =
          "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\nkernel void k(global ulong* in, global ulong* out) {\n",
      loaded = constants;
  std::vector<u64> inputs;
  unsigned at = 0;
  for (const Folded& f : kFolded) {
    const std::string type = f.type, result = f.result;
    for (unsigned i = 0; i < kCases; ++i) {
      u64 operands[3];
      for (u64& o : operands) o = random_bits(rng, type);
      const auto function = [&](auto&& operand) {
        std::string text = "  { ";
        for (int k = 0; k < 3; ++k) {
          text += type == "double" ? fmt::format("double {} = as_double({}); ", "abc"[k], operand(k))
                                   : fmt::format("{0} {1} = as_{0}((uint)({2})); ", type, "abc"[k], operand(k));
        }
        const char* widen = result == "double" ? "as_ulong" : "(ulong)as_uint";
        return text + fmt::format("{} r = {}; out[{}] = {}(r); }}\n", result, f.expression, at, widen);
      };
      constants += function([&](int k) { return fmt::format("0x{:x}ul", operands[k]); });
      loaded += function([&](int k) { return fmt::format("in[{}]", 3 * at + static_cast<unsigned>(k)); });
      inputs.insert(inputs.end(), operands, operands + 3);
      ++at;
    }
  }
  const std::string flags = "-O2 -Wno-unused-variable -fdenormal-fp-math=ieee";
  const auto folded = compile_opencl(constants + "}\n", flags), computed = compile_opencl(loaded + "}\n", flags);
  if (!folded || !computed) ZYFA_SKIP_WITHOUT_TOOL("clang-22 is not installed");
  // Where operands are constants, LLVM has left none of the instructions.
  const auto object = jit::read_code_object(*folded);
  ASSERT_TRUE(object.has_value());
  const auto decoded = jit::disassemble(object->text);
  ASSERT_TRUE(decoded.has_value());
  for (const jit::Decoded& d : *decoded) {
    for (const char* name : {"v_cube", "v_med3", "v_fract", "v_frexp", "v_cmp_class", "v_trig", "v_bfe", "v_alignb",
                             "v_perm_", "v_cvt_pk"})
      EXPECT_FALSE(d.text.starts_with(name)) << d.text << " was not folded";
  }
  const auto run_one = [&](const Bytes& object) {
    const auto device = make_device();
    const Buffer<u64> in(*device, inputs), out(*device, std::vector<u64>(at));
    check(run(*device, object, "k", {}, Args().add(in).add(out)));
    return out.read();
  };
  const auto want = run_one(*folded), got = run_one(*computed);
  unsigned n = 0;
  for (const Folded& f : kFolded) {
    for (unsigned i = 0; i < kCases; ++i, ++n) {
      EXPECT_EQ(got[n], want[n]) << f.expression
                                 << fmt::format(" of {:x} {:x} {:x}", inputs[3 * n], inputs[3 * n + 1],
                                                inputs[3 * n + 2]);
    }
  }
}

}  // namespace
}  // namespace zyfa::sim_test
