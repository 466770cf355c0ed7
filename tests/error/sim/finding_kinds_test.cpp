// One kernel for each kind of finding, with that one fault and nothing else, and its twin without: every field of the
// finding is told in advance.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <ostream>
#include <set>

#include "tests/unit/jit_verify/kernel_text.h"
#include "tests/unit/sim/harness.h"

namespace zyfa::sim_test {
namespace {

using testing::HasSubstr;

struct Planted {
  const char* kind;
  const char* code;         // "@" stands before the instruction at fault
  const char* twin;         // the same without the fault
  const char* instruction;  // disassembly
  const char* message;      // says what is expected
  unsigned wave = 0, lane = 0;
  bool warning = false;
  unsigned workgroup = 64;
  unsigned lds = 0;
  SimUnaligned unaligned = SimUnaligned::kDelivered;
};

std::ostream& operator<<(std::ostream& out, const Planted& planted) {
  return out << planted.kind << ": " << planted.code;
}

// s[4:5] 256 readable bytes, s[6:7] 256 writable ones, v0 work-item, v1 = 4 * v0, v2 to v39 = 0.
constexpr char kSetup[] = R"(s_load_dwordx4 s[4:7], s[0:1], 0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v1, 2, v0
.set i, 2
.rept 38
v_mov_b32 v[i], 0
.set i, i+1
.endr
s_mov_b32 m0, 0
s_waitcnt lgkmcnt(0)
s_nop 4
)";

const Planted kPlanted[] = {
    {"memory-fault", "@global_load_dword v40, v1, s[4:5] offset:8", "global_load_dword v40, v1, s[4:5]",
     "global_load_dword v40, v1, s[4:5] offset:8", "reads 4 bytes", 0, 62},
    {"execution-fault", "@s_trap 2", "s_nop 0", "s_trap 2", "executes trap 2; there is no trap handler"},
    {"missing-wait", "global_load_dword v40, v1, s[4:5]\n@v_add_u32 v41, v40, v1",
     "global_load_dword v40, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_add_u32 v41, v40, v1", "v_add_u32_e32 v41, v40, v1",
     "reads v40, but `global_load_dword v40, v1, s[4:5]` at +0x"},
    {"wait-states", "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 10\n@v_add_f32 v40, v8, v2",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 11\nv_add_f32 v40, v8, v2",
     "v_add_f32_e32 v40, v8, v2",
     "reads v8, the result of an MFMA of 8 passes: 12 wait states are needed between them, there are 11"},
    {"wait-states-unconfirmed",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\n"
     "@v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[24:31], v[24:31], v[8:23]",
     "v_mfma_f32_32x32x16_bf16 v[8:23], v[2:5], v[4:7], 0\ns_nop 9\n"
     "v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[24:31], v[24:31], v[8:23]",
     "v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[24:31], v[24:31], v[8:23]",
     "an MFMA of 16 passes accumulates on v8, the result of one of 8: forwarding is stated for equal passes only; 10 "
     "wait states would be enough, there are 0",
     0, 0, true},
    {"operand-overlap", "@v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[24:31], v[24:31], v[10:25]",
     "v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[24:31], v[24:31], v[8:23]",
     "v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[24:31], v[24:31], v[10:25]", "D lies over a part of C; they must be apart"},
    {"operand-overlap", "@v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[16:23], v[24:31], 0",
     "v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[32:39], v[24:31], 0",
     "v_mfma_f32_32x32x64_f8f6f4 v[8:23], v[16:23], v[24:31], 0", "D lies over A; they must be apart"},
    {"operand-overlap", "@v_mfma_f32_16x16x32_bf16 v[8:11], v[4:7], v[8:11], 0",
     "v_mfma_f32_16x16x32_bf16 v[8:11], v[4:7], v[12:15], 0", "v_mfma_f32_16x16x32_bf16 v[8:11], v[4:7], v[8:11], 0",
     "D lies over B; they must be apart", 0, 0, true},
    {"uninitialised-register", "@ds_add_u32 v1, v0", "ds_write_b32 v1, v0\nds_add_u32 v1, v0", "ds_add_u32 v1, v0",
     "updates LDS byte 0, which nobody wrote", 0, 0, false, 64, 1024},
    {"uninitialised-register", "ds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)\n@v_add_u32 v41, v40, v1",
     "ds_write_b32 v1, v0\nds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)\nv_add_u32 v41, v40, v1",
     "v_add_u32_e32 v41, v40, v1", "read LDS byte 0, which nobody wrote", 0, 0, false, 64, 1024},
    {"uninitialised-register", "s_mov_b64 exec, 0x1f\nv_mov_b32 v40, 0\ns_mov_b64 exec, -1\n@v_add_u32 v41, v40, v1",
     "s_mov_b64 exec, -1\nv_mov_b32 v40, 0\ns_mov_b64 exec, -1\nv_add_u32 v41, v40, v1", "v_add_u32_e32 v41, v40, v1",
     "reads v40, which was never written in this lane", 0, 5},
    // Wave 0 writes first; wave 1 reads wave 0's words, from its lane 0 on.
    {"lds-race",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nv_cmp_gt_u32 vcc, 64, v0\ns_nop 1\ns_cbranch_vccz 2\n"
     "ds_write_b32 v1, v0\ns_cbranch_vccnz 2\n@ds_read_b32 v40, v24\ns_waitcnt lgkmcnt(0)",
     "v_xor_b32 v24, 64, v0\nv_lshlrev_b32 v24, 2, v24\nv_cmp_gt_u32 vcc, 64, v0\ns_nop 1\ns_cbranch_vccz 2\n"
     "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\ns_cbranch_vccnz 2\nds_read_b32 v40, v24\ns_waitcnt "
     "lgkmcnt(0)",
     "ds_read_b32 v40, v24", "with no barrier between", 1, 0, false, 128, 1024},
    {"lds-in-flight",
     "global_load_lds_dword v1, s[4:5]\n@ds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0)",
     "global_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)\nds_read_b32 v40, v1\ns_waitcnt lgkmcnt(0)",
     "ds_read_b32 v40, v1", "its wave must wait for vmcnt first", 0, 0, false, 64, 1024},
    {"lds-in-flight", "global_load_lds_dword v1, s[4:5]\n@s_endpgm",
     "global_load_lds_dword v1, s[4:5]\ns_waitcnt vmcnt(0)\ns_endpgm", "s_endpgm",
     "the wave ends while `global_load_lds_dword v1, s[4:5]`", 0, 0, false, 64, 1024},
    {"lds-out-of-bounds", "@ds_write_b32 v1, v0 offset:776", "ds_write_b32 v1, v0 offset:768",
     "ds_write_b32 v1, v0 offset:776", "4 bytes at LDS address 1024, the workgroup has 1024", 0, 62, false, 64, 1024},
    {"lds-misaligned", "@ds_write_b64 v1, v[2:3]", "ds_write_b32 v1, v2", "ds_write_b64 v1, v[2:3]",
     "LDS address 4 of a 8-byte access must be a multiple of 8", 0, 1, false, 64, 1024},
    {"lds-misaligned",
     "s_mov_b32 m0, 8\nv_lshlrev_b32 v24, 1, v0\n@global_load_lds_dwordx4 v2, s[4:5]\ns_waitcnt vmcnt(0)",
     "s_mov_b32 m0, 16\nv_lshlrev_b32 v24, 1, v0\nglobal_load_lds_dwordx4 v2, s[4:5]\ns_waitcnt vmcnt(0)",
     "global_load_lds_dwordx4 v2, s[4:5]",
     "LDS base 8 of a direct-to-LDS load of 16 bytes a lane must be a multiple of 16", 0, 0, false, 64, 2048},
    {"memory-misaligned", "v_lshlrev_b32 v24, 1, v0\n@global_load_dword v40, v24, s[4:5]",
     "v_and_b32 v24, -4, v0\nglobal_load_dword v40, v24, s[4:5]", "global_load_dword v40, v24, s[4:5]",
     "an address that ends in 0x", 0, 1, true},
    {"memory-misaligned", "v_lshlrev_b32 v24, 1, v0\n@global_load_dword v40, v24, s[4:5]",
     "v_and_b32 v24, -4, v0\nglobal_load_dword v40, v24, s[4:5]", "global_load_dword v40, v24, s[4:5]",
     "the access needs a multiple of 4", 0, 1, false, 64, 0, SimUnaligned::kTruncated},
    {"exec-mask",
     "s_mov_b32 exec_hi, 0x7fffffff\n@v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0\ns_mov_b64 exec, -1",
     "s_mov_b32 exec_hi, 0xffffffff\nv_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0\ns_mov_b64 exec, -1",
     "v_mfma_f32_16x16x32_bf16 v[8:11], v[2:5], v[4:7], 0", "EXEC must be all ones here", 0, 63},
    {"divergent-barrier", "v_readfirstlane_b32 s20, v0\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 1\n@s_barrier",
     "v_readfirstlane_b32 s20, v0\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 0\ns_barrier", "s_barrier",
     "waits at a barrier that other waves ended without reaching", 0, 0, false, 128},
};

struct Outcome {
  Status status;
  std::vector<SimFinding> findings;
};

Outcome run_kernel(const std::string& code, unsigned workgroup, unsigned lds, SimUnaligned unaligned) {
  const auto device = make_device(SimChecks::kStrict);
  SimOptions options = device->options();
  options.rules.unaligned = unaligned;
  check(device->set_options(options));
  const Buffer<std::uint32_t> in(*device, std::vector<std::uint32_t>(64, 0)),
      out(*device, std::vector<std::uint32_t>(64, 0));
  Outcome o;
  o.status = run(*device, assemble_kernel(kSetup + code, {.lds = lds, .workgroup = workgroup}), "k",
                 {.block = {workgroup, 1, 1}}, Args().add(in).add(out));
  o.findings = device->last_findings();
  return o;
}

std::string all(const std::vector<SimFinding>& findings) {
  std::string s;
  for (const SimFinding& f : findings) s += sim::to_string(f) + "\n";
  return s;
}

class FindingKind : public testing::TestWithParam<Planted> {};

TEST_P(FindingKind, HasTheOneFaultWithItsPlace) {
  const Planted& p = GetParam();
  const std::string code(p.code);
  const std::size_t at = code.find('@');
  // The instruction's place: the bytes that everything before it assembles to.
  const std::size_t offset = jit::testing::machine_code(kSetup + code.substr(0, at)).size();
  const Outcome o = run_kernel(code.substr(0, at) + code.substr(at + 1), p.workgroup, p.lds, p.unaligned);
  ASSERT_EQ(o.findings.size(), 1u) << all(o.findings);
  const SimFinding& f = o.findings[0];
  EXPECT_EQ(f.kind, p.kind);
  EXPECT_EQ(f.offset, offset);
  EXPECT_EQ(f.workgroup, (std::array<std::uint32_t, 3>{0, 0, 0}));
  EXPECT_EQ(f.wave, p.wave);
  EXPECT_EQ(f.lane, p.lane);
  EXPECT_EQ(f.instruction, p.instruction);
  EXPECT_THAT(f.message, HasSubstr(p.message));
  EXPECT_EQ(f.warning, p.warning);
  // A warning fails nothing.
  EXPECT_EQ(o.status.has_value(), p.warning);
}

TEST_P(FindingKind, TwinHasNone) {
  const Planted& p = GetParam();
  const Outcome o = run_kernel(p.twin, p.workgroup, p.lds, p.unaligned);
  EXPECT_TRUE(o.status.has_value()) << to_string(o.status.error());
  EXPECT_TRUE(o.findings.empty()) << all(o.findings);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FindingKind, testing::ValuesIn(kPlanted), [](const auto& info) {
  std::string name = fmt::format("{:02}_{}", info.index, info.param.kind);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(FindingKinds, EachHasAPlantedKernel) {
  std::set<std::string> planted, listed;
  for (const Planted& p : kPlanted) planted.insert(p.kind);
  for (const SimFindingKind& k : kSimFindingKinds) {
    EXPECT_TRUE(listed.emplace(k.name).second) << k.name;
    EXPECT_FALSE(k.meaning.empty()) << k.name;
  }
  EXPECT_EQ(planted, listed);
  for (const Planted& p : kPlanted) {
    for (const SimFindingKind& k : kSimFindingKinds) {
      if (k.name == p.kind) {
        EXPECT_TRUE(k.may_be_warning || !p.warning) << k.name;
      }
    }
  }
}

// Which access needs which alignment, and when a finding is a warning.
TEST(MisalignedMemory, ByForm) {
  struct Form {
    const char* code;
    bool found, warning;
  };
  // v24 = 1, v25 = 2, v26 = -1, s[8:11] a buffer of 256 bytes, s20 = 1, v[30:31] = s[4:5] + 2.
  constexpr char kForms[] = R"(v_mov_b32 v24, 1
v_mov_b32 v25, 2
v_mov_b32 v26, -1
v_mov_b32 v30, s6
v_mov_b32 v31, s7
v_add_u32 v30, 2, v30
s_mov_b32 s8, s6
s_mov_b32 s9, s7
s_mov_b32 s10, 256
s_mov_b32 s11, 0x27000
s_mov_b32 s20, 1
s_nop 4
)";
  const Form forms[] = {
      {"global_load_dword v40, v24, s[6:7]", true, true},
      {"global_load_dword v40, v2, s[6:7] offset:3", true, true},
      {"global_load_dword v40, v[30:31], off", true, true},
      {"global_load_dword v40, v[30:31], off offset:2", false, false},
      {"global_load_dwordx4 v[40:43], v25, s[6:7]", true, true},
      {"global_load_dwordx4 v[40:43], v2, s[6:7] offset:4", false, false},
      {"global_load_ushort v40, v24, s[6:7]", true, true},
      {"global_load_ushort v40, v25, s[6:7]", false, false},
      {"global_load_ubyte v40, v24, s[6:7]", false, false},
      {"flat_load_dword v40, v[30:31]\ns_waitcnt lgkmcnt(0)", true, true},
      {"global_store_dword v25, v2, s[6:7]", true, true},
      {"global_store_short v25, v2, s[6:7]", false, false},
      {"buffer_load_dword v40, v24, s[8:11], 0 offen", true, true},
      {"buffer_load_dword v40, v2, s[8:11], s20 offen", true, true},
      {"buffer_load_dword v40, v2, s[8:11], 0 offen offset:2", true, true},
      {"buffer_load_dword v40, v26, s[8:11], 0 offen", false, false},  // clipped
      {"buffer_store_dwordx4 v[4:7], v25, s[8:11], 0 offen", true, true},
      {"buffer_load_dword v24, s[8:11], 0 offen lds", true, true},
      {"global_load_lds_dwordx4 v25, s[6:7]", true, true},
      {"global_atomic_add v25, v2, s[6:7]", true, false},
      {"global_atomic_add v2, v3, s[6:7] offset:4", false, false},
      {"global_atomic_add_x2 v2, v[4:5], s[6:7] offset:4", true, false},
      {"s_load_dword s30, s[6:7], 0x2\ns_waitcnt lgkmcnt(0)", true, false},
      {"s_load_dword s30, s[6:7], s20\ns_waitcnt lgkmcnt(0)", true, false},
      {"s_load_dwordx4 s[32:35], s[6:7], 0x4\ns_waitcnt lgkmcnt(0)", false, false},
      {"s_buffer_load_dword s30, s[8:11], 0x1\ns_waitcnt lgkmcnt(0)", true, false},
  };
  for (const Form& form : forms) {
    const Outcome o =
        run_kernel(std::string(kForms) + form.code + "\ns_waitcnt vmcnt(0)\n", 64, 2048, SimUnaligned::kDelivered);
    // Misaligned atomics need not be simulated at all.
    const auto misaligned = std::count_if(o.findings.begin(), o.findings.end(),
                                          [](const SimFinding& f) { return f.kind == "memory-misaligned"; });
    EXPECT_EQ(misaligned, form.found ? 1 : 0) << form.code << "\n" << all(o.findings);
    if (misaligned == 1) {
      EXPECT_EQ(o.findings[0].warning, form.warning) << form.code;
    }
    EXPECT_EQ(o.status.has_value(), !form.found || form.warning) << form.code << "\n" << all(o.findings);
  }
}

// Several workgroups and threads: a warning comes once for each instruction, from the lowest workgroup that has it.
TEST(Warnings, OfALaunchAreListedOnce) {
  const auto device = make_device(SimChecks::kStrict, 4);
  const Buffer<std::uint32_t> in(*device, std::vector<std::uint32_t>(64, 0)),
      out(*device, std::vector<std::uint32_t>(64, 0));
  // Workgroup 0 leaves before the second load.
  const std::string code = std::string(kSetup) +
                           "global_load_dword v40, v2, s[4:5] offset:1\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 2\n"
                           "global_load_dword v41, v2, s[4:5] offset:2\n";
  const Status status = run(*device, assemble_kernel(code), "k", {.grid = {64, 1, 1}}, Args().add(in).add(out));
  EXPECT_TRUE(status.has_value()) << to_string(status.error());
  const auto findings = device->last_findings();
  ASSERT_EQ(findings.size(), 2u) << all(findings);
  EXPECT_LT(findings[0].offset, findings[1].offset);
  EXPECT_EQ(findings[0].workgroup[0], 0u);
  EXPECT_EQ(findings[1].workgroup[0], 1u);
  EXPECT_THAT(sim::to_string(findings[0]), testing::StartsWith("warning: memory-misaligned at +0x"));
}

// Strict mode stops after max_findings; warnings do not count.
TEST(Warnings, DoNotUseUpTheFindings) {
  const auto device = make_device(SimChecks::kStrict);
  SimOptions options = device->options();
  options.max_findings = 1;
  check(device->set_options(options));
  const Buffer<std::uint32_t> in(*device, std::vector<std::uint32_t>(64, 0)),
      out(*device, std::vector<std::uint32_t>(64, 0));
  const std::string code = std::string(kSetup) +
                           "global_load_dword v40, v2, s[4:5] offset:1\nglobal_load_dword v41, v2, s[4:5] offset:2\n"
                           "v_add_u32 v42, v43, v2\nv_add_u32 v42, v44, v2\n";
  const Status status = run(*device, assemble_kernel(code), "k", {}, Args().add(in).add(out));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kStrictFinding);
  EXPECT_THAT(status.error().message, HasSubstr("1 finding, the first: uninitialised-register"));
  EXPECT_EQ(device->last_findings().size(), 3u) << all(device->last_findings());
}

}  // namespace
}  // namespace zyfa::sim_test
