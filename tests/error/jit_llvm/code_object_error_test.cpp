// Damaged and foreign code objects: always a typed error or a sound result, never a crash. Run under address and
// undefined-behaviour sanitizers too.
#include <array>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "jit/verify/dump.h"
#include "tests/require_tools.h"
#include "tests/unit/jit_llvm/sample_listing.h"
#include "tests/unit/jit_llvm/tools.h"

namespace zyfa::jit {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::vector<std::byte> small_object() {
  const auto object = assemble(sample::attention_like(12), sample::declaration("attention_like"));
  EXPECT_TRUE(object) << to_string(object.error());
  return object ? *object : std::vector<std::byte>();
}

void set_little(std::vector<std::byte>& bytes, std::size_t offset, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i)
    bytes.at(offset + static_cast<std::size_t>(i)) = static_cast<std::byte>(value >> (8 * i));
}

// What holds for every object that is accepted: views lie inside the file and kernels inside the text.
void expect_sound(const CodeObject& object) {
  const auto inside = [&object](std::span<const std::byte> view) {
    return view.empty() || (view.data() >= object.bytes.data() &&
                            view.data() + view.size() <= object.bytes.data() + object.bytes.size());
  };
  EXPECT_TRUE(inside(object.text));
  for (const Segment& segment : object.segments) {
    EXPECT_TRUE(inside(segment.bytes));
    EXPECT_LE(segment.bytes.size(), segment.memory_size);
  }
  for (const KernelImage& kernel : object.kernels) {
    EXPECT_LT(kernel.entry_offset, object.text.size());
    EXPECT_LE(kernel.code_bytes, object.text.size() - kernel.entry_offset);
  }
}

void expect_sound_or_typed(const std::vector<std::byte>& bytes) {
  const auto object = read_code_object(bytes);
  if (object) {
    expect_sound(*object);
    EXPECT_FALSE(dump_metadata(*object).empty());
  } else {
    // kUnsupported: the damage made a relocation of a kind that is not applied.
    const ErrorCode code = object.error().code;
    EXPECT_TRUE(code == ErrorCode::kCorruptData || code == ErrorCode::kArchMismatch || code == ErrorCode::kUnsupported);
    EXPECT_FALSE(object.error().message.empty());
  }
}

TEST(CodeObjectError, TruncationAtEveryLengthIsRefused) {
  const std::vector<std::byte> whole = small_object();
  ASSERT_TRUE(read_code_object(whole));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto object = read_code_object({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)});
    // The section header table is last, so nothing shorter than the whole is complete.
    ASSERT_FALSE(object) << n;
    ASSERT_EQ(object.error().code, ErrorCode::kCorruptData) << n;
  }
}

TEST(CodeObjectError, EveryByteChanged) {
  const std::vector<std::byte> whole = small_object();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned change : {0xffu, 0x01u, 0x80u}) {
      std::vector<std::byte> damaged = whole;
      damaged[i] ^= static_cast<std::byte>(change);
      expect_sound_or_typed(damaged);
    }
  }
}

TEST(CodeObjectError, RandomDamage) {
  const std::vector<std::byte> whole = small_object();
  std::mt19937 random(11);
  static constexpr std::array<std::uint64_t, 6> kValues = {0, 1, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, ~0ull};
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> damaged = whole;
    for (unsigned k = 0; k < 1 + random() % 3; ++k) {
      const int size = 1 << random() % 4;
      // Half of the damage hits the headers at both ends of the file.
      const std::size_t room = damaged.size() - 8;
      const std::size_t at = random() % 2 == 0   ? random() % room
                             : random() % 2 == 0 ? random() % 512
                                                 : room - random() % 1024;
      set_little(damaged, at, random() % 2 == 0 ? kValues[random() % kValues.size()] : random(), size);
    }
    expect_sound_or_typed(damaged);
  }
}

TEST(CodeObjectError, DamagedCodeStillDumps) {
  const std::vector<std::byte> whole = small_object();
  const CodeObject original = std::move(*read_code_object(whole));
  const std::size_t text = static_cast<std::size_t>(original.text.data() - original.bytes.data());
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> damaged = whole;
    for (std::size_t k = 0; k < original.kernels.at(0).code_bytes; ++k) {
      damaged[text + k] = static_cast<std::byte>(random());
    }
    const auto object = read_code_object(damaged);
    ASSERT_TRUE(object);
    EXPECT_TRUE(dump_isa(*object, "attention_like"));
    EXPECT_TRUE(dump_assembly(*object, "attention_like"));
  }
}

TEST(CodeObjectError, OtherMachines) {
  const std::vector<std::byte> whole = small_object();
  const auto refused = [&](std::size_t offset, std::uint64_t value, int size, const char* what) {
    std::vector<std::byte> changed = whole;
    set_little(changed, offset, value, size);
    const auto object = read_code_object(changed);
    ASSERT_FALSE(object) << what;
    EXPECT_EQ(object.error().code, ErrorCode::kArchMismatch) << what;
    EXPECT_THAT(object.error().message, HasSubstr(what));
    EXPECT_THAT(object.error().message, HasSubstr("allowed"));
  };
  refused(18, 62, 2, "x86-64 (62)");
  refused(48, 0x54c, 4, "gfx942");
  refused(48, 0x53f, 4, "gfx90a");
  refused(48, 0x5ff, 4, "unknown AMDGPU machine 0xff");
  refused(7, 0, 1, "OS ABI 0");
  refused(8, 9, 1, "ABI version 9");
}

TEST(CodeObjectError, AnySramEccAndXnackIsGfx950) {
  for (const std::uint32_t flags : {0x54fu, 0xe4fu, 0x44fu, 0xf4fu, 0x4fu, 0x64fu}) {
    std::vector<std::byte> changed = small_object();
    set_little(changed, 48, flags, 4);
    const auto object = read_code_object(changed);
    ASSERT_TRUE(object) << std::hex << flags << to_string(object.error());
    EXPECT_EQ(object->e_flags, flags);
  }
}

TEST(CodeObjectError, RelocatableObjectIsNotLoadable) {
  const auto relocatable = assemble_object("s_endpgm\n");
  ASSERT_TRUE(relocatable);
  // Its flags carry no target yet in older versions; either way the answer is typed and says what to do.
  const auto object = read_code_object(*relocatable);
  ASSERT_FALSE(object);
  EXPECT_THAT(object.error().message, AnyOf(HasSubstr("link it"), HasSubstr("allowed")));
}

TEST(CodeObjectError, CompiledForAnotherGpu) {
  if (!have(STOCK_CLANG) || !have(STOCK_LLD)) ZYFA_SKIP_WITHOUT_TOOL("clang-22 or ld.lld-22 is not installed");
  const ScratchDirectory scratch;
  write_file(scratch.file("k.cl"), "kernel void k(global int* p) { p[0] = 1; }\n");
  for (const std::string gpu : {"gfx942", "gfx90a", "gfx1100"}) {
    const std::string out = scratch.file(gpu + ".co");
    const std::string object = scratch.file(gpu + ".o");
    ASSERT_TRUE(ScratchDirectory::run(std::string(STOCK_CLANG) +
                                      " -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -nogpulib -target "
                                      "amdgcn-amd-amdhsa -mcpu=" +
                                      gpu + " -O2 -c '" + scratch.file("k.cl") + "' -o '" + object + "' && " +
                                      STOCK_LLD + " -shared '" + object + "' -o '" + out + "'"));
    const auto read = read_code_object(read_bytes(out));
    ASSERT_FALSE(read) << gpu;
    EXPECT_EQ(read.error().code, ErrorCode::kArchMismatch);
    EXPECT_THAT(read.error().message, HasSubstr(gpu));
    EXPECT_THAT(read.error().message, HasSubstr("gfx950"));
  }
}

TEST(DumpError, UnknownKernelIsNamed) {
  const auto object = read_code_object(small_object());
  ASSERT_TRUE(object);
  const auto dump = dump_isa(*object, "nobody");
  ASSERT_FALSE(dump);
  EXPECT_EQ(dump.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(dump.error().message, HasSubstr("attention_like"));
}

}  // namespace
}  // namespace zyfa::jit
