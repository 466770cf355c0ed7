// From listing to code object: what comes back, determinism, diagnostics, linking from many threads.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/llvm/assembler.h"
#include "jit/object/code_object.h"
#include "jit/verify/dump.h"
#include "tests/unit/jit_llvm/code_helpers.h"
#include "tests/unit/jit_llvm/sample_listing.h"

namespace zyfa::jit {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Instruction make(Op op, std::vector<Operand> operands, std::string comment = {}) {
  Instruction instruction;
  instruction.op = op;
  instruction.operands = std::move(operands);
  instruction.comment = std::move(comment);
  instruction.origin = {"qk@1#0", "schedules/x.cpp", 12};
  return instruction;
}

TEST(Assembler, EveryOpcodeComesBack) {
  const Listing listing = sample::every_opcode();
  const auto object = assemble(listing, sample::declaration(listing.symbol));
  EXPECT_TRUE(object) << to_string(object.error());
}

TEST(Assembler, SameBytesEveryTime) {
  const Listing listing = sample::attention_like(500);
  const KernelDeclaration declaration = sample::declaration(listing.symbol);
  const auto first = must(assemble(listing, declaration));
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(must(assemble(listing, declaration)), first);
}

// Descriptor bits by hand from gfx950-isa.md 5.1.
TEST(Assembler, DescriptorHoldsTheDeclaration) {
  Listing listing;
  listing.symbol = "k";
  listing.code = {make(Op::kSEndpgm, {})};
  KernelDeclaration d;
  d.symbol = "k";
  d.vgprs = 129;
  d.agprs = 20;
  d.sgprs = 30;
  d.lds_bytes = 163840;
  d.kernarg_bytes = 72;
  d.workgroup_size = 512;
  d.workgroup_id_y = false;
  d.fp16_overflow = true;
  d.arguments = {{"q", 0, 8, true}, {"scale", 8, 4, false}, {"o", 16, 8, true}};
  const CodeObject object = must(read_code_object(must(assemble(listing, d))));
  const KernelImage* k = object.find("k");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->accum_offset(), 132u);
  EXPECT_EQ(k->total_vgprs(), 152u);
  EXPECT_EQ(k->rsrc1 >> 12 & 0xff, 0xc0u);  // round to nearest even, denorm32 flushed, denorm16_64 kept
  EXPECT_EQ(k->rsrc1 >> 21 & 1, 0u);        // dx10_clamp
  EXPECT_EQ(k->rsrc1 >> 23 & 1, 0u);        // ieee
  EXPECT_EQ(k->rsrc1 >> 26 & 1, 1u);        // fp16_ovfl
  EXPECT_GE(((k->rsrc1 >> 6 & 15) + 1) * 8, 96u + 6u);
  EXPECT_EQ(k->rsrc2, 2u << 1 | 1u << 7 | 1u << 9);
  EXPECT_EQ(k->properties, 8);
  EXPECT_EQ(k->preload, 0);
  EXPECT_EQ(k->descriptor_lds, 163840u);
  EXPECT_EQ(k->descriptor_private, 0u);
  EXPECT_EQ(k->descriptor_kernarg, 72u);
  EXPECT_TRUE(k->has_metadata);
  EXPECT_EQ(k->kernarg_bytes, 72u);
  EXPECT_EQ(k->group_bytes, 163840u);
  EXPECT_EQ(k->vgprs, 152u);
  EXPECT_EQ(k->agprs, 20u);
  EXPECT_EQ(k->max_workgroup, 512u);
  EXPECT_EQ(k->wavefront_size, 64u);
  EXPECT_EQ(k->arguments, d.arguments);
  EXPECT_EQ(object.target, "amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-");
  EXPECT_EQ(object.e_flags, 0xe4fu);
  EXPECT_EQ(object.abi_version, 3);
  EXPECT_EQ(object.text_address % 256, 0u);
  EXPECT_EQ(k->entry_offset, 0u);
  EXPECT_EQ(k->code_bytes, 4u);
  EXPECT_GE(object.text.size(), 4u + 1024u);  // prefetch padding
}

TEST(Assembler, KeepsDenormalsWhenAsked) {
  Listing listing;
  listing.symbol = "k";
  listing.code = {make(Op::kSEndpgm, {})};
  KernelDeclaration d = sample::declaration("k");
  d.f32_denormals = true;
  const CodeObject object = must(read_code_object(must(assemble(listing, d))));
  EXPECT_EQ(object.find("k")->rsrc1 >> 16 & 15, 0xfu);  // gfx950-isa.md 5.1: f32 and f16/f64, 3 keeps both ways
}

TEST(Assembler, NotesFollowTheInstructions) {
  Listing listing;
  listing.symbol = "k";
  listing.new_label();
  listing.code = {make(Op::kLabel, {Label{0}}), make(Op::kVMovB32, {vgpr(1), Imm{0}}, "zero \"it\" \\ \xc3\xa9\n"),
                  make(Op::kSBranch, {Label{0}}, ""), make(Op::kSEndpgm, {}, "end")};
  const CodeObject object = must(read_code_object(must(assemble(listing, sample::declaration("k")))));
  ASSERT_EQ(object.listing.size(), 3u);
  EXPECT_EQ(object.listing[0].comment, "zero \"it\" \\ \xc3\xa9\n");
  EXPECT_EQ(object.listing[0].stage, "qk@1#0");
  EXPECT_EQ(object.listing[0].source, "schedules/x.cpp:12");
  EXPECT_EQ(object.listing[2].comment, "end");
  const std::string isa = must(dump_isa(object, "k"));
  EXPECT_THAT(isa, HasSubstr("000000  7e020280           v_mov_b32_e32 v1, 0"));
  EXPECT_THAT(isa, HasSubstr("[qk@1#0] schedules/x.cpp:12"));
  EXPECT_THAT(isa, HasSubstr("s_branch L0"));
}

TEST(Assembler, BranchesReachTheirLabels) {
  Listing listing;
  listing.symbol = "k";
  listing.label_count = 2;
  listing.code = {
      make(Op::kSCbranchScc1, {Label{1}}), make(Op::kLabel, {Label{0}}), make(Op::kVMovB32, {vgpr(1), Imm{0x12345}}),
      make(Op::kSCbranchScc0, {Label{0}}), make(Op::kLabel, {Label{1}}), make(Op::kSEndpgm, {})};
  const CodeObject object = must(read_code_object(must(assemble(listing, sample::declaration("k")))));
  const auto decoded = must(disassemble(object.text.first(object.kernels.at(0).code_bytes)));
  ASSERT_EQ(decoded.size(), 4u);
  EXPECT_EQ(decoded[0].branch_target, 16);
  EXPECT_EQ(decoded[2].branch_target, 4);
  EXPECT_EQ(decoded[3].branch_target, -1);
}

TEST(Assembler, LinksFromManyThreads) {
  const auto object = must(assemble_object(print_assembly(sample::attention_like(50), sample::declaration("k"))));
  const auto expected = must(link_object(object));
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto linked = link_object(object);
        if (!linked || *linked != expected) ++different;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different, 0);
}

TEST(Assembler, AssemblesFromManyThreads) {
  const Listing listing = sample::attention_like(200);
  const auto expected = must(assemble(listing, sample::declaration(listing.symbol)));
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto object = assemble(listing, sample::declaration(listing.symbol));
        if (!object || *object != expected) ++different;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different, 0);
}

// Children forked during links keep the descriptors they inherited; no link may wait for them.
TEST(Assembler, LinksWhileChildrenHoldItsDescriptors) {
  const auto object = must(assemble_object(print_assembly(sample::attention_like(50), sample::declaration("k"))));
  const auto expected = must(link_object(object));
  std::atomic<bool> linked = false;
  std::vector<pid_t> children;
  std::thread forker([&] {
    while (!linked && children.size() < 50) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(120);
        while (true) ::pause();
      }
      children.push_back(child);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int i = 0; i < 30; ++i) EXPECT_EQ(must(link_object(object)), expected);
  linked = true;
  forker.join();
  EXPECT_GT(children.size(), 1u);
  for (const pid_t child : children) {
    EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "a link lasted as long as a child";
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

TEST(Assembler, LinkErrorsAreData) {
  for (int i = 0; i < 3; ++i) {
    const auto garbage = link_object(std::vector<std::byte>(100));
    ASSERT_FALSE(garbage);
    EXPECT_EQ(garbage.error().code, ErrorCode::kCompileError);
    EXPECT_FALSE(garbage.error().details.empty());
    // An undefined symbol is refused by name.
    const auto undefined =
        link_object(must(assemble_object("s_getpc_b64 s[0:1]\ns_add_u32 s0, s0, nowhere@rel32@lo+4\n")));
    ASSERT_FALSE(undefined);
    EXPECT_THAT(undefined.error().message, HasSubstr("nowhere"));
  }
  EXPECT_TRUE(link_object(must(assemble_object("s_endpgm\n"))));  // and lld still runs
}

// With neither descriptors nor a thread to be had: an error each time, and nothing leaks.
TEST(Assembler, LinkingWithoutDescriptorsOrThreadsIsAnError) {
  const auto object = must(assemble_object("s_endpgm\n"));
  ASSERT_TRUE(link_object(object));
  const int next = ::dup(0);  // the lowest free number
  ::close(next);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  for (int spare = 0; spare < 4; ++spare) {  // memfd, two of the pipe, eventfd
    const rlimit low{static_cast<rlim_t>(next + spare), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    const auto linked = link_object(object);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(linked);
    EXPECT_EQ(linked.error().code, ErrorCode::kIoError);
  }
  pthread_attr_t usual, huge;  // a default stack larger than any address space: no thread starts
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ::pthread_attr_init(&huge);
  ::pthread_attr_setstacksize(&huge, std::size_t{1} << 52);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  const auto linked = link_object(object);
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&usual);
  ASSERT_FALSE(linked);
  EXPECT_THAT(linked.error().message, HasSubstr("no thread"));
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(after, next);
  EXPECT_TRUE(link_object(object));
}

TEST(Assembler, DiagnosticsAreData) {
  const auto result = assemble_object("v_mov_b32 v1, v2\nv_nonsense v3\nv_add_u32 v1, v2\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCompileError);
  EXPECT_THAT(result.error().details, Contains(HasSubstr("line 2, column 1: invalid instruction | v_nonsense v3")));
  EXPECT_THAT(result.error().details, Contains(HasSubstr("line 3")));
}

TEST(Assembler, RejectionNamesTheOrigin) {
  Listing listing;
  listing.symbol = "k";
  // Passes the opcode table's check (registers are virtual), but has no machine form.
  const Reg unallocated = listing.regs.add(Bank::kVgpr, 1, "score");
  listing.code = {make(Op::kSNop, {Imm{0}}), make(Op::kVMovB32, {unallocated, Imm{0}}), make(Op::kSEndpgm, {})};
  const auto result = assemble(listing, sample::declaration("k"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCompileError);
  EXPECT_THAT(to_string(result.error()), HasSubstr("qk@1#0 (schedules/x.cpp:12)"));
}

TEST(Assembler, UnresolvedAwaitIsRefused) {
  Listing listing;
  listing.symbol = "k";
  listing.code = {make(Op::kAwait, {}), make(Op::kSEndpgm, {})};
  const auto result = assemble(listing, sample::declaration("k"));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("await"));
}

TEST(Assembler, DeclarationsOutOfRangeAreRefused) {
  const Listing listing = sample::attention_like(10);
  const KernelDeclaration good = sample::declaration(listing.symbol);
  const auto refused = [&](auto change, const char* expected) {
    KernelDeclaration d = good;
    change(d);
    const auto result = assemble(listing, d);
    ASSERT_FALSE(result) << expected;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr(expected));
  };
  refused([](auto& d) { d.lds_bytes = 163841; }, "163841 LDS bytes; allowed are 0 to 163840");
  refused([](auto& d) { d.vgprs = 257; }, "257 arch VGPRs");
  refused([](auto& d) { d.sgprs = 103; }, "103 SGPRs");
  refused([](auto& d) { d.workgroup_size = 1025; }, "1025 work-items");
  refused([](auto& d) { d.symbol = "a b"; }, "\"a b\"");
  refused([](auto& d) { d.symbol = "L1"; }, "\"L1\"");
  refused([](auto& d) { d.arguments[1].offset = 4; }, "overlaps");
  refused([](auto& d) { d.kernarg_bytes = 64; }, "64 byte argument segment");
  refused([](auto& d) { d.arguments[0].name = "it's"; }, "it's");
}

TEST(Assembler, LlvmVersionIsThatOfTheLibrary) {
  EXPECT_THAT(llvm_version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\..*"));
}

}  // namespace
}  // namespace zyfa::jit
